"""Runs the shell commands of a page of the documentation, and compares their output with the page.

One bash runs all blocks of a page in order, in a temporary home directory. The preconditions of a page are in
`Scenes/PAGE.sh`, in sections that start with a line `#: WHEN FIRST LINE OF THE BLOCK`, where WHEN is

    before   run before the block
    after    run after the block, while an `alight run` or `alight watch` of the block still runs
    instead  run instead of the block; its output is compared with the whole block

and `#: start` for the start of the page. Variables in them: `$RULES` is the last YAML block before the block, `$OUT`
the output of the block so far, `$CHECKOUT` the checkout, `$HOST` the directory that replaces `/` in the paths of the
page, and `$PORT` the port that replaces 7171. Commands and settings:

    await COMMAND       waits until the shell command succeeds
    await_output REGEX  waits until the output of the block matches
    finish              stops the background command
    TERMINAL=1          runs the following commands with a prompt on a terminal
    NUMBERS=any         in a section, ignores differences between numbers

A command that does not exit by itself runs in the background from its `ready:` line until `finish` or the end of the
page. Commands that would change the machine are replaced by the programs in `stand-ins`, which check their arguments.
A block that cannot be run has `<!-- not run: REASON -->` in the line above it.
"""

import difflib
import os
import re
import select
import signal
import socket
import subprocess
import time

import test_docs as docs

HERE = os.path.dirname(os.path.realpath(__file__))
SCENES = os.path.join(HERE, "Scenes")
STAND_INS = os.path.join(HERE, "stand-ins")
SHELL = ("sh", "bash", "console", "text", "")
# The timeout of a block in seconds.
TIMEOUT = 60

PRELUDE = r"""
await() {
    local end=$((SECONDS + 45))
    until eval "$1" 2>/dev/null; do
        if [ $SECONDS -ge $end ]; then echo "timeout: $1"; return 1; fi
        sleep 0.05
    done
}
await_output() { await "grep -qE -- '$1' $OUT"; }
background() {
    setsid bash -c "$1" >>"$OUT" 2>&1 &
    GROUP=$!
    echo $GROUP >>"$STEP_DIRECTORY/groups"
    await_output '^ready:|retry: [0-9]'
}
on_terminal() { script --quiet --return --command "stty cols 200; $1" /dev/null </dev/null | tr -d '\r'; }
finish() {
    [ -n "${GROUP:-}" ] || return 0
    kill -TERM -- -$GROUP 2>/dev/null || true
    wait $GROUP || true
    GROUP=
}
"""

# Absolute directories in a page; they are moved below the temporary directory.
MACHINE = re.compile(r"(?<![\w.~}/])/(?=(?:srv|etc|backup|mnt)\b)")
ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
ABBREVIATED_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{5,24}\b")
BACKGROUND = re.compile(r"(?:alight run\b(?!.*--once)|alight watch\b|curl .*/v1/events$)(?!.*&$).*")


class Mismatch(AssertionError):
    pass


class Block:
    """A block of shell: a script, or commands with prompts and the shown output of each."""

    def __init__(self, page, language, line, text, rules):
        self.location, self.language, self.text, self.rules = f"{page}:{line}", language, text, rules
        self.first = text.split("\n")[0]
        self.commands = []
        if language in ("sh", "bash"):
            return
        for each in text.splitlines():
            if prompt := re.match(r"[$#] (.*)", each):
                self.commands.append((prompt[1], []))
            elif self.commands:
                self.commands[-1][1].append(each)

    @property
    def is_script(self):
        """Whether the block is a script without prompts."""
        return self.language in ("sh", "bash")


def shell_blocks(page):
    """Returns the blocks of a page that contain commands or output."""
    found, rules, excluded = [], None, excluded_blocks(page)
    for language, line, text in docs.blocks(page):
        if language == "yaml":
            rules = text
        elif language in SHELL and line not in excluded and not is_protocol(text) and not text.startswith("#!"):
            found.append(Block(page, language, line, text, rules))
    return found


def is_protocol(text):
    """Whether a block consists of messages between a plugin and Alight, one per line."""
    return all(re.match(r"[<>] ", line) for line in text.splitlines())


def excluded_blocks(page):
    """Returns the reasons for the excluded blocks of a page, by the number of their first line."""
    return {number + 2: reason for number, reason in (
        (number, re.fullmatch(r"<!-- not run: (.+) -->", line)) for number, line in
        enumerate(docs.read(page).splitlines(), 1)) if reason}


def scene(page):
    """Returns the sections of the scene of a page, by WHEN and the first line of the block."""
    path = os.path.join(SCENES, os.path.basename(page).removesuffix(".md") + ".sh")
    sections, key = {}, None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if heading := re.fullmatch(r"#: (start|(?:before|after|instead) .+)\n", line):
                    key = heading[1]
                    if key in sections:
                        raise AssertionError(f"{path}: duplicate section '{key}'")
                    sections[key] = ""
                elif key:
                    sections[key] += line
    return sections


def mask(text, numbers=False):
    """Replaces times, durations, sizes and rates with words, and gaps in tables with two spaces."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = ULID.sub("ID", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?", "TIME", text)
    text = re.sub(r"\b\d\d:\d\d(?::\d\d)?\b", "TIME", text)
    text = re.sub(r"\b\d+(?:\.\d+)? (?:ms|s|min|h|days?)\b(?: \d+ (?:ms|s|min|h)\b)*", "LENGTH", text)
    text = re.sub(r"\b\d+(?:\.\d+)? (?:KiB|MiB|GiB|bytes)(?!\w)", "SIZE", text)
    text = re.sub(r"\b\d+(?:\.\d+)?(?= per second)|\b\d+(?:\.\d+)?(?= (?:events|jobs)/s)", "RATE", text)
    text = re.sub(r"(process|watches:|of) \d{2,}", r"\1 N", text)
    if numbers:
        text = re.sub(r"\b(\d+|RATE)\b", "N", text)
        text = re.sub(r"\bN (\w+)ies\b", r"N \1y", text)
        text = re.sub(r"\bN (\w+?)s?\b", r"N \1", text)
    return re.sub(r"(?<=\S)  +", "  ", text).rstrip("\n")


def matches(shown, printed, numbers=False):
    """Whether the output matches the page, where `…` matches anything, and a line of only `…` any lines."""
    pattern = ""
    for line in mask(shown, numbers).split("\n"):
        pattern += r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + " *\n"
    return re.fullmatch(pattern, mask(printed, numbers) + "\n") is not None


class PageRunner:
    """A bash that runs one page."""

    def __init__(self, page, root):
        self.page, self.root, self.scene = page, root, scene(page)
        self.step_directory, self.home = os.path.join(root, "steps"), os.path.join(root, "home")
        self.ids, self.step, self.port = {}, 0, free_port()
        for directory in (
                self.step_directory, self.home, self.path("bin"), self.path("home/.run"), self.path("host/etc")):
            os.makedirs(directory, mode=0o700)
        os.symlink(docs.ALIGHT, self.path("bin/alight"))
        for name in os.listdir(STAND_INS):
            os.symlink(os.path.join(STAND_INS, name), self.path("bin", name))

    def path(self, *names):
        return os.path.join(self.root, *names)

    def __enter__(self):
        done, self.replies = os.pipe()
        self.orders = os.pipe()
        driver = self.path("steps/driver")
        # Background commands inherit the pipe, so end-of-file would not indicate the exit of bash.
        docs.write(driver, PRELUDE + f"trap 'echo exited >&{self.replies}' EXIT\nwhile read -r STEP <&{self.orders[0]}; do\n"
                   f'    OUT=$STEP.out; : >>"$OUT"\n    source "$STEP" >>"$OUT" 2>&1; STATUS=$?\n'
                   f"    echo $STATUS >&{self.replies}\ndone\n")
        self.bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", driver], cwd=self.home, pass_fds=(self.orders[0], self.replies),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env={
                "PATH": f"{self.path('bin')}:{docs.SYSTEM_PATH}", "HOME": self.home, "LC_ALL": "C.UTF-8", "TZ": "UTC",
                "STEP_DIRECTORY": self.step_directory, "PORT": str(self.port), "HOST": self.path("host"),
                "CHECKOUT": docs.CHECKOUT, "ALIGHT": docs.ALIGHT,
                "XDG_RUNTIME_DIR": self.path("home/.run"), "XDG_STATE_HOME": self.path("home/.local/state"),
                "RUNTIME_DIRECTORY": self.path("home/.run/alight"),
                "ALIGHT_CONTROL": self.path("home/.run/alight/control.sock")})
        os.close(self.replies)
        os.close(self.orders[0])
        self.replies = done
        return self

    def __exit__(self, *_):
        groups = [self.bash.pid]
        if os.path.exists(self.path("steps/groups")):
            with open(self.path("steps/groups"), encoding="ascii") as file:
                groups += map(int, file.read().split())
        # Background commands have already been stopped, except after an error.
        for group in groups:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(group, number)
                    time.sleep(0.05)
                except ProcessLookupError:
                    break
        self.bash.wait()
        os.close(self.replies)
        os.close(self.orders[1])

    def run(self, script, location, rules=None, output=None):
        """Runs a script in the shell; returns its status and the file with its output."""
        self.step += 1
        step = self.path("steps", f"{self.step}")
        if output:
            os.link(output, f"{step}.out")
        if rules is not None:
            docs.write(self.path("steps", "rules.yaml"), self.translated(rules))
        docs.write(step, f"RULES={self.path('steps', 'rules.yaml')}\n{script}")
        os.write(self.orders[1], step.encode() + b"\n")
        end, reply = time.monotonic() + TIMEOUT, b""
        while not reply.endswith(b"\n"):
            if not select.select([self.replies], [], [], max(0, end - time.monotonic()))[0]:
                raise Mismatch(f"{location}: timeout after {TIMEOUT} s\n{script}\n{read_output(f'{step}.out')}")
            reply += os.read(self.replies, 64) or b"exited\n"
        if b"exited" in reply:
            raise Mismatch(f"{location}: a command failed\n{script}\n{read_output(f'{step}.out')}")
        return int(reply), f"{step}.out"

    def translated(self, text):
        """Replaces paths and ports of the page with those of this run."""
        text = text.replace("127.0.0.1:7171", f"127.0.0.1:{self.port}")
        text = MACHINE.sub(self.path("host") + "/", text).replace("/home/ada", self.home)
        return ABBREVIATED_ULID.sub(lambda found: self.actual_id(found[0]), text)

    def shown(self, text):
        """Replaces paths in the output with those of the page."""
        # The paths of root and of a user differ; the pages show those of a user.
        text = text.replace(self.path("home/.run"), "/run/user/1000").replace("/run/alight/", "/run/user/1000/alight/")
        return text.replace(self.home, "~").replace(self.path("host"), "")

    def actual_id(self, cut):
        """Returns the actual ID of the job for an ID in the page."""
        return next((real for written, real in self.ids.items() if written.startswith(cut)), cut)

    def compare(self, location, shown, output, numbers=False):
        """Compares the output with the page, and maps the IDs of its jobs."""
        printed, shown = self.shown(read_output(output)), shown.replace("/home/ada", "~")
        if not matches(shown, printed, numbers):
            difference = difflib.unified_diff(
                mask(shown, numbers).split("\n"), mask(printed, numbers).split("\n"), "shown", "printed", lineterm="")
            raise Mismatch(f"{location}: the output differs\n" + "\n".join(difference) + f"\n--- output ---\n{printed}")
        for written, real in zip(ULID.findall(shown), ULID.findall(printed)):
            self.ids[written] = real

    def section(self, when, block, output=None):
        """Runs the section of the scene for the block, if any."""
        if text := self.scene.get(f"{when} {block.first}"):
            return self.run("set -euo pipefail\n" + text, f"{block.location}, {when}", block.rules, output)
        return None

    def run_block(self, block):
        self.section("before", block)
        if done := self.section("instead", block):
            self.compare(block.location, block.text, done[1], "NUMBERS=any" in self.scene[f"instead {block.first}"])
            return
        if block.is_script:
            status, output = self.run(
                "set -euo pipefail\n" + "".join(
                    in_background(self.translated(line)) for line in block.text.splitlines(True)),
                block.location)
            self.section("after", block, output)
            return
        if not block.commands:
            raise Mismatch(f"{block.location}: the block has no command, and the scene has no 'instead {block.first}'")
        for number, (command, shown) in enumerate(block.commands):
            status, output = self.run(
                "set +e -uo pipefail\n" + on_terminal_if_set(in_background(self.translated(command))), block.location)
            if number == len(block.commands) - 1:
                self.section("after", block, output)
            if shown:
                self.compare(block.location, "\n".join(shown), output)
            elif status != 0:
                raise Mismatch(f"{block.location}: {command}: exit status {status}\n{read_output(output)}")

    def run_page(self):
        blocks = shell_blocks(self.page)
        firsts = [block.first for block in blocks]
        for key in self.scene:
            if key != "start" and firsts.count(key.partition(" ")[2]) != 1:
                raise Mismatch(f"{self.page}: the scene has '{key}', which is not the first line of exactly one block")
        if start := self.scene.get("start"):
            self.run("set -euo pipefail\n" + start, f"{self.page}, start")
        for block in blocks:
            self.run_block(block)
        self.run("set -euo pipefail\nfinish", f"{self.page}, end")
        return len(blocks)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def in_background(line):
    """Makes a command that does not exit by itself run in the background."""
    return f"background {shell_quote(line.strip())}\n" if BACKGROUND.match(line) else line


def on_terminal_if_set(line):
    """Makes a command run on a terminal if the scene sets TERMINAL."""
    return f"if [ -z \"${{TERMINAL:-}}\" ]; then {line}\nelse on_terminal {shell_quote(line)}; fi\n"


def shell_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def read_output(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
