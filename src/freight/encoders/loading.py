"""Parts of an encoder that are loaded when they are first needed, whichever thread needs them."""

from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class loaded_once(cached_property[T]):
    """A cached property that one thread computes while the others wait for it.

    `functools.cached_property` lets each of them compute its own from Python 3.12 on.
    """

    def __init__(self, load: Any) -> None:
        super().__init__(load)
        self._loading = RLock()

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value, computed on first use."""
        with self._loading:
            return super().__get__(instance, owner)
