"""Very many files that settle."""

import os

from ..tables import grouped

# Each waits for an hour; later files are reported after a second.
RULES = """
rules:
  - { name: pending, path: "%s/**/pending*", settle: 1h, action: log }
  - { name: sentinel, path: "%s/**/sentinel*", settle: 0, action: log }
  - { name: soon, path: "%s/**/one*", settle: 1s, action: log }
"""


def pending(bench):
    """Settling files: memory per file, and the delay of other files"""
    count, later = bench.size(1_000_000, 100_000), bench.size(30, 8)
    with bench.directory() as directory:
        reading, writing = os.pipe()
        program = bench.alight(directory, RULES, writing)
        os.close(writing)
        try:
            program.wait_ready()
            # The first files cost more than each further one.
            bench.load("pending", directory, 100, 100, stdin=reading)
            before = program.memory("VmRSS")
            bench.load("pending", directory, count, 1000, stdin=reading)
            each = (program.memory("VmRSS") - before) / count
            median, most = late(bench.load("latency", directory, later, 2000, stdin=reading))
        finally:
            os.close(reading)
            program.stop()
    name = "%s pending files" % grouped(count)
    bench.report("resident for each of %s" % name, "bytes", each, None, "<= 150", most=150, on="figure")
    bench.report("delay of another file beside %s, median" % name, "ms", median, None, "<= 50", most=50, on="figure")
    bench.report("  maximum of %d" % later, "ms", most, None, "<= 50", most=50, on="figure")


def late(numbers):
    """Converts the nanoseconds until a line, median and maximum, to milliseconds beyond the second of the rule."""
    return numbers[0] / 1e6 - 1000, numbers[2] / 1e6 - 1000
