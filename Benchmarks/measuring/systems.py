"""The measured systems: the reference in C, and Alight with each kind of action."""

import os
import shutil
import subprocess
import time

from .processes import Tree

PROCESSORS = os.cpu_count()


class System:
    """A program that runs the action for each finished file in the watched directory.

    `command`, `files` and `environment` may contain `{watched}`, `{own}` (a directory of the system, retained over a
    restart), `{disk}`, `{log}`, `{record}` and `{programs}`.
    """

    name = None
    command = ()
    files = {}
    environment = {}
    # The required programs, as a name in PATH or a path.
    needs = ()
    # Seconds without an action after which no further one is expected.
    quiet = 0.4
    ready_limit = 20
    is_alight = False
    # Whether directories below the watched one are also watched.
    is_recursive = True
    # Whether only existing files are watched.
    is_fixed = False
    # Whether its output is recorded instead of an action.
    speaks = False

    def __init__(self, place):
        self.place = place
        self.tree = None
        self.reader = None
        self.started = 0

    @classmethod
    def missing(cls):
        """Returns a required program that is not installed, or None."""
        for need in cls.needs:
            if not (os.access(need, os.X_OK) if "/" in need else shutil.which(need)):
                return need
        return None

    def filled(self, text):
        place = self.place
        values = dict(
            watched=place.watched, own=place.own, disk=place.disk, log=place.log, record=place.program("record"),
            programs=place.programs)
        for name, value in values.items():
            text = text.replace("{%s}" % name, value)
        return text

    def prepare(self):
        for name, text in self.files.items():
            path = os.path.join(self.place.own, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.filled(text))

    def start(self):
        environment = dict(os.environ, LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
        environment |= {name: self.filled(value) for name, value in self.environment.items()}
        argv = [self.filled(word) for word in self.command]
        self.tree = Tree()
        self.started = time.monotonic()
        with open(os.path.join(self.place.own, "output"), "ab") as errors:
            if self.speaks:
                # The reader is not part of the measured tree.
                self.reader = subprocess.Popen(
                    [self.place.program("record"), "lines", self.place.log], stdin=subprocess.PIPE)
            output = self.reader.stdin if self.speaks else errors
            self.tree.start(argv, stdout=output, stderr=errors, env=environment, cwd=self.place.own)
        if self.speaks:
            self.reader.stdin.close()
        self.begin()

    def begin(self):
        """Sends further settings to the program after its start."""

    def is_alive(self):
        return self.tree.is_alive()

    def output(self):
        with open(os.path.join(self.place.own, "output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def last_words(self):
        return " / ".join(self.output().splitlines()[-2:])

    def overflows(self):
        """Returns the number of overflows of the kernel's queue; None if the program does not report it."""
        return None

    def stop(self):
        self.end(self.tree.stop)

    def kill(self):
        self.end(self.tree.kill)

    def end_if_started(self):
        if self.tree:
            self.kill()

    def end(self, stop):
        stop()
        if self.reader:
            self.reader.wait()
            self.reader = None


class Reference(System):
    name = "C reference"
    command = ("{programs}/runner", "{watched}", str(PROCESSORS), "{record}", "each", "{log}")

    def overflows(self):
        return self.output().count("overflow")


class SpeakingReference(Reference):
    """The reference without a process per file: it prints a line for each."""

    name = "C reference, lines"
    command = ("{programs}/runner", "{watched}", "0")
    speaks = True


class Floor(System):
    """The promises of Alight for each file, and nothing else: what the reference would cost with them."""

    name = "C floor"
    command = ("{programs}/floor", "{watched}", "{disk}/journal.db", str(PROCESSORS), "{record}", "each", "{log}")
    is_recursive = False


RULES = """
rules:
  - name: bench
    path: "{watched}/**"
    settle: %(settle)s
    concurrency: %(lanes)d
    action: %(action)s
%(more)s"""


class Alight(System):
    """Alight as a user would run it for speed: without quiet time, and with the journal on the disk."""

    name = "Alight, exec"
    is_alight = True
    program = None
    settle = "0"
    # While one action finishes and the next one starts, others occupy the processors.
    lanes = 2 * PROCESSORS
    action = '{ exec: ["{record}", each, "{log}", "${path}"] }'
    more = ""
    # Scratch directories are in memory, as in /run, which may not be in memory in a container.
    environment = {
        "ALIGHT_CONTROL": "{own}/control", "XDG_STATE_HOME": "{own}/state", "RUNTIME_DIRECTORY": "{own}/run"}

    @property
    def command(self):
        return (self.program, "run", "{own}/rules.yaml", "--journal", "{disk}/journal.db")

    @property
    def files(self):
        return {"rules.yaml": RULES % dict(settle=self.settle, lanes=self.lanes, action=self.action, more=self.more)}

    def overflows(self):
        return self.output().count("overflow")


class AlightBuiltIn(Alight):
    name = "Alight, built in"
    action = "log"
    lanes = 4
    speaks = True


PLUGIN = """name: record
protocol: [1]
modes: [run, serve]
concurrent: 8
batch: 1000
run: ["./record", request, "{log}"]
"""


class AlightServed(Alight):
    name = "Alight, served"
    action = "{ use: record }"
    lanes = 8

    def prepare(self):
        super().prepare()
        directory = os.path.join(self.place.own, "plugins", "record")
        os.makedirs(directory, exist_ok=True)
        shutil.copy(self.place.program("record"), directory)
        with open(os.path.join(directory, "plugin.yaml"), "w", encoding="utf-8") as file:
            file.write(self.filled(PLUGIN))


BATCH = "    batch: { files: 1000, wait: 50ms }\n"


class AlightBatch(Alight):
    name = "Alight, exec of batches"
    action = '{ exec: ["{record}", request, "{log}"] }'
    more = BATCH


class AlightServedBatch(AlightServed):
    name = "Alight, served batches"
    more = BATCH


REFERENCES = [Reference, SpeakingReference, Floor]
WAYS = [Alight, AlightBuiltIn, AlightServed, AlightBatch, AlightServedBatch]
