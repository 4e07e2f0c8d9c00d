"""Tests of the rules in rules/, run together on real files.

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

from support import HAS_VIPS, SYSTEM_PATH
from test_docs import ALIGHT, CHECKOUT


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class RulesDirectoryTests(unittest.TestCase):
    """All of rules/ in one instance, as in `make demo`."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="alight-rules-")
        self.addCleanup(directory.cleanup)
        self.home = os.path.realpath(directory.name)
        self.environment = {
            "PATH": SYSTEM_PATH, "HOME": self.home, "XDG_RUNTIME_DIR": self.home, "RUNTIME_DIRECTORY": self.home + "/.run"}

    def path(self, *names):
        return os.path.join(self.home, *names)

    def test_check_prints_no_warnings(self):
        done = subprocess.run(
            [ALIGHT, "check", os.path.join(CHECKOUT, "rules")], capture_output=True, text=True, env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(HAS_VIPS, "libvips-tools is not installed")
    def test_images_of_a_camera_are_moved_and_have_thumbnails(self):
        os.makedirs(self.path("Pictures/inbox"))
        with open(self.path("noise.ppm"), "wb") as file:
            file.write(b"P6\n200 150\n255\n" + os.urandom(200 * 150 * 3))
        subprocess.run(["vips", "jpegsave", self.path("noise.ppm"), self.path("picture.jpg")], check=True)
        names = [f"IMG_20261121_0704{second:02}.jpg" for second in range(10)]
        paths = [self.path("Pictures/2026/11", name) for name in names]
        paths += [self.path("Pictures/thumbs/2026/11", name + ".webp") for name in names]
        with open(self.path("output"), "w+b") as output:
            program = subprocess.Popen(
                [ALIGHT, "run", "--journal", ":memory:", os.path.join(CHECKOUT, "rules")], cwd=self.home, stdout=output,
                stderr=subprocess.STDOUT, env=self.environment)
            try:
                self.wait(program, output, lambda text: "ready: watching" in text)
                for name in names:
                    shutil.copy(self.path("picture.jpg"), self.path("Pictures/inbox", name))
                self.wait(program, output, lambda _: all(os.path.exists(path) for path in paths))
            finally:
                program.terminate()
                self.assertEqual(program.wait(timeout=120), 0)
        self.assertEqual(os.listdir(self.path("Pictures/inbox")), [])

    def wait(self, program, output, condition):
        end = time.monotonic() + 120
        while True:
            with open(output.name, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if condition(text):
                return
            self.assertIsNone(program.poll(), text)
            self.assertLess(time.monotonic(), end, text)
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
