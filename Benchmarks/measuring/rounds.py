"""Lets systems take turns, repeatedly, and makes a table of the results."""

import subprocess
import sys
import time

from .figures import ratio, summary, verdict
from .peers import FEW, PEERS
from .processes import Failure
from .records import Place
from .systems import REFERENCES, Reference
from .tables import table


class Scenario:
    """A task for each system. `columns` has the figures of the table, by key and heading."""

    name = ""
    columns = ()
    # The figures that are compared with the reference, and with other systems, by suffix.
    ratios = ()
    rivals = {}

    def __init__(self, options):
        self.options = options

    def size(self, whole, quick):
        return quick if self.options.quick else whole

    def title(self):
        raise NotImplementedError

    def systems(self):
        raise NotImplementedError

    def reference(self, _system):
        """Returns the system that this one is compared with."""
        return Reference

    def repetitions(self):
        return self.options.runs or self.size(5, 3)

    def peers(self):
        """Returns the peers that take part in scenarios with new files."""
        return [peer for peer in PEERS if not peer.is_fixed and (peer in FEW or not self.options.quick)]

    def prepare(self, place, system):
        """Creates the files that exist before the system starts."""

    def measure(self, place, system):
        """Returns the figures of one run. The system has been prepared, but not started. With `stopped`, the reason why
        it was stopped, it is not run again."""
        raise NotImplementedError

    def budgets(self, _system):
        """Returns the bounds for one kind of action of Alight."""
        return []


def log(words):
    print(words, file=sys.stderr, flush=True)


def new_place(options):
    return Place(options.programs, options.root, options.disk, 1.5 if options.quick else 4)


def run_once(scenario, kind):
    """Performs one run of one system."""
    with new_place(scenario.options) as place:
        system = kind(place)
        try:
            scenario.prepare(place, system)
            system.prepare()
            return scenario.measure(place, system)
        finally:
            system.end_if_started()


def take_turns(kinds, repetitions, once, measure):
    """Measures A B C A B C …, those of `once` only in the first turn. `measure` receives a kind and a repetition.

    Returns the runs of each kind, by repetition, and the reasons why kinds were excluded from some turn on. A kind is
    excluded as soon as it fails or takes too long.
    """
    runs, out = {kind: {} for kind in kinds}, {}
    for repetition in range(repetitions):
        for kind in kinds:
            if kind in out or (repetition > 0 and kind in once):
                continue
            try:
                figures = measure(kind, repetition)
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                out[kind] = str(failure)
                continue
            stopped = figures.pop("stopped", None)
            if stopped:
                out[kind] = stopped
            runs[kind][repetition] = figures
    return runs, out


def rows_of(scenario, runs, out):
    """Returns the row of each system."""
    rows = {
        kind: summary(of, runs.get(scenario.reference(kind), {}), scenario.ratios) for kind, of in runs.items()}
    for kind, row in rows.items():
        for suffix, rival in scenario.rivals.items():
            for key in scenario.ratios:
                row["%s_%s" % (key, suffix)] = ratio(runs[kind], runs.get(rival, {}), key)
        budgets = scenario.budgets(kind) if kind.is_alight else []
        row.update(
            system=kind.name, budget="; ".join(budget.words for budget in budgets), within=verdict(budgets, row),
            note=out.get(kind, ""))
    return list(rows.values())


def run(scenario):
    """Performs all repetitions; prints the table, and returns it with all measurements."""
    kinds = [kind for kind in scenario.systems() if not kind.missing()]
    left_out = [
        "%s: '%s' is not installed" % (kind.name, kind.missing()) for kind in scenario.systems() if kind.missing()]
    own = [kind for kind in kinds if kind.is_alight or kind in REFERENCES]
    once = set(kinds).difference(own) if scenario.options.quick else set()

    def measure(kind, repetition):
        begin = time.monotonic()
        try:
            return run_once(scenario, kind)
        finally:
            log("  %s %d: %s, %.1f s" % (scenario.name, repetition + 1, kind.name, time.monotonic() - begin))

    runs, out = take_turns(kinds, scenario.repetitions(), once, measure)
    rows = rows_of(scenario, runs, out)
    columns = [("system", "system"), ("runs", "runs"), *scenario.columns, ("budget", "budget"), ("within", ""),
               ("note", "")]
    shown = [column for column in columns if column[0] not in ("budget", "within", "note")
             or any(row[column[0]] for row in rows)]
    print("\n".join(table(scenario.title(), shown, rows)), flush=True)
    for words in left_out:
        print("skipped: " + words, flush=True)
    return dict(
        title=scenario.title(), rows=rows, samples={kind.name: list(of.values()) for kind, of in runs.items()},
        left_out=left_out, failed=[kind.name for kind in own if kind in out])
