"""Compares figures of Alight with those of a reference, by turns; starts both."""

import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from ..processes import TICKS, Failure, limit_descriptors, stat_fields, status_field, switches
from ..tables import table

TIMEOUT = 300

STORM = """
rules:
  - { name: storm, path: "%s/**/*.dat", settle: 1h, action: log }
  - { name: sentinel, path: "%s/**/sentinel*", settle: 0, action: log }
"""
LINES = """
rules:
  - { name: lines, path: "%s/**", settle: 0, concurrency: 4, action: log }
"""
# Many rules, each for a separate directory, in addition to those of the storm.
OTHERS = "".join(
    '  - { name: other%d, path: "%%s/other%d/*.{jpg,png}", settle: 5s, action: log }\n' % (index, index)
    for index in range(998))


class Program:
    """A watching program, from its start until it is stopped."""

    def __init__(self, argv, output=subprocess.DEVNULL, environment=None):
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, preexec_fn=limit_descriptors,
            env=environment)
        self.pid = self.process.pid
        self.lines = []
        self.ready = threading.Event()
        self.seconds = None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode(errors="replace").rstrip())
            if b"ready: " in line and not self.ready.is_set():
                self.seconds = time.monotonic() - self.started
                self.ready.set()
        self.ready.set()

    def wait_ready(self):
        """Waits until it reports that it watches, and returns the seconds since its start."""
        self.ready.wait(TIMEOUT)
        if self.seconds is None:
            raise Failure("%s did not become ready: %s" % (self.process.args[0], self.lines[-3:]))
        return self.seconds

    def overflows(self):
        return sum("overflow" in line for line in self.lines)

    def memory(self, key):
        """Returns VmRSS or VmHWM in bytes."""
        return status_field(self.pid, key) * 1024

    def processor(self):
        """Returns the processor time of all its threads in seconds."""
        fields = stat_fields(self.pid)
        return (int(fields[11]) + int(fields[12])) / TICKS

    def switches(self):
        """Returns the number of context switches of all its threads."""
        return switches(self.pid)

    def stop(self):
        """Asks it to exit, and returns the seconds that it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(70)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Failure("%s did not exit" % self.process.args[0])
        seconds = time.monotonic() - begin
        self.reader.join(5)
        self.process.stderr.close()
        return seconds


class Bench:
    def __init__(self, options):
        self.options = options
        self.figures = []
        self.journals = 0
        self.work = tempfile.mkdtemp(prefix="alight-bench-", dir=options.root)
        # Keeps the program apart from a running instance on the machine.
        self.environment = dict(
            os.environ, ALIGHT_CONTROL=os.path.join(self.work, "control"), XDG_STATE_HOME=self.work,
            RUNTIME_DIRECTORY=os.path.join(self.work, "run"))

    def program(self, name):
        return os.path.join(self.options.programs, name)

    def size(self, whole, quick):
        return quick if self.options.quick else whole

    def runs(self):
        return self.options.runs or self.size(5, 3)

    @contextlib.contextmanager
    def directory(self, root=None):
        """An empty directory, removed afterwards."""
        path = tempfile.mkdtemp(prefix="alight-bench-", dir=root or self.work)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def load(self, *arguments, **keywords):
        argv = [self.program("load"), *map(str, arguments)]
        done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT, **keywords)
        if done.returncode != 0:
            raise Failure("%s: %s" % (" ".join(argv), done.stderr.decode(errors="replace").strip()))
        return [int(number) for number in done.stdout.split()]

    def alight(self, directory, rules=LINES, output=subprocess.DEVNULL, journal=None, options=()):
        # In a separate directory, as users have it: Alight watches it, and would receive an event for each journal
        # write.
        path = os.path.join(self.work, "rules", "rules.yaml")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(rules.replace("%s", directory))
        return Program([self.options.alight, "run", "--journal", journal or self.new_journal(), *options, path],
                       output, self.environment)

    def new_journal(self, directory=None):
        self.journals += 1
        return os.path.join(directory or self.work, "journal-%d.db" % self.journals)

    def watch(self, directory, output=subprocess.DEVNULL):
        return Program([self.options.alight, "watch", "--settle", "0", directory], output)

    def observer(self, directory, output=subprocess.DEVNULL):
        return Program([self.options.observer, directory], output)

    def subjects(self):
        """Returns the watchers by the suffix of their figures: rules, the command, a program with the library."""
        subjects = {
            "": lambda directory, output=subprocess.DEVNULL: self.alight(directory, LINES, output),
            ", `alight watch`": self.watch,
        }
        if os.access(self.options.observer, os.X_OK):
            subjects[", the library"] = self.observer
        return subjects

    def reference(self, directory, mode="lines", output=subprocess.DEVNULL):
        return Program([self.program("reference"), mode, directory], output)

    def heard(self, start, *task):
        """Runs a task of `load` with the program's output as its input; returns the numbers and the program."""
        reading, writing = os.pipe()
        try:
            program = start(writing)
        finally:
            os.close(writing)
        try:
            program.wait_ready()
            arguments = [program.pid if part == "PID" else part for part in task]
            return self.load(*arguments, stdin=reading), program
        finally:
            os.close(reading)
            program.stop()

    def turns(self, *measures):
        """Calls each measure in turn, repeatedly; returns a list of results for each."""
        results = [[] for _ in measures]
        for _ in range(self.runs()):
            for result, measure in zip(results, measures):
                result.append(measure())
        return results

    def report(self, name, unit, alight, reference=None, budget=None, most=None, least=None, samples=None, on="ratio"):
        """Records a figure; the bound applies to its ratio to the reference, or to the figure itself."""
        ratio = alight / reference if reference and unit else None
        bounded = ratio if on == "ratio" else alight
        within = None
        if bounded is not None and most is not None:
            within = bounded <= most
        if bounded is not None and least is not None:
            within = bounded >= least
        figure = dict(
            name=name, unit=unit, alight=alight, reference=reference, ratio=ratio, budget=budget, within=within,
            samples=samples)
        self.figures.append(figure)

    def compare(self, name, alight, reference, budget=None, most=None, scale=1000, unit="ms"):
        self.report(
            name, unit, statistics.median(alight) * scale, statistics.median(reference) * scale, budget, most=most,
            samples=dict(alight=[value * scale for value in alight], reference=[value * scale for value in reference]))

    def rates(self, name, alight, reference):
        self.report(name, "events/s", statistics.median(alight), statistics.median(reference), ">= 0.5 x", least=0.5,
                  samples=dict(alight=alight, reference=reference))

    def once(self, directory, journal, rules=LINES):
        """Runs until all files in the directory are handled, and returns the seconds."""
        begin = time.monotonic()
        program = self.alight(directory, rules, journal=journal, options=["--once"])
        program.process.wait(TIMEOUT)
        seconds = time.monotonic() - begin
        program.stop()
        return seconds


COLUMNS = (("name", "figure"), ("alight", "Alight"), ("reference", "reference"), ("unit", ""), ("ratio", "ratio"),
           ("budget", "budget"), ("verdict", ""))


def run(measure, options):
    """Runs a scenario, a function that passes figures to a Bench. Prints its table, and returns it."""
    bench = Bench(options)
    try:
        measure(bench)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
        title = measure.__doc__.splitlines()[0]
        rows = [
            dict(figure, verdict={None: "", True: "within", False: "MISSED"}[figure["within"]],
                 budget=figure["budget"] or "") for figure in bench.figures]
        print("\n".join(table(title, COLUMNS, rows)), flush=True)
    return dict(title=title, rows=bench.figures)
