"""Tests of the plugin `ocr`, on a small scan."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support import HAS_VIPS, HOSTILE_NAMES, PLUGINS, SYSTEM_PATH, PluginTestCase, alight_plugin, exact, needs_programs, pdf

SCAN = os.path.join(PLUGINS, "ocr", "testdata", "a letter.png")


def has(program):
    return shutil.which(program, path=SYSTEM_PATH) is not None


@unittest.skipUnless(HAS_VIPS, "libvips-tools is not installed")
@needs_programs("ocr")
class OCRTests(PluginTestCase):
    plugin = os.path.realpath(os.path.join(PLUGINS, "ocr", "ocr"))

    @classmethod
    def setUpClass(cls):
        with open(SCAN, "rb") as file:
            cls.image = file.read()
        directory = tempfile.TemporaryDirectory(prefix="alight-scans-")
        cls.addClassCleanup(directory.cleanup)
        jpeg = os.path.join(directory.name, "scan.jpg")
        subprocess.run(["vips", "jpegsave", SCAN, jpeg], capture_output=True, check=True, env={"PATH": SYSTEM_PATH})
        with open(jpeg, "rb") as file:
            cls.page = (file.read(), 900, 300)

    def ocr(self, data, name=b"scan.pdf", to=b"out/scan.pdf", **more):
        path = self.write(b"in/" + name, data)
        return self.run_plugin(self.request([self.event(path)], {"to": alight_plugin.json_path(self.path(to)), **more}))

    def text(self, path=b"out/scan.pdf"):
        with open(self.path(path), "rb") as file:
            return subprocess.run(["pdftotext", "-", "-"], stdin=file, capture_output=True, text=True, check=True).stdout

    def assert_reads(self, response, pages=1):
        self.assertEqual(response["outcome"], "succeeded", response)
        self.assertEqual(response["values"]["pages"], pages)
        text = self.text()
        self.assertEqual(text.count("\f"), pages)
        for word in ("lighthouse", "keeper"):
            self.assertIn(word, text)

    def test_an_image_becomes_a_searchable_pdf(self):
        response = self.ocr(self.image, b"scan.png")
        self.assert_reads(response)
        self.assertEqual(response["outputs"], [os.fsdecode(self.path(b"out/scan.pdf"))])
        self.assertEqual(os.listdir(self.scratch), [])

    def test_a_scanned_pdf_becomes_searchable_by_tesseract(self):
        response = self.ocr(pdf(self.page, None), engine="tesseract")
        self.assert_reads(response, pages=2)
        self.assertEqual(response["values"]["engine"], "tesseract")
        self.assertEqual(os.listdir(self.scratch), [])

    @unittest.skipUnless(has("ocrmypdf"), "ocrmypdf is not installed; make plugins-deps installs it")
    def test_a_scanned_pdf_becomes_searchable_by_ocrmypdf_and_a_second_time_is_skipped(self):
        response = self.ocr(pdf(self.page, "has text"))
        self.assert_reads(response, pages=2)
        self.assertEqual(response["values"]["engine"], "ocrmypdf")
        self.assertIn("has text", self.text())
        with open(self.path(b"out/scan.pdf"), "rb") as file:
            made = file.read()
        again = self.ocr(made, to=b"out/again.pdf")
        self.assertEqual((again["outcome"], again["code"]), ("skipped", "searchable"))
        self.assertEqual(os.listdir(self.path(b"out")), [b"scan.pdf"])

    def test_a_replacement_in_place_and_a_second_run(self):
        path = self.write(b"in/scan.pdf", pdf(self.page))
        request = self.request(
            [self.event(path)], {"to": os.fsdecode(path), "engine": "tesseract"})
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        with open(path, "rb") as file:
            made = file.read()
        self.assertIn("keeper", self.text(b"in/scan.pdf"))
        self.assertEqual(self.run_plugin(request)["outcome"], "skipped")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), made)

    def test_a_document_with_text_is_skipped(self):
        response = self.ocr(pdf("one", "two"))
        self.assertEqual((response["outcome"], response["code"]), ("skipped", "searchable"))
        self.assertEqual(self.all_files(), [b"in/scan.pdf"])

    def test_hostile_names_of_source_and_destination(self):
        for name in HOSTILE_NAMES[:9]:
            with self.subTest(name=name):
                response = self.ocr(self.image, name, b"out %s \xe9/" + name + b".pdf")
                self.assertEqual(response["outcome"], "succeeded", response)
                self.assertEqual([exact(each) for each in response["outputs"]], [self.path(b"out %s \xe9/" + name + b".pdf")])

    def test_an_invalid_scan_fails_and_replaces_nothing(self):
        self.write(b"out/scan.pdf", b"old")
        for title, data in {"empty": b"", "text": b"hello", "pdf head": b"%PDF-1.4\n", "cut": pdf(self.page)[:3000],
                            "png head": b"\x89PNG\r\n\x1a\n", "noise": random.Random(1).randbytes(5000)}.items():
            with self.subTest(title):
                response = self.ocr(data)
                self.assertEqual(response["outcome"], "failed", response)
        with open(self.path(b"out/scan.pdf"), "rb") as file:
            self.assertEqual(file.read(), b"old")
        self.assertEqual(os.listdir(self.path(b"out")), [b"scan.pdf"])

    def test_a_missing_language_names_its_package(self):
        response = self.ocr(self.image, language="eng+tlh")
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-language"))
        self.assertIn("tesseract-ocr-tlh", response["message"])

    def test_invalid_parameters_fail(self):
        for more in ({"language": "-l"}, {"language": "../eng"}, {"engine": "other"}, {"max_pages": 0}, {"to": b"out/a.txt"}):
            response = self.ocr(self.image, **more)
            self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))
        response = self.ocr(pdf(None, None, None), max_pages=2)
        self.assertEqual((response["outcome"], response["code"]), ("failed", "too-large"))

    def test_special_and_missing_files_are_skipped(self):
        os.makedirs(self.path(b"in/folder"))
        os.mkfifo(self.path(b"in/pipe"))
        for name in (b"folder", b"pipe", b"missing"):
            request = self.request([self.event(self.path(b"in", name))], {"to": "/nowhere/a.pdf"})
            self.assertEqual(self.run_plugin(request)["outcome"], "skipped")

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"in/a.png", self.image)
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out/a.pdf"))}, dry_run=True)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"in/a.png"])

    def test_sigterm_at_any_time_leaves_no_partial_result(self):
        path = self.write(b"in/scan.pdf", pdf(self.page))
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out/scan.pdf"))})
        chance = random.Random(7)
        for _ in range(6):
            child = self.start(request)
            time.sleep(chance.uniform(0.05, 1.5))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            found = [name for name in self.all_files() if not name.startswith(b".scratch/")]  # Alight removes these
            self.assertLessEqual(set(found), {b"in/scan.pdf", b"out/scan.pdf"})
            if b"out/scan.pdf" in found:
                self.assertIn("keeper", self.text())


if __name__ == "__main__":
    unittest.main()
