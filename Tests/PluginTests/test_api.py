"""Compares the API with its description in docs/openapi.yaml, by schemathesis.

    python3 -m unittest discover -s Tests/PluginTests -p test_api.py -v

`make test` installs schemathesis below .build; without it, or without the program, this fails.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")
SCHEMATHESIS = os.path.join(CHECKOUT, ".build/schemathesis/bin/st")
RULES = """\
rules:
  - { name: good, path: in/*.txt, settle: 50ms, action: { use: log } }
  - { name: copies, path: in/*.copied, settle: 50ms, action: { use: copy, with: { to: "done/${name}" } } }
  - { name: seen, path: done/*, settle: 50ms, action: { use: log } }
  - { name: bad, path: in/*.bad, settle: 50ms, retry: false, action: { shell: "echo no >&2; exit 1" } }
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(path, text):
    """Waits until a file contains the text."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(path, encoding="utf-8") as file:
            if text in file.read():
                return True
        time.sleep(0.02)
    return False


class APITest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="alight-api-")
        self.addCleanup(shutil.rmtree, self.directory)
        for name in ("in", "done"):
            os.mkdir(os.path.join(self.directory, name))
        with open(os.path.join(self.directory, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES)
        self.port = free_port()
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.directory, "XDG_STATE_HOME": self.directory + "/state",
            "ALIGHT_CONTROL": self.directory + "/run/control.sock"}
        self.output, self.error = os.path.join(self.directory, "out"), os.path.join(self.directory, "err")
        with open(self.output, "wb") as output, open(self.error, "wb") as error:
            self.program = subprocess.Popen(
                [ALIGHT, "run", "rules.yaml", "--listen", f"127.0.0.1:{self.port}"], cwd=self.directory,
                env=environment, stdout=output, stderr=error)
        self.addCleanup(self.stop)
        self.assertTrue(wait_for(self.error, "ready: watching"), "it did not become ready")

    def stop(self):
        if self.program.poll() is None:
            self.program.send_signal(signal.SIGTERM)
            self.program.wait(timeout=60)

    def test_all_responses_conform_to_the_description(self):
        for name in ("a.txt", "b.txt", "c.bad", "d.bad"):
            with open(os.path.join(self.directory, "in", name), "w", encoding="utf-8") as file:
                file.write("x")
        self.assertTrue(wait_for(self.output, "d.bad"), "nothing was done")
        run = subprocess.run(
            [SCHEMATHESIS, "run", os.path.join(CHECKOUT, "docs/openapi.yaml"),
             "--url", f"http://127.0.0.1:{self.port}", "--phases", "examples,coverage,fuzzing",
             "--max-examples", "25", "--seed", "1", "--checks", "all",
             # A string can be an invalid glob or timestamp; no token is required here.
             "--exclude-checks", "positive_data_acceptance,ignored_auth",
             # The stream of events does not end.
             "--exclude-path", "/v1/events",
             # These are available only at the Unix socket.
             "--exclude-path-regex", "^/v1/(retry|discard|undo|apply)$", "--no-color", "--request-timeout", "10"],
            cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(run.returncode, 0, run.stdout[-8000:] + run.stderr[-2000:])
        self.assertIsNone(self.program.poll(), "alight exited")


if __name__ == "__main__":
    unittest.main()
