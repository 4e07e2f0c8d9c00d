"""Growth of the cost with the number of files, rules, directories and due paths."""

import os
import statistics
import subprocess
import time

from ..figures import exponent
from ..tables import grouped
from .bench import LINES

EXISTING = """
rules:
  - { name: lines, path: "%s/**", settle: 0, concurrency: 4, existing: process, action: log }
"""
# The first file occupies the only slot, so that all others stay due.
DUE = """
rules:
  - { name: held, path: "%s/**", settle: 0, existing: process, action: { exec: [sleep, "3600"] } }
"""
# A shorter time is noise, since the kernel counts in hundredths of a second.
LEAST = 0.05


def growth(bench):
    """Growth: processor time by what there is, and the exponent of a power law through it"""
    most = bench.size({"files": 6, "rules": 4, "directories": 5, "due paths": 6},
                      {"files": 5, "rules": 4, "directories": 5, "due paths": 5})
    least = {"files": 3, "rules": 1, "directories": 2, "due paths": 3}
    measures = {"files": files, "rules": rules, "directories": directories, "due paths": due}
    curves = {}
    for name, measure in measures.items():
        nothing, _ = spent(bench, measure, 0)
        points = [(10**power, *spent(bench, measure, 10**power)) for power in range(least[name], most[name] + 1)]
        curves[name] = [(count, seconds - nothing) for count, seconds, _ in points if seconds - nothing >= LEAST]
        bench.report("growth with %s, exponent" % name, "", exponent(curves[name]), None, "<= 1.1", most=1.1, on="figure")
        (few, _, small), (many, seconds, large) = points[-2:]
        bench.report("  %s %s" % (grouped(many), name), "s", seconds - nothing)
        bench.report("  resident for each", "bytes", (large - small) / (many - few), None,
                   *(["<= 150", 150] if measure is due else []), on="figure")
    if bench.options.json:
        draw(curves, os.path.splitext(bench.options.json)[0] + "-growth.png")


def spent(bench, measure, count):
    """Returns the processor time in seconds, and the resident memory at the end."""
    runs = [measure(bench, count) for _ in range(1 if count > 100_000 else bench.runs())]
    return tuple(map(statistics.median, zip(*runs)))


def until_rest(program):
    """Returns the usage of a program when it is ready and idle."""
    program.wait_ready()
    before = None
    while before != (used := program.processor()):
        before = used
        time.sleep(0.5)
    result = used, program.memory("VmRSS")
    # A regular stop would wait for the action.
    program.process.kill()
    program.process.wait()
    program.stop()
    return result


def files(bench, count, text=EXISTING):
    with bench.directory() as directory:
        if count:
            bench.load("tree", directory, max(1, count // 1000), min(count, 1000))
        return until_rest(bench.alight(directory, text))


def due(bench, count):
    return files(bench, count, DUE)


def directories(bench, count):
    with bench.directory() as directory:
        bench.load("tree", directory, count, 0)
        return until_rest(bench.alight(directory))


def rules(bench, count):
    others = "".join(
        "  - { name: other%d, path: \"%%s/*/n%d-*.log\", settle: 0, action: log }\n" % (number, number)
        for number in range(count))
    with bench.directory() as directory:
        return until_rest(bench.alight(directory, LINES + others))


def draw(curves, image):
    """Draws a curve for each, by gnuplot, with a line of exponent 1 for comparison."""
    script = ["set terminal pngcairo size 1000,600", "set output '%s'" % image, "set logscale xy", "set grid",
              "set key left top", "set xlabel 'number'", "set ylabel 'processor time, seconds'"]
    for index, points in enumerate(curves.values()):
        script += ["$c%d << END" % index, *("%d %g" % point for point in points), "END"]
    plots = ["$c%d with linespoints linewidth 2 title '%s'" % (index, name) for index, name in enumerate(curves)]
    script.append("plot %s, x * 1e-4 with lines dashtype 2 title '0.1 ms for each'" % ", ".join(plots))
    subprocess.run(["gnuplot"], input="\n".join(script).encode() + b"\n", check=True)
