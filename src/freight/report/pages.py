"""Pages, rendered from templates.

A page is one file with style, script and pictures inside; all text is escaped. Its content security
policy lets the browser run our script alone and fetch nothing, whatever a text contains.
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

from freight.data.output import check_path, write_whole
from freight.errors import InvalidInput, MissingPart


def render(template: str, **content: Any) -> str:
    """Fill one of the package's templates."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingPart.extra("jinja2", "report") from error
    script = template_source("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment().get_template(template)
    style = template_source("page.css")
    return page.render(script=script, script_digest=digest, style=style, **content)


def template_source(name: str) -> str:
    """The text of one of the package's templates, style sheets or scripts."""
    return resources.files("freight.report").joinpath("templates", name).read_text("utf-8")


@cache
def _environment() -> Any:
    """Templates are compiled once."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(template_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def check_page(path: Path) -> None:
    """Refuse a path that no page can be written to, and say which package is missing for pages."""
    if path.suffix not in (".html", ".htm"):
        raise InvalidInput(f"{path} does not end in .html")
    check_path(path)
    for package in ("jinja2", "matplotlib"):
        if sys.modules.get(package, package) is None or find_spec(package) is None:
            raise MissingPart.extra(package, "report")


def write_page(page: str, path: Path) -> None:
    """Write a page; a lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    check_page(path)
    write_whole(path, page.encode("utf-8", "replace"))
