"""Tests that programs start where a seccomp filter refuses some of the system calls for it.

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import ctypes
import os
import platform
import struct
import subprocess
import tempfile
import unittest

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")
NUMBERS = {
    "x86_64": {"clone": 56, "unshare": 272, "close_range": 436},
    "aarch64": {"clone": 220, "unshare": 97, "close_range": 436},
}.get(platform.machine())

CLONE_FILES = 0x400
RULES = """\
rules:
  - name: copied
    path: "%s/hot/*"
    existing: process
    settle: 0
    action: { exec: [sh, -c, 'cp "$1" "$2"', sh, "${path}", "%s/out/${name}"] }
"""


def refuse(calls):
    """Returns a `preexec_fn` that makes the kernel refuse system calls, as in containers (seccomp(2)).

    Of clone(2) it refuses only calls with CLONE_FILES and without CLONE_THREAD.
    """
    load, equal, has_bits, give = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 0)]
    refused, thread = 0x00050000 | 1, 0x00010000
    for name in calls:
        if name == "clone":
            # The first argument contains the flags.
            program += [
                (equal, 0, 6, NUMBERS[name]), (load, 0, 0, 16), (has_bits, 0, 3, CLONE_FILES), (has_bits, 2, 0, thread),
                (give, 0, 0, refused), (give, 0, 0, refused), (load, 0, 0, 0)]
        else:
            program += [(equal, 0, 1, NUMBERS[name]), (give, 0, 0, refused)]
    program.append((give, 0, 0, 0x7FFF0000))
    code = b"".join(struct.pack("HBBI", *line) for line in program)

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    filter_ = Filter(len(program), code)
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filter_), 0, 0):
            os._exit(99)

    return install


@unittest.skipIf(NUMBERS is None, "not available for this processor")
class ContainerTests(unittest.TestCase):
    def run_rules(self, calls):
        with tempfile.TemporaryDirectory(prefix="alight-container-") as root:
            for name in ("hot", "out"):
                os.mkdir(os.path.join(root, name))
            rules = os.path.join(root, "rules.yaml")
            with open(rules, "w", encoding="utf-8") as file:
                file.write(RULES % (root, root))
            for number in range(5):
                with open(os.path.join(root, "hot", f"f{number}"), "w", encoding="utf-8") as file:
                    file.write("text")
            done = subprocess.run(
                [ALIGHT, "run", "--once", "--journal", os.path.join(root, "journal.db"), rules],
                preexec_fn=refuse(calls), capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, sorted(os.listdir(os.path.join(root, "out")))),
                             (0, ["f0", "f1", "f2", "f3", "f4"]), done.stdout + done.stderr)

    def test_without_unshare(self):
        self.run_rules(["unshare"])

    def test_without_unshare_and_close_range(self):
        self.run_rules(["unshare", "close_range"])

    def test_without_clone_files(self):
        self.run_rules(["clone"])


if __name__ == "__main__":
    unittest.main()
