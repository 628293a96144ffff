"""The reference of the command line, out of what the commands say of themselves."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main
from mkdocs.structure.pages import Page

from freight.cli import app

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put the commands in the place of the mark, where a page has one."""
    return markdown.replace(MARK, commands()) if MARK in markdown else markdown


def commands() -> str:
    """Every command with its help, its arguments and its options."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("freight", [], resilient_parsing=True)
    return "\n\n".join(_group(group, context, "freight"))


def _group(group: Any, context: Any, name: str) -> Iterator[str]:
    for word, command in group.commands.items():
        inner = command.make_context(word, [], parent=context, resilient_parsing=True)
        if hasattr(command, "commands"):
            yield from _group(command, inner, f"{name} {word}")
        else:
            yield from _command(command, inner, f"{name} {word}")


def _command(command: Any, context: Any, name: str) -> Iterator[str]:
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield f"## {name}\n\n{command.help}\n\n```sh\n{' '.join(usage.split())}\n```"
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{_cell(left)}` | {_cell(right)} |" for left, right in filter(None, records)]
    if rows:
        yield "\n".join(("| argument or option | |", "| --- | --- |", *rows))


def _cell(text: str) -> str:
    """In one line, without the types of Python."""
    return re.sub(r" <[\w\[\]]+>", "", " ".join(text.split())).replace("|", "\\|")
