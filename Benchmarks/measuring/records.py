"""A place for one run: the watched folder, what the action wrote, and what makes files."""

import itertools
import os
import shutil
import struct
import subprocess
import tempfile
import time

from .processes import Failure

# As C/record.c has it: time, size, process, length of the name, name.
RECORD = struct.Struct("=QqII72s")
PROBE = "probe"


class Action:
    """One start of the action for one file."""

    __slots__ = ("time", "size", "process", "name")

    def __init__(self, time, size, process, name):
        self.time, self.size, self.process, self.name = time, size, process, name


def parse(data):
    """The actions in the log, but for those of probes."""
    actions = []
    for moment, size, process, length, name in RECORD.iter_unpack(data[:len(data) - len(data) % RECORD.size]):
        text = name[:length].decode()
        if not text.startswith(PROBE):
            actions.append(Action(moment, size, process, text))
    return actions


class Place:
    """Folders of one run, gone at its end. `watched` and `log` are in memory, `disk` is where journals are."""

    def __init__(self, programs, root, disk, patience=4):
        self.programs = programs
        # Seconds without an action after which one that is missing is lost.
        self.patience = patience
        self.base = tempfile.mkdtemp(prefix="alight-bench-", dir=root)
        self.disk = tempfile.mkdtemp(prefix="alight-bench-", dir=disk)
        self.watched, self.own, self.aside, self.log = (
            os.path.join(self.base, name) for name in ("watched", "own", "aside", "log"))
        for folder in self.watched, self.own, self.aside:
            os.mkdir(folder)
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
        """What is in the log now doesn't count any more."""
        self.mark = self.count()

    def actions(self):
        with open(self.log, "rb") as file:
            file.seek(self.mark * RECORD.size)
            return parse(file.read())

    def probe(self, number):
        """Writes a probe, and gives whether there was an action within a moment."""
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
        """Until a probe gets an action; gives the seconds since the start."""
        deadline = system.started + system.ready_limit
        for number in itertools.count():
            if time.monotonic() > deadline:
                raise Failure("no action for a file within %d s" % system.ready_limit)
            # One after the other, as a file that changes again and again may never be finished.
            if self.probe(0 if system.is_fixed else number):
                seconds = time.monotonic() - system.started
                self.wait_quiet(system, 0, 10)
                return seconds
            if not system.is_alive():
                raise Failure("it has ended: " + system.last_words())

    def wait_quiet(self, system, expected, bound):
        """Until nothing more comes: for a moment when `expected` actions are there, else for longer and only while the
        system does nothing. Gives whether that was so before `bound` seconds."""
        patience = max(self.patience, system.quiet)
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
            if now - last < (patience if missing else system.quiet):
                continue
            used = system.tree.processor()
            if missing and used - processor > 0.2 * patience:
                last, processor = now, used
                continue
            return True

    def arrive(self, *arguments):
        """Makes files, and gives for each name when it was closed."""
        return self.arrivals(self.begin_arrive(*arguments))

    def begin_arrive(self, *arguments):
        return subprocess.Popen([self.program("arrive"), *map(str, arguments)], stdout=subprocess.PIPE)

    @staticmethod
    def arrivals(process):
        output = process.communicate()[0].decode()
        if process.returncode != 0:
            raise Failure("no files could be made")
        return {name: int(moment) for name, moment in map(str.split, output.splitlines())}
