"""The rules of docs/plugins.md, run by Alight on real files, each with the shipped plugin that it names.

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from support import HAS_VIPS, PLUGINS, SYSTEM_PATH, missing_programs, pdf
from test_docs import ALIGHT, blocks, write

PAGE = "docs/plugins.md"


def rules():
    """The rules of the page, by the plugin that each names first."""
    found = {}
    for language, _, text in blocks(PAGE):
        if language == "yaml" and text.startswith("rules:"):
            found[re.search(r"use: (\w+)", text)[1]] = text
    return found


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class ShippedRulesTests(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="alight-shipped-")
        self.addCleanup(folder.cleanup)
        self.home = os.path.realpath(folder.name)

    def path(self, *names):
        return os.path.join(self.home, *names)

    def put(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    def run_rule(self, plugin, replace=("", "")):
        """Runs the rule on the files that are there, and returns what Alight printed."""
        if lacking := missing_programs(plugin):
            self.skipTest(f"'{plugin}' needs {lacking}; make plugins-deps installs it")
        # A link to that one folder, as somebody would install it.
        os.makedirs(self.path("plugins"), exist_ok=True)
        os.symlink(os.path.realpath(os.path.join(PLUGINS, plugin)), self.path("plugins", plugin))
        write(self.path("rules", "rules.yaml"), rules()[plugin].replace(*replace))
        done = subprocess.run(
            [ALIGHT, "run", "--once", "--journal", ":memory:", "rules/rules.yaml"], cwd=self.home, capture_output=True,
            text=True, errors="replace", timeout=300,
            env={"PATH": SYSTEM_PATH, "HOME": self.home, "XDG_RUNTIME_DIR": self.home, "RUNTIME_DIRECTORY": self.home + "/.run"})
        self.output = done.stdout + done.stderr
        return done.returncode

    def assert_done(self, status, *files):
        self.assertEqual(status, 0, self.output)
        for name in files:
            self.assertTrue(os.path.exists(self.path(name)), f"{name} is missing: {self.output}")

    def test_the_page_has_a_rule_for_each(self):
        names = {name for name in os.listdir(PLUGINS) if os.path.exists(os.path.join(PLUGINS, name, "plugin.yaml"))}
        self.assertEqual(set(rules()), names)

    @unittest.skipUnless(HAS_VIPS, "libvips-tools is not installed")
    def test_thumbnail(self):
        picture = self.path("flag.ppm")
        self.put("flag.ppm", b"P6\n60 40\n255\n" + b"\xf0\x10\x10" * 60 * 40)
        os.makedirs(self.path("Pictures/inbox/-rf \n"))
        subprocess.run(["vips", "pngsave", picture, self.path("Pictures/inbox/-rf \n/a.png")], check=True, capture_output=True)
        files = ["Pictures/thumbs/-rf \n/a.png.webp"]
        if shutil.which("pdftoppm", path=SYSTEM_PATH):
            self.put("Pictures/inbox/b.pdf", pdf("a page"))
            files.append("Pictures/thumbs/b.pdf.webp")
        self.assert_done(self.run_rule("thumbnail"), *files)

    @unittest.skipUnless(
        os.path.exists(os.path.join(PLUGINS, "digest", "digest")),
        "it is not built: packaging/install-plugins .build/debug")
    def test_digest(self):
        self.put("archive/a b.txt", b"hello")
        self.assert_done(self.run_rule("digest"), "archive/a b.txt.sha256")
        subprocess.run(["sha256sum", "--check", "a b.txt.sha256"], cwd=self.path("archive"), check=True, capture_output=True)

    def test_reindex(self):
        self.put("Documents/inbox/a.md", b"the lighthouse")
        self.put("Documents/inbox/b.html", b"<p>the light<b>house</b>")
        self.assert_done(self.run_rule("reindex"), ".local/share/alight/reindex.db")
        found = subprocess.run(
            [os.path.join(PLUGINS, "reindex", "search"), "lighthouse"], capture_output=True, text=True,
            env={"PATH": SYSTEM_PATH, "HOME": self.home})
        self.assertEqual(found.stdout.count("\n"), 2, found)

    def test_unpack(self):
        for name, entry in (("good", "inside"), ("bad", "../outside")):
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
                archive.addfile(tarfile.TarInfo(entry), io.BytesIO(b""))
            self.put(f"Downloads/{name} \udce9.tar.gz", buffer.getvalue())
        status = self.run_rule("unpack")
        self.assertEqual(status, 5, self.output)  # one of the two failed
        self.assertIn("leads out of the folder", self.output)
        self.assertEqual(os.listdir(self.path("Downloads/unpacked")), ["good \udce9"])
        self.assertEqual(os.listdir(self.path("Downloads/unpacked/good \udce9")), ["inside"])

    def test_transcode(self):
        if shutil.which("ffmpeg", path=SYSTEM_PATH):
            os.makedirs(self.path("Videos/inbox"))
            subprocess.run(
                ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=10:duration=1",
                 self.path("Videos/inbox/a.avi")], check=True)
        self.assert_done(self.run_rule("transcode"), "Videos/a.mp4")

    def test_ocr(self):
        with open(os.path.join(PLUGINS, "ocr", "testdata", "a letter.png"), "rb") as file:
            self.put("Scans/a letter.png", file.read())
        self.assert_done(self.run_rule("ocr"), "Documents/scans/a letter.pdf")

    def test_sync(self):
        self.put("Notes/a/b.txt", b"note")
        self.put("Notes/c.txt", b"note")
        self.assert_done(self.run_rule("sync"), "Mirror/notes/a/b.txt", "Mirror/notes/c.txt")

    def test_scan(self):
        signatures = self.path("signatures")
        self.put("signatures/test.ndb", b"Test.Plague:0:*:" + b"alight-plague".hex().encode() + b"\n")
        self.put("Uploads/clean", b"dear friend")
        self.put("Uploads/infected", b"dear alight-plague")
        self.assertEqual(self.run_rule("scan", ("/var/lib/clamav/", signatures)), 5)
        self.assertIn("infected: Test.Plague", self.output)
        self.assertEqual(os.listdir(self.path("Checked")), ["clean"])
        self.assertEqual(os.listdir(self.path("Uploads")), [])
        self.assertEqual(len(os.listdir(self.path("Quarantine"))), 2)


if __name__ == "__main__":
    unittest.main()
