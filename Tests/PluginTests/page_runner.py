"""Plays the lines of shell in a page of the documentation, and compares what they print with what the page shows.

A page is played from its first block to its last by one bash, in a home of its own. What the page takes for granted stands
in `Scenes/PAGE.sh`: sections that begin with a line `#: WHEN FIRST LINE OF THE BLOCK`, where WHEN is

    before   run before the block
    after    run after it, while an `alight run` or `alight watch` of the block still goes on
    instead  run in place of it; what it prints is compared with the whole block

and `#: start` for what comes before everything. In them `$RULES` is the YAML block that stands last before the block, `$OUT`
what the block has printed so far, `$CHECKOUT` the checkout, `$HOST` what stands for `/` in the paths of the page, `$PORT`
the port in place of 7171; and there are

    await LINE     waits until the line of shell succeeds
    said REGEX     waits until the block has printed it
    finish         ends what goes on
    TERMINAL=1     has the commands with a prompt that follow run on a terminal
    NUMBERS=any    in a section, has numbers count as equal

A command that would not end goes on in the background, from the moment at which it says `ready:`, until `finish` or the end
of the page. What a page must not do is done by the programs in `stand-ins`, which check what they are asked to do.
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
# The longest that one block may take.
LIMIT = 60

PRELUDE = r"""
await() {
    local end=$((SECONDS + 45))
    until eval "$1" 2>/dev/null; do
        if [ $SECONDS -ge $end ]; then echo "not so in time: $1"; return 1; fi
        sleep 0.05
    done
}
said() { await "grep -qE -- '$1' $OUT"; }
background() {
    setsid bash -c "$1" >>"$OUT" 2>&1 &
    GROUP=$!
    echo $GROUP >>"$PLAY/groups"
    said '^ready:|retry: [0-9]'
}
on_terminal() { script --quiet --return --command "stty cols 200; $1" /dev/null </dev/null | tr -d '\r'; }
finish() {
    [ -n "${GROUP:-}" ] || return 0
    kill -TERM -- -$GROUP 2>/dev/null || true
    wait $GROUP || true
    GROUP=
}
"""

# Folders of the machine that a page names. They are played below the scratch directory.
MACHINE = re.compile(r"(?<![\w.~}/])/(?=(?:srv|etc|backup|mnt)\b)")
ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
CUT_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{5,24}\b")
ENDLESS = re.compile(r"(?:alight run\b(?!.*--once)|alight watch\b|curl .*/v1/events$)(?!.*&$).*")


class Mismatch(AssertionError):
    pass


class Block:
    """A block of shell: its lines, and for one with prompts the commands with what is shown of each."""

    def __init__(self, page, language, line, text, rules):
        self.place, self.language, self.text, self.rules = f"{page}:{line}", language, text, rules
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
        """Whether all of it is shell, without prompts."""
        return self.language in ("sh", "bash")


def shell_blocks(page):
    """Returns the blocks of a page that are lines of shell, or what some printed."""
    found, rules, is_left = [], None, excluded_blocks(page)
    for language, line, text in docs.blocks(page):
        if language == "yaml":
            rules = text
        elif language in SHELL and line not in is_left and not is_protocol(text) and not text.startswith("#!"):
            found.append(Block(page, language, line, text, rules))
    return found


def is_protocol(text):
    """Whether a block is what a plugin and Alight say to each other, a line each."""
    return all(re.match(r"[<>] ", line) for line in text.splitlines())


def excluded_blocks(page):
    """Returns the blocks that the page says are not played, by their first line, with the reason."""
    return {number + 2: reason for number, reason in (
        (number, re.fullmatch(r"<!-- not played: (.+) -->", line)) for number, line in
        enumerate(docs.read(page).splitlines(), 1)) if reason}


def scene(page):
    """Returns the sections of a page's scene, by when and by the first line of the block."""
    path = os.path.join(SCENES, os.path.basename(page).removesuffix(".md") + ".sh")
    sections, key = {}, None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if heading := re.fullmatch(r"#: (start|(?:before|after|instead) .+)\n", line):
                    key = heading[1]
                    if key in sections:
                        raise AssertionError(f"{path}: '{key}' is there twice")
                    sections[key] = ""
                elif key:
                    sections[key] += line
    return sections


def mask(text, numbers=False):
    """Puts words in place of times, lengths and sizes, and makes each gap in a table two blanks."""
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


def agree(shown, printed, numbers=False):
    """Whether what is printed is what is shown, in which `…` stands for anything, and a line of it for any lines."""
    pattern = ""
    for line in mask(shown, numbers).split("\n"):
        pattern += r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + " *\n"
    return re.fullmatch(pattern, mask(printed, numbers) + "\n") is not None


class PageRunner:
    """One bash that plays one page."""

    def __init__(self, page, root):
        self.page, self.root, self.scene = page, root, scene(page)
        self.play, self.home = os.path.join(root, "play"), os.path.join(root, "home")
        self.ids, self.step, self.port = {}, 0, free_port()
        for directory in (self.play, self.home, self.path("bin"), self.path("home/.run"), self.path("host/etc")):
            os.makedirs(directory, mode=0o700)
        os.symlink(docs.ALIGHT, self.path("bin/alight"))
        for name in os.listdir(STAND_INS):
            os.symlink(os.path.join(STAND_INS, name), self.path("bin", name))

    def path(self, *names):
        return os.path.join(self.root, *names)

    def __enter__(self):
        done, self.ended = os.pipe()
        self.orders = os.pipe()
        driver = self.path("play/driver")
        # What goes on in the background has the pipe as well, so that its end would tell nothing.
        docs.write(driver, PRELUDE + f"trap 'echo ended >&{self.ended}' EXIT\nwhile read -r STEP <&{self.orders[0]}; do\n"
                   f'    OUT=$STEP.out; : >>"$OUT"\n    source "$STEP" >>"$OUT" 2>&1; STATUS=$?\n'
                   f"    echo $STATUS >&{self.ended}\ndone\n")
        self.bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", driver], cwd=self.home, pass_fds=(self.orders[0], self.ended),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env={
                "PATH": f"{self.path('bin')}:{docs.SYSTEM_PATH}", "HOME": self.home, "LC_ALL": "C.UTF-8", "TZ": "UTC",
                "PLAY": self.play, "PORT": str(self.port), "HOST": self.path("host"), "CHECKOUT": docs.CHECKOUT, "ALIGHT": docs.ALIGHT,
                "XDG_RUNTIME_DIR": self.path("home/.run"), "XDG_STATE_HOME": self.path("home/.local/state"),
                "RUNTIME_DIRECTORY": self.path("home/.run/alight"),
                "ALIGHT_CONTROL": self.path("home/.run/alight/control.sock")})
        os.close(self.ended)
        os.close(self.orders[0])
        self.ended = done
        return self

    def __exit__(self, *_):
        groups = [self.bash.pid]
        if os.path.exists(self.path("play/groups")):
            with open(self.path("play/groups"), encoding="ascii") as file:
                groups += map(int, file.read().split())
        # In the pages what is in the background ends; this is for what a fault has left.
        for group in groups:
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(group, number)
                    time.sleep(0.05)
                except ProcessLookupError:
                    break
        self.bash.wait()
        os.close(self.ended)
        os.close(self.orders[1])

    def run(self, script, place, rules=None, output=None):
        """Runs lines in the shell; returns their status and the file with what they print."""
        self.step += 1
        step = self.path("play", f"{self.step}")
        if output:
            os.link(output, f"{step}.out")
        if rules is not None:
            docs.write(self.path("play", "rules.yaml"), self.placed(rules))
        docs.write(step, f"RULES={self.path('play', 'rules.yaml')}\n{script}")
        os.write(self.orders[1], step.encode() + b"\n")
        end, told = time.monotonic() + LIMIT, b""
        while not told.endswith(b"\n"):
            if not select.select([self.ended], [], [], max(0, end - time.monotonic()))[0]:
                raise Mismatch(f"{place}: it has not ended after {LIMIT} s\n{script}\n{docs_text(f'{step}.out')}")
            told += os.read(self.ended, 64) or b"ended\n"
        if b"ended" in told:
            raise Mismatch(f"{place}: a line failed\n{script}\n{docs_text(f'{step}.out')}")
        return int(told), f"{step}.out"

    def placed(self, text):
        """Moves what a page says of the machine into the scratch directory."""
        text = text.replace("127.0.0.1:7171", f"127.0.0.1:{self.port}")
        text = MACHINE.sub(self.path("host") + "/", text).replace("/home/ada", self.home)
        return CUT_ULID.sub(lambda found: self.real(found[0]), text)

    def shown(self, text):
        """Moves what is printed back to where the page has it."""
        # Of root and of a user the places differ; the pages show those of a user.
        text = text.replace(self.path("home/.run"), "/run/user/1000").replace("/run/alight/", "/run/user/1000/alight/")
        return text.replace(self.home, "~").replace(self.path("host"), "")

    def real(self, cut):
        """The id of the job that the page shows by another id."""
        return next((real for written, real in self.ids.items() if written.startswith(cut)), cut)

    def compare(self, place, shown, output, numbers=False):
        """Compares what is printed with what is shown, and learns which job is which."""
        printed, shown = self.shown(docs_text(output)), shown.replace("/home/ada", "~")
        if not agree(shown, printed, numbers):
            difference = difflib.unified_diff(
                mask(shown, numbers).split("\n"), mask(printed, numbers).split("\n"), "shown", "printed", lineterm="")
            raise Mismatch(f"{place}: it prints something else\n" + "\n".join(difference) + f"\n--- as it is ---\n{printed}")
        for written, real in zip(ULID.findall(shown), ULID.findall(printed)):
            self.ids[written] = real

    def section(self, when, block, output=None):
        """Runs a section of the scene, if there is one for the block."""
        if text := self.scene.get(f"{when} {block.first}"):
            return self.run("set -euo pipefail\n" + text, f"{block.place}, {when}", block.rules, output)
        return None

    def run_block(self, block):
        self.section("before", block)
        if done := self.section("instead", block):
            self.compare(block.place, block.text, done[1], "NUMBERS=any" in self.scene[f"instead {block.first}"])
            return
        if block.is_script:
            status, output = self.run(
                "set -euo pipefail\n" + "".join(endless(self.placed(line)) for line in block.text.splitlines(True)),
                block.place)
            self.section("after", block, output)
            return
        if not block.commands:
            raise Mismatch(f"{block.place}: there is no command in it, and the scene has no 'instead {block.first}'")
        for number, (command, shown) in enumerate(block.commands):
            status, output = self.run("set +e -uo pipefail\n" + shown_where(endless(self.placed(command))), block.place)
            if number == len(block.commands) - 1:
                self.section("after", block, output)
            if shown:
                self.compare(block.place, "\n".join(shown), output)
            elif status != 0:
                raise Mismatch(f"{block.place}: {command}: ended with {status}\n{docs_text(output)}")

    def run_page(self):
        blocks = shell_blocks(self.page)
        firsts = [block.first for block in blocks]
        for key in self.scene:
            if key != "start" and firsts.count(key.partition(" ")[2]) != 1:
                raise Mismatch(f"{self.page}: the scene has '{key}', which is not the first line of just one block")
        if start := self.scene.get("start"):
            self.run("set -euo pipefail\n" + start, f"{self.page}, start")
        for block in blocks:
            self.run_block(block)
        self.run("set -euo pipefail\nfinish", f"{self.page}, end")
        return len(blocks)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def endless(line):
    """Has a command that would not end go on in the background."""
    return f"background {shell_quote(line.strip())}\n" if ENDLESS.match(line) else line


def shown_where(line):
    """Runs a command on a terminal, if the scene says so."""
    return f"if [ -z \"${{TERMINAL:-}}\" ]; then {line}\nelse on_terminal {shell_quote(line)}; fi\n"


def shell_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def docs_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
