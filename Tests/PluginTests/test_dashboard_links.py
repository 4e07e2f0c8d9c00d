"""Tests of the links and forms of the dashboard, as used by a browser without JavaScript."""

import html.parser
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from test_api import ALIGHT, free_port, wait_for

RULES = """\
rules:
  - { name: good, path: in/*.txt, settle: 50ms, action: { use: log } }
  - { name: bad, path: in/*.bad, settle: 50ms, retry: false, action: { shell: "[ -e DIRECTORY/fixed ] || { echo no >&2; exit 1; }" } }
  - { name: large, path: in/*.big, settle: 50ms, where: { size: "> 1 MB" }, action: { use: log } }
  - { name: slow & <late>, path: in/*.slow, settle: 50ms, action: { shell: "until [ -e DIRECTORY/go ]; do sleep 0.05; done" } }
  - { name: tidy, path: in/*.png, settle: 50ms, action: { use: move, with: { to: "out/${name}" } } }
  - { name: last, path: in/*.last, settle: 50ms, action: { use: log } }
"""

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082")


class Page(html.parser.HTMLParser):
    """The links, sources, forms and table rows of a page."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.links, self.sources, self.forms, self.ids, self.rows = [], [], [], set(), 0
        self.words, self.link, self.menu = [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "a" and "href" in values:
            self.link = [values["href"], ""]
        if tag in ("img", "script") and "src" in values:
            self.sources.append(values["src"])
        if tag == "link":
            self.sources.append(values["href"])
        if tag == "form":
            self.forms.append({"method": values.get("method", "get"), "action": values["action"], "fields": {}})
        if tag in ("input", "select") and "name" in values:
            self.menu = values["name"]
            self.forms[-1]["fields"][self.menu] = [values["value"]] if values.get("value") else []
        if tag == "option" and values["value"]:
            self.forms[-1]["fields"][self.menu].append(values["value"])
        if tag == "tr" and "data-key" in values:
            self.rows += 1

    def handle_endtag(self, tag):
        if tag == "a" and self.link:
            self.links.append(tuple(self.link))
            self.link = None

    def handle_data(self, data):
        if self.link:
            self.link[1] += data


@unittest.skipUnless(os.path.exists(ALIGHT), "alight is not built: swift build")
class DashboardLinkTests(unittest.TestCase):
    journal = "journal.db"

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="alight-links-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.mkdir(os.path.join(self.directory, "in"))
        with open(os.path.join(self.directory, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES.replace("DIRECTORY", self.directory))
        self.port = free_port()
        self.program = None
        self.addCleanup(self.stop)

    def start(self):
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.directory, "XDG_STATE_HOME": self.directory + "/state",
            "ALIGHT_CONTROL": self.directory + "/run/control.sock"}
        self.error = os.path.join(self.directory, "err")
        with open(self.error, "wb") as error:
            self.program = subprocess.Popen(
                [ALIGHT, "run", "rules.yaml", "--listen", f"127.0.0.1:{self.port}", "--journal", self.journal],
                cwd=self.directory, env=environment, stdout=error, stderr=error)
        self.assertTrue(wait_for(self.error, "ready: watching"), "it did not become ready")

    def stop(self):
        if self.program and self.program.poll() is None:
            self.write("go")
            self.program.send_signal(signal.SIGTERM)
            self.program.wait(timeout=60)

    def write(self, name, data=b"x"):
        with open(os.path.join(self.directory, name), "wb") as file:
            file.write(data)

    def ask(self, method, target, fields=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(method, target, urllib.parse.urlencode(fields or {}), headers if method == "POST" else {})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.getheader("Location"), body

    def get(self, target):
        status, _, body = self.ask("GET", target)
        self.assertEqual(status, 200, f"{target}: {body[-800:]}")
        return body

    def page(self, target):
        return Page(self.get(target).decode())

    def status(self):
        return json.loads(self.get("/v1/status"))

    def rules(self):
        return {rule["name"]: rule for rule in json.loads(self.get("/v1/rules"))["rules"]}

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                with open(self.error, encoding="utf-8") as error:
                    self.fail(error.read())
            time.sleep(0.02)

    def fill(self):
        """Creates at least one job in each state."""
        for name in ("a.txt", "b.txt", "c.txt", "a.bad", "b.bad", "c.bad", "a.big", "a.slow", "a.last"):
            self.write("in/" + name)
        self.write("in/a.png", PNG)
        self.write("in/b.slow")
        self.wait(lambda: self.status()["counts"]["succeeded"] == 5 and self.status()["counts"]["failed_attempts"] == 3)
        self.wait(lambda: self.rules()["slow & <late>"]["running"] >= 1)

    def crawl(self):
        """Follows every link from the overview, and submits every GET form."""
        seen, waiting = {}, ["/"]
        while waiting:
            target = waiting.pop()
            address = target.partition("#")[0]
            if address in seen:
                continue
            page = seen[address] = self.page(address)
            for link, words in page.links:
                link = urllib.parse.urljoin(address, link)
                path, _, anchor = link.partition("#")
                if anchor and path == address:
                    self.assertIn(anchor, page.ids, f"{address}: no such anchor on the page")
                self.check(address, link, words)
                waiting.append(link)
            for source in page.sources:
                self.get(source)
            for form in page.forms:
                if form["method"] == "get":
                    for name, values in form["fields"].items():
                        waiting += [f"{form['action']}?{urllib.parse.urlencode({name: value})}" for value in values]
        return seen

    def check(self, address, link, words):
        """Checks that a link with a number leads to a list of so many jobs."""
        number = re.match(r"([\d,]+)", words)
        if link.startswith("/jobs?") and number:
            rows = self.page(link).rows
            self.assertEqual(rows, int(number[1].replace(",", "")), f"{address}: '{words}' leads to {link}")

    def test_each_link_leads_to_the_page_it_names(self):
        self.start()
        self.fill()
        pages = self.crawl()
        self.assertGreater(sum(address.startswith("/jobs/") for address in pages), 8)

    def test_each_button_has_an_effect_and_leads_to_a_page(self):
        self.start()
        self.fill()
        done = set()
        for address, page in self.crawl().items():
            for form in page.forms:
                key = (form["action"], str(form["fields"]))
                if form["method"] != "post" or key in done or form["action"].endswith("/discard"):
                    continue
                done.add(key)
                fields = {name: values[0] for name, values in form["fields"].items() if values}
                status, location, body = self.ask("POST", form["action"], fields)
                # With two buttons for one job, the second request conflicts.
                if form["action"].endswith("/retry"):
                    self.assertIn(status, (303, 409), body)
                else:
                    self.assertEqual(status, 303, f"{form}: {body}")
                    self.get(location)
                self.ask("POST", "/resume")
        self.assertIn("/reload", {action for action, _ in done})

    def test_discarded_and_retried_jobs_are_no_longer_counted(self):
        self.start()
        self.fill()
        self.assertEqual(self.rules()["bad"]["failed"], 3)
        jobs = json.loads(self.get("/v1/jobs?state=failed"))["jobs"]
        for job in jobs[:2]:
            status, location, _ = self.ask("POST", f"/jobs/{job['id']}/discard")
            self.assertEqual(status, 303)
            self.get(location)
        self.assertEqual(self.rules()["bad"]["failed"], 1)
        self.crawl()
        self.write("fixed")
        self.assertEqual(self.ask("POST", f"/jobs/{jobs[2]['id']}/retry")[0], 303)
        self.wait(lambda: self.rules()["bad"]["succeeded"] == 1)
        self.assertEqual(self.rules()["bad"]["failed"], 0)
        self.crawl()

    def test_failed_jobs_of_earlier_runs_are_counted(self):
        self.start()
        self.fill()
        self.stop()
        self.start()
        self.assertEqual(self.rules()["bad"]["failed"], 3)
        self.assertEqual(self.status()["queue"]["failed"], 3)
        self.crawl()
        self.write("in/d.txt")
        self.wait(lambda: self.rules()["good"]["succeeded"] == 1)
        self.crawl()


class MemoryLinkTests(DashboardLinkTests):
    """The same tests with a journal in memory, which has no pages of jobs."""

    journal = ":memory:"
    test_failed_jobs_of_earlier_runs_are_counted = None
    test_discarded_and_retried_jobs_are_no_longer_counted = None

    def test_each_link_leads_to_the_page_it_names(self):
        self.start()
        self.fill()
        self.assertEqual([address for address in self.crawl() if address.startswith("/jobs/")], [])


if __name__ == "__main__":
    unittest.main()
