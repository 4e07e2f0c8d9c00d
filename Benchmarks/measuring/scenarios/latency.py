"""The time from the close of a file to the first instruction of the action, without other work."""

from .. import peers
from ..figures import Budget, percentile, tally
from ..rounds import Scenario
from ..systems import REFERENCES, WAYS, Alight, AlightBuiltIn, AlightServed


class Latency(Scenario):
    name = "latency"
    columns = (
        ("p50", "p50 ms"), ("p50_ratio", "× C"), ("p99", "p99 ms"), ("p99_ratio", "× C"), ("most", "max ms"),
        ("once", "once"), ("lost", "lost, all runs"), ("twice", "twice, all runs"), ("cpu", "CPU s"))
    ratios = ("p50", "p99")

    def count(self):
        return self.size(300, 40)

    def title(self):
        return "Latency: %d files, one each 20 ms; from the close to the first instruction of the action" % self.count()

    def systems(self):
        return [*REFERENCES, *(way for way in WAYS if not way.more), *peers.PEERS]

    def prepare(self, place, system):
        if system.is_fixed:
            place.probe(0)
            place.arrive("files", place.watched, self.count(), 0, 1000, "file")

    def measure(self, place, system):
        system.start()
        place.wait_ready(system)
        place.set_mark()
        usage = system.tree.processor()
        closed = place.arrive("files", place.watched, self.count(), 20_000, 1000, "file")
        done = place.wait_quiet(system, self.count(), 20)
        usage = system.tree.processor() - usage
        actions, first = place.actions(), {}
        for action in actions:
            first[action.name] = min(first.get(action.name, action.time), action.time)
        waits = [(first[name] - time) / 1e6 for name, time in closed.items() if name in first]
        result = dict(tally([action.name for action in actions], closed), cpu=usage)
        if not done:
            result["stopped"] = "stopped after 20 s"
        if waits:
            result.update(p50=percentile(waits, 0.5), p99=percentile(waits, 0.99), most=max(waits))
        return result

    def budgets(self, system):
        kept = [Budget("lost", "lost = 0", most=0), Budget("twice", "twice = 0", most=0)]
        if system is Alight:
            kept = [Budget("p99_ratio", "p99 ≤ 2 ×", most=2), *kept]
            return [Budget("p50_ratio", "p50 ≤ 1.3 ×", most=1.3), *kept]
        if system in (AlightBuiltIn, AlightServed):
            return [Budget("p50_ratio", "p50 ≤ 0.5 ×", most=0.5), *kept]
        return kept
