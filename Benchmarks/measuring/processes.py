"""Measured programs with their descendants."""

import ctypes
import itertools
import os
import platform
import resource
import signal
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
numbers = itertools.count(1)
# The system call number of kcmp(2), which has no wrapper in the C library.
KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine())
KCMP_VM = 1
libc = ctypes.CDLL(None)


class Failure(Exception):
    """Something could not be measured."""


def limit_descriptors():
    """Sets the soft limit that services start with."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def stat_fields(process):
    """Returns the fields of /proc/PID/stat from the state on, or None."""
    text = read("/proc/%d/stat" % process)
    return text.rsplit(")", 1)[1].split() if text else None


def status_field(process, key):
    for line in read("/proc/%d/status" % process).splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def switches(process):
    """Returns the number of context switches of the current threads of a process."""
    total = 0
    try:
        threads = os.listdir("/proc/%d/task" % process)
    except OSError:
        return 0
    for thread in threads:
        text = read("/proc/%d/task/%s/status" % (process, thread))
        total += sum(int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line)
    return total


def group_base():
    """Returns the directory in which a cgroup (version 2) can be created, or None."""
    for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        own = next((line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")), None)
        if own is None or not os.path.exists(base + "/cgroup.procs"):
            continue
        directory = base + own.rstrip("/")
        if os.access(directory, os.W_OK):
            return directory
    return None


def share_memory(one, other):
    """Whether two processes share memory, as after CLONE_VM and vfork(2); False where this is unknown."""
    return KCMP is not None and libc.syscall(KCMP, one, other, KCMP_VM, 0, 0) == 0


class Tree:
    """A program and its descendants: a separate cgroup, or else the processes of the session in /proc.

    Without a cgroup, the processor time of a descendant that has exited counts only if its parent has waited for it,
    and a descendant that creates a session while its parent exits is not found.
    """

    def __init__(self):
        self.group = None
        self.roots = []
        base = group_base()
        if base:
            path = "%s/alight-bench-%d-%d" % (base, os.getpid(), next(numbers))
            try:
                os.mkdir(path)
                self.group = path
            except OSError:
                pass

    def start(self, argv, **keywords):
        def enter():
            limit_descriptors()
            if self.group:
                with open(self.group + "/cgroup.procs", "w", encoding="ascii") as file:
                    file.write("0")

        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=enter, **keywords)
        self.roots.append(process)
        return process

    def processes(self):
        if self.group:
            return [int(word) for word in read(self.group + "/cgroup.procs").split()]
        parents = {}
        for name in os.listdir("/proc"):
            fields = stat_fields(int(name)) if name.isdigit() else None
            if fields and fields[0] != "Z":
                parents[int(name)] = (int(fields[1]), int(fields[3]))
        own = {root.pid for root in self.roots}
        members = {process for process, (_, session) in parents.items() if process in own or session in own}
        while True:
            more = {process for process, (parent, _) in parents.items() if parent in members} - members
            if not more:
                return sorted(members)
            members |= more

    def processor(self):
        """Returns the seconds of all processes, including those that have exited."""
        if self.group:
            for line in read(self.group + "/cpu.stat").splitlines():
                if line.startswith("usage_usec"):
                    return int(line.split()[1]) / 1e6
        return self.sum(lambda fields: sum(map(int, fields[11:15])) / TICKS)

    def own_processor(self):
        """Returns the seconds of the processes that still run, without their children."""
        return self.sum(lambda fields: (int(fields[11]) + int(fields[12])) / TICKS)

    def sum(self, value):
        return sum(value(fields) for fields in map(stat_fields, self.processes()) if fields)

    def memory(self, key):
        """Returns VmRSS or VmHWM of all processes in bytes; memory that a child shares with its parent counts once."""
        total = 0
        for process in self.processes():
            fields = stat_fields(process)
            if fields and not share_memory(process, int(fields[1])):
                total += status_field(process, key)
        return total * 1024

    def switches(self):
        """Returns the number of context switches of all current threads."""
        return sum(switches(process) for process in self.processes())

    def is_alive(self):
        return all(root.poll() is None for root in self.roots)

    def send(self, number):
        for process in self.processes():
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass

    def stop(self, timeout=5):
        """Asks the started programs to exit, and kills the processes that remain."""
        for root in self.roots:
            if root.poll() is None:
                root.send_signal(signal.SIGTERM)
        self.wait(timeout)
        self.kill()

    def wait(self, timeout):
        deadline = time.monotonic() + timeout
        while self.processes() and time.monotonic() < deadline:
            for root in self.roots:
                root.poll()
            time.sleep(0.01)

    def kill(self):
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            self.send(signal.SIGKILL)
            self.wait(0.05)
        for root in self.roots:
            root.wait()
        if self.group:
            try:
                os.rmdir(self.group)
            except OSError:
                pass


class Usage:
    """The resource usage of a tree from now on until `end`."""

    def __init__(self, tree):
        self.tree = tree
        self.before = tree.processor(), tree.own_processor()
        self.most = self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self):
        while not self.ended.wait(0.1):
            self.most = max(self.most, len(self.tree.processes()))

    def end(self):
        self.ended.set()
        self.thread.join()
        return dict(
            cpu=self.tree.processor() - self.before[0], own_cpu=self.tree.own_processor() - self.before[1],
            peak=self.tree.memory("VmHWM") / 2**20, processes=self.most)
