"""Tests of the shipped plugins, called by the plugin protocol.

    python3 -m unittest discover -s Tests/PluginTests -v

They need only the standard library and the programs that the plugins require.

A plugin that ships with Alight is a directory in `plugins/`: the executable of its name, which uses only the standard
library of its language, `alight_plugin.py` and programs that `requires` names; `plugin.yaml`; a case for
`alight plugins test` (`request.json`, `response.json`, `testdata/`); and a `README.md` with what it does, a rule, its
parameters, outcomes and limits. Its own tests are here or in `test_NAME.py`: names with spaces, newlines and bytes that
are not UTF-8, a file that vanishes, an empty file, the same job twice, SIGTERM. The programs that it calls are in
PLUGIN_NEEDS in the Makefile and in `packaging/debian/control`, and a rule is in `docs/plugins.md`, with its entry in
`test_recipes.py`.
"""

import base64
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import unittest

from support import (
    CASE, EXECUTABLES, HAS_VIPS, HOSTILE_NAMES, NAMES, PLUGINS, PYTHON_NAMES, REINDEX, RUNNER, SEARCH, SYSTEM_PATH, THUMBNAIL,
    PluginTestCase, exact, load, missing_programs, pdf, text_or_base64,
)

HAS_POPPLER = bool(shutil.which("pdftotext", path=SYSTEM_PATH) and shutil.which("pdftoppm", path=SYSTEM_PATH))
HAS_FFMPEG = bool(shutil.which("ffmpeg", path=SYSTEM_PATH))


class ProtocolTests(PluginTestCase):
    def test_the_conformance_cases_pass(self):
        for name in NAMES:
            with self.subTest(plugin=name):
                if lacking := missing_programs(name):
                    self.skipTest(f"'{name}' needs {lacking}; make plugins-deps installs it")
                if name == "digest" and not os.path.exists(os.path.join(PLUGINS, name, name)):
                    self.skipTest("it is not built: packaging/install-plugins .build/debug")
                self.assertEqual(CASE.run_case(os.path.join(PLUGINS, name)), [])

    def test_an_unknown_verb_exits_with_64(self):
        for plugin in EXECUTABLES:
            for arguments in (["start"], ["RUN"], [], ["run", "twice"]):
                with self.subTest(plugin=os.path.basename(plugin), arguments=arguments):
                    done = subprocess.run(
                        [plugin, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env={"PATH": SYSTEM_PATH})
                    self.assertEqual(done.returncode, 64)
                    self.assertEqual(done.stdout, b"")
                    self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_an_invalid_request_exits_with_65(self):
        for plugin in EXECUTABLES:
            for text in (b"", b"hello", b"[]", b"{}", b'{"events":[]}', b"\xff"):
                with self.subTest(plugin=os.path.basename(plugin), text=text):
                    done = subprocess.run([plugin, "run"], input=text, capture_output=True, env={"PATH": SYSTEM_PATH})
                    self.assertEqual(done.returncode, 65)
                    self.assertEqual(done.stdout, b"")

    def test_check_reports_its_environment(self):
        # `check` is optional, and the Swift library does not implement it.
        for name in PYTHON_NAMES:
            plugin = os.path.join(PLUGINS, name, name)
            done = subprocess.run([plugin, "check"], stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(done.returncode, 0)
            self.assertIn(json.loads(done.stdout)["outcome"], ("succeeded", "failed"))

    def test_the_runner_reports_differences(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("reindex", "python"):
                shutil.copytree(os.path.join(PLUGINS, name), os.path.join(directory, name))
            with open(os.path.join(directory, "reindex", "response.json"), "w", encoding="utf-8") as file:
                json.dump({"outcome": "failed", "results": [], "extra": 1}, file)
            done = subprocess.run([RUNNER, os.path.join(directory, "reindex")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('response.outcome is "succeeded", expected "failed"', done.stdout)
        self.assertIn("response.results has 3 elements, expected 0", done.stdout)
        self.assertIn("response.extra is missing", done.stdout)


# Thumbnails


def vips(*arguments):
    done = subprocess.run(["vips", *arguments], capture_output=True, env={**os.environ, "PATH": SYSTEM_PATH})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    return done.stdout


def with_orientation(jpeg, orientation):
    """Returns the bytes of a JPEG file with an EXIF block that contains only this orientation."""
    tiff = b"MM\0*" + struct.pack(">IH HHIHH I", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    block = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:]


@unittest.skipUnless(HAS_VIPS, "libvips-tools is not installed")
class ThumbnailTests(PluginTestCase):
    plugin = THUMBNAIL

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="alight-pictures-")
        cls.addClassCleanup(directory.cleanup)
        cls.images = {}

        def make(name, *operation):
            path = os.path.join(directory.name, name)
            vips(*[path if each == "OUT" else each for each in operation])
            with open(path, "rb") as file:
                cls.images[name.split("[")[0]] = file.read()
            return path

        # 600x400, the upper half red, the lower half blue.
        with open(os.path.join(directory.name, "flag.ppm"), "wb") as file:
            file.write(b"P6\n600 400\n255\n" + b"\xf0\x10\x10" * 600 * 200 + b"\x10\x10\xf0" * 600 * 200)
        flag = os.path.join(directory.name, "flag.ppm")
        make("flag.jpg", "jpegsave", flag, "OUT")
        make("flag.png", "pngsave", flag, "OUT")
        make("flag.webp", "webpsave", flag, "OUT")
        make("flag.gif", "gifsave", flag, "OUT")
        make("flag.tif", "tiffsave", flag, "OUT")
        alpha = make("alpha.png", "bandjoin_const", flag, "OUT", "0")
        make("alpha.webp", "webpsave", alpha, "OUT")
        make("deep.png", "colourspace", flag, "OUT", "rgb16")
        make("tagged.jpg", "icc_transform", flag, "OUT", "p3", "--input-profile", "srgb")
        make("small.png", "resize", flag, "OUT", "0.05")
        make("noise.jpg", "gaussnoise", "OUT", "3000", "2000")
        for name in ("flag.heic", "flag.avif"):
            with contextlib.suppress(RuntimeError):
                make(name, "heifsave", flag, "OUT", "--compression", "hevc" if name.endswith("heic") else "av1")

    def settings(self, target, **more):
        return {"to": text_or_base64(target), "size": 256, **more}

    def thumbnail(self, path, target, kind="created", **more):
        return self.run_plugin(self.request([self.event(path, kind)], self.settings(target, **more)))

    def point(self, path, x, y):
        with open(path, "rb") as file:
            copy = self.write(b".copy" + os.path.splitext(path)[1], file.read())
        numbers = vips("getpoint", os.fsdecode(copy), str(x), str(y)).split()
        os.unlink(copy)
        return [round(float(each)) for each in numbers]

    def header(self, path):
        with open(path, "rb") as file:
            return subprocess.run(["vipsheader", "-a", "stdin"], stdin=file, capture_output=True, text=True).stdout

    def test_every_input_and_output_format(self):
        magic = {"jpg": b"\xff\xd8\xff", "jpeg": b"\xff\xd8\xff", "PNG": b"\x89PNG", "webp": b"RIFF"}
        for name in ("flag.jpg", "flag.png", "flag.webp", "flag.gif", "flag.tif"):
            path = self.write(os.fsencode(name), self.images[name])
            for ending in magic if name == "flag.jpg" else ["webp"]:
                head = magic[ending]
                with self.subTest(source=name, to=ending):
                    target = self.path(b"out", os.fsencode(f"{name}.{ending}"))
                    response = self.thumbnail(path, target)
                    self.assertEqual(response["outcome"], "succeeded", response)
                    self.assertEqual(response["message"], f"256x171 {ending.lower().replace('jpeg', 'jpg')}")
                    self.assertEqual(response["outputs"], [os.fsdecode(target)])
                    self.assertEqual((response["values"]["width"], response["values"]["height"]), (256, 171))
                    with open(target, "rb") as file:
                        data = file.read()
                    self.assertTrue(data.startswith(head))
                    self.assertEqual(len(data), response["values"]["bytes"])

    def test_heic_and_avif_where_the_library_supports_them(self):
        for name in ("flag.heic", "flag.avif"):
            with self.subTest(source=name):
                if name not in self.images:
                    print(f"skipped: this libvips makes no {name[-4:]}", flush=True)
                    continue
                path = self.write(os.fsencode(name), self.images[name])
                response = self.thumbnail(path, self.path(b"out.webp"))
                self.assertEqual(response["outcome"], "succeeded", response)
                self.assertEqual(response["message"], "256x171 webp")

    def test_avif_output_where_the_library_supports_it(self):
        if "flag.avif" not in self.images:
            self.skipTest("this libvips makes no AVIF")
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        response = self.thumbnail(path, self.path(b"out.avif"))
        self.assertEqual(response["message"], "256x171 avif", response)
        with open(self.path(b"out.avif"), "rb") as file:
            self.assertEqual(file.read(12)[4:], b"ftypavif")

    def test_the_content_determines_the_format(self):
        path = self.write(b"really a png.jpg", self.images["flag.png"])
        self.assertEqual(self.thumbnail(path, self.path(b"out.webp"))["message"], "256x171 webp")

    def test_the_orientation_tag_is_applied(self):
        red, blue = [240, 16, 16], [16, 16, 240]
        cases = {  # orientation: size, colour at the left, right, top, bottom; None on the boundary
            1: ("256x171", None, None, red, blue),
            3: ("256x171", None, None, blue, red),
            6: ("171x256", blue, red, None, None),
            8: ("171x256", red, blue, None, None),
        }
        for orientation, (size, left, right, top, bottom) in cases.items():
            with self.subTest(orientation=orientation):
                path = self.write(b"turned.jpg", with_orientation(self.images["flag.jpg"], orientation))
                self.assertIn(f"orientation: {orientation}", self.header(path))
                target = self.path(b"out.png")
                response = self.thumbnail(path, target)
                self.assertEqual(response["message"], f"{size} png", response)
                width, height = response["values"]["width"], response["values"]["height"]
                points = {
                    (5, height // 2): left, (width - 5, height // 2): right,
                    (width // 2, 5): top, (width // 2, height - 5): bottom,
                }
                for (x, y), colour in points.items():
                    if colour:
                        for channel, expected in zip(self.point(target, x, y), colour):
                            self.assertAlmostEqual(channel, expected, delta=12, msg=f"at {x},{y}")
                self.assertNotIn("exif", self.header(target))

    def test_metadata_is_removed(self):
        path = self.write(b"turned.jpg", with_orientation(self.images["flag.jpg"], 6))
        tagged = self.write(b"tagged.jpg", self.images["tagged.jpg"])
        avif = [b"avif"] if "flag.avif" in self.images else []
        for path, endings in ((path, [b"jpg", b"png", b"webp"]), (tagged, [b"jpg", b"webp", *avif])):
            for ending in endings:
                with self.subTest(path=path, ending=ending):
                    target = self.path(b"out." + ending)
                    response = self.thumbnail(path, target)
                    self.assertEqual(response["outcome"], "succeeded", response)
                    with open(target, "rb") as file:
                        data = file.read()
                    for word in (b"Exif", b"EXIF", b"ICC", b"iCCP", b"prof"):
                        self.assertNotIn(word, data)

    def test_colours_are_preserved_with_and_without_a_profile(self):
        for name in ("flag.jpg", "flag.png", "deep.png", "tagged.jpg"):
            path = self.write(os.fsencode(name), self.images[name])
            self.thumbnail(path, self.path(b"out.png"))
            for y, colour in ((5, [240, 16, 16]), (165, [16, 16, 240])):
                point = self.point(self.path(b"out.png"), 128, y)
                for channel, expected in zip(point, colour):
                    self.assertAlmostEqual(channel, expected, delta=12, msg=f"{name}: {point}")

    def test_transparency_is_preserved_or_white(self):
        for name in ("alpha.png", "alpha.webp"):
            path = self.write(os.fsencode(name), self.images[name])
            self.thumbnail(path, self.path(b"out.png"))
            self.assertEqual(self.point(self.path(b"out.png"), 20, 20)[3], 0)
            self.thumbnail(path, self.path(b"out.webp"))
            self.assertEqual(self.point(self.path(b"out.webp"), 20, 20)[3], 0)
            self.thumbnail(path, self.path(b"out.jpg"))
            self.assertTrue(all(each > 250 for each in self.point(self.path(b"out.jpg"), 20, 20)))

    def test_images_are_never_enlarged(self):
        path = self.write(b"small.png", self.images["small.png"])
        self.assertEqual(self.thumbnail(path, self.path(b"out.webp"))["message"], "30x20 webp")

    def test_quality_changes_the_size(self):
        path = self.write(b"noise.jpg", self.images["noise.jpg"])
        sizes = [self.thumbnail(path, self.path(b"out.webp"), quality=each)["values"]["bytes"] for each in (5, 95)]
        self.assertLess(sizes[0] * 2, sizes[1])

    def test_hostile_names_of_source_and_destination(self):
        for name in HOSTILE_NAMES:
            with self.subTest(name=name):
                path = self.write(os.path.join(b"in", name), self.images["flag.jpg"])
                target = self.path(b"out [Q=1] %s \xe9", name + b".webp")
                response = self.thumbnail(path, target)
                self.assertEqual(response["outcome"], "succeeded", response)
                self.assertEqual(response["message"], "256x171 webp")
                self.assertEqual([exact(each) for each in response["outputs"]], [target])
                self.assertGreater(os.path.getsize(target), 100)
        expected = [os.path.join(b"in", name) for name in HOSTILE_NAMES]
        expected += [os.path.join(b"out [Q=1] %s \xe9", name + b".webp") for name in HOSTILE_NAMES]
        self.assertEqual(self.all_files(), sorted(expected))

    def test_a_lossy_destination_is_refused(self):
        path = self.write(b"caf\xe9.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], {"to": os.fsdecode(self.root) + "/caf\ufffd.webp"})
        response = self.run_plugin(request)
        self.assertEqual((response["outcome"], response["code"]), ("failed", "name-not-utf8"))

    def test_an_invalid_image_fails(self):
        jpeg = self.images["noise.jpg"]
        png = bytearray(self.images["flag.png"])
        png[60:80] = b"x" * 20
        cases = {
            "empty": b"", "text": b"hello", "zeros": bytes(100_000), "cut off": jpeg[:len(jpeg) // 2],
            "head only": jpeg[:3], "png head": b"\x89PNG\r\n\x1a\n", "png damaged": bytes(png),
            "svg": b"<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'/>",
            "magick": b"push graphic-context\nviewbox 0 0 1 1\n",
        }
        for title, data in cases.items():
            with self.subTest(title):
                path = self.write(b"broken.jpg", data)
                response = self.thumbnail(path, self.path(b"out", b"broken.webp"))
                self.assertEqual(response["outcome"], "failed", response)
                self.assertLess(len(response["message"]), 200)
        self.assertEqual(self.all_files(), [b"broken.jpg"])

    def test_a_failure_does_not_replace_the_old_thumbnail(self):
        target = self.write(b"out.webp", b"old")
        path = self.write(b"broken.jpg", b"\xff\xd8\xff broken")
        self.assertEqual(self.thumbnail(path, target)["outcome"], "failed")
        with open(target, "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_special_files_are_skipped(self):
        os.mkdir(self.path(b"folder.jpg"))
        os.mkfifo(self.path(b"pipe.jpg"))
        os.symlink(b"nowhere", self.path(b"link.jpg"))
        for name in (b"vanished.jpg", b"folder.jpg", b"pipe.jpg", b"link.jpg"):
            with self.subTest(name=name):
                response = self.thumbnail(self.path(name), self.path(b"out.webp"))
                self.assertEqual(response["outcome"], "skipped", response)

    def test_other_events_are_skipped(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        for kind in ("created", "modified", "moved"):
            self.assertEqual(self.thumbnail(path, self.path(b"out.webp"), kind)["outcome"], "succeeded")
        for kind in ("deleted", "attributes", "arriving"):
            self.assertEqual(self.thumbnail(path, self.path(b"out.webp"), kind)["outcome"], "skipped")

    def test_invalid_parameters_fail(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        good = os.fsdecode(self.path(b"out.webp"))
        for settings in (
                {}, {"to": ""}, {"to": "relative.webp"}, {"to": good[:-5]}, {"to": good + ".svg"}, {"to": 5},
                {"to": good, "size": 15}, {"to": good, "size": 4097}, {"to": good, "size": "256"},
                {"to": good, "size": True}, {"to": good, "quality": 0}, {"to": good, "quality": 101}):
            with self.subTest(settings=settings):
                response = self.run_plugin(self.request([self.event(path)], settings))
                self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))

    def test_a_relative_destination_is_relative_to_the_rules_file(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], {"to": "thumbs/out.webp"})
        request["rule"]["file"] = os.fsdecode(self.path(b"rules.yaml"))
        response = self.run_plugin(request)
        self.assertEqual(response["outcome"], "succeeded", response)
        self.assertTrue(os.path.exists(self.path(b"thumbs", b"out.webp")))

    def test_the_source_is_never_overwritten(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        os.symlink(path, self.path(b"symlink.jpg"))
        os.link(path, self.path(b"link.jpg"))
        for name in (b"flag.jpg", b"symlink.jpg", b"link.jpg", b"./flag.jpg"):
            response = self.thumbnail(path, self.path(name))
            self.assertEqual((response["outcome"], response["code"]), ("failed", "same-file"))
        with open(path, "rb") as file:
            self.assertEqual(file.read(), self.images["flag.jpg"])

    def test_a_directory_at_the_destination_fails(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        os.mkdir(self.path(b"out.webp"))
        response = self.thumbnail(path, self.path(b"out.webp"))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "eisdir"))
        response = self.thumbnail(path, self.path(b"flag.jpg", b"out.webp"))
        self.assertEqual(response["outcome"], "failed")
        response = self.thumbnail(path, self.path(b"n" * 255 + b".webp"))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "enametoolong"))
        self.assertEqual(self.all_files(), [b"flag.jpg"])

    def test_a_second_run_gives_the_same_result(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        states = []
        for _ in range(2):
            response = self.thumbnail(path, self.path(b"out", b"flag.webp"))
            with open(self.path(b"out", b"flag.webp"), "rb") as file:
                states.append((response, file.read(), self.all_files()))
        self.assertEqual(states[0], states[1])

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], self.settings(self.path(b"out", b"flag.webp")), dry_run=True)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"flag.jpg"])

    @unittest.skipUnless(HAS_POPPLER, "poppler-utils is not installed; make plugins-deps installs it")
    def test_a_pdf_gives_its_first_page(self):
        for name in HOSTILE_NAMES[:9]:
            path = self.write(b"in/" + name, pdf("The first page", "the second"))
            response = self.thumbnail(path, self.path(b"out/" + name + b".png"))
            self.assertEqual((response["outcome"], response["message"]), ("succeeded", "256x181 png"), response)
        target = self.path(b"out", b"plain.jpg.png")
        self.assertEqual(self.point(target, 5, 5), [255, 255, 255])
        with open(target, "rb") as file:
            first = file.read()
        self.thumbnail(self.write(b"in/b.pdf", pdf(None)), target)
        with open(target, "rb") as file:
            self.assertNotEqual(file.read(), first)
        for data in (b"%PDF-1.4\n%%EOF\n", pdf("x")[:200]):
            response = self.thumbnail(self.write(b"in/broken.pdf", data), self.path(b"out/broken.png"))
            self.assertEqual((response["outcome"], response["code"]), ("failed", "damaged"), response)

    @unittest.skipUnless(HAS_FFMPEG, "ffmpeg is not installed; make plugins-deps installs it")
    def test_a_video_gives_a_frame(self):
        # Black at first, then red: the thumbnail must not show the first frame.
        source = ["-f", "lavfi", "-i", "color=black:size=160x120:rate=10:duration=0.2", "-f", "lavfi", "-i",
                  "color=red:size=160x120:rate=10:duration=3.8", "-filter_complex", "concat"]
        os.mkdir(self.path(b"in"))
        for ending, codec in ((b"mp4", "mpeg4"), (b"mkv", "mpeg4"), (b"avi", "mjpeg"), (b"ts", "mpeg2video"), (b"webm", "libvpx")):
            with self.subTest(ending):
                path = self.path(b"in", b"x%03d [1]\n\xe9." + ending)
                subprocess.run(
                    ["ffmpeg", "-nostdin", "-v", "error", *source, "-c:v", codec, b"file:" + path], check=True,
                    env={"PATH": SYSTEM_PATH})
                target = self.path(b"out", ending + b".png")
                response = self.thumbnail(path, target)
                self.assertEqual((response["outcome"], response["message"]), ("succeeded", "160x120 png"), response)
                red, green, blue = self.point(target, 80, 60)
                self.assertTrue(red > 200 and green < 60 and blue < 60, (red, green, blue))

    @unittest.skipUnless(HAS_FFMPEG, "ffmpeg is not installed; make plugins-deps installs it")
    def test_an_invalid_video_fails(self):
        sound = self.path(b"sound.mkv")
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=440:duration=1", sound], check=True)
        self.assertEqual(self.thumbnail(sound, self.path(b"out/a.png"))["code"], "no-video")
        with open(sound, "rb") as file:
            data = file.read()
        response = self.thumbnail(self.write(b"cut.mkv", data[:200]), self.path(b"out/a.png"))
        self.assertEqual(response["outcome"], "failed", response)

    def test_without_poppler_and_ffmpeg_it_names_the_packages(self):
        tools = self.path(b"bin")
        os.mkdir(tools)
        for name in ("python3", "vipsthumbnail", "vipsheader"):
            os.symlink(shutil.which(name, path=SYSTEM_PATH), os.path.join(os.fsdecode(tools), name))
        for data, package in ((pdf("x"), "poppler-utils"), (b"\x1aE\xdf\xa3" + bytes(100), "ffmpeg")):
            path = self.write(b"in/a", data)
            request = self.request([self.event(path)], self.settings(self.path(b"out.webp")))
            response = self.run_plugin(request, path=os.fsdecode(tools))
            self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
            self.assertIn(f"install the package {package}", response["message"])
        path = self.write(b"in/a.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], self.settings(self.path(b"out.webp")))
        self.assertEqual(self.run_plugin(request, path=os.fsdecode(tools))["outcome"], "succeeded")

    def test_without_libvips_it_names_the_package(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        tools = self.path(b"bin")
        os.mkdir(tools)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH), os.path.join(tools, b"python3"))
        request = self.request([self.event(path)], self.settings(self.path(b"out.webp")))
        response = self.run_plugin(request, path=os.fsdecode(tools))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
        self.assertIn("libvips-tools", response["message"])

    def test_a_full_disk_is_retried(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        disk = self.path(b"disk")
        os.mkdir(disk)
        script = 'mount -t tmpfs -o size=4k tmpfs "$0" && head -c 4096 /dev/zero >"$0/fill" && "$@" && ls -A "$0" >&2'
        prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, os.fsdecode(disk)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespaces here to mount a small disk in")
        request = self.request([self.event(path)], self.settings(os.path.join(disk, b"out.webp")))
        child = self.start(request, prefix=prefix)
        output, errors = child.communicate(timeout=60)
        response = json.loads(output)
        self.assertEqual((response["outcome"], response["code"]), ("retry", "enospc"), response)
        self.assertEqual(errors.decode().split(), ["fill"])

    def test_the_next_attempt_removes_the_files_of_a_killed_one(self):
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], self.settings(self.path(b"out", b"flag.webp")))
        module = load(THUMBNAIL).alight_plugin
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                job = module.Job(request, request["events"][0], {}, None)
                with module.atomic_file(self.path(b"out", b"flag.webp"), job) as file:
                    file.write(b"half")
                    os._exit(9)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 9)
        self.assertEqual(len(self.all_files()), 2)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"flag.jpg", b"out/flag.webp"])

    def test_sigterm_at_any_time_leaves_no_temporary_files(self):
        path = self.write(b"noise.jpg", self.images["noise.jpg"])
        chance = random.Random(7)
        for _ in range(15):
            child = self.start(self.request([self.event(path)], self.settings(self.path(b"out", b"noise.png"))))
            time.sleep(chance.uniform(0, 0.25))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            self.assertLessEqual(set(self.all_files()), {b"noise.jpg", b"out/noise.png"})

    def test_sigterm_stops_a_stuck_vipsthumbnail(self):
        tools = self.path(b"bin")
        os.mkdir(tools)
        pid_file = os.fsdecode(self.path(b"pid"))
        with open(os.path.join(tools, b"vipsthumbnail"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\necho $$ >'{pid_file}.new'; mv '{pid_file}.new' '{pid_file}'; exec sleep 600\n")
        os.chmod(os.path.join(tools, b"vipsthumbnail"), 0o755)
        path = self.write(b"flag.jpg", self.images["flag.jpg"])
        request = self.request([self.event(path)], self.settings(self.path(b"out", b"flag.webp")))
        child = self.start(request, path=os.fsdecode(tools) + ":" + SYSTEM_PATH)
        deadline = time.monotonic() + 60
        while not os.path.exists(pid_file) and time.monotonic() < deadline:
            time.sleep(0.01)
        with open(pid_file, encoding="utf-8") as file:
            stuck = int(file.read())
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertFalse(os.path.exists(f"/proc/{stuck}"))
        self.assertFalse(os.path.exists(self.path(b"out")))


# The index


class IndexTestCase(PluginTestCase):
    plugin = REINDEX

    def setUp(self):
        super().setUp()
        self.database = self.path(b"index", b"docs.db")

    def settings(self, **more):
        return {"database": os.fsdecode(self.database), **more}

    def index(self, *events, **more):
        return self.run_plugin(self.request(list(events), self.settings(**more)))

    def search(self, *words, options=(), database=None):
        done = subprocess.run(
            [SEARCH, "--database", database or self.database, "--json", *options, "--", *words],
            capture_output=True, env={"PATH": SYSTEM_PATH})
        self.assertIn(done.returncode, (0, 1), done.stderr.decode(errors="replace"))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 0 if lines else 1)
        return [base64.b64decode(line["path_base64"]) if "path_base64" in line else line["path"].encode()
                for line in lines]

    def rows(self):
        connection = sqlite3.connect(os.fsdecode(self.database))
        try:
            connection.execute("INSERT INTO text(text) VALUES ('integrity-check')")
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            return connection.execute(
                "SELECT file.path, text.body FROM file LEFT JOIN text ON text.rowid = file.id ORDER BY path").fetchall()
        finally:
            connection.close()


class ReindexTests(IndexTestCase):
    def test_create_update_move_delete(self):
        path = self.write(b"a.md", b"the lighthouse burns")
        response = self.index(self.event(path))
        self.assertEqual((response["outcome"], response["message"]), ("succeeded", "indexed"))
        self.assertEqual([exact(each) for each in response["outputs"]], [self.database])
        self.assertEqual(self.search("lighthouse"), [path])

        self.write(b"a.md", b"the harbour sleeps")
        self.assertEqual(self.index(self.event(path, "modified"))["message"], "updated")
        self.assertEqual(self.search("lighthouse"), [])
        self.assertEqual(self.search("harbour"), [path])

        new = self.path(b"b.md")
        os.rename(path, new)
        self.assertEqual(self.index(self.event(new, "moved", source=path))["outcome"], "succeeded")
        self.assertEqual(self.search("harbour"), [new])

        os.unlink(new)
        self.assertEqual(self.index(self.event(new, "deleted"))["message"], "removed")
        self.assertEqual(self.search("harbour"), [])
        self.assertEqual(self.rows(), [])
        again = self.index(self.event(new, "deleted"))
        self.assertEqual((again["outcome"], again["message"]), ("succeeded", "was not in the index"))

    def test_directory_and_database_are_private(self):
        self.index(self.event(self.write(b"a.md", b"secret")))
        self.assertEqual(os.stat(os.path.dirname(self.database)).st_mode & 0o777, 0o700)
        self.assertEqual(os.stat(self.database).st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(os.path.dirname(self.database)), [b"docs.db"])

    def test_a_repeated_request_changes_nothing(self):
        path = self.write(b"a.md", b"same")
        self.index(self.event(path))
        with open(self.database, "rb") as file:
            before = file.read()
        response = self.index(self.event(path))
        self.assertEqual((response["outcome"], response["message"]), ("succeeded", "up to date"))
        with open(self.database, "rb") as file:
            after = file.read()
        self.assertEqual(len(before), len(after))
        self.assertEqual(self.rows(), [(path, "same")])

    def test_hostile_names(self):
        paths = [self.write(os.path.join(b"in", name), b"word") for name in HOSTILE_NAMES]
        for path in paths[::2]:
            self.assertEqual(self.index(self.event(path))["outcome"], "succeeded")
        self.index(*[self.event(path) for path in paths[1::2]])
        self.assertEqual(sorted(self.search("word")), sorted(paths))
        for number, path in enumerate(paths):
            new = os.path.join(os.path.dirname(path), b"%d\xe9\n" % number)
            os.rename(path, new)
            self.index(self.event(new, "moved", source=path))
            paths[number] = new
        self.assertEqual(sorted(self.search("word")), sorted(paths))

    def test_lossy_names_do_not_collide(self):
        first, second = self.write(b"\xe9.md", b"first"), self.write(b"\xe8.md", b"second")
        self.index(self.event(first), self.event(second))
        self.assertEqual(self.search("first"), [first])
        self.assertEqual(self.search("second"), [second])

    def test_the_disk_takes_precedence_over_stale_events(self):
        path = self.write(b"a.md", b"alive")
        self.assertEqual(self.index(self.event(path, "deleted"))["outcome"], "succeeded")
        self.assertEqual(self.search("alive"), [path])
        os.unlink(path)
        response = self.index(self.event(path, "modified"))
        self.assertEqual((response["outcome"], response["code"]), ("skipped", "gone"))
        self.assertEqual(self.rows(), [])

    def test_moves_onto_and_from_changing_names(self):
        first, second, third = self.path(b"1.md"), self.path(b"2.md"), self.path(b"3.md")
        self.write(b"1.md", b"one")
        self.write(b"2.md", b"two")
        self.index(self.event(first), self.event(second))
        os.rename(first, second)  # replaces an existing file
        self.index(self.event(second, "moved", source=first))
        self.assertEqual(self.rows(), [(second, "one")])
        os.rename(second, third)  # and a new file has the old name
        self.write(b"2.md", b"new two")
        self.index(self.event(third, "moved", source=second))
        self.assertEqual(self.rows(), [(second, "new two"), (third, "one")])
        os.rename(third, first)  # and changes before the event is handled
        self.write(b"1.md", b"changed")
        self.index(self.event(first, "moved", source=third))
        self.assertEqual(self.rows(), [(first, "changed"), (second, "new two")])
        os.unlink(first)  # moved, and already deleted
        self.index(self.event(self.path(b"4.md"), "moved", source=first))
        self.assertEqual(self.rows(), [(second, "new two")])
        unknown = self.write(b"5.md", b"five")  # from a name that was never indexed
        self.index(self.event(unknown, "moved", source=self.path(b"never.md")))
        self.assertEqual(self.rows(), [(second, "new two"), (unknown, "five")])

    def test_encodings(self):
        cases = {
            b"1.txt": ("Gr\u00fc\u00dfe \U0001f304".encode(), "Gr\u00fc\u00dfe \U0001f304"),
            b"2.txt": (b"\xef\xbb\xbfbom", "bom"),
            b"3.txt": ("caf\u00e9 na\u00efve".encode("latin-1"), "caf\u00e9 na\u00efve"),
            b"4.txt": ("\u00fcber \u00fcber \u00fcber".encode() + b" \xff", "\u00fcber \u00fcber \u00fcber \ufffd"),
            b"5.txt": ("wide \u00fc".encode("utf-16"), "wide \u00fc"),
            b"6.txt": (b"", ""),
            b"7.txt": (b"x" * 9000 + b"\0y\2\3", "x" * 9000 + " y  "),
        }
        for name, (data, text) in cases.items():
            with self.subTest(name=name):
                path = self.write(name, data)
                self.assertEqual(self.index(self.event(path))["outcome"], "succeeded")
                self.assertIn((path, text), self.rows())
        self.assertEqual(self.search("cafe"), [self.path(b"3.txt")])

    def test_html_is_indexed_as_displayed(self):
        page = b"""<!DOCTYPE html><html><head><title>The Lighthouse</title><style>p { color: salmon }</style>
            <script>var salmon = "<p>salmon</p>";</script></head><body><h1>Keep<b>er</b></h1><p>one</p><p>two&nbsp;&amp;
            three caf&eacute;</p><img src=salmon.jpg alt="a harbour"><!-- salmon --></body></html>"""
        paths = [self.write(b"page.html", page), self.write(b"page.txt", page), self.write(b"page.HTM", b"<p>lighthouse <i>one")]
        self.index(*[self.event(path) for path in paths])
        for words, found in ((["keeper"], 2), (["one two"], 2), (["cafe"], 2), (["harbour"], 2), (["salmon"], 0), (["lighthouse"], 3)):
            self.assertEqual(len(self.search(*words)), found, words)

    @unittest.skipUnless(HAS_POPPLER, "poppler-utils is not installed; make plugins-deps installs it")
    def test_pdf_is_indexed_by_pdftotext_once(self):
        paths = [self.write(b"in/%d" % number + name, pdf(f"lighthouse n{number}", "keeper"))
                 for number, name in enumerate(HOSTILE_NAMES)]
        response = self.index(*[self.event(path) for path in paths])
        self.assertEqual({each["outcome"] for each in response["results"]}, {"succeeded"}, response)
        self.assertEqual(sorted(self.search("lighthouse", "keeper")), sorted(paths))
        self.assertEqual(self.search("n3"), [paths[3]])

        # An unchanged file is not read again: pdftotext is missing here.
        tools = self.path(b"bin")
        os.mkdir(tools)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH), os.path.join(tools, b"python3"))
        request = self.request([self.event(paths[0])], self.settings())
        self.assertEqual(self.run_plugin(request, path=os.fsdecode(tools))["message"], "up to date")
        self.write(b"in/0" + HOSTILE_NAMES[0], pdf("changed"))
        response = self.run_plugin(request, path=os.fsdecode(tools))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
        self.assertIn("poppler-utils", response["message"])
        self.assertEqual(self.index(self.event(paths[0]))["message"], "updated")
        self.assertEqual(self.search("changed"), [paths[0]])

        broken = self.write(b"in/broken.pdf", b"%PDF-1.4\n%%EOF\n")
        response = self.index(self.event(broken), self.event(paths[1]))
        self.assertEqual([each["outcome"] for each in response["results"]], ["failed", "succeeded"])

    def test_a_file_that_is_no_longer_text_is_removed_from_the_index(self):
        path = self.write(b"a.txt", b"text")
        for data, code in ((b"\x7fELF\0\0", "binary"), (b"x" * 2000, "too-large")):
            self.write(b"a.txt", b"text " + os.urandom(4).hex().encode())
            self.assertEqual(self.index(self.event(path))["outcome"], "succeeded")
            self.write(b"a.txt", data)
            response = self.index(self.event(path, "modified"), max_size=1000)
            self.assertEqual((response["outcome"], response["code"]), ("skipped", code))
            self.assertEqual(self.rows(), [])
        largest = self.write(b"b.txt", b"x" * 1000)
        self.assertEqual(self.index(self.event(largest), max_size=1000)["outcome"], "succeeded")

    def test_special_files_are_skipped(self):
        os.mkdir(self.path(b"folder.md"))
        os.mkfifo(self.path(b"pipe.md"))
        os.symlink(b"/etc/hostname", self.path(b"link.md"))
        for name in (b"folder.md", b"pipe.md", b"link.md", b"missing.md"):
            self.assertEqual(self.index(self.event(self.path(name)))["outcome"], "skipped")
        self.assertEqual(self.rows(), [])

    def test_one_failure_in_a_batch_does_not_affect_other_files(self):
        good, also = self.write(b"good.md", b"good"), self.write(b"also.md", b"good")
        binary = self.write(b"binary.md", b"\0")
        response = self.index(
            self.event(good), {"event": "created"}, self.event(binary), {"event": "created", "path": "relative.md"},
            self.event(self.path(b"gone.md"), "deleted"), self.event(self.path(b"n" * 300)), self.event(also))
        outcomes = [each["outcome"] for each in response["results"]]
        self.assertEqual(
            outcomes, ["succeeded", "failed", "skipped", "failed", "succeeded", "failed", "succeeded"], response)
        self.assertEqual(sorted(self.search("good")), sorted([good, also]))

    def test_each_event_of_a_batch_has_its_own_settings(self):
        other = self.path(b"index", b"other.db")
        first, second = self.write(b"1.md", b"word"), self.write(b"2.md", b"word")
        events = [
            {**self.event(first), "with": self.settings()},
            {**self.event(second), "with": {"database": os.fsdecode(other)}},
            {**self.event(first), "with": {"database": "relative.db"}},
        ]
        response = self.run_plugin(self.request(events, {}))
        self.assertEqual([each["outcome"] for each in response["results"]], ["succeeded", "succeeded", "failed"])
        self.assertEqual(self.search("word"), [first])
        self.assertEqual(self.search("word", database=other), [second])

    def test_a_relative_database_is_relative_to_the_rules_file(self):
        note = self.write(b"note.md", b"word")
        request = self.request([self.event(note)], {"database": "index/notes.db"})
        request["rule"]["file"] = os.fsdecode(self.path(b"rules.yaml"))
        response = self.run_plugin(request)
        self.assertEqual(response["outcome"], "succeeded", response)
        self.assertEqual(self.search("word", database=self.path(b"index", b"notes.db")), [note])

    def test_a_full_batch(self):
        paths = [self.write(b"%03d.md" % number, b"word number%d" % number) for number in range(100)]
        response = self.index(*[self.event(path) for path in paths])
        self.assertEqual(len(response["results"]), 100)
        self.assertEqual(sorted(self.search("word", options=["--limit", "200"])), paths)
        self.assertEqual(len(self.search("word")), 20)

    def test_eight_concurrent_runs_share_one_database(self):
        paths = [self.write(b"%02d.md" % number, b"word n%d" % number) for number in range(40)]
        children = []
        for worker in range(8):
            # Two of the eight runs receive each path, and all of them the first one.
            mine = [paths[0]] + paths[worker * 5:worker * 5 + 10] + paths[:max(0, worker * 5 + 10 - 40)]
            children.append(self.start(self.request([self.event(path) for path in mine], self.settings())))
        for child in children:
            response = self.finish(child)
            self.assertEqual({each["outcome"] for each in response["results"]}, {"succeeded"}, response)
        self.assertEqual(self.rows(), [(path, "word n%d" % number) for number, path in enumerate(paths)])

    def test_concurrent_updates_of_a_file_end_with_its_content(self):
        path = self.path(b"a.md")
        children = []
        for number in range(8):
            self.write(b"a.md", b"version%d" % number)
            children.append(self.start(self.request([self.event(path, "modified")], self.settings())))
        for child in children:
            self.finish(child)
        self.assertEqual(self.rows(), [(path, "version7")])

    def test_a_short_lock_delays_the_run(self):
        path = self.write(b"a.md", b"word")
        self.index(self.event(path))
        other = self.write(b"b.md", b"word")
        connection = sqlite3.connect(os.fsdecode(self.database), isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        child = self.start(self.request([self.event(other)], self.settings()))
        time.sleep(0.6)
        self.assertIsNone(child.poll())
        connection.execute("ROLLBACK")
        connection.close()
        self.assertEqual(self.finish(child)["outcome"], "succeeded")

    def test_a_long_lock_is_retried(self):
        path = self.write(b"a.md", b"word")
        self.index(self.event(path))
        module = load(REINDEX)
        module.TIMEOUT = 0.3
        connection = sqlite3.connect(os.fsdecode(self.database), isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        try:
            response = self.call_handler(module, path)
        finally:
            connection.close()
        self.assertEqual((response["outcome"], response["code"]), ("retry", "locked"))
        self.assertEqual(response["retry_after"], 5)

    def call_handler(self, module, path):
        """Calls the handler of the plugin in this process."""
        request = self.request([self.event(path)], {"max_size": 1000, **self.settings()})
        job = module.alight_plugin.Job(request, request["events"][0], {}, module.alight_plugin._Call(None))
        return module.reindex([job])[0].response

    def test_sigterm_interrupts_waiting_for_a_lock(self):
        path = self.write(b"a.md", b"word")
        self.index(self.event(path))
        connection = sqlite3.connect(os.fsdecode(self.database), isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        child = self.start(self.request([self.event(path)], self.settings()))
        time.sleep(0.4)
        child.send_signal(signal.SIGTERM)
        started = time.monotonic()
        child.communicate(timeout=60)
        connection.close()
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertLess(time.monotonic() - started, load(REINDEX).TIMEOUT - 5)
        self.assertEqual(self.rows(), [(path, "word")])

    def test_sigterm_at_any_time_leaves_a_valid_database(self):
        paths = [self.write(b"%02d.md" % number, b"word " * 20000) for number in range(20)]
        self.index(self.event(paths[0]))
        chance = random.Random(7)
        for _ in range(12):
            child = self.start(self.request([self.event(path) for path in paths], self.settings()))
            time.sleep(chance.uniform(0, 0.2))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            self.assertIn(len(self.rows()), (1, 20))
        self.assertEqual(os.listdir(os.path.dirname(self.database)), [b"docs.db"])

    def test_the_database_of_another_program_is_not_changed(self):
        os.mkdir(os.path.dirname(self.database))
        connection = sqlite3.connect(os.fsdecode(self.database))
        connection.execute("CREATE TABLE file (mine)")
        connection.commit()
        connection.close()
        path = self.write(b"a.md", b"word")
        self.assertEqual(self.index(self.event(path))["outcome"], "failed")
        self.write(b"index/docs.db", b"this is no database, it is a letter to somebody\n" * 100)
        self.assertEqual(self.index(self.event(path))["outcome"], "failed")
        self.assertEqual(self.index(self.event(path), database=os.fsdecode(self.root))["outcome"], "failed")

    def test_invalid_parameters_fail(self):
        path = self.write(b"a.md", b"word")
        for settings in ({"database": ""}, {"database": "docs.db"}, {"database": 1},
                         self.settings(max_size=0), self.settings(max_size="1"), self.settings(max_size=True)):
            response = self.run_plugin(self.request([self.event(path)], settings))
            self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"a.md", b"word")
        response = self.run_plugin(self.request([self.event(path)], self.settings(), dry_run=True))
        self.assertEqual(response["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"a.md"])


class ServingTests(IndexTestCase):
    """A serving plugin handles many requests in one process."""

    def serve(self, plugin, requests, cancel=()):
        child = subprocess.Popen(
            [plugin, "serve"], cwd=self.scratch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": SYSTEM_PATH})
        lines = [{"type": "hello", "protocol": 1, "capabilities": ["cancel", "progress"]}]
        for number, request in enumerate(requests):
            lines.append({"type": "run", **request, "id": f"J{number}"})
        lines += [{"type": "cancel", "id": identifier} for identifier in cancel] + [{"type": "ping", "n": 1}]
        output, _ = child.communicate("".join(json.dumps(line) + "\n" for line in lines).encode(), timeout=60)
        self.assertEqual(child.returncode, 0)
        answers = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(answers[0]["type"], "ready")
        self.assertEqual([each for each in answers if each["type"] == "pong"], [{"type": "pong", "n": 1}])
        results = {each["id"]: each for each in answers if each["type"] == "result"}
        self.assertEqual(len([each for each in answers if each["type"] == "result"]), len(requests))
        self.assertEqual(len(results), len(requests))
        return [results[f"J{number}"] for number in range(len(requests))]

    def test_reindex_serves(self):
        paths = [self.write(b"%02d.md" % number, b"word n%d" % number) for number in range(40)]
        requests = [self.request([self.event(each) for each in paths[first:first + 5]], self.settings())
                    for first in range(0, 40, 5)]
        results = self.serve(REINDEX, requests)
        self.assertEqual({each["outcome"] for each in results}, {"succeeded"}, results)
        self.assertEqual(len(self.rows()), 40)

    @unittest.skipUnless(HAS_VIPS, "libvips-tools is not installed")
    def test_thumbnail_serves(self):
        image = b"P6\n60 40\n255\n" + b"\xf0\x10\x10" * 60 * 40
        paths = [self.write(b"in/%d.ppm" % number, image) for number in range(6)]
        requests = [self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out/%d.png" % number)), "size": 30})
                    for number, path in enumerate(paths)]
        results = self.serve(THUMBNAIL, requests)
        self.assertEqual({each["message"] for each in results}, {"30x20 png"}, results)
        self.assertEqual(len(os.listdir(self.path(b"out"))), 6)


class SearchTests(IndexTestCase):

    def setUp(self):
        super().setUp()
        self.letter = self.write(b"letter.md", b"# Title\n\nThe lighthouse keeper isn't OR \x1b[31m near*here\n")

    def run_search(self, *arguments, **more):
        environment = {"PATH": SYSTEM_PATH, "HOME": os.fsdecode(self.root), "LANG": "C.UTF-8", **more}
        return subprocess.run([SEARCH, *arguments], capture_output=True, env=environment)

    def test_words_are_not_query_syntax(self):
        self.index(self.event(self.letter))
        for words in (["lighthouse"], ["KEEPER", "lighthouse"], ["lighthouse keeper"], ["light*"], ["isn't"], ["OR"],
                      ["near*here"], ['"lighthouse"'], ["lighthouse", "("], ["title:"], ["light*", "-", "keep*"]):
            self.assertEqual(self.search(*words), [self.letter], words)
        for words in (["light"], ["keeper lighthouse"], ["keeper", "harbour"], ["AND"], ["NOT"], ['"'], ["*"], [""],
                      ["NEAR(a b)"], ["body:nothing"], ["^nothing"], ["-nothing"], ["'"], ["\udce9"], ["**"]):
            self.assertEqual(self.search(*words), [], words)

    def test_output_to_a_pipe_is_plain(self):
        self.index(self.event(self.letter))
        done = self.run_search("--database", self.database, "lighthouse")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count(b"\n"), 1)
        self.assertTrue(done.stdout.startswith(self.letter + b": "))
        self.assertIn(b"The lighthouse keeper", done.stdout)
        self.assertNotIn(b"\x1b", done.stdout)

    def test_matches_are_bold_on_a_terminal(self):
        self.index(self.event(self.letter))
        reader, writer = os.openpty()
        child = subprocess.Popen([SEARCH, "--database", self.database, "lighthouse"], stdout=writer, stderr=writer)
        os.close(writer)
        text = b""
        with contextlib.suppress(OSError):
            while piece := os.read(reader, 4096):
                text += piece
        os.close(reader)
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertIn(b"\x1b[1mlighthouse\x1b[0m", text)
        self.assertEqual(text.count(b"\x1b"), 2)

    def test_control_characters_of_names_are_escaped(self):
        path = self.write(b"evil\n\x1b[2J\xe9.md", b"lighthouse")
        self.index(self.event(path))
        done = self.run_search("--database", self.database, "lighthouse")
        self.assertEqual(done.stdout, self.root + b"/evil\\n\\x1b[2J\xe9.md: lighthouse\n")

    def test_the_location_of_the_database(self):
        done = self.run_search("lighthouse")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b".local/share/alight/reindex.db", done.stderr)
        self.index(self.event(self.letter))
        done = self.run_search("lighthouse", ALIGHT_REINDEX_DATABASE=os.fsdecode(self.database))
        self.assertEqual(done.returncode, 0)
        self.index(self.event(self.letter), database=os.fsdecode(self.path(b".local/share/alight/reindex.db")))
        self.assertEqual(self.run_search("lighthouse").returncode, 0)
        self.assertEqual(self.run_search("nowhere").returncode, 1)

    def test_invalid_usage_exits_with_2(self):
        self.index(self.event(self.letter))
        other = self.write(b"other.db", b"")
        for arguments in (
                [], ["--limit", "0", "x"], ["--limit", "x", "x"], ["--unknown", "x"], ["--database", "/etc/passwd", "x"],
                ["--database", self.root, "x"], ["--database", other, "x"]):
            done = self.run_search(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertNotEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
