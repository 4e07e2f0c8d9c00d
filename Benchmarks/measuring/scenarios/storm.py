"""Many files at once in one directory."""

from .. import peers
from ..figures import Budget, tally
from ..processes import Usage
from ..rounds import Scenario
from ..systems import REFERENCES, WAYS, Alight, AlightBatch, AlightBuiltIn, AlightServed
from ..tables import grouped


class Storm(Scenario):
    name = "storm"
    columns = (
        ("rate", "files/s"), ("rate_ratio", "× C"), ("rate_loop", "× loop"), ("once", "once"),
        ("lost", "lost, all runs"), ("twice", "twice, all runs"), ("own", "own CPU µs a file"), ("cpu", "CPU of all s"),
        ("peak", "peak MiB"), ("processes", "processes"), ("overflows", "overflows"))
    ratios = ("rate",)
    rivals = dict(loop=peers.Inotifywait)

    def count(self):
        return self.size(20_000, 1_200)

    def bound(self):
        """Returns the seconds after which a system that is not done is stopped."""
        return self.size(60, 3)

    def title(self):
        return "Storm: %s files of 1 kB at once into one directory" % grouped(self.count())

    def systems(self):
        return [*REFERENCES, *WAYS, *(peer for peer in peers.PEERS if not peer.is_fixed)]

    def measure(self, place, system):
        system.start()
        place.wait_ready(system)
        place.set_mark()
        before, usage = system.overflows(), Usage(system.tree)
        closed = place.arrive("files", place.watched, self.count(), 0, 1000, "file")
        done = place.wait_quiet(system, self.count(), self.bound())
        result = dict(usage.end(), stopped=None if done else "stopped after %d s" % self.bound())
        result["own"] = result.pop("own_cpu") / self.count() * 1e6
        actions = place.actions()
        result.update(tally([action.name for action in actions], closed))
        if before is not None:
            result["overflows"] = system.overflows() - before
        if not done:
            # The number of files that it would have lost is unknown.
            result["lost"] = None
        if actions:
            seconds = (max(action.time for action in actions) - min(closed.values())) / 1e9
            result["rate"] = len(actions) / seconds
        return result

    def budgets(self, system):
        kept = [
            Budget("lost", "lost = 0", most=0), Budget("twice", "twice = 0", most=0),
            Budget("peak", "peak ≤ 55 MiB", most=55)]
        if system is Alight:
            return [
                Budget("rate_loop", "rate ≥ 1.3 × loop", least=1.3), Budget("own", "own CPU ≤ 240 µs", most=240), *kept]
        if system is AlightBuiltIn:
            return [Budget("rate", "rate ≥ 16,000", least=16_000), *kept]
        if system is AlightServed:
            return [Budget("rate", "rate ≥ 8,000", least=8000), *kept]
        if system is AlightBatch:
            return [Budget("rate", "rate ≥ 20,000", least=20_000), Budget("own", "own CPU ≤ 60 µs", most=60), *kept]
        return kept
