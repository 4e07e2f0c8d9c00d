"""Many files at once in one folder."""

from .. import peers
from ..figures import Budget, tally
from ..processes import Usage
from ..rounds import Scenario
from ..systems import REFERENCES, WAYS, Alight, AlightBatch, AlightBuiltIn
from ..tables import grouped


class Storm(Scenario):
    name = "storm"
    columns = (
        ("rate", "files/s"), ("rate_ratio", "× C"), ("once", "once"), ("lost", "lost, all runs"),
        ("twice", "twice, all runs"), ("own_cpu", "own CPU s"), ("cpu", "CPU of all s"), ("peak", "peak MiB"),
        ("processes", "processes"), ("overflows", "overflows"))
    ratios = ("rate",)

    def count(self):
        return self.size(20_000, 1_200)

    def bound(self):
        """Whoever has not done all by then is stopped."""
        return self.size(60, 3)

    def title(self):
        return "Storm: %s files of 1 kB at once into one folder" % grouped(self.count())

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
        actions = place.actions()
        result.update(tally([action.name for action in actions], closed))
        if before is not None:
            result["overflows"] = system.overflows() - before
        if not done:
            # What it would have lost is not known.
            result["lost"] = None
        if actions:
            seconds = (max(action.time for action in actions) - min(closed.values())) / 1e9
            result["rate"] = len(actions) / seconds
        return result

    def budgets(self, system, rows):
        kept = [
            Budget("lost", "lost = 0", most=0), Budget("twice", "twice = 0", most=0),
            Budget("peak", "peak < 60 MiB", most=60)]
        if system is Alight:
            least = [row["cpu"] for kind, row in rows.items()
                     if kind in peers.PEERS and kind is not peers.Watchman and row.get("once") == self.count()]
            if least:
                most = 1.2 * min(least)
                kept.append(Budget("cpu", "CPU ≤ %.1f s (the best peer + 20 %%)" % most, most=most))
            return [Budget("rate_ratio", "rate ≥ 0.55 ×", least=0.55), *kept]
        if system is AlightBuiltIn:
            return [Budget("rate", "rate ≥ 10,000", least=10_000), *kept]
        if system is AlightBatch:
            watchman = rows.get(peers.Watchman, {})
            if watchman.get("rate") and watchman.get("once") == self.count():
                least, most = watchman["rate"], 1.2 * watchman["cpu"]
                kept += [
                    Budget("rate", "rate ≥ watchman's %s" % grouped(round(least)), least=least),
                    Budget("cpu", "CPU ≤ %.2f s (watchman + 20 %%)" % most, most=most)]
        return kept
