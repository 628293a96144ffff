r"""Formulas become MathML while the site is built: browsers draw it without any script.

A block is fenced as ```math, and $`x`$ is a formula in a line: GitHub knows both.
"""

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Teach Markdown both kinds of formulas."""
    config.markdown_extensions.append(Formulas())
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": _block}]
    return config


class Formulas(Extension):  # type: ignore[misc]
    """Formulas in a line of text."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Before code in a line (190), which has the same quotes."""
        md.inlinePatterns.register(_Inline(r"\$`([^`]+)`\$", md), "formula", 195)


class _Inline(InlineProcessor):  # type: ignore[misc]
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element | str, int, int]:
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


def _block(source: str, *_: Any, **__: Any) -> str:
    rows = [convert(row, display="block") for row in source.split("\n\n")]
    return f'<div class="formula">{"".join(rows)}</div>'
