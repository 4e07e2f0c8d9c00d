"""A module for plugins of Alight in Python: one file, which requires only Python 3.9 or newer.

    #!/usr/bin/env python3
    import alight_plugin

    @alight_plugin.handler
    def words(job):
        with job.event.open() as file:
            count = len(file.read().split())
        return alight_plugin.succeeded(f"{count} words", values={"words": count})

    alight_plugin.main()

With a `plugin.yaml` beside it, this is a complete plugin. `main` implements all verbs of the protocol: `run` with one
event or a batch, `serve` with up to `concurrent` requests at once as set in plugin.yaml, `describe`, and `check`.

The handler
    It receives a `Job` and returns its outcome: None or a string for "succeeded", or the result of `succeeded(…)`. It
    may raise `Skipped`, `Retry`, `NotReady` or `Failed`. A temporary OSError (a full disk, a busy file) becomes `retry`,
    any other one `failed`, and a missing file of the event `skipped`. Any other exception is an error in the plugin:
    `failed`, with the traceback in the log.

    `@handler(batch=True)` receives the list of all jobs of a request, and returns a list with one outcome per job, which
    may be an exception.

Names
    A file name on Linux is bytes, and so is every path here. In messages, use `show(path)`.

Parameters
    `job.parameters["size"]` is validated against the schema in plugin.yaml, with its default.
    `job.parameters.path("to")` is an absolute path; a relative one is relative to the directory of the rules file.
    Secrets (`writeOnly`) appear neither in `repr` nor in messages.

Cancellation
    In `run`, SIGTERM raises `Cancelled` in the handler, wherever it is. In `serve`, `cancel` sets `job.is_cancelled`,
    terminates the programs that the handler has started with `job.call`, and raises `Cancelled` at the next `job.call`,
    `job.progress` or `job.check`: long loops should call one of them. `Cancelled` is not an Exception, so
    `except Exception` does not catch it; clean up in `finally` or by `with`.

Output
    Standard output is reserved for the protocol: output of `print` and of programs goes to the log. `log(text, level)`
    writes a line with its level.
"""

import base64
import contextlib
import collections
import collections.abc
import errno
import hashlib
import json
import math
import os
import re
import select
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback

__all__ = [
    "Cancelled", "Event", "Failed", "Finished", "Job", "NotReady", "Parameters", "Retry", "Skipped", "Stream", "atomic_file",
    "atomic_path", "handler", "json_path", "log", "main", "open_file", "refuse_same_file", "show", "succeeded", "trouble",
]

PROTOCOL = 1
GRACE = 5  # seconds that a program has between SIGTERM and SIGKILL
MEBIBYTE = 1024 * 1024

# Errors that may be temporary: a full, faulty or busy disk, not a wrong path.
TEMPORARY = {
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENODEV, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN,
    errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY,
}

LEVELS = {"error": 3, "warning": 4, "notice": 5, "info": 6, "debug": 7}


# Outcomes


class Outcome(Exception):
    """Finishes a job with a response; raise one of the subclasses."""

    outcome = None

    def __init__(self, message, code=None, *, retry_after=None, outputs=(), values=None):
        super().__init__(message)
        self.response = _response(self.outcome, message, code, retry_after, outputs, values)


class Skipped(Outcome):
    """There was nothing to do; the rule's later steps don't run."""

    outcome = "skipped"


class Retry(Outcome):
    """The attempt failed and is repeated, after `retry_after` seconds if set."""

    outcome = "retry"


class NotReady(Outcome):
    """The file is not complete yet; does not count as an attempt."""

    outcome = "not_ready"


class Failed(Outcome):
    """The job failed permanently."""

    outcome = "failed"


class Cancelled(BaseException):
    """The job is cancelled: by a timeout, a stop, or a newer event. Clean up and do not catch it."""


def succeeded(message=None, code=None, *, outputs=(), values=None):
    """Returns the response of a successful handler.

    `outputs` are the written paths, `values` are stored with the job; numbers among them become metrics.
    """
    return _response("succeeded", message, code, None, outputs, values)


def _response(outcome, message=None, code=None, retry_after=None, outputs=(), values=None):
    response = {"outcome": outcome}
    if message:
        response["message"] = " ".join(str(message).split())[:1000]
    if code:
        response["code"] = code
    if retry_after is not None:
        response["retry_after"] = retry_after
    if outputs:
        response["outputs"] = [json_path(each) for each in outputs]
    if values:
        response["values"] = values
    return response


def trouble(problem, error):
    """Returns the outcome to raise for an OSError: `Retry` if it may be temporary, else `Failed`.

    Missing permissions may be temporary, unlike the limits of a sandbox.
    """
    kind = Retry if error.errno in TEMPORARY or _is_denied_by_mode(error) else Failed
    return kind(f"{problem}: {error.strerror or error}", errno.errorcode.get(error.errno, "error").lower())


def _is_denied_by_mode(error):
    """Whether the permissions of a file or directory deny the access; access(2) does not consult a sandbox."""
    if error.errno not in (errno.EACCES, errno.EPERM) or error.filename is None:
        return False
    path = os.fsencode(error.filename)
    if os.path.lexists(path):
        return not os.access(path, os.R_OK, effective_ids=True)
    return not os.access(os.path.dirname(path) or b".", os.W_OK | os.X_OK, effective_ids=True)


# Names


def json_path(path):
    """Returns a path as in the protocol: a string, or {"base64": …} if it is not UTF-8."""
    path = os.fsencode(path)
    try:
        return path.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(path).decode()}


def show(path):
    """Returns a path for display, without control characters."""
    return "".join(each if each.isprintable() else "\ufffd" for each in os.fsencode(path).decode(errors="replace"))


def _bytes(value):
    """Reads a string or {"base64": …}; returns None if it is neither."""
    with contextlib.suppress(ValueError):
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if isinstance(value, dict) and isinstance(value.get("base64"), str):
            return base64.b64decode(value["base64"])
    return None


def _member(members, key):
    """Reads a path of the request; if it is not UTF-8, another member has its exact bytes."""
    exact = members.get(f"{key}_base64")
    path = _bytes({"base64": exact} if exact is not None else members.get(key))
    return None if path is not None and b"\0" in path else path


# Log


_log_lock = threading.Lock()


def log(text, level="info"):
    """Writes a line to the log; the level is error, warning, notice, info or debug."""
    for line in str(text).splitlines() or [""]:
        _write(2, f"<{LEVELS[level]}>{line}\n", _log_lock)


def _write(descriptor, text, lock):
    data = memoryview(text.encode("utf-8", "replace"))
    with lock:
        while data:
            data = data[os.write(descriptor, data):]


# Requests


class Event:
    """An event of a file. Members without an attribute are in `raw`."""

    def __init__(self, raw):
        self.raw = raw
        self.kind = raw.get("event")
        self.type = raw.get("type")
        self.origin = raw.get("origin")
        self.path = _member(raw, "path")
        self.relative = _member(raw, "relative")
        self.root = _member(raw, "root")
        self.source = _member(raw, "from")  # the former path of a moved file
        if not self.path or not self.path.startswith(b"/"):
            raise Failed("the event's 'path' isn't an absolute path", "bad-request")

    def __repr__(self):
        return f"<{self.kind} {show(self.path)}>"

    def open(self):
        """Opens the file to read its bytes, as `open_file` does."""
        return open_file(self.path)


def open_file(path):
    """Opens a file to read its bytes; raises `Skipped` if it is missing or not a regular file.

    A link is not followed, because its target may have changed, and opening a named pipe does not block.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise Skipped("the file is gone", "gone") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise Skipped("not a regular file", "not-a-file") from None
        raise trouble("cannot read the file", error) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Skipped("not a regular file", "not-a-file")
    return os.fdopen(number, "rb")


class Parameters(collections.abc.Mapping):
    """The values of `with` in the rule, validated and with defaults."""

    def __init__(self, values, schema, directory, is_lossy=False):
        self._values, self._directory, self._is_lossy = values, directory, is_lossy
        self._secrets = {key for key, each in schema.get("properties", {}).items() if each.get("writeOnly")}

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return repr({key: "<secret>" if key in self._secrets else value for key, value in self._values.items()})

    def bytes(self, key):
        """Returns a string as exact bytes, or None if the rule does not set it."""
        value = _bytes(self._values.get(key))
        # The displayed form of a name that is not UTF-8 could be the same for two files.
        if value is not None and self._is_lossy and isinstance(self._values[key], str) and "\ufffd" in self._values[key]:
            raise Failed(f"the bytes of '{key}' are lost: its name isn't UTF-8", "name-not-utf8")
        return value

    def path(self, key):
        """Returns an absolute path, or None if the rule does not set it; a slash at its end remains."""
        value = self.bytes(key)
        if value is None:
            return None
        path = os.path.join(self._directory, value)
        if not value or not path.startswith(b"/") or b"\0" in path:
            raise Failed(f"'{key}' is not a valid path: '{show(path)}'", "bad-parameters")
        return path


class Job:
    """One event, and the parameters of the action."""

    def __init__(self, request, raw, description, call):
        rule = request.get("rule") if isinstance(request.get("rule"), dict) else {}
        self._call = call
        self.request = request
        self.id = str(raw.get("job", request.get("id", "")))
        self.attempt = request.get("attempt", 1)
        self.max_attempts = request.get("max_attempts", 1)
        self.is_interrupted = bool(request.get("interrupted"))
        self.is_dry_run = bool(request.get("dry_run"))
        self.deadline = request.get("deadline")
        self.rule = rule.get("name")
        self.previous = request.get("previous")
        self.steps = request.get("steps") or []
        self.scratch = _bytes(request.get("scratch"))
        self.event = Event(raw)
        schema = description.get("parameters") or {}
        values = raw.get("with", request.get("with", {}))
        values, wrong = _checked({} if values is None else values, schema, "with")
        if wrong:
            raise Failed(wrong, "bad-parameters")
        directory = os.path.dirname(_member(rule, "file") or b"")
        self.parameters = Parameters(values, schema, directory, "path_base64" in raw)

    def __repr__(self):
        return f"<job {self.id} of '{self.rule}': {self.event!r}>"

    @property
    def is_cancelled(self):
        return self._call.is_cancelled

    def remaining(self):
        """Returns the seconds until the deadline; infinity if there is none."""
        parts = re.fullmatch(r"(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?Z", self.deadline or "")
        if not parts:
            return math.inf
        # Without the module `calendar`, which would be loaded at each start.
        year, month, day, hour, minute, second = map(int, re.findall(r"\d+", parts[1]))
        months = (year - (month < 3)) * 12 + (month + 9) % 12
        days = months // 12 * 365 + months // 48 - months // 1200 + months // 4800
        days += (months % 12 * 306 + 5) // 10 + day - 719469
        return days * 86400 + hour * 3600 + minute * 60 + second + float(parts[2] or 0) - time.time()

    def check(self):
        """Raises `Cancelled` if the job is cancelled."""
        self._call.check()

    def progress(self, fraction, message=None):
        """Reports the progress, from 0 to 1. May raise `Cancelled`."""
        self._call.check()
        self._call.report(max(0.0, min(1.0, float(fraction))), message)

    def log(self, text, level="info"):
        log(text, level)

    def call(self, arguments, **options):
        """Runs a program until it exits and returns `Finished`: its status, output and errors.

        `stdin` is bytes, an open file, or nothing; `limit` is the maximum number of bytes of output, beyond which the
        program is terminated and the job fails; `on_line` receives each line of output, as bytes without the newline,
        instead of `output`; `package` is the package to install if the program is missing; `environment` adds
        variables; `cwd` is the working directory.

        The arguments are not interpreted by a shell. Many programs treat an argument that starts with `-` as an option:
        pass absolute paths. The program leads a process group, which is terminated with the job.
        """
        return self._call.run([os.fsencode(each) for each in arguments], **options)

    def stream(self, arguments, **options):
        """Starts a program to read its output while it runs: `with job.stream([…]) as program: program.output.read(…)`.

        After the block, `program.status` and `program.errors` are set. The options are those of `call` except
        `limit` and `on_line`; `stdin` is an open file or nothing.
        """
        return self._call.stream([os.fsencode(each) for each in arguments], **options)


class Stream:
    """A program that is being read: its `output`, and after the block its `status` and `errors`."""

    output = status = errors = None


Finished = collections.namedtuple("Finished", "status output errors")


# Writing files


# Paths to remove, if SIGTERM arrives while one is being removed or at the start or end of a block.
_temporaries = set()


@contextlib.contextmanager
def atomic_path(target, job=None):
    """Yields a temporary path beside `target`, and renames it at the end; for programs that write by name.

    The file therefore appears only when it is complete, and an exception leaves no file. Missing directories are
    created. The name depends on the job, so that a later attempt removes the file of a killed one.
    """
    target = os.path.abspath(os.fsencode(target))
    directory = os.path.dirname(target)
    mark = hashlib.sha256(os.fsencode(job.id if job else str(os.getpid())) + b"\0" + target).hexdigest()[:24]
    temporary = os.path.join(directory, b".alight-" + mark.encode() + b".tmp")
    problem = f"cannot write '{show(target)}'"
    try:
        os.makedirs(directory, exist_ok=True)
        _remove(temporary)
    except OSError as error:
        raise trouble(problem, error) from None
    _temporaries.add(temporary)
    try:
        yield temporary
        _sync(temporary)
        os.rename(temporary, target)
        _sync(directory)
    except OSError as error:
        if error.filename is not None and os.fsencode(error.filename) not in (temporary, directory):
            raise  # of another file, in the block
        raise trouble(problem, error) from None
    finally:
        _remove(temporary)
        _temporaries.discard(temporary)


@contextlib.contextmanager
def atomic_file(target, job=None, mode=0o666):
    """Opens a file to write bytes, which appears under its name when the block ends without an exception."""
    with atomic_path(target, job) as temporary:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            file = os.fdopen(os.open(temporary, flags, mode), "wb")
        except OSError as error:
            raise trouble(f"cannot write '{show(target)}'", error) from None
        with file:
            yield file


def refuse_same_file(file, target, what="the file"):
    """Raises `Failed` if `target` is the open file itself, under any name."""
    try:
        here, there = os.fstat(file.fileno()), os.stat(target)
    except OSError:
        return
    if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
        raise Failed(f"'{show(target)}' is {what} itself", "same-file")


def _sync(path):
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        shutil.rmtree(path)


# The programs of a request, and its cancellation


class _Call:
    """The state that the jobs of one request share: whether it is cancelled, and its running programs."""

    def __init__(self, report):
        self.report = report
        self.is_cancelled = False
        self._lock = threading.RLock()
        self._groups = set()
        self._cancelled_at = None
        self._is_shielded = False

    def check(self):
        if self.is_cancelled:
            raise Cancelled

    def cancel(self):
        with self._lock:
            self.is_cancelled = True
            self._cancelled_at = self._cancelled_at or time.monotonic()
            for group in self._groups:
                _kill_group(group, signal.SIGTERM)

    def kill(self):
        """Kills the running programs."""
        with self._lock:
            for group in self._groups:
                _kill_group(group, signal.SIGKILL)

    def interrupt(self, *_):
        """Handles SIGTERM in `run`: raises in the handler, but not while a program is being started."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # once is enough; cleaning up is not interrupted
        self.cancel()
        if not self._is_shielded:
            raise Cancelled

    @contextlib.contextmanager
    def started(self, arguments, stdin, package, environment, cwd):
        """Starts a program, and terminates its remaining processes with the block."""
        self.check()
        environment = {**os.environ, **(environment or {})}
        program = os.fsdecode(arguments[0])
        found = shutil.which(program, path=environment.get("PATH"))
        if not found:
            help = f": install the package {package}" if package else ""
            raise Failed(f"the program '{program}' is missing{help}", "missing-program")
        if isinstance(stdin, (bytes, bytearray, memoryview)):
            stdin = subprocess.PIPE
        child = None
        try:
            self._is_shielded = True
            with self._lock:
                self.check()
                try:
                    child = subprocess.Popen(
                        [found, *arguments[1:]], env=environment, cwd=cwd, start_new_session=True,
                        stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE)
                except OSError as error:
                    raise trouble(f"cannot start '{program}'", error) from None
                self._groups.add(child.pid)
            self._is_shielded = False
            self.check()
            yield child
            self.check()
        finally:
            self._is_shielded = False
            if child is not None:
                self._end(child)

    def run(self, arguments, *, stdin=None, limit=16 * MEBIBYTE, on_line=None, package=None, environment=None, cwd=None):
        with self.started(arguments, stdin, package, environment, cwd) as child:
            data = stdin if isinstance(stdin, (bytes, bytearray, memoryview)) else None
            output, errors = self._talk(child, data, limit, on_line, os.fsdecode(arguments[0]))
        return Finished(child.returncode, output, errors.decode(errors="replace"))

    @contextlib.contextmanager
    def stream(self, arguments, *, stdin=None, package=None, environment=None, cwd=None):
        stream = Stream()
        errors = bytearray()

        def drain(pipe):
            with contextlib.suppress(OSError, ValueError):
                while piece := pipe.read1(65536):
                    errors.extend(piece)
                    del errors[:-65536]

        with self.started(arguments, stdin, package, environment, cwd) as child:
            reader = threading.Thread(target=drain, args=(child.stderr,), daemon=True)
            reader.start()
            stream.output = child.stdout
            yield stream
            while child.stdout.read1(65536):  # data after the end of an archive
                pass
            while not _has_ended(child.pid):
                self.check()
                time.sleep(0.002)
            reader.join(2)
        stream.status, stream.errors = child.returncode, errors.decode(errors="replace")

    def _talk(self, child, data, limit, on_line, program):
        """Writes the input and reads the output of the program until both end; does not wait for its background processes."""
        output, errors, rest = bytearray(), bytearray(), bytearray()
        data = memoryview(data) if data is not None else None
        ended_at = None
        with selectors.DefaultSelector() as ready:
            for stream in (child.stdout, child.stderr):
                os.set_blocking(stream.fileno(), False)
                ready.register(stream, selectors.EVENT_READ)
            if data is not None:
                os.set_blocking(child.stdin.fileno(), False)
                ready.register(child.stdin, selectors.EVENT_WRITE)
            streams = {child.stdout, child.stderr}
            while streams:
                now = time.monotonic()
                if self._cancelled_at and now > self._cancelled_at + GRACE:
                    _kill_group(child.pid, signal.SIGKILL)
                if ended_at is None and _has_ended(child.pid):
                    ended_at = now
                if ended_at is not None and now > ended_at + 2:
                    break  # a process that it started has the pipes open
                for key, _ in ready.select(0.2):
                    if key.fileobj is child.stdin:
                        try:
                            data = data[os.write(child.stdin.fileno(), data[:65536]):]
                        except BlockingIOError:
                            continue
                        except BrokenPipeError:
                            data = data[:0]
                        if not data:
                            ready.unregister(child.stdin)
                            child.stdin.close()
                        continue
                    piece = os.read(key.fd, 65536)
                    if not piece:
                        ready.unregister(key.fileobj)
                        streams.discard(key.fileobj)
                    elif key.fileobj is child.stderr:
                        errors += piece
                        del errors[:-65536]
                    elif on_line:
                        *lines, rest = (rest + piece).split(b"\n")
                        for line in lines:
                            on_line(bytes(line))
                        del rest[:-65536]
                    else:
                        output += piece
                        if len(output) > limit:
                            raise Failed(f"'{program}' wrote more than {limit} bytes", "too-large")
        if on_line and rest:
            on_line(bytes(rest))
        deadline = None
        while not _has_ended(child.pid):  # its output is closed, but it still runs
            if self._cancelled_at:
                deadline = deadline or time.monotonic() + GRACE
                if time.monotonic() > deadline:
                    break
            time.sleep(0.01)
        return bytes(output), bytes(errors)

    def _end(self, child):
        """Terminates the remaining processes of the group: by SIGTERM, then by SIGKILL."""
        if self.is_cancelled or not _has_ended(child.pid):
            _kill_group(child.pid, signal.SIGTERM)
            _close(child.stdin)
            # A process of the group that has a pipe open may still be cleaning up.
            pipes = {each for each in (child.stdout, child.stderr) if not each.closed}
            for pipe in pipes:
                os.set_blocking(pipe.fileno(), False)
            deadline = time.monotonic() + GRACE
            while (pipes or not _has_ended(child.pid)) and time.monotonic() < deadline:
                for pipe in select.select(list(pipes), [], [], 0.02)[0]:
                    with contextlib.suppress(BlockingIOError):
                        if not os.read(pipe.fileno(), 65536):
                            pipes.discard(pipe)
        # Before it is reaped, its number is not reused for another group.
        _kill_group(child.pid, signal.SIGKILL)
        with self._lock:
            self._groups.discard(child.pid)
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            _close(stream)


def _close(stream):
    if stream:
        with contextlib.suppress(OSError):
            stream.close()


def _has_ended(number):
    return os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(number, signal_number):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal_number)


# Parameters by their schema


TYPES = {
    "string": lambda value: _bytes(value) is not None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _checked(value, schema, place):
    """Returns the value with defaults, and its error or None.

    Alight has already validated it; this is for plugins that are called manually.
    """
    shown = "it" if schema.get("writeOnly") else f"'{show(value) if isinstance(value, str) else json.dumps(value)}'"
    kind = schema.get("type")
    if kind and not TYPES[kind](value):
        return value, f"'{place}' must be of the type {kind}, and {shown} is not"
    if "enum" in schema and value not in schema["enum"]:
        return value, f"'{place}' must be one of {', '.join(map(str, schema['enum']))}, and {shown} is not"
    if "const" in schema and value != schema["const"]:
        return value, f"'{place}' must be {schema['const']}, and {shown} is not"
    if TYPES["number"](value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            least, most = schema.get("minimum", "any"), schema.get("maximum", "any")
            return value, f"'{place}' must be from {least} to {most}, and {shown} is not"
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return value, f"'{place}' is too {'short' if len(value) < schema.get('minLength', 0) else 'long'}: {shown}"
        # In JSON Schema `$` matches only at the end, in Python also before a final newline.
        pattern = re.sub(r"(?<!\\)\$$", r"\\Z", schema.get("pattern", ""))
        if not re.search(pattern, value):
            return value, f"'{place}' must match {schema['pattern']}, and {shown} does not"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return value, f"'{place}' has {len(value)} elements"
        value = list(value)
        for index, each in enumerate(value):
            value[index], wrong = _checked(each, schema.get("items", {}), f"{place}[{index}]")
            if wrong:
                return value, wrong
    elif isinstance(value, dict) and "string" != kind:
        properties = schema.get("properties", {})
        value = {**{key: each["default"] for key, each in properties.items() if "default" in each}, **value}
        for key in schema.get("required", []):
            if key not in value:
                return value, f"'{key}' is missing"
        for key, each in value.items():
            if key not in properties and schema.get("additionalProperties", True) is False:
                return value, f"unknown parameter '{show(key)}'"
            value[key], wrong = _checked(each, properties.get(key, {}), key)
            if wrong:
                return value, wrong
    return value, None


# plugin.yaml


class _YAML:
    """Reads the subset of YAML for descriptions.

    Mappings and lists by indentation or in brackets, strings plain or quoted, each on one line; comments.
    """

    PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}

    def __init__(self, text):
        self.lines = []
        for number, line in enumerate(text.splitlines(), 1):
            body = re.match(r"""(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|\s(?!\s*\#)|(?!\#)\S|(?<=\S)\#)*""", line)[0].rstrip()
            if body.strip() and body.strip() != "---":
                self.lines.append((number, len(body) - len(body.lstrip()), body.strip()))
        self.at = 0

    def error(self, problem):
        number = self.lines[min(self.at, len(self.lines) - 1)][0] if self.lines else 1
        return ValueError(f"line {number}: {problem}; use mappings, lists and strings of one line each")

    def block(self, indent):
        if self.at >= len(self.lines) or self.lines[self.at][1] < indent:
            return None
        indent = self.lines[self.at][1]
        is_list = self.lines[self.at][2].startswith("- ")
        found = [] if is_list else {}
        while self.at < len(self.lines) and self.lines[self.at][1] == indent:
            text = self.lines[self.at][2]
            if is_list:
                if not text.startswith("- "):
                    raise self.error("a list item does not start with '- '")
                found.append(self.scalar(text[2:].strip()))
                self.at += 1
                continue
            key = re.match(r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s:'"\[\]{}][^:]*):(?:\s+(.*))?$""", text)
            if not key:
                raise self.error(f"'{text}' has no 'key:'")
            name, value = self.scalar(key[1]), key[2]
            if value:
                found[name] = self.scalar(value)
                self.at += 1
            else:
                self.at += 1
                found[name] = self.block(indent + 1)
        if self.at < len(self.lines) and self.lines[self.at][1] > indent:
            raise self.error("unexpected indentation")
        return found

    def scalar(self, text):
        value, rest = self.flow(text, is_outside=True)
        if rest.strip():
            raise self.error(f"'{rest.strip()}' is unexpected")
        return value

    def flow(self, text, is_outside=False):
        text = text.lstrip()
        if text[:1] in ("[", "{"):
            is_list, close = text[0] == "[", "]" if text[0] == "[" else "}"
            found, text = [] if is_list else {}, text[1:].lstrip()
            while not text.startswith(close):
                if not text:
                    raise self.error(f"missing '{close}'")
                value, text = self.flow(text)
                text = text.lstrip()
                if is_list:
                    found.append(value)
                else:
                    if not text.startswith(":"):
                        raise self.error(f"'{value}' has no ':'")
                    found[value], text = self.flow(text[1:])
                    text = text.lstrip()
                if text.startswith(","):
                    text = text[1:].lstrip()
            return found, text[1:]
        if text.startswith('"'):
            if quoted := re.match(r'"(?:\\.|[^"\\])*"', text):
                return json.loads(quoted[0]), text[quoted.end():]
            raise self.error("unterminated quoted string")
        if text.startswith("'"):
            if quoted := re.match(r"'((?:''|[^'])*)'", text):
                return quoted[1].replace("''", "'"), text[quoted.end():]
            raise self.error("unterminated quoted string")
        if text[:1] in ("|", ">", "&", "*", "!", "?"):
            raise self.error(f"'{text[:1]}' is not supported here")
        plain = text if is_outside else re.match(r"(?:[^,\[\]{}:]|:(?!\s|$))*", text)[0]
        rest, plain = text[len(plain):], plain.strip()
        if plain in self.PLAIN:
            return self.PLAIN[plain], rest
        for number in (int, float):
            if re.fullmatch(r"[-+]?(\d+|\d*\.\d+|\d+\.\d*)([eE][-+]?\d+)?", plain):
                with contextlib.suppress(ValueError):
                    return number(plain), rest
        return plain, rest


def read_description(path):
    """Reads a plugin.yaml; a ValueError names the line of the error."""
    with open(path, encoding="utf-8") as file:
        reader = _YAML(file.read())
    found = reader.block(0)
    if reader.at < len(reader.lines):
        raise reader.error("this line is not part of the mapping above")
    return found or {}


# The verbs


_handler = None
_is_batch = False


def handler(function=None, *, batch=False):
    """Marks the function that does the work; with `batch=True` for all events of a request at once."""
    def mark(function):
        global _handler, _is_batch
        _handler, _is_batch = function, batch
        return function
    return mark if function is None else mark(function)


def main(function=None, *, batch=False, check=None, description=None):
    """Executes the verb in the first argument, and exits.

    `check` is a function without arguments for the verb of that name: it returns or raises as a handler does.
    `description` replaces plugin.yaml, for a plugin in one file.
    """
    if function:
        handler(function, batch=batch)
    sys.exit(_main(sys.argv[1:], check, description))


def _main(arguments, check, description):
    program = os.path.realpath(sys.argv[0])
    name = os.path.basename(program)
    beside = os.path.join(os.path.dirname(program), "plugin.yaml")
    if description is None:
        try:
            description = read_description(beside)
        except FileNotFoundError:
            description = {"name": name, "protocol": [PROTOCOL]}
        except (OSError, ValueError) as error:
            print(f"{beside}: {error}", file=sys.stderr)
            return 78
    verb = arguments[0] if len(arguments) == 1 else None
    modes = description.get("modes") or ["run"]
    if verb == "describe":
        print(json.dumps({key: value for key, value in description.items() if key != "run"}))
        return 0
    if verb == "check":
        print(json.dumps(_check_needs(description, check)))
        return 0
    if verb not in modes:
        print(f"usage: {name} {' | '.join([*modes, 'describe', 'check'])}", file=sys.stderr)
        return 64
    # Only responses are written to standard output; other output goes to standard error.
    output = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return _run(description, output) if verb == "run" else _Server(description, output).serve()


def _check_needs(description, check):
    for need in description.get("requires") or []:
        program, _, package = need.partition(" ")
        if not shutil.which(program):
            package = package.strip("()") or program
            return Failed(f"the program '{program}' is missing: install the package {package}", "missing-program").response
    try:
        return _answer(check() if check else None)
    except Outcome as outcome:
        return outcome.response


def _run(description, output):
    try:
        request = json.load(sys.stdin.buffer)
        if not isinstance(request["events"], list) or not request["events"]:
            raise ValueError("'events' isn't a list of events")
        if not all(isinstance(each, dict) for each in request["events"]):
            raise ValueError("an event isn't an object")
    except (ValueError, KeyError, TypeError) as error:
        print(f"not a request of protocol {PROTOCOL}: {error!r}", file=sys.stderr)
        return 65
    lock = threading.Lock()

    def report(fraction, message):
        line = {"progress": round(fraction, 4), **({"message": message} if message else {})}
        _write(2, json.dumps(line) + "\n", _log_lock)

    call = _Call(report)
    received = []

    def interrupt(number, frame):
        received.append(number)
        call.interrupt()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    try:
        response = _handle(request, description, call)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the work is done: respond
    except Cancelled:
        # Signals are ignored now, so that interrupted cleanup can be finished.
        for path in list(_temporaries):
            with contextlib.suppress(OSError):
                _remove(path)
        call.kill()
        # After the cleanup, terminate by the signal, so that the parent sees the cause.
        number = received[0] if received else signal.SIGTERM
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + number
    with contextlib.suppress(BrokenPipeError):
        _write(output, json.dumps(response) + "\n", lock)
    return 0


def _handle(request, description, call):
    """Passes the events of a request to the handler, and combines the outcomes in one response."""
    jobs, results = [], []
    for raw in request["events"]:
        try:
            jobs.append(Job(request, raw, description, call))
            results.append(None)
        except Outcome as outcome:
            jobs.append(None)
            results.append(outcome.response)
    sound = [job for job in jobs if job]
    if _is_batch and sound:
        def all_answers():
            answers = _handler(sound)
            if not isinstance(answers, (list, tuple)) or len(answers) != len(sound):
                raise TypeError(f"the handler must return a list of {len(sound)} answers")
            return answers
        answers = _guarded(all_answers, sound)
        answers = [answers] * len(sound) if isinstance(answers, dict) else answers
    else:
        answers = []
        for job in sound:
            call.check()
            answers.append(_guarded(lambda: _handler(job), [job]))
    call.check()
    waiting = iter(answers)
    for index, job in enumerate(jobs):
        if job:
            answer = next(waiting)
            results[index] = _guarded(lambda: answer, [job])
    if len(results) == 1:
        return results[0]
    outcomes = [each["outcome"] for each in results]
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    return {
        "outcome": outcomes[0] if len(counts) == 1 else "succeeded",
        "message": ", ".join(f"{count} {outcome}" for outcome, count in counts.items()),
        "values": {"events": len(results), **counts},
        "results": results,
    }


def _guarded(work, jobs):
    """Calls the handler and returns its response, also for any exception."""
    try:
        answer = work()
        return answer if isinstance(answer, (list, tuple)) else _answer(answer)
    except Outcome as outcome:
        return outcome.response
    except OSError as error:
        path = error.filename if isinstance(error.filename, (str, bytes)) else None
        mine = path is not None and any(os.fsencode(path) == job.event.path for job in jobs)
        if isinstance(error, FileNotFoundError) and mine:
            return Skipped("the file is gone", "gone").response
        log(traceback.format_exc(), "debug")
        return trouble(f"'{show(path)}'" if path is not None else "a system call failed", error).response
    except Exception as error:
        log(traceback.format_exc(), "error")
        return Failed(f"error in the plugin: {type(error).__name__}: {error}", "exception").response


def _answer(answer):
    if answer is None or isinstance(answer, str):
        return succeeded(answer)
    if isinstance(answer, Outcome):
        return answer.response
    if isinstance(answer, dict) and "outcome" in answer:
        return {**answer, **({"outputs": [
            each if isinstance(each, dict) else json_path(each) for each in answer["outputs"]]}
            if answer.get("outputs") else {})}
    raise TypeError(f"a handler must return None, a string or succeeded(…), not {type(answer).__name__}")


class _Server:
    """Handles requests until standard input ends, several at once, each in its own thread."""

    def __init__(self, description, output):
        self.description, self.output = description, output
        self.concurrent = description.get("concurrent") or 1
        self.lock = threading.Lock()
        self.calls = {}
        self.signal = None

    def serve(self):
        from concurrent.futures import ThreadPoolExecutor  # slow to load, and only `serve` requires it

        waker, self.wake = os.pipe()
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        with ThreadPoolExecutor(self.concurrent) as pool:
            rest = b""
            while self.signal is None:
                readable, _, _ = select.select([0, waker], [], [])
                if waker in readable:
                    os.read(waker, MEBIBYTE)
                if 0 not in readable:
                    continue
                piece = os.read(0, MEBIBYTE)
                if not piece:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self.take(line, pool)
            # select(2) waits for open requests, and not the end of the block: a signal that arrives just before a
            # thread is joined would be handled after the join.
            while self.calls and self.signal is None:
                select.select([waker], [], [])
                os.read(waker, MEBIBYTE)
        if self.signal is not None:
            signal.signal(self.signal, signal.SIG_DFL)
            os.kill(os.getpid(), self.signal)
        return 0

    def stop(self, number, _):
        self.signal = self.signal or number
        for call in list(self.calls.values()):
            call.cancel()

    def say(self, message):
        try:
            _write(self.output, json.dumps(message) + "\n", self.lock)
        except BrokenPipeError:
            os._exit(0)  # no process reads the responses

    def take(self, line, pool):
        try:
            message = json.loads(line)
            kind = message.get("type")
        except (ValueError, AttributeError):
            log("a line on standard input is not a JSON object", "warning")
            return
        if kind == "hello":
            self.say({"type": "ready", "protocol": PROTOCOL, "concurrent": self.concurrent})
        elif kind == "ping":
            self.say({"type": "pong", "n": message.get("n")})
        elif kind == "cancel":
            if call := self.calls.get(message.get("id")):
                call.cancel()
        elif kind == "run":
            identifier = message.get("id")

            def report(fraction, text):
                progress = {"type": "progress", "id": identifier, "fraction": round(fraction, 4)}
                self.say({**progress, **({"message": text} if text else {})})

            call = self.calls[identifier] = _Call(report)
            pool.submit(self.work, message, call)

    def work(self, message, call):
        identifier = message.get("id")
        try:
            events = message.get("events")
            if not isinstance(events, list) or not events or not all(isinstance(each, dict) for each in events):
                raise Failed("'events' isn't a list of events", "bad-request")
            call.check()
            response = _handle(message, self.description, call)
        except Outcome as outcome:
            response = outcome.response
        except Cancelled:
            response = Retry("cancelled", "cancelled").response
        except BaseException as error:
            log(traceback.format_exc(), "error")
            response = Failed(f"error in the plugin: {type(error).__name__}: {error}", "exception").response
        finally:
            self.calls.pop(identifier, None)
            with contextlib.suppress(BlockingIOError):
                os.write(self.wake, b"\0")
        self.say({"type": "result", "id": identifier, "attempt": message.get("attempt", 1), **response})
