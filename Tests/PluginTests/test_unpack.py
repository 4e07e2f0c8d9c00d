"""Tests of the plugin `unpack`, on archives that bsdtar and Python make and on such as nobody should."""

import io
import lzma
import os
import random
import shutil
import signal
import stat
import subprocess
import tarfile
import time
import unittest
import zipfile

from support import HOSTILE_NAMES, PLUGINS, SYSTEM_PATH, PluginTestCase, alight_plugin, exact, needs_programs

UNPACK = os.path.realpath(os.path.join(PLUGINS, "unpack", "unpack"))


def tar(*entries, compression=""):
    """Makes a tar of (name, content or type, link) as they are, however bad."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}", format=tarfile.GNU_FORMAT,
                      encoding="utf-8", errors="surrogateescape") as archive:
        for name, content, *link in entries:
            entry = tarfile.TarInfo(os.fsdecode(name))
            entry.mode = 0o6755
            if isinstance(content, bytes) and not link:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                entry.type = content
                entry.linkname = os.fsdecode(link[0]) if link else ""
                archive.addfile(entry)
    return buffer.getvalue()


@needs_programs("unpack")
class UnpackTests(PluginTestCase):
    plugin = UNPACK

    def unpack(self, data, name=b"a.tar", to=None, **more):
        path = self.write(b"in/" + name, data) if data is not None else self.path(b"in", name)
        to = self.path(b"out") if to is None else to
        return self.run_plugin(self.request([self.event(path)], {"to": alight_plugin.json_path(to), **more}))

    def assert_refused(self, response, code="unsafe"):
        self.assertEqual((response["outcome"], response.get("code")), ("failed", code), response)
        self.assertFalse(os.path.lexists(self.path(b"out")))
        self.assertEqual([name for name in os.listdir(self.root) if name not in (b"in", b".scratch")], [])

    def content(self, *names):
        with open(self.path(b"out", *names), "rb") as file:
            return file.read()

    def test_every_kind_that_bsdtar_makes(self):
        folder = self.path(b"letters")
        self.write(b"letters/keeper.txt", b"oil")
        self.write(b"letters/2026/reply.txt", b"Thursday")
        for ending in ("tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tar.lz4", "zip", "7z", "cpio", "iso", "cpgz"):
            with self.subTest(ending):
                archive = os.path.join(self.root, b"in", b"a." + ending.encode())
                os.makedirs(os.path.dirname(archive), exist_ok=True)
                options = {"cpio": ["--format=newc"], "cpgz": ["--format=odc", "-z"]}.get(ending, ["-a"])
                subprocess.run(["bsdtar", "-c", *options, "-f", archive, "-C", self.root, "letters"], check=True)
                response = self.unpack(None, os.path.basename(archive), to=self.path(b"out-" + ending.encode()))
                self.assertEqual(response["outcome"], "succeeded", response)
                unpacked = self.path(b"out-" + ending.encode(), b"letters")
                self.assertEqual(
                    subprocess.run(["diff", "-r", folder, unpacked], capture_output=True).stdout, b"")

    def test_deb_and_rpm_like(self):
        # A .deb is an ar archive.
        os.makedirs(self.path(b"in"))
        self.write(b"debian-binary", b"2.0\n")
        subprocess.run(["bsdtar", "--format=arbsd", "-cf", self.path(b"in/a.deb"), "-C", self.root, "debian-binary"], check=True)
        self.assertEqual(self.unpack(None, b"a.deb")["outcome"], "succeeded")
        self.assertEqual(self.content(b"debian-binary"), b"2.0\n")

    def test_modes_times_and_links_inside_stay(self):
        os.makedirs(self.path(b"from/bin"))
        self.write(b"from/bin/tool", b"#!/bin/sh\n")
        os.chmod(self.path(b"from/bin/tool"), 0o6755)
        os.utime(self.path(b"from/bin/tool"), (1000000000, 1000000000))
        os.symlink(b"bin/tool", self.path(b"from/tool"))
        os.symlink(b"../tool", self.path(b"from/bin/up"))
        os.symlink(b"nowhere", self.path(b"from/dangling"))
        os.link(self.path(b"from/bin/tool"), self.path(b"from/hard"))
        os.makedirs(self.path(b"in"))
        subprocess.run(["bsdtar", "-cf", self.path(b"in/a.tar"), "-C", self.path(b"from"), "."], check=True)
        self.assertEqual(self.unpack(None)["outcome"], "succeeded")
        facts = os.stat(self.path(b"out/bin/tool"))
        self.assertEqual(stat.S_IMODE(facts.st_mode), 0o755 & ~0o022 | (0o755 & 0o022 & ~self.umask()))
        self.assertEqual((facts.st_mtime, facts.st_nlink), (1000000000, 2))
        self.assertEqual(os.readlink(self.path(b"out/tool")), b"bin/tool")
        self.assertEqual(self.content(b"tool"), b"#!/bin/sh\n")
        self.assertEqual(self.content(b"bin", b"up"), b"#!/bin/sh\n")
        self.assertEqual(os.readlink(self.path(b"out/dangling")), b"nowhere")

    def umask(self):
        number = os.umask(0)
        os.umask(number)
        return number

    def test_hostile_names_inside_and_out(self):
        entries = [(name, b"of " + name) for name in HOSTILE_NAMES]
        for name in HOSTILE_NAMES:
            response = self.unpack(tar(*entries), name, to=self.path(b"out", b"%s \xe9 \n", name))
            self.assertEqual(response["outcome"], "succeeded", response)
            folder = self.path(b"out", b"%s \xe9 \n", name)
            self.assertEqual([exact(each) for each in response["outputs"]], [folder])
            self.assertEqual(sorted(os.listdir(folder)), sorted(HOSTILE_NAMES))
            for inner in HOSTILE_NAMES:
                with open(os.path.join(folder, inner), "rb") as file:
                    self.assertEqual(file.read(), b"of " + inner)

    def test_a_slash_at_the_end_makes_a_folder_called_like_the_archive(self):
        data = tar((b"a", b"x"), compression="gz")
        for name, folder in ((b"a.tar.gz", b"a"), (b"b.TGZ", b"b"), (b"c.1.zip", b"c.1"), (b".zip", b".zip"),
                             (b"..zip", b"..zip"), (b"plain", b"plain"), (b"caf\xe9.tar", b"caf\xe9")):
            response = self.unpack(data, name, to=self.path(b"out") + b"/")
            self.assertEqual([exact(each) for each in response["outputs"]], [self.path(b"out", folder)], response)
            self.assertEqual(self.content(folder, b"a"), b"x")

    def test_names_that_lead_out_are_refused(self):
        for name in (b"../evil", b"a/../../evil", b"a/..", b"..", b"a/../b"):
            with self.subTest(name):
                self.assert_refused(self.unpack(tar((b"good", b"x"), (name, b"x"))))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("../../evil", "x")
        self.assert_refused(self.unpack(buffer.getvalue(), b"a.zip"))

    def test_absolute_names_never_land_there(self):
        evil = self.path(b"evil")
        response = self.unpack(tar((evil, b"x")))
        self.assertFalse(os.path.exists(evil))
        self.assert_refused(response)

    def test_links_out_are_refused(self):
        outside = self.write(b"in/outside", b"mine")
        cases = {
            "absolute": [(b"l", tarfile.SYMTYPE, b"/etc")],
            "up": [(b"l", tarfile.SYMTYPE, b"..")],
            "up from below": [(b"d/l", tarfile.SYMTYPE, b"../../x")],
            "through another": [
                (b"a/b/s", tarfile.SYMTYPE, b"../.."), (b"l", tarfile.SYMTYPE, b"a/b/s/../x")],
            "a file behind it": [(b"l", tarfile.SYMTYPE, b"d"), (b"d/x", b"x"), (b"l/y", b"y")],
            "hard, absolute": [(b"l", tarfile.LNKTYPE, outside)],
            "hard, up": [(b"l", tarfile.LNKTYPE, b"../in/outside")],
            "hard, then written": [(b"l", tarfile.LNKTYPE, b"../in/outside"), (b"l", b"evil")],
            "hard to what isn't there": [(b"l", tarfile.LNKTYPE, b"later"), (b"later", b"x")],
        }
        for title, entries in cases.items():
            with self.subTest(title):
                self.assert_refused(self.unpack(tar(*entries)))
                with open(outside, "rb") as file:
                    self.assertEqual((file.read(), os.stat(outside).st_nlink), (b"mine", 1))

    def test_devices_and_pipes_are_refused(self):
        for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE):
            self.assert_refused(self.unpack(tar((b"x", kind, b""))))

    def test_a_file_and_a_folder_of_one_name_are_refused_and_of_two_files_the_later_counts(self):
        self.assert_refused(self.unpack(tar((b"x", b"file"), (b"x/y", b"below"))))
        self.assertEqual(self.unpack(tar((b"x", b"first"), (b"./x", b"second")))["outcome"], "succeeded")
        self.assertEqual(self.content(b"x"), b"second")

    def test_bombs_are_refused_before_they_fill_the_disk(self):
        zeros = lzma.compress(tar((b"zeros", bytes(64 << 20))), preset=1)
        self.assertLess(len(zeros), 64 << 10)
        self.assert_refused(self.unpack(zeros, b"a.tar.xz"), "too-large")
        self.assert_refused(self.unpack(zeros, b"a.tar.xz", max_ratio=1000000, max_bytes=1000), "too-large")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", bytes(64 << 20))
        self.assert_refused(self.unpack(buffer.getvalue(), b"a.zip"), "too-large")
        many = tar(*[(b"%d" % number, b"") for number in range(101)])
        self.assert_refused(self.unpack(many, max_entries=100), "too-large")
        self.assertEqual(self.unpack(many, max_entries=101)["outcome"], "succeeded")
        # Small ones may be of anything.
        small = lzma.compress(tar((b"zeros", bytes(8 << 20))))
        self.assertEqual(self.unpack(small, b"a.tar.xz", to=self.path(b"small"))["outcome"], "succeeded")

    def test_a_list_of_this_machines_files_is_no_archive(self):
        secret = self.write(b"secret", b"secret")
        text = b"#mtree\n./a type=file contents=" + secret + b"\n"
        for data in (text, lzma.compress(text), b"a file\nof words\n"):
            self.assert_refused_text(self.unpack(data))

    def assert_refused_text(self, response):
        self.assertEqual((response["outcome"], response["code"]), ("failed", "not-an-archive"), response)
        self.assertFalse(os.path.lexists(self.path(b"out")))

    def test_what_is_no_archive_fails(self):
        for data in (b"", b"hello", bytes(100000), b"PK\3\4", b"%PDF-1.4\n", random.Random(1).randbytes(100000)):
            response = self.unpack(data)
            self.assertEqual(response["outcome"], "failed", response)
            self.assertIn(response["code"], ("not-an-archive", "damaged", "empty"))
            self.assertFalse(os.path.lexists(self.path(b"out")))

    def test_a_damaged_archive_leaves_nothing(self):
        noise = random.Random(1).randbytes(300_000)
        whole = tar((b"a", noise), (b"b", noise), compression="gz")
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 0xFF
        for data in (whole[:-1000], whole[:len(whole) // 2], bytes(broken)):
            self.assert_refused(self.unpack(data), "damaged")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a", noise)
        data = bytearray(buffer.getvalue())
        data[1000] ^= 0xFF
        self.assert_refused(self.unpack(bytes(data), b"a.zip"), "damaged")

    @unittest.skipUnless(shutil.which("zip") or shutil.which("bsdtar"), "nothing makes a zip with a password")
    def test_a_password_is_said(self):
        self.write(b"from/secret", b"secret " * 100)
        os.makedirs(self.path(b"in"))
        made = subprocess.run(
            ["bsdtar", "--format=zip", "--options", "zip:encryption=aes256", "--passphrase", "open", "-cf",
             self.path(b"in/a.zip"), "-C", self.path(b"from"), "secret"], capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        response = self.unpack(None, b"a.zip")
        self.assertEqual((response["outcome"], response["code"]), ("failed", "password"), response)
        self.assertFalse(os.path.exists(self.path(b"out")))

    def test_the_same_twice_is_the_same(self):
        data = tar((b"a", b"x"), (b"d/b", b"y"), (b"l", tarfile.SYMTYPE, b"a"))
        states = []
        for _ in range(2):
            response = self.unpack(data)
            states.append((response, self.all_files(), os.stat(self.path(b"out")).st_ino))
        self.assertEqual(states[0], states[1])

    def test_what_is_there_stays_unless_told_otherwise(self):
        self.write(b"out/mine", b"mine")
        data = tar((b"a", b"new"))
        before = self.all_files()
        for choice, outcome in (({}, "failed"), ({"on_conflict": "fail"}, "failed"), ({"on_conflict": "skip"}, "skipped")):
            response = self.unpack(data, **choice)
            self.assertEqual((response["outcome"], response["code"]), (outcome, "exists"))
            self.assertEqual([name for name in self.all_files() if name != b"in/a.tar"], before)
        response = self.unpack(data, on_conflict="replace")
        self.assertEqual((response["outcome"], response["values"]["entries"]), ("succeeded", 1), response)
        self.assertEqual(self.all_files(), [b"in/a.tar", b"out/a"])
        self.write(b"file", b"x")
        self.assertEqual(self.unpack(data, to=self.path(b"file"), on_conflict="replace")["outcome"], "succeeded")
        self.assertTrue(os.path.isdir(self.path(b"file")))

    def test_what_is_no_file_or_gone_is_skipped(self):
        os.makedirs(self.path(b"in/folder"))
        os.mkfifo(self.path(b"in/pipe"))
        os.symlink(b"/etc/passwd", self.path(b"in/link"))
        for name in (b"folder", b"pipe", b"link", b"missing"):
            self.assertEqual(self.unpack(None, name)["outcome"], "skipped")
        response = self.run_plugin(self.request([self.event(self.path(b"gone.zip"), "deleted")], {"to": "/nowhere"}))
        self.assertEqual(response["outcome"], "skipped")

    def test_a_dry_run_touches_nothing(self):
        path = self.write(b"in/a.tar", tar((b"a", b"x")))
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out"))}, dry_run=True)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"in/a.tar"])

    def test_sigterm_at_any_moment_leaves_nothing_or_all(self):
        noise = random.Random(1).randbytes(20_000)
        path = self.write(b"in/a.tar.gz", tar(*[(b"%d" % number, noise) for number in range(200)], compression="gz"))
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out"))})
        chance = random.Random(7)
        ended = 0
        for _ in range(12):
            child = self.start(request)
            time.sleep(chance.uniform(0.02, 0.35))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            ended += child.returncode != 0
            self.assertLessEqual(set(os.listdir(self.root)), {b"in", b"out", b".scratch"})
            if os.path.exists(self.path(b"out")):
                self.assertEqual(len(os.listdir(self.path(b"out"))), 200)
        self.assertGreater(ended, 0)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")

    def test_what_a_killed_attempt_left_is_removed_by_the_next(self):
        path = self.write(b"in/a.tar", tar(*[(b"%d/x" % number, b"x" * 10000) for number in range(500)]))
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out"))})
        child = self.start(request)
        deadline = time.monotonic() + 60
        while len(os.listdir(self.root)) < 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate(timeout=60)
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(sorted(os.listdir(self.root)), [b".scratch", b"in", b"out"])

    def test_without_bsdtar_it_names_the_package(self):
        tools = self.path(b"bin")
        os.mkdir(tools)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH), os.path.join(tools, b"python3"))
        path = self.write(b"in/a.tar", tar((b"a", b"x")))
        request = self.request([self.event(path)], {"to": os.fsdecode(self.path(b"out"))})
        response = self.run_plugin(request, path=os.fsdecode(tools))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
        self.assertIn("libarchive-tools", response["message"])


if __name__ == "__main__":
    unittest.main()
