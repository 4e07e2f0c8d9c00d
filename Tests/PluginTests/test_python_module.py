"""Tests of plugins/python/alight_plugin.py, with plugins that use it, run as by Alight."""

import contextlib
import glob
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from support import PLUGINS, PYTHON_NAMES, SYSTEM_PATH, PluginTestCase, alight_plugin, exact

MODULE_DIRECTORY = os.path.realpath(os.path.join(PLUGINS, "python"))
TIMEOUT = 60

WORDS = """
@alight_plugin.handler
def words(job):
    with job.event.open() as file:
        count = len(file.read().split())
    return alight_plugin.succeeded(f"{count} words", values={"words": count})
"""

# Each request waits until a file `go-NAME` exists or it is cancelled.
WAITING = """
import os, time
@alight_plugin.handler
def wait(job):
    name = os.path.basename(job.event.path)
    open(b"started-" + name, "w").close()
    try:
        while not os.path.exists(b"go-" + name):
            job.check()
            time.sleep(0.005)
    finally:
        open(b"left-" + name, "w").close()
    job.progress(1, "done")
    return name.decode()
"""

# Runs a program that never exits.
CHILD = """
@alight_plugin.handler
def child(job):
    job.call(["sh", "-c", "trap '' TERM; sleep 600 & echo $$ >pid.new; mv pid.new pid; wait"])
"""


class Served:
    """A serving plugin, called by the test instead of Alight."""

    def __init__(self, test, plugin):
        self.test = test
        self.process = subprocess.Popen(
            [plugin, "serve"], cwd=test.scratch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}, start_new_session=True)
        test.addCleanup(self.close)
        self.lines = queue.Queue()
        self.log = []
        self.threads = [
            threading.Thread(target=lambda: [self.lines.put(json.loads(line)) for line in self.process.stdout]),
            threading.Thread(target=lambda: [self.log.append(line.decode()) for line in self.process.stderr])]
        for thread in self.threads:
            thread.start()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(TIMEOUT)
        for thread in self.threads:
            thread.join(TIMEOUT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()

    def send(self, *messages):
        self.process.stdin.write(b"".join(
            (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in messages))
        self.process.stdin.flush()

    def receive(self):
        return self.lines.get(timeout=TIMEOUT)

    def run(self, path, identifier, **more):
        request = self.test.request([self.test.event(path)], {}, id=identifier, **more)
        self.send({"type": "run", **request})

    def finish(self):
        self.process.stdin.close()
        status = self.process.wait(TIMEOUT)
        for thread in self.threads:
            thread.join(TIMEOUT)
        return status


class ModuleTestCase(PluginTestCase):

    def install(self, body, description=None, main="alight_plugin.main()"):
        """Creates a plugin from the body of a program, and its plugin.yaml if a description is given."""
        directory = os.path.join(os.fsdecode(self.root), "plugins", "tried")
        os.makedirs(directory)
        text = f"#!{sys.executable}\nimport sys\nsys.path.insert(1, {MODULE_DIRECTORY!r})\n"
        text += f"sys.dont_write_bytecode = True\nimport alight_plugin\n{body}\n{main}\n"
        self.plugin = os.path.join(directory, "tried")
        with open(self.plugin, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.plugin, 0o755)
        if description is not None:
            with open(os.path.join(directory, "plugin.yaml"), "w", encoding="utf-8") as file:
                file.write("name: tried\nprotocol: [1]\n" + description)
        return self.plugin

    def result(self, path=None, settings=None, **more):
        path = path or self.write(b"in/a.txt", b"one two three")
        return self.run_plugin(self.request([self.event(path)], settings or {}, **more))

    def await_file(self, name):
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(os.path.join(self.scratch, name)):
            self.assertLess(time.monotonic(), deadline, f"{name} did not appear")
            time.sleep(0.005)


class RunTests(ModuleTestCase):

    def test_a_plugin_of_ten_lines(self):
        self.install(WORDS)
        self.assertEqual(
            self.result(), {"outcome": "succeeded", "message": "3 words", "values": {"words": 3}})

    def test_main_accepts_a_handler(self):
        self.install("def work(job):\n    return 'done'", main="alight_plugin.main(work)")
        self.assertEqual(self.result(), {"outcome": "succeeded", "message": "done"})

    def test_every_outcome(self):
        self.install("""
import errno, os
@alight_plugin.handler
def work(job):
    word = job.parameters["word"]
    if word == "nothing": return
    if word == "full": raise OSError(errno.ENOSPC, "No space left on device")
    if word == "denied": raise PermissionError(errno.EACCES, "Permission denied", "/srv/x")
    if word == "gone": open(b"/nowhere/file")
    if word == "mistake": return 1 / 0
    if word == "wrong": return 5
    raise getattr(alight_plugin, word)("a\\nreason", "a-code", **job.parameters["more"])
""")
        def result(word, **more):
            return self.result(settings={"word": word, "more": more})
        details = {"message": "a reason", "code": "a-code"}
        self.assertEqual(result("Skipped"), {"outcome": "skipped", **details})
        self.assertEqual(result("Retry", retry_after=30), {"outcome": "retry", **details, "retry_after": 30})
        self.assertEqual(result("NotReady"), {"outcome": "not_ready", **details})
        self.assertEqual(result("Failed", values={"a": 1}), {"outcome": "failed", **details, "values": {"a": 1}})
        self.assertEqual(result("nothing"), {"outcome": "succeeded"})
        for word, outcome, code in (
                ("full", "retry", "enospc"), ("denied", "failed", "eacces"), ("gone", "failed", "enoent"),
                ("mistake", "failed", "exception"), ("wrong", "failed", "exception")):
            response = result(word)
            self.assertEqual((response["outcome"], response["code"]), (outcome, code), response)

    def test_missing_permissions_are_temporary(self):
        self.install("""
import os
@alight_plugin.handler
def work(job):
    os.chmod(job.event.path, 0)
    if os.geteuid() == 0: os.seteuid(65534)
    open(job.event.path)
""")
        response = self.result()
        self.assertEqual((response["outcome"], response["code"]), ("retry", "eacces"), response)

    def test_a_vanished_file_is_skipped(self):
        for how in ("job.event.open()", "open(job.event.path)"):
            shutil.rmtree(self.path(b"plugins"), ignore_errors=True)
            self.install(f"@alight_plugin.handler\ndef work(job):\n    {how}")
            response = self.result(path=self.path(b"in/gone.txt"))
            self.assertEqual((response["outcome"], response["code"]), ("skipped", "gone"))

    def test_names_are_exact_bytes_in_both_directions(self):
        self.install("""
@alight_plugin.handler
def work(job):
    target = job.parameters.path("to")
    with job.event.open() as file, alight_plugin.atomic_file(target, job) as copy:
        copy.write(file.read())
    return alight_plugin.succeeded(outputs=[target])
""", "raw_paths: true\nparameters: {type: object, required: [to], properties: {to: {type: string}}}\n")
        names = [b"plain", b"-rf with\nnewline and 'quote\".txt", b"caf\xe9", b"$(touch x) `y`; z", b"%s[1]"]
        for name in names:
            path = self.write(b"in/" + name, b"of " + name)
            to = alight_plugin.json_path(self.path(b"out", name))
            response = self.result(path, {"to": to})
            self.assertEqual(response["outcome"], "succeeded", response)
            self.assertEqual([exact(each) for each in response["outputs"]], [self.path(b"out", name)])
            with open(self.path(b"out", name), "rb") as file:
                self.assertEqual(file.read(), b"of " + name)
        self.assertEqual(sorted(os.listdir(self.path(b"out"))), sorted(names))

    def test_lossy_paths_are_refused(self):
        self.install("@alight_plugin.handler\ndef work(job):\n    job.parameters.path('to')")
        response = self.result(self.write(b"in/caf\xe9", b""), {"to": "/out/caf\ufffd"})
        self.assertEqual((response["outcome"], response["code"]), ("failed", "name-not-utf8"))

    def test_a_batch_has_a_result_for_each_event(self):
        self.install(WORDS)
        paths = [self.write(b"in/%d" % number, b"word " * number) for number in range(3)]
        os.unlink(paths[1])
        response = self.run_plugin(self.request([self.event(path) for path in paths] + [{"event": "created"}], {}))
        self.assertEqual([each["outcome"] for each in response["results"]], ["succeeded", "skipped", "succeeded", "failed"])
        self.assertEqual(response["results"][2]["values"], {"words": 2})
        self.assertEqual(response["results"][3]["code"], "bad-request")
        self.assertEqual(response["message"], "2 succeeded, 1 skipped, 1 failed")

    def test_a_batch_handler_receives_all_events(self):
        self.install("""
@alight_plugin.handler(batch=True)
def work(jobs):
    return [alight_plugin.Skipped(f"{job.id} of {len(jobs)}") if job.parameters["skip"] else f"{job.id}" for job in jobs]
""")
        path = self.write(b"in/a", b"")
        events = [{**self.event(path), "job": f"J{number}", "with": {"skip": number == 1}} for number in range(3)]
        response = self.run_plugin(self.request(events, {}))
        self.assertEqual([(each["outcome"], each["message"]) for each in response["results"]],
                         [("succeeded", "J0"), ("skipped", "J1 of 3"), ("succeeded", "J2")])

    def test_a_batch_handler_with_a_wrong_count_or_an_error_fails_all_events(self):
        for body in ("return []", "raise alight_plugin.Retry('busy', 'busy')"):
            shutil.rmtree(self.path(b"plugins"), ignore_errors=True)
            self.install(f"@alight_plugin.handler(batch=True)\ndef work(jobs):\n    {body}")
            path = self.write(b"in/a", b"")
            response = self.run_plugin(self.request([self.event(path)] * 2, {}))
            self.assertEqual(len(response["results"]), 2)
            self.assertIn(response["results"][1]["code"], ("exception", "busy"))
            self.assertEqual(response["outcome"], response["results"][0]["outcome"])

    def test_parameters_have_defaults_and_are_checked(self):
        self.install("@alight_plugin.handler\ndef work(job):\n    return repr(dict(job.parameters))", """
parameters:
  type: object
  required: [to]
  additionalProperties: false
  properties:
    to: { type: string, minLength: 1 }
    size: { type: integer, minimum: 16, maximum: 4096, default: 256 }
    kind: { type: string, enum: [a, b] }
    word: { type: string, pattern: "^[a-z]+$" }
    list: { type: array, items: { type: string, pattern: "^x" }, maxItems: 2 }
    key: { type: string, minLength: 8, writeOnly: true }
""")
        self.assertEqual(self.result(settings={"to": "x"})["message"], "{'size': 256, 'to': 'x'}")
        for settings, text in (
                ({}, "'to' is missing"), ({"to": ""}, "'to' is too short"), ({"to": 5}, "must be of the type string"),
                ({"to": "x", "size": 5}, "must be from 16 to 4096, and '5' is not"),
                ({"to": "x", "size": True}, "must be of the type integer"),
                ({"to": "x", "kind": "c"}, "must be one of a, b"), ({"to": "x", "list": ["y"]}, "'list[0]' must match ^x"),
                ({"to": "x", "kind": "a\n"}, "must be one of"), ({"to": "x", "word": "ab\n"}, "'word' must match"),
                ({"to": "x", "list": ["x"] * 3}, "has 3 elements"), ({"to": "x", "other": 1}, "unknown parameter 'other'"),
                ({"to": "x", "key": "hunter2"}, "'key' is too short: it")):
            response = self.result(settings=settings)
            self.assertEqual((response["outcome"], response["code"]), ("failed", "bad-parameters"))
            self.assertIn(text, response["message"])
            self.assertNotIn("hunter2", response["message"])

    def test_secrets_are_not_in_repr(self):
        self.install(
            "@alight_plugin.handler\ndef work(job):\n    return f'{job.parameters} {job!r} {job.parameters[\"key\"][:1]}'",
            "parameters: {type: object, properties: {key: {type: string, writeOnly: true}, to: {type: string}}}\n")
        message = self.result(settings={"key": "hunter2", "to": "there"})["message"]
        self.assertIn("<secret>", message)
        self.assertIn("there", message)
        self.assertTrue(message.endswith(" h"))
        self.assertNotIn("unter2", message)

    def test_relative_paths_are_relative_to_the_rules_file(self):
        self.install("@alight_plugin.handler\ndef work(job):\n    return job.parameters.path('to').decode()")
        rule = {"name": "x", "file": "/srv/rules/x.yaml", "line": 1}
        self.assertEqual(self.result(settings={"to": "out/a"}, rule=rule)["message"], "/srv/rules/out/a")
        self.assertEqual(self.result(settings={"to": "/out/"}, rule=rule)["message"], "/out/")

    def test_log_lines_have_levels_and_print_writes_to_the_log(self):
        self.install("""
import subprocess
@alight_plugin.handler
def work(job):
    job.log("careful\\nnow", "warning")
    print("said", flush=True)
    subprocess.run(["echo", "echoed"])
    job.progress(0.25, "a quarter")
""")
        child = self.start(self.request([self.event(self.write(b"in/a", b""))], {}))
        output, errors = child.communicate(timeout=TIMEOUT)
        self.assertEqual(json.loads(output), {"outcome": "succeeded"})
        lines = errors.decode().splitlines()
        self.assertEqual(lines[:4], ["<4>careful", "<4>now", "said", "echoed"])
        self.assertEqual(json.loads(lines[4]), {"progress": 0.25, "message": "a quarter"})

    def test_the_deadline_is_in_seconds_from_now(self):
        self.install("@alight_plugin.handler\ndef work(job):\n    return str(job.remaining())")
        later = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 600)) + ".123456789Z"
        self.assertAlmostEqual(float(self.result(deadline=later)["message"]), 600, delta=60)
        self.assertEqual(self.result(deadline=None)["message"], "inf")

    def test_call_returns_status_output_and_errors_without_a_shell(self):
        self.install("""
@alight_plugin.handler
def work(job):
    done = job.call(["sh", "-c", 'cat; printf %s "$0" >&2; exit 3', "$(touch owned)"], stdin=b"x" * 1000000)
    return f"{done.status} {len(done.output)} {done.errors}"
""")
        self.assertEqual(self.result()["message"], "3 1000000 $(touch owned)")
        self.assertEqual(os.listdir(self.scratch), [])

    def test_call_names_the_package_and_limits_the_output(self):
        self.install("""
@alight_plugin.handler
def work(job):
    job.call(job.parameters["words"], package="a-package", limit=1000)
""")
        response = self.result(settings={"words": ["no-such-program"]})
        self.assertEqual(response["code"], "missing-program")
        self.assertIn("install the package a-package", response["message"])
        response = self.result(settings={"words": ["cat", "/dev/zero"]})
        self.assertEqual((response["outcome"], response["code"]), ("failed", "too-large"))

    def test_call_yields_lines_and_does_not_wait_for_the_rest(self):
        self.install("""
lines = []
@alight_plugin.handler
def work(job):
    job.call(["sh", "-c", "printf 'a\\\\nb\\\\nc'; setsid sleep 600 & echo $! >pid"], on_line=lines.append)
    return repr(lines)
""")
        started = time.monotonic()
        self.assertEqual(self.result()["message"], "[b'a', b'b', b'c']")
        self.assertLess(time.monotonic() - started, 30)
        with open(os.path.join(self.scratch, b"pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def test_stream_is_read_during_the_run_and_stopped_with_its_block(self):
        self.install("""
@alight_plugin.handler
def work(job):
    with job.stream(["sh", "-c", "echo one; echo two >&2; exit 3"]) as program:
        first = program.output.readline()
    try:
        with job.stream(["sh", "-c", "echo $$ >pid; echo go; exec sleep 600"]) as endless:
            endless.output.readline()
            raise ValueError
    except ValueError:
        return f"{first} {program.status} {program.errors.strip()}"
""")
        self.assertEqual(self.result()["message"], "b'one\\n' 3 two")
        with open(os.path.join(self.scratch, b"pid"), encoding="utf-8") as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))

    def test_sigterm_cleans_up_and_kills_programs_that_ignore_it(self):
        self.install(CHILD.replace("job.call", "with alight_plugin.atomic_file(b'out', job) as file:\n        job.call"))
        child = self.start(self.request([self.event(self.write(b"in/a", b""))], {}))
        self.await_file(b"pid")
        with open(os.path.join(self.scratch, b"pid"), encoding="utf-8") as file:
            stuck = int(file.read())
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=TIMEOUT)
        self.assertEqual((child.returncode, output), (-signal.SIGTERM, b""))
        self.assertFalse(os.path.exists(f"/proc/{stuck}"))
        self.assertEqual(os.listdir(self.scratch), [b"pid"])

    def test_sigterm_interrupts_a_loop(self):
        self.install("@alight_plugin.handler\ndef work(job):\n    open('started', 'w').close()\n    while True: pass")
        child = self.start(self.request([self.event(self.write(b"in/a", b""))], {}))
        self.await_file(b"started")
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=TIMEOUT)
        self.assertEqual(child.returncode, -signal.SIGTERM)

    def test_the_next_attempt_removes_the_files_of_a_killed_one(self):
        self.install("""
import os, signal
@alight_plugin.handler
def work(job):
    with alight_plugin.atomic_file(job.parameters.path("to"), job) as file:
        file.write(b"x" * 100000)
        if job.attempt == 1: os.kill(os.getpid(), signal.SIGKILL)
""")
        request = self.request([self.event(self.write(b"in/a", b""))], {"to": os.fsdecode(self.path(b"out/a"))})
        self.start(request).communicate(timeout=TIMEOUT)
        self.assertEqual(len(os.listdir(self.path(b"out"))), 1)
        self.run_plugin({**request, "attempt": 2})
        self.assertEqual(os.listdir(self.path(b"out")), [b"a"])


class DescribeTests(ModuleTestCase):

    def test_describe_prints_plugin_yaml(self):
        self.install(WORDS, "summary: \"Counts: words\"  # of a text\nrun: ./tried\nmodes: [run, serve]\nconcurrent: 4\n")
        done = subprocess.run([self.plugin, "describe"], capture_output=True, env={"PATH": SYSTEM_PATH})
        self.assertEqual(json.loads(done.stdout), {
            "name": "tried", "protocol": [1], "summary": "Counts: words", "modes": ["run", "serve"], "concurrent": 4})

    def test_main_accepts_a_description(self):
        self.install(WORDS, main="alight_plugin.main(description={'name': 'words', 'protocol': [1]})")
        done = subprocess.run([self.plugin, "describe"], capture_output=True, env={"PATH": SYSTEM_PATH})
        self.assertEqual(json.loads(done.stdout), {"name": "words", "protocol": [1]})

    def test_check_names_missing_programs(self):
        self.install(WORDS, 'requires: [sh, "no-such-program (its-package)"]\n')
        done = subprocess.run([self.plugin, "check"], capture_output=True, env={"PATH": SYSTEM_PATH})
        response = json.loads(done.stdout)
        self.assertEqual((done.returncode, response["outcome"], response["code"]), (0, "failed", "missing-program"))
        self.assertIn("its-package", response["message"])

    def test_an_invalid_plugin_yaml_names_the_line(self):
        self.install(WORDS, "summary: >\n  folded\n")
        done = subprocess.run([self.plugin, "describe"], capture_output=True, text=True, env={"PATH": SYSTEM_PATH})
        self.assertEqual(done.returncode, 78)
        self.assertIn("plugin.yaml: line 3: '>' is not supported here", done.stderr)

    def test_the_shipped_descriptions_parse_as_with_a_yaml_library(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no PyYAML: apt install python3-yaml")
        self.assertGreater(len(PYTHON_NAMES), 1)
        for name in PYTHON_NAMES:
            path = os.path.join(PLUGINS, name, "plugin.yaml")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(alight_plugin.read_description(path), yaml.safe_load(file), name)
        text = "a: [x, 'it''s', \"q\\n\", {b: 1, c: [2.5, -3]}]\nd:\n  - one # c\n  - 'two # no'\ne: {}\nf: a b#c d\ng:\n  h: ~\n"
        path = os.fsdecode(self.write(b"plugin.yaml", text.encode()))
        self.assertEqual(alight_plugin.read_description(path), yaml.safe_load(text))

    def test_it_runs_on_python_3_9(self):
        """Uses that version if it is installed, otherwise only checks the grammar."""
        import ast
        for path in [os.path.join(MODULE_DIRECTORY, "alight_plugin.py"), *(os.path.join(PLUGINS, name, name) for name in PYTHON_NAMES)]:
            with open(path, encoding="utf-8") as file:
                ast.parse(file.read(), path, feature_version=(3, 9))


class ServeTests(ModuleTestCase):
    DESCRIPTION = "modes: [run, serve]\nconcurrent: 4\n"

    def serve(self, body, description=DESCRIPTION):
        served = Served(self, self.install(body, description))
        served.send({"type": "hello", "protocol": 1, "capabilities": ["cancel", "progress"]})
        self.assertEqual(served.receive(), {"type": "ready", "protocol": 1, "concurrent": 4})
        return served

    def test_hello_concurrency_cancel_ping_and_end_of_file(self):
        served = self.serve(WAITING)
        names = [b"a", b"b", b"c", b"d"]
        for name in names:
            served.run(self.write(b"in/" + name, b""), f"id-{name.decode()}", attempt=3)
        for name in names:
            self.await_file(b"started-" + name)  # all four, before any response
        served.send({"type": "ping", "n": 7})
        self.assertEqual(served.receive(), {"type": "pong", "n": 7})  # although all threads are busy

        served.send({"type": "cancel", "id": "id-b"}, {"type": "cancel", "id": "unknown"}, {"type": "later"})
        self.assertEqual(served.receive(), {
            "type": "result", "id": "id-b", "attempt": 3, "outcome": "retry", "message": "cancelled", "code": "cancelled"})
        self.await_file(b"left-b")

        for name in (b"d", b"a"):  # in any order
            open(os.path.join(self.scratch, b"go-" + name), "w").close()
            identifier = f"id-{name.decode()}"
            self.assertEqual(
                served.receive(), {"type": "progress", "id": identifier, "fraction": 1.0, "message": "done"})
            self.assertEqual(served.receive(), {
                "type": "result", "id": identifier, "attempt": 3, "outcome": "succeeded", "message": name.decode()})

        served.process.stdin.close()  # open requests are finished
        open(os.path.join(self.scratch, b"go-c"), "w").close()
        self.assertEqual(served.receive()["type"], "progress")
        self.assertEqual(served.receive()["id"], "id-c")
        self.assertEqual(served.process.wait(TIMEOUT), 0)

    def test_concurrency_is_limited_to_the_reported_number(self):
        served = self.serve(WAITING)
        names = [b"%d" % number for number in range(6)]
        for name in names:
            served.run(self.write(b"in/" + name, b""), name.decode())
        for name in names[:4]:
            self.await_file(b"started-" + name)
        served.send({"type": "cancel", "id": "5"})  # still queued
        served.send({"type": "ping", "n": 1})
        self.assertEqual(served.receive(), {"type": "pong", "n": 1})
        self.assertEqual(len([name for name in os.listdir(self.scratch) if name.startswith(b"started-")]), 4)
        for name in names:
            open(os.path.join(self.scratch, b"go-" + name), "w").close()
        results = {}
        while len(results) < 6:
            message = served.receive()
            if message["type"] == "result":
                results[message["id"]] = message["outcome"]
        self.assertEqual(results.pop("5"), "retry")
        self.assertEqual(set(results.values()), {"succeeded"})
        self.assertEqual(served.finish(), 0)
        self.assertFalse(os.path.exists(os.path.join(self.scratch, b"started-5")))

    def test_cancel_stops_only_the_programs_of_that_request(self):
        served = self.serve(CHILD.replace("trap '' TERM; ", ""))
        served.run(self.write(b"in/a", b""), "a")
        self.await_file(b"pid")
        with open(os.path.join(self.scratch, b"pid"), encoding="utf-8") as file:
            text = file.read().strip()
        served.send({"type": "cancel", "id": "a"})
        self.assertEqual(served.receive()["code"], "cancelled")
        self.assertFalse(os.path.exists(f"/proc/{text}"))
        served.send({"type": "ping", "n": 1})
        self.assertEqual(served.receive()["n"], 1)
        self.assertEqual(served.finish(), 0)

    def test_a_batch_is_served_too(self):
        served = self.serve(WORDS)
        path = self.write(b"in/a", b"one two")
        served.send({"type": "run", **self.request([self.event(path), self.event(path)], {}, id="a")})
        response = served.receive()
        self.assertEqual([each["values"]["words"] for each in response["results"]], [2, 2])
        self.assertEqual(served.finish(), 0)

    def test_invalid_messages_errors_and_prints_do_not_stop_it(self):
        served = self.serve("""
@alight_plugin.handler
def work(job):
    print("said")
    if job.event.path.endswith(b"bad"): raise KeyError("no")
    if job.event.path.endswith(b"exit"): raise SystemExit(3)
""")
        served.send(b"garbage", b"[]", b"", b"\xff\xfe")
        served.send({"type": "run", "id": "e", "attempt": 1}, {"type": "run", "id": "e", "attempt": 1, "events": []})
        for _ in range(2):
            self.assertEqual(served.receive()["code"], "bad-request")
        for name, code in ((b"bad", "exception"), (b"exit", "exception"), (b"good", None)):
            served.run(self.write(b"in/" + name, b""), name.decode())
            response = served.receive()
            self.assertEqual((response["id"], response.get("code")), (name.decode(), code))
        self.assertEqual(served.finish(), 0)
        self.assertIn("said\n", served.log)

    def test_sigterm_cancels_open_requests_and_exits(self):
        served = self.serve(WAITING)
        served.run(self.write(b"in/a", b""), "a")
        self.await_file(b"started-a")
        served.process.send_signal(signal.SIGTERM)
        self.assertEqual(served.receive()["code"], "cancelled")
        self.assertEqual(served.process.wait(TIMEOUT), -signal.SIGTERM)
        self.await_file(b"left-a")

    def test_sigterm_also_cancels_about_the_end_of_file(self):
        for number in range(20):  # the signal arrives before, while or after the end of file is read
            name = str(number)
            served = self.serve(WAITING) if number == 0 else Served(self, self.plugin)
            served.run(self.write(b"in/" + name.encode(), b""), name)
            self.await_file(f"started-{name}".encode())
            served.process.stdin.close()
            time.sleep(number * 0.0005)
            served.process.send_signal(signal.SIGTERM)
            self.assertEqual(served.receive()["code"], "cancelled")
            self.assertEqual(served.process.wait(TIMEOUT), -signal.SIGTERM)

    def test_a_thousand_requests_leak_no_descriptor_or_thread(self):
        served = self.serve("@alight_plugin.handler\ndef work(job):\n    job.call(['true']) if job.attempt == 2 else None")
        path = self.write(b"in/a", b"")
        def count():
            base = f"/proc/{served.process.pid}"
            return len(os.listdir(f"{base}/fd")), len(os.listdir(f"{base}/task"))
        for number in range(8):
            served.run(path, f"first-{number}", attempt=2)
        for number in range(8):
            served.receive()
        before = count()
        for number in range(1000):
            served.run(path, str(number), attempt=2 if number % 20 == 0 else 1)
        self.assertEqual({served.receive()["outcome"] for _ in range(1000)}, {"succeeded"})
        self.assertEqual(count(), before)
        for path in glob.glob(f"/proc/{served.process.pid}/task/*/children"):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "")
        self.assertEqual(served.finish(), 0)


class InstalledTests(PluginTestCase):
    """The shipped plugins find their helper module in any location."""

    def check(self, plugin):
        return subprocess.run(
            [plugin, "describe"], capture_output=True, text=True, env={"PATH": SYSTEM_PATH}, cwd="/", timeout=TIMEOUT)

    def test_a_link_to_one_directory_suffices(self):
        for name in PYTHON_NAMES:
            os.symlink(os.path.realpath(os.path.join(PLUGINS, name)), self.path(os.fsencode(name)))
            done = self.check(self.path(os.fsencode(name), os.fsencode(name)))
            self.assertEqual((done.returncode, json.loads(done.stdout or "{}").get("name")), (0, name), done.stderr)

    def test_a_copy_of_one_directory_suffices_with_the_helper_in_it_or_beside_it(self):
        for name in PYTHON_NAMES:
            directory = os.fsdecode(self.path(os.fsencode(name)))
            shutil.copytree(os.path.join(PLUGINS, name), directory)
            done = self.check(os.path.join(directory, name))
            if done.returncode:  # otherwise the system has a package of it
                self.assertEqual(done.returncode, 72)
                self.assertIn("alight_plugin.py is missing: copy the directory 'python'", done.stderr)
            shutil.copy(os.path.join(MODULE_DIRECTORY, "alight_plugin.py"), directory)
            self.assertEqual(self.check(os.path.join(directory, name)).returncode, 0)
            os.unlink(os.path.join(directory, "alight_plugin.py"))
        shutil.copytree(MODULE_DIRECTORY, os.fsdecode(self.path(b"python")))
        for name in PYTHON_NAMES:
            self.assertEqual(self.check(os.fsdecode(self.path(os.fsencode(name), os.fsencode(name)))).returncode, 0)


if __name__ == "__main__":
    unittest.main()
