"""What `alight schema` prints says the same of rules files as the loader, over all files of the corpus.

The files are those of Tests/RuleLoadingTests/Corpus, and of Golden beside it. The loader is
`alight check`, the validator is python3-jsonschema.
"""

import concurrent.futures
import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import unittest

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALIGHT = os.environ.get("ALIGHT", os.path.join(CHECKOUT, ".build", "debug", "alight"))
TESTS = os.path.join(CHECKOUT, "Tests", "RuleLoadingTests")

try:
    import jsonschema
    import yaml
except ImportError as missing:
    raise unittest.SkipTest(f"{missing}: apt install python3-jsonschema python3-yaml")


class CoreLoader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors and Alight read it; PyYAML by itself is YAML 1.1."""


CoreLoader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
        ("merge", r"^<<$", "<"), ("null", r"^(~|null|Null|NULL|)$", ["~", "n", "N", ""]),
        ("bool", r"^(true|True|TRUE|false|False|FALSE)$", "tTfF"),
        ("int", r"^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
        ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", "-+.0123456789")]:
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def integer(loader, node):
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


CoreLoader.add_constructor("tag:yaml.org,2002:int", integer)
CoreLoader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))

# What a schema can't see, by kind, with the files that have nothing else wrong with them.
# Files of the corpus that begin with `unseen-` belong to a kind, too.
UNSEEN = {
    "YAML itself: keys that are given twice, tags, escapes, several documents": [
        "unseen-yaml-key-twice", "unseen-yaml-leading-zero", "unseen-empty-file"],
    "rules beside one another: their names": [
        "unseen-names-twice", "unseen-formerly-in-force", "unseen-formerly-itself"],
    "what is in a glob or a regular expression": [
        "unseen-glob-unclosed", "unseen-glob-range", "unseen-glob-slash-at-end", "unseen-glob-parent",
        "unseen-glob-exclude", "unseen-name-regex", "unseen-regex-wrong"],
    "this machine: users, variables, plugins, programs": [
        "unseen-home-of-another", "unseen-unset-variable", "unseen-handler", "unseen-program", "unseen-owner",
        "unseen-run-as", "unseen-run-as-group", "unseen-run-as-number"],
    "keys that need or exclude each other, where 'defaults' may have one of them": [
        "unseen-tree-of-files", "unseen-tail-of-folders", "unseen-busy-tail", "unseen-busy-batch",
        "unseen-group-alone", "unseen-require-alone", "unseen-group-batch", "unseen-handler-events",
        "unseen-max-wait-short", "unseen-max-delay-short"],
    "placeholders of something else in the rule: steps, groups": [
        "unseen-step", "unseen-capture", "unseen-capture-beyond"],
    "amounts in texts, and what they come to": [
        "unseen-poll-short", "unseen-duration-long", "unseen-size-of-tail", "unseen-window-empty",
        "unseen-contradiction", "unseen-range-backwards", "unseen-mime-wrong", "unseen-depth-large",
        "unseen-done-file-itself", "unseen-limits-cpu-short", "unseen-limits-memory"],
}


def has_landlock():
    """Whether the kernel can do what files that begin with `landlock-` ask for."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def is_possible(path):
    """Whether the loader takes a good file here: some ask for what only root can do, or not every kernel."""
    name = os.path.basename(path)
    if name.startswith("root-"):
        return os.geteuid() == 0
    return not name.startswith("landlock-") or has_landlock()


def read(path):
    """The file as an editor sees it; None with a reason when it is no YAML."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        return yaml.load(text, CoreLoader), None
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        return None, error


def diagnostics(path):
    done = subprocess.run(
        [ALIGHT, "check", "--format", "json", path], cwd=os.path.dirname(path), capture_output=True, text=True, timeout=60)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [each for each in found if each["severity"] == "error"]
    if (done.returncode == 3) != bool(errors) and "there is no rule" not in done.stderr:
        raise AssertionError(f"{path}: status {done.returncode} with {found}, {done.stderr}")
    return errors


@unittest.skipUnless(os.access(ALIGHT, os.X_OK), f"{ALIGHT} is not built, run `swift build`")
class SchemaTests(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([ALIGHT, "schema"], capture_output=True, text=True, timeout=60, check=True)
        cls.schema = json.loads(done.stdout)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def faults(self, path):
        """What the schema says of a file."""
        document, problem = read(path)
        if problem:
            return [str(problem)]
        return [error.message[:200] for error in self.validator.iter_errors(document)]

    def test_the_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.assertEqual(self.schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        for example in self.schema["examples"]:
            self.assertEqual(list(self.validator.iter_errors(example)), [])

    def test_defaults_and_examples_are_what_they_say(self):
        properties = self.schema["$defs"]["rule"]["properties"]
        seen = 0
        for owner in (properties, self.schema["$defs"]["conditions"]["properties"]):
            for key, form in owner.items():
                for value in form.get("examples", []) + ([form["default"]] if "default" in form else []):
                    seen += 1
                    with self.subTest(key=key, value=value):
                        validator = self.validator.evolve(schema={**form, "$defs": self.schema["$defs"]})
                        self.assertEqual([error.message for error in validator.iter_errors(value)], [])
        self.assertGreater(seen, 50)

    def test_the_corpus(self):
        good = sorted(glob.glob(os.path.join(TESTS, "Corpus", "good", "*.yaml")))
        bad = sorted(glob.glob(os.path.join(TESTS, "Corpus", "bad", "*.yaml")))
        self.assertGreaterEqual(len(good), 90)
        self.assertGreaterEqual(len(good) + len(bad), 200)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            refused = dict(zip(good + bad, pool.map(diagnostics, good + bad)))
        unseen = {name for names in UNSEEN.values() for name in names}
        for path in good:
            with self.subTest(good=os.path.basename(path)):
                self.assertEqual(refused[path] == [], is_possible(path), refused[path])
                self.assertEqual(self.faults(path), [])
        for path in bad:
            name = os.path.basename(path)[:-5]
            with self.subTest(bad=name):
                self.assertNotEqual(refused[path], [], "the loader takes it")
                faults = self.faults(path)
                if name in unseen:
                    self.assertEqual(faults, [], "the schema sees it after all: take it off the list")
                else:
                    self.assertNotEqual(faults, [], f"the schema takes it; the loader says {refused[path]}")
        self.assertEqual(unseen - {os.path.basename(path)[:-5] for path in bad}, set())

    def test_golden_files_without_an_error_are_valid(self):
        tried = 0
        for path in sorted(glob.glob(os.path.join(TESTS, "Golden", "*.yaml"))):
            with open(path[:-5] + ".txt", encoding="utf-8") as file:
                if ": error: " in file.read():
                    continue
            tried += 1
            with self.subTest(path=os.path.basename(path)):
                self.assertEqual(self.faults(path), [])
        self.assertGreater(tried, 5)

    def test_what_is_shipped_and_documented_is_valid(self):
        files = glob.glob(os.path.join(CHECKOUT, "rules", "*.yaml")) + glob.glob(
            os.path.join(CHECKOUT, "examples", "**", "rules*.yaml"), recursive=True)
        self.assertGreater(len(files), 2)
        for path in files:
            with self.subTest(path=os.path.relpath(path, CHECKOUT)):
                self.assertEqual(self.faults(path), [])
        for path in glob.glob(os.path.join(CHECKOUT, "rules", "*.yaml")):
            with self.subTest(modeline=os.path.relpath(path, CHECKOUT)), open(path, encoding="utf-8") as file:
                self.assertEqual(file.readline(), "# yaml-language-server: $schema=alight.schema.json\n")
        tried = 0
        for page in glob.glob(os.path.join(CHECKOUT, "docs", "*.md")):
            with open(page, encoding="utf-8") as file:
                blocks = re.findall(r"^```yaml\n(.*?)^```", file.read(), re.M | re.S)
            for block in blocks:
                # A configuration says so; test_docs.py holds it against the schema of its own.
                if not re.search(r"^rules:", block, re.M) or block.startswith("# config.yaml\n"):
                    continue
                tried += 1
                with self.subTest(page=os.path.basename(page), block=block[:80]):
                    self.assertEqual([e.message[:200] for e in self.validator.iter_errors(yaml.load(block, CoreLoader))], [])
        self.assertGreater(tried, 30)


if __name__ == "__main__":
    unittest.main()
