"""Many rules."""

import os
import statistics

from ..processes import Failure
from ..tables import grouped
from .bench import LINES


def rules(bench):
    """Many rules: the cost of a matching file, compared with ten rules"""
    kinds = [
        ("one directory, by extension", "%s/**/*.e{}"), ("one directory, by name", "%s/*/n{}-*.log"),
        ("a directory each", "%s/other{}/*")]
    counts = [10, 1_000, 10_000]
    files = bench.size(20_000, 2_000)
    if bench.options.quick:
        kinds, counts = kinds[:1], [10, 10_000]

    def run(path, count):
        others = "".join(
            "  - { name: other%d, path: \"%s\", settle: 0, action: log }\n" % (number, path.format(number))
            for number in range(count - 1))
        with bench.directory() as directory:
            if "other{}" in path:
                for number in range(count - 1):
                    os.mkdir(os.path.join(directory, "other%d" % number))
            programs = []

            def start(output):
                programs.append(bench.alight(directory, LINES + others, output))
                return programs[0]

            numbers, program = bench.heard(start, "drop", directory, files, bench.size(3000, 1000))
            if numbers[1] != files:
                raise Failure("%d of %d files were reported" % (numbers[1], files))
            return numbers[0] / 1e9 / files, program.seconds

    for name, path in kinds:
        least, *measured = bench.turns(*[lambda count=count: run(path, count) for count in counts])
        for count, runs in zip(counts[1:], measured):
            figure = "time per file, %s rules, %s, against 10" % (grouped(count), name)
            bench.compare(figure, [each for each, _ in runs], [each for each, _ in least], "<= 2 x", most=2,
                         scale=1e6, unit="us")
            bench.report("  from start to ready", "ms", statistics.median([ready for _, ready in runs]) * 1000,
                       statistics.median([ready for _, ready in least]) * 1000, "< 1,000 ms", most=1000, on="figure")
