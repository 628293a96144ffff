"""What factories build metrics from: the parts of the core, and sources of units by name.

A factory imports this module when it is called, so that the metrics can be listed, with their
parameters and columns, without torch. `source` turns the names that a user gives (an encoder, a
layer, a unit, a mass) into the parts of the core that they stand for.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from freight.core import costs, readouts, units, weightings
from freight.core.idf import Idf
from freight.core.joint_vocabulary import Joint
from freight.core.metric import Blend, Metric
from freight.core.result import Column
from freight.core.types import Encoder, name_of
from freight.core.units import Ngrams, Tagged
from freight.core.weightings import Barycenter, Mass, Sentences, Standardised, Weighting, Windows
from freight.encoders import best_layer, encoder, has_tuned_layer, is_static
from freight.errors import InvalidInput, UntunedLayer
from freight.metrics.parameter_types import LayerChoice
from freight.transport.types import Problem

__all__ = [
    "Blend",
    "Column",
    "Joint",
    "Mass",
    "Metric",
    "Ngrams",
    "Problem",
    "TextSource",
    "Windows",
    "add_tags",
    "costs",
    "drop_marks",
    "encoder",
    "gather_sentences",
    "hidden_states",
    "readouts",
    "source",
    "units",
    "word_source",
]

UNITS: Mapping[str, tuple[units.Units, units.Units]] = {
    "tokens": (units.tokens, units.all_tokens),
    "words": (units.words, units.all_words),
}
"""By name: without special tokens, and with them."""

POOLINGS = {
    "mean": weightings.mean,
    "unit-mean": weightings.unit_mean,
    "power-means": weightings.power_means,
}
"""Poolings that are functions of the layers alone."""


@dataclass(frozen=True)
class TextSource:
    """What a metric takes from a text: the encoder, the layers, the units and their masses."""

    encoder: Encoder
    layers: tuple[int, ...]
    units: units.Units
    weighting: Weighting
    ref_weighting: Weighting | None = None

    def fields(self) -> dict[str, Any]:
        """The same as keyword arguments of `Metric`."""
        return dict(vars(self))


def source(
    encoder_name: str | Encoder,
    layer: LayerChoice = None,
    unit: str = "tokens",
    pooling_name: str = "mean",
    mass: str = "uniform",
    idf: str | None = None,
    *,
    special: bool = False,
    weigh_special: bool = False,
    one_added: bool = False,
    punctuation: bool = True,
) -> TextSource:
    """A source of units by the names of its parts.

    `special` keeps special tokens, which then can be matched but have no mass unless
    `weigh_special` gives them some. `one_added` adds one inside the logarithm of IDF. Without
    `punctuation` its marks are dropped.
    """
    chosen = encoder(encoder_name)
    layers = hidden_states(chosen, layer)
    pool = POOLINGS.get(pooling_name, weightings.mean)
    if pooling_name == "standardised":
        pool = cast(Any, Standardised(chosen, layers))
    masses = Mass(None if idf is None else Idf(one_added=one_added), mass, weigh_special, pool)
    weighting = Barycenter(masses) if pooling_name == "barycenter" else masses
    own = weighting if idf == "own" else None
    which = drop_marks(UNITS[unit][special], punctuation)
    return TextSource(chosen, layers, which, weighting, own)


def word_source(
    encoder_name: str | Encoder,
    layer: LayerChoice = None,
    lang: str | None = None,
    mass: str = "uniform",
    idf: str | None = None,
    which: units.Units = units.words,
    pooling_name: str = "mean",
    sentences: bool = False,
    punctuation: bool = True,
    map_unknown: bool = False,
) -> TextSource:
    """A source of words; `lang` says how texts are split into words where vectors are static.

    With `map_unknown` words that a file of vectors lacks become its word `unk`, if it has that.
    """
    options: dict[str, Any] = {}
    if is_static(encoder_name):
        options = {"lang": lang, "sentences": sentences}
        if map_unknown and str(encoder_name).startswith("static:"):
            options["unknown"] = "auto"
    chosen = encoder(encoder_name, **options)
    words = source(chosen, layer, mass=mass, idf=idf, pooling_name=pooling_name)
    return replace(words, units=drop_marks(which, punctuation))


def drop_marks(which: units.Units, punctuation: bool = False) -> units.Units:
    """The same units without punctuation marks, unless these are wanted."""
    return which if punctuation else units.WithoutPunctuation(which)


def add_tags(
    text: TextSource,
    pipeline: str | None,
    by: Literal["pos", "dep"] = "pos",
    share: float = 0.1,
    *,
    apart: bool = False,
) -> TextSource:
    """The same source, a share of every cosine comparing tags, where a spaCy pipeline is named.

    With `apart` the same word under two tags is two different units.
    """
    if pipeline is None:
        return text
    if not isinstance(text.weighting, Mass) or text.weighting.pooling not in (
        weightings.mean,
        weightings.unit_mean,
    ):
        raise InvalidInput("tags are for pooling='mean' and 'unit-mean'")
    return replace(text, units=Tagged(text.units, pipeline, share, by, apart))


def gather_sentences(text: TextSource) -> TextSource:
    """The same source, the units of a text being gathered into its sentences."""
    both = [
        Sentences(one) if isinstance(one, Mass) else None
        for one in (text.weighting, text.ref_weighting)
    ]
    if both[0] is None:
        raise InvalidInput("pooling='barycenter' leaves no words to gather into sentences")
    return replace(text, weighting=both[0], ref_weighting=both[1])


def hidden_states(chosen: Encoder, layer: LayerChoice) -> tuple[int, ...]:
    """The hidden states that are meant: 4, -1, [2, 4], "-5:" (the last five), "all" (from 1 on).

    0 is the embeddings, and a negative number counts from the end; None is the best one known.
    """
    every = range(chosen.depth + 1)
    if layer is None:
        best = best_layer(chosen)
        return (best,) if has_tuned_layer(chosen) else _warn_of_guess(chosen, best)
    if isinstance(layer, str) and not layer.lstrip("-").isdigit():
        return _slice_layers(layer, every)
    several = [int(layer)] if isinstance(layer, (int, str)) else list(layer)
    for one in several:
        if not isinstance(one, int) or not -len(every) <= one < len(every):
            raise InvalidInput(f"layer {one} is out of range; the encoder has 0..{chosen.depth}")
    if not several:
        raise InvalidInput("layer is an empty list; give at least one")
    return tuple(every[one] for one in several)


class GuessedLayer(tuple[int, ...]):
    """The hidden state at two thirds of the depth, which nobody has tuned; a signature says so."""

    @property
    def identity(self) -> str:
        """The layer, and why."""
        return f"{self[0]} (two thirds of the depth: not tuned)"


def _warn_of_guess(chosen: Encoder, layer: int) -> GuessedLayer:
    warnings.warn(
        f"layer {layer} of {name_of(chosen) or chosen.identity} is two thirds of its depth, not"
        " tuned; set layer=..., or choose one with freight tune",
        UntunedLayer,
        stacklevel=2,
    )
    return GuessedLayer((layer,))


def _slice_layers(layer: str, every: range) -> tuple[int, ...]:
    first, colon, last = ("1", ":", "") if layer == "all" else layer.partition(":")
    try:
        start, stop = (int(bound) if bound else None for bound in (first, last))
        chosen = every[start:stop] if colon else every[:0]
    except ValueError:
        chosen = every[:0]
    if not chosen or (start or 0) < -len(every):
        raise InvalidInput(
            f"layer {layer!r} names no layer of 0..{every[-1]}; give a number, 'all',"
            " or from:to as in '-5:'"
        )
    return tuple(chosen)
