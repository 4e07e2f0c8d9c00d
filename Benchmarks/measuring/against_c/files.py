"""Files copied and moved."""

import contextlib
import os
import statistics
import subprocess
import time

from ..processes import Failure
from ..tables import grouped


def files(bench):
    """Copies and moves, compared with cp and mv: one large file, and many small ones"""
    large = bench.size(1 << 30, 256 << 20)
    count = bench.size(10_000, 2_000)
    scrap = contextlib.ExitStack()

    def fill(directory, size, count):
        os.mkdir(os.path.join(directory, "in"))
        os.mkdir(os.path.join(directory, "out"))
        block = os.urandom(1 << 20)
        for number in range(count):
            with open(os.path.join(directory, "in", "f%05d" % number), "wb") as file:
                for _ in range(max(size >> 20, 1)):
                    file.write(block[:size])

    def timed(argv):
        """Returns the seconds and the peak in MiB."""
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
            # For five seconds, an ext4 without a journal remembers freed inodes and checks each of them for each
            # new file. So trees of small files are removed after all have been measured.
            stack = scrap if count > 1 else own
            here = stack.enter_context(bench.directory(source))
            there = stack.enter_context(bench.directory(target))
            fill(here, size, count)
            fill(there, 0, 0)
            for directory in here, there:
                subprocess.run(["sync", "-f", directory], check=True)
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

    def in_c(*options):
        def command(inner, outer):
            return [bench.program("copies"), inner, outer, "4", "64", *options]
        command.arrives = True
        return command

    def rule(action, lanes=4, further=""):
        def command(inner, outer):
            path = os.path.join(bench.work, "rules.yaml")
            with open(path, "w") as file:
                file.write("rules:\n  - name: files\n    path: %s/*\n    existing: process\n    settle: 0\n"
                           "    concurrency: %d\n    action: %s\n%s" % (
                               inner, lanes, action.replace("OUT", outer), further))
            return [bench.options.alight, "run", "--once", "--journal", bench.new_journal(), path]
        command.arrives = action != "log"
        return command

    def compare(name, size, count, source, target, reference, commands):
        def measure(size, command):
            return lambda: run(size, count, command, source, target)

        chosen = [reference, *commands.values()]
        with scrap:
            measured = bench.turns(*[measure(size, command) for command in chosen])
            # For one large file, start and stop are subtracted, measured with a file of one byte.
            starts = bench.turns(*[measure(1, command) for command in chosen]) if count == 1 else [[(0, 0)]] * len(chosen)
        time.sleep(6 if count > 1 else 0)

        def median(runs):
            return statistics.median(seconds for seconds, _ in runs)

        least = median(measured[0]) - median(starts[0])
        for words, runs, start in zip(commands, measured[1:], starts[1:]):
            seconds = median(runs) - median(start)
            amount = count if count > 1 else size >> 20
            without = any(word in words for word in ("lane", "log", "in C"))
            bound = None if without else 0.95 if count == 1 else 0.8 if "sync" in name else 0.6
            bench.report(name + words, "files/s" if count > 1 else "MiB/s", amount / seconds, amount / least,
                      ">= %.2f x" % bound if bound else None, least=bound)
            if count == 1:
                bench.report("  peak resident", "MiB", max(peak for _, peak in runs),
                          max(peak for _, peak in measured[0]))

    os.makedirs(bench.options.disk, exist_ok=True)
    disk, memory = bench.options.disk, bench.work
    copy, move = "{ use: copy, with: { to: OUT/ } }", "{ use: move, with: { to: OUT/ } }"
    loose = "{ use: copy, with: { to: OUT/, durable: false } }"
    cp = ("cp", "--preserve=mode,timestamps")
    for size, number, noun in ((large, 1, "one file of %d MiB" % (large >> 20)),
                               (4096, count, "%s files of 4 KiB" % grouped(count))):
        floor, durable = ({", in C": in_c("loose")}, {", in C": in_c()}) if number > 1 else ({}, {})
        compare("copy on disk, %s, cp" % noun, size, number, disk, disk, plain(*cp),
             {"": rule(copy), ", `durable: false`": rule(loose),
              ", `batch`": rule(copy, further="    batch: { files: 500 }\n"), **floor})
        compare("copy on disk, %s, cp and sync" % noun, size, number, disk, disk, plain(*cp, flushed=True),
             {"": rule(copy), **durable})
        compare("copy in memory, %s, cp" % noun, size, number, memory, memory, plain(*cp),
             {"": rule(copy), ", one lane": rule(copy, lanes=1), **floor})
        compare("move from memory to disk, %s, mv" % noun, size, number, memory, disk, plain("mv"), {"": rule(move)})
        compare("move from memory to disk, %s, cp, sync and rm" % noun, size, number, memory, disk,
             plain(*cp, flushed=True, removed=True), {"": rule(move)})
    compare("move on disk, %s files, mv" % grouped(count), 4096, count, disk, disk, plain("mv"),
         {"": rule(move), ", `log` instead": rule("log")})
