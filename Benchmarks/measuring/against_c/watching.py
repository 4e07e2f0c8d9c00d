"""Watching alone: set-up, speed and memory, compared with plain inotify in C."""

import os
import time

from ..processes import Failure
from ..tables import grouped
from .bench import OTHERS, STORM


def setup(bench):
    """Set-up: from the start to `ready:`, over a tree with files"""
    folders = bench.size(100_000, 10_000)
    places = {bench.work: "memory"}
    if not bench.options.quick and os.stat("/var/tmp").st_dev != os.stat(bench.work).st_dev:
        places["/var/tmp"] = "disk"
    for root, place in places.items():
        with bench.folder(root) as folder:
            bench.load("tree", folder, folders, 2)
            age = "just made"
            if not bench.options.quick:
                # A file that changed in the last minute is also checked for writers.
                time.sleep(61)
                age = "at rest"

            def run(start):
                program = start()
                try:
                    return program.wait_ready(), program.processor()
                finally:
                    program.stop()

            starts = list(bench.subjects().values())
            measured = bench.turns(
                lambda: run(lambda: bench.reference(folder)),
                lambda: run(lambda: bench.reference(folder, "stat")),
                *[lambda start=start: run(lambda: start(folder)) for start in starts])
            least, looking = ([wall for wall, _ in runs] for runs in measured[:2])
            name = "set-up, %s folders, %s files, %s, %s" % (grouped(folders), grouped(folders * 2), age, place)
            for subject, runs in zip(bench.subjects(), measured[2:]):
                walls = [wall for wall, _ in runs]
                bench.compare(name + subject, walls, least)
                bench.compare("  against C that looks at each file", walls, looking, "<= 1.8 x", most=1.8)
                bench.compare("  processor time, against C that looks at each file",
                             [processor for _, processor in runs], [processor for _, processor in measured[1]])


def events(bench):
    """Events: how fast those of the kernel are taken in"""
    files, writes = 1000, 8000
    kinds = [("", STORM)]
    kinds.append((", 1,000 rules", STORM + OTHERS))
    for suffix, rules in kinds:

        def backlog(start):
            with bench.folder() as folder:
                numbers, program = bench.heard(
                    lambda output: start(folder, output), "backlog", folder, files, writes, "PID")
                if program.overflows():
                    raise Failure("the queue of the kernel was too short for a backlog")
                return 2 * writes / numbers[0] * 1e9

        alight, reference = bench.turns(
            lambda: backlog(lambda folder, output: bench.alight(folder, rules, output)),
            lambda: backlog(lambda folder, output: bench.reference(folder, "count", output)))
        bench.rates("events read to hints, 16,000 waiting" + suffix, alight, reference)

    writes = bench.size(200_000, 50_000)

    def live(start):
        with bench.folder() as folder:
            numbers, program = bench.heard(
                lambda output: start(folder, output), "storm", folder, files, writes)
            return 2 * writes / numbers[1] * 1e9, program.overflows()

    alight, reference = bench.turns(
        lambda: live(lambda folder, output: bench.alight(folder, STORM, output)),
        lambda: live(lambda folder, output: bench.reference(folder, "count", output)))
    bench.rates("events read to hints, %s while written" % grouped(2 * writes), [rate for rate, _ in alight],
               [rate for rate, _ in reference])
    bench.tell("  overflows of the kernel's queue meanwhile", "", sum(count for _, count in alight),
              sum(count for _, count in reference))


def lines(bench):
    """Lines: from the close of a file to the line about it"""
    count = bench.size(1000, 300)

    def run(start):
        with bench.folder() as folder:
            return bench.heard(lambda output: start(folder, output), "latency", folder, count, 2000)[0]

    reference, *measured = bench.turns(
        lambda: run(lambda folder, output: bench.reference(folder, "lines", output)),
        *[lambda start=start: run(start) for start in bench.subjects().values()])
    for subject, runs in zip(bench.subjects(), measured):
        for index, (name, most) in enumerate([("p50", 3), ("p99", None)]):
            bench.compare("close to line, settle 0, " + name + subject, [run[index] for run in runs],
                         [run[index] for run in reference], "<= 3 x" if most else None, most=most, scale=1e-3,
                         unit="us")


def memory(bench):
    """Resident memory for each folder"""
    folders = bench.size(100_000, 20_000)

    def resident(start, count):
        with bench.folder() as folder:
            bench.load("tree", folder, count, 0)
            program = start(folder)
            try:
                program.wait_ready()
                return program.memory("VmRSS")
            finally:
                program.stop()

    def each(start):
        return (resident(start, folders) - resident(start, 1)) / folders

    reference = each(bench.reference)
    for subject, start in bench.subjects().items():
        bench.tell("resident for each of %s folders%s" % (grouped(folders), subject), "bytes", each(start), reference,
                  "<= 100", most=100, on="figure")


def idle(bench):
    """Idle: wake-ups when nothing happens"""
    seconds = bench.size(60, 2)

    def run(start):
        with bench.folder() as folder:
            bench.load("tree", folder, 1000, 1)
            program = start(folder)
            try:
                program.wait_ready()
                time.sleep(bench.size(2, 1))
                before = program.switches()
                time.sleep(seconds)
                return program.switches() - before
            finally:
                program.stop()

    reference = run(bench.reference)
    for subject, start in bench.subjects().items():
        bench.tell("wake-ups in %d idle seconds%s" % (seconds, subject), "", run(start), reference, "0", most=0,
                  on="figure")


def drop(bench):
    """Drop: 20,000 files into one folder, each told, and told once"""
    count = 20_000

    def run(start):
        with bench.folder() as folder:
            numbers, program = bench.heard(
                lambda output: start(folder, output), "drop", folder, count, 3000)
            return numbers[0] / 1e9, count - numbers[1], numbers[2], program.overflows()

    reference, *measured = bench.turns(
        lambda: run(lambda folder, output: bench.reference(folder, "lines", output)),
        *[lambda start=start: run(start) for start in bench.subjects().values()])
    for subject, runs in zip(bench.subjects(), measured):
        seconds, lost, twice, overflows = zip(*runs)
        bench.compare("drop of 20,000 files, until all are told" + subject, seconds, [run[0] for run in reference])
        bench.tell("  of them lost, over all runs", "", sum(lost), sum(run[1] for run in reference), "0", most=0,
                  on="figure")
        bench.tell("  of them told twice", "", sum(twice), sum(run[2] for run in reference), "0", most=0, on="figure")
        bench.tell("  overflows meanwhile", "", sum(overflows), sum(run[3] for run in reference))
