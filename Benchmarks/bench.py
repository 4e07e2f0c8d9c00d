#!/usr/bin/env python3
"""Measures the built program beside a small C program that does the least that is possible.

    Benchmarks/bench.py                    all scenarios, some 10 minutes
    Benchmarks/bench.py --quick            smaller trees and fewer runs, some 3 minutes
    Benchmarks/bench.py --full             also a tree of a million files
    Benchmarks/bench.py --only storm,drop  these scenarios
    Benchmarks/bench.py --json FILE        writes the figures there, too

Both run by turns, A B A B, so that what else the machine does hits both; figures
are medians. A budget that is missed is told, and is no failure: the exit status is
0 whenever everything could be measured. `make bench` builds all that it needs.
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import select
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 300

STORM = """
rules:
  - { name: storm, path: "%s/**/*.dat", settle: 1h, action: log }
  - { name: sentinel, path: "%s/**/sentinel*", settle: 0, action: log }
"""
LINES = """
rules:
  - { name: lines, path: "%s/**", settle: 0, concurrency: 4, action: log }
"""
# As many rules as somebody might have, each for a folder of its own, beside those of the storm.
OTHERS = "".join(
    '  - { name: other%d, path: "%%s/other%d/*.{jpg,png}", settle: 5s, action: log }\n' % (index, index)
    for index in range(998))


class Failure(Exception):
    """Something could not be measured."""


class Program:
    """A program that watches, from its start until it is stopped."""

    def __init__(self, argv, output=subprocess.DEVNULL):
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, preexec_fn=limit_descriptors)
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
        """Waits until it says that it watches, and gives the seconds from its start."""
        self.ready.wait(PATIENCE)
        if self.seconds is None:
            raise Failure("%s never was ready: %s" % (self.process.args[0], self.lines[-3:]))
        return self.seconds

    def overflows(self):
        return sum("overflow" in line for line in self.lines)

    def memory(self, key):
        """VmRSS or VmHWM in bytes."""
        with open("/proc/%d/status" % self.pid) as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1]) * 1024
        raise Failure("no " + key)

    def processor(self):
        """Seconds that all its threads have computed."""
        with open("/proc/%d/stat" % self.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def switches(self):
        """How often its threads were put to sleep or woken in all."""
        total = 0
        for task in os.listdir("/proc/%d/task" % self.pid):
            with open("/proc/%d/task/%s/status" % (self.pid, task)) as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        return total

    def stop(self):
        """Asks it to end, and gives the seconds that it took."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(70)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Failure("%s did not end" % self.process.args[0])
        seconds = time.monotonic() - begin
        self.reader.join(5)
        self.process.stderr.close()
        return seconds


def limit_descriptors():
    """As a service starts."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Bench:
    def __init__(self, options):
        self.options = options
        self.figures = []
        self.journals = 0
        self.work = tempfile.mkdtemp(prefix="alight-bench-", dir=options.root)

    # -- parts

    def size(self, whole, quick):
        return quick if self.options.quick else whole

    def runs(self):
        return self.options.runs or self.size(5, 3)

    @contextlib.contextmanager
    def folder(self, root=None):
        """An empty folder that is gone afterwards."""
        path = tempfile.mkdtemp(prefix="alight-bench-", dir=root or self.work)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def load(self, *arguments, **keywords):
        argv = [self.options.load, *map(str, arguments)]
        done = subprocess.run(argv, capture_output=True, timeout=PATIENCE, **keywords)
        if done.returncode != 0:
            raise Failure("%s: %s" % (" ".join(argv), done.stderr.decode(errors="replace").strip()))
        return [int(number) for number in done.stdout.split()]

    def alight(self, folder, rules=LINES, output=subprocess.DEVNULL, journal=None, options=()):
        path = os.path.join(self.work, "rules.yaml")
        with open(path, "w") as file:
            file.write(rules.replace("%s", folder))
        return Program([self.options.alight, "run", "--journal", journal or self.new_journal(), *options, path], output)

    def new_journal(self, folder=None):
        self.journals += 1
        return os.path.join(folder or self.work, "journal-%d.db" % self.journals)

    def watch(self, folder, output=subprocess.DEVNULL):
        return Program([self.options.alight, "watch", "--settle", "0", folder], output)

    def observer(self, folder, output=subprocess.DEVNULL):
        return Program([self.options.observer, folder], output)

    def subjects(self):
        """What watches a folder, by the name that its figures have: rules, the command, a program with the library."""
        return {
            "": lambda folder, output=subprocess.DEVNULL: self.alight(folder, LINES, output),
            ", `alight watch`": self.watch,
            ", the library": self.observer,
        }

    def reference(self, folder, mode="lines", output=subprocess.DEVNULL):
        return Program([self.options.reference, mode, folder], output)

    def heard(self, start, *task):
        """Runs a task of load with what the program says as its input; gives the numbers, and the program."""
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
        """Calls each measure in turn, again and again; gives a list of results for each."""
        results = [[] for _ in measures]
        for _ in range(self.runs()):
            for result, measure in zip(results, measures):
                result.append(measure())
        return results

    def tell(self, name, unit, alight, reference=None, budget=None, most=None, least=None, samples=None, on="ratio"):
        """Notes a figure; the bound is on its ratio to the reference, or on the figure itself."""
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
        print(line_of(figure), flush=True)

    # -- scenarios

    def setup(self):
        """From the start to `ready:`, over a tree with files."""
        folders = self.size(100_000, 10_000)
        places = {self.work: "memory"}
        if not self.options.quick and os.stat("/var/tmp").st_dev != os.stat(self.work).st_dev:
            places["/var/tmp"] = "disk"
        for root, place in places.items():
            with self.folder(root) as folder:
                self.load("tree", folder, folders, 2)
                age = "just made"
                if not self.options.quick:
                    # A file that changed in the last minute is looked at more closely.
                    time.sleep(61)
                    age = "at rest"

                def run(start):
                    program = start()
                    try:
                        return program.wait_ready(), program.processor()
                    finally:
                        program.stop()

                starts = list(self.subjects().values())
                measured = self.turns(
                    lambda: run(lambda: self.reference(folder)),
                    lambda: run(lambda: self.reference(folder, "stat")),
                    *[lambda start=start: run(lambda: start(folder)) for start in starts])
                least, looking = ([wall for wall, _ in runs] for runs in measured[:2])
                name = "set-up, %s folders, %s files, %s, %s" % (grouped(folders), grouped(folders * 2), age, place)
                for subject, runs in zip(self.subjects(), measured[2:]):
                    walls = [wall for wall, _ in runs]
                    self.compare(name + subject, walls, least, "<= 1.5 x", most=1.5)
                    self.compare("  against C that looks at each file", walls, looking)
                    self.compare("  processor time, against C that looks at each file",
                                 [processor for _, processor in runs], [processor for _, processor in measured[1]])

    def compare(self, name, alight, reference, budget=None, most=None, scale=1000, unit="ms"):
        self.tell(
            name, unit, statistics.median(alight) * scale, statistics.median(reference) * scale, budget, most=most,
            samples=dict(alight=[value * scale for value in alight], reference=[value * scale for value in reference]))

    def storm(self):
        """How fast the kernel's events become hints."""
        files, writes = 1000, 8000
        kinds = [("", STORM)]
        kinds.append((", 1,000 rules", STORM + OTHERS))
        for suffix, rules in kinds:

            def backlog(start):
                with self.folder() as folder:
                    numbers, program = self.heard(
                        lambda output: start(folder, output), "backlog", folder, files, writes, "PID")
                    if program.overflows():
                        raise Failure("the queue of the kernel was too short for a backlog")
                    return 2 * writes / numbers[0] * 1e9

            alight, reference = self.turns(
                lambda: backlog(lambda folder, output: self.alight(folder, rules, output)),
                lambda: backlog(lambda folder, output: self.reference(folder, "count", output)))
            self.rates("events read to hints, 16,000 waiting" + suffix, alight, reference)

        writes = self.size(200_000, 50_000)

        def live(start):
            with self.folder() as folder:
                numbers, program = self.heard(
                    lambda output: start(folder, output), "storm", folder, files, writes)
                return 2 * writes / numbers[1] * 1e9, program.overflows()

        alight, reference = self.turns(
            lambda: live(lambda folder, output: self.alight(folder, STORM, output)),
            lambda: live(lambda folder, output: self.reference(folder, "count", output)))
        self.rates("events read to hints, %s while written" % grouped(2 * writes), [rate for rate, _ in alight],
                   [rate for rate, _ in reference])
        self.tell("  overflows of the kernel's queue meanwhile", "", sum(count for _, count in alight),
                  sum(count for _, count in reference))

    def rates(self, name, alight, reference):
        self.tell(name, "events/s", statistics.median(alight), statistics.median(reference), ">= 0.5 x", least=0.5,
                  samples=dict(alight=alight, reference=reference))

    def latency(self):
        """From the close of a file to the line about it."""
        count = self.size(1000, 300)

        def run(start):
            with self.folder() as folder:
                return self.heard(lambda output: start(folder, output), "latency", folder, count, 2000)[0]

        reference, *measured = self.turns(
            lambda: run(lambda folder, output: self.reference(folder, "lines", output)),
            *[lambda start=start: run(start) for start in self.subjects().values()])
        for subject, runs in zip(self.subjects(), measured):
            for index, (name, most) in enumerate([("p50", 2), ("p99", None)]):
                self.compare("close to line, settle 0, " + name + subject, [run[index] for run in runs],
                             [run[index] for run in reference], "<= 2 x" if most else None, most=most, scale=1e-3,
                             unit="us")

    def memory(self):
        """Resident memory for each folder, and for each file that settles."""
        folders = self.size(100_000, 20_000)

        def resident(start, count):
            with self.folder() as folder:
                self.load("tree", folder, count, 0)
                program = start(folder)
                try:
                    program.wait_ready()
                    return program.memory("VmRSS")
                finally:
                    program.stop()

        def each(start):
            return (resident(start, folders) - resident(start, 1)) / folders

        reference = each(self.reference)
        for subject, start in self.subjects().items():
            self.tell("resident for each of %s folders%s" % (grouped(folders), subject), "bytes", each(start), reference,
                      "<= 250", most=250, on="figure")

        count = self.size(100_000, 20_000)
        with self.folder() as folder:
            reading, writing = os.pipe()
            program = self.alight(folder, STORM, writing)
            os.close(writing)
            try:
                program.wait_ready()
                # What the first files cost is not what one more costs.
                self.load("pending", folder, 100, 100, stdin=reading)
                before = program.memory("VmRSS")
                self.load("pending", folder, count, 1000, stdin=reading)
                each_file = (program.memory("VmRSS") - before) / count
            finally:
                os.close(reading)
                program.stop()
        self.tell("resident for each of %s pending files" % grouped(count), "bytes", each_file, None, "<= 400", most=400,
                  on="figure")

    def idle(self):
        """Wake-ups when nothing happens."""
        seconds = self.size(10, 5)

        def run(start):
            with self.folder() as folder:
                self.load("tree", folder, 1000, 1)
                program = start(folder)
                try:
                    program.wait_ready()
                    time.sleep(2)
                    before = program.switches()
                    time.sleep(seconds)
                    return program.switches() - before
                finally:
                    program.stop()

        reference = run(self.reference)
        for subject, start in self.subjects().items():
            self.tell("wake-ups in %d idle seconds%s" % (seconds, subject), "", run(start), reference, "0", most=0,
                      on="figure")

    def drop(self):
        """A drop into one folder: each file told, and told once."""
        count = 20_000

        def run(start):
            with self.folder() as folder:
                numbers, program = self.heard(
                    lambda output: start(folder, output), "drop", folder, count, 3000)
                return numbers[0] / 1e9, count - numbers[1], numbers[2], program.overflows()

        reference, *measured = self.turns(
            lambda: run(lambda folder, output: self.reference(folder, "lines", output)),
            *[lambda start=start: run(start) for start in self.subjects().values()])
        for subject, runs in zip(self.subjects(), measured):
            seconds, lost, twice, overflows = zip(*runs)
            self.compare("drop of 20,000 files, until all are told" + subject, seconds, [run[0] for run in reference])
            self.tell("  of them lost, over all runs", "", sum(lost), sum(run[1] for run in reference), "0", most=0,
                      on="figure")
            self.tell("  of them told twice", "", sum(twice), sum(run[2] for run in reference), "0", most=0, on="figure")
            self.tell("  overflows meanwhile", "", sum(overflows), sum(run[3] for run in reference))

    def rules(self):
        """What many rules cost a file that one of them takes: each as much as among ten."""
        kinds = [
            ("one folder, by extension", "%s/**/*.e{}"), ("one folder, by name", "%s/*/n{}-*.log"),
            ("a folder each", "%s/other{}/*")]
        counts = [10, 1_000, 10_000]
        files = self.size(20_000, 5_000)

        def run(path, count):
            others = "".join(
                "  - { name: other%d, path: \"%s\", settle: 0, action: log }\n" % (number, path.format(number))
                for number in range(count - 1))
            with self.folder() as folder:
                if "other{}" in path:
                    for number in range(count - 1):
                        os.mkdir(os.path.join(folder, "other%d" % number))
                programs = []

                def start(output):
                    programs.append(self.alight(folder, LINES + others, output))
                    return programs[0]

                numbers, program = self.heard(start, "drop", folder, files, 3000)
                if numbers[1] != files:
                    raise Failure("%d of %d files were told" % (numbers[1], files))
                return numbers[0] / 1e9 / files, program.seconds

        for name, path in kinds:
            least, *measured = self.turns(*[lambda count=count: run(path, count) for count in counts])
            for count, runs in zip(counts[1:], measured):
                figure = "a file told, %s rules, %s, against 10" % (grouped(count), name)
                self.compare(figure, [each for each, _ in runs], [each for each, _ in least], "<= 1.5 x", most=1.5,
                             scale=1e6, unit="us")
                self.tell("  from start to ready", "ms", statistics.median([ready for _, ready in runs]) * 1000,
                          statistics.median([ready for _, ready in least]) * 1000)

    def journal(self):
        """Jobs that are accepted, run and recorded in the journal, beside SQLite alone with the same rows."""
        count = self.size(100_000, 20_000)
        # On the disk of the build, as a tmpfs has nothing to flush.
        with self.folder() as folder, self.folder() as nothing, self.folder(self.options.disk) as disk:
            self.load("tree", folder, 1, count)
            empty = self.new_journal(disk)
            self.once(nothing, empty)

            def run():
                journal = self.new_journal(disk)
                seconds = self.once(folder, journal)
                with contextlib.closing(sqlite3.connect(journal)) as connection:
                    done, = connection.execute("SELECT count(*) FROM jobs WHERE state = 'succeeded'").fetchone()
                if done != count:
                    raise Failure("%d of %d jobs were done" % (done, count))
                return count / seconds

            def rows():
                journal = self.new_journal(disk)
                shutil.copyfile(empty, journal)
                done = subprocess.run([self.options.rows, journal, str(count), "100"], capture_output=True, check=True)
                return count / (int(done.stdout) / 1e9)

            alight, reference = self.turns(run, rows)
            self.tell("built-in jobs, from start to end, journal on disk", "jobs/s", statistics.median(alight),
                      statistics.median(reference), ">= 10,000", least=10_000, on="figure",
                      samples=dict(alight=alight, reference=reference))
            # From the moment at which a file has settled to the start of its action.
            journal = self.new_journal(disk)
            self.heard(lambda output: self.alight(nothing, LINES, output, journal=journal), "latency", nothing,
                       self.size(300, 100), 20_000)
            with contextlib.closing(sqlite3.connect(journal)) as connection:
                waits = sorted(wait / 1e3 for wait, in connection.execute(
                    "SELECT started - created FROM attempts JOIN jobs ON jobs.id = job"))
            self.tell("settled to started, at rest, p50", "us", statistics.median(waits), budget="< 5,000", most=5000,
                      on="figure")
            self.tell("settled to started, at rest, p99", "us", waits[len(waits) * 99 // 100])

    def serve(self):
        """Requests to a plugin that does nothing, a process for each, and one process for all."""
        count = self.size(4000, 1000)
        with self.folder() as folder, self.folder() as nothing:
            self.load("tree", folder, 1, count)
            for name, modes in (("once", "run"), ("stays", "run, serve")):
                plugin = os.path.join(self.work, "plugins", name)
                os.makedirs(plugin, exist_ok=True)
                shutil.copy(self.options.answer, os.path.join(plugin, name))
                with open(os.path.join(plugin, "plugin.yaml"), "w") as file:
                    file.write("name: %s\nprotocol: [1]\nconcurrent: 8\nmodes: [%s]\n" % (name, modes))

            def run(place, name):
                rules = LINES.replace("action: log", "action: { use: %s }" % name)
                return self.once(place, self.new_journal(), rules)

            def rate(name):
                # Without what it takes to start and to stop.
                return count / (run(folder, name) - run(nothing, name))

            request = os.path.join(folder, "request")
            with open(request, "w") as file:
                # As long as a request is that Alight writes.
                file.write(json.dumps(dict(protocol=1, id="x" * 26, padding="x" * 700)) + "\n")

            def spawn():
                done = subprocess.run([self.options.spawn, str(count), "4", self.options.answer, request],
                                      capture_output=True, check=True)
                return count / (int(done.stdout) / 1e9)

            once, spawned = self.turns(lambda: rate("once"), spawn)
            self.tell("a process for each file, against posix_spawn of the same program, 4 at once", "files/s",
                      statistics.median(once), statistics.median(spawned), ">= 0.6 x", least=0.6,
                      samples=dict(alight=once, reference=spawned))
            served, once = self.turns(lambda: rate("stays"), lambda: rate("once"))
            self.tell("requests to a plugin that serves, against one that is started for each", "requests/s",
                      statistics.median(served), statistics.median(once), ">= 5 x", least=5,
                      samples=dict(alight=served, reference=once))

    def files(self):
        """What copies and moves cost beside cp and mv: one large file, and many small ones."""
        large = self.size(1 << 30, 256 << 20)
        count = self.size(10_000, 2_000)
        scrap = contextlib.ExitStack()

        def fill(folder, size, count):
            os.mkdir(os.path.join(folder, "in"))
            os.mkdir(os.path.join(folder, "out"))
            block = os.urandom(1 << 20)
            for number in range(count):
                with open(os.path.join(folder, "in", "f%05d" % number), "wb") as file:
                    for _ in range(max(size >> 20, 1)):
                        file.write(block[:size])

        def timed(argv):
            """Seconds and peak MiB."""
            begin = time.monotonic()
            done = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            error = done.stderr.read().decode(errors="replace").strip()
            _, status, usage = os.wait4(done.pid, 0)
            seconds = time.monotonic() - begin
            done.returncode = os.waitstatus_to_exitcode(status)
            if done.returncode != 0:
                raise Failure("%s: %s" % (argv[0], error))
            return seconds, usage.ru_maxrss / 1024

        def run(size, count, command, source, target):
            with contextlib.ExitStack() as own:
                # An ext4 without a journal remembers for five seconds which inodes were freed, and looks at each of
                # them for each new file: trees of small files go when all have been measured.
                stack = scrap if count > 1 else own
                here = stack.enter_context(self.folder(source))
                there = stack.enter_context(self.folder(target))
                fill(here, size, count)
                fill(there, 0, 0)
                for folder in here, there:
                    subprocess.run(["sync", "-f", folder], check=True)
                inner, outer = os.path.join(here, "in"), os.path.join(there, "out")
                result = timed(command(inner, outer))
                if command.arrives and len(os.listdir(outer)) != count:
                    raise Failure("%d of %d files arrived" % (len(os.listdir(outer)), count))
                return result

        def plain(*words, flushed=False, removed=False):
            def command(inner, outer):
                names = [os.path.join(inner, name) for name in sorted(os.listdir(inner))]
                argv = [*words, "-t", outer, *names]
                script = '"$@" && sync -f "$0"' + (" && rm -r " + inner if removed else "")
                return ["sh", "-c", script, outer, *argv] if flushed else argv
            command.arrives = True
            return command

        def rule(action, lanes=4, further=""):
            def command(inner, outer):
                path = os.path.join(self.work, "rules.yaml")
                with open(path, "w") as file:
                    file.write("rules:\n  - name: files\n    path: %s/*\n    existing: process\n    settle: 0\n"
                               "    concurrency: %d\n    action: %s\n%s" % (
                                   inner, lanes, action.replace("OUT", outer), further))
                return [self.options.alight, "run", "--once", "--journal", self.new_journal(), path]
            command.arrives = action != "log"
            return command

        def told(name, size, count, source, target, reference, commands):
            def measure(size, command):
                return lambda: run(size, count, command, source, target)

            chosen = [reference, *commands.values()]
            with scrap:
                measured = self.turns(*[measure(size, command) for command in chosen])
                # Of one large file the start and the end are left out, which are those of a file of a byte.
                starts = self.turns(*[measure(1, command) for command in chosen]) if count == 1 else [[(0, 0)]] * len(chosen)
            time.sleep(6 if count > 1 else 0)

            def median(runs):
                return statistics.median(seconds for seconds, _ in runs)

            least = median(measured[0]) - median(starts[0])
            for words, runs, start in zip(commands, measured[1:], starts[1:]):
                seconds = median(runs) - median(start)
                amount = count if count > 1 else size >> 20
                bound = None if "lane" in words or "log" in words else 0.7 if count > 1 else 0.95
                self.tell(name + words, "files/s" if count > 1 else "MiB/s", amount / seconds, amount / least,
                          ">= %.2f x" % bound if bound else None, least=bound)
                if count == 1:
                    self.tell("  peak resident", "MiB", max(peak for _, peak in runs),
                              max(peak for _, peak in measured[0]))

        os.makedirs(self.options.disk, exist_ok=True)
        disk, memory = self.options.disk, self.work
        copy, move = "{ use: copy, with: { to: OUT/ } }", "{ use: move, with: { to: OUT/ } }"
        loose = "{ use: copy, with: { to: OUT/, durable: false } }"
        cp = ("cp", "--preserve=mode,timestamps")
        for size, number, noun in ((large, 1, "one file of %d MiB" % (large >> 20)),
                                   (4096, count, "%s files of 4 KiB" % grouped(count))):
            told("copy on disk, %s, cp" % noun, size, number, disk, disk, plain(*cp),
                 {"": rule(copy), ", `durable: false`": rule(loose),
                  ", `batch`": rule(copy, further="    batch: { files: 500 }\n")})
            told("copy on disk, %s, cp and sync" % noun, size, number, disk, disk, plain(*cp, flushed=True),
                 {"": rule(copy)})
            told("copy in memory, %s, cp" % noun, size, number, memory, memory, plain(*cp),
                 {"": rule(copy), ", one lane": rule(copy, lanes=1)})
            told("move from memory to disk, %s, mv" % noun, size, number, memory, disk, plain("mv"), {"": rule(move)})
            told("move from memory to disk, %s, cp, sync and rm" % noun, size, number, memory, disk,
                 plain(*cp, flushed=True, removed=True), {"": rule(move)})
        told("move on disk, %s files, mv" % grouped(count), 4096, count, disk, disk, plain("mv"),
             {"": rule(move), ", `log` instead": rule("log")})

    def once(self, folder, journal, rules=LINES):
        """Runs until all that is in the folder is handled, and gives the seconds."""
        begin = time.monotonic()
        program = self.alight(folder, rules, journal=journal, options=["--once"])
        program.process.wait(PATIENCE)
        seconds = time.monotonic() - begin
        program.stop()
        return seconds

    def million(self):
        """A tree of a million files: starts, stays small, and can be stopped in the middle."""
        folders, files = 50_000, 20
        with self.folder() as folder:
            self.load("tree", folder, folders, files)
            time.sleep(61)

            def find():
                begin = time.monotonic()
                subprocess.run(["find", folder, "-printf", "%s %T@\n"], stdout=subprocess.DEVNULL, check=True)
                return time.monotonic() - begin

            peaks = []

            def run():
                program = self.alight(folder)
                try:
                    seconds = program.wait_ready()
                    peaks.append(program.memory("VmHWM"))
                    return seconds
                finally:
                    program.stop()

            alight, found = [], []
            for _ in range(3):
                alight.append(run())
                found.append(find())
            self.compare("set-up, 1,000,000 files, against `find -printf`", alight, found)
            self.tell("  peak resident", "MiB", max(peaks) / 2**20)
            self.tell("  peak resident for each file", "bytes", max(peaks) / (folders * files))
            journal = self.new_journal()
            program = self.alight(folder, journal=journal)
            try:
                program.wait_ready()
            finally:
                program.stop()
            again, peaks = [], []
            for _ in range(3):
                program = self.alight(folder, journal=journal)
                try:
                    again.append(program.wait_ready())
                    peaks.append(program.memory("VmHWM"))
                finally:
                    program.stop()
            self.compare("the next start, nothing changed, against `find -printf`", again, found, "<= 3 x", most=3)
            self.tell("  peak resident", "MiB", max(peaks) / 2**20, budget="<= 200", most=200, on="figure")
            self.tell("  size of the journal for each file", "bytes", os.path.getsize(journal) / (folders * files))
            stops = []
            for _ in range(3):
                program = self.alight(folder)
                time.sleep(0.5)
                if program.ready.is_set():
                    raise Failure("the tree was listed before it could be interrupted")
                stops.append(program.stop())
            self.tell("  from SIGTERM in the middle of the listing to the end", "ms", max(stops) * 1000)


SCENARIOS = ["setup", "storm", "latency", "memory", "idle", "drop", "rules", "journal", "serve", "files", "million"]


def grouped(number):
    return format(number, ",")


def number_of(value):
    if value is None:
        return ""
    if isinstance(value, int) or abs(value) >= 100:
        return grouped(round(value))
    return "%.2f" % value if abs(value) < 10 else "%.1f" % value


HEADING = "%-68s %12s %12s %-9s %7s %-9s %s" % ("figure", "alight", "reference", "", "ratio", "budget", "")


def line_of(figure):
    verdict = {None: "", True: "within", False: "MISSED"}[figure["within"]]
    ratio = "" if figure["ratio"] is None else "%.2f" % figure["ratio"]
    return ("%-68s %12s %12s %-9s %7s %-9s %s" % (
        figure["name"], number_of(figure["alight"]), number_of(figure["reference"]), figure["unit"], ratio,
        figure["budget"] or "", verdict)).rstrip()


def machine():
    model = ""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return dict(processor=model, processors=os.cpu_count(), kernel=platform.release(), load=os.getloadavg()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller trees, fewer runs")
    size.add_argument("--full", action="store_true", help="also a tree of a million files")
    parser.add_argument("--only", help="scenarios, of: " + ", ".join(SCENARIOS))
    parser.add_argument("--runs", type=int, metavar="N", help="how often each is measured (5, or 3)")
    parser.add_argument("--json", metavar="FILE", help="where to write the figures")
    parser.add_argument("--root", default="/dev/shm", help="where the trees are made (%(default)s)")
    parser.add_argument("--disk", default=os.path.join(HERE, ".build"), help="where journals are made (%(default)s)")
    built = os.path.join(HERE, ".build", "release")
    parser.add_argument("--alight", default=os.path.join(HERE, "..", ".build", "release", "alight"))
    parser.add_argument("--reference", default=os.path.join(built, "reference"))
    parser.add_argument("--observer", default=os.path.join(built, "observer"))
    parser.add_argument("--rows", default=os.path.join(built, "rows"))
    parser.add_argument("--answer", default=os.path.join(built, "answer"))
    parser.add_argument("--spawn", default=os.path.join(built, "spawn"))
    parser.add_argument("--load", default=os.path.join(built, "load"))
    options = parser.parse_args()
    for program in (options.alight, options.observer, options.reference, options.rows, options.load, options.answer,
                    options.spawn):
        if not os.access(program, os.X_OK):
            sys.exit("error: there is no program '%s'\n    help: make bench builds it" % program)
    chosen = options.only.split(",") if options.only else [name for name in SCENARIOS if name != "million" or options.full]
    for name in chosen:
        if name not in SCENARIOS:
            sys.exit("error: unknown scenario '%s'\n    help: they are %s" % (name, ", ".join(SCENARIOS)))

    bench = Bench(options)
    failed = []
    facts = machine()
    print("%(processor)s, %(processors)s processors, Linux %(kernel)s, load %(load).1f" % facts)
    print(HEADING, flush=True)
    try:
        for name in chosen:
            try:
                getattr(bench, name)()
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed.append(name)
                print("error: %s: %s" % (name, failure), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(machine=facts, figures=bench.figures), file, indent=2)
            file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
