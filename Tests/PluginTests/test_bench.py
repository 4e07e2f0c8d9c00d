"""Tests of the benchmarks: figures, tables, rounds, the records of actions, and trees of processes.

    python3 -m unittest discover -s Tests/PluginTests -p test_bench.py -v
"""

import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "Benchmarks"))

import test_api  # noqa: E402
from measuring import figures, processes, records, rounds, soaking, tables  # noqa: E402


class FiguresTest(unittest.TestCase):
    def test_a_percentile_is_one_of_the_values(self):
        values = list(range(100, 0, -1))
        self.assertEqual(figures.percentile(values, 0.5), 50)
        self.assertEqual(figures.percentile(values, 0.99), 99)
        self.assertEqual(figures.percentile([7], 0.99), 7)
        self.assertEqual(figures.percentile([3, 1], 0), 1)

    def test_the_tally_counts_files_and_strays(self):
        counts = figures.tally(["a", "b", "b", "x"], ["a", "b", "c"])
        self.assertEqual(counts, dict(files=3, once=1, lost=1, twice=1, actions=3, strays=1))

    def test_coverage_starts_at_the_first_probe_after_which_none_was_missed(self):
        probes = dict(d=40, a=10, c=30, b=20)
        self.assertEqual(figures.covered_since(probes, {"a", "c", "d"}), 30)
        self.assertEqual(figures.covered_since(probes, set(probes)), 10)
        self.assertIsNone(figures.covered_since(probes, {"a", "b", "c"}))
        self.assertIsNone(figures.covered_since({}, set()))

    def test_an_exponent_is_the_slope_of_the_power_law_fit(self):
        self.assertAlmostEqual(figures.exponent([(10, 5), (100, 50), (1000, 500)]), 1)
        self.assertAlmostEqual(figures.exponent([(10, 3), (100, 300)]), 2)

    def test_a_median_ignores_missing_values(self):
        self.assertEqual(figures.median([3, None, 1, 2]), 2)
        self.assertIsNone(figures.median([None]))

    def test_a_ratio_compares_runs_of_the_same_repetition(self):
        runs = {0: dict(rate=10), 1: dict(rate=40), 2: dict(rate=90)}
        references = {0: dict(rate=10), 1: dict(rate=20), 2: dict(rate=30)}
        # The ratios are 1, 2 and 3.
        self.assertEqual(figures.ratio(runs, references, "rate"), 2)
        self.assertEqual(figures.ratio({2: runs[2]}, references, "rate"), 3)
        self.assertEqual(figures.ratio({0: runs[0], 7: runs[2]}, references, "rate"), 1)
        self.assertIsNone(figures.ratio(runs, {}, "rate"))
        self.assertIsNone(figures.ratio({0: dict(rate=None)}, references, "rate"))

    def test_a_summary_has_medians_ratios_and_the_highest_loss(self):
        runs = {0: dict(rate=10, lost=0), 1: dict(rate=30, lost=2), 2: dict(rate=20, lost=0)}
        summary = figures.summary(runs, {0: dict(rate=5), 1: dict(rate=5), 2: dict(rate=5)}, ["rate"])
        self.assertEqual(summary, dict(rate=20, lost=2, rate_ratio=4, runs=3))
        self.assertEqual(figures.summary({}, {}), dict(runs=0))

    def test_a_budget_is_met_missed_or_not_measured(self):
        fast, small = figures.Budget("rate", "rate ≥ 2", least=2), figures.Budget("peak", "peak ≤ 60", most=60)
        self.assertTrue(fast.is_kept(dict(rate=2)))
        self.assertFalse(fast.is_kept(dict(rate=1.99)))
        self.assertIsNone(fast.is_kept(dict(rate=None)))
        self.assertEqual(figures.verdict([fast, small], dict(rate=3, peak=60)), "within")
        self.assertEqual(figures.verdict([fast, small], dict(rate=1, peak=61)), "MISSED: rate, peak")
        self.assertEqual(figures.verdict([fast], {}), "MISSED: rate was not measured")
        self.assertEqual(figures.verdict([], dict(rate=1)), "")


class TablesTest(unittest.TestCase):
    def test_figures_have_three_significant_digits(self):
        shown = [tables.shown(value) for value in (None, True, "x", 0, 12345, 123.6, 12.345, 1.2345, -1234.5)]
        self.assertEqual(shown, ["–", "yes", "x", "0", "12,345", "124", "12.3", "1.23", "-1,234"])

    def test_a_table_is_aligned_markdown(self):
        rows = [dict(system="C", rate=1500.0), dict(system="Alight", rate=None)]
        self.assertEqual(tables.table("Storm", [("system", "system"), ("rate", "files/s")], rows), [
            "", "Storm", "",
            "| system | files/s |",
            "|--------|--------:|",
            "| C      |   1,500 |",
            "| Alight |       – |",
        ])


class RecordsTest(unittest.TestCase):
    def test_parse_skips_probes_and_incomplete_records(self):
        data = b"".join(
            records.RECORD.pack(time, size, 4711, len(name), name)
            for time, size, name in ((10, 1000, b"file000001"), (11, 5, b"probe"), (12, -1, b"file000002")))
        actions = records.parse(data + data[:20])
        self.assertEqual(
            [(action.time, action.size, action.process, action.name) for action in actions],
            [(10, 1000, 4711, "file000001"), (12, -1, 4711, "file000002")])


class RoundsTest(unittest.TestCase):
    def test_systems_take_turns(self):
        order = []

        def measure(kind, repetition):
            order.append(kind)
            return dict(rate=repetition)

        runs, out = rounds.take_turns("ABC", 3, {"C"}, measure)
        self.assertEqual("".join(order), "ABCABAB")
        self.assertEqual(runs["B"], {0: dict(rate=0), 1: dict(rate=1), 2: dict(rate=2)})
        self.assertEqual((runs["C"], out), ({0: dict(rate=0)}, {}))

    def test_a_system_that_fails_or_takes_too_long_is_not_run_again(self):
        order = []

        def measure(kind, _repetition):
            order.append(kind)
            if kind == "F":
                raise processes.Failure("it exited")
            return dict(rate=1, stopped="stopped after 6 s" if kind == "S" else None)

        runs, out = rounds.take_turns("FSA", 2, set(), measure)
        self.assertEqual("".join(order), "FSAA")
        self.assertEqual(out, dict(F="it exited", S="stopped after 6 s"))
        self.assertEqual((runs["F"], runs["S"]), ({}, {0: dict(rate=1)}))

    def test_a_row_has_its_ratios_to_rivals(self):
        class Rival:
            name, is_alight = "rival", False

        class Race(rounds.Scenario):
            ratios, rivals = ("rate",), dict(rival=Rival)

        runs = {Rival: {0: dict(rate=10), 1: dict(rate=20)}, rounds.Reference: {0: dict(rate=5)}}
        rival, reference = rounds.rows_of(Race(None), runs, {})
        self.assertEqual((rival["rate_rival"], rival["rate_ratio"]), (1, 2))
        self.assertEqual((reference["rate_rival"], reference["rate_ratio"]), (0.5, 1))

    def test_only_the_row_of_alight_has_budgets_and_a_verdict(self):
        class Other:
            name, is_alight = "other", False

        class Own:
            name, is_alight = "own", True

        class Race(rounds.Scenario):
            ratios = ("rate",)

            def reference(self, _system):
                return Other

            def budgets(self, _system):
                return [figures.Budget("rate_ratio", "rate ≥ 2 ×", least=2)]

        runs = {Other: {0: dict(rate=10), 1: dict(rate=20)}, Own: {0: dict(rate=10), 1: dict(rate=30)}}
        other, own = rounds.rows_of(Race(None), runs, {Other: "slow"})
        self.assertEqual((own["rate_ratio"], own["budget"], own["within"]), (1.25, "rate ≥ 2 ×", "MISSED: rate"))
        self.assertEqual((other["rate_ratio"], other["budget"], other["within"], other["note"]), (1, "", "", "slow"))


class TreeTest(unittest.TestCase):
    """Uses only /proc, as without the permission to create a cgroup."""

    def setUp(self):
        base, processes.group_base = processes.group_base, lambda: None
        self.addCleanup(setattr, processes, "group_base", base)
        self.tree = processes.Tree()
        self.addCleanup(self.tree.kill)

    def wait_for(self, count):
        deadline = time.monotonic() + 60
        while len(self.tree.processes()) != count:
            self.assertLess(time.monotonic(), deadline, self.tree.processes())
            time.sleep(0.01)

    def test_descendants_belong_to_the_tree_and_are_killed_with_it(self):
        # The second sleep is an orphan.
        root = self.tree.start(["bash", "-c", "sleep 600 & (sleep 600 &) ; wait"])
        self.wait_for(3)
        self.assertIn(root.pid, self.tree.processes())
        self.assertGreater(self.tree.memory("VmRSS"), 0)
        self.assertTrue(self.tree.is_alive())
        self.tree.kill()
        self.assertEqual((self.tree.processes(), self.tree.is_alive()), ([], False))

    @unittest.skipIf(processes.KCMP is None, "not for this processor")
    def test_shared_memory_counts_once(self):
        launcher = os.path.join(os.path.dirname(test_api.ALIGHT), "alight-launch")
        started = "import socket, subprocess, sys\nours, theirs = socket.socketpair()\n" \
                  "subprocess.run([sys.argv[1]], stdin=theirs)"
        root = self.tree.start(["python3", "-Sc", started, launcher])
        # The launcher has a child that waits for a plan.
        self.wait_for(3)
        memory = {process: processes.status_field(process, "VmRSS") for process in self.tree.processes()}
        self.assertGreater(memory.pop(root.pid), 0)
        one, other = memory
        self.assertTrue(processes.share_memory(one, other))
        self.assertFalse(processes.share_memory(one, root.pid))
        whole = processes.status_field(root.pid, "VmRSS") + memory[one]
        self.assertAlmostEqual(self.tree.memory("VmRSS") / 1024, whole, delta=400)

    def test_the_processor_time_includes_exited_processes(self):
        self.tree.start(["bash", "-c", "for n in {1..300000}; do :; done & wait; echo; exec sleep 600"],
                        stdout=subprocess.PIPE)
        with self.tree.roots[0].stdout as output:
            self.assertEqual(output.readline(), b"\n")
        self.assertGreater(self.tree.processor(), self.tree.own_processor())


class SoakingTest(unittest.TestCase):
    METRICS = "# TYPE process_threads gauge\nprocess_threads 12\nalight_queue_jobs{state=\"pending\"} 3\n" \
              "alight_queue_jobs{state=\"running\"} 1\n"

    def test_metrics_are_summed_over_their_labels(self):
        values = soaking.parse(self.METRICS)
        self.assertEqual(values["process_threads"], 12)
        self.assertEqual(values["alight_queue_jobs"], 4)

    def test_a_slope_is_that_of_the_least_squares_line(self):
        self.assertAlmostEqual(soaking.slope([(0, 5), (10, 25), (20, 45)]), 2)
        self.assertAlmostEqual(soaking.slope([(0, 5), (1, 9), (2, 5)]), 0)
        self.assertEqual(soaking.slope([(3, 5)]), 0)

    def test_only_the_last_half_counts(self):
        grows = [(second, second) for second in range(100)]
        warms_up = [(second, min(second, 30)) for second in range(100)]
        self.assertAlmostEqual(soaking.growth(grows), 50, delta=1)
        self.assertAlmostEqual(soaking.growth(warms_up), 0, delta=0.01)


if __name__ == "__main__":
    unittest.main()
