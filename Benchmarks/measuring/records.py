"""The directories of one run, the records of its actions, and the programs that create files."""

import itertools
import os
import shutil
import struct
import subprocess
import tempfile
import time

from .processes import Failure

# The format of C/record.c: time, size, process, length of the name, name.
RECORD = struct.Struct("=QqII72s")
PROBE = "probe"


class Action:
    """One start of the action for one file."""

    __slots__ = ("time", "size", "process", "name")

    def __init__(self, time, size, process, name):
        self.time, self.size, self.process, self.name = time, size, process, name


def parse(data):
    """Returns the actions in the log, except those of probes."""
    actions = []
    for timestamp, size, process, length, name in RECORD.iter_unpack(data[:len(data) - len(data) % RECORD.size]):
        text = name[:length].decode()
        if not text.startswith(PROBE):
            actions.append(Action(timestamp, size, process, text))
    return actions


class Place:
    """The directories of one run, removed at its end. `watched` and `log` are in memory, `disk` is for journals."""

    def __init__(self, programs, root, disk, timeout=4):
        self.programs = programs
        # Seconds without an action after which a missing one counts as lost.
        self.timeout = timeout
        self.base = tempfile.mkdtemp(prefix="alight-bench-", dir=root)
        self.disk = tempfile.mkdtemp(prefix="alight-bench-", dir=disk)
        self.watched, self.own, self.aside, self.log = (
            os.path.join(self.base, name) for name in ("watched", "own", "aside", "log"))
        for directory in self.watched, self.own, self.aside:
            os.mkdir(directory)
        with open(self.log, "wb"):
            pass
        self.mark = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.rmtree(self.disk, ignore_errors=True)

    def program(self, name):
        return os.path.join(self.programs, name)

    def count(self):
        return os.stat(self.log).st_size // RECORD.size

    def set_mark(self):
        """Excludes the current records of the log from now on."""
        self.mark = self.count()

    def actions(self):
        with open(self.log, "rb") as file:
            file.seek(self.mark * RECORD.size)
            return parse(file.read())

    def probe(self, number):
        """Writes a probe, and returns whether an action followed within 0.15 s."""
        before = self.count()
        with open(os.path.join(self.watched, "%s%d" % (PROBE, number)), "w", encoding="ascii") as file:
            file.write("x\n")
        deadline = time.monotonic() + 0.15
        while time.monotonic() < deadline:
            if self.count() > before:
                return True
            time.sleep(0.005)
        return False

    def wait_ready(self, system):
        """Waits until a probe is followed by an action; returns the seconds since the start."""
        deadline = system.started + system.ready_limit
        for number in itertools.count():
            if time.monotonic() > deadline:
                raise Failure("no action for a file within %d s" % system.ready_limit)
            # A new file each time, since a file that changes repeatedly may never settle.
            if self.probe(0 if system.is_fixed else number):
                seconds = time.monotonic() - system.started
                self.wait_quiet(system, 0, 10)
                return seconds
            if not system.is_alive():
                raise Failure("it has exited: " + system.last_words())

    def wait_quiet(self, system, expected, bound):
        """Waits until no further action comes: for a short time if there are `expected` actions, else for longer and
        only while the system is idle. Returns whether that was within `bound` seconds."""
        timeout = max(self.timeout, system.quiet)
        start = last = time.monotonic()
        count, processor = self.count(), system.tree.processor()
        while True:
            time.sleep(0.02)
            now, seen = time.monotonic(), self.count()
            if seen != count:
                count, last = seen, now
            if now - start > bound:
                return False
            missing = seen - self.mark < expected
            if now - last < (timeout if missing else system.quiet):
                continue
            used = system.tree.processor()
            if missing and used - processor > 0.2 * timeout:
                last, processor = now, used
                continue
            return True

    def arrive(self, *arguments):
        """Creates files, and returns for each name the time of its close."""
        return self.arrivals(self.begin_arrive(*arguments))

    def begin_arrive(self, *arguments):
        return subprocess.Popen([self.program("arrive"), *map(str, arguments)], stdout=subprocess.PIPE)

    @staticmethod
    def arrivals(process):
        output = process.communicate()[0].decode()
        if process.returncode != 0:
            raise Failure("the files could not be created")
        return {name: int(timestamp) for name, timestamp in map(str.split, output.splitlines())}
