"""The size and the vocabulary of the package: limits that keep it easy to read."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import freight

PACKAGE = Path(freight.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = 150
ROOT_MODULES = 6
LINES = 450
# The words of the field that stand for these are in the glossary of the contributors' guide.
FORBIDDEN = re.compile(r"blur(red|s)?|dear(er|est)?|priced|tick|heaps?|learnt", re.IGNORECASE)
UNPRINTED = re.compile(rf"\b({FORBIDDEN.pattern}|barycentres?|house metric)\b", re.IGNORECASE)


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax tree of every module, by its path below the package."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text("utf-8")) for path in paths}


def test_the_package_stays_small() -> None:
    assert len(modules()) <= MODULES
    assert len([name for name in modules() if "/" not in name]) <= ROOT_MODULES


def test_no_module_is_too_long_to_read() -> None:
    sizes = {name: len((PACKAGE / name).read_text("utf-8").splitlines()) for name in modules()}
    assert {name: size for name, size in sizes.items() if size > LINES} == {}


def test_a_class_name_means_one_thing() -> None:
    nodes = [node for tree in modules().values() for node in ast.walk(tree)]
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_nothing_public_has_the_name_of_a_module_beside_it() -> None:
    """Importing `freight.x` would replace a function `freight.x` by the module."""
    clashes = {}
    for name in modules():
        folder = (PACKAGE / name).parent
        if name.endswith("__init__.py"):
            beside = {p.stem for p in folder.iterdir() if p.suffix == ".py" or _is_package(p)}
            clashes[name] = beside & set(exported(folder))
    assert {name: names for name, names in clashes.items() if names} == {}


def exported(folder: Path) -> Iterator[str]:
    """What a package defines, imports or lists as its own in `__init__`."""
    if folder == PACKAGE:
        yield from freight.__all__
        return
    for node in modules()[str((folder / "__init__.py").relative_to(PACKAGE))].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from (name.id for name in node.targets if isinstance(name, ast.Name))


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").exists()


def test_the_words_are_those_of_the_field() -> None:
    names, prose = {}, {}
    for name, tree in modules().items():
        given = {word for one in given_names(tree) for word in one.lower().split("_")}
        names[name] = {word for word in given if FORBIDDEN.fullmatch(word)}
        text = " ".join((*docstrings(tree), *comments(PACKAGE / name)))
        words = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
        prose[name] = {word for word in words if FORBIDDEN.fullmatch(word)}
    assert {name: words for name, words in names.items() if words} == {}
    assert {name: words for name, words in prose.items() if words} == {}


def test_what_is_printed_is_in_the_words_of_the_field() -> None:
    """Messages, help texts, templates and pages; code in pages may name what had such a name."""
    texts = {name: "\n".join(strings(tree)) for name, tree in modules().items()}
    for path in PACKAGE.rglob("*.html"):
        texts[str(path.relative_to(PACKAGE))] = path.read_text("utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        texts[str(path.relative_to(ROOT))] = re.sub(r"`[^`]*`", "", path.read_text("utf-8"))
    matches = {name: [match[0] for match in UNPRINTED.finditer(t)] for name, t in texts.items()}
    assert {name: words for name, words in matches.items() if words} == {}


def strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def given_names(tree: ast.Module) -> Iterator[str]:
    """Every name that a module gives: to classes, functions, arguments, variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def docstrings(tree: ast.Module) -> Iterator[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""


def comments(path: Path) -> Iterator[str]:
    lines = io.StringIO(path.read_text("utf-8")).readline
    for token in tokenize.generate_tokens(lines):
        if token.type == tokenize.COMMENT:
            yield token.string
