"""Patterns in the navigation: each stands for the pages that no other entry names."""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Fill in what the patterns of `nav` stand for, once all pages are known."""
    there = sorted(file.src_uri for file in files.documentation_pages())
    named = {name for name in _named(config.nav) if "*" not in name}
    config.nav = _filled(config.nav, [page for page in there if page not in named])
    return files


def on_page_context(context: dict[str, Any], page: Page, **_: Any) -> dict[str, Any]:
    """Long tables ask for the width of the whole page."""
    if page.file.src_uri == "reproduction.md":
        page.meta.setdefault("hide", []).append("toc")
    return context


def _named(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [name for one in inner for name in _named(one)]


def _filled(entry: Any, free: list[str]) -> Any:
    if isinstance(entry, dict):
        return {title: _filled(inner, free) for title, inner in entry.items()}
    if not isinstance(entry, list):
        return entry
    found: list[Any] = []
    for one in entry:
        matched = isinstance(one, str) and "*" in one
        found += _matching(one, free) if matched else [_filled(one, free)]
    return found


def _matching(pattern: str, free: list[str]) -> list[str]:
    """Pages of the pattern's own folder, not of those below it."""
    depth = len(PurePosixPath(pattern).parts)
    return [
        page
        for page in free
        if fnmatchcase(page, pattern) and len(PurePosixPath(page).parts) == depth
    ]
