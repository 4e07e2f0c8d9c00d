"""A headless Chromium, controlled by the DevTools protocol over two pipes, with the standard library only."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


class BrowserError(Exception):
    pass


class Browser:
    """A browser process with any number of pages; `close` stops it and removes its files."""

    def __init__(self):
        if not PROGRAM:
            raise BrowserError("there is no Chromium: apt-get install chromium-headless-shell")
        self.directory = tempfile.TemporaryDirectory(prefix="alight-browser-")
        to_browser, self.orders = os.pipe()
        self.replies, from_browser = os.pipe()
        arguments = [
            PROGRAM, "--headless", "--remote-debugging-pipe", f"--user-data-dir={self.directory.name}", "--disable-gpu",
            "--disable-background-networking", "--disable-component-update", "--no-first-run", "--hide-scrollbars",
            "--force-color-profile=srgb", "--font-render-hinting=none", "about:blank"]
        # The sandbox of Chromium does not start as root, as in a container.
        if os.getuid() == 0:
            arguments.insert(1, "--no-sandbox")

        # The protocol is read from descriptor 3 and answered on 4.
        shell = f"exec 3<&{to_browser} 4>&{from_browser}; exec \"$@\""
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *arguments], pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.numbers = itertools.count(1)
        self.unread = b""
        self.pages = {}

    def page(self):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session=session)
        return self.pages[session]

    def call(self, method, parameters=None, session=None, seconds=30):
        number = next(self.numbers)
        order = {"id": number, "method": method, "params": parameters or {}}
        if session:
            order["sessionId"] = session
        data = json.dumps(order).encode() + b"\0"
        while data:
            data = data[os.write(self.orders, data):]
        end = time.monotonic() + seconds
        while True:
            message = self.receive(end)
            if message is None:
                raise BrowserError(f"'{method}' has no response within {seconds} s: {self.error_output()}")
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"'{method}': {message['error']}")
                return message["result"]

    def receive(self, end):
        """Returns the next message, and passes an event to its page; None if no message arrives before `end`."""
        while b"\0" not in self.unread:
            if not select.select([self.replies], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.replies, 1 << 20)
            if not data:
                raise BrowserError(f"Chromium exited: {self.error_output()}")
            self.unread += data
        text, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(text)
        if page := self.pages.get(message.get("sessionId")):
            if "method" in message:
                page.handle(message["method"], message["params"])
        return message

    def error_output(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-2000:]

    def close(self):
        try:
            self.call("Browser.close", seconds=10)
        except (BrowserError, OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.orders)
        os.close(self.replies)
        self.errors.close()
        self.directory.cleanup()


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.complaints = []  # errors of the console, exceptions, violations of the policy
        self.requests = []  # URLs
        self.loads = 0

    def handle(self, method, event):
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(value.get("value")) for value in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loads += 1

    def call(self, method, **parameters):
        return self.browser.call(method, parameters, self.session)

    def close(self):
        self.call("Page.close")
        self.browser.pages.pop(self.session)

    def open(self, address, seconds=20):
        loads = self.loads
        self.call("Page.navigate", url=address)
        end = time.monotonic() + seconds
        while self.loads == loads:
            if self.browser.receive(end) is None:
                raise BrowserError(f"'{address}' is not loaded within {seconds} s")

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression; waits for promises."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=15):
        """Waits until the expression is true, and returns its value."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise BrowserError(f"not within {seconds} s: {expression}\n{self.evaluate('document.body.innerText')[:3000]}")
            self.browser.receive(time.monotonic() + 0.05)
        return value

    def press(self, key, code=None, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13}.get(key, 0),
                      **({"text": text} if text and kind == "keyDown" else {}))

    def click(self, selector):
        """Clicks at the position of an element, so that an element covering it receives the click."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        x, y = self.evaluate(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def set_viewport(self, width, height, scheme="light", scale=1, motion="no-preference"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}])

    def set_script(self, is_on):
        self.call("Emulation.setScriptExecutionDisabled", value=not is_on)

    def screenshot(self, path, whole=False):
        parameters = {"format": "png", "captureBeyondViewport": whole, "optimizeForSpeed": False}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **parameters)["data"]))
