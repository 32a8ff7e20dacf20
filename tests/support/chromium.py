"""Debian's Chromium without a window, driven over the DevTools protocol through two pipes.

    with Chromium() as chromium, chromium.page(width=360) as page:
        page.load(server.url + "/docs")
        page.until("document.querySelector('h3')", "a heading")
        assert page.evaluate("document.title") == "jobq API"
        assert page.faults() == []

`browser_page` of conftest.py is a page for the tests of a class, in a browser shared by the tests of a process.
"""

import base64
import collections
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from jobq_api import until
from jobq_server import die_with_parent

DEADLINE = 60.0  # seconds: bounds a hang, and judges no pace
# No sandbox, which containers often forbid: all pages are those of the tests. And no address but this machine's.
FLAGS = ("--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
         "--disable-sync", "--disable-component-update", "--disable-default-apps", "--mute-audio",
         "--password-store=basic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost")

Request = collections.namedtuple("Request", "method url")


def missing():
    """Returns the reason why no browser can start; an empty text if Chromium is installed."""
    return "" if shutil.which("chromium") else "chromium: not installed, `scripts/setup.sh test` installs it"


class Chromium:
    """A browser with a profile of its own. The end of a `with` ends the process."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self._pages = {}
        self._answers = {}
        self._calls = 0
        self._unread = b""

    def __enter__(self):
        with self._stack:
            profile = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="jobq-browser-", ignore_cleanup_errors=True))
            self._log = self._stack.enter_context(open(os.path.join(profile, "log"), "w+b"))
            read_end, self._commands = os.pipe()
            self._replies, write_end = os.pipe()
            self._process = subprocess.Popen(self._command(profile), stdin=subprocess.DEVNULL, stdout=self._log,
                                             stderr=self._log, pass_fds=(3, 4), env={**os.environ, "HOME": profile},
                                             preexec_fn=lambda: self._begin(read_end, write_end))
            os.close(read_end)
            os.close(write_end)
            self._stack.callback(os.close, self._replies)
            self._stack.callback(os.close, self._commands)
            self._stack.callback(self._end)
            self.call("Browser.getVersion")
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_error):
        self._stack.close()

    @staticmethod
    def _command(profile):
        return ("chromium", *FLAGS, "--user-data-dir=" + os.path.join(profile, "profile"), "about:blank")

    @staticmethod
    def _begin(read_end, write_end):
        """Runs in the child: Chromium reads calls from descriptor 3 and writes answers to descriptor 4."""
        die_with_parent()
        copies = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_end, write_end)]
        for copy, descriptor in zip(copies, (3, 4)):
            os.dup2(copy, descriptor)

    def _end(self):
        self._process.kill()
        self._process.wait(DEADLINE)

    @contextlib.contextmanager
    def page(self, **appearance):
        """Opens a page without the cookies and caches of other pages. `appearance` is that of Page.show_as()."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        page.enable()
        page.show_as(**appearance)
        try:
            yield page
        finally:
            del self._pages[session]
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def call(self, method, session=None, **parameters):
        """Returns the result of a command of the protocol. Events that arrive before the result go to their pages."""
        self._calls += 1
        number = self._calls
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        self.receive(lambda: number in self._answers, method)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def receive(self, condition, what):
        """Handles answers and events until the condition holds; fails with `what` after the deadline."""
        end = time.monotonic() + DEADLINE
        while not condition():
            message, separator, rest = self._unread.partition(b"\0")
            if separator:
                self._unread = rest
                self._handle(json.loads(message))
                continue
            if not select.select([self._replies], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"{what}: not within {DEADLINE:g} s")
            data = os.read(self._replies, 1 << 20)
            if not data:
                self._log.seek(0)
                raise AssertionError(f"chromium has ended: {self._log.read().decode(errors='replace')[-2000:]}")
            self._unread += data

    def _handle(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
        elif page := self._pages.get(message.get("sessionId")):
            page.record(message["method"], message["params"])


class Page:
    """A page of a browser. `requests` has all requests since the last load began, also those that the browser refused."""

    def __init__(self, browser, session):
        self._browser = browser
        self._session = session
        self._faults = []
        self._loads = 0
        self.requests = []

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def enable(self):
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def record(self, method, event):
        """Keeps an event of the browser."""
        if method == "Page.loadEventFired":
            self._loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(Request(event["request"]["method"], event["request"]["url"]))
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self._faults.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self._faults.append(" ".join(str(each.get("value", each.get("description"))) for each in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self._faults.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")

    def show_as(self, width=1280, height=800, scheme="light"):
        """Sets the size in CSS pixels, and the preferred colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def load(self, url):
        """Opens an address, and waits for the load of the document with its resources."""
        self._await_load(url, "Page.navigate", url=url)

    def reload(self):
        self._await_load("the page", "Page.reload")

    def _await_load(self, what, method, **parameters):
        loads, self.requests = self._loads, []
        answer = self.call(method, **parameters)
        if method == "Page.reload" or "loaderId" in answer:  # otherwise the address is a place on the current page
            self._browser.receive(lambda: self._loads > loads, f"{what} is loaded")

    def evaluate(self, expression, *arguments):
        """Returns the JSON value of an expression, or of a function called with the arguments; promises are awaited."""
        if arguments:
            expression = f"({expression})({', '.join(json.dumps(each) for each in arguments)})"
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression[:200]}: {result['result'].get('description')}")
        return result["result"].get("value")

    def until(self, expression, what):
        """Waits until the expression is true in the page; fails with `what` after a deadline."""
        until(lambda: self.evaluate(f"Boolean({expression})"), what, DEADLINE)

    def press(self, selector):
        """Presses the first element that the selector matches with the mouse, after a scroll to the element."""
        place = self.evaluate("""selector => {
          const element = document.querySelector(selector);
          element.scrollIntoView({block: "center"});
          const {x, y, width, height} = element.getBoundingClientRect();
          return {x: x + Math.min(width, 40) / 2, y: y + height / 2};
        }""", selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def fill(self, selector, text):
        """Replaces the value of a field by the text, as a keyboard does."""
        self.evaluate("selector => { const field = document.querySelector(selector); field.focus(); field.select(); }",
                      selector)
        self.call("Input.insertText", text=text)

    def faults(self):
        """Returns the errors and warnings of the console since the last call, with uncaught exceptions and failed
        requests."""
        self.evaluate("0")  # after all events that the page has caused so far
        faults, self._faults = self._faults, []
        return faults

    def screenshot(self, path):
        """Writes a picture of the visible part as PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
