"""Plugins for Alight in Python: one file, Python 3.9 or newer, nothing else.

    #!/usr/bin/env python3
    import alight_plugin

    @alight_plugin.handler
    def words(job):
        with job.event.open() as file:
            count = len(file.read().split())
        return alight_plugin.succeeded(f"{count} words", values={"words": count})

    alight_plugin.main()

With a `plugin.yaml` beside it that is a whole plugin. `main` speaks the protocol in all its verbs: `run` with one event
or a batch, `serve` with as many requests at once as `concurrent` in plugin.yaml says, `describe`, and `check`.

The handler
    It gets a `Job` and returns what came of it: None or a text for "succeeded", or what `succeeded(…)` gives. It may
    raise `Skipped`, `Retry`, `NotReady` or `Failed`. An OSError that time may cure (a full disk, a busy file) becomes
    `retry`, any other one `failed`, and a file of the event that has vanished `skipped`. Another exception is a mistake
    in the plugin: `failed`, with the traceback in the log.

    `@handler(batch=True)` gets the list of all jobs of a request instead, and returns a list of as many answers, in
    which exceptions may stand as well.

Names
    A file name on Linux is bytes, and so is every path here. In texts for people, `show(path)`.

Parameters
    `job.parameters["size"]` is checked by the schema in plugin.yaml, with its default filled in.
    `job.parameters.path("to")` is an absolute path; a relative one is meant from the folder of the rules file. Secrets
    (`writeOnly`) show neither in `repr` nor in messages.

Being ended
    In `run`, SIGTERM raises `Cancelled` in the handler, wherever it is. In `serve`, `cancel` sets `job.is_cancelled`,
    ends the programs that the handler has started with `job.call`, and raises `Cancelled` at the next `job.call`,
    `job.progress` or `job.check`: long loops should have one of them. `Cancelled` is no Exception, so that
    `except Exception` lets it pass; clean up in `finally`, or leave it to `with`.

Output
    Standard output belongs to the protocol: `print` and programs that write there go to the log. `log(text, level)`
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

# What another attempt may cure: a full, sick or busy disk, not a wrong path.
TEMPORARY = {
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN,
    errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY,
}

LEVELS = {"error": 3, "warning": 4, "notice": 5, "info": 6, "debug": 7}


# Outcomes


class Outcome(Exception):
    """Ends the work with a response; raise one of those below."""

    outcome = None

    def __init__(self, message, code=None, *, retry_after=None, outputs=(), values=None):
        super().__init__(message)
        self.response = _response(self.outcome, message, code, retry_after, outputs, values)


class Skipped(Outcome):
    """There was nothing to do; the rule's later steps don't run."""

    outcome = "skipped"


class Retry(Outcome):
    """It failed and may succeed later, by itself or after `retry_after` seconds."""

    outcome = "retry"


class NotReady(Outcome):
    """The file isn't complete yet; costs no attempt."""

    outcome = "not_ready"


class Failed(Outcome):
    """It can't succeed."""

    outcome = "failed"


class Cancelled(BaseException):
    """The job is to end: time-out, stop, or a newer event. Clean up and let it pass."""


def succeeded(message=None, code=None, *, outputs=(), values=None):
    """Makes the answer of a handler that did its work.

    `outputs` are the paths that it wrote, `values` facts that are kept; numbers among them are measured.
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


def trouble(what, error):
    """Makes of an OSError the outcome to raise: `Retry` if time may cure it, else `Failed`."""
    kind = Retry if error.errno in TEMPORARY else Failed
    return kind(f"{what}: {error.strerror or error}", errno.errorcode.get(error.errno, "error").lower())


# Names


def json_path(path):
    """Says a path as the protocol does: a text, or {"base64": …} if it isn't UTF-8."""
    path = os.fsencode(path)
    try:
        return path.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(path).decode()}


def show(path):
    """Makes of a path a text for people, in which nothing can steer a terminal."""
    return "".join(each if each.isprintable() else "\ufffd" for each in os.fsencode(path).decode(errors="replace"))


def _bytes(value):
    """Reads a text that may be {"base64": …}; None if it is neither."""
    with contextlib.suppress(ValueError):
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if isinstance(value, dict) and isinstance(value.get("base64"), str):
            return base64.b64decode(value["base64"])
    return None


def _member(members, key):
    """Reads a path of the request, whose exact bytes stand beside it if it isn't UTF-8."""
    exact = members.get(f"{key}_base64")
    path = _bytes({"base64": exact} if exact is not None else members.get(key))
    return None if path is not None and b"\0" in path else path


# Log


_log_lock = threading.Lock()


def log(text, level="info"):
    """Writes a line of log: level error, warning, notice, info or debug."""
    for line in str(text).splitlines() or [""]:
        _write(2, f"<{LEVELS[level]}>{line}\n", _log_lock)


def _write(descriptor, text, lock):
    data = memoryview(text.encode("utf-8", "replace"))
    with lock:
        while data:
            data = data[os.write(descriptor, data):]


# What a request is made of


class Event:
    """What happened to which file. Members that have no attribute here are in `raw`."""

    def __init__(self, raw):
        self.raw = raw
        self.kind = raw.get("event")
        self.type = raw.get("type")
        self.origin = raw.get("origin")
        self.path = _member(raw, "path")
        self.relative = _member(raw, "relative")
        self.root = _member(raw, "root")
        self.source = _member(raw, "from")  # of a moved file: the path before
        if not self.path or not self.path.startswith(b"/"):
            raise Failed("the event's 'path' isn't an absolute path", "bad-request")

    def __repr__(self):
        return f"<{self.kind} {show(self.path)}>"

    def open(self):
        """Opens the file to read its bytes, as `open_file` does."""
        return open_file(self.path)


def open_file(path):
    """Opens a file to read its bytes; `Skipped` if it has gone or is no regular file.

    A link isn't followed, for by now it may lead anywhere, and a named pipe isn't waited for.
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
    """What the rule says in `with`, checked and with defaults filled in."""

    def __init__(self, values, schema, folder, is_lossy=False):
        self._values, self._folder, self._is_lossy = values, folder, is_lossy
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
        """A text as exact bytes, or None if the rule doesn't give it."""
        value = _bytes(self._values.get(key))
        # A readable stand-in for a name that isn't UTF-8 could be the same for two files.
        if value is not None and self._is_lossy and isinstance(self._values[key], str) and "\ufffd" in self._values[key]:
            raise Failed(f"the bytes of '{key}' are lost: its name isn't UTF-8", "name-not-utf8")
        return value

    def path(self, key):
        """An absolute path, or None if the rule doesn't give it; a slash at its end stays."""
        value = self.bytes(key)
        if value is None:
            return None
        path = os.path.join(self._folder, value)
        if not value or not path.startswith(b"/") or b"\0" in path:
            raise Failed(f"'{key}' can't be a path: '{show(path)}'", "bad-parameters")
        return path


class Job:
    """One event, and what is to be done for it."""

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
        folder = os.path.dirname(_member(rule, "file") or b"")
        self.parameters = Parameters(values, schema, folder, "path_base64" in raw)

    def __repr__(self):
        return f"<job {self.id} of '{self.rule}': {self.event!r}>"

    @property
    def is_cancelled(self):
        return self._call.is_cancelled

    def remaining(self):
        """The seconds until the deadline; endless if there is none."""
        parts = re.fullmatch(r"(\d+-\d+-\d+T\d+:\d+:\d+)(\.\d+)?Z", self.deadline or "")
        if not parts:
            return math.inf
        # The module `calendar` would be one more to load at each start.
        year, month, day, hour, minute, second = map(int, re.findall(r"\d+", parts[1]))
        months = (year - (month < 3)) * 12 + (month + 9) % 12
        days = months // 12 * 365 + months // 48 - months // 1200 + months // 4800
        days += (months % 12 * 306 + 5) // 10 + day - 719469
        return days * 86400 + hour * 3600 + minute * 60 + second + float(parts[2] or 0) - time.time()

    def check(self):
        """Raises `Cancelled` if the job is to end."""
        self._call.check()

    def progress(self, fraction, message=None):
        """Says how far the work is, 0 to 1. May raise `Cancelled`."""
        self._call.check()
        self._call.tell(max(0.0, min(1.0, float(fraction))), message)

    def log(self, text, level="info"):
        log(text, level)

    def call(self, arguments, **options):
        """Runs a program to its end and returns `Finished`: its status, output and errors.

        `stdin` is bytes, an open file, or nothing; `limit` the most bytes of output, beyond which the program is ended
        and the job fails; `on_line` gets each line of output, as bytes without the newline, instead of `output`;
        `package` is what to install if the program is missing; `environment` adds variables, `cwd` is the folder.

        No shell reads the arguments. Mind that many programs take one that begins with `-` for an option: give
        absolute paths. The program is the leader of a group, and the whole group is ended with the job.
        """
        return self._call.run([os.fsencode(each) for each in arguments], **options)

    def stream(self, arguments, **options):
        """Starts a program to read its output while it runs: `with job.stream([…]) as program: program.output.read(…)`.

        After the block `program.status` and `program.errors` are there. The options are those of `call` but for
        `limit` and `on_line`; `stdin` is an open file or nothing.
        """
        return self._call.stream([os.fsencode(each) for each in arguments], **options)


class Stream:
    """A program that is being read: its `output`, and after the block its `status` and `errors`."""

    output = status = errors = None


Finished = collections.namedtuple("Finished", "status output errors")


# Writing files


# What is to be removed, in case that SIGTERM comes in the midst of removing it, or on the way into or out of a block.
_temporaries = set()


@contextlib.contextmanager
def atomic_path(target, job=None):
    """Gives a temporary name beside `target`, and renames it to that at the end; for programs that write by name.

    So the file is complete from its first moment, and after an exception nothing is left. Folders on the way are made.
    The name depends on the job: a later attempt removes what a killed one left.
    """
    target = os.path.abspath(os.fsencode(target))
    folder = os.path.dirname(target)
    mark = hashlib.sha256(os.fsencode(job.id if job else str(os.getpid())) + b"\0" + target).hexdigest()[:24]
    temporary = os.path.join(folder, b".alight-" + mark.encode() + b".tmp")
    what = f"cannot write '{show(target)}'"
    try:
        os.makedirs(folder, exist_ok=True)
        _remove(temporary)
    except OSError as error:
        raise trouble(what, error) from None
    _temporaries.add(temporary)
    try:
        yield temporary
        _sync(temporary)
        os.rename(temporary, target)
        _sync(folder)
    except OSError as error:
        if error.filename is not None and os.fsencode(error.filename) not in (temporary, folder):
            raise  # of another file, in the block
        raise trouble(what, error) from None
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
    """Raises `Failed` if `target` is the open file itself, by whatever name."""
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


# The programs of a request, and its end


class _Call:
    """What the jobs of one request share: whether it is to end, and the programs that run for it."""

    def __init__(self, tell):
        self.tell = tell
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
        """Ends at once what still runs."""
        with self._lock:
            for group in self._groups:
                _kill_group(group, signal.SIGKILL)

    def interrupt(self, *_):
        """What SIGTERM does in `run`: raises in the handler, but not while a program is being started."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # once is enough; cleaning up is not interrupted
        self.cancel()
        if not self._is_shielded:
            raise Cancelled

    @contextlib.contextmanager
    def started(self, arguments, stdin, package, environment, cwd):
        """Starts a program, and ends what is left of it with the block."""
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
            while child.stdout.read1(65536):  # what follows the end of an archive
                pass
            while not _has_ended(child.pid):
                self.check()
                time.sleep(0.002)
            reader.join(2)
        stream.status, stream.errors = child.returncode, errors.decode(errors="replace")

    def _talk(self, child, data, limit, on_line, program):
        """Feeds and reads the program until it is done with both; what it left running isn't waited for."""
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
                    break  # something that it started holds the pipes
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
        while not _has_ended(child.pid):  # it has closed its output and still runs
            if self._cancelled_at:
                deadline = deadline or time.monotonic() + GRACE
                if time.monotonic() > deadline:
                    break
            time.sleep(0.01)
        return bytes(output), bytes(errors)

    def _end(self, child):
        """Ends what is left of the group: asked first, then not."""
        if self.is_cancelled or not _has_ended(child.pid):
            _kill_group(child.pid, signal.SIGTERM)
            _close(child.stdin)
            # While one of the group holds a pipe, it may still be cleaning up.
            pipes = {each for each in (child.stdout, child.stderr) if not each.closed}
            for pipe in pipes:
                os.set_blocking(pipe.fileno(), False)
            deadline = time.monotonic() + GRACE
            while (pipes or not _has_ended(child.pid)) and time.monotonic() < deadline:
                for pipe in select.select(list(pipes), [], [], 0.02)[0]:
                    with contextlib.suppress(BlockingIOError):
                        if not os.read(pipe.fileno(), 65536):
                            pipes.discard(pipe)
        # Before it is reaped, its number can't be another group's.
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
    """Returns the value with defaults filled in, and what is wrong with it or None.

    Alight has checked it already; this is for those who call a plugin by hand.
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
        # In JSON Schema nothing may follow what `$` stands behind, in Python a newline may.
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
                return value, f"there is no parameter '{show(key)}'"
            value[key], wrong = _checked(each, properties.get(key, {}), key)
            if wrong:
                return value, wrong
    return value, None


# plugin.yaml


class _YAML:
    """Reads the part of YAML in which descriptions are written.

    Mappings and lists by indentation or in brackets, texts plain or in quotes, each on one line; comments.
    """

    PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}

    def __init__(self, text):
        self.lines = []
        for number, line in enumerate(text.splitlines(), 1):
            body = re.match(r"""(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|\s(?!\s*\#)|(?!\#)\S|(?<=\S)\#)*""", line)[0].rstrip()
            if body.strip() and body.strip() != "---":
                self.lines.append((number, len(body) - len(body.lstrip()), body.strip()))
        self.at = 0

    def fault(self, what):
        number = self.lines[min(self.at, len(self.lines) - 1)][0] if self.lines else 1
        return ValueError(f"line {number}: {what}; use mappings, lists and texts of one line each")

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
                    raise self.fault("a list goes on without '- '")
                found.append(self.scalar(text[2:].strip()))
                self.at += 1
                continue
            key = re.match(r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s:'"\[\]{}][^:]*):(?:\s+(.*))?$""", text)
            if not key:
                raise self.fault(f"'{text}' has no 'key:'")
            name, value = self.scalar(key[1]), key[2]
            if value:
                found[name] = self.scalar(value)
                self.at += 1
            else:
                self.at += 1
                found[name] = self.block(indent + 1)
        if self.at < len(self.lines) and self.lines[self.at][1] > indent:
            raise self.fault("this line is further in than the one before")
        return found

    def scalar(self, text):
        value, rest = self.flow(text, is_outside=True)
        if rest.strip():
            raise self.fault(f"'{rest.strip()}' is too much")
        return value

    def flow(self, text, is_outside=False):
        text = text.lstrip()
        if text[:1] in ("[", "{"):
            is_list, close = text[0] == "[", "]" if text[0] == "[" else "}"
            found, text = [] if is_list else {}, text[1:].lstrip()
            while not text.startswith(close):
                if not text:
                    raise self.fault(f"there is no '{close}'")
                value, text = self.flow(text)
                text = text.lstrip()
                if is_list:
                    found.append(value)
                else:
                    if not text.startswith(":"):
                        raise self.fault(f"'{value}' has no ':'")
                    found[value], text = self.flow(text[1:])
                    text = text.lstrip()
                if text.startswith(","):
                    text = text[1:].lstrip()
            return found, text[1:]
        if text.startswith('"'):
            if quoted := re.match(r'"(?:\\.|[^"\\])*"', text):
                return json.loads(quoted[0]), text[quoted.end():]
            raise self.fault("a quoted text has no end")
        if text.startswith("'"):
            if quoted := re.match(r"'((?:''|[^'])*)'", text):
                return quoted[1].replace("''", "'"), text[quoted.end():]
            raise self.fault("a quoted text has no end")
        if text[:1] in ("|", ">", "&", "*", "!", "?"):
            raise self.fault(f"'{text[:1]}' isn't read here")
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
    """Reads a plugin.yaml; ValueError names the line of what it can't read."""
    with open(path, encoding="utf-8") as file:
        reader = _YAML(file.read())
    found = reader.block(0)
    if reader.at < len(reader.lines):
        raise reader.fault("this line doesn't belong to the mapping above")
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
    """Does what the first argument asks for, and ends the program.

    `check` is a function without arguments for the verb of that name: it returns or raises as a handler does.
    `description` stands for plugin.yaml, for a plugin that is one file.
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
    # Nothing but answers may come out of standard output, whoever prints there.
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

    def tell(fraction, message):
        line = {"progress": round(fraction, 4), **({"message": message} if message else {})}
        _write(2, json.dumps(line) + "\n", _log_lock)

    call = _Call(tell)
    received = []

    def interrupt(number, frame):
        received.append(number)
        call.interrupt()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    try:
        response = _handle(request, description, call)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the work is done: say so
    except Cancelled:
        # No signal interrupts any more, so that what was left half done can be finished.
        for path in list(_temporaries):
            with contextlib.suppress(OSError):
                _remove(path)
        call.kill()
        # Everything is cleaned up: die of the signal, so that the parent sees why.
        number = received[0] if received else signal.SIGTERM
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + number
    with contextlib.suppress(BrokenPipeError):
        _write(output, json.dumps(response) + "\n", lock)
    return 0


def _handle(request, description, call):
    """Hands the events of a request to the handler, and makes one response of what it says."""
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
    """Does the work and returns its answer, whatever it raises."""
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
        return trouble(f"'{show(path)}'" if path is not None else "a call of the system failed", error).response
    except Exception as error:
        log(traceback.format_exc(), "error")
        return Failed(f"the plugin has a mistake: {type(error).__name__}: {error}", "exception").response


def _answer(answer):
    if answer is None or isinstance(answer, str):
        return succeeded(answer)
    if isinstance(answer, Outcome):
        return answer.response
    if isinstance(answer, dict) and "outcome" in answer:
        return {**answer, **({"outputs": [
            each if isinstance(each, dict) else json_path(each) for each in answer["outputs"]]}
            if answer.get("outputs") else {})}
    raise TypeError(f"a handler returns None, a text or succeeded(…), and not {type(answer).__name__}")


class _Server:
    """Answers requests until standard input ends, several at once, each in a thread of its own."""

    def __init__(self, description, output):
        self.description, self.output = description, output
        self.concurrent = description.get("concurrent") or 1
        self.lock = threading.Lock()
        self.calls = {}
        self.signal = None

    def serve(self):
        from concurrent.futures import ThreadPoolExecutor  # takes long to load, and only `serve` needs it

        waker, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        with ThreadPoolExecutor(self.concurrent) as pool:
            rest = b""
            while self.signal is None:
                readable, _, _ = select.select([0, waker], [], [])
                if 0 not in readable:
                    continue
                piece = os.read(0, MEBIBYTE)
                if not piece:
                    break
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self.take(line, pool)
            # Leaving the block waits for what is open.
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
            os._exit(0)  # nobody listens any more

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

            def tell(fraction, text):
                progress = {"type": "progress", "id": identifier, "fraction": round(fraction, 4)}
                self.say({**progress, **({"message": text} if text else {})})

            call = self.calls[identifier] = _Call(tell)
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
            response = Failed(f"the plugin has a mistake: {type(error).__name__}: {error}", "exception").response
        finally:
            self.calls.pop(identifier, None)
        self.say({"type": "result", "id": identifier, "attempt": message.get("attempt", 1), **response})
