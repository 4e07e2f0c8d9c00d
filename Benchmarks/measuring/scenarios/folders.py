"""Many directories at the start: the time until all are watched, the cost, and the wake-ups when idle."""

import os
import random
import subprocess
import time

from ..figures import Budget, covered_since
from ..rounds import Scenario, new_place
from ..systems import Alight, Reference
from ..tables import grouped

# Seconds between two probes, and the number of consecutive probes after which none is missed any more.
PAUSE = 0.02
ENOUGH = 40
# The number of files that are created when everything is idle.
LATE = 20


def put(directory, name):
    """Creates a file, and returns the time of its close."""
    file = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT, 0o644)
    os.write(file, b"x")
    closed = time.monotonic_ns()
    os.close(file)
    return closed


class Folders(Scenario):
    name = "folders"
    folders = 20_000
    columns = (
        ("covered", "covered s"), ("covered_ratio", "× C"), ("cpu", "CPU s"), ("resident", "resident MiB"),
        ("each", "bytes each"), ("wakeups", "wake-ups"), ("late", "found later"))
    ratios = ("covered",)

    def __init__(self, options):
        super().__init__(options)
        # The memory of each system without directories, in bytes; and the systems that have been idle.
        self.empty = {}
        self.rested = set()

    def count(self):
        return self.size(self.folders, self.folders // 8)

    def repetitions(self):
        return self.options.runs or self.size(5, 1)

    def idle(self):
        return self.size(60, 2)

    def bound(self):
        return self.size(45, 8)

    def title(self):
        return "%s directories: until no file is missed anywhere; wake-ups in %d idle seconds; %d later files" % (
            grouped(self.count()), self.idle(), LATE)

    def systems(self):
        return [Reference, Alight, *self.peers()]

    def prepare(self, place, system):
        subprocess.run([place.program("load"), "tree", place.watched, str(self.count()), "0"], check=True)
        if type(system) not in self.empty:
            self.empty[type(system)] = self.resident_when_empty(type(system))

    def resident_when_empty(self, kind):
        with new_place(self.options) as place:
            system = kind(place)
            try:
                system.prepare()
                system.start()
                place.wait_ready(system)
                return system.tree.memory("VmRSS")
            finally:
                system.end_if_started()

    def measure(self, place, system):
        tree = [directory for directory, _, _ in os.walk(place.watched)]
        chance = random.Random(7)
        system.start()
        probes = {}
        while time.monotonic() < system.started + self.bound() and system.is_alive():
            name = "early%06d" % len(probes)
            probes[name] = put(chance.choice(tree), name)
            time.sleep(PAUSE)
            if len(probes) % 10 == 0 and self.is_covered(place, system, probes):
                break
        place.wait_quiet(system, 0, 10)
        since = covered_since(probes, self.seen(place))
        if since is None:
            return dict(stopped="files still missed after %d s" % self.bound())
        resident = system.tree.memory("VmRSS")
        result = dict(
            covered=since / 1e9 - system.started, cpu=system.tree.processor(), resident=resident / 2**20,
            each=(resident - self.empty[type(system)]) / self.count())
        if type(system) not in self.rested:
            self.rested.add(type(system))
            time.sleep(1)
            before = system.tree.switches()
            time.sleep(self.idle())
            result["wakeups"] = system.tree.switches() - before
        place.set_mark()
        for number in range(LATE):
            put(chance.choice(tree), "late%06d" % number)
        place.wait_quiet(system, LATE, 10)
        result["late"] = len(self.seen(place))
        return result

    @staticmethod
    def seen(place):
        return {action.name for action in place.actions()}

    def is_covered(self, place, system, probes):
        """Whether the last probes were all seen, except those whose action may still come."""
        names = list(probes)[:len(probes) - int((system.quiet + 0.2) / PAUSE)][-ENOUGH:]
        return len(names) == ENOUGH and self.seen(place).issuperset(names)

    def budgets(self, _system):
        return [
            Budget("covered_ratio", "covered ≤ 1.3 ×", most=1.3), Budget("wakeups", "wake-ups = 0", most=0),
            Budget("late", "later = %d" % LATE, least=LATE)]


class ManyFolders(Folders):
    name = "many-folders"
    folders = 100_000

    def idle(self):
        return self.size(10, 1)
