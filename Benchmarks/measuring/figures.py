"""From what was measured to figures: counts, medians, ratios, budgets. All of it is pure."""

import math
import statistics


def percentile(values, share):
    """The least value that `share` of all, 0 to 1, don't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def tally(names, expected):
    """How many of the expected files were handled how often; `names` is one for each action, in any order."""
    times = dict.fromkeys(expected, 0)
    strays = 0
    for name in names:
        if name in times:
            times[name] += 1
        else:
            strays += 1
    counts = list(times.values())
    return dict(
        files=len(counts), once=counts.count(1), lost=counts.count(0), twice=sum(count > 1 for count in counts),
        actions=sum(counts), strays=strays)


def covered_since(probes, seen):
    """From when on nothing was missed: `probes` has the time of each by its name. None if the last was missed, too."""
    since = None
    for name, time in sorted(probes.items(), key=lambda probe: probe[1]):
        if name not in seen:
            since = None
        elif since is None:
            since = time
    return since


def exponent(points):
    """The slope of the line through pairs of a number and its cost, both as logarithms: 1 if each costs the same."""
    line = statistics.linear_regression(*zip(*[(math.log(number), math.log(cost)) for number, cost in points]))
    return line.slope


def median(values):
    """Of those that are there; None of none. A count stays a whole number."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def ratio(runs, references, key):
    """The median of the ratios to the reference, each within one repetition; both are by repetition."""
    ratios = [
        run[key] / references[repetition][key] for repetition, run in runs.items()
        if run.get(key) is not None and references.get(repetition, {}).get(key)]
    return median(ratios)


def summary(runs, references, ratios=()):
    """The median of each figure over all repetitions, and of the ratios: `rate` becomes `rate_ratio` besides."""
    keys = dict.fromkeys(key for run in runs.values() for key in run)
    result = {key: median([run.get(key) for run in runs.values()]) for key in keys}
    for key in ratios:
        result[key + "_ratio"] = ratio(runs, references, key)
    # What was lost once is not forgiven for four times without a loss.
    for key in ("lost", "twice", "overflows", "incomplete"):
        if key in result:
            result[key] = sum(run.get(key) or 0 for run in runs.values())
    result["runs"] = len(runs)
    return result


class Budget:
    """A bound on one figure of a summary: `most` or `least`, and how it is told."""

    def __init__(self, key, words, most=None, least=None):
        self.key, self.words, self.most, self.least = key, words, most, least

    def is_kept(self, figures):
        """None if the figure is not there."""
        value = figures.get(self.key)
        if value is None:
            return None
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)


def verdict(budgets, figures):
    """`within`, or the names of what was missed or not measured; empty without a budget."""
    missed = []
    for budget in budgets:
        name, kept = budget.words.split()[0].rstrip(":"), budget.is_kept(figures)
        if kept is not True:
            missed.append(name if kept is False else name + " was not measured")
    if missed:
        return "MISSED: " + ", ".join(missed)
    return "within" if budgets else ""
