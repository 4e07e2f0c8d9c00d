"""Tests of the documentation: its shell commands run, and print the output that the page shows.

    python3 -m unittest discover -s Tests/PluginTests -p test_docs_shell.py -v

PAGE=docs/jobs.md runs one page. `page_runner.py` describes how a page is run.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import tempfile
import unittest

import page_runner
import test_docs as docs

PAGES = [page for page in docs.PAGES if page == "README.md" or page.startswith("docs/")]
# The languages of blocks: this file runs those in SHELL; test_docs.py and ArticleTests check the others.
LANGUAGES = {*page_runner.SHELL, "yaml", "json", "python", "sql", "swift", "ini"}
LEAST_SHELL, MOST_EXCLUDED = 45, 2


@unittest.skipUnless(os.access(docs.ALIGHT, os.X_OK), f"{docs.ALIGHT} is not built, run `swift build`")
class ShellTests(unittest.TestCase):

    def run_page(self, page):
        with tempfile.TemporaryDirectory(prefix="alight-page-") as directory:
            with page_runner.PageRunner(page, os.path.realpath(directory)) as runner:
                return runner.run_page()

    def test_every_command_prints_what_the_page_shows(self):
        pages = [os.environ["PAGE"]] if "PAGE" in os.environ else PAGES
        # The pages mostly wait.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = {page: pool.submit(self.run_page, page) for page in pages}
        for page, run in runs.items():
            with self.subTest(page):
                run.result()

    def test_every_block_is_checked(self):
        count, excluded = 0, {}
        for page in PAGES:
            count += len(page_runner.shell_blocks(page))
            excluded |= {f"{page}:{line}": reason for line, reason in page_runner.excluded_blocks(page).items()}
            for language, line, text in docs.blocks(page):
                with self.subTest(f"{page}:{line}"):
                    self.assertIn(language, LANGUAGES)
                    if page_runner.is_protocol(text):
                        for each in text.splitlines():
                            self.is_message(each[2:])
            self.assertEqual(re.findall(r"^[ >]+```", docs.read(page), re.M), [], f"{page}: a block must not be indented")
        self.assertGreaterEqual(count, LEAST_SHELL)
        self.assertLessEqual(len(excluded), MOST_EXCLUDED, excluded)

    def is_message(self, line):
        """Checks that a line of the protocol is JSON, except for omissions and `end of file`."""
        if line != "end of file":
            self.assertIn("type", json.loads(re.sub(r",…(?=})", "", line.replace("[…]", "[]"))))

    def test_every_other_yaml_block_is_valid(self):
        import yaml
        for page in PAGES:
            for language, line, text in docs.blocks(page):
                if language == "yaml" and not re.search(r"^rules:", text, re.M) and not docs.is_configuration(text):
                    with self.subTest(f"{page}:{line}"):
                        value = yaml.safe_load(text)
                        if text.startswith("# prometheus.yml\n"):
                            self.assertEqual(value["scrape_configs"][0]["job_name"], "alight")
                        elif not text.startswith("# yaml-language-server: "):
                            self.describes_a_plugin(text, value)

    def describes_a_plugin(self, text, value):
        with tempfile.TemporaryDirectory(prefix="alight-page-") as directory:
            plugin = os.path.join(directory, "plugins", value["name"])
            docs.write(os.path.join(plugin, "plugin.yaml"), text)
            docs.write(os.path.join(plugin, value["run"]), "#!/bin/sh\n", executable=True)
            done = subprocess.run([docs.ALIGHT, "plugins", "describe", value["name"], "--json"], cwd=directory,
                                  env={"PATH": docs.SYSTEM_PATH, "HOME": directory}, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_inline_commands_use_existing_options(self):
        dump = subprocess.run([docs.ALIGHT, "--experimental-dump-help"], capture_output=True, text=True, check=True, timeout=60)
        root, checked = json.loads(dump.stdout)["command"], 0
        for page in docs.PAGES:
            if page == "CHANGELOG.md":
                continue
            for number, line in enumerate(docs.read(page).splitlines(), 1):
                for text in re.findall(r"`(?:sudo )?(alight(?: [^`]+)?)`", line):
                    checked += 1
                    with self.subTest(f"{page}:{number}: {text}"):
                        self.has_options(root, text)
        self.assertGreater(checked, 150)

    def has_options(self, command, text):
        """Finds the command of the words, and checks that it has each option."""
        path = "alight"
        words = re.split(r"[\s=]+", re.sub(r"[\[\]|,;]", " ", text.partition(" | ")[0]))[1:]
        for word in words:
            if below := [each for each in command.get("subcommands") or [] if each["commandName"] == word]:
                command, path = below[0], f"{path} {word}"
            elif word == "--experimental-dump-help":
                pass  # an option of the argument parser
            elif re.fullmatch(r"--?[a-z][a-z-]*", word):
                names = [("-" if name["kind"] == "short" else "--") + name["name"]
                         for argument in command["arguments"] for name in argument.get("names", [])]
                self.assertIn(word, names, f"'{path}' does not have this option")
            elif path == "alight" and command.get("subcommands"):
                self.assertNotRegex(word, r"^[a-z]+$", "unknown command")


if __name__ == "__main__":
    unittest.main()
