"""Helpers for tests that run complete rules: a home directory with the shipped plugins, a server, a desktop, and files."""

import collections
import functools
import http.server
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from support import HAS_VIPS, NAMES, SYSTEM_PATH, missing_programs, pdf
from test_docs import ALIGHT, CHECKOUT, copy_plugins

SYSTEM_PYTHON = "/usr/bin/python3"  # has the modules of Debian packages
DEADLINE = 60


@functools.cache
def plugin_directory():
    """Returns a directory with all plugins, which exists until the tests finish."""
    directory = tempfile.TemporaryDirectory(prefix="alight-plugins-")
    plugins = os.path.join(os.path.realpath(directory.name), "plugins")
    copy_plugins(plugins)
    return directory, plugins


class Home:
    """A temporary home directory, which also contains the rules file."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="alight-home-")
        self.root = os.path.realpath(self._folder.name)
        os.symlink(plugin_directory()[1], self.path("plugins"))
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def path(self, *names):
        return os.path.join(self.root, *names)

    def put(self, name, data, mtime=None):
        """Writes a file, and creates its parent directories; a name that ends in a slash is a directory."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if name.endswith("/"):
            return
        with open(path, "wb") as file:
            file.write(data)
        if mtime is not None:
            os.utime(path, (mtime, mtime))

    def tree(self):
        """Returns the names of all files and links, except the plugins and the caches of programs."""
        found = set()
        for directory, directories, names in os.walk(self.root):
            directories[:] = [each for each in directories if each not in (".run", ".cache", ".config")]
            found |= {os.path.relpath(os.path.join(directory, name), self.root) for name in names}
        return found - {"plugins"}

    def run(self, *words, **variables):
        """Runs `alight` in the home."""
        os.makedirs(self.path(".run"), mode=0o700, exist_ok=True)
        return subprocess.run(
            [ALIGHT, *words], cwd=self.root, capture_output=True, text=True, errors="replace", timeout=300,
            env={"PATH": SYSTEM_PATH, "HOME": self.root, "XDG_RUNTIME_DIR": self.path(".run"), "TZ": "UTC", **variables})

    def missing_programs(self, rules):
        """Returns the programs that plugins of the rules require and that are not installed."""
        used = [name for name in re.findall(r"\buse: ([\w-]+)", rules) if name in NAMES]
        lacking = [missing_programs(name) for name in used]
        if "digest" in used and not os.access(self.path("plugins/digest/digest"), os.X_OK):
            lacking.append("digest, which is not built: swift build --product digest-plugin")
        if "thumbnail" in used and not HAS_VIPS:
            lacking.append("libvips-tools")
        return ", ".join(each for each in lacking if each)


# A server


Request = collections.namedtuple("Request", "method path headers body")


class Receiver:
    """An HTTP server at 127.0.0.1 that accepts all requests."""

    def __enter__(self):
        self.requests = requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append(Request(self.command, self.path, dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


# A desktop


class Desktop:
    """A session bus with a notification service that records the notifications."""

    def __init__(self, root, is_needed=True):
        self._is_needed, self._processes = is_needed, []
        self._file = os.path.join(root, ".run", "shown")
        self.variables = {}

    def __enter__(self):
        if not self._is_needed:
            return self
        if not all(shutil.which(each) for each in ("dbus-daemon", "notify-send")) or subprocess.run(
                [SYSTEM_PYTHON, "-c", "import dbus, gi"], capture_output=True).returncode:
            raise unittest.SkipTest("needs dbus-daemon, notify-send, python3-dbus and python3-gi")
        os.makedirs(os.path.dirname(self._file), mode=0o700, exist_ok=True)
        socket = os.path.join(os.path.dirname(self._file), "bus")
        self.variables = {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={socket}"}
        self._start("dbus-daemon", "--session", "--nofork", f"--address=unix:path={socket}")
        end = time.monotonic() + DEADLINE
        while not os.path.exists(socket):
            if time.monotonic() > end:
                raise AssertionError("the bus did not start in time")
            time.sleep(0.01)
        service = self._start(SYSTEM_PYTHON, os.path.join(CHECKOUT, "Tests/Support/desktop.py"), self._file)
        if not service.stdout.readline().startswith(b"ready"):
            raise AssertionError("the notification service did not start")
        return self

    def _start(self, *words):
        process = subprocess.Popen(words, env={**os.environ, **self.variables}, stdout=subprocess.PIPE)
        self._processes.append(process)
        return process

    def __exit__(self, *_):
        for process in reversed(self._processes):
            process.kill()
            process.wait()
            process.stdout.close()

    def shown(self):
        if not os.path.exists(self._file):
            return []
        with open(self._file, encoding="utf-8") as file:
            return file.read().splitlines()


# Files


@functools.cache
def made(suffix, *arguments):
    """Returns the file that a program writes to the path `FILE` in its arguments."""
    with tempfile.TemporaryDirectory(prefix="alight-made-") as directory:
        path = os.path.join(directory, "made" + suffix)
        subprocess.run([path if each == "FILE" else each for each in arguments], check=True, capture_output=True)
        with open(path, "rb") as file:
            return file.read()


@functools.cache
def source_image(suffix, operation, *options):
    """Returns an image of 600 by 400 pixels, written by an operation of vips."""
    with tempfile.NamedTemporaryFile(suffix=".ppm") as source:
        source.write(b"P6\n600 400\n255\n" + bytes(x % 256 for x in range(600 * 3)) * 400)
        source.flush()
        return made(suffix, "vips", operation, source.name, "FILE", *options)


def source_video(suffix):
    """Returns a video: two seconds of a test pattern of 160 by 90 pixels."""
    return made(suffix, "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=10:duration=2", "FILE")


def scanned(png):
    """Returns a PDF whose only page is this image."""
    with tempfile.NamedTemporaryFile(suffix=".png") as source:
        source.write(png)
        source.flush()
        size = subprocess.run(["vipsheader", "-f", "width", source.name], capture_output=True, text=True, check=True).stdout
        height = subprocess.run(["vipsheader", "-f", "height", source.name], capture_output=True, text=True, check=True).stdout
        with tempfile.NamedTemporaryFile(suffix=".v") as grey:
            subprocess.run(["vips", "colourspace", source.name, grey.name, "b-w"], check=True, capture_output=True)
            jpeg = made(".jpg", "vips", "jpegsave", grey.name, "FILE")
    return pdf((jpeg, int(size), int(height)))
