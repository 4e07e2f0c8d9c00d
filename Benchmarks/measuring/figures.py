"""Figures from measurements: counts, medians, ratios, budgets. All of it is pure."""

import math
import statistics


def percentile(values, share):
    """Returns the least value that the share of all values, 0 to 1, does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def tally(names, expected):
    """Counts the expected files by how often they were handled; `names` has one entry per action, in any order."""
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
    """Returns the time from which no probe was missed, or None; `probes` has the time of each by name."""
    since = None
    for name, time in sorted(probes.items(), key=lambda probe: probe[1]):
        if name not in seen:
            since = None
        elif since is None:
            since = time
    return since


def exponent(points):
    """Returns the slope of the line through the logarithms of numbers and costs: 1 if each item costs the same."""
    line = statistics.linear_regression(*zip(*[(math.log(number), math.log(cost)) for number, cost in points]))
    return line.slope


def median(values):
    """Returns the median of the values that are not None; None if there are none. A count stays a whole number."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def ratio(runs, references, key):
    """Returns the median of the ratios to the reference, each within one repetition; both are by repetition."""
    ratios = [
        run[key] / references[repetition][key] for repetition, run in runs.items()
        if run.get(key) is not None and references.get(repetition, {}).get(key)]
    return median(ratios)


def summary(runs, references, ratios=()):
    """Returns the median of each figure over all repetitions, and of the ratios: for `rate`, also `rate_ratio`."""
    keys = dict.fromkeys(key for run in runs.values() for key in run)
    result = {key: median([run.get(key) for run in runs.values()]) for key in keys}
    for key in ratios:
        result[key + "_ratio"] = ratio(runs, references, key)
    # A loss in one repetition counts, even if there is none in the others.
    for key in ("lost", "twice", "overflows", "incomplete"):
        if key in result:
            result[key] = sum(run.get(key) or 0 for run in runs.values())
    result["runs"] = len(runs)
    return result


class Budget:
    """A bound on one figure of a summary: `most` or `least`, and its description."""

    def __init__(self, key, words, most=None, least=None):
        self.key, self.words, self.most, self.least = key, words, most, least

    def is_kept(self, figures):
        """Returns whether the figure is within the bound; None if there is no such figure."""
        value = figures.get(self.key)
        if value is None:
            return None
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)


def verdict(budgets, figures):
    """Returns `within`, or the names of the budgets that were missed or not measured; empty without a budget."""
    missed = []
    for budget in budgets:
        name, kept = budget.words.split()[0].rstrip(":"), budget.is_kept(figures)
        if kept is not True:
            missed.append(name if kept is False else name + " was not measured")
    if missed:
        return "MISSED: " + ", ".join(missed)
    return "within" if budgets else ""
