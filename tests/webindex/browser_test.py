#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of the web index in a real browser: Chromium without a window, driven by chromedriver.

    browser_test.py WEBINDEX OUTPUT

WEBINDEX is the program. Screenshots go to the folder OUTPUT, in light and dark, for people to look at. Exit code 77: there
is no Chromium here, so nothing was tested. Uses nothing but the standard library and loopback.
"""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

SKIPPED = 77
PATIENCE = 120  # seconds, for any wait
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # how the WebDriver protocol names an element
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
         "--no-first-run", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--window-size=1280,900"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, condition):
    """Waits until condition() is true, and returns what it returned."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not in {PATIENCE} s: {what}")
        time.sleep(0.05)


class Browser:
    """A session of the W3C WebDriver protocol: JSON over HTTP."""

    def __init__(self, folder, chromium, chromedriver):
        self.port = free_port()
        self.log = open(Path(folder) / "chromedriver.log", "wb")
        self.driver = subprocess.Popen([chromedriver, f"--port={self.port}"], stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            wait_for("chromedriver answers", self.is_ready)
            options = {"binary": chromium, "args": FLAGS + [f"--user-data-dir={folder}/profile"]}
            capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                            "goog:loggingPrefs": {"browser": "ALL"}}
            answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self.session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.kill()
            raise

    def is_ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    def call(self, method, path, body=None):
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"].get("message", "")) from error

    def do(self, method, path, body=None):
        return self.call(method, self.session + path, body)

    def open(self, url):
        self.do("POST", "/url", {"url": url})

    def address(self):
        return self.do("GET", "/url")

    def run(self, script, *arguments):
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        """The first element, or None."""
        found = self.do("POST", "/elements", {"using": "css selector", "value": selector})
        return found[0][ELEMENT] if found else None

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def click(self, selector):
        element = wait_for(selector, lambda: self.find(selector))
        self.do("POST", f"/element/{element}/click")

    def type(self, keys):
        """Types into the element that has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.do("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def dark(self, dark):
        value = "dark" if dark else "light"
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def size(self, width, height):
        self.do("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self, file):
        Path(file).write_bytes(base64.b64decode(self.do("GET", "/screenshot")))

    def console(self):
        """The messages of the page on the console since the last call, warnings and errors."""
        return [entry["message"] for entry in self.do("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("WARNING", "SEVERE")]

    def kill(self):
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)  # of its own session: the driver and the browser
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.log.close()

    def close(self):
        try:
            self.do("DELETE", "")
        finally:
            self.kill()


class Server:
    """webindex run, on a folder."""

    def __init__(self, program, docs, data):
        self.lines = []
        self.process = subprocess.Popen([program, "run", "--docs", docs, "--data", data, "--port", "0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace")
        threading.Thread(target=self.read, daemon=True).start()
        self.url = wait_for("the address of the page", lambda: self.said(r"(http://127\.0\.0\.1:\d+)/"))

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def said(self, pattern):
        """The first group of the match in the output of the program."""
        found = re.search(pattern, "".join(self.lines))
        return found.group(1) if found else None

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


HOSTILE = """<!doctype html><title>Durian <script>window.hurt = 1; alert(1)</script><img src=x onerror="window.hurt=2"></title>
<meta name="description" content="<img src=x onerror='window.hurt=3'>">
<script>window.hurt = 4; document.title = 'hurt'</script>
<p>A hostile durian. &lt;img src=x onerror="window.hurt=5"&gt; <svg onload="window.hurt=6"></svg>
<a href="apple.html">&lt;script&gt;window.hurt = 7&lt;/script&gt; durian</a> <a href="javascript:window.hurt=8">run</a>"""


def write_site(docs):
    fruits = ["apple", "banana", "cherry", "fig", "grape", "lemon", "mango", "orange", "peach", "plum", "quince", "walnut"]
    for number, fruit in enumerate(fruits):
        near = " ".join(f'<a href="{other}.html">the {other}</a>' for other in fruits[:number][-3:])
        text = f"The {fruit} is a fruit. " + " ".join(f"{fruit}{i} grows {number * 7 + i} days." for i in range(30))
        (docs / f"{fruit}.html").write_text(
            f'<!doctype html><html><head><title>All about the {fruit}</title><link rel="stylesheet" href="style.css">'
            f"</head><body><h1>{fruit}</h1><p>{text}</p><p>{near} and <a href=apple.html>apples</a></p></body></html>")
    (docs / "copy of fig.html").write_text((docs / "fig.html").read_text())
    (docs / "style.css").write_text("body { color: #222 } /* of every page */")
    (docs / "hostile.html").write_text(HOSTILE)
    # Two near duplicates.
    for name, ending in (("manual-1", "edition one"), ("manual-2", "edition two")):
        words = " ".join(f"chapter{i} tells of step{i}" for i in range(200))
        (docs / f"{name}.html").write_text(f"<title>Manual</title><p>The manual of orchards: {words} {ending}")


class Tests:
    def __init__(self, browser, server, docs, output):
        self.browser, self.server, self.docs, self.output = browser, server, docs, output

    def check(self, good, what):
        if not good:
            raise AssertionError(what)

    def quiet(self):
        messages = self.browser.console()
        self.check(not messages, f"the console has messages: {messages}")
        self.check(self.browser.run("return window.hurt === undefined"), "a script of a page was run")

    def shoot(self, name):
        for scheme in "light", "dark":
            self.browser.dark(scheme == "dark")
            time.sleep(0.1)
            self.browser.screenshot(self.output / f"{name}-{scheme}.png")

    def test_search(self):
        browser = self.browser
        browser.open(self.server.url + "/")
        wait_for("the number of documents", lambda: "document" in "".join(browser.texts("#status")))
        self.shoot("welcome")
        browser.type("banana")  # the box has the focus
        wait_for("hits", lambda: browser.texts("a.hit-title"))
        self.check(browser.texts("a.hit-title")[0] == "All about the banana", browser.texts("a.hit-title"))
        self.check("banana" in browser.texts("mark"), "marked terms")
        wait_for("the query in the address", lambda: browser.address().endswith("/?q=banana"))
        self.check("ms" in browser.texts(".meta")[0] or "µs" in browser.texts(".meta")[0], "the time it took")
        self.quiet()

    def test_folded(self):
        browser = self.browser
        browser.open(self.server.url + "/?q=fruit")
        wait_for("hits", lambda: len(browser.texts("a.hit-title")) == 10)
        self.shoot("search")
        browser.click(".pages button:last-child")
        wait_for("the second page", lambda: len(browser.texts("a.hit-title")) == 2)
        self.check("offset=10" in browser.address(), browser.address())
        browser.open(self.server.url + "/?q=orchards+manual")
        wait_for("one hit of two", lambda: browser.texts("a.hit-title") == ["Manual"])
        self.check(any("1 similar page" in text for text in browser.texts("summary")), browser.texts("summary"))
        browser.open(self.server.url + "/?q=fig")
        wait_for("duplicates", lambda: any("1 duplicate" in text for text in browser.texts("summary")))
        self.quiet()

    def test_keyboard(self):
        browser = self.browser
        browser.open(self.server.url + "/?q=fruit")
        wait_for("hits", lambda: len(browser.texts("a.hit-title")) == 10)
        titles = browser.texts("a.hit-title")
        browser.type("\ue015\ue015\ue015\ue013")  # down three times, and up
        self.check(browser.run("return document.activeElement.textContent") == titles[1], "the second hit has the focus")
        browser.type("\ue007")  # Enter
        wait_for("the page", lambda: "/page?url=" in browser.address())
        wait_for("its title", lambda: titles[1] in browser.texts("h1")[:1])
        browser.type("/")
        wait_for("the box", lambda: browser.run("return document.activeElement.name") == "q")
        self.quiet()

    def test_page(self):
        browser = self.browser
        browser.open(self.server.url + "/?q=apple+apples")
        wait_for("hits", lambda: browser.texts("a.hit-title"))
        browser.click("a.hit-title")
        wait_for("the page", lambda: browser.texts("h1") == ["All about the apple"])
        self.check("url=apple.html" in browser.address(), browser.address())
        wait_for("links in", lambda: any("Incoming links (1" in text for text in browser.texts("h2")))
        self.check("apples" in "".join(browser.texts(".anchor")), "anchors")
        self.shoot("page")
        browser.click("ul.links a")
        wait_for("another page", lambda: "apple.html" not in browser.address())
        browser.do("POST", "/back")
        wait_for("the first again", lambda: browser.texts("h1") == ["All about the apple"])
        self.quiet()

    def test_edit(self):
        """A file is edited: the hits on the screen change by themselves, and the page has two versions."""
        browser = self.browser
        browser.open(self.server.url + "/?q=zeppelin")
        wait_for("no hits", lambda: "0 pages" in "".join(browser.texts(".meta")))
        started = time.monotonic()
        (self.docs / "quince.html").write_text("<title>Quince, by zeppelin</title><p>The zeppelin brings a quince.")
        wait_for("the hit", lambda: browser.texts("a.hit-title") == ["Quince, by zeppelin"])
        print(f"  an edit was on the screen after {time.monotonic() - started:.2f} s")
        browser.click("a.hit-title")
        wait_for("two versions", lambda: len(browser.texts(".versions button")) == 2)
        browser.click(".versions button:last-child")
        wait_for("the old text", lambda: "quince7 grows" in "".join(browser.texts(".text")))
        self.shoot("version")
        (self.docs / "quince.html").unlink()
        browser.open(self.server.url + "/?q=zeppelin")
        wait_for("no hits", lambda: "0 pages" in "".join(browser.texts(".meta")))
        self.quiet()

    def touch(self):
        """Changes a page, which makes work for the observers."""
        (self.docs / "live0.html").write_text(f"<title>Live</title><p>changed at {time.monotonic()}")
        return True

    def test_pipeline(self):
        browser = self.browser
        browser.open(self.server.url + "/")
        browser.click('nav a[data-view="pipeline"]')
        wait_for("the graph", lambda: len(browser.texts("svg .node")) > 15)
        commits = lambda: dict(browser.run(
            "return [...document.querySelectorAll('tbody tr')].map((r) => [r.cells[0].textContent, r.cells[3].textContent])"))
        before = commits()
        for number in range(5):
            (self.docs / f"live{number}.html").write_text(f"<title>Live {number}</title><p>live page {number}")
            time.sleep(0.2)
        wait_for("more commits", lambda: int(commits()["parse"].replace(",", "")) >=
                 int(before["parse"].replace(",", "")) + 5)
        wait_for("an active observer", lambda: self.touch() and browser.find("svg .node.active"))
        wait_for("latencies", lambda: browser.find("svg .dot"))
        self.shoot("pipeline")
        self.quiet()

    def test_hostile(self):
        browser = self.browser
        browser.open(self.server.url + "/?q=durian")
        wait_for("the hit", lambda: any("<script>" in text for text in browser.texts("a.hit-title")))
        self.quiet()
        self.shoot("hostile")
        for url in "hostile.html", "apple.html":
            browser.open(f"{self.server.url}/page?url={url}")
            wait_for("the page", lambda: browser.texts("h2"))
            self.quiet()
        wait_for("the anchor as text", lambda: "<script>window.hurt = 7" in "".join(browser.texts(".anchor")))
        browser.open(f"{self.server.url}/page?url={urllib.parse.quote('<img src=x onerror=window.hurt=9>')}")
        wait_for("no such page", lambda: "there is no page" in "".join(browser.texts("main")))
        self.check(browser.run("return window.hurt === undefined"), "a script of an address was run")
        browser.console()  # has the expected error of the request without an answer
        # The original does nothing either: its console reports blocked scripts.
        browser.open(f"{self.server.url}/files/hostile.html")
        self.check("hostile durian" in browser.run("return document.body.textContent"), "the original is shown")
        self.check(browser.run("return window.hurt === undefined && document.title !== 'hurt'"), "the original ran a script")
        browser.console()
        # An original has its styles, and the page links to it.
        browser.open(f"{self.server.url}/files/apple.html")
        self.check(browser.run("return getComputedStyle(document.body).color") == "rgb(34, 34, 34)", "its style sheet")
        browser.console()

    def test_narrow(self):
        browser = self.browser
        browser.size(420, 800)
        try:
            for path in "/?q=fruit", "/page?url=apple.html", "/pipeline":
                browser.open(self.server.url + path)
                wait_for("content", lambda: browser.find("h1, h2, a.hit-title"))
                time.sleep(0.3)
                wide = browser.run("return document.documentElement.scrollWidth > document.documentElement.clientWidth")
                self.check(not wide, f"{path} does not fit into a narrow window")
            browser.open(self.server.url + "/?q=fruit")
            wait_for("hits", lambda: browser.texts("a.hit-title"))
            self.shoot("narrow")
        finally:
            browser.size(1280, 900)
        self.quiet()

    def test_stop(self):
        """The page reports when the server is gone."""
        self.browser.open(self.server.url + "/")
        wait_for("the number of documents", lambda: "document" in "".join(self.browser.texts("#status")))
        self.check(self.server.stop() == 0, "the server ended well")
        wait_for("the message about the server", lambda: "does not answer" in "".join(self.browser.texts("#status")))

    def all(self):
        names = [name for name in Tests.__dict__ if name.startswith("test_")]
        for name in names:
            started = time.monotonic()
            getattr(self, name)()
            print(f"ok {name} ({time.monotonic() - started:.1f} s)", flush=True)


def main(program, output):
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        print("SKIPPED: the page was NOT tested in a browser: chromium or chromedriver is missing (./setup test)")
        return SKIPPED
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webindex-browser-", ignore_cleanup_errors=True) as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        write_site(docs)
        server = Server(program, str(docs), str(Path(folder) / "data"))
        try:
            wait_for("the index is ready", lambda: server.said(r"(documents, ready: )"))
            browser = Browser(folder, chromium, chromedriver)
            try:
                Tests(browser, server, docs, output).all()
            except BaseException:
                browser.screenshot(output / "failed.png")
                print("screenshot:", output / "failed.png", "address:", browser.address())
                print("console:", browser.console())
                raise
            finally:
                browser.close()
        finally:
            server.kill()
            print("".join(server.lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
