"""Metrics from outside the package: `path/to/file.py:name`, and installed entry points.

An object that can be named is a factory (a function or class that returns a metric), a `Metric`, or
any scorer: an object with `name`, `columns` and `score`. A file is loaded by its path under a
private module name, a submodule of this module, so that a user's file can never be taken for a
package of the same name, and so that another process which unpickles a metric finds the file again.
A mistake in such a file is reported in one line with the file and the line number.
"""

import difflib
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from freight.errors import DIGEST, FILE_PREFIX, FreightError, InvalidInput, short_path
from freight.metrics.declaration import HIGHER, LOWER, Declaration

GROUP = "freight.metrics"
"""The group of entry points under which packages install metrics."""

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^:]*)(?::(?P<column>[^:]*))?")

__path__: list[str] = []  # lets files be imported as submodules, by the finder below


def is_in_file(name: str) -> bool:
    """Whether a metric is named as FILE.py:NAME, or as a file that lacks a name."""
    return _FILE.fullmatch(name) is not None or name.endswith(".py")


def find_in_file(name: str) -> Declaration[..., Any]:
    """The metric that FILE.py:NAME stands for."""
    in_file = _FILE.fullmatch(name)
    if in_file is None or not in_file["name"]:
        path = name.rstrip(":")
        raise InvalidInput(
            f"{path} is a file; say which metric of it, as in {path}:NAME{_candidates(path)}"
        )
    path, attribute = in_file["path"], in_file["name"]
    module = load_file(path)
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, _public(module), 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"it has {_listed(_public(module))}"
        raise InvalidInput(f"{path} has no {attribute!r}; {hint}")
    return declare_object(getattr(module, attribute), name)


def find_installed(name: str) -> Declaration[..., Any] | None:
    """The metric of this name that an installed package provides, if one does."""
    entry = installed().get(name)
    if entry is None:
        return None
    try:
        provided = entry.load()
    except Exception as error:
        package = entry.dist.name if entry.dist else entry.value
        raise InvalidInput(
            f"the metric {name} of {package} cannot be loaded: {_one_line(error)}"
        ) from error
    return declare_object(provided, name)


def installed() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name; nothing is imported."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def declare_object(value: Any, name: str) -> Declaration[..., Any]:
    """A declaration of what a user names: a declaration, a scorer, or a factory of one."""
    if isinstance(value, Declaration):
        return value
    if not isinstance(value, type) and _is_scorer(value):
        columns = {c.name: HIGHER if c.higher else LOWER for c in value.columns}
        return Declaration(_constant(value), name, columns)
    if callable(value):
        return Declaration(_checked(value, name), name)
    raise InvalidInput(
        f"{name} is {_described(value)}; give a function that returns a metric, a Metric, or an"
        " object with name, columns and score"
    )


def load_file(path: str) -> ModuleType:
    """The module of a file, loaded once as long as its content stays the same."""
    file = Path(path).absolute()
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the file {path} cannot be read: {error.strerror}") from None
    digest, name = sha256(content).hexdigest(), f"{FILE_PREFIX}{str(file).encode().hex()}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, DIGEST, (None, ""))[1] == digest:
        return known
    sys.modules.pop(name, None)
    try:
        module = importlib.import_module(name)
    except FreightError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidInput(blame(error) or f"{path}: {_one_line(error)}") from error
    setattr(module, DIGEST, (module.__spec__, digest))
    return module


def blame(error: BaseException) -> str | None:
    """One line on an error that arose in a user's file, with its line; None for any other."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{short_path(error.filename)}, line {error.lineno}: {_one_line(error)}"
    frames = traceback.walk_tb(error.__traceback__)
    own = [
        (frame.f_code.co_filename, line)
        for frame, line in frames
        if str(frame.f_globals.get("__name__", "")).startswith(FILE_PREFIX)
    ]
    if not own:
        return None
    file, line = own[-1]
    return f"{short_path(file)}, line {line}: {_one_line(error)}"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the submodules of this module, whose names spell the path of a file in hexadecimal."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Where the source of a user's file is."""
        if not fullname.startswith(FILE_PREFIX):
            return None
        file = bytes.fromhex(fullname.removeprefix(FILE_PREFIX)).decode()
        return importlib.util.spec_from_file_location(fullname, file)


def _constant(value: Any) -> Callable[..., Any]:
    """A factory without parameters for a scorer that is built already."""

    def build() -> Any:
        return value

    build.__doc__ = type(value).__doc__
    return build


def _checked(factory: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The factory, with a clear error where it returns something that cannot score."""

    @wraps(factory)
    def build(*args: Any, **kwargs: Any) -> Any:
        scorer = factory(*args, **kwargs)
        if not _is_scorer(scorer):
            raise InvalidInput(
                f"{name} returned {_described(scorer)}; it has to return a Metric, or an object"
                " with name, columns and score"
            )
        return scorer

    return build


def _is_scorer(value: Any) -> bool:
    name, columns = getattr(value, "name", None), getattr(value, "columns", None)
    return (
        isinstance(name, str)
        and isinstance(columns, (tuple, list))
        and bool(columns)
        and all(hasattr(column, "name") and hasattr(column, "higher") for column in columns)
        and callable(getattr(value, "score", None))
    )


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _public(module: ModuleType) -> list[str]:
    """What a file defines that could be a metric."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (_is_scorer(value) or getattr(value, "__module__", None) == module.__name__)
    ]


def _candidates(path: str) -> str:
    if not Path(path).is_file():
        return ""
    return f"; it has {_listed(_public(load_file(path)))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _one_line(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(f"{type(error).__name__}: {text}".split()).rstrip(": ")


if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
    sys.meta_path.append(_Finder())
