"""Other programs that run an action when a file arrives, each configured as its manual recommends for speed."""

import json
import os
import subprocess
import time

from .systems import System

# The directory into which packaging/install-peers installs packages from PyPI.
PYPI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".build", "peers", "bin")


class Incron(System):
    name = "incron"
    needs = ("incrond",)
    mask = "IN_CLOSE_WRITE,IN_MOVED_TO"
    command = ("incrond", "-n", "-f", "{own}/incron.conf")

    @property
    def files(self):
        return {
            "incron.conf": "system_table_dir = {own}/incron.d\nuser_table_dir = {own}/spool\n"
                           "lockfile_dir = {own}\nlockfile_name = incrond\n",
            "incron.d/bench": "{watched} " + self.mask + " {record} each {log} $@/$#\n",
            "spool/.keep": "",
        }


class IncronCreate(Incron):
    """Detects new directories only with this mask, and also starts the action for the creation."""

    name = "incron, IN_CREATE"
    mask = "IN_CLOSE_WRITE,IN_MOVED_TO,IN_CREATE"


class Direvent(System):
    name = "direvent"
    needs = ("direvent",)
    events = "CLOSE_WRITE, MOVED_TO"
    command = ("direvent", "-f", "-F", "0", "-l", "err", "{own}/direvent.conf")

    @property
    def files(self):
        return {
            "direvent.conf": 'watcher {\n path "{watched}" recursive;\n event (' + self.events + ");\n"
                             ' command "{record} each {log} \\"$file\\"";\n timeout 30;\n}\n'}


class DireventCreate(Direvent):
    """Detects new directories only with these events, and also starts the action for the creation."""

    name = "direvent, create"
    events = "create, CLOSE_WRITE, MOVED_TO"


class Inotifywait(System):
    name = "inotifywait, loop"
    needs = ("inotifywait",)
    command = ("bash", "-c", "inotifywait -m -r -q -e close_write,moved_to --format '%w%f%0' --no-newline {watched} | "
               "while IFS= read -r -d '' file; do {record} each {log} \"$file\"; done")


class Watchman(System):
    """Passes several files at once; waits until there was no event for 20 ms, its default."""

    name = "watchman, trigger"
    needs = ("watchman",)
    environment = {"HOME": "{own}"}
    command = ("watchman", "--foreground", "--sockname={own}/socket", "--logfile={own}/output",
               "--statefile={own}/state", "--pidfile={own}/pid")

    def begin(self):
        client = ["watchman", "--no-spawn", "--sockname=" + self.place.own + "/socket"]
        trigger = ["trigger", self.place.watched, {
            "name": "bench", "expression": ["allof", ["type", "f"], "exists"], "append_files": True,
            "command": [self.place.program("record"), "each", self.place.log], "stdin": "/dev/null"}]
        deadline = time.monotonic() + self.ready_limit
        while time.monotonic() < deadline:
            listed = subprocess.run([*client, "trigger-list", self.place.watched], capture_output=True, check=False)
            if b'"bench"' in listed.stdout:
                return  # from its state, after a restart
            watched = subprocess.run([*client, "watch", self.place.watched], capture_output=True, check=False)
            if watched.returncode == 0 and b'"error"' not in watched.stdout:
                subprocess.run([*client, "-j"], input=json.dumps(trigger).encode(), capture_output=True, check=False)
                return
            time.sleep(0.02)


class Watchmedo(System):
    """Starts a shell for each event; the command selects the relevant ones."""

    name = "watchmedo"
    quiet = 1
    needs = (PYPI + "/watchmedo",)
    command = (PYPI + "/watchmedo", "shell-command", "-R", "-D", "-c",
               'case "${watch_event_type}" in closed) {record} each {log} "${watch_src_path}";; '
               'moved) {record} each {log} "${watch_dest_path}";; esac', "{watched}")


class Watchdog(System):
    name = "watchdog, own code"
    needs = (PYPI + "/watchmedo",)
    files = {"watch.py": """
import subprocess, sys
from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

class Handler(FileSystemEventHandler):
    def on_closed(self, event):
        subprocess.run([*sys.argv[2:], event.src_path])

    def on_moved(self, event):
        if not event.is_directory:
            subprocess.run([*sys.argv[2:], event.dest_path])

observer = Observer()
observer.schedule(Handler(), sys.argv[1], recursive=True)
observer.start()
while observer.is_alive():
    observer.join(1)
"""}
    command = (PYPI + "/python3", "{own}/watch.py", "{watched}", "{record}", "each", "{log}")


class Watchfiles(System):
    """Waits for 50 ms without a change, at most 1.6 s; these are its defaults."""

    name = "watchfiles, own code"
    quiet = 2.5
    needs = (PYPI + "/watchfiles",)
    files = {"watch.py": """
import os, subprocess, sys
from watchfiles import Change, watch

for changes in watch(sys.argv[1], watch_filter=None):
    for kind, path in changes:
        if kind != Change.deleted and not os.path.isdir(path):
            subprocess.run([*sys.argv[2:], path])
"""}
    command = (PYPI + "/python3", "{own}/watch.py", "{watched}", "{record}", "each", "{log}")


class Entr(System):
    """Watches a fixed list of files: it only takes part in scenarios with existing files."""

    name = "entr, existing files"
    needs = ("entr",)
    is_fixed = True
    command = ("bash", "-c", "find {watched} -type f | entr -n -p {record} each {log} /_")


PEERS = [Incron, Direvent, Inotifywait, Watchman, Watchmedo, Watchdog, Watchfiles, Entr]
# Peers that need another setting to detect new directories.
FOLLOWING = {Incron: IncronCreate, Direvent: DireventCreate}
# Peers that take part in all scenarios with --quick.
FEW = [Direvent, Inotifywait, Watchman]
