"""A million files."""

import os
import subprocess
import time

from ..processes import Failure


def million(bench):
    """A million files: it starts, stays small, and can be stopped in the middle"""
    folders, files = 50_000, 20
    with bench.directory() as directory:
        bench.load("tree", directory, folders, files)
        time.sleep(61)

        def find():
            begin = time.monotonic()
            subprocess.run(["find", directory, "-printf", "%s %T@\n"], stdout=subprocess.DEVNULL, check=True)
            return time.monotonic() - begin

        peaks = []

        def run():
            program = bench.alight(directory)
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
        bench.compare("set-up, 1,000,000 files, against `find -printf`", alight, found, "<= 4 x", most=4)
        bench.report("  peak resident", "MiB", max(peaks) / 2**20)
        bench.report("  peak resident for each file", "bytes", max(peaks) / (folders * files))
        journal = bench.new_journal()
        program = bench.alight(directory, journal=journal)
        try:
            program.wait_ready()
        finally:
            program.stop()
        again, peaks = [], []
        for _ in range(3):
            program = bench.alight(directory, journal=journal)
            try:
                again.append(program.wait_ready())
                peaks.append(program.memory("VmHWM"))
            finally:
                program.stop()
        bench.compare("the next start, nothing changed, against `find -printf`", again, found, "<= 2 x", most=2)
        bench.report("  peak resident", "MiB", max(peaks) / 2**20, budget="<= 100", most=100, on="figure")
        bench.report("  size of the journal for each file", "bytes", os.path.getsize(journal) / (folders * files))
        stops = []
        for _ in range(3):
            program = bench.alight(directory)
            time.sleep(0.5)
            if program.ready.is_set():
                raise Failure("the tree was listed before it could be interrupted")
            stops.append(program.stop())
        bench.report("  from SIGTERM in the middle of the listing to the exit", "ms", max(stops) * 1000)
