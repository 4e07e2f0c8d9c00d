"""Tests of the documentation: its rules load, its links have targets, its plugins run.

    python3 -m unittest discover -s Tests/PluginTests -p test_docs.py -v

ALIGHT names the program, .build/debug/alight if it isn't set. Without it the rules are not checked.
"""

import ctypes
import glob
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
ALIGHT = os.path.join(CHECKOUT, os.environ.get("ALIGHT") or ".build/debug/alight")
PROTOCOL = "docs/plugin-protocol.md"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

PAGES = sorted(
    os.path.relpath(path, CHECKOUT)
    for pattern in ("*.md", "docs/*.md", "Sources/README.md", "plugins/*/README.md", "examples/*/README.md")
    for path in glob.glob(os.path.join(CHECKOUT, pattern)))


def read(page):
    with open(os.path.join(CHECKOUT, page), encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """Returns the fenced blocks of a page: language, number of the first line, text."""
    found, language, start, lines = [], None, 0, []
    for number, line in enumerate(read(page).splitlines(), 1):
        if language is None:
            if fence := re.fullmatch(r"```([\w-]*)", line):
                language, start, lines = fence[1], number + 1, []
        elif line == "```":
            found.append((language, start, "".join(f"{each}\n" for each in lines)))
            language = None
        else:
            lines.append(line)
    if language is not None:
        raise AssertionError(f"{page}:{start}: the block is not closed")
    return found


def is_configuration(text):
    """Whether a block is a configuration, by its first line."""
    return text.startswith("# config.yaml\n")


def prose(page):
    """Returns the lines of a page, with code replaced by empty strings."""
    lines, is_code = [], False
    for line in read(page).splitlines():
        is_fence = line.startswith("```")
        lines.append("" if is_code or is_fence else re.sub(r"`[^`]*`", "", line))
        is_code ^= is_fence
    return lines


def anchors(page):
    """Returns the anchors of the headings of a page, as GitHub generates them."""
    found, is_code = set(), False
    for line in read(page).splitlines():
        is_code ^= line.startswith("```")
        if not is_code and (heading := re.fullmatch(r"#+ (.*)", line)):
            found.add(re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-"))
    return found


def write(path, text, executable=False):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if executable:
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def python_block(word):
    """Returns the Python block of the protocol page that contains the word."""
    return next(text for _, _, text in python_blocks() if word in text)


def python_blocks():
    return [block for block in blocks(PROTOCOL) if block[0] == "python"]


def install_documented_plugins(directory):
    """Installs the two plugins of the protocol page, and returns their executables."""
    texts = {language: text for language, _, text in reversed(blocks(PROTOCOL))}
    description = next(text for language, _, text in blocks(PROTOCOL) if language == "yaml" and "\nrun:" in text)
    sidecar, words = os.path.join(directory, "sidecar", "sidecar"), os.path.join(directory, "words", "words")
    write(sidecar, texts["bash"], executable=True)
    write(os.path.join(directory, "sidecar", "plugin.yaml"), description)
    write(words, python_block("describe"), executable=True)
    return sidecar, words


def copy_plugins(directory):
    """Copies the shipped plugins, including built ones, and installs the two of the protocol page beside them."""
    shutil.copytree(os.path.join(CHECKOUT, "plugins"), directory)
    install_documented_plugins(directory)
    # A compiled plugin; `make` copies it into its directory.
    built = os.path.join(os.path.dirname(ALIGHT), "digest-plugin")
    if os.path.exists(built):
        shutil.copy(built, os.path.join(directory, "digest", "digest"))


class DocumentationTestCase(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="alight-docs-")
        self.addCleanup(directory.cleanup)
        self.root = os.path.realpath(directory.name)

    def path(self, *names):
        return os.path.join(self.root, *names)


class RulesTests(DocumentationTestCase):

    def test_every_rules_file_passes_check(self):
        if not os.access(ALIGHT, os.X_OK):
            reason = f"the rules are not checked: {ALIGHT} is not built, run `swift build`"
            print(reason, file=sys.stderr)
            self.skipTest(reason)
        copy_plugins(self.path("plugins"))
        checked = 0
        for page in PAGES:
            for language, line, text in blocks(page):
                if language != "yaml" or not re.search(r"^rules:", text, re.MULTILINE) or is_configuration(text):
                    continue
                checked += 1
                with self.subTest(f"{page}:{line}"):
                    write(self.path("rules.yaml"), text)
                    # Environment variables in examples are directories.
                    variables = {name: "/srv/in" for name in re.findall(r"\$\{env:(\w+)\}", text)}
                    done = subprocess.run(
                        [ALIGHT, "check", "rules.yaml"], cwd=self.root, capture_output=True, text=True,
                        env={"PATH": SYSTEM_PATH, "HOME": self.root, **variables}, timeout=60)
                    if impossible := self.impossible(text):
                        self.assertIn(impossible, done.stdout + done.stderr)
                        continue
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(checked, 20)

    def impossible(self, text):
        """Returns the expected error if this machine does not support the rules, otherwise None."""
        if os.geteuid() != 0 and re.search(r"^ +run_as:", text, re.MULTILINE):
            return "'run_as' needs root"
        if re.search(r"^ +sandbox:", text, re.MULTILINE) and ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
            return "this kernel can't restrict programs to the files"
        return None


class ConfigurationTests(DocumentationTestCase):

    PAGE = "docs/operating.md"

    def run_alight(self, *words):
        if not os.access(ALIGHT, os.X_OK):
            self.skipTest(f"the configurations are not checked: {ALIGHT} is not built, run `swift build`")
        return subprocess.run(
            [ALIGHT, *words], cwd=self.root, capture_output=True, text=True,
            env={"PATH": SYSTEM_PATH, "HOME": self.root}, timeout=60)

    def test_every_configuration_loads(self):
        checked = 0
        for page in PAGES:
            for language, line, text in blocks(page):
                if language != "yaml" or not is_configuration(text):
                    continue
                checked += 1
                with self.subTest(f"{page}:{line}"):
                    write(self.path("config.yaml"), text)
                    done = self.run_alight("config", "--json", "--config", "config.yaml")
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    for name, setting in json.loads(done.stdout)["settings"].items():
                        if re.search(rf"^ *{name.rpartition('.')[2]}:", text, re.MULTILINE):
                            self.assertEqual(setting["origin"]["kind"], "file", name)
        self.assertGreater(checked, 0)

    def test_the_described_keys_are_exactly_the_existing_ones(self):
        done = self.run_alight("config", "--json")
        names = set(json.loads(done.stdout)["settings"])
        described = set(re.findall(r"^\| `([a-z._]+)` \| [^|]+ \| [^|]+ \|$", read(self.PAGE).split("\n## Configuration\n")[1].split("###")[0], re.M))
        self.assertEqual(described, names | {"retention", "jobs"})

    def test_every_variable_is_described(self):
        keys = json.loads(self.run_alight("schema", "--config").stdout)["properties"]
        names = [key for key in keys if key != "log"] + [f"log_{key}" for key in keys["log"]["properties"]]
        described = set(re.findall(r"`(ALIGHT_(?:JOURNAL|RETENTION|LISTEN|EXTERNAL_URL|CONTROL|JOBS|LOG_\w+|PLUGINS|RULES))`",
                                   read(self.PAGE)))
        self.assertEqual({f"ALIGHT_{name.upper()}" for name in names}, described)
        for name in described:
            with self.subTest(name):
                environment = {**os.environ, name: "relative:nonsense"}
                done = subprocess.run([ALIGHT, "config"], env=environment, capture_output=True, text=True, timeout=60)
                self.assertIn(f"error: {name}: ", done.stderr)

    @unittest.skipIf(importlib.util.find_spec("jsonschema") is None, "jsonschema is missing: apt install python3-jsonschema")
    def test_the_schema_accepts_every_configuration(self):
        import jsonschema
        import yaml
        schema = json.loads(self.run_alight("schema", "--config").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for _, _, text in blocks(self.PAGE):
            if is_configuration(text):
                self.assertEqual([error.message for error in validator.iter_errors(yaml.safe_load(text))], [])
        for wrong in ({"jobs": 0}, {"log": "json"}, {"listen": "8080"}, {"external_url": "alight.example.org"}, {"job": 3}, {"retention": {}}, {"rules": []}):
            self.assertFalse(validator.is_valid(wrong), wrong)


class LinkTests(unittest.TestCase):

    def test_every_relative_link_leads_to_a_file_and_a_heading(self):
        followed = 0
        for page in PAGES:
            for number, line in enumerate(prose(page), 1):
                for target in re.findall(r"\]\(([^()\s]+)\)", line):
                    if re.match(r"[a-z]+:", target):
                        continue
                    followed += 1
                    name, _, anchor = urllib.parse.unquote(target).partition("#")
                    other = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
                    with self.subTest(f"{page}:{number}: {target}"):
                        self.assertFalse(os.path.isabs(name))
                        self.assertTrue(os.path.exists(os.path.join(CHECKOUT, other)), f"{other} does not exist")
                        if anchor and other.endswith(".md"):
                            self.assertIn(anchor, anchors(other))
        self.assertGreater(followed, 20)

    def test_every_image_exists_and_is_used(self):
        shown = set()
        for page in PAGES:
            for target in re.findall(r'(?:src|srcset)="([^"]+)"|!\[[^]]*\]\(([^)]+)\)', read(page)):
                path = os.path.normpath(os.path.join(os.path.dirname(page), "".join(target)))
                with self.subTest(f"{page}: {path}"):
                    self.assertTrue(os.path.exists(os.path.join(CHECKOUT, path)))
                shown.add(path)
        self.assertEqual({f"docs/images/{name}" for name in os.listdir(os.path.join(CHECKOUT, "docs/images"))} - shown, set())


class PluginExampleTests(DocumentationTestCase):

    def setUp(self):
        super().setUp()
        self.sidecar, self.words = install_documented_plugins(self.path("plugins"))
        self.scratch = self.path("scratch")
        os.mkdir(self.scratch, 0o700)
        self.file = self.path("in", "a letter.txt")
        write(self.file, "dear keeper of the lamp\n")

    def call(self, plugin, verb, request=None):
        environment = {
            "PATH": SYSTEM_PATH, "HOME": self.root, "LANG": "C.UTF-8", "TMPDIR": self.scratch, "ALIGHT_PROTOCOL": "1",
            "ALIGHT_ID": "01M7YXJTCXTQPWN7XX0ZW5KMDG", "ALIGHT_ATTEMPT": "1", "ALIGHT_RULE": "texts",
            "ALIGHT_EVENT": "created", "ALIGHT_PATH": self.file, "ALIGHT_FROM": "", "ALIGHT_ROOT": self.path("in"),
            "ALIGHT_RELATIVE": "a letter.txt", "ALIGHT_REASON": "", "ALIGHT_SCRATCH": self.scratch,
        } if request else {"PATH": SYSTEM_PATH, "HOME": self.root, "LANG": "C.UTF-8"}
        done = subprocess.run(
            [plugin, verb], input=json.dumps(request) + "\n" if request else "", cwd=self.scratch, env=environment,
            capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def request(self, settings):
        """Returns the request of the page, with paths that exist."""
        request = next(json.loads(text) for language, _, text in blocks(PROTOCOL) if '"protocol": 1' in text)
        request.update({"with": settings, "scratch": self.scratch})
        request["events"][0].update({"path": self.file, "relative": "a letter.txt", "root": self.path("in")})
        return request

    @unittest.skipUnless(shutil.which("jq", path=SYSTEM_PATH), "the bash plugin needs jq: apt install jq")
    def test_bash(self):
        response = self.call(self.sidecar, "run", self.request({"suffix": ".sha256"}))
        expected = subprocess.run(["sha256sum", self.file], capture_output=True, text=True).stdout.split()[0]
        self.assertEqual((response["outcome"], response["message"]), ("succeeded", expected))
        with open(self.file + ".sha256", encoding="utf-8") as file:
            self.assertEqual(file.read(), expected + "\n")
        self.assertEqual(sorted(os.listdir(self.path("in"))), ["a letter.txt", "a letter.txt.sha256"])

    @unittest.skipUnless(shutil.which("jq", path=SYSTEM_PATH), "the bash plugin needs jq: apt install jq")
    def test_bash_skips_a_file_that_does_not_exist(self):
        os.unlink(self.file)
        self.assertEqual(self.call(self.sidecar, "run", self.request({"suffix": ".x"}))["outcome"], "skipped")

    def test_python(self):
        response = self.call(self.words, "run", self.request({"least": 1}))
        self.assertEqual(response, {"outcome": "succeeded", "message": "5 words", "values": {"words": 5}})
        self.assertEqual(self.call(self.words, "run", self.request({"least": 9}))["outcome"], "failed")
        os.unlink(self.file)
        self.assertEqual(self.call(self.words, "run", self.request({"least": 1}))["outcome"], "skipped")

    def test_python_describes_itself(self):
        self.assertEqual(self.call(self.words, "describe")["name"], "words")

    def test_python_serves(self):
        plugin = self.path("serves")
        write(plugin, python_block('"pong"'), executable=True)
        request = {"type": "run", "id": "A", "attempt": 2, "events": [{"relative": "x"}]}
        lines = [{"type": "hello", "protocol": 1}, {"type": "ping", "n": 3}, {"type": "other"}, request]
        done = subprocess.run(
            [plugin, "serve"], input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True,
            timeout=60, check=True)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [
            {"type": "ready", "protocol": 1, "concurrent": 1}, {"type": "pong", "n": 3},
            {"type": "result", "id": "A", "attempt": 2, "outcome": "succeeded", "message": "x"}])

    def test_every_json_block_is_valid(self):
        for page in PAGES:
            for language, line, text in blocks(page):
                if language == "json":
                    with self.subTest(f"{page}:{line}"):
                        json.loads(text)


class JournalTests(DocumentationTestCase):
    """Tests that the queries of the page about the journal run, and that it describes all tables and columns."""

    PAGE = "docs/journal.md"

    def setUp(self):
        super().setUp()
        # The tables of a new journal, with some rows.
        self.journal = sqlite3.connect(self.path("journal.db"))
        self.addCleanup(self.journal.close)
        for name in ("schema.sql", "rows.sql"):
            self.journal.executescript(read(f"Tests/StorageTests/Golden/{name}"))
        self.journal.commit()

    def test_the_tables_are_those_of_a_new_journal(self):
        query = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        tables = "".join(f"{sql}\n" for sql, in self.journal.execute(query))
        self.assertEqual(tables, read("Tests/StorageTests/Golden/schema.sql"))

    def test_every_query_runs(self):
        found = 0
        for language, line, text in blocks(self.PAGE):
            if language != "sql":
                continue
            found += 1
            with self.subTest(f"{self.PAGE}:{line}"):
                cursor = self.journal.execute(text)
                cursor.fetchall()
                self.assertTrue(all(column[0].isidentifier() for column in cursor.description))
        self.assertGreaterEqual(found, 5)

    def test_every_table_and_column_is_described(self):
        sections = re.split(r"^### ", read(self.PAGE), flags=re.M)[1:]
        for table, in self.journal.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if table.startswith("sqlite_"):
                continue
            section = next((each for each in sections if f"`{table}`" in each.splitlines()[0]), None)
            self.assertIsNotNone(section, table)
            described = set(re.findall(r"`(\w+)`", section))
            for _, column, *_ in self.journal.execute(f"PRAGMA table_info({table})"):
                if table not in ("requests", "state") or column not in ("id", "name", "value"):
                    with self.subTest(f"{table}.{column}"):
                        self.assertIn(column, described)

    def test_the_recovery_of_a_damaged_journal_gives_a_valid_journal(self):
        if not shutil.which("sqlite3", path=SYSTEM_PATH):
            self.skipTest("sqlite3 is missing: apt install sqlite3")
        self.journal.executemany(
            "INSERT INTO ledger SELECT rule, CAST(? AS BLOB), type, size, mtime, mtime_ns, ctime, ctime_ns, btime,"
            " btime_ns, device, inode, mode, uid, gid, nlink, mount, run, digest, delivered, xattrs, trust, suppressed"
            " FROM ledger WHERE path = CAST('/in/a' AS BLOB)", [(f"/in/more/{number}",) for number in range(5_000)])
        self.journal.commit()
        self.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.journal.close()
        with open(self.path("journal.db"), "r+b") as file:
            file.seek(os.path.getsize(self.path("journal.db")) // 2)
            file.write(b"damage" * 2_000)
        script = next(text for language, _, text in blocks(self.PAGE) if language == "sh" and ".dump" in text)
        subprocess.run(["bash", "-c", script], cwd=self.root, capture_output=True, timeout=60)
        self.assertTrue(os.path.exists(self.path("journal-damaged.db")))
        saved = sqlite3.connect(self.path("journal.db"))
        self.addCleanup(saved.close)
        self.assertEqual(saved.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual(saved.execute("PRAGMA application_id").fetchone(), (0x416C6774,))
        self.assertEqual(saved.execute("PRAGMA user_version").fetchone(), (1,))
        self.assertEqual(saved.execute("SELECT count(*) FROM jobs").fetchone(), (4,))
        self.assertGreater(saved.execute("SELECT count(*) FROM ledger").fetchone()[0], 1_000)


class Behaviours(unittest.TestCase):
    """Tests the table of behaviours in docs/events.md."""

    def test_the_table_names_existing_tests_and_all_scenarios(self):
        rows = re.findall(r"^\| (S\d\d) \| [^|]+ \| ([^|]+) \|$", read("docs/events.md"), re.M)
        sources = "".join(read(os.path.relpath(path, CHECKOUT))
                          for path in glob.glob(os.path.join(CHECKOUT, "Tests/**/*.swift"), recursive=True))
        directory = os.path.join(CHECKOUT, "Tests/Interfaces/EndToEndTests/Scenarios")
        scenarios = {name.removesuffix(".scenario") for name in os.listdir(directory)}
        named = set()
        for number, names in rows:
            for name in re.findall(r"`([^`]+)`", names):
                with self.subTest(number=number, name=name):
                    if name in scenarios:
                        self.assertTrue(name.startswith(number))
                        named.add(name)
                    else:
                        self.assertIn(f"`{number} {name}`", sources)
        self.assertGreater(len(rows), 50)
        self.assertEqual(named, {name for name in scenarios if re.match(r"S\d\d-", name)})


if __name__ == "__main__":
    unittest.main()
