"""The code in the documentation: which blocks there are, and how each kind of them is run."""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

import blocks
from freight.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"^```(?P<language>python|sh|console)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_SAID = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """Code in a page, what the page says that it prints, or why it is not run."""

    language: str
    code: str
    printed: str | None
    reason: str | None


def blocks_of(page: Path) -> list[Block]:
    """All of a page, those that are indented like those that are fenced."""
    text = blocks.on_page_markdown(page.read_text("utf-8"))
    return [Block(**match.groupdict()) for match in _BLOCK.finditer(text)]


def run(block: Block, names: dict[str, Any]) -> None:
    """Run a block, and hold it to what the page says."""
    printed = python(block.code, names) if block.language == "python" else shell(block.code)
    if block.printed is not None:
        checker = doctest.OutputChecker()
        assert checker.check_output(block.printed, printed, _SAID), printed


def python(code: str, names: dict[str, Any]) -> str:
    """What Python prints; names last until the end of the page."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "page", "exec"), names)
    return printed.getvalue()


def shell(code: str) -> str:
    """What the last command prints."""
    return [command(line) for line in lines(code)][-1]


def lines(code: str) -> Iterator[str]:
    """Commands, continued lines in one, without prompts and comments."""
    for line in code.replace("\\\n", " ").splitlines():
        bare = re.sub(r"(^|\s+)#.*$", "", line.removeprefix("$ ")).strip()
        if bare:
            yield bare


def command(line: str) -> str:
    """What a command prints; one of pip's or make's is looked up, a service is not started."""
    first, *words = shlex.split(line)
    if "|" in words:
        source, _, line = line.partition("|")
        given = subprocess.run(source, shell=True, check=True, capture_output=True).stdout
        return freight(shlex.split(line)[1:], given)
    if (first, words[0]) == ("freight", "serve"):
        typer.main.get_command(app).commands["serve"].make_context("serve", words[1:])  # type: ignore[attr-defined]
        return ""
    if first == "freight":
        return freight(words)
    if first == "pip":
        assert extras(line) <= set(project()["optional-dependencies"]), line
        return ""
    assert first == "make", f"'{line}' is not run; say why above it, as <!-- not run: ... -->"
    assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    return ""


def freight(words: list[str], given: bytes | None = None) -> str:
    """What one of our commands prints, which has to end well."""
    done = CliRunner().invoke(app, words, input=given, catch_exceptions=False)
    assert done.exit_code == 0, f"freight {' '.join(words)}\n{done.output}"
    return done.stdout


def extras(line: str) -> set[str]:
    """What stands in brackets behind our name, or behind the dot that means this folder."""
    match = re.search(r"(?:freight|\.)\[([\w,]+)\]", line)
    return set(match[1].split(",")) if match else set()


def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table
