"""Start-up time and size of the program."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

RULE = """
rules:
  - { name: one, path: "%s/*.txt", action: log }
"""


def startup(bench):
    """Start-up compared with /bin/true, and the installed size"""
    count = bench.size(40, 20)
    with bench.directory() as directory:
        rules = os.path.join(directory, "rules.yaml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(RULE % directory)

        def once(*argv):
            begin = time.monotonic()
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=bench.environment, check=True)
            return (time.monotonic() - begin) * 1000

        def often(*argv):
            return statistics.median(once(*argv) for _ in range(count))

        nothing, version, check = bench.turns(
            lambda: often("/bin/true"), lambda: often(bench.options.alight, "--version"),
            lambda: often(bench.options.alight, "check", rules))
    true = statistics.median(nothing)
    for name, times, most, words in (
            ("alight --version, against /bin/true", version, 10, "<= 10 ms"),
            ("alight check, one rule, against /bin/true", check, 15, "<= 15 ms")):
        bench.report(name, "ms", statistics.median(times), true, words, most=most, on="figure",
                   samples=dict(alight=times, reference=nothing))
    bench.report("the program, stripped", "MB", stripped(bench.options.alight) / 1e6, None, "< 80 MB", most=80, on="figure")


def stripped(path):
    """Returns the size of the program without its symbols."""
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "copy")
        shutil.copy(path, copy)
        subprocess.run([shutil.which("strip") or "llvm-strip", copy], check=True)
        return os.path.getsize(copy)
