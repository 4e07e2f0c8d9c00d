"""Tests of the notifications to systemd, of the log format for its journal, and of the shipped units.

    python3 -m unittest discover -s Tests/PluginTests -p test_systemd.py -v

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")
UNITS = os.path.join(CHECKOUT, "packaging", "systemd")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
LIMIT = 60


class SocketTestCase(unittest.TestCase):

    def setUp(self):
        if not os.access(ALIGHT, os.X_OK):
            reason = f"nothing is tested: {ALIGHT} is not built, run `swift build`"
            print(reason, file=sys.stderr)
            self.skipTest(reason)
        # The path of a socket has at most 107 bytes, so that of the directory must be short.
        directory = tempfile.TemporaryDirectory(prefix="alight-sd-", dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.root = os.path.realpath(directory.name)
        os.mkdir(self.path("in"))
        self.write_rules("first")

    def path(self, *names):
        return os.path.join(self.root, *names)

    def write(self, name, text):
        with open(self.path(name + ".new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path(name + ".new"), self.path(name))

    def write_rules(self, name):
        self.write("rules.yaml", f"rules: [{{ name: {name}, path: in/*, settle: 0, action: log }}]\n")

    def bind(self, address):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(address)
        receiver.settimeout(LIMIT)
        self.addCleanup(receiver.close)
        return receiver

    def start(self, variables, *options, around=()):
        environment = {
            "PATH": SYSTEM_PATH, "HOME": self.root, "XDG_STATE_HOME": self.path("state"),
            "XDG_RUNTIME_DIR": self.path("runtime"), **variables}
        os.makedirs(self.path("runtime"), exist_ok=True)
        with open(self.path("out"), "wb") as output, open(self.path("err"), "wb") as error:
            program = subprocess.Popen(
                [*around, ALIGHT, "run", "rules.yaml", *options], cwd=self.root, env=environment, stdout=output,
                stderr=error)
        self.addCleanup(self.end, program)
        return program

    def end(self, program):
        if program.poll() is None:
            program.kill()
            program.wait()

    def output(self, name="err"):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait(self, condition, message):
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{message}\n{self.output()}")
            time.sleep(0.02)


class NotifyTests(SocketTestCase):

    def next(self, receiver, word):
        """Returns the next message that has this variable, as a dictionary; skips others."""
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            lines = dict(line.split("=", 1) for line in receiver.recv(65536).decode().split("\n"))
            if word in lines:
                return lines
        raise AssertionError(f"no {word} was received")

    def test_the_life_of_a_service(self):
        receiver = self.bind(self.path("notify"))
        program = self.start({"NOTIFY_SOCKET": self.path("notify")})
        ready = self.next(receiver, "READY")
        self.assertEqual(ready, {"READY": "1", "STATUS": "watching 1 directory for 1 rule"})
        self.assertIn("ready: watching 1 directory for 1 rule", self.output())
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        program.send_signal(signal.SIGHUP)
        reloading = self.next(receiver, "RELOADING")
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self.assertEqual(reloading["RELOADING"], "1")
        self.assertTrue(before <= int(reloading["MONOTONIC_USEC"]) <= after)
        self.assertEqual(self.next(receiver, "READY")["STATUS"], "watching 1 directory for 1 rule")
        program.terminate()
        self.assertEqual(self.next(receiver, "STOPPING"), {"STOPPING": "1", "STATUS": "stopping"})
        self.assertEqual(program.wait(LIMIT), 0)

    def test_a_failed_reload_also_finishes(self):
        receiver = self.bind(self.path("notify"))
        program = self.start({"NOTIFY_SOCKET": self.path("notify")}, "--no-auto-reload")
        self.next(receiver, "READY")
        self.write("rules.yaml", "rules: [{ name: first }]\n")
        program.send_signal(signal.SIGHUP)
        self.next(receiver, "RELOADING")
        self.assertIn("the rules loaded before stay in effect", self.next(receiver, "READY")["STATUS"])

    def test_changed_rules_files_cause_a_reload(self):
        receiver = self.bind(self.path("notify"))
        self.start({"NOTIFY_SOCKET": self.path("notify")})
        self.next(receiver, "READY")
        self.write_rules("second")
        self.next(receiver, "RELOADING")
        self.next(receiver, "READY")

    def test_the_reload_command_of_the_units_waits_and_reports_errors(self):
        receiver = self.bind(self.path("notify"))
        self.start({"NOTIFY_SOCKET": self.path("notify")}, "--no-auto-reload", "--control", self.path("control"))
        self.next(receiver, "READY")
        self.write_rules("second")
        for name in UnitTests.UNITS:
            with self.subTest(name):
                self.assertEqual(self.reload(name), 0)
                self.next(receiver, "RELOADING")
                self.assertEqual(self.next(receiver, "READY")["STATUS"], "watching 1 directory for 1 rule")
        self.write("rules.yaml", "rules: [{ name: second }]\n")
        self.assertEqual(self.reload("alight.service"), 1)
        self.next(receiver, "RELOADING")
        self.assertIn("the rules loaded before stay in effect", self.next(receiver, "READY")["STATUS"])

    def reload(self, unit):
        """Runs ExecReload of a unit, and returns its exit status."""
        with open(os.path.join(UNITS, unit), encoding="utf-8") as file:
            command = re.search(r"^ExecReload=/usr/bin/alight (.*)$", file.read(), re.MULTILINE)[1]
        return subprocess.run(
            [ALIGHT, *command.split()], capture_output=True, timeout=LIMIT,
            env={"PATH": SYSTEM_PATH, "HOME": self.root, "ALIGHT_CONTROL": self.path("control")}).returncode

    def test_an_abstract_address(self):
        name = f"alight-test-{os.getpid()}"
        receiver = self.bind("\0" + name)
        self.start({"NOTIFY_SOCKET": "@" + name})
        self.next(receiver, "READY")

    def test_a_missing_socket_is_ignored(self):
        program = self.start({"NOTIFY_SOCKET": self.path("missing"), "WATCHDOG_USEC": "200000"})
        self.wait(lambda: "ready:" in self.output(), "it is not ready")
        program.terminate()
        self.assertEqual(program.wait(LIMIT), 0)

    def test_a_slow_reader_does_not_block(self):
        self.bind(self.path("notify"))  # never reads
        program = self.start({"NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "4000"})
        self.wait(lambda: "ready:" in self.output(), "it is not ready")
        for number in range(100):
            with open(self.path("in", str(number)), "w", encoding="utf-8"):
                pass
        self.wait(lambda: self.output("out").count("succeeded") >= 100, "the files are not handled")
        program.terminate()
        self.assertEqual(program.wait(LIMIT), 0)

    # The watchdog

    def test_the_watchdog_is_notified_while_events_are_handled(self):
        receiver = self.bind(self.path("notify"))
        program = self.start({"NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "400000"})
        self.next(receiver, "READY")
        for _ in range(5):
            self.assertEqual(self.next(receiver, "WATCHDOG"), {"WATCHDOG": "1"})
        program.send_signal(signal.SIGSTOP)
        self.wait(lambda: self.state(program) == "T", "it is not stopped")
        self.drain(receiver)
        receiver.settimeout(1)
        with self.assertRaises(TimeoutError):
            receiver.recv(65536)
        program.send_signal(signal.SIGCONT)
        receiver.settimeout(LIMIT)
        self.next(receiver, "WATCHDOG")

    def state(self, program):
        with open(f"/proc/{program.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def drain(self, receiver):
        """Discards all received messages."""
        receiver.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                receiver.recv(65536)

    def test_a_watchdog_for_another_process_is_ignored(self):
        receiver = self.bind(self.path("notify"))
        self.start({"NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"})
        self.next(receiver, "READY")
        receiver.settimeout(1)
        with self.assertRaises(TimeoutError):
            receiver.recv(65536)


class JournalTests(SocketTestCase):

    def stream(self):
        """Returns the variable that declares standard error, by device and inode, a stream of the journal."""
        with open(self.path("err"), "wb"):
            pass
        status = os.stat(self.path("err"))
        return {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}

    def test_each_line_has_its_priority(self):
        self.start(self.stream())
        self.wait(lambda: "<5>ready: watching 1 directory for 1 rule\n" in self.output(), "it is not ready")
        name = b"new\nline and \xff"
        with open(os.path.join(os.fsencode(self.path("in")), name), "wb"):
            pass
        self.wait(lambda: "succeeded" in self.output("out"), "the attempt is not reported")
        self.assertRegex(self.output("out"), r"^<6>first: created .*/in/new\\nline and .*: succeeded in .*\n$")

    def test_failures_have_a_higher_priority(self):
        self.write(
            "rules.yaml", "rules: [{ name: f, path: in/*, settle: 0, action: { exec: [\"false\"] }, retry: false }]\n")
        self.start({}, "--log-format", "journal", "--log-level", "warning")
        # Messages below warning are not logged, so the test cannot wait for "ready".
        numbers = iter(range(1000))
        def is_reported():
            with open(self.path("in", str(next(numbers))), "w", encoding="utf-8"):
                pass
            return self.output("out").startswith("<3>f: created ")
        self.wait(is_reported, "the failure is not reported")

    def test_another_stream_has_no_priorities(self):
        self.start({"JOURNAL_STREAM": "1:1"})
        self.wait(lambda: "ready:" in self.output(), "it is not ready")
        self.assertNotIn("<5>", self.output())

    def test_a_requested_format_takes_precedence(self):
        self.start(self.stream(), "--log-format", "text")
        self.wait(lambda: "ready:" in self.output(), "it is not ready")
        self.assertNotIn("<5>", self.output())


@unittest.skipUnless(shutil.which("systemd-analyze", path=SYSTEM_PATH), "systemd-analyze is missing: apt install systemd")
class UnitTests(unittest.TestCase):

    UNITS = ["alight.service", "alight@.service", "user/alight.service"]

    def analyze(self, *words):
        return subprocess.run(
            ["systemd-analyze", *words], capture_output=True, text=True, timeout=LIMIT,
            env={"PATH": SYSTEM_PATH, "HOME": "/root", "XDG_RUNTIME_DIR": "/run"})

    def test_all_units_exist(self):
        found = glob.glob(os.path.join(UNITS, "**", "*.*"), recursive=True)
        self.assertEqual(sorted(os.path.relpath(path, UNITS) for path in found), sorted(self.UNITS))

    def test_systemd_accepts_the_units(self):
        for name in self.UNITS:
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                # The program may not be installed.
                with open(os.path.join(UNITS, name), encoding="utf-8") as file:
                    text = file.read().replace("/usr/bin/alight ", "/bin/true ")
                unit = os.path.join(directory, os.path.basename(name).replace("@.", "@photos."))
                with open(unit, "w", encoding="utf-8") as file:
                    file.write(text)
                words = ["--user"] if name.startswith("user/") else []
                done = self.analyze(*words, "verify", "--man=no", unit)
                lines = (done.stdout + done.stderr).splitlines()
                self.assertEqual([line for line in lines if os.path.basename(unit) in line], [])
                self.assertEqual(done.returncode, 0, lines)

    def test_systemd_reports_a_type_that_it_does_not_support(self):
        """Without this, the test above would accept units of which systemd ignores lines."""
        with tempfile.TemporaryDirectory() as directory:
            unit = os.path.join(directory, "alight.service")
            with open(unit, "w", encoding="utf-8") as file:
                file.write("[Service]\nType=notify-later\nExecStart=/bin/true\n")
            done = self.analyze("verify", "--man=no", unit)
            self.assertRegex(done.stdout + done.stderr, r"alight\.service:2: .*notify-later")

    def test_the_exposure_of_the_system_units_is_low(self):
        for name in ("alight.service", "alight@.service"):
            with self.subTest(name):
                done = self.analyze("security", "--offline=yes", "--threshold=30", os.path.join(UNITS, name))
                self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)
                self.assertRegex(done.stdout, r"Overall exposure level for alight(@\w+)?\.service: [0-3]\.\d")

    def test_the_units_have_the_settings_for_stopping_and_the_watchdog(self):
        for name in self.UNITS:
            with self.subTest(name), open(os.path.join(UNITS, name), encoding="utf-8") as file:
                lines = file.read().splitlines()
                for line in ("Type=notify", "NotifyAccess=main", "KillMode=mixed", "TimeoutStopSec=15min"):
                    self.assertIn(line, lines)
                self.assertTrue(any(line.startswith("WatchdogSec=") for line in lines))


if __name__ == "__main__":
    unittest.main()
