"""Lets systems take turns, again and again, and makes a table of what came of it."""

import subprocess
import sys
import time

from .figures import summary, verdict
from .peers import FEW, PEERS
from .processes import Failure
from .records import Place
from .systems import REFERENCES, Reference
from .tables import table


class Scenario:
    """What is asked of each system. In `columns` are the figures that are shown, by key and heading."""

    name = ""
    columns = ()
    # Figures that are compared with the reference.
    ratios = ()

    def __init__(self, options):
        self.options = options

    def size(self, whole, quick):
        return quick if self.options.quick else whole

    def title(self):
        raise NotImplementedError

    def systems(self):
        raise NotImplementedError

    def reference(self, _system):
        """What the system is compared with."""
        return Reference

    def repetitions(self):
        return self.options.runs or self.size(5, 3)

    def peers(self):
        """Those that take part where files come that were not there before."""
        return [peer for peer in PEERS if not peer.is_fixed and (peer in FEW or not self.options.quick)]

    def prepare(self, place, system):
        """What is there before the system starts."""

    def measure(self, place, system):
        """Figures of one run. The system has been prepared, and not started. With `stopped`, why it was, it is not run
        again."""
        raise NotImplementedError

    def budgets(self, _system, _rows):
        """The bounds for one of Alight's ways; `rows` are those of all systems, by system."""
        return []


def note(words):
    print(words, file=sys.stderr, flush=True)


def new_place(options):
    return Place(options.programs, options.root, options.disk, 1.5 if options.quick else 4)


def play(scenario, kind):
    """One run of one system."""
    with new_place(scenario.options) as place:
        system = kind(place)
        try:
            scenario.prepare(place, system)
            system.prepare()
            return scenario.measure(place, system)
        finally:
            system.end_if_begun()


def run(scenario):
    """All repetitions; gives the rows of the table, and prints it."""
    runs, out, left_out = {}, {}, []
    for kind in scenario.systems():
        if kind.missing():
            left_out.append("%s: '%s' is not installed" % (kind.name, kind.missing()))
        else:
            runs[kind] = {}
    for repetition in range(scenario.repetitions()):
        for kind in runs:
            is_peer = not kind.is_alight and kind not in REFERENCES
            if kind in out or (scenario.options.quick and is_peer and repetition > 0):
                continue
            begin = time.monotonic()
            try:
                figures = play(scenario, kind)
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                out[kind] = str(failure)
                note("  %s: %s: %s" % (scenario.name, kind.name, failure))
                continue
            runs[kind][repetition] = figures
            # Once is enough for what takes too long.
            stopped = figures.pop("stopped", None)
            if stopped:
                out[kind] = stopped
            note("  %s %d: %s, %.1f s" % (scenario.name, repetition + 1, kind.name, time.monotonic() - begin))
    rows = {
        kind: summary(of, runs.get(scenario.reference(kind), {}), scenario.ratios) for kind, of in runs.items()}
    for kind, row in rows.items():
        budgets = scenario.budgets(kind, rows) if kind.is_alight else []
        row.update(
            system=kind.name, budget="; ".join(budget.words for budget in budgets), within=verdict(budgets, row),
            note=out.get(kind, ""))
    columns = [("system", "system"), ("runs", "runs"), *scenario.columns, ("budget", "budget"), ("within", ""),
               ("note", "")]
    shown = [column for column in columns if column[0] not in ("budget", "within", "note")
             or any(row.get(column[0]) for row in rows.values())]
    print("\n".join(table(scenario.title(), shown, rows.values())), flush=True)
    for words in left_out:
        print("left out: " + words, flush=True)
    samples = {kind.name: list(of.values()) for kind, of in runs.items()}
    return dict(title=scenario.title(), rows=list(rows.values()), samples=samples, left_out=left_out)
