"""The site: builds without a dead link, fetches nothing, and is seen in a real browser."""

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import blocks
from freight.cli import app
from pages import some_ways
from written import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("material") is None, reason="mkdocs-material is not installed: freight[docs]"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def pages_of(site: Path) -> dict[str, str]:
    return {
        str(path.relative_to(site)): path.read_text("utf-8")
        for path in sorted(site.rglob("*.html"))
    }


def test_every_page_and_notebook_is_there(site: Path) -> None:
    pages = set(pages_of(site))
    docs = ROOT / "docs"
    sources = {path.relative_to(docs) for path in docs.rglob("*.md")}
    for source in sources | {
        Path("notebooks/first_hour.md"),
        Path("notebooks/choosing_a_metric.md"),
    }:
        name = "index" if source.stem == "README" else source.stem
        assert str(source.with_name(f"{name}.html")) in pages


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for name, page in pages_of(site).items():
        for part in page.split("<")[1:]:
            if part.startswith(("script", "link", "img", "iframe", "source")):
                assert "//" not in part.split(">")[0], f"{name}: <{part}"
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text("utf-8").replace('"', "")


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    page = pages_of(site)["mathematics.html"]
    assert page.count("<math") > 20
    assert "$`" not in page
    assert "```" not in page


def test_the_reference_names_every_command_and_what_is_public(site: Path) -> None:
    import freight

    pages = pages_of(site)
    reference = "".join(page for name, page in pages.items() if name.startswith("reference/"))
    for command in app.registered_commands:
        assert f'id="freight-{command.name}"' in pages["reference/commands.html"]
    for name in freight.__all__:
        assert f'.{name}"' in reference, name


def test_code_that_is_indented_has_the_colours_of_its_language() -> None:
    shown = blocks.on_page_markdown("Text\n\n    >>> 1\n    1\n\n    >>> 2\n    2\n\nMore\n")
    assert shown == "Text\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```\n\nMore\n"
    listed = "- an item\n\n    that goes on\n"
    assert blocks.on_page_markdown(listed) == listed
    fenced = "```sh\n\n    freight metrics\n```\n"
    assert blocks.on_page_markdown(fenced) == fenced
    assert blocks.language("freight score hyp.txt") == "sh"
    assert blocks.language("minimise  this") == "text"


def test_what_is_copied_of_a_session_is_what_was_typed(site: Path) -> None:
    session = ">>> for k in (1, 2):\n...     print(k)\n...\n1\n2\n>>> 'a' < 'b'\nTrue\n"
    assert blocks.typed(session) == "for k in (1, 2):\n    print(k)\n\n'a' < 'b'"
    assert blocks.typed(">>> for k in x:\n...     k\n1\n>>> 2\n2") == "for k in x:\n    k\n\n2"
    assert blocks.typed("$ freight version\nfreight 0.1.0\n") == "freight version"
    page = pages_of(site)["judging.html"]
    copied = [unescape(one) for one in re.findall(r'data-copy="([^"]*)"', page)]
    assert any(
        one.startswith("import freight\nfrom freight.judge import judge\n") for one in copied
    )
    assert not any(">>>" in one or "0.485" in one for one in copied)


def test_a_pattern_stands_for_the_pages_that_nobody_names() -> None:
    import navigation

    nav = [{"Home": "index.md"}, {"Guides": ["one.md", "*.md"]}, {"Inner": ["in/*.md"]}]
    free = ["four.md", "in/three.md", "two.md"]
    assert navigation._named(nav) == ["index.md", "one.md", "*.md", "in/*.md"]
    assert navigation._filled(nav, free) == [
        {"Home": "index.md"},
        {"Guides": ["one.md", "four.md", "two.md"]},
        {"Inner": ["in/three.md"]},
    ]


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(("width", "scheme"), some_ways((390, "dark"), (1280, "light")))
def test_a_browser_asks_nobody_else_and_has_nothing_to_complain_of(
    address: str, width: int, scheme: str, browser: Any
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    for name in ("index", "tutorial", "mathematics", "reference/scoring"):
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    height = "document.querySelector('math').getBoundingClientRect().height"
    page.goto(f"{address}/mathematics.html")
    assert page.evaluate(height) > 5
    context.close()
    assert all(url.startswith((address, "data:", "blob:")) for url in asked)
    assert said == []


def test_search_and_copying_work_from_a_disk(site: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = context.new_page()
    page.set_default_timeout(120_000)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto((site / "reference" / "scoring.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type("barycenter")
    link = page.locator("li.md-search-result__item a").first
    link.wait_for()
    assert "barycenter" in page.locator(".md-search-result__list").inner_text().lower()
    link.click()
    page.wait_for_url("**/*.html?h=*")
    page.goto((site / "judging.html").as_uri())
    button = page.locator("[data-copy] [data-md-type=copy]").first
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = getSelection().toString() ||"
        " document.activeElement.value })"
    )
    button.click()
    copied = page.wait_for_function("window.copied").json_value()
    context.close()
    assert copied.startswith("import freight\nfrom freight.judge import judge\njudged = ")
    assert ">>>" not in copied
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked)
    assert said == []
