"""Tests of /metrics: promtool accepts them, and the values match the completed work.

    python3 -m unittest discover -s Tests/PluginTests -p test_metrics.py -v

`make test` installs promtool by packaging/get-promtool; without it, or without the program, this fails.
"""

import json
import os
import re
import subprocess
import time
import unittest
import urllib.request

import test_api

PROMTOOL = os.path.join(test_api.CHECKOUT, ".build/promtool")
DASHBOARD = os.path.join(test_api.CHECKOUT, "packaging/grafana-dashboard.json")
# Metrics that appear only after the first occurrence.
RARE = {"alight_overflows_total", "alight_rescan_found_total"}


class MetricsTest(unittest.TestCase):
    setUp = test_api.APITest.setUp
    stop = test_api.APITest.stop

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as response:
            self.assertEqual(response.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return response.read().decode()

    def wait_until_counted(self, line):
        """Waits until the metrics contain the line, and returns them."""
        deadline = time.monotonic() + 60
        while line not in (text := self.metrics()).splitlines():
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.02)
        return text

    def test_promtool_reports_no_errors(self):
        for name in ("a.txt", "b.txt", "c.bad"):
            with open(os.path.join(self.directory, "in", name), "w", encoding="utf-8") as file:
                file.write("x")
        self.wait_until_counted('alight_jobs_total{rule="good",state="succeeded"} 2')
        text = self.wait_until_counted('alight_jobs_total{rule="bad",state="failed"} 1')
        check = subprocess.run(
            [PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""), text)
        lines = text.splitlines()
        for line in ('alight_events_total{rule="good",kind="created"} 2', 'alight_run_seconds_count{rule="bad"} 1',
                     'alight_attempts_total{rule="bad",outcome="retry"} 1', "alight_wait_seconds_count 3",
                     'alight_roots{backend="inotify"} 2', "alight_degraded 0", "alight_settling_paths 0"):
            self.assertIn(line, lines)

    def value(self, name):
        return float(re.search(rf"^{name} (.*)$", self.metrics(), re.MULTILINE)[1])

    def test_the_output_of_actions_does_not_count_as_settling(self):
        for number in range(5):
            with open(os.path.join(self.directory, "in", f"{number}.copied"), "w", encoding="utf-8") as file:
                file.write("x")
        self.wait_until_counted('alight_jobs_total{rule="seen",state="succeeded"} 5')
        self.assertEqual(self.value("alight_settle_seconds_count"), 5)
        # A change by another process counts.
        with open(os.path.join(self.directory, "done", "0.copied"), "w", encoding="utf-8") as file:
            file.write("changed")
        self.wait_until_counted('alight_jobs_total{rule="seen",state="succeeded"} 6')
        self.assertEqual(self.value("alight_settle_seconds_count"), 6)

    def test_the_wait_of_a_retried_job_is_counted_from_the_retry(self):
        with open(os.path.join(self.directory, "in", "c.bad"), "w", encoding="utf-8") as file:
            file.write("x")
        self.wait_until_counted('alight_jobs_total{rule="bad",state="failed"} 1')
        time.sleep(5)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/jobs", timeout=60) as response:
            job = json.load(response)["jobs"][0]["id"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/jobs/{job}/retry", data=b"{}",
            headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).close()
        self.wait_until_counted('alight_jobs_total{rule="bad",state="failed"} 2')
        self.assertEqual(self.value("alight_wait_seconds_count"), 2)
        self.assertLess(self.value("alight_wait_seconds_sum"), 4)

    def test_the_grafana_dashboard_queries_existing_metrics(self):
        with open(os.path.join(self.directory, "in", "a.txt"), "w", encoding="utf-8") as file:
            file.write("x")
        text = self.wait_until_counted('alight_jobs_total{rule="good",state="succeeded"} 1')
        existing = set(re.findall(r"^([a-z_]+)(?:\{.*\})? ", text, re.MULTILINE)) | RARE
        with open(DASHBOARD, encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        queried = set()
        for expression in [target["expr"] for panel in panels for target in panel["targets"]]:
            queried |= set(re.findall(r"\b(?:alight|process)_[a-z_]+", expression))
        self.assertGreater(len(queried), 10)
        self.assertEqual(queried - existing, set())


if __name__ == "__main__":
    unittest.main()
