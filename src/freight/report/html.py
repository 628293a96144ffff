"""Pages that are one file: style, script and pictures inside, nothing fetched, all text escaped.

A browser is told to run no script but ours and to fetch nothing at all, whatever a text contains.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from freight.errors import InvalidInput, MissingPart


def render(template: str, **content: Any) -> str:
    """A page out of one of our templates."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingPart.extra("jinja2", "report") from error
    script = source("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template(template)
    return page.render(script=script, script_digest=digest, style=source("page.css"), **content)


def check_page(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix not in (".html", ".htm"):
        raise InvalidInput(f"{path} does not end in .html")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")
    for package in ("jinja2", "matplotlib"):
        if sys.modules.get(package, package) is None or find_spec(package) is None:
            raise MissingPart.extra(package, "report")


def write_page(page: str, path: Path) -> None:
    """Write whole or not at all; half a character, which UTF-8 has no place for, becomes a mark."""
    check_page(path)
    part = path.with_name(path.name + ".part")
    part.write_bytes(page.encode("utf-8", "replace"))
    part.replace(path)


def source(name: str) -> str:
    """One of our templates, style sheets or scripts, as it is."""
    return resources.files("freight.report").joinpath("templates", name).read_text("utf-8")


@cache
def _environment() -> Any:
    """Templates are compiled once."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
