"""Jobs: the cost of the journal and of plugins."""

import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess

from ..processes import Failure
from .bench import LINES


def journal(bench):
    """Jobs in the journal, compared with SQLite alone with the same rows"""
    count = bench.size(100_000, 10_000)
    # On the disk of the build, since a tmpfs has nothing to flush.
    with bench.directory() as directory, bench.directory() as nothing, bench.directory(bench.options.disk) as disk:
        bench.load("tree", directory, 1, count)
        empty = bench.new_journal(disk)
        bench.once(nothing, empty)

        def run():
            journal = bench.new_journal(disk)
            seconds = bench.once(directory, journal)
            with contextlib.closing(sqlite3.connect(journal)) as connection:
                done, = connection.execute("SELECT count(*) FROM jobs WHERE state = 'succeeded'").fetchone()
            if done != count:
                raise Failure("%d of %d jobs were done" % (done, count))
            return count / seconds

        def rows():
            journal = bench.new_journal(disk)
            shutil.copyfile(empty, journal)
            done = subprocess.run([bench.program("rows"), journal, str(count), "100"], capture_output=True, check=True)
            return count / (int(done.stdout) / 1e9)

        alight, reference = bench.turns(run, rows)
        bench.report("built-in jobs, from start to end, journal on disk", "jobs/s", statistics.median(alight),
                  statistics.median(reference), ">= 16,000", least=16_000, on="figure",
                  samples=dict(alight=alight, reference=reference))
        # From the time at which a file has settled to the start of its action.
        journal = bench.new_journal(disk)
        bench.heard(lambda output: bench.alight(nothing, LINES, output, journal=journal), "latency", nothing,
                   bench.size(300, 100), 20_000)
        with contextlib.closing(sqlite3.connect(journal)) as connection:
            waits = sorted(wait / 1e3 for wait, in connection.execute(
                "SELECT started - created FROM attempts JOIN jobs ON jobs.id = job"))
        bench.report("settled to started, idle, p50", "us", statistics.median(waits), budget="< 5,000", most=5000,
                  on="figure")
        bench.report("settled to started, idle, p99", "us", waits[len(waits) * 99 // 100])


def serve(bench):
    """Plugins that do nothing: a process for each request, and one process for all"""
    count = bench.size(4000, 1000)
    with bench.directory() as directory, bench.directory() as nothing:
        bench.load("tree", directory, 1, count)
        for name, modes in (("once", "run"), ("stays", "run, serve")):
            plugin = os.path.join(bench.work, "plugins", name)
            os.makedirs(plugin, exist_ok=True)
            shutil.copy(bench.program("answer"), os.path.join(plugin, name))
            with open(os.path.join(plugin, "plugin.yaml"), "w") as file:
                file.write("name: %s\nprotocol: [1]\nconcurrent: 8\nmodes: [%s]\n" % (name, modes))

        def run(place, name):
            rules = LINES.replace("action: log", "action: { use: %s }" % name)
            return bench.once(place, bench.new_journal(), rules)

        def rate(name):
            # Without the time to start and to stop.
            return count / (run(directory, name) - run(nothing, name))

        request = os.path.join(directory, "request")
        with open(request, "w") as file:
            # As long as a request from Alight.
            file.write(json.dumps(dict(protocol=1, id="x" * 26, padding="x" * 700)) + "\n")

        def spawn():
            done = subprocess.run([bench.program("spawn"), str(count), "4", bench.program("answer"), request],
                                  capture_output=True, check=True)
            return count / (int(done.stdout) / 1e9)

        once, spawned = bench.turns(lambda: rate("once"), spawn)
        bench.report("a process for each file, against posix_spawn of the same program, 4 at once", "files/s",
                  statistics.median(once), statistics.median(spawned), ">= 0.7 x", least=0.7,
                  samples=dict(alight=once, reference=spawned))
        served, once = bench.turns(lambda: rate("stays"), lambda: rate("once"))
        bench.report("requests to a plugin that serves, against one that is started for each", "requests/s",
                  statistics.median(served), statistics.median(once), ">= 8,000", least=8000, on="figure",
                  samples=dict(alight=served, reference=once))
