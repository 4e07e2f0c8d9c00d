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
                     'alight_attempts_total{rule="bad",outcome="failed"} 1', "alight_wait_seconds_count 3",
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

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as response:
            return response.read().decode()

    def command(self, *arguments):
        control = os.path.join(self.directory, "run/control.sock")
        result = subprocess.run(
            [test_api.ALIGHT, *arguments], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "ALIGHT_CONTROL": control})
        return result.stdout

    def wait_for_status(self, condition):
        deadline = time.monotonic() + 60
        while not condition(status := json.loads(self.get("/v1/status"))):
            self.assertLess(time.monotonic(), deadline, status)
            time.sleep(0.02)
        return status

    def test_the_status_the_page_the_api_and_the_metrics_agree(self):
        def write(name, text="x"):
            with open(os.path.join(self.directory, "in", name), "w", encoding="utf-8") as file:
                file.write(text)

        for number in range(20):
            write(f"{number}.txt")
        write("c.bad")
        self.wait_for_status(lambda status: status["counts"]["succeeded"] == 20 and status["counts"]["failed"] == 1)
        self.command("pause", "--rule", "good")
        write("replaced.txt")
        write("removed.txt")
        self.wait_for_status(lambda status: status["queue"]["pending"] == 2)
        write("replaced.txt", "longer")
        os.remove(os.path.join(self.directory, "in", "removed.txt"))
        self.command("resume", "--rule", "good")
        status = self.wait_for_status(lambda status: status["counts"]["succeeded"] == 21
                                      and status["counts"]["skipped"] == 1)
        counts = status["counts"]
        del counts["hints"]
        self.assertEqual(counts, {
            "events": 23, "attempts": 22, "succeeded": 21, "skipped": 1, "failed_attempts": 1, "failed": 1})
        self.assertLessEqual(status["last_minute"]["events"], 23)
        self.assertIn("since the start: 23 events; jobs: 21 succeeded, 1 skipped, 1 failed; 22 attempts, 1 failed",
                      self.command("status"))
        page = self.get("/")
        for label, number in (("Events", 23), ("Attempts", 22), ("Succeeded", 21), ("Skipped", 1),
                              ("Failed attempts", 1), ("Failed jobs", 1)):
            self.assertIn(f"<dt>{label}</dt><dd>{number}</dd>", page)
        sums = {}
        for name, labels, number in re.findall(r"^(alight_\w+_total)\{(.*)\} (\d+)$", self.metrics(), re.MULTILINE):
            key = (name, re.search(r'(?:state|outcome)="(\w+)"|$', labels)[1])
            sums[key] = sums.get(key, 0) + int(number)
        self.assertEqual(sums, {
            ("alight_events_total", None): 23, ("alight_jobs_total", "succeeded"): 21,
            ("alight_jobs_total", "skipped"): 1, ("alight_jobs_total", "failed"): 1,
            ("alight_attempts_total", "succeeded"): 21, ("alight_attempts_total", "failed"): 1})

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
