"""Encoders by name: a table of what there is, and the module that each is in."""

from dataclasses import fields
from typing import Any

from freight.core.types import Encoder
from freight.encoders.hashed import Hashed
from freight.encoders.loading import EMBEDDED
from freight.encoders.static import DISTILLED, Static
from freight.encoders.transformer import Transformer
from freight.errors import InvalidInput

__all__ = [
    "DISTILLED",
    "EMBEDDED",
    "ENCODERS",
    "best_layer",
    "encoder",
    "is_static",
    "list_encoders",
    "with_cache",
]

ENCODERS = {
    EMBEDDED: "all-MiniLM-L6-v2, installed by the extra `embedded`: works offline (the default)",
    "FOLDER": "any encoder of the transformers library in a folder, safetensors",
    "NAME": "any encoder on the hub, fetched by transformers",
    DISTILLED: "word vectors out of the embedded encoder: the default of word metrics",
    "distilled:NAME": "word vectors out of any other encoder",
    "static:FILE": "word vectors: word2vec .bin .vec .txt, fastText .bin, gensim .kv, .npz, or .gz",
    "hashed": "vectors from a hash of each word: for tests",
    "one-hot": "one-hot vectors of words: for tests",
}
_BEST = {EMBEDDED: 4, "all-MiniLM-L6-v2": 4, "e5-small": 8}


def encoder(name: str | Encoder = EMBEDDED, **options: Any) -> Encoder:
    """The encoder of this name, or the one given; `options` are its fields."""
    if not isinstance(name, str):
        if options:
            raise InvalidInput("give options with an encoder's name, not with an encoder")
        return name
    kind: Any = _kind(name)
    known = {field.name for field in fields(kind)} - {"name", "one_hot"}
    unknown = set(options) - known
    if unknown:
        has = ", ".join(sorted(known))
        raise InvalidInput(f"{name} has no option {', '.join(sorted(unknown))}; there is {has}")
    if kind is Hashed:
        return Hashed(one_hot=name == "one-hot", **options)
    found: Encoder = kind(name, **options)
    return found


def with_cache(chosen: str | Encoder = EMBEDDED, folder: str | None = None) -> Encoder:
    """The encoder, remembering on disk what it encodes, in the user's cache or a folder."""
    from freight.encoders.cache.disk import Cached

    return Cached(encoder(chosen), folder)


def is_static(name: object) -> bool:
    """Whether this is the name of word vectors rather than of a contextual encoder."""
    return isinstance(name, str) and _kind(name) is Static


def _kind(name: str) -> type:
    if name in ("hashed", "one-hot"):
        return Hashed
    return Static if name.partition(":")[0] in ("static", DISTILLED) else Transformer


def list_encoders() -> dict[str, str]:
    """What there is to encode with, and what it is."""
    return dict(ENCODERS)


def best_layer(chosen: Encoder) -> int:
    """The layer for matching tokens: known for some encoders, two thirds up the others.

    Word vectors have one layer, whatever they were distilled from.
    """
    name = str(getattr(chosen, "name", "")).rstrip("/").rsplit("/", 1)[-1]
    return min(_BEST.get(name, int(chosen.depth * 2 / 3 + 0.5)), chosen.depth)
