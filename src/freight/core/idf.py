"""Inverse document frequency: document frequencies, fitted once, and the mass they give."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from freight.core.types import Cloud, Measures
from freight.errors import InvalidInput
from freight.transport.types import Array


@dataclass(frozen=True)
class Frequencies:
    """In how many of `documents` texts each id occurs; ids not listed in none."""

    documents: int
    ids: tuple[int, ...]
    counts: tuple[int, ...]
    source: str = "fit"

    @classmethod
    def of(cls, clouds: Iterable[Cloud], source: str = "fit") -> Frequencies:
        """Count the texts, repeats of a text included, that have each id."""
        documents, ids, counts = 0, np.empty(0, np.int64), np.empty(0, np.int64)
        for cloud in clouds:
            documents += len(cloud.texts)
            seen = np.unique(np.stack((cloud.owner, cloud.ids)), axis=1)[1]
            every = np.concatenate((ids, seen))
            once = np.concatenate((counts, np.ones(len(seen), np.int64)))
            ids, place = np.unique(every, return_inverse=True)
            counts = np.bincount(place, once, len(ids)).astype(np.int64)
        return cls(documents, tuple(ids.tolist()), tuple(counts.tolist()), source)

    @cached_property
    def identity(self) -> str:
        """Where it was fitted, the number of texts, and a hash of the counts."""
        digest = hashlib.sha256(repr((self.ids, self.counts)).encode()).hexdigest()
        return f"{self.source}, {self.documents} texts, sha256-{digest[:12]}"

    def __call__(self, ids: Array) -> Array:
        """The document frequency of each of these ids."""
        known, counts = self._arrays
        place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[place] == ids, counts[place], 0)

    @cached_property
    def _arrays(self) -> tuple[Array, Array]:
        return np.array(self.ids or (-1,)), np.array(self.counts or (0,))


@dataclass(frozen=True)
class Idf:
    """Mass by inverse document frequency: log((N + 1) / (df + 1)).

    With `one_added` it is YiSi's log(1 + (N + 1) / (df + 1)).
    """

    table: Frequencies | None = None
    one_added: bool = False

    def __call__(self, ids: Array) -> Array:
        """The mass of each of these ids."""
        if self.table is None:
            raise InvalidInput("IDF is not fitted; call fit with the reference texts first")
        ratio = (self.table.documents + 1) / (self.table(ids) + 1)
        return np.log(1.0 + ratio) if self.one_added else np.log(ratio)


@runtime_checkable
class FittableWeighting(Protocol):
    """A weighting whose masses depend on document frequencies: `idf` is None where they do not."""

    @property
    def idf(self) -> Idf | None:
        """How rarity becomes mass."""
        ...

    def __call__(self, cloud: Cloud) -> Measures:
        """The measures of a cloud."""
        ...

    def fitted(self, table: Frequencies) -> FittableWeighting:
        """The same with these document frequencies."""
        ...
