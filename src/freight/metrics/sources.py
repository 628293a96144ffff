"""What the contextual metrics share: how encoders, layers, units and masses are named."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from freight.core import pooling, units
from freight.core.idf import Idf
from freight.core.pooling import Standardised
from freight.core.types import Encoder
from freight.core.units import Tagged
from freight.core.weightings import MASSES, Barycenter, Mass, Sentences, Weighting
from freight.encoders import DISTILLED, EMBEDDED, best_layer, encoder, is_static
from freight.errors import InvalidInput

Layer = int | str | Sequence[int] | None
Chosen = str | Encoder

UNITS: dict[str, tuple[units.Units, units.Units]] = {
    "tokens": (units.tokens, units.all_tokens),
    "words": (units.words, units.all_words),
}
"""By name: without the special tokens, and with them."""

JOINS = {"mean": pooling.mean, "unit-mean": pooling.unit_mean, "power-means": pooling.power_means}
BARYCENTER = "barycenter"
STANDARDISED = "standardised"


class TextSource(NamedTuple):
    """What a metric takes from a text: the encoder, the layers, the units and their masses."""

    encoder: Encoder
    layers: tuple[int, ...]
    units: units.Units
    weighting: Weighting
    ref_weighting: Weighting | None


def source(
    chosen: Chosen = EMBEDDED,
    layer: Layer = None,
    unit: str = "tokens",
    join: str = "mean",
    mass: str = "uniform",
    idf: str | None = None,
    *,
    special: bool = False,
    weighed: bool = False,
    one_added: bool = False,
) -> TextSource:
    """Read the names that a user gives; special tokens are absent, present, or even weighed."""
    found = encoder(chosen)
    among("unit", unit, UNITS)
    among("join", join, [*JOINS, BARYCENTER, STANDARDISED])
    among("mass", mass, MASSES)
    if idf is not None:
        among("idf", idf, ("ref", "own"))
    layers = hidden_states(found, layer)
    joined = Standardised(found, layers) if join == STANDARDISED else JOINS.get(join, pooling.mean)
    learnt = None if idf is None else Idf(one_added=one_added)
    masses = Mass(learnt, mass, weighed, joined)
    weighting = Barycenter(masses) if join == BARYCENTER else masses
    own = weighting if idf == "own" else None
    return TextSource(found, layers, UNITS[unit][special], weighting, own)


def word_source(
    chosen: Chosen = DISTILLED,
    layer: Layer = None,
    lang: str | None = None,
    mass: str = "uniform",
    idf: str | None = None,
    which: units.Units = units.words,
    join: str = "mean",
    sentences: bool = False,
) -> TextSource:
    """The same for words; `lang` says how texts become words where vectors are static."""
    options = {"lang": lang, "sentences": sentences} if is_static(chosen) else {}
    found = encoder(chosen, **options)
    taken = source(found, layer, mass=mass, idf=idf, join=join)
    return taken._replace(units=which)


def tagged(
    found: TextSource, pipeline: str | None, by: Literal["pos", "dep"] = "pos", share: float = 0.1
) -> TextSource:
    """The same, a share of every cosine being that of tags, where a spaCy pipeline is named."""
    among("tag", by, ("pos", "dep"))
    if pipeline is None:
        return found
    if getattr(found.weighting, "join", None) not in (pooling.mean, pooling.unit_mean):
        raise InvalidInput("tags are for join='mean' and 'unit-mean'")
    return found._replace(units=Tagged(found.units, pipeline, share, by))


def by_sentence(found: TextSource) -> TextSource:
    """The same, the units of a text being gathered into its sentences."""
    both = [
        Sentences(one) if isinstance(one, Mass) else None
        for one in (found.weighting, found.ref_weighting)
    ]
    if both[0] is None:
        raise InvalidInput("join='barycenter' leaves no words to gather into sentences")
    return found._replace(weighting=both[0], ref_weighting=both[1])


def hidden_states(found: Encoder, layer: Layer) -> tuple[int, ...]:
    """The hidden states that are meant: 4, -1, [2, 4], "-5:" (the last five), "all" (from 1 on).

    0 is the embeddings, and a negative number counts from the end; none means the best one known.
    """
    every = range(found.depth + 1)
    if layer is None:
        return (best_layer(found),)
    if isinstance(layer, str) and not layer.lstrip("-").isdigit():
        return _sliced(layer, every)
    several = [int(layer)] if isinstance(layer, (int, str)) else list(layer)
    for one in several:
        if not isinstance(one, int) or not -len(every) <= one < len(every):
            raise InvalidInput(f"layer {one} is out of range; the encoder has 0..{found.depth}")
    if not several:
        raise InvalidInput("layer is an empty list; give at least one")
    return tuple(every[one] for one in several)


def _sliced(layer: str, every: range) -> tuple[int, ...]:
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


def among(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse a value that is none of those there are."""
    there = list(known)
    if value not in there:
        raise InvalidInput(f"{name}={value!r}; there is {', '.join(there)}")


def by_language(lang: str | None, english: float, chinese: float, other: float) -> float:
    """A paper's setting for a target language; English where none is given."""
    return {None: english, "en": english, "zh": chinese}.get(lang, other)
