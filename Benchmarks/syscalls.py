#!/usr/bin/env python3
"""Lists the system calls that a program makes for one file, with strace(1).

    Benchmarks/syscalls.py [PROGRAM]         from the read of the file's event to the execve of its action
    Benchmarks/syscalls.py --job [PROGRAM]   all calls until the program is at rest again

One rule runs /bin/true. Files are created one after another while the program is at rest. A line is one call; its thread
is the second column.
"""

import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = "rules:\n  - name: list\n    path: %s/*\n    settle: %s\n    action: { exec: [/bin/true] }\n"
CALL = re.compile(r"^(\d+) +(\S+) (.*)$")


def calls(trace):
    """Yields the thread, the time, and the text of each call, from the moment at which it starts."""
    for line in trace:
        match = CALL.match(line.rstrip("\n"))
        if match and match[3][0] not in "<+-":
            yield match[1], match[2], match[3]


def idle(trace, limit=20):
    """Waits until the trace has not grown for a while."""
    size, deadline = -1, time.monotonic() + limit
    while time.monotonic() < deadline:
        now = os.path.getsize(trace) if os.path.exists(trace) else 0
        if now and now == size:
            return
        size = now
        time.sleep(1.2)
    sys.exit("error: '%s' still grows after %d s" % (trace, limit))


def record(program, settle, place, files):
    """Returns the path of the trace, the names of the files, and the time at which the last job had ended."""
    # The program watches the directory of its rules, so nothing else is written there.
    watched, rules, journal, run, out = directories = [
        os.path.join(place, name) for name in ("watched", "rules", "journal", "run", "out")]
    for directory in directories:
        os.mkdir(directory)
    with open(os.path.join(rules, "rules.yaml"), "w", encoding="utf-8") as file:
        file.write(RULES % (watched, settle))
    trace = os.path.join(out, "trace")
    command = [
        "strace", "-f", "-y", "-ttt", "-s", "400", "-o", trace, program, "run", rules,
        "--journal", os.path.join(journal, "journal.db"), "--no-control"]
    environment = dict(os.environ, RUNTIME_DIRECTORY=run, LC_ALL="C.UTF-8")
    names = ["file-%d" % number for number in range(files)]
    with open(os.path.join(out, "output"), "wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True)
        try:
            for name in names:
                idle(trace)
                descriptor = os.open(os.path.join(watched, name), os.O_CREAT | os.O_WRONLY, 0o644)
                os.write(descriptor, b"text\n")
                os.close(descriptor)
            idle(trace)
            end = time.time()
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    return trace, names, end


def jobs(every, names):
    """Returns the calls of each job, from the read of its event until the next job or the end."""
    starts = []
    for name in names:
        found = [at for at, (_, _, text) in enumerate(every) if "inotify" in text and '%s\\0' % name in text]
        if not found:
            sys.exit("error: '%s' has caused no event" % name)
        starts.append(found[0])
    return [every[start:end] for start, end in zip(starts, starts[1:] + [len(every)])]


def start_of_action(job):
    """Returns the number of calls until the execve."""
    return next(at + 1 for at, (_, _, text) in enumerate(job) if text.startswith("execve("))


def looks(job, name):
    """Returns the numbers of statx calls of the file, and of names made from its name."""
    stats = [text for _, _, text in job if re.match(r"(statx|newfstatat|stat|lstat|fstat)\(", text) and name in text]
    own = [text for text in stats if re.search(r"""["/]%s[">]""" % re.escape(name), text)]
    return len(own), len(stats) - len(own)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", default=os.path.join(HERE, "..", ".build", "release", "alight"))
    parser.add_argument("--job", action="store_true", help="all calls until the program is at rest")
    parser.add_argument("--settle", default="0s", help="the quiet time of the rule (%(default)s)")
    parser.add_argument("--count", action="store_true", help="only the numbers")
    parser.add_argument("--root", default="/dev/shm", help="the directory for files and journal (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="syscalls-", dir=options.root) as place:
        trace, names, end = record(os.path.abspath(options.program), options.settle, place, files=6)
        with open(trace, encoding="utf-8", errors="replace") as file:
            every = [call for call in calls(file) if float(call[1]) < end]
    # The first one starts threads and a launcher. Of the others, the median is listed: threads work at the same time.
    measured = sorted(
        ((start_of_action(job), job, name) for job, name in zip(jobs(every, names)[1:], names[1:])),
        key=lambda item: item[0])
    count, job, name = measured[len(measured) // 2]
    if not options.count:
        for thread, moment, text in job if options.job else job[:count]:
            print("%s %s %s" % (moment, thread, text))
    for what, values in (
            ("thread", (thread for thread, _, _ in job[:count])),
            ("name", (text.split("(")[0] for _, _, text in job[:count]))):
        numbers = ", ".join("%s %d" % item for item in collections.Counter(values).most_common())
        print("%d calls until execve (%d to %d), by %s: %s" % (count, measured[0][0], measured[-1][0], what, numbers))
    print("%d calls in the whole job; statx of the file: %d, of names made from its name: %d" % (
        len(job), *looks(job, name)))


if __name__ == "__main__":
    main()
