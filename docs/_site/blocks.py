"""Indented code gets the colours of its language, and copying a block copies its code alone."""

import re
from html import escape, unescape
from typing import Any

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*([-*+]|\d+\.) ")
_KINDS = {
    "pycon": re.compile(r">>> "),
    "console": re.compile(r"\$ "),
    "sh": re.compile(r"(#!/bin/bash|([A-Z_]+=\S+ )?(curl|freight|make|pip|python|zcat) )"),
    "python": re.compile(r"(import|from) \w+"),
    "yaml": re.compile(r"apiVersion:"),
    "json": re.compile(r'\{"'),
    "nginx": re.compile(r"location /"),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn blocks that are indented by four into fenced ones that say what they are in."""
    lines, found, start = markdown.split("\n"), [], 0
    fenced = listed = False
    while start < len(lines):
        line = lines[start]
        fenced ^= bool(_FENCE.match(line))
        if line and not line.startswith(" "):
            listed = bool(_ITEM.match(line)) or (listed and bool(lines[start - 1].strip()))
        starts = start == 0 or not lines[start - 1].strip()
        if line.startswith("    ") and starts and not fenced and not listed:
            block = _block(lines, start)
            found += [f"```{language(block[0])}", *block, "```"]
            start += len(block)
        else:
            found.append(line)
            start += 1
    return "\n".join(found)


_SESSION = re.compile(
    r'<div class="highlight">(<pre><span></span><code>(<span class="gp">.*?)</code>)', re.DOTALL
)
_PROMPT = re.compile(r"(>>>|\.\.\.|\$)( |$)")


def on_page_content(html: str, **_: Any) -> str:
    """Give the theme what to copy of a session: what is typed, neither prompts nor output."""

    def with_code(block: re.Match[str]) -> str:
        shown = unescape(re.sub(r"<[^>]*>", "", block[2]))
        code = escape(typed(shown), quote=True).replace("\n", "&#10;")
        return f'<div class="highlight" data-copy="{code}">{block[1]}'

    return _SESSION.sub(with_code, html)


def typed(session: str) -> str:
    """What was typed in a session, without prompts; a blank line ends what goes on for several."""
    code: list[str] = []
    inside = False
    for line in session.split("\n"):
        if prompt := _PROMPT.match(line):
            if inside and prompt[1] != "..." and code[-1]:
                code.append("")
            inside = prompt[1] == "..."
            code.append(line[prompt.end() :])
    return "\n".join(code)


def language(line: str) -> str:
    """What a block is written in, by its first line."""
    return next((kind for kind, shape in _KINDS.items() if shape.match(line)), "text")


def _block(lines: list[str], start: int) -> list[str]:
    """The indented lines from here on, blank ones between them included, without the indent."""
    end = start
    while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    return [line[4:] for line in lines[start:end]]
