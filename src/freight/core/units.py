"""Which units of a cloud a metric moves."""

from __future__ import annotations

import math
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from types import FunctionType
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch

from freight.core.types import Cloud, Kind, Spans, UnitSpans, mixed_ids
from freight.encoders.tokenizer import replace_surrogates
from freight.encoders.words import sentence_starts
from freight.errors import InvalidInput, MissingPart
from freight.transport.types import Array

Units = Callable[[Cloud], Cloud]
_PUNCTUATION = set(string.punctuation)


@runtime_checkable
class NamesUnits(Protocol):
    """An optional ability of units and weightings: to say what the units are called."""

    @property
    def plural(self) -> str:
        """The name in the plural, as in "words"."""
        ...


def unit_name(*parts: Any) -> str:
    """What units are called, by the first of these units and weightings that says it."""
    for part in parts:
        if isinstance(part, NamesUnits):
            return part.plural
        if isinstance(part, FunctionType) and part in _PLURALS:
            return _PLURALS[part]
    return "units"


def tokens(cloud: Cloud) -> Cloud:
    """The encoder's units, sub-words or words, that have a vector; special ones are absent.

    So is white space, which some tokenizers make a unit of.
    """
    return cloud.only(~cloud.having(Kind.SPECIAL | Kind.ABSENT | Kind.BLANK))


def all_tokens(cloud: Cloud) -> Cloud:
    """The encoder's units that have a vector, and special ones."""
    return cloud.only(~cloud.having(Kind.ABSENT))


def words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens; special tokens are absent."""
    return all_words(tokens(cloud))


def all_words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens, and special tokens."""
    there = all_tokens(cloud)
    continued = there.having(Kind.CONTINUATION)
    return there.merged(np.cumsum(~continued)) if continued.any() else there


def whole_words(cloud: Cloud) -> Cloud:
    """Words, each the mean of its sub-word tokens, those without a vector included."""
    there = cloud.only(~cloud.having(Kind.SPECIAL))
    continued = there.having(Kind.CONTINUATION)
    return there.merged(np.cumsum(~continued)) if continued.any() else there


def heads(cloud: Cloud) -> Cloud:
    """The first sub-word of each word, without the punctuation of ASCII, and special tokens."""
    marks = cloud.having(Kind.PUNCTUATION) & ~cloud.having(Kind.TYPOGRAPHIC)
    return cloud.only(~(marks | cloud.having(Kind.CONTINUATION | Kind.ABSENT)))


def sentences(cloud: Cloud) -> Cloud:
    """Sentences, each the mean of its words; they end at a full stop and white space."""
    there = words(cloud)
    return there.merged(sentence_of(there))


def sentence_of(cloud: Cloud) -> Array:
    """The sentence that each unit stands in, counted through all texts from 1 on."""
    group = np.zeros(len(cloud.ids), np.int64)
    for text, first, last in zip(cloud.texts, cloud.offsets, cloud.offsets[1:], strict=False):
        starts = sentence_starts(text)
        group[first:last] = np.searchsorted(starts, cloud.start[first:last], "right")
    begins = np.isin(np.arange(len(group)), cloud.offsets)
    counted: Array = np.cumsum(begins | (np.diff(group, prepend=-1) != 0))
    return counted


def sentences_and_words(cloud: Cloud) -> Cloud:
    """Both, the sentences of each text first."""
    return _interleaved(sentences(cloud), words(cloud))


@dataclass(frozen=True)
class Ngrams:
    """Words in a row, their vectors concatenated; a text shorter than n repeats its last word."""

    n: int
    of: Units = words

    @property
    def plural(self) -> str:
        """What such units are called."""
        return {1: "unigrams", 2: "bigrams"}.get(self.n, f"{self.n}-grams")

    def __call__(self, cloud: Cloud) -> Cloud:
        """All n-grams of each text, at a stride of one."""
        literal = self.of(cloud)
        there = literal.spelled()  # n-grams are compared with centroids too, even single words
        if self.n == 1:
            return replace(there, kind=literal.kind)
        sizes = np.diff(there.offsets)
        counts = np.where(sizes > 0, np.maximum(sizes - self.n + 1, 1), 0)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        owner = np.repeat(np.arange(len(counts)), counts)
        first = np.arange(offsets[-1]) - offsets[owner] + there.offsets[owner]
        last = there.offsets[owner + 1] - 1
        member = np.minimum(first[:, None] + np.arange(self.n), last[:, None])
        rows = there.layers[torch.as_tensor(member, device=there.layers.device)]
        place = np.broadcast_to(np.arange(self.n), member.shape)
        mixed = mixed_ids(there.ids[member], place).sum(axis=1, dtype=np.uint64)
        return replace(
            there,
            layers=rows.transpose(1, 2).flatten(2),
            offsets=offsets,
            ids=(mixed >> np.uint64(2)).astype(np.int64),
            places=there.places.merged(member[:, 0], member[:, -1]),
            kind=np.bitwise_and.reduce(there.kind[member], axis=1) & ~np.uint8(Kind.LITERAL),
            merged_from=None,
        )


@dataclass(frozen=True)
class WithoutPunctuation:
    """Units of a text whose punctuation marks are dropped; emoji are none."""

    units: Units

    @property
    def plural(self) -> str:
        """What such units are called."""
        return unit_name(self.units)

    def __call__(self, cloud: Cloud) -> Cloud:
        """The units that remain."""
        marks = np.flatnonzero(cloud.having(Kind.PUNCTUATION))
        spans = zip(cloud.owner[marks], cloud.start[marks], cloud.end[marks], strict=True)
        kept = np.ones(len(cloud.ids), bool)
        kept[marks] = [not all(map(_is_mark, cloud.texts[k][a:b])) for k, a, b in spans]
        return self.units(cloud.only(kept))


def _is_mark(character: str) -> bool:
    return character in _PUNCTUATION or unicodedata.category(character)[0] == "P"


@dataclass(frozen=True)
class Without:
    """Words that are none of these, upper and lower case alike."""

    stop_words: frozenset[str]
    plural: ClassVar[str] = "words"

    @property
    def identity(self) -> str:
        """How many there are."""
        return f"words without {len(self.stop_words)} stop words"

    def __call__(self, cloud: Cloud) -> Cloud:
        """The other words."""
        there = words(cloud)
        spans = zip(there.owner.tolist(), there.start.tolist(), there.end.tolist(), strict=True)
        kept = [there.texts[k][a:b].lower() not in self.stop_words for k, a, b in spans]
        return there.only(np.array(kept, bool))


def _interleaved(one: Cloud, other: Cloud) -> Cloud:
    """The units of two clouds of the same texts, those of the one first in every text."""
    order = np.argsort(np.concatenate((one.owner, other.owner)), kind="stable")
    where = torch.as_tensor(order, device=one.layers.device)
    both: dict[str, Any] = {
        n: np.concatenate((getattr(one, n), getattr(other, n)))[order] for n in ("ids", "kind")
    }
    spans = zip(one.places.spans, other.places.spans, strict=True)
    mixed = Spans(*(np.concatenate(pair)[order] for pair in spans))
    return replace(
        one,
        layers=torch.cat((one.layers, other.layers))[where],
        offsets=one.offsets + other.offsets,
        places=UnitSpans(lambda: mixed),
        merged_from=np.concatenate((one.count, other.count))[order],
        **both,
    )


_PLURALS: dict[Units, str] = {
    tokens: "tokens",
    all_tokens: "tokens",
    words: "words",
    all_words: "words",
    whole_words: "words",
    heads: "words",
    sentences: "sentences",
    sentences_and_words: "sentences and words",
}


PARTS_OF_SPEECH = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SPACE", "SYM", "VERB", "X",
)  # fmt: skip


@dataclass(frozen=True)
class Tagged:
    """Units whose vectors also contain their part of speech, or their dependency label.

    `share` of every cosine becomes 1 for the same tag and 0 for another; the rest
    is unchanged, and so is the length of every vector. To have no tag is a tag too. With `apart`
    the same word under two tags is two different units.
    """

    units: Units
    pipeline: str
    share: float
    by: Literal["pos", "dep"] = "pos"
    apart: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise InvalidInput(f"tag_share={self.share!r}; give the share of tags, from 0 to 1")

    @property
    def plural(self) -> str:
        """What such units are called."""
        return unit_name(self.units)

    def __call__(self, cloud: Cloud) -> Cloud:
        """The units, a place for every tag behind their dimensions."""
        there = self.units(cloud)
        one_hot = self._tags(there)
        tags = torch.as_tensor(one_hot, device=there.layers.device)
        length = there.layers.norm(dim=-1, keepdim=True)
        spoken = tags[:, None, :].to(there.layers.dtype) * length * math.sqrt(self.share)
        kept = there.layers * math.sqrt(1.0 - self.share)
        ids = _tagged_ids(there.ids, one_hot.argmax(axis=1)) if self.apart else there.ids
        return replace(there, layers=torch.cat((kept, spoken), dim=-1), ids=ids)

    def _tags(self, cloud: Cloud) -> Array:
        """1 in the place of each unit's tag (unit, tag); a unit takes that of its first word."""
        spacy = loaded(self.pipeline)
        labels = _labels(spacy, self.by, self.pipeline)
        place = {label: k for k, label in enumerate(labels)}
        one_hot = np.zeros((len(cloud.ids), len(labels) + 1), np.float32)
        spans = zip(cloud.offsets[:-1], cloud.offsets[1:], strict=True)
        with _TAGGING:
            tagged = list(spacy.pipe(map(replace_surrogates, cloud.texts)))
        for (first, last), text in zip(spans, tagged, strict=True):
            if first == last:
                continue
            starts = [word.idx for word in text]
            tags = [place.get(getattr(word, f"{self.by}_"), len(labels)) for word in text]
            word = np.searchsorted(starts, cloud.start[first:last], "right") - 1
            one_hot[np.arange(first, last), np.array(tags)[word]] = 1.0
        return one_hot


def _tagged_ids(ids: Array, tag: Array) -> Array:
    """Ids that differ where words or tags do."""
    both: Array = (ids << 8 | tag) & (2**62 - 1)
    return both


_TAGGING = Lock()
"""Held while a pipeline runs: its vocabulary is one for all threads."""


@lru_cache(maxsize=4)
def loaded(pipeline: str) -> Any:
    """A spaCy pipeline by its package's name or its folder."""
    try:
        import spacy
    except ImportError:
        raise MissingPart.extra("spacy", "spacy") from None
    try:
        return spacy.load(pipeline)
    except OSError as error:
        raise InvalidInput(
            f"spaCy knows no pipeline {pipeline!r}; install its package, as in"
            " python -m spacy download en_core_web_sm, or give a folder"
        ) from error


def _labels(spacy: Any, by: str, pipeline: str) -> tuple[str, ...]:
    if by == "pos":
        return PARTS_OF_SPEECH
    labels = tuple(sorted(spacy.pipe_labels.get("parser", ())))
    if not labels:
        raise InvalidInput(f"the pipeline {pipeline!r} has no parser; set tag='pos'")
    return labels
