"""Version and bounds are written once, or held together."""

import re
from pathlib import Path

import pytest
from packaging.version import Version

import freight
import promises
import versions
import wheels

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="these are not the sources"
)


def test_the_version_is_the_same_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", freight.__version__)
    assert f"\nversion: {freight.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in (freight.__version__, "Unreleased")
    dated = [Version(heading) for heading in headings if heading != "Unreleased"]
    assert dated == sorted(dated, reverse=True)


def test_lower_bounds_are_what_was_tested() -> None:
    pins = dict(line.split("==") for line in versions.MINIMUM.read_text().split())
    bounds = versions.bounds()
    for name in pins.keys() - {"torch"}:
        assert Version(pins[name]) == Version(bounds[name]), name
    core = {"numpy", "scipy", "transformers", "pyarrow", "typer", "rich", "nltk", "regex"}
    assert core <= pins.keys()


def test_every_extra_is_tried_and_documented() -> None:
    page = (ROOT / "docs/installing.md").read_text()
    for extra in wheels.extras():
        assert f"| `{extra}` |" in page, extra
    assert promises.PROMISES.keys() == {*wheels.extras()} - {"all"}


def test_all_brings_whatever_is_not_for_the_documentation() -> None:
    assert {*wheels.promised("all")} == {*wheels.extras()} - {"all", "docs"}
    assert wheels.promised("zh") == ["zh"]
    assert wheels.promised("") == []


def test_no_dependency_is_pinned_for_users() -> None:
    asked = re.findall(r'"[\w-]+(==|<|~=)[\d.]+"', (ROOT / "pyproject.toml").read_text())
    assert not asked
