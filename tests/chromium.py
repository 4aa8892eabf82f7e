# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a window, spoken to through a pair of pipes: no driver, no port, no network."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

DEADLINE_S = 300
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic", "--disable-extensions"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
# The browser reads its orders from descriptor 3 and answers on 4, which need not be free in the process of the tests.
LAUNCH = """
import fcntl, os, sys
high = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for low, each in zip((3, 4), high):
    os.dup2(each, low)
    os.close(each)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def program() -> str | None:
    """Path of the browser, None if there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass
class Browser:
    """Sends orders and keeps every event that comes back."""

    orders: int
    answers: int
    events: list[dict[str, Any]] = field(default_factory=list)
    unread: bytes = b""
    number: int = 0

    def call(self, method: str, session: str | None = None, **params: object) -> dict[str, Any]:
        """One order and its result; RuntimeError with the browser's words if it refuses."""
        self.number += 1
        order: dict[str, object] = {"id": self.number, "method": method, "params": params}
        if session:
            order["sessionId"] = session
        os.write(self.orders, json.dumps(order).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, method: str, session: str) -> None:
        """Until an event has come."""
        while not any(event.get("method") == method and event.get("sessionId") == session for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.answers], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(self.answers, 1 << 16) if ready else b""
            if not piece:
                raise TimeoutError("the browser did not answer" if not ready else "the browser ended")
            self.unread += piece
        line, _, self.unread = self.unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


@dataclass
class Page:
    """A page that has been loaded, with everything that it asked for and said meanwhile."""

    browser: Browser
    session: str

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; a promise is awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.browser.call("Runtime.evaluate", self.session, expression=expression, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def settle(self) -> None:
        """Let two frames pass, so that what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def scheme(self, name: str) -> None:
        """The reader's system turns light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.browser.call("Emulation.setEmulatedMedia", self.session, features=features)
        self.settle()

    def requests(self) -> list[str]:
        return [event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def messages(self) -> list[str]:
        """Everything on the console: the page's own words, the browser's complaints, uncaught exceptions."""
        own = [str(event["params"]["args"]) for event in self._events("Runtime.consoleAPICalled")]
        logged = [event["params"]["entry"]["text"] for event in self._events("Log.entryAdded")]
        thrown = [event["params"]["exceptionDetails"]["text"] for event in self._events("Runtime.exceptionThrown")]
        return own + logged + thrown

    def _events(self, method: str) -> list[dict[str, Any]]:
        return [e for e in self.browser.events if e.get("method") == method and e.get("sessionId") == self.session]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in a folder, which also gets its log of the network, ``net.json``."""
    ours, theirs = os.pipe(), os.pipe()
    flags = (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={folder / 'net.json'}")
    command = (sys.executable, "-c", LAUNCH, str(ours[0]), str(theirs[1]), program() or "chromium", *flags)
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    process = subprocess.Popen(
        command, pass_fds=(ours[0], theirs[1]), stderr=subprocess.DEVNULL, env={**os.environ, **home}
    )
    os.close(ours[0])
    os.close(theirs[1])
    try:
        started = Browser(ours[1], theirs[0])
        yield started
        started.call("Browser.close")
        process.wait(DEADLINE_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours[1])
        os.close(theirs[0])


def load(started: Browser, file: Path, width: int, scheme: str, query: str = "") -> Page:
    """Open a file as a page of a given width on a system that is light or dark. query: what follows its address."""
    target = started.call("Target.createTarget", url="about:blank")["targetId"]
    session = started.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        started.call(f"{domain}.enable", session)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    started.call("Emulation.setDeviceMetricsOverride", session, **size)
    page = Page(started, session)
    page.scheme(scheme)
    started.call("Page.navigate", session, url=file.as_uri() + query)
    started.wait_for("Page.loadEventFired", session)
    page.settle()
    return page


AXE = """axe.run(document, { resultTypes: ["violations"] }).then((result) => result.violations.map((each) =>
  [each.id, each.help, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]))"""


def accessibility_faults(page: Page) -> list[list[Any]]:
    """What axe-core finds wrong with the page for those who read it in other ways: rule, words, the first elements.

    What stands folded is opened before. (Rules: WCAG 2, and the best practices of axe-core.)
    """
    page.evaluate(resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    unfold(page)
    found: list[list[Any]] = page.evaluate(AXE)
    return found


def unfold(page: Page) -> None:
    """Open all that stands folded."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.settle()


def asked_by_pages(folder: Path) -> list[str]:
    """Every address that a page made the network stack ask for; the browser's own errands have no origin."""
    log = json.loads((folder / "net.json").read_text())
    job = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    jobs = [event["params"] for event in log["events"] if event["type"] == job and "url" in event.get("params", {})]
    return [each["url"] for each in jobs if each["initiator"] != "not an origin"]
