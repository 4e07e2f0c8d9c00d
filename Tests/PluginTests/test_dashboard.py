"""Tests of the dashboard of a running instance in a browser: contents, buttons, security, accessibility."""

import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from browser import Browser

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
PROGRAMS = [os.environ.get("ALIGHT", ""), os.path.join(TOP, ".build/debug/alight"), os.path.join(TOP, ".build/release/alight")]
ALIGHT = next((path for path in PROGRAMS if path and os.path.exists(path)), None)

# Succeeds once the file FIXED exists, so that a retry has a different result than the first attempt.
RULES = """
rules:
  - name: check
    path: in/**
    settle: 100ms
    retry: { attempts: 1 }
    action:
      shell: |
        echo "looking at <b>$ALIGHT_PATH</b>" >&2
        case "$ALIGHT_PATH" in *bad*) [ -e 'FIXED' ] || { echo "it is bad <i>" >&2; exit 1; };; esac
"""

HOSTILE = [
    b"<img src=x onerror=window.owned=1>.png", b"\"><script>window.owned=1</script>".replace(b"/", b":"),
    "photo\u202egpj.exe".encode(), b"two\nlines.txt", b"caf\xe9.txt", b"' onmouseover='window.owned=1"]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@unittest.skipUnless(ALIGHT, "alight is not built: swift build")
class DashboardTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="alight-dashboard-")
        cls.addClassCleanup(directory.cleanup)
        cls.root = os.fsencode(os.path.realpath(directory.name))
        os.mkdir(os.path.join(cls.root, b"in"))
        with open(os.path.join(cls.root, b"rules.yaml"), "w") as file:
            file.write(RULES.replace("FIXED", os.path.join(os.path.realpath(directory.name), "fixed")))
        cls.port = free_port()
        cls.address = f"http://127.0.0.1:{cls.port}"
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": directory.name, "XDG_RUNTIME_DIR": directory.name,
            "RUNTIME_DIRECTORY": directory.name + "/run", "TZ": "UTC"}
        cls.log = tempfile.TemporaryFile()
        cls.addClassCleanup(cls.log.close)
        cls.alight = subprocess.Popen(
            [ALIGHT, "run", "rules.yaml", "--journal", "journal.db", "--listen", f"127.0.0.1:{cls.port}",
             "--control", os.path.join(directory.name, "control.sock")],
            cwd=cls.root, env=environment, stdin=subprocess.DEVNULL, stdout=cls.log, stderr=cls.log)
        cls.addClassCleanup(cls.stop)
        end = time.monotonic() + 30
        while True:
            try:
                if cls.get("/v1/status")["ready"]:
                    break
            except OSError:
                pass
            if time.monotonic() > end or cls.alight.poll() is not None:
                raise AssertionError(f"alight does not answer: {cls.log_text()}")
            time.sleep(0.05)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def stop(cls):
        cls.alight.terminate()
        try:
            cls.alight.wait(20)
        except subprocess.TimeoutExpired:
            cls.alight.kill()
            cls.alight.wait()

    @classmethod
    def log_text(cls):
        cls.log.seek(0)
        return cls.log.read().decode(errors="replace")

    @classmethod
    def ask(cls, method, path, body=None, headers={}):
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=20)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response, data

    @classmethod
    def get(cls, path):
        return json.loads(cls.ask("GET", path)[1])

    def setUp(self):
        self.page = self.browser.page()
        self.page.set_viewport(1360, 900)
        self.addCleanup(self.page.close)

    def drop(self, name, data=b"hello"):
        """Creates a file in the watched directory, waits until its job has finished, and returns the job."""
        path = os.path.join(self.root, b"in", name)
        with open(path, "wb") as file:
            file.write(data)
        return self.await_job(path)

    def await_job(self, path, state=None):
        end = time.monotonic() + 20
        while True:
            for job in self.get("/v1/jobs?limit=1000")["jobs"]:
                is_it = job["path"] == path.decode(errors="replace")
                if is_it and (job["state"] == state if state else job["state"] not in ("pending", "running")):
                    return job
            self.assertLess(time.monotonic(), end, f"no job for {path}: {self.log_text()}")
            time.sleep(0.05)

    def open(self, path="/"):
        self.page.open(self.address + path)
        self.page.wait("document.documentElement.dataset.connected !== undefined")

    def assert_clean(self):
        """Asserts that there were no errors, no injected script ran, and nothing was loaded from other hosts."""
        self.assertEqual(self.page.complaints, [])
        self.assertFalse(self.page.evaluate("'owned' in window"))
        self.assertEqual([url for url in self.page.requests if not url.startswith(self.address + "/")], [])

    # Contents

    def test_a_new_file_appears_on_the_open_page(self):
        self.open()
        self.drop(b"arrives.txt")
        text = "[...document.querySelectorAll('#lines .new')].map((line) => line.innerText).join('|')"
        self.page.wait(f"{text}.includes('arrives.txt') && {text}.includes('succeeded') && {text}.includes('created')")
        self.page.wait("document.querySelector('#rules td[data-label=Succeeded]').innerText !== '0'")
        self.assert_clean()

    def test_hostile_names_are_shown_as_text(self):
        self.open()
        for name in HOSTILE:
            self.drop(name)
        shown = ["<img src=x onerror=window.owned=1>.png", "\"><script>window.owned=1<:script>", "photo\\u{202e}gpj.exe",
                 "two\\nlines.txt", "caf\ufffd.txt", "' onmouseover='window.owned=1"]
        for selector in ("#lines .new .path b", None):
            if selector is None:
                self.open("/jobs")
                selector = "#jobs .path b"
            for name in shown:
                self.page.wait(
                    f"[...document.querySelectorAll({json.dumps(selector)})].some((b) => b.textContent === {json.dumps(name)})")
        for job in self.get("/v1/jobs?limit=1000")["jobs"]:
            if any(os.fsencode(job["path"]).endswith(name) for name in HOSTILE[:4]):
                self.open(f"/jobs/{job['id']}")
                # The name is that of an image, but the content is not: the preview is removed.
                self.assertEqual(self.page.evaluate("document.querySelectorAll('[onerror], [onmouseover], script').length"), 1)
        self.page.complaints = [text for text in self.page.complaints if "/input" not in text]
        self.assert_clean()

    # Buttons

    def test_retry_runs_the_job_again(self):
        name = b"bad retried.txt"
        job = self.drop(name)
        self.assertEqual(job["state"], "failed")
        self.open()
        self.page.wait("!!document.querySelector('#failures form[action$=retry]')")
        with open(os.path.join(self.root, b"fixed"), "wb"):
            pass
        self.addCleanup(os.unlink, os.path.join(self.root, b"fixed"))
        self.page.click(f"#failures form[action='/jobs/{job['id']}/retry'] button")
        self.page.wait("document.getElementById('toast').textContent.includes('retried')")
        self.await_job(os.path.join(self.root, b"in", name), "succeeded")
        self.page.wait(f"!document.querySelector('#failures form[action*=\"{job['id']}\"]')")
        self.assert_clean()

    def test_discard_requires_a_confirmation(self):
        path = os.path.join(self.root, b"in", b"bad discarded.txt")
        job = self.drop(b"bad discarded.txt")
        self.open(f"/jobs/{job['id']}")
        self.assertIn("looking at <b>", self.page.evaluate("document.querySelector('pre.log').textContent"))
        button = "form[action$=discard] button"
        self.page.click(button)
        self.assertIn("Really?", self.page.evaluate(f"document.querySelector('{button}').innerText"))
        self.assertEqual(self.get(f"/v1/jobs/{job['id']}")["state"], "failed")
        self.page.click(button)
        self.page.wait("location.pathname === '/jobs'")
        self.assertNotIn(path.decode(), [job["path"] for job in self.get("/v1/jobs?state=failed")["jobs"]])

    def test_pause_and_resume(self):
        self.open()
        self.page.click("#state button")
        self.page.wait("document.getElementById('pill').textContent === 'Paused'")
        self.assertTrue(self.get("/v1/status")["paused"])
        self.assertIn("Resume", self.page.evaluate("document.querySelector('#state button').innerText"))
        # By keyboard only.
        self.page.evaluate("document.querySelector('#state button').focus()")
        self.page.press("Enter", text="\r")
        self.page.wait("document.getElementById('pill').textContent === 'Running'")
        self.assertFalse(self.get("/v1/status")["paused"])
        self.assert_clean()

    # Without JavaScript

    def test_pages_and_buttons_work_without_javascript(self):
        job = self.drop(b"bad without script.txt")
        self.page.set_script(False)
        for path, words in (
            ("/", ["without script", "check", "Watched directories"]), ("/rules", ["check", "in/**"]),
            ("/jobs?state=failed&rule=&path=&since=", ["without script", "Retry"]),
            (f"/jobs/{job['id']}", ["it is bad <i>", "looking at <b>", "exit status 1"]),
        ):
            self.page.open(self.address + path)
            text = self.page.evaluate("document.body.innerText")
            for word in words:
                self.assertIn(word, text, path)
        loads = self.page.loads
        self.page.click("form[action$=discard] button")
        end = time.monotonic() + 10
        while self.page.loads == loads and time.monotonic() < end:
            self.browser.receive(time.monotonic() + 0.1)
        self.assertEqual([j for j in self.get("/v1/jobs?state=failed")["jobs"] if j["id"] == job["id"]], [])
        self.assert_clean()

    def test_a_form_of_another_site_is_refused(self):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {}):
            response, _ = self.ask("POST", "/pause", "", {**form, **headers})
            self.assertIn(response.status, (403, 415), headers)
        response, _ = self.ask("POST", "/v1/pause", "", {**form, "Origin": self.address})
        self.assertEqual(response.status, 415)
        self.assertFalse(self.get("/v1/status")["paused"])

    def test_pages_carry_a_strict_policy(self):
        for path in ("/", "/jobs", "/rules", "/assets/dashboard.js", "/jobs/none"):
            response, _ = self.ask("GET", path)
            policy = response.headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy, path)
            self.assertNotIn("unsafe", policy, path)
            self.assertEqual(response.headers["X-Content-Type-Options"], "nosniff", path)

    # Layout and accessibility

    def test_it_fits_a_phone_in_both_colour_schemes(self):
        job = self.drop(b"bad " + b"long-name-" * 20 + b".txt")
        for scheme in ("light", "dark"):
            self.page.set_viewport(360, 740, scheme, motion="reduce")
            for path in ("/", "/jobs", "/rules", f"/jobs/{job['id']}"):
                self.open(path)
                self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 360, path)
                self.assertEqual(self.page.evaluate(CONTRASTS), [], f"{path} {scheme}")
        self.assert_clean()

    def test_contrast_is_sufficient_on_a_desktop(self):
        job = self.drop(b"bad contrast.txt")
        for scheme in ("light", "dark"):
            self.page.set_viewport(1360, 900, scheme, motion="reduce")
            for path in ("/", "/jobs", "/rules", f"/jobs/{job['id']}"):
                self.open(path)
                self.assertEqual(self.page.evaluate(CONTRASTS), [], f"{path} {scheme}")
        self.assert_clean()

    def test_controls_have_names_and_show_their_focus(self):
        self.drop(b"bad focus.txt")
        for path in ("/", "/jobs"):
            self.open(path)
            nodes = self.page.call("Accessibility.getFullAXTree")["nodes"]
            value = lambda node, name: node.get(name, {}).get("value", "")
            nameless = [
                value(node, "role") for node in nodes
                if value(node, "role") in ("button", "link", "textbox", "combobox", "image", "meter", "navigation")
                and not node.get("ignored") and not value(node, "name")]
            self.assertEqual(nameless, [])
            for _ in range(8):
                self.page.press("Tab")
                self.assertTrue(self.page.evaluate(
                    "(() => { const style = getComputedStyle(document.activeElement);"
                    " return document.activeElement !== document.body && style.outlineStyle !== 'none'"
                    " && parseFloat(style.outlineWidth) >= 2; })()"), f"{path}: the focus is not visible")

    def test_the_page_of_a_job_shows_its_image(self):
        job = self.drop(b"picture.png", PNG)
        self.open(f"/jobs/{job['id']}")
        self.page.wait("document.querySelector('.preview img').naturalWidth === 1")
        self.assert_clean()


# Returns the texts whose contrast with their background is below WCAG level AA.
CONTRASTS = r"""
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, ground) => [0, 1, 2].map((i) => top[i] * top[3] + ground[i] * (1 - top[3])).concat(1);
  const ground = (element) => {
    if (!element) return [255, 255, 255, 1];
    const color = parse(getComputedStyle(element).backgroundColor);
    return color[3] === 1 ? color : over(color, ground(element.parentElement));
  };
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility() || element.closest(".unseen, svg, .skip, option")) continue;
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const back = ground(element);
    const style = getComputedStyle(element);
    const [one, other] = [light(over(parse(style.color), back)), light(back)].sort((a, b) => b - a);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${element.outerHTML.slice(0, 80)}: ${ratio.toFixed(2)}`);
  }
  return found;
})()
"""


if __name__ == "__main__":
    unittest.main()
