"""Tests of the output of `alight check` on terminals and as JSON.

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import json
import os
import pty
import subprocess
import tempfile
import unittest

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")

RULES = """rules:
  - path: in/*.txt
    setle: 5s
    action: log
"""


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class CheckTests(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="alight-check-")
        self.addCleanup(directory.cleanup)
        self.root = directory.name
        with open(os.path.join(self.root, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES)

    def check(self, *arguments, **variables):
        return dict(
            args=[ALIGHT, "check", *arguments], cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": self.root, "TERM": "xterm", **variables})

    def on_terminal(self, **variables):
        """Returns the standard error output on a terminal."""
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen(
                **self.check("rules.yaml", **variables), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=slave)
        finally:
            os.close(slave)
        written = b""
        with os.fdopen(master, "rb", buffering=0) as reader:
            while True:
                try:
                    part = reader.read(4096)
                except OSError:  # EIO: the last writer has closed the terminal.
                    break
                if not part:
                    break
                written += part
        self.assertEqual(process.wait(60), 3)
        return written.decode().replace("\r\n", "\n")

    def in_pipe(self, *arguments, **variables):
        return subprocess.run(**self.check(*arguments, **variables), capture_output=True, text=True, timeout=60)

    def test_only_a_terminal_receives_colours(self):
        plain = self.in_pipe("rules.yaml").stderr
        self.assertNotIn("\x1b", plain)
        colored = self.on_terminal()
        self.assertIn("\x1b[1;31merror:\x1b[0m", colored)
        self.assertIn("\x1b[1mrules.yaml:3:5:\x1b[0m", colored)
        self.assertIn("\x1b[1;32m^~~~~\x1b[0m", colored)
        for escape in ("\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;35m"):
            colored = colored.replace(escape, "")
        self.assertEqual(colored, plain)

    def test_no_color_is_respected(self):
        self.assertNotIn("\x1b", self.on_terminal(NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal(TERM="dumb"))
        self.assertIn("\x1b", self.on_terminal(NO_COLOR=""))

    def test_json_has_one_object_per_line(self):
        done = self.in_pipe("--format", "json", "rules.yaml", "none.yaml")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [
            {"file": "rules.yaml", "line": 3, "column": 5, "length": 5, "severity": "error",
             "message": "unknown key 'setle'", "help": "write 'settle'"},
            {"file": "none.yaml", "severity": "error", "message": "no such file or directory",
             "help": "give rules files, or directories that contain them"},
        ])

    def test_json_of_valid_rules(self):
        with open(os.path.join(self.root, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write("rules:\n  - { path: in/*.tmp, action: log }\n")
        done = self.in_pipe("--format", "json", "rules.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found, = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual((found["severity"], found["line"], found["column"]), ("warning", 2, 13))


if __name__ == "__main__":
    unittest.main()
