"""Interruptions: a writer that reopens its file repeatedly, and a kill of the watching program."""

import os
import time

from ..figures import Budget, tally
from ..rounds import Scenario
from ..systems import Alight, Reference
from ..tables import grouped

CHUNK = b"x" * 1024


class PatientAlight(Alight):
    """With the default of `settle`."""

    name = "Alight, settle 2s"
    settle = "2s"
    quiet = 3


class Writer(Scenario):
    """A file that is opened, appended to and closed many times, and a file that stays open."""

    name = "writer"
    columns = (
        ("reopened", "actions, reopened"), ("open", "actions, open"), ("incomplete", "on an incomplete file"),
        ("lost", "never on the whole, all runs"))
    chunks = 50

    def pause(self):
        return self.size(0.1, 0.02)

    def repetitions(self):
        return self.options.runs or self.size(5, 1)

    def title(self):
        return "Slow writers: %d times 1 KiB, one each %d ms; one file reopened for each, one remains open" % (
            self.chunks, self.pause() * 1000)

    def systems(self):
        return [Reference, Alight, PatientAlight, *self.peers()]

    def measure(self, place, system):
        system.start()
        place.wait_ready(system)
        place.set_mark()
        with open(os.path.join(place.watched, "open"), "wb", buffering=0) as kept:
            for _ in range(self.chunks):
                kept.write(CHUNK)
                with open(os.path.join(place.watched, "reopened"), "ab") as file:
                    file.write(CHUNK)
                time.sleep(self.pause())
        place.wait_quiet(system, 2, 15)
        actions = place.actions()
        whole = self.chunks * len(CHUNK)
        done = {action.name for action in actions if action.size == whole}
        return dict(
            reopened=sum(action.name == "reopened" for action in actions),
            open=sum(action.name == "open" for action in actions),
            incomplete=sum(action.size != whole for action in actions), lost=2 - len(done))

    def budgets(self, system):
        if system is Alight:
            return [Budget("lost", "never = 0", most=0)]
        return [
            Budget("incomplete", "incomplete = 0", most=0), Budget("lost", "never = 0", most=0),
            Budget("reopened", "reopened: 1 action", most=1), Budget("open", "open: 1 action", most=1)]


class Crash(Scenario):
    """SIGKILL in the middle of a storm, and a restart."""

    name = "crash"
    columns = (("once", "once"), ("lost", "lost, all runs"), ("twice", "twice, all runs"))

    def files(self):
        return self.size(2000, 600)

    def repetitions(self):
        return self.options.runs or self.size(5, 1)

    def title(self):
        return "kill -9 in a storm of %s files, 2,000 per second, and another start" % grouped(self.files())

    def systems(self):
        return [Reference, Alight, *self.peers()]

    def measure(self, place, system):
        system.start()
        place.wait_ready(system)
        place.set_mark()
        arriving = place.begin_arrive("files", place.watched, self.files(), 500, 1000, "file")
        # In the middle of the storm, not before the first file.
        time.sleep(self.files() / 2000 * 0.4)
        system.kill()
        time.sleep(0.1)
        system.start()
        closed = place.arrivals(arriving)
        place.wait_quiet(system, self.files(), 40)
        return tally([action.name for action in place.actions()], closed)

    def budgets(self, _system):
        return [Budget("lost", "lost = 0", most=0)]
