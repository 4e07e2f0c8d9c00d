#!/usr/bin/env python3
"""Runs Alight under load, and reports whether its resource usage stays level.

    Benchmarks/soak.py ALIGHT MINUTES DIRECTORY

Files are created, changed, renamed and deleted, for rules that log, copy, run a program, collect batches and wait.
Every few seconds the script reads /metrics from the control socket. It writes `soak.png`, with a panel for each figure,
and the figures as `soak.tsv` to DIRECTORY. The exit status is 1 if one of them rises in the last half by more than
measuring/soaking.py allows, or if a file was not handled. Memory always grows in the first minutes, until the journal's
cache of 16 MiB is full, so a run of less than half an hour is not conclusive about memory.
"""

import collections
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from measuring import soaking
from measuring.processes import Failure, limit_descriptors

RULES = """
rules:
  - { name: logged, path: "IN/**/*.txt", settle: 200ms, events: [created, modified, moved, deleted], action: log }
  - { name: copied, path: "IN/**/*.dat", settle: 200ms, action: { use: copy, with: { to: OUT/, on_conflict: overwrite } } }
  - { name: run, path: "IN/**/*.bin", settle: 0, concurrency: 2, action: { exec: [/bin/true, "${path}"] } }
  - { name: gathered, path: "IN/**/*.log", settle: 100ms, batch: { files: 50, wait: 300ms }, action: { exec: [/bin/true] } }
  - { name: kept, path: "IN/**/*.late", settle: 30s, action: log }
"""
# The maximum number of files, and the number of changes per second.
MOST = 1000
PACE = 40
KINDS = ["txt", "dat", "bin", "log", "late"]


class Load:
    """Changes to files: most create one, some change, rename or delete one."""

    def __init__(self, directory):
        self.directory, self.chance, self.files, self.number = directory, random.Random(), collections.deque(), 0

    def step(self):
        choice = self.chance.random()
        if choice < 0.5 or not self.files:
            self.make()
        elif choice < 0.75:
            with open(self.chance.choice(self.files), "ab") as file:
                file.write(b"more\n")
        elif choice < 0.85:
            index = self.chance.randrange(len(self.files))
            base, extension = os.path.splitext(self.files[index])
            renamed = base + "r" + extension if len(os.path.basename(base)) < 100 else self.name(extension[1:])
            os.rename(self.files[index], renamed)
            self.files[index] = renamed
        else:
            os.unlink(self.files.popleft())
        while len(self.files) > MOST:
            os.unlink(self.files.popleft())

    def name(self, kind):
        self.number += 1
        return os.path.join(self.directory, "d%02d" % (self.number % 50), "f%d.%s" % (self.number, kind))

    def make(self):
        path = self.name(self.chance.choice(KINDS))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"x" * self.chance.randrange(1, 5000))
        self.files.append(path)


class Control(http.client.HTTPConnection):
    """HTTP over the control socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def metrics(path):
    connection = Control(path)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise Failure("/metrics: %d %s" % (answer.status, text[:200]))
        return soaking.parse(text)
    finally:
        connection.close()


def soak(alight, seconds, directory):
    """Returns the samples, pairs of a time and the metrics at that time, and the metrics when no job is waiting."""
    for name in "in", "out", "state":
        os.mkdir(os.path.join(directory, name))
    rules, control = os.path.join(directory, "rules.yaml"), os.path.join(directory, "control")
    with open(rules, "w", encoding="utf-8") as file:
        file.write(RULES.replace("IN", directory + "/in").replace("OUT", directory + "/out"))
    environment = dict(os.environ, ALIGHT_CONTROL=control, XDG_STATE_HOME=directory + "/state")
    output = os.path.join(directory, "output")
    with open(output, "wb") as errors:
        process = subprocess.Popen(
            [alight, "run", rules, "--journal", os.path.join(directory, "journal.db")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, env=environment, preexec_fn=limit_descriptors)
    try:
        wait_ready(process, output)
        load, samples = Load(os.path.join(directory, "in")), []
        start = time.monotonic()
        # Two seconds for a short run, up to ten for a long one.
        pause = min(10, max(2, seconds / 360))
        due = start
        while (now := time.monotonic()) < start + seconds:
            if process.poll() is not None:
                raise Failure("it exited with %d: %s" % (process.returncode, last_lines(output)))
            if now >= due:
                samples.append((now - start, metrics(control)))
                due += pause
            load.step()
            time.sleep(1 / PACE)
        return samples, wait_idle(control)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(90)


def wait_ready(process, output):
    deadline = time.monotonic() + 60
    while "ready: " not in last_lines(output, 100):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure("it did not become ready: " + last_lines(output))
        time.sleep(0.05)


def last_lines(output, count=3):
    with open(output, encoding="utf-8", errors="replace") as file:
        return " / ".join(file.read().splitlines()[-count:])


def wait_idle(control):
    """Returns the metrics when no path is settling and no job is waiting, or after two minutes."""
    deadline = time.monotonic() + 120
    while True:
        values = metrics(control)
        if values.get("alight_settling_paths", 0) + values.get("alight_queue_jobs", 0) == 0:
            return values
        if time.monotonic() > deadline:
            return values
        time.sleep(1)


def draw(samples, directory):
    """Draws a panel for each figure, by gnuplot."""
    panels = {name: heading for name, (heading, _, _) in soaking.LEVELS.items()}
    series = {name: [(time, values.get(name, 0)) for time, values in samples] for name in panels}
    for name, heading in soaking.RATES.items():
        panels[name] = heading
        series[name] = soaking.rates([(time, values.get(name, 0)) for time, values in samples])
    with open(os.path.join(directory, "soak.tsv"), "w", encoding="utf-8") as file:
        for name in panels:
            file.write("# %s\n" % name)
            file.writelines("%.3f\t%.3f\n" % (time / 60, value) for time, value in series[name])
            file.write("\n\n")
    script = ["set terminal pngcairo size 1200,%d" % (260 * len(panels)), "set output '%s/soak.png'" % directory,
              "set multiplot layout %d,1" % len(panels), "set grid", "set xlabel 'minutes'", "unset key",
              "set yrange [0:*]"]
    for index, heading in enumerate(panels.values()):
        script += ["set title '%s'" % heading, "plot '%s/soak.tsv' index %d with lines linewidth 2" % (directory, index)]
    subprocess.run(["gnuplot"], input="\n".join(script).encode() + b"\n", check=True)


def report(samples, last):
    """Prints for each figure whether it stays level; returns whether all do."""
    is_level = True
    for name, (heading, part, absolute) in soaking.LEVELS.items():
        points = [(time, values.get(name, 0)) for time, values in samples]
        rise, allowed, within = soaking.judge(points, part, absolute)
        level = soaking.last_half(points)
        print("%-24s %8.1f at the end, rises by %7.2f in the last half, allowed %7.2f: %s" % (
            heading, level[-1][1], rise, allowed, "flat" if within else "NOT FLAT"))
        is_level = is_level and within
    waiting = last.get("alight_settling_paths", 0) + last.get("alight_queue_jobs", 0)
    print("%d jobs done; %d waiting at the end" % (last.get("alight_jobs_total", 0), waiting))
    return is_level and waiting == 0


def main():
    if len(sys.argv) != 4 or not sys.argv[2].isdigit():
        print("usage: Benchmarks/soak.py ALIGHT MINUTES DIRECTORY", file=sys.stderr)
        return 64
    alight, minutes, target = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.makedirs(target, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="alight-soak-")
    # Exits by an exception, so that cleanup runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        samples, last = soak(alight, minutes * 60, directory)
        draw(samples, target)
        print("%s/soak.png shows %d minutes" % (target, minutes))
        return 0 if report(samples, last) else 1
    except Failure as failure:
        print("error: %s" % failure, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
