#!/usr/bin/env python3
"""Compares the built program with minimal programs in C, and with other programs.

    Benchmarks/bench.py                      all scenarios
    Benchmarks/bench.py --quick              fewer files and runs, less than five minutes
    Benchmarks/bench.py --full               also a tree of a million files
    Benchmarks/bench.py --only storm,startup only these scenarios
    Benchmarks/bench.py --json FILE          also writes the figures to the file

All programs take turns, so that other load on the machine affects all of them. Figures are medians, and a ratio is the
median of the ratios within one turn. A missed budget is reported, but is not a failure: the exit status is 0 if
everything could be measured. `make bench` builds and installs everything that is needed.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time

from measuring import rounds
from measuring.against_c import bench as against_c
from measuring.against_c import files, growth, jobs, million, pending, rules, startup, watching
from measuring.processes import Failure
from measuring.scenarios import folders, interruptions, latency, storm, subtrees
from measuring.systems import Alight

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, "..", ".build")

# The scenarios that are compared with other programs, and those that are compared with C only.
BESIDE_PEERS = [
    latency.Latency, storm.Storm, folders.Folders, folders.ManyFolders, subtrees.Subtrees, interruptions.Writer,
    interruptions.Crash]
BESIDE_C = {
    "setup": watching.setup, "events": watching.events, "lines": watching.lines, "memory": watching.memory,
    "idle": watching.idle, "drop": watching.drop, "rules": rules.rules, "journal": jobs.journal, "serve": jobs.serve,
    "files": files.files, "pending": pending.pending, "startup": startup.startup, "growth": growth.growth,
    "million": million.million,
}
# Scenarios that take too long for daily use: they need --full, or --quick skips them.
ONLY_FULL = {"million"}
NOT_QUICK = {"many-folders", "drop", "files", "growth"}
NEEDED = ["record", "arrive", "runner", "floor", "load", "reference", "rows", "answer", "spawn", "copies"]


def machine():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return dict(processor=model, processors=os.cpu_count(), kernel=platform.release(), load=os.getloadavg()[0])


def parse():
    names = [scenario.name for scenario in BESIDE_PEERS] + list(BESIDE_C)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer files, fewer runs")
    size.add_argument("--full", action="store_true", help="also a tree of a million files")
    parser.add_argument("--only", help="scenarios, of: " + ", ".join(names))
    parser.add_argument("--runs", type=int, metavar="N", help="the number of runs of each (5, or 3)")
    parser.add_argument("--json", metavar="FILE", help="the file for the figures")
    parser.add_argument("--root", default="/dev/shm", help="the directory for the trees (%(default)s)")
    parser.add_argument("--disk", default=os.path.join(BUILT, "bench"), help="the directory for journals (%(default)s)")
    parser.add_argument("--alight", default=os.path.join(BUILT, "release", "alight"))
    parser.add_argument("--observer", default=os.path.join(HERE, ".build", "release", "observer"))
    parser.add_argument("--programs", default=os.path.join(BUILT, "bench"), help="the directory of the programs in C (%(default)s)")
    options = parser.parse_args()
    options.alight, options.programs = os.path.abspath(options.alight), os.path.abspath(options.programs)
    for program in [options.alight, *(os.path.join(options.programs, name) for name in NEEDED)]:
        if not os.access(program, os.X_OK):
            sys.exit("error: missing program '%s'\n    help: make bench builds it" % program)
    options.names = options.only.split(",") if options.only else [
        name for name in names
        if (name not in ONLY_FULL or options.full) and not (name in NOT_QUICK and options.quick)]
    for name in options.names:
        if name not in names:
            sys.exit("error: unknown scenario '%s'\n    help: one of %s" % (name, ", ".join(names)))
    return options


def main():
    options = parse()
    Alight.program = options.alight
    # Exits by an exception, so that cleanup runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    environment = machine()
    begin = time.monotonic()
    print("%(processor)s, %(processors)s processors, Linux %(kernel)s, load %(load).1f" % environment, flush=True)
    beside_peers = {scenario.name: scenario for scenario in BESIDE_PEERS}
    results, failed = {}, []
    for name in options.names:
        started = time.monotonic()
        try:
            if name in beside_peers:
                results[name] = rounds.run(beside_peers[name](options))
                failed += results[name]["failed"]
            else:
                results[name] = against_c.run(BESIDE_C[name], options)
            results[name]["seconds"] = time.monotonic() - started
        except (Failure, subprocess.TimeoutExpired) as failure:
            failed.append(name)
            print("error: %s: %s" % (name, failure), file=sys.stderr, flush=True)
        if options.json:
            with open(options.json + ".part", "w", encoding="utf-8") as file:
                json.dump(dict(machine=environment, scenarios=results), file, indent=1, ensure_ascii=False)
                file.write("\n")
            os.replace(options.json + ".part", options.json)
    print("\n%d scenarios in %d s" % (len(options.names), time.monotonic() - begin))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
