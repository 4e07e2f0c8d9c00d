"""Tests of the plugin `scan`, with ClamAV and a test signature."""

import json
import os
import random
import shutil
import signal
import stat
import time
import unittest

from support import HOSTILE_NAMES, PLUGINS, SYSTEM_PATH, PluginTestCase, exact, needs_programs

PLAGUE = b"dear friend, here is your alight-plague, yours"


@needs_programs("scan")
class ScanTests(PluginTestCase):
    plugin = os.path.realpath(os.path.join(PLUGINS, "scan", "scan"))

    def setUp(self):
        super().setUp()
        self.database = self.write(b"signatures/test.ndb", b"Test.Plague:0:*:" + b"alight-plague".hex().encode() + b"\n")
        self.quarantine = self.path(b"quarantine")

    def settings(self, **more):
        return {"quarantine": os.fsdecode(self.quarantine) + "/", "database": os.fsdecode(self.database), **more}

    def scan(self, path, path_variable=SYSTEM_PATH, identifier="01JD8Z3T1WQ2V7N0C5M4K9R6XB", **more):
        request = self.request([self.event(path)], self.settings(**more), id=identifier)
        return self.run_plugin(request, path=path_variable)

    def assert_in_quarantine(self, response, path, data=PLAGUE, mode="0644"):
        self.assertEqual((response["outcome"], response["code"]), ("failed", "infected"), response)
        self.assertIn("Test.Plague", response["message"])
        self.assertFalse(os.path.lexists(path))
        moved, description = [exact(each) for each in response["outputs"]]
        self.assertEqual(os.path.dirname(moved), self.quarantine)
        for each in (moved, description):
            self.assertEqual(stat.S_IMODE(os.stat(each).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.quarantine).st_mode), 0o700)
        with open(moved, "rb") as file:
            self.assertEqual(file.read(), data)
        with open(description, encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual(exact(record["path"]), path)
        self.assertEqual((record["bytes"], record["mode"]), (len(data), mode))
        self.assertTrue(record["signature"].startswith("Test.Plague"))

    def test_a_clean_file_is_not_moved(self):
        path = self.write(b"in/a.txt", b"dear friend")
        response = self.scan(path)
        self.assertEqual((response["outcome"], response["message"]), ("succeeded", "clean"))
        self.assertEqual(response["values"]["scanner"], "clamscan")
        self.assertTrue(os.path.exists(path))
        self.assertFalse(os.path.exists(self.quarantine))
        self.assertEqual(self.scan(self.write(b"in/empty", b""))["outcome"], "succeeded")

    def test_an_infected_file_is_moved_into_quarantine(self):
        path = self.write(b"in/a.txt", PLAGUE)
        os.chmod(path, 0o644)
        self.assert_in_quarantine(self.scan(path), path)

    def test_hostile_names(self):
        for number, name in enumerate(HOSTILE_NAMES):
            with self.subTest(name=name):
                path = self.write(b"in \xe9 \n/" + name, PLAGUE)
                os.chmod(path, 0o644)
                self.assert_in_quarantine(self.scan(path, identifier=f"J{number}"), path)
        self.assertEqual(len(os.listdir(self.quarantine)), 2 * len(HOSTILE_NAMES))

    def test_files_with_equal_names_do_not_collide(self):
        for number in range(3):
            path = self.write(b"in/%d/same" % number, PLAGUE)
            os.chmod(path, 0o644)
            self.assert_in_quarantine(self.scan(path, identifier="J"), path)
        self.assertEqual(len(os.listdir(self.quarantine)), 6)

    def test_the_same_job_twice_gives_the_same_result(self):
        path = self.write(b"in/a.txt", PLAGUE)
        responses = [self.scan(path) for _ in range(2)]
        self.assertEqual(responses[0], responses[1])
        self.assertEqual(len(os.listdir(self.quarantine)), 2)
        self.assertEqual(self.scan(path, identifier="another")["outcome"], "skipped")

    def test_quarantine_on_another_disk(self):
        if os.stat("/dev/shm").st_dev == os.stat(self.root).st_dev or not os.access("/dev/shm", os.W_OK):
            self.skipTest("there is no second disk: /dev/shm can't be written to")
        directory = f"/dev/shm/alight-test-{os.getpid()}"
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.quarantine = os.fsencode(directory)
        path = self.write(b"in/a.txt", PLAGUE)
        os.chmod(path, 0o644)
        self.assert_in_quarantine(self.scan(path), path)

    def test_special_missing_and_large_files_are_skipped(self):
        os.makedirs(self.path(b"in/folder"))
        os.mkfifo(self.path(b"in/pipe"))
        os.symlink(self.database, self.path(b"in/link"))
        for name in (b"folder", b"pipe", b"link", b"missing"):
            self.assertEqual(self.scan(self.path(b"in", name))["outcome"], "skipped")
        response = self.scan(self.write(b"in/large", PLAGUE), max_size=10)
        self.assertEqual((response["outcome"], response["code"]), ("skipped", "too-large"))

    def test_invalid_signatures_fail_and_missing_signatures_are_not_ready(self):
        path = self.write(b"in/a.txt", PLAGUE)
        response = self.scan(path, database=os.fsdecode(self.path(b"nowhere.ndb")))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "scanner"), response)
        self.assertTrue(os.path.exists(path))
        if not any(name.endswith((b".cvd", b".cld")) for name in os.listdir(b"/var/lib/clamav")):
            settings = self.settings()
            del settings["database"]
            response = self.run_plugin(self.request([self.event(path)], settings))
            self.assertEqual((response["outcome"], response["code"]), ("retry", "no-database"), response)

    def test_without_a_quarantine_the_job_fails_and_the_file_is_not_moved(self):
        path = self.write(b"in/a.txt", PLAGUE)
        self.write(b"quarantine", b"a file")
        self.assertEqual(self.scan(path)["outcome"], "failed")
        self.assertTrue(os.path.exists(path))
        self.assertEqual(sorted(os.listdir(self.root)), [b".scratch", b"in", b"quarantine", b"signatures"])

    def test_the_daemon_is_called_by_its_client(self):
        """A script replaces clamdscan, since no daemon is running."""
        tools = self.path(b"bin")
        os.mkdir(tools)
        path = self.write(b"in/a.txt", PLAGUE)
        for script, outcome, code in (
                ("cat >/dev/null; echo 'stream: OK'", "succeeded", None),
                ("echo 'ERROR: Could not connect to clamd on LocalSocket /run/clamd.ctl'; exit 2", "retry", "scanner"),
                ("cat >/dev/null; echo 'stream: Some.Plague FOUND'; exit 1", "failed", "infected")):
            with open(os.path.join(tools, b"clamdscan"), "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(os.path.join(tools, b"clamdscan"), 0o755)
            response = self.scan(path, os.fsdecode(tools) + ":" + SYSTEM_PATH, engine="clamdscan")
            self.assertEqual((response["outcome"], response.get("code")), (outcome, code), response)
        self.assertFalse(os.path.exists(path))

    def test_invalid_parameters_fail(self):
        path = self.write(b"in/a.txt", PLAGUE)
        for settings in ({}, {"quarantine": ""}, {"quarantine": "q"}, self.settings(engine="x"), self.settings(max_size=0)):
            response = self.run_plugin(self.request([self.event(path)], settings))
            self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"in/a.txt", PLAGUE)
        before = self.all_files()
        response = self.run_plugin(self.request([self.event(path)], self.settings(), dry_run=True))
        self.assertEqual((response["outcome"], self.all_files()), ("succeeded", before))

    def test_sigterm_at_any_time_leaves_the_file_in_one_location(self):
        chance = random.Random(7)
        for number in range(8):
            path = self.write(b"in/a.txt", PLAGUE)
            child = self.start(self.request([self.event(path)], self.settings(), id=f"J{number}"))
            time.sleep(chance.uniform(0.02, 0.3))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            found = os.listdir(self.quarantine) if os.path.exists(self.quarantine) else []
            self.assertFalse([name for name in found if name.endswith(b".tmp")])
            if os.path.exists(path):
                os.unlink(path)
            else:
                self.assertEqual(len([name for name in found if name.endswith(b".json")]), len(found) // 2)
            shutil.rmtree(self.quarantine, ignore_errors=True)


if __name__ == "__main__":
    unittest.main()
