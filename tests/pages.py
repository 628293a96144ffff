"""Pages under test: their elements as a parser sees them, and one real browser for all tests."""

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
VOID = {"meta", "link", "br", "hr", "img", "input"}


def some_ways(*ways: T) -> tuple[T, ...]:
    """The first way to draw a page; all of them in `make soak` (FREIGHT_PAGES=all)."""
    return ways if os.environ.get("FREIGHT_PAGES") == "all" else ways[:1]


class Elements(HTMLParser):
    """Every element of a page by name, what they link to, and the text outside style and script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.links: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self._within: str = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1
        self._within = tag
        if tag not in VOID:
            self.open.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "srcset")]
        assert not [k for k, _ in attrs if k.startswith("on")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._within not in ("style", "script"):
            self.text += data


@pytest.fixture(scope="session")
def chromium_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one Chromium of a test run; skips where there is none."""
    program = shutil.which("chromium")
    if program is None:
        message = "chromium is not here (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    profile = tmp_path_factory.mktemp("chromium")
    log = profile / "log"
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-sync",
        "--disable-background-networking", "--remote-debugging-port=0",
        f"--user-data-dir={profile / 'user'}", "about:blank",
    ]  # fmt: skip
    with log.open("wb") as stream, subprocess.Popen(command, stderr=stream) as process:
        try:
            yield _devtools_address(process, log)
        finally:
            process.terminate()


def _devtools_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the browser has written where it listens, or has ended."""
    while process.poll() is None:
        written = re.search(r"DevTools listening on (ws://\S+)\n", log.read_text("utf-8"))
        if written:
            return written[1]
        time.sleep(0.05)
    raise RuntimeError(f"chromium ended: {log.read_text('utf-8')}")


@pytest.fixture(scope="module")
def browser(chromium_address: str) -> Iterator[Any]:
    """A Playwright browser on the shared Chromium, for the tests of one file.

    Playwright keeps an event loop running in this thread while it is connected, so a connection for
    the whole run would break every test that calls asyncio.run.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        connection = driver.chromium.connect_over_cdp(chromium_address)
        yield connection
        connection.close()


OpenPage = Callable[..., tuple[str, str]]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> OpenPage:
    """Opens a page given as HTML; returns its document once loaded, and the console's messages.

    With a selector it waits until there is such an element.
    """

    def open_html(html: str, awaited: str = "") -> tuple[str, str]:
        file = tmp_path / "opened page.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(300_000)
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(file.as_uri())
        if awaited:
            page.wait_for_selector(awaited, state="attached")
        document: str = page.content()
        context.close()
        file.unlink()
        return document, "\n".join(messages)

    return open_html
