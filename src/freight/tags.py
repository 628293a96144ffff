"""Units that also say what part they play in their sentence, as a spaCy pipeline sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch

from freight.clouds import Cloud
from freight.errors import InvalidInput, MissingPart
from freight.types import Array
from freight.units import Units, plural

PARTS_OF_SPEECH = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SPACE", "SYM", "VERB", "X",
)  # fmt: skip


@dataclass(frozen=True)
class Tagged:
    """Units whose vectors also say their part of speech, or what they depend by on their head.

    `share` of every cosine becomes 1 for the same tag and 0 for another; the rest stays what it
    was, and so does the length of every vector. To have no tag is a tag too.
    """

    units: Units
    pipeline: str
    share: float
    by: Literal["pos", "dep"] = "pos"

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise InvalidInput(f"tag_share={self.share!r}; give the share of tags, from 0 to 1")

    @property
    def plural(self) -> str:
        """What such units are called."""
        return plural(self.units)

    def __call__(self, cloud: Cloud) -> Cloud:
        """The units, a place for every tag behind their dimensions."""
        there = self.units(cloud)
        tags = torch.as_tensor(self._tags(there), device=there.layers.device)
        length = there.layers.norm(dim=-1, keepdim=True)
        spoken = tags[:, None, :].to(there.layers.dtype) * length * math.sqrt(self.share)
        kept = there.layers * math.sqrt(1.0 - self.share)
        return replace(there, layers=torch.cat((kept, spoken), dim=-1))

    def _tags(self, cloud: Cloud) -> Array:
        """1 in the place of each unit's tag (unit, tag); a unit takes that of its first word."""
        spacy = loaded(self.pipeline)
        labels = _labels(spacy, self.by, self.pipeline)
        place = {label: k for k, label in enumerate(labels)}
        found = np.zeros((len(cloud.ids), len(labels) + 1), np.float32)
        spans = zip(cloud.offsets[:-1], cloud.offsets[1:], strict=True)
        for (first, last), text in zip(spans, spacy.pipe(cloud.texts), strict=True):
            if first == last:
                continue
            starts = [word.idx for word in text]
            tags = [place.get(getattr(word, f"{self.by}_"), len(labels)) for word in text]
            word = np.searchsorted(starts, cloud.start[first:last], "right") - 1
            found[np.arange(first, last), np.array(tags)[word]] = 1.0
        return found


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
