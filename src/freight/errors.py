"""What can go wrong, said so that the reader knows what to change.

For code from outside the package a message names its file and line, which are found here too.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any


class FreightError(Exception):
    """Anything a caller can mend: bad input, a missing part, a problem without an answer."""


class InvalidInput(FreightError, ValueError):
    """An argument that cannot be used; the message names it and says what would do."""


class NotConverged(FreightError):
    """A solver stopped before its tolerance; the message says which problems, and how far off."""


class UnknownVocabulary(UserWarning):
    """Much of the texts is unknown to the encoder, so that scores say little of them."""


class UnreadLanguage(UnknownVocabulary):
    """The references are in a language that the encoder was not trained on."""


class UntunedLayer(UserWarning):
    """Nobody has measured which layer of the encoder suits: two thirds of its depth is a guess."""


class MissingPart(FreightError, ImportError):
    """Something that is installed or fetched apart is not here; the message says how to get it."""

    @classmethod
    def extra(cls, package: str, extra: str) -> "MissingPart":
        """The message for a package that one of our extras brings."""
        return cls(f"{package} is not installed; run  pip install 'freight[{extra}]'")


FILE_PREFIX = "freight.metrics.extensions.file_"
"""How the names of modules begin that a user's files are loaded as."""
DIGEST = "__freight_digest__"
"""Where a module from outside the package keeps the digest of its file, and the spec it is of."""


def source_digest(value: Any) -> str:
    """A digest of the file in which a function, or the class of an object, was written.

    Empty for the package's own and for built-in ones. A notebook's has a digest of itself alone.
    """
    module = _outside_module(value)
    if module is None:
        return ""
    spec, digest = getattr(module, DIGEST, (None, ""))
    if digest and spec is module.__spec__:  # a module that is loaded again has a new one
        return str(digest)
    file = getattr(module, "__file__", None)
    content = b""
    with suppress(OSError, TypeError):
        named = value if hasattr(value, "__qualname__") else type(value)
        content = Path(file).read_bytes() if file else inspect.getsource(named).encode()
    digest = hashlib.sha256(content).hexdigest() if content else ""
    if file:
        setattr(module, DIGEST, (module.__spec__, digest))
    return digest


def written_at(value: Any) -> str:
    """The file and line of a function, or of an object's `__call__`, and a colon, for messages.

    Empty for the package's own and for built-in ones.
    """
    function = value.func if isinstance(value, partial) else value
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004
    code = getattr(inspect.unwrap(function) if function else None, "__code__", None)
    if code is None or _outside_module(value) is None:
        return ""
    return f"{short_path(code.co_filename)}, line {code.co_firstlineno}: "


def call_part(what: str, part: Callable[..., Any], *arguments: Any, returns: type) -> Any:
    """What a part makes of these; it is refused if it cannot be called so, or returns another type.

    `what` says what part it is, as in "the cost of lazy-emd".
    """
    try:
        made = part(*arguments)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # from inside it
        place = written_at(part)
        raise InvalidInput(f"{place}{what} cannot be called as it is: {error}") from error
    if not isinstance(made, returns):
        kind = "None" if made is None else f"a {type(made).__name__}"
        raise InvalidInput(
            f"{written_at(part)}{what} returned {kind}; it has to return a {returns.__name__}"
        )
    return made


def short_path(file: str) -> str:
    """A path as short as it can be written from here."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _outside_module(value: Any) -> ModuleType | None:
    """The module of a function, or of an object's class, where it is not of this package."""
    one = value.func if isinstance(value, partial) else value
    name = one.__module__ if hasattr(one, "__qualname__") else type(one).__module__
    module = sys.modules.get(name or "builtins")
    if module is None or module.__name__.startswith(FILE_PREFIX):
        return module
    return None if module.__name__.partition(".")[0] in ("freight", "builtins") else module
