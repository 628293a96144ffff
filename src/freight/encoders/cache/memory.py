"""Any encoder, remembering in memory: for texts that are scored again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from freight.core.types import Cloud, Progress
from freight.encoders.cache.entries import Known
from freight.encoders.cache.wrapper import Wrapped, encode_through

if TYPE_CHECKING:
    from freight.encoders.cache.store import Look, Text


LIMIT = 4 * 2**30


class Memory:
    """The entries of texts, and the bytes that they take; those that came first make room."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._texts: dict[bytes, dict[bytes, bytes]] = {}

    def read(self, work: Callable[[Look], Known]) -> Known:
        """What `work` makes of what there is."""
        return work(self._look)

    def write(self, texts: Iterable[Text]) -> None:
        """Keep these, and what was kept of them before."""
        for key, new in texts:
            entries = {**self._forget(key), **new}
            self._size += sum(map(len, entries.values()))
            self._texts[key] = entries
            while self._size > self._limit and len(self._texts) > 1:
                self._forget(next(iter(self._texts)))

    def _forget(self, key: bytes) -> dict[bytes, bytes]:
        entries = self._texts.pop(key, {})
        self._size -= sum(map(len, entries.values()))
        return entries

    def _look(self, key: bytes, name: bytes) -> memoryview | None:
        entry = self._texts.get(key, {}).get(name)
        return None if entry is None else memoryview(entry)


@dataclass(frozen=True)
class Remembered(Wrapped):
    """An encoder, and the bytes of clouds that it may keep; a copy elsewhere starts with none."""

    limit: int = field(default=LIMIT, compare=False)
    _memory: Memory = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memory", Memory(self.limit))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self.limit)

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        """What the encoder gives, who is asked once for all texts and layers that are not known."""
        return encode_through(self._memory, self.inner, _keys, texts, layers, progress)


def _keys(texts: Sequence[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogatepass") for text in texts]
