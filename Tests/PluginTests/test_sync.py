"""Tests of the plugin `sync`, with the real rsync, and with an `ssh` that runs commands on this machine."""

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

from support import HOSTILE_NAMES, PLUGINS, SYSTEM_PATH, PluginTestCase, alight_plugin, exact, needs_programs

# Replaces ssh: records its arguments, then runs the remote command as the login shell of the host would.
SSH = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if os.path.exists({log!r} + ".errors"):
    with open({log!r} + ".errors") as errors:
        sys.stderr.write(errors.read())
    sys.exit(255)
words = sys.argv[1:]
index = words.index("nas.local")
os.chdir({home!r})
os.execvp("sh", ["sh", "-c", " ".join(words[index + 1:])])
"""


@needs_programs("sync")
class SyncTests(PluginTestCase):
    plugin = os.path.realpath(os.path.join(PLUGINS, "sync", "sync"))

    def setUp(self):
        super().setUp()
        self.watched = self.path(b"in")
        os.mkdir(self.watched)
        self.target = {"to": os.fsdecode(self.path(b"mirror")) + "/"}

    def event(self, path, kind="created", source=None):
        event = super().event(path, kind, source)
        return {**event, "root": os.fsdecode(self.watched)}

    def sync(self, *events, path=SYSTEM_PATH, dry_run=False, **more):
        settings = {**({} if "host" in more else self.target), **more}
        return self.run_plugin(self.request(list(events), settings, dry_run=dry_run), path=path)

    def there(self, top=b"mirror"):
        found = {}
        for directory, _, names in os.walk(self.path(top)):
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    found[os.path.relpath(os.path.join(directory, name), self.path(top))] = file.read()
        return found

    def test_relative_paths_times_and_modes_are_preserved(self):
        path = self.write(b"in/2026/a/letter.txt", b"dear")
        os.chmod(path, 0o4755)
        os.utime(path, (1000000000, 1000000000))
        response = self.sync(self.event(path))
        self.assertEqual((response["outcome"], response["message"]), ("succeeded", "copied"), response)
        copy = self.path(b"mirror/2026/a/letter.txt")
        self.assertEqual([exact(each) for each in response["outputs"]], [copy])
        self.assertEqual(self.there(), {b"2026/a/letter.txt": b"dear"})
        facts = os.stat(copy)
        self.assertEqual((facts.st_mtime, stat.S_IMODE(facts.st_mode)), (1000000000, 0o755))

    def test_only_the_files_of_events_are_copied_and_repeating_is_harmless(self):
        self.write(b"in/other", b"other")
        path = self.write(b"in/a", b"first")
        states = []
        for _ in range(2):
            response = self.sync(self.event(path))
            states.append((response, self.there(), os.stat(self.path(b"mirror/a")).st_ino))
        self.assertEqual(states[0], states[1])
        self.write(b"in/a", b"second one")
        self.sync(self.event(path, "modified"))
        self.assertEqual(self.there(), {b"a": b"second one"})

    def test_hostile_names_one_by_one_and_in_a_batch(self):
        paths = [self.write(b"in/%s/" % name + name, b"of " + name) for name in HOSTILE_NAMES + [b"x:y", b"*", b"--delete"]]
        for path in paths[::2]:
            self.assertEqual(self.sync(self.event(path))["outcome"], "succeeded")
        response = self.sync(*[self.event(path) for path in paths[1::2]])
        self.assertEqual({each["outcome"] for each in response["results"]}, {"succeeded"}, response)
        self.assertEqual(self.there(), self.there(b"in"))
        self.assertEqual(len(self.there()), len(paths))

    def test_hostile_directories(self):
        for name in HOSTILE_NAMES[:9]:
            self.watched = self.path(b"root:" + name)
            path = self.write(b"root:" + name + b"/a", b"x")
            target = self.path(b"out:" + name, name)
            event = {**PluginTestCase.event(self, path), "root": "", "root_base64": alight_plugin.base64.b64encode(self.watched).decode()}
            response = self.run_plugin(self.request([event], {"to": alight_plugin.json_path(target)}))
            self.assertEqual(response["outcome"], "succeeded", response)
            self.assertTrue(os.path.exists(os.path.join(target, b"a")))

    def test_deletions_require_the_setting(self):
        paths = [self.write(b"in/d/" + name, b"x") for name in (b"a", b"-rf \n\xe9", b"stays")]
        self.sync(*[self.event(path) for path in paths])
        for path in paths[:2]:
            os.unlink(path)
        response = self.sync(*[self.event(path, "deleted") for path in paths[:2]])
        self.assertEqual([each["outcome"] for each in response["results"]], ["skipped", "skipped"])
        self.assertEqual(len(self.there()), 3)
        response = self.sync(*[self.event(path, "deleted") for path in paths[:2]], delete=True)
        self.assertEqual([each["message"] for each in response["results"]], ["removed", "removed"])
        self.assertEqual(list(self.there()), [b"d/stays"])
        self.assertEqual(self.sync(self.event(paths[0], "deleted"), delete=True)["outcome"], "succeeded")

    def test_a_move_is_repeated_at_the_destination(self):
        old = self.write(b"in/old", b"x")
        self.sync(self.event(old))
        new = self.path(b"in/new")
        os.rename(old, new)
        self.sync(self.event(new, "moved", source=old), delete=True)
        self.assertEqual(self.there(), {b"new": b"x"})
        self.write(b"in/old", b"another")  # and the old name is reused before the event is handled
        os.rename(new, self.path(b"in/newer"))
        self.sync(self.event(self.path(b"in/newer"), "moved", source=new), self.event(old), delete=True)
        self.assertEqual(self.there(), {b"newer": b"x", b"old": b"another"})

    def test_the_disk_takes_precedence_over_stale_events(self):
        path = self.write(b"in/a", b"alive")
        self.assertEqual(self.sync(self.event(path, "deleted"), delete=True)["message"], "copied")
        self.assertEqual(self.there(), {b"a": b"alive"})

    def test_special_files_are_not_copied(self):
        os.symlink(b"/etc/passwd", self.path(b"in/link"))
        os.mkfifo(self.path(b"in/pipe"))
        response = self.sync(self.event(self.path(b"in/link")), self.event(self.path(b"in/pipe")))
        self.assertEqual([each["code"] for each in response["results"]], ["not-a-file", "not-a-file"])
        self.assertEqual(self.there(), {})

    def test_checksum_compares_contents(self):
        path = self.write(b"in/a", b"one")
        self.sync(self.event(path))
        times = (os.stat(path).st_atime, os.stat(path).st_mtime)
        self.write(b"in/a", b"two")
        os.utime(path, times)
        copy = os.stat(self.path(b"mirror/a"))
        os.utime(path, ns=(copy.st_atime_ns, copy.st_mtime_ns))
        self.sync(self.event(path))
        self.assertEqual(self.there(), {b"a": b"one"})
        self.sync(self.event(path), checksum=True)
        self.assertEqual(self.there(), {b"a": b"two"})

    def test_one_failure_in_a_batch_does_not_affect_other_files(self):
        good, bad = self.write(b"in/good", b"x"), self.write(b"in/bad", b"x")
        self.write(b"mirror/bad/in the way", b"")
        response = self.sync(self.event(good), self.event(bad))
        self.assertEqual([each["outcome"] for each in response["results"]], ["succeeded", "failed"], response)
        self.assertEqual(self.there()[b"good"], b"x")

    def test_invalid_parameters_fail(self):
        path = self.write(b"in/a", b"x")
        host = {"host": "nas.local", "folder": "x"}
        for settings in (
                {}, {"to": ""}, {**self.target, **host}, {"host": "nas.local"}, {"folder": "x"}, {**self.target, "folder": "x"},
                {**host, "host": "-oProxyCommand=x"}, {**host, "host": "a b"}, {**host, "host": "a:b"}, {**host, "host": "x@-y"},
                {**host, "host": "$(touch x)"}, {**host, "host": "a@b@c"}, {**host, "host": "nas.local\n"},
                {**host, "folder": "-rf"}, {**host, "port": 0}, {**self.target, "kib_per_second": 0}):
            with self.subTest(settings=settings):
                response = self.run_plugin(self.request([self.event(path)], settings))
                self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"), response)
        response = self.sync(self.event(path), to=os.fsdecode(self.watched))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "same-file"))
        self.assertEqual(self.all_files(), [b"in/a"])

    def test_a_relative_directory_is_relative_to_the_rules_file(self):
        path = self.write(b"in/a", b"x")
        request = self.request([self.event(path)], {"to": "mirror"})
        request["rule"]["file"] = os.fsdecode(self.path(b"rules.yaml"))
        self.assertEqual(self.run_plugin(request)["outcome"], "succeeded")
        self.assertEqual(self.there(), {b"a": b"x"})

    def test_a_dry_run_changes_nothing(self):
        path = self.write(b"in/a", b"x")
        self.assertEqual(self.sync(self.event(path), dry_run=True)["outcome"], "succeeded")
        self.assertEqual(self.all_files(), [b"in/a"])

    def test_a_full_disk_is_retried(self):
        disk = self.path(b"disk")
        os.mkdir(disk)
        script = 'mount -t tmpfs -o size=16k tmpfs "$0" && "$@" && ls -A "$0" >&2'
        prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, os.fsdecode(disk)]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("no user namespaces here to mount a small disk in")
        path = self.write(b"in/a", bytes(100000))
        output, errors = self.start(
            self.request([self.event(path)], {"to": os.fsdecode(disk)}), prefix=prefix).communicate(timeout=60)
        response = json.loads(output)
        self.assertEqual((response["outcome"], response["code"]), ("retry", "resources"), response)
        self.assertEqual(errors, b"")

    def test_sigterm_at_any_time_leaves_no_partial_file(self):
        data = random.Random(1).randbytes(30_000_000)
        path = self.write(b"in/a", data)
        chance = random.Random(7)
        for _ in range(8):
            shutil.rmtree(self.path(b"mirror"), ignore_errors=True)
            child = self.start(self.request([self.event(path)], {**self.target, "kib_per_second": 50000}))
            time.sleep(chance.uniform(0.05, 0.5))
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=60)
            self.assertIn(child.returncode, (0, -signal.SIGTERM))
            self.assertIn(self.there(), ({}, {b"a": data}))

    # Hosts

    def install_ssh(self, message=None):
        tools, log = self.path(b"bin"), os.fsdecode(self.path(b"ssh.log"))
        os.makedirs(tools, exist_ok=True)
        os.makedirs(self.path(b"home"), exist_ok=True)
        with open(os.path.join(tools, b"ssh"), "w", encoding="utf-8") as file:
            file.write(SSH.format(python=sys.executable, log=log, home=os.fsdecode(self.path(b"home"))))
        os.chmod(os.path.join(tools, b"ssh"), 0o755)
        if message:
            self.write(b"ssh.log.errors", message.encode())
        return os.fsdecode(tools) + ":" + SYSTEM_PATH

    def test_a_host_receives_files_and_deletions_with_quoted_names(self):
        tools = self.install_ssh()
        paths = [self.write(b"in/" + name, b"of " + name) for name in HOSTILE_NAMES]
        where = {"host": "backup@nas.local", "folder": "$(touch owned) mirror", "port": 2222, "key": "/keys/o'ne two"}
        response = self.sync(*[self.event(path) for path in paths], path=tools, **where)
        self.assertEqual({each["outcome"] for each in response["results"]}, {"succeeded"}, response)
        self.assertEqual(self.there(b"home/$(touch owned) mirror"), self.there(b"in"))
        self.assertEqual(os.listdir(self.path(b"home")), [b"$(touch owned) mirror"])
        os.unlink(paths[2])
        self.sync(self.event(paths[2], "deleted"), path=tools, delete=True, **where)
        self.assertEqual(self.there(b"home/$(touch owned) mirror"), self.there(b"in"))
        with open(self.path(b"ssh.log"), encoding="utf-8") as file:
            arguments = json.loads(file.readline())
        for word in ("-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oClearAllForwardings=yes", "-p2222",
                     "-oIdentitiesOnly=yes", "/keys/o'ne two"):
            self.assertIn(word, arguments)
        self.assertFalse(any("touch owned" in word for word in arguments), arguments)

    def test_the_error_of_ssh_decides_about_a_retry(self):
        path = self.write(b"in/a", b"x")
        for message, outcome in (
                ("ssh: connect to host nas.local port 22: Connection refused", "retry"),
                ("ssh: connect to host nas.local port 22: Connection timed out", "retry"),
                ("ssh: Could not resolve hostname nas.local: Temporary failure in name resolution", "retry"),
                ("backup@nas.local: Permission denied (publickey).", "failed"),
                ("Host key verification failed.", "failed"),
                ("ssh: Could not resolve hostname nas.local: Name or service not known", "failed")):
            with self.subTest(message):
                response = self.sync(
                    self.event(path), path=self.install_ssh(message + "\n"), host="nas.local", folder="x")
                self.assertEqual((response["outcome"], response["code"]), (outcome, "ssh"), response)
                self.assertIn(message[:40], response["message"])

    def test_without_rsync_it_names_the_package(self):
        tools = self.path(b"bin")
        os.mkdir(tools)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH), os.path.join(tools, b"python3"))
        path = self.write(b"in/a", b"x")
        response = self.sync(self.event(path), path=os.fsdecode(tools))
        self.assertEqual((response["outcome"], response["code"]), ("failed", "missing-program"))
        self.assertIn("package rsync", response["message"])


if __name__ == "__main__":
    unittest.main()
