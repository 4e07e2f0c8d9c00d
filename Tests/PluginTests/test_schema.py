"""Compares the output of `alight schema` and `alight check` with the expectations in Tests/Fixtures/rules.

The comments `# expect LINE:COLUMN+LENGTH SEVERITY: MESSAGE` in the rules files are the errors of the loader, which
RuleFixtureTests compares exactly. Here the schema must also refuse each rule with an error, unless all of its errors
are marked `[unseen]`, and `alight check`, with the real handlers, must find errors on the same lines. The validator is
python3-jsonschema.
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
FIXTURES = os.path.join(CHECKOUT, "Tests", "Fixtures", "rules")

try:
    import jsonschema
    import yaml
except ImportError as missing:
    raise unittest.SkipTest(f"{missing}: apt install python3-jsonschema python3-yaml")


class CoreLoader(yaml.SafeLoader):
    """The core schema of YAML 1.2, as in editors and Alight; the default of PyYAML is YAML 1.1."""


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

# The handlers that exist only in ConfigurationTests, and files in which such a handler accepts less than the real one.
HANDLERS_OF_TESTS = ["thumbnail", "keywords", "preview", "files", "cuts", "broken"]
OTHER_HANDLERS = ["keys/unknown-key-present.yaml", "on_failure/on-failure.yaml"]


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def is_for_this_machine(path):
    """Whether the file can be checked here: some require root, or a recent kernel."""
    name = os.path.basename(path)
    if name.startswith("root"):
        return os.geteuid() == 0
    return not name.startswith("landlock") or has_landlock()


def expectations(path):
    """Returns the expected errors of the file, those of test handlers included: line, and whether the schema finds it."""
    beside = path[:-5] + ".expect"
    with open(beside if os.path.exists(beside) else path, "rb") as file:
        text = file.read()
    return [(int(line), not mark) for line, mark in re.findall(rb"(?m)^# expect (\d+):\S+ error( \[unseen\])?: ", text)]


def rules_of(root):
    """Returns the nodes of the rules; empty if the file has no list of rules."""
    if not isinstance(root, yaml.MappingNode):
        return []
    return [rule for key, value in root.value if key.value == "rules" and isinstance(value, yaml.SequenceNode)
            for rule in value.value]


def errors_of_check(path):
    """Returns the errors that `alight check` finds."""
    environment = dict(os.environ, HOME="/home/ada", INBOX="/srv/in", ODD="/srv/a*b", EMPTY="")
    done = subprocess.run([ALIGHT, "check", "--format", "json", path], cwd=os.path.dirname(path), env=environment,
                          capture_output=True, text=True, errors="replace", timeout=60)
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

    def schema_errors(self, document):
        """Returns the messages of the schema about a document."""
        return [error.message[:200] for error in self.validator.iter_errors(document)]

    def test_the_schema_is_valid(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.assertEqual(self.schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        for example in self.schema["examples"]:
            self.assertEqual(list(self.validator.iter_errors(example)), [])

    def test_defaults_and_examples_are_valid(self):
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

    def test_the_schema_finds_the_expected_errors(self):
        refused = accepted = 0
        for path in sorted(glob.glob(os.path.join(FIXTURES, "*", "*.yaml"))):
            try:
                with open(path, "rb") as file:
                    text = file.read()
                root = yaml.compose(text, CoreLoader)
                document = yaml.load(text, CoreLoader)
            except (yaml.YAMLError, UnicodeError, ValueError, RecursionError):
                # An editor reports this without a schema.
                self.assertNotEqual(expectations(path), [], path)
                continue
            errors = expectations(path)
            if len(errors) > 100:
                # Further errors are omitted, so it is unknown which rules are valid.
                continue
            rules = rules_of(root)
            parts = [(document, 0, 1 << 60)]
            if len(rules) > 1:
                ends = [rule.start_mark.line for rule in rules[1:]] + [1 << 60]
                start = rules[0].start_mark.line + 1
                # With an error above the rules, that part is checked with all rules, and each rule without it.
                is_right = not any(line < start for line, _ in errors)
                above = {key: value for key, value in document.items() if key != "rules"} if is_right else {}
                parts = [] if is_right else [(document, 0, start - 1)]
                parts += [({**above, "rules": [rule]}, node.start_mark.line + 1, end)
                         for rule, node, end in zip(document["rules"], rules, ends)]
            for part, first, end in parts:
                own = [seen for line, seen in errors if first <= line <= end]
                schema_errors = self.schema_errors(part)
                with self.subTest(path=os.path.relpath(path, FIXTURES), line=first):
                    if any(own):
                        refused += 1
                        self.assertNotEqual(schema_errors, [], "the schema accepts it: mark it [unseen]")
                    else:
                        accepted += 1
                        self.assertEqual(schema_errors, [], "the schema finds it: remove [unseen]" if own else "unexpected error")
        self.assertGreater(refused, 200)
        self.assertGreater(accepted, 150)

    def test_check_finds_the_expected_errors(self):
        paths = [path for path in sorted(glob.glob(os.path.join(FIXTURES, "*", "*.yaml"))) if is_for_this_machine(path)]
        self.assertGreater(len(paths), 250)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(paths, pool.map(errors_of_check, paths)))
        compared = 0
        for path in paths:
            lines = {line for line, _ in expectations(path)}
            if any(f"plugin '{name}'" in error["message"] for error in found[path] for name in HANDLERS_OF_TESTS) or (
                    os.path.relpath(path, FIXTURES) in OTHER_HANDLERS):
                continue
            compared += 1
            with self.subTest(path=os.path.relpath(path, FIXTURES)):
                self.assertEqual({error.get("line", 0) for error in found[path]}, lines, found[path])
        self.assertGreater(compared, 250)

    def test_shipped_and_documented_rules_are_valid(self):
        files = glob.glob(os.path.join(CHECKOUT, "rules", "*.yaml")) + glob.glob(
            os.path.join(CHECKOUT, "examples", "**", "rules*.yaml"), recursive=True)
        self.assertGreater(len(files), 2)
        for path in files:
            with self.subTest(path=os.path.relpath(path, CHECKOUT)):
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(self.schema_errors(yaml.load(file, CoreLoader)), [])
        for path in glob.glob(os.path.join(CHECKOUT, "rules", "*.yaml")):
            with self.subTest(modeline=os.path.relpath(path, CHECKOUT)), open(path, encoding="utf-8") as file:
                self.assertEqual(file.readline(), "# yaml-language-server: $schema=alight.schema.json\n")
        tried = 0
        for page in glob.glob(os.path.join(CHECKOUT, "docs", "*.md")):
            with open(page, encoding="utf-8") as file:
                blocks = re.findall(r"^```yaml\n(.*?)^```", file.read(), re.M | re.S)
            for block in blocks:
                # test_docs.py checks configurations with their own schema.
                if not re.search(r"^rules:", block, re.M) or block.startswith("# config.yaml\n"):
                    continue
                tried += 1
                with self.subTest(page=os.path.basename(page), block=block[:80]):
                    self.assertEqual([e.message[:200] for e in self.validator.iter_errors(yaml.load(block, CoreLoader))], [])
        self.assertGreater(tried, 30)


if __name__ == "__main__":
    unittest.main()
