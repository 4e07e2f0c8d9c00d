"""Tests of the installation: manual pages, shell completions, paths of files.

    python3 -m unittest discover -s Tests/PluginTests -p test_packaging.py -v

ALIGHT names the program, .build/debug/alight if it isn't set.
"""

import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

RULES = """rules:
  - { name: paper-scans, path: in/*.pdf, action: log, tags: [home] }
  - { name: photos, path: in/*.jpg, action: log, tags: [home, pictures] }
  - { name: old, path: in/*.old, action: log, enabled: false }
"""


def needs(program):
    """Skips a test, with a message, if a program is missing."""
    return unittest.skipUnless(shutil.which(program, path=SYSTEM_PATH), f"{program} is missing; make installs it")


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class PackagingTestCase(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="alight-packaging-")
        cls.addClassCleanup(directory.cleanup)
        cls.root = os.path.realpath(directory.name)

    def path(self, *names):
        return os.path.join(self.root, *names)

    @classmethod
    def call(cls, *command, **options):
        """Runs a command without the environment variables of the caller."""
        variables = {"PATH": SYSTEM_PATH, "HOME": cls.root, "LC_ALL": "C.UTF-8", **options.pop("variables", {})}
        return subprocess.run(
            command, capture_output=True, text=True, env=variables, timeout=120, **{"cwd": cls.root, **options})

    def assert_silent(self, done):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class ManualTests(PackagingTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = os.path.join(cls.root, "man")
        done = cls.call(os.path.join(CHECKOUT, "packaging/make-man"), ALIGHT, cls.directory)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.pages = sorted(os.listdir(cls.directory))
        dump = json.loads(cls.call(ALIGHT, "--experimental-dump-help").stdout)
        cls.commands = dict(cls.find(dump["command"]))

    @classmethod
    def find(cls, command, above=""):
        name = above + command["commandName"]
        yield name, command
        for each in command.get("subcommands") or []:
            if each["commandName"] != "help":
                yield from cls.find(each, name + "-")

    def test_each_command_has_a_page(self):
        self.assertEqual(self.pages, sorted([*(f"{name}.1" for name in self.commands), "alight-search.1",
                                             "alight-rules.5", "alight-plugin.7"]))
        self.assertIn("alight-run.1", self.pages)

    @needs("mandoc")
    def test_mandoc_reports_no_problems(self):
        for page in self.pages:
            with self.subTest(page):
                self.assert_silent(self.call("mandoc", "-T", "lint", page, cwd=self.directory))

    @needs("man")
    def test_man_prints_no_warnings(self):
        for page in self.pages:
            with self.subTest(page):
                done = self.call(
                    "man", "--warnings", "--local-file", page, cwd=self.directory, variables={"MANWIDTH": "80"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    @needs("lexgrog")
    def test_whatis_finds_each_page(self):
        for page in self.pages:
            with self.subTest(page):
                done = self.call("lexgrog", page, cwd=self.directory)
                self.assertRegex(done.stdout, rf'^{re.escape(page)}: "{re.escape(page[:-2])} - \w.*"\n$')

    @needs("mandoc")
    def test_each_page_has_all_sections_and_options(self):
        for name, command in self.commands.items():
            with self.subTest(name):
                text = re.sub(".\b", "", self.call("mandoc", "-T", "ascii", f"{name}.1", cwd=self.directory).stdout)
                sections = re.findall(r"^[A-Z][A-Z ]+$", text, re.M)
                self.assertEqual(sections[:3], ["NAME", "SYNOPSIS", "DESCRIPTION"])
                self.assertEqual(sections[-1], "SEE ALSO")
                self.assertIn("EXIT STATUS", sections)
                for argument in command["arguments"]:
                    for option in argument.get("names", []):
                        dashes = "-" if option["kind"] == "short" else "--"
                        self.assertRegex(text, rf"(?m)^ +(.*, )?{dashes}{option['name']}\b")
                self.assertNotRegex(text, r"\]\(|\\_")

    @needs("mandoc")
    def test_the_page_of_rules_describes_all_keys(self):
        text = re.sub(".\b", "", self.call("mandoc", "-T", "ascii", "alight-rules.5", cwd=self.directory).stdout)
        schema = json.loads(self.call(ALIGHT, "schema").stdout)
        keys = next(each["properties"] for each in self.objects(schema) if "while_busy" in each.get("properties", {}))
        self.assertGreater(len(keys), 40)
        for key in keys:
            with self.subTest(key):
                self.assertRegex(text, rf"(?m)^ +{key}\b")

    def objects(self, value):
        if isinstance(value, dict):
            yield value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            yield from self.objects(each)

    @needs("mandoc")
    def test_each_page_names_the_variables_of_its_options(self):
        def text(page):
            return re.sub(".\b", "", self.call("mandoc", "-T", "ascii", f"{page}.1", cwd=self.directory).stdout)
        keys = json.loads(self.call(ALIGHT, "schema", "--config").stdout)["properties"]
        names = {f"ALIGHT_{key.upper()}" for key in keys if key != "log"} | {"ALIGHT_CONFIG"}
        names |= {f"ALIGHT_LOG_{key.upper()}" for key in keys["log"]["properties"]}
        self.assertGreater(len(names), 8)
        self.assertEqual(set(re.findall(r"^ +(ALIGHT_\w+)", text("alight"), re.M)), names)
        for page, option, name in (
                ("alight-run", "--log-level", "ALIGHT_LOG_LEVEL"), ("alight-jobs", "--journal", "ALIGHT_JOURNAL"),
                ("alight-status", "--control", "ALIGHT_CONTROL"), ("alight-check", "rules", "ALIGHT_RULES"),
                ("alight-plugins-test", "--config", "ALIGHT_CONFIG")):
            with self.subTest(page):
                self.assertIn(option, text(page))
                self.assertRegex(text(page), rf"(?m)^ENVIRONMENT\n(?:.+\n|\n)*? +{name}\b")

    def test_the_pages_are_reproducible(self):
        done = self.call(os.path.join(CHECKOUT, "packaging/make-man"), ALIGHT, self.path("again"))
        self.assert_silent(done)
        for page in self.pages:
            self.assertEqual(read(self.directory, page), read(self.path("again"), page), page)


class CompletionTests(PackagingTestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for directory in ("bin", "rules", "plugins"):
            os.mkdir(os.path.join(cls.root, directory))
        # A link in PATH; the launcher is beside its target.
        os.symlink(ALIGHT, os.path.join(cls.root, "bin/alight"))
        with open(os.path.join(cls.root, "rules/rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES)
        shutil.copytree(os.path.join(CHECKOUT, "plugins/reindex"), os.path.join(cls.root, "plugins/reindex"))
        for shell in ("bash", "zsh", "fish"):
            done = cls.call(ALIGHT, "--generate-completion-script", shell)
            with open(os.path.join(cls.root, "_alight" if shell == "zsh" else shell), "w", encoding="utf-8") as file:
                file.write(done.stdout)

    def in_shell(self, *command):
        done = self.call(*command, variables={"PATH": f"{self.root}/bin:{SYSTEM_PATH}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    def bash(self, *words):
        script = """source ./bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            _alight alight "${@: -1}" "${@: -2:1}" && printf '%s\\n' "${COMPREPLY[@]}" """
        return [word.rstrip() for word in self.in_shell("bash", "-c", script, "bash", *words)]

    def test_bash(self):
        self.assertIn("explain", self.bash("alight", "ex"))
        self.assertEqual(self.bash("alight", "jobs", "--rule", ""), ["paper-scans", "photos", "old"])
        self.assertEqual(self.bash("alight", "jobs", "--rule", "ph"), ["photos"])
        self.assertEqual(self.bash("alight", "apply", "pap"), ["paper-scans"])
        self.assertEqual(self.bash("alight", "run", "--tag", ""), ["home", "pictures"])
        self.assertEqual(sorted(self.bash("alight", "plugins", "describe", "re")), sorted(["rename", "reindex"]))
        self.assertIn("reindex", self.bash("alight", "plugins", "test", ""))
        for command in ("pause", "resume"):
            self.assertEqual(self.bash("alight", command, "--rule", "ph"), ["photos"])
        self.assertEqual(self.bash("alight", "jobs", "--state", ""), ["pending", "running", "succeeded", "skipped", "failed"])
        self.assertIn("reindex", self.bash("alight", "new", "--use", "re"))
        self.assertEqual(self.bash("alight", "new", "--event", "del"), ["deleted"])
        self.assertEqual(self.bash("alight", "explain", "--event", "del"), ["deleted"])
        self.assertEqual(self.bash("alight", "watch", "--backend", ""), ["auto", "inotify", "poll"])
        self.assertEqual(self.bash("alight", "watch", "--events", "created,del"), ["created,deleted"])
        self.assertEqual(self.bash("alight", "watch", "--types", "dir"), ["directory"])

    def test_bash_offers_files(self):
        for words in (["config", "--config"], ["new", "--output"], ["status", "--control"], ["plugins", "list", "--rules"],
                      ["import", "incrontab"], ["jobs", "--journal"], ["explain"], ["watch"], ["apply", "photos"]):
            with self.subTest(words):
                self.assertIn("rules", self.bash("alight", *words, "ru"))

    def test_ids(self):
        os.makedirs(self.path("in"), exist_ok=True)
        with open(self.path("ids.yaml"), "w", encoding="utf-8") as file:
            file.write("rules: [{ name: some, path: 'in/*', existing: process, retry: { attempts: 1 },"
                       " action: { shell: 'case \"$ALIGHT_PATH\" in *bad) exit 65;; esac' } }]\n")
        for name in ("good", "bad"):
            with open(self.path("in", name), "w", encoding="utf-8"):
                pass
        variables = {"RUNTIME_DIRECTORY": self.path("run")}
        self.call(ALIGHT, "run", "--once", "ids.yaml", "--journal", "ids.db", variables=variables)
        listed = self.call(ALIGHT, "jobs", "--journal", "ids.db").stdout.splitlines()
        ids = {line.split("\t")[1]: line.split("\t")[0] for line in listed}
        self.assertEqual(sorted(ids), ["failed", "succeeded"])
        for command in ("retry", "discard"):
            self.assertEqual(self.bash("alight", command, "--journal", "ids.db", ""), [ids["failed"]])
        self.assertEqual(self.bash("alight", "undo", "--journal", "ids.db", ""), [ids["succeeded"]])
        self.assertEqual(sorted(self.bash("alight", "show", "--journal", "ids.db", "")), sorted(ids.values()))
        with open(self.path("ids-config.yaml"), "w", encoding="utf-8") as file:
            file.write("journal: ids.db\n")
        self.assertEqual(self.bash("alight", "retry", "--config", "ids-config.yaml", ""), [ids["failed"]])
        self.assertEqual(self.bash("alight", "retry", "--journal", "none.db", ""), [""])

    def test_each_option_with_a_value_has_a_completion_or_accepts_any_string(self):
        """Options without a completion are listed here, so that a new option needs a decision."""
        free = {"--settle", "--poll", "--depth", "--exclude", "--limit", "--since", "--jobs", "--name", "--exec", "--with",
                "--timeout", "--grace", "--listen", "--external-url", "-n", "--tag"}
        tree = json.loads(self.call(ALIGHT, "--experimental-dump-help").stdout)
        silent = set()

        def visit(command):
            for each in command.get("arguments", []):
                if each["kind"] == "option" and "completionKind" not in each:
                    silent.update(name["name"] for name in each["names"])
            for below in command.get("subcommands", []):
                visit(below)
        visit(tree["command"])
        self.assertEqual({("-" if len(name) == 1 else "--") + name for name in silent} - free, set())

    def on_terminal(self, *command, prepare=None, typed, expected):
        """Types the start of a command and Tab into a shell, and waits for the completion."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.root)
            os.execvpe(command[0], command, {
                "PATH": f"{self.root}/bin:{SYSTEM_PATH}", "HOME": self.root, "TERM": "dumb", "LC_ALL": "C.UTF-8",
                "PS1": "ready> "})
        shown = b""

        def await_text(text):
            nonlocal shown
            end = time.monotonic() + 60
            while text.encode() not in shown:
                self.assertGreater(end, time.monotonic(), f"'{text}' was not shown: {shown}")
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 4096)
            shown = b""
        try:
            if prepare:
                os.write(terminal, prepare.encode() + b"; echo prep''ared\n")
            await_text("prepared")
            os.write(terminal, typed.encode() + b"\t")
            await_text(expected)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(terminal)

    @needs("fish")
    def test_fish(self):
        # Commands can be tested only without a terminal, and names only on one.
        shown = self.in_shell("fish", "--no-config", "--command", "source ./fish; complete --do-complete 'alight ex'")
        self.assertEqual(shown, ["explain"])
        self.on_terminal("fish", "--no-config", prepare="source ./fish", typed="alight apply pap",
                         expected="alight apply paper-scans ")

    @needs("zsh")
    def test_zsh(self):
        self.assert_silent(self.call("zsh", "-f", "-n", "_alight"))
        prepare = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -D -u"
        self.on_terminal("zsh", "-f", prepare=prepare, typed="alight apply pap", expected="alight apply paper-scans ")

    def test_invalid_rules_give_no_completions_and_no_messages(self):
        done = self.call(ALIGHT, "---completion", "jobs", "--", "--rule", "0", "0", "--rule", cwd="/proc")
        self.assertEqual((done.stdout.strip(), done.stderr), ("", ""))


class InstallTests(PackagingTestCase):

    def install(self, *arguments, **variables):
        done = self.call(
            os.path.join(CHECKOUT, "packaging/install"), *arguments,
            variables={"DESTDIR": self.stage, "PREFIX": "/opt/tools", "INSTALLED": self.path("list"), **variables})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def installed(self):
        return sorted(
            os.path.join("/", os.path.relpath(os.path.join(directory, name), self.stage))
            for directory, _, names in os.walk(self.stage) for name in names)

    def test_the_installed_program_works_and_can_be_uninstalled(self):
        self.stage = self.path("stage")
        products = os.path.dirname(os.path.realpath(ALIGHT))
        self.assertEqual(self.install(products), "")
        self.assertEqual(self.installed(), sorted(read(self.path("list")).splitlines()))
        program = self.stage + "/opt/tools/bin/alight"
        version = self.call(program, "--version")
        self.assertEqual(version.stdout, self.call(ALIGHT, "--version").stdout)

        # The program finds the installed plugins and the launcher.
        output = self.call(program, "plugins", "list", "--json").stdout
        listed = {each["name"]: each for each in map(json.loads, output.splitlines())}
        self.assertEqual(listed["digest"]["state"], "ok")
        self.assertEqual(listed["digest"]["path"], self.stage + "/opt/tools/lib/alight/plugins/digest")
        names = [os.path.basename(os.path.dirname(path)) for path in glob.glob(CHECKOUT + "/plugins/*/plugin.yaml")]
        self.assertEqual(sorted(listed), sorted(names))
        tested = self.call(program, "plugins", "test", "digest")
        self.assertEqual((tested.returncode, tested.stderr), (0, ""), tested.stdout)

        # The installed command finds the indexed file without an option for the location.
        with open(self.path("letter.txt"), "w", encoding="utf-8") as file:
            file.write("dear keeper of the lighthouse\n")
        with open(self.path("search.yaml"), "w", encoding="utf-8") as file:
            file.write("rules: [{ name: search, path: ./letter.txt, existing: process, action: reindex }]\n")
        ran = self.call(program, "run", "--once", "--journal", ":memory:", "search.yaml")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        found = self.call("alight-search", "lighthouse", variables={"PATH": f"{self.stage}/opt/tools/bin:{SYSTEM_PATH}"})
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn("letter.txt: dear keeper of the lighthouse", found.stdout)
        nothing = self.call(f"{self.stage}/opt/tools/bin/alight-search", "--database", "other.db", "lighthouse")
        self.assertIn("'other.db'", nothing.stderr)

        # The configuration sets nothing.
        lines = read(self.stage, "etc/alight/config.yaml").splitlines()
        self.assertTrue(lines and all(line.startswith("#") or not line for line in lines))
        for unit in glob.glob(self.stage + "/opt/tools/lib/systemd/*/*.service"):
            self.assertIn("/opt/tools/bin/alight", read(unit))
            self.assertNotRegex(read(unit), r"@\w+@|[ =]/usr/bin/alight")

        pages = glob.glob(self.stage + "/opt/tools/share/doc/alight/*.md")
        self.assertGreater(len(pages), 20)
        for page in pages:
            for link in re.findall(r'\]\(([^)#]+)|(?:src|srcset)="([^"]+)"', read(page)):
                link = link[0] or link[1]
                if "://" not in link:
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)), f"{page}: {link}")

        # A changed file is neither overwritten nor removed.
        with open(self.stage + "/etc/alight/config.yaml", "a", encoding="utf-8") as file:
            file.write("# ours\n")
        self.assertEqual(self.install(products), "not overwritten: /etc/alight/config.yaml\n")
        self.assertIn("# ours\n", read(self.stage, "etc/alight/config.yaml"))
        self.assertEqual(self.install("--remove"), "not removed, because it was changed: /etc/alight\n")
        self.assertEqual(self.installed(), ["/etc/alight/config.yaml"])
        os.unlink(self.stage + "/etc/alight/config.yaml")
        self.assertEqual(self.install("--remove"), "")
        self.assertEqual(self.installed(), [])
        self.assertFalse(glob.glob(self.stage + "/**/*alight*", recursive=True))

    def test_the_installed_rules_and_examples_load(self):
        self.stage = self.path("rules-stage")
        self.install(os.path.dirname(os.path.realpath(ALIGHT)))
        files = [path for path in glob.glob(self.stage + "/opt/tools/share/doc/alight/*/**/*.yaml", recursive=True)]
        self.assertGreater(len(files), 4)
        for path in files:
            with self.subTest(path):
                done = self.call(self.stage + "/opt/tools/bin/alight", "check", path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    @needs("mandoc")
    def test_manual_pages_name_installed_files(self):
        self.stage = self.path("pages-stage")
        self.install(os.path.dirname(os.path.realpath(ALIGHT)))
        documents = [os.path.basename(path) for path in glob.glob(CHECKOUT + "/docs/*.md")]
        named = set()
        for page in glob.glob(self.stage + "/opt/tools/share/man/*/*"):
            with self.subTest(os.path.basename(page)):
                text = re.sub(".\b", "", self.call("mandoc", "-T", "ascii", "-O", "width=500", page).stdout)
                self.assertNotIn("@PREFIX@", text)
                # Pages of the documentation are named by their path; 'docs/' appears in messages of the program.
                for name in documents:
                    for prefix in re.findall(rf"(\S*?)\b{re.escape(name)}", text):
                        self.assertTrue(prefix.endswith(("/opt/tools/share/doc/alight/", "docs/")), f"{prefix}{name}")
                named |= set(re.findall(r"/opt/tools/[\w./-]*\w", text))
        self.assertIn("/opt/tools/lib/alight/plugins", named)
        self.assertIn("/opt/tools/share/doc/alight/explain.md", named)
        for path in named:
            self.assertTrue(os.path.exists(self.stage + path), path)

    def test_the_example_rule_is_valid_and_disabled(self):
        directory = os.path.join(CHECKOUT, "packaging/etc/rules")
        done = self.call(ALIGHT, "check", directory)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^rule 'incoming' .*: disabled$")
        with open(self.path("example.yaml"), "w", encoding="utf-8") as file:
            file.write(read(directory, "example.yaml").replace("    enabled: false\n", ""))
        done = self.call(ALIGHT, "check", "example.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("/srv/incoming/*.pdf, watched from /srv/incoming", done.stdout)

    def test_the_copyright_names_every_statically_linked_library(self):
        paragraphs = [dict(re.findall(r"^([\w-]+): ?(.*)$", each, re.M))
                      for each in read(CHECKOUT, "packaging/debian/copyright").split("\n\n")]
        files = {name: each for each in paragraphs for name in each.get("Files", "").split()}
        packages = sorted(set(re.findall(r'\.product\(name: "\w+", package: "([^"]+)"', read(CHECKOUT, "Package.swift"))))
        self.assertGreater(len(packages), 3)
        for name in [*packages, "swift", "icu", "glibc"]:
            with self.subTest(name):
                self.assertIn(name, files)
        texts = {each["License"] for each in paragraphs if "License" in each and "Files" not in each}
        self.assertEqual({each["License"] for each in files.values()} - texts, set())
        # The exception is listed exactly for the licenses that have it.
        for name in packages:
            for path in glob.glob(f"{CHECKOUT}/.build/checkouts/{name}/LICENSE*"):
                self.assertEqual("runtime library exception" in read(path).lower(),
                                 "exception" in files[name]["License"], name)

    def settings(self, text):
        """Returns the effective settings of a configuration, by key."""
        with open(self.path("some.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        done = self.call(ALIGHT, "config", "--json", "--config", "some.yaml")
        self.assertEqual((done.returncode, done.stderr), (0, ""), text)
        return json.loads(done.stdout)["settings"]

    def test_the_configuration_has_every_key_and_each_can_be_set_separately(self):
        lines = read(CHECKOUT, "packaging/etc/config.yaml").splitlines()
        defaults = self.settings("")
        keys, above = {}, None
        for number, line in enumerate(lines):
            if key := re.fullmatch(r"#( *)([a-z_]+):( .+)?", line):
                if key[1] == "" and not key[3]:
                    above = (key[2], line)
                    continue
                name = f"{above[0]}.{key[2]}" if key[1] == "  " else key[2]
                self.assertNotIn(name, keys)
                keys[name] = f"{above[1][1:]}\n{line[1:]}\n" if key[1] == "  " else f"{line[1:]}\n"
                # A comment above it describes it.
                self.assertRegex(lines[number - 1], r"^# [A-Z].*\.$", name)
        self.assertEqual(set(keys), set(defaults))
        for name, text in keys.items():
            with self.subTest(name):
                found = self.settings(text)
                self.assertEqual([each for each in found if found[each]["origin"]["kind"] == "file"], [name])
                # The defaults of these keys depend on the machine and the user.
                if name not in ("rules", "plugins", "jobs.limit", "jobs.extra", "external_url") and (os.geteuid() == 0 or name not in ("journal", "control")):
                    self.assertEqual(found[name]["value"], defaults[name]["value"])
        everything = self.settings("".join(f"{line[1:] if re.match('#(?:  )?[a-z_]+:', line) else line}\n" for line in lines))
        self.assertEqual({each["origin"]["kind"] for each in everything.values()}, {"file"})

    def test_without_a_build_the_installation_prints_the_required_command(self):
        done = self.call(os.path.join(CHECKOUT, "packaging/install"), self.root)
        self.assertEqual(done.returncode, 1)
        self.assertIn("help: make build", done.stderr)
        self.assertEqual(self.call(os.path.join(CHECKOUT, "packaging/install")).returncode, 2)


class DemoTests(PackagingTestCase):
    """Tests of `make demo`: its build, its output, and its cleanup."""

    # The default paths of root do not depend on HOME: here they are empty, and must still be empty at the end.
    ON_EMPTY_DIRECTORIES = [
        "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /var/lib && mount -t tmpfs none /run || exit 99\n"
        '"$@"; status=$?; ls -A /var/lib /run >&2; exit $status', "sh"]

    def build(self, script):
        """Builds with a replacement for swift; returns the output and the calls."""
        swift = self.path("swift")
        with open(swift, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/bash\necho "$*" >>{self.path("calls")}\n{script}\n')
        os.chmod(swift, 0o755)
        open(self.path("calls"), "w", encoding="utf-8").close()
        done = self.call(os.path.join(CHECKOUT, "packaging/build-demo"), swift, "build", "-c", "release")
        return done, read(self.path("calls")).splitlines()

    def test_only_the_program_is_built_and_its_modules_are_shown(self):
        done, calls = self.build(
            "echo '[0/9] Write sources'; echo '[1/9] Compiling Rules Rule.swift'; echo '[2/9] Compiling Rules Job.swift'\n"
            "echo 'Build complete!'")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(calls, ["build -c release --product alight-launch", "build -c release --product alight"])
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"takes about \d+ minutes on 2 processors")
        self.assertEqual([re.sub(r"^  \d+:\d\d  ", "", line) for line in lines[1:]], ["Rules", "Rules"])

    def test_a_failed_build_shows_the_reason(self):
        done, calls = self.build("echo 'Rule.swift:3:1: error: unknown type'; exit 1")
        self.assertEqual((done.returncode, len(calls)), (1, 1))
        self.assertIn("Rule.swift:3:1: error: unknown type", done.stderr)

    def listing(self, *roots):
        found = {}
        for root in roots:
            for top, directories, names in os.walk(root):
                directories[:] = [name for name in directories if name not in (".build", ".git")]
                for name in [*directories, *names]:
                    status = os.lstat(os.path.join(top, name))
                    found[os.path.join(top, name)] = None if os.path.isdir(os.path.join(top, name)) else (
                        status.st_size, status.st_mtime_ns)
        return found

    @needs("vips")
    def test_the_demo_runs_beside_another_instance_and_removes_its_files(self):
        for name in ("in", "run", "tmp"):
            os.mkdir(self.path(name), 0o700)
        with open(self.path("rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES)
        # Both have the same user and environment, so the same defaults.
        variables = {
            "PATH": SYSTEM_PATH, "HOME": self.root, "LC_ALL": "C.UTF-8", "TMPDIR": self.path("tmp"),
            "XDG_RUNTIME_DIR": self.path("run"), "ALIGHT_JOURNAL": self.path("journal.db"),
            "ALIGHT_CONTROL": self.path("run/control.sock"), "ALIGHT_LOG_LEVEL": "error"}
        instance = subprocess.Popen(
            [ALIGHT, "run", "rules.yaml", "--log-level", "info"], cwd=self.root, env=variables, stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True)
        try:
            self.assertIn("ready: watching", instance.stderr.readline())
            shutil.rmtree(os.path.join(CHECKOUT, "plugins/python/__pycache__"), ignore_errors=True)
            directories = (CHECKOUT, self.path("in"), self.path("tmp"), self.path("run"))
            before = self.listing(*directories)
            has_namespace = os.geteuid() == 0 and subprocess.run(
                [*self.ON_EMPTY_DIRECTORIES, "true"], capture_output=True, timeout=60).returncode == 0
            demo = subprocess.run(
                [*(self.ON_EMPTY_DIRECTORIES if has_namespace else []),
                 os.path.join(CHECKOUT, "packaging/demo"), ALIGHT],
                cwd=self.root, env=variables, capture_output=True, text=True, timeout=120)
            errors = "/run:\n\n/var/lib:\n" if has_namespace else ""
            self.assertEqual((demo.returncode, demo.stderr), (0, errors), demo.stdout)
            self.assertEqual(self.listing(*directories), before)
            status = subprocess.run(
                [ALIGHT, "status", "--json"], env=variables, capture_output=True, text=True, timeout=60)
            self.assertEqual(json.loads(status.stdout)["counts"]["attempts"], 0)
        finally:
            instance.send_signal(signal.SIGTERM)
            _, errors = instance.communicate(timeout=60)
        self.assertEqual((instance.returncode, errors), (0, "stopping\n"))

        # The image of the camera was moved, and has a thumbnail.
        self.assertRegex(demo.stdout, r"by-date: created ~/Pictures/inbox/IMG_\d+_\d+\.jpg: succeeded")
        self.assertRegex(demo.stdout, r"(?m)^thumbnail: ~/Pictures/thumbs/.*IMG_.*\.webp, 256 x 171 pixels$")

        # The suggested commands work.
        os.mkdir(self.path("inbox"))
        lines = re.findall(r"^    (.*)$", demo.stdout, re.M)
        self.assertEqual([line.replace(ALIGHT, "alight").split()[:2] for line in lines], [["alight", "new"], ["alight", "run"]])
        for line in (lines[0], lines[1] + " --once --dry-run || [ $? -eq 4 ]"):
            done = self.call("bash", "-c", line)
            self.assertEqual(done.returncode, 0, done.stderr)


class InstructionTests(PackagingTestCase):
    """Tests of the commands in docs/installing.md."""

    def blocks(self):
        found = re.findall(r"^```sh\n(.*?)^```$", read(CHECKOUT, "docs/installing.md"), re.M | re.S)
        self.assertGreater(len(found), 4)
        return found

    def test_the_goals_of_make_exist(self):
        calls = [line for block in self.blocks() for line in block.splitlines() if re.match(r"(sudo )?make ", line)]
        self.assertGreater(len(calls), 5)
        for call in calls:
            with self.subTest(call):
                done = self.call("make", "--dry-run", *call.removeprefix("sudo ").split()[1:], cwd=CHECKOUT)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_first_steps_work(self):
        block = next(block for block in self.blocks() if "alight new" in block)
        lines = block.splitlines()
        self.assertEqual(lines[-1], "alight run")
        script = "\n".join(["set -e", *lines[:-1], "alight run --once --dry-run || [ $? -eq 4 ]"])
        os.makedirs(self.path("bin"), exist_ok=True)
        os.symlink(ALIGHT, self.path("bin/alight"))
        done = self.call("bash", "-c", script, variables={"PATH": f"{self.root}/bin:{SYSTEM_PATH}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no errors", done.stdout)


class VersionTests(PackagingTestCase):

    SOURCE = os.path.join(CHECKOUT, "Sources/Base/CShims/CBuildCommit")

    def commit(self, source, *options):
        """Returns the output of a program compiled with the source."""
        main = self.path("main.c")
        with open(main, "w", encoding="utf-8") as file:
            file.write('#include <stdio.h>\n#include "CBuildCommit.h"\nint main(void) { puts(build_commit()); }\n')
        program = self.path("commit")
        self.assert_silent(self.call("cc", *options, f"-I{self.SOURCE}/include", source, main, "-o", program))
        return self.call(program).stdout.strip()

    def test_the_program_prints_its_version(self):
        done = self.call(ALIGHT, "--version")
        self.assertRegex(done.stdout, r"^alight \d+\.\d+\.\d+( \(commit [0-9a-f]{7,}(-dirty)?\))?\n$")

    @needs("cc")
    def test_the_commit_comes_from_the_build_or_the_tarball_or_is_unknown(self):
        source = os.path.join(self.SOURCE, "CBuildCommit.c")
        self.assertEqual(self.commit(source), "")
        for name in ("0e5fab3", "9876543", "abcdef0-dirty", "98cfb9e-dirty"):
            self.assertEqual(self.commit(source, f"-DALIGHT_COMMIT={name}"), name)
        # As `git archive` writes it.
        self.assertIn("CBuildCommit.c export-subst", read(CHECKOUT, ".gitattributes"))
        archived = self.path("archived.c")
        with open(archived, "w", encoding="utf-8") as file:
            file.write(read(source).replace("$Format:%h$", "98cfb9c"))
        self.assertEqual(self.commit(archived, "-DALIGHT_COMMIT=0e5fab3"), "98cfb9c")


if __name__ == "__main__":
    unittest.main()
