"""The time from the close of a file to the first instruction of the action, without other work."""

from .. import peers
from ..figures import Budget, percentile, tally
from ..rounds import Scenario
from ..systems import REFERENCES, WAYS, Alight


class Latency(Scenario):
    name = "latency"
    columns = (
        ("p50", "p50 ms"), ("p50_ratio", "× C"), ("p50_loop", "× loop"), ("p99", "p99 ms"), ("p99_loop", "× loop"),
        ("most", "max ms"), ("once", "once"), ("lost", "lost, all runs"), ("twice", "twice, all runs"),
        ("cpu", "CPU ms a file"))
    ratios = ("p50", "p99")
    rivals = dict(loop=peers.Inotifywait)

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
        result = dict(tally([action.name for action in actions], closed), cpu=usage / self.count() * 1000)
        if not done:
            result["stopped"] = "stopped after 20 s"
        if waits:
            result.update(p50=percentile(waits, 0.5), p99=percentile(waits, 0.99), most=max(waits))
        return result

    def budgets(self, system):
        kept = [Budget("lost", "lost = 0", most=0), Budget("twice", "twice = 0", most=0)]
        if system is not Alight:
            return kept
        return [
            Budget("p50_loop", "p50 ≤ 0.9 × loop", most=0.9), Budget("p99_loop", "p99 ≤ 1 × loop", most=1), *kept]
