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
        with bench.directory(root) as directory:
            bench.load("tree", directory, folders, 2)
            age = "just created"
            if not bench.options.quick:
                # A file that changed in the last minute is also checked for writers.
                time.sleep(61)
                age = "unchanged"

            def run(start):
                program = start()
                try:
                    return program.wait_ready(), program.processor()
                finally:
                    program.stop()

            starts = list(bench.subjects().values())
            measured = bench.turns(
                lambda: run(lambda: bench.reference(directory)),
                lambda: run(lambda: bench.reference(directory, "stat")),
                *[lambda start=start: run(lambda: start(directory)) for start in starts])
            least, with_stat = ([wall for wall, _ in runs] for runs in measured[:2])
            name = "set-up, %s directories, %s files, %s, %s" % (grouped(folders), grouped(folders * 2), age, place)
            for subject, runs in zip(bench.subjects(), measured[2:]):
                walls = [wall for wall, _ in runs]
                bench.compare(name + subject, walls, least)
                bench.compare("  against C with stat for each file", walls, with_stat, "<= 2 x", most=2)
                bench.compare("  processor time, against C with stat for each file",
                             [processor for _, processor in runs], [processor for _, processor in measured[1]])


def events(bench):
    """Events: the rate at which the kernel's events are read"""
    files, writes = 1000, 8000
    kinds = [("", STORM)]
    kinds.append((", 1,000 rules", STORM + OTHERS))
    for suffix, rules in kinds:

        def backlog(start):
            with bench.directory() as directory:
                numbers, program = bench.heard(
                    lambda output: start(directory, output), "backlog", directory, files, writes, "PID")
                if program.overflows():
                    raise Failure("the queue of the kernel was too short for a backlog")
                return 2 * writes / numbers[0] * 1e9

        alight, reference = bench.turns(
            lambda: backlog(lambda directory, output: bench.alight(directory, rules, output)),
            lambda: backlog(lambda directory, output: bench.reference(directory, "count", output)))
        bench.rates("events read to hints, 16,000 waiting" + suffix, alight, reference)

    writes = bench.size(200_000, 50_000)

    def live(start):
        with bench.directory() as directory:
            numbers, program = bench.heard(
                lambda output: start(directory, output), "storm", directory, files, writes)
            return 2 * writes / numbers[1] * 1e9, program.overflows()

    alight, reference = bench.turns(
        lambda: live(lambda directory, output: bench.alight(directory, STORM, output)),
        lambda: live(lambda directory, output: bench.reference(directory, "count", output)))
    bench.rates("events read to hints, %s while written" % grouped(2 * writes), [rate for rate, _ in alight],
               [rate for rate, _ in reference])
    bench.report("  overflows of the kernel's queue meanwhile", "", sum(count for _, count in alight),
              sum(count for _, count in reference))


def lines(bench):
    """Lines: from the close of a file to the line about it"""
    count = bench.size(1000, 300)

    def run(start):
        with bench.directory() as directory:
            return bench.heard(lambda output: start(directory, output), "latency", directory, count, 2000)[0]

    reference, *measured = bench.turns(
        lambda: run(lambda directory, output: bench.reference(directory, "lines", output)),
        *[lambda start=start: run(start) for start in bench.subjects().values()])
    for subject, runs in zip(bench.subjects(), measured):
        for index, name in enumerate(["p50", "p99"]):
            bench.compare("close to line, settle 0, " + name + subject, [run[index] for run in runs],
                         [run[index] for run in reference], scale=1e-3, unit="us")


def memory(bench):
    """Resident memory per directory"""
    folders = bench.size(100_000, 20_000)

    def resident(start, count):
        with bench.directory() as directory:
            bench.load("tree", directory, count, 0)
            program = start(directory)
            try:
                program.wait_ready()
                return program.memory("VmRSS")
            finally:
                program.stop()

    def each(start):
        return (resident(start, folders) - resident(start, 1)) / folders

    reference = each(bench.reference)
    for subject, start in bench.subjects().items():
        # The command and the library also store the metadata of each directory, and report it.
        most = 150 if subject else 100
        bench.report("resident for each of %s directories%s" % (grouped(folders), subject), "bytes", each(start), reference,
                  "<= %d" % most, most=most, on="figure")


def idle(bench):
    """Idle: wake-ups when nothing happens"""
    seconds = bench.size(60, 2)

    def run(start):
        with bench.directory() as directory:
            bench.load("tree", directory, 1000, 1)
            program = start(directory)
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
        bench.report("wake-ups in %d idle seconds%s" % (seconds, subject), "", run(start), reference, "0", most=0,
                  on="figure")


def drop(bench):
    """Drop: 20,000 files into one directory, each reported exactly once"""
    count = 20_000

    def run(start):
        with bench.directory() as directory:
            numbers, program = bench.heard(
                lambda output: start(directory, output), "drop", directory, count, 3000)
            return numbers[0] / 1e9, count - numbers[1], numbers[2], program.overflows()

    reference, *measured = bench.turns(
        lambda: run(lambda directory, output: bench.reference(directory, "lines", output)),
        *[lambda start=start: run(start) for start in bench.subjects().values()])
    for subject, runs in zip(bench.subjects(), measured):
        seconds, lost, twice, overflows = zip(*runs)
        bench.compare("drop of 20,000 files, until all are reported" + subject, seconds, [run[0] for run in reference])
        bench.report("  of them lost, over all runs", "", sum(lost), sum(run[1] for run in reference), "0", most=0,
                  on="figure")
        bench.report("  of them reported twice", "", sum(twice), sum(run[2] for run in reference), "0", most=0, on="figure")
        bench.report("  overflows meanwhile", "", sum(overflows), sum(run[3] for run in reference))
