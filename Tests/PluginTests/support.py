"""Helpers shared by the tests of plugins: requests of the protocol, hostile names, real files."""

import base64
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
PLUGINS = os.path.join(HERE, "..", "..", "plugins")
THUMBNAIL = os.path.realpath(os.path.join(PLUGINS, "thumbnail", "thumbnail"))
REINDEX = os.path.realpath(os.path.join(PLUGINS, "reindex", "reindex"))
NAMES = sorted(name for name in os.listdir(PLUGINS) if os.path.exists(os.path.join(PLUGINS, name, "plugin.yaml")))
# Those in Swift exist only after a build.
EXECUTABLES = [
    path for name in NAMES if os.path.exists(path := os.path.realpath(os.path.join(PLUGINS, name, name)))]
# `digest` is written in Swift.
PYTHON_NAMES = [name for name in NAMES if name != "digest"]
SEARCH = os.path.realpath(os.path.join(PLUGINS, "reindex", "search"))
RUNNER = os.path.join(HERE, "run-plugin-case")

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
HAS_VIPS = bool(shutil.which("vipsthumbnail", path=SYSTEM_PATH) and shutil.which("vips", path=SYSTEM_PATH))

HOSTILE_NAMES = [
    b"plain.jpg",
    b"a b.jpg",
    b"-rf with\nnewline and 'quote\".jpg",
    b"a.jpg[shrink=2]",
    b"a[Q=1].jpg",
    b"%s.jpg",
    b"%s%n%d[strip,Q=1].jpg",
    b"caf\xe9.jpg",
    b"stdin",
    b"$(touch owned) `touch owned`; touch owned.jpg",
    b"..jpg",
    b"tab\tand\x1b[31mred.jpg",
    "日本語 🌄.jpg".encode(),
    b"n" * 240 + b".jpg",
]


def load(path):
    """Imports a program whose name has no .py suffix."""
    loader = importlib.machinery.SourceFileLoader(os.path.basename(path).replace("-", "_"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True  # no __pycache__ beside the plugins
CASE = load(RUNNER)


sys.path.insert(0, os.path.realpath(os.path.join(PLUGINS, "python")))
import alight_plugin  # noqa: E402


def missing_programs(name):
    """Returns the required programs of the plugin that are not installed."""
    needs = alight_plugin.read_description(os.path.join(PLUGINS, name, "plugin.yaml")).get("requires", [])
    return ", ".join(need for need in needs if not shutil.which(need.split()[0], path=SYSTEM_PATH))


def needs_programs(name):
    """Skips a class of tests, with a message, if programs of the plugin are missing."""
    lacking = missing_programs(name)
    return unittest.skipIf(lacking, f"'{name}' needs {lacking}; make plugins-deps installs it")


def path_members(path, key="path"):
    """Returns the members for a path in the protocol: as a string, and in Base64 if the string is not exact."""
    members = {key: path.decode(errors="replace")}
    try:
        path.decode()
    except UnicodeDecodeError:
        members[f"{key}_base64"] = base64.b64encode(path).decode()
    return members


def exact(value):
    """Returns the bytes of a path in a response: a string, or {"base64": …}."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def text_or_base64(path):
    try:
        return path.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(path).decode()}


class PluginTestCase(unittest.TestCase):
    plugin = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="alight-plugins-")
        self.addCleanup(directory.cleanup)
        self.root = os.fsencode(os.path.realpath(directory.name))
        self.scratch = os.path.join(self.root, b".scratch")
        os.mkdir(self.scratch, 0o700)

    def path(self, *names):
        return os.path.join(self.root, *names)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def event(self, path, kind="created", source=None):
        return {
            "event": kind, **path_members(path), **path_members(os.path.relpath(path, self.root), "relative"),
            **path_members(self.root, "root"), **(path_members(source, "from") if source else {}),
            "origin": "live", "type": "file",
        }

    def request(self, events, settings, **more):
        return {
            "protocol": 1, "id": "01JD8Z3T1WQ2V7N0C5M4K9R6XB", "attempt": 1, "max_attempts": 5, "interrupted": False,
            "dry_run": False, "deadline": "2099-01-01T00:00:00Z",
            "rule": {"name": "test", "file": "rules/test.yaml", "line": 1}, "with": settings,
            "scratch": os.fsdecode(self.scratch), "steps": [], "events": events, **more,
        }

    def start(self, request, path=SYSTEM_PATH, verb="run", prefix=()):
        environment = CASE.environment(request, os.fsdecode(self.scratch))
        environment["PATH"] = path
        child = subprocess.Popen(
            [*prefix, self.plugin, verb], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.scratch, env=environment, start_new_session=True)
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
        child.stdin = None
        return child

    def finish(self, child):
        output, errors = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0, errors.decode(errors="replace"))
        response = json.loads(output)
        self.assertIn(response["outcome"], ("succeeded", "skipped", "retry", "not_ready", "failed"))
        self.assertNotIn("\n", response.get("message", ""))
        return response

    def run_plugin(self, request, **options):
        return self.finish(self.start(request, **options))

    def all_files(self):
        found = []
        for directory, _, names in os.walk(self.root):
            found += [os.path.relpath(os.path.join(directory, name), self.root) for name in names]
        return sorted(found)




def pdf(*pages):
    """Returns a PDF. A page is a line of text, (JPEG, width, height), or None for an empty page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", None, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []

    def add(dictionary, stream=None):
        if stream is not None:
            dictionary = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (dictionary, len(stream), stream)
        objects.append(dictionary)
        return len(objects)

    for page in pages:
        resources, content, size = b"/Font << /F 3 0 R >>", b"", (595, 420)
        if isinstance(page, tuple):
            data, width, height = page
            image = add(b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray"
                        b" /BitsPerComponent 8 /Filter /DCTDecode" % (width, height), data)
            size = (width * 72 // 300, height * 72 // 300)
            resources, content = b"/XObject << /I %d 0 R >>" % image, b"q %d 0 0 %d 0 0 cm /I Do Q" % size
        elif page:
            content = b"BT /F 24 Tf 40 200 Td (%s) Tj ET" % page.encode()
        body = add(b"", content)
        kids.append(add(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Resources << %s >> /Contents %d 0 R >>"
                        % (*size, resources, body)))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    data, offsets = b"%PDF-1.5\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return data + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, table, len(objects) + 1, len(data))
