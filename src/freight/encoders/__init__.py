"""Encoders turn texts into clouds of vectors; here they are found by name.

An encoder of your own is any object with `depth`, `identity` and `encode`: the protocol
`freight.core.types.Encoder`.
"""

from dataclasses import fields, replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from freight.core.types import Encoder, name_of
from freight.encoders.packages import EMBEDDED, MULTILINGUAL, PACKAGED
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import StrPath

    from freight.encoders.adapters import Adapter

__all__ = [
    "BERT_SCORE_LAYERS",
    "DISTILLED",
    "EMBEDDED",
    "FOR_OTHERS",
    "MULTILINGUAL",
    "EncoderFacts",
    "adapter_of",
    "best_layer",
    "encoder",
    "has_tuned_layer",
    "is_static",
    "languages_of",
    "list_encoders",
    "loaded_once",
    "shipped_adapter",
    "with_adapter",
    "with_cache",
    "without_adapter",
]

T = TypeVar("T")

DISTILLED = "distilled"
FOR_OTHERS = {EMBEDDED: MULTILINGUAL, DISTILLED: f"{DISTILLED}:{MULTILINGUAL}"}
"""What takes the place of an English encoder for another language."""

_OTHERS = {
    "FOLDER": "any encoder of the transformers library in a folder, safetensors",
    "NAME": "any encoder on the hub, downloaded by transformers",
    DISTILLED: "word vectors from the embedded encoder: the default of word metrics",
    "distilled:NAME": "word vectors from any other encoder",
    "static:FILE": "word vectors: word2vec .bin .vec .txt, fastText .bin, gensim .kv, .npz, or .gz",
    "hashed": "vectors from a hash of each word: for tests",
    "one-hot": "one-hot vectors of words: for tests",
}
BERT_SCORE_LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-multilingual-cased": 9,
    "bert-base-chinese": 8,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "albert-base-v2": 9,
    "microsoft/deberta-base": 9,
    "microsoft/deberta-large": 16,
    "microsoft/deberta-xlarge": 18,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/mpnet-base": 8,
    "facebook/bart-base": 6,
    "facebook/bart-large": 10,
    "t5-base": 11,
}
"""The layers of the bert-score package, 0.3.13, which were tuned on WMT16 to English."""

_BEST_LAYERS = {
    EMBEDDED: 4,
    "all-MiniLM-L6-v2": 4,
    MULTILINGUAL: 8,
    "e5-small": 8,
    **{name.rpartition("/")[2]: layer for name, layer in BERT_SCORE_LAYERS.items()},
}
_HASHED: dict[str, dict[str, Any]] = {"hashed": {}, "one-hot": {"one_hot": True, "dim": 1024}}


def encoder(name: str | Encoder = EMBEDDED, **options: Any) -> Encoder:
    """The encoder of this name with its options, or the encoder object that is given."""
    if not isinstance(name, str):
        if options:
            raise InvalidInput("give options with an encoder's name, not with an encoder")
        return name
    kind: Any = _kind(name)
    allowed = {field.name for field in fields(kind)} - {"name", "one_hot"}
    unknown = set(options) - allowed
    if unknown:
        has = ", ".join(sorted(allowed))
        raise InvalidInput(f"{name} has no option {', '.join(sorted(unknown))}; there is {has}")
    adapter = options.pop("adapter", None)
    settings = _HASHED.get(name, {"name": name})
    made: Encoder = kind(**{**settings, **options})
    return made if adapter is None else with_adapter(made, adapter)


def with_adapter(chosen: "str | Encoder", adapter: "StrPath | Adapter") -> Encoder:
    """The same encoder with the differences of an adapter in its weights.

    An adapter is given by its folder, its file, its name where it is shipped, or as it is.
    """
    from freight.encoders.adapters import read_adapter
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    made, differences = encoder(chosen), read_adapter(adapter)
    if adapter_of(made) == differences:
        return made
    if isinstance(made, CachedEncoder):
        return replace(made, inner=with_adapter(made.inner, differences))
    if not isinstance(made, Transformer):
        raise InvalidInput(
            f"the adapter {differences.name} is for {differences.encoder}, and"
            f" {name_of(made) or made.identity} has no weights that it could change"
        )
    differences.check_encoder(made.name, made.weights_hash)
    return replace(made, adapter=differences)


def without_adapter(chosen: Encoder) -> Encoder:
    """The same encoder with its own weights."""
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return replace(chosen, inner=without_adapter(chosen.inner))
    return replace(chosen, adapter=None) if isinstance(chosen, Transformer) else chosen


def shipped_adapter(name: str, chosen: Encoder) -> "Adapter | None":
    """The adapter of this name that comes with the library for an encoder; others are refused.

    None for vectors of tests, which have no weights.
    """
    from freight.encoders.adapters import find_shipped
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.hashed import Hashed
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return shipped_adapter(name, chosen.inner)
    if isinstance(chosen, Hashed):
        return None
    weights = chosen.weights_hash if isinstance(chosen, Transformer) else "none"
    return find_shipped(name, name_of(chosen) or chosen.identity, weights)


def adapter_of(chosen: Encoder) -> "Adapter | None":
    """The adapter of an encoder, if it has one."""
    from freight.encoders.cache import CachedEncoder
    from freight.encoders.transformer import Transformer

    if isinstance(chosen, CachedEncoder):
        return adapter_of(chosen.inner)
    return chosen.adapter if isinstance(chosen, Transformer) else None


def with_cache(chosen: str | Encoder = EMBEDDED, folder: str | None = None) -> Encoder:
    """The same encoder with a cache of vectors on disk, in the user's cache or a folder."""
    from freight.encoders.cache.disk import DiskCached

    return DiskCached(encoder(chosen), folder)


def is_static(name: object) -> bool:
    """Whether this is the name of word vectors rather than of a contextual encoder."""
    return isinstance(name, str) and name.partition(":")[0] in ("static", DISTILLED)


def _kind(name: str) -> Any:
    """The class of the encoders of such a name; torch is imported with it."""
    if name in _HASHED:
        from freight.encoders.hashed import Hashed

        return Hashed
    if is_static(name):
        from freight.encoders.static import Static

        return Static
    from freight.encoders.transformer import Transformer

    return Transformer


class EncoderFacts(NamedTuple):
    """What is known of an encoder before it is loaded.

    `source` are the packages it comes in, and `installed` whether they are here; both are empty
    where it comes in none. `agreement` is that of the default metric with people.
    """

    about: str
    source: tuple[str, ...] = ()
    installed: bool | None = None
    languages: tuple[str, ...] = ()
    licence: str = ""
    agreement: str = ""
    install: str = ""


def list_encoders() -> dict[str, EncoderFacts]:
    """The names that `encoder` takes, each with what is known of it."""
    packaged = {
        name: EncoderFacts(
            one.model,
            one.packages,
            one.is_installed,
            tuple(sorted(one.languages)),
            one.licence,
            one.agreement,
            one.install,
        )
        for name, one in PACKAGED.items()
    }
    return packaged | {name: EncoderFacts(about) for name, about in _OTHERS.items()}


def languages_of(chosen: Encoder) -> frozenset[str] | None:
    """The languages that an encoder was trained on, where they are known."""
    kind, colon, inner = name_of(chosen).partition(":")
    short = (inner if colon else EMBEDDED) if kind == DISTILLED else _short_name(chosen)
    return PACKAGED[short].languages if short in PACKAGED else None


def best_layer(chosen: Encoder) -> int:
    """The layer for matching tokens: from a table for some encoders, else two thirds of the depth.

    Word vectors have one layer, whatever encoder they are distilled from.
    """
    tuned = _BEST_LAYERS.get(_short_name(chosen), int(chosen.depth * 2 / 3 + 0.5))
    return min(tuned, chosen.depth)


def has_tuned_layer(chosen: Encoder) -> bool:
    """Whether the best layer is known by measurement, or there is nothing to choose."""
    if chosen.depth == 0 or _short_name(chosen) in _BEST_LAYERS:
        return True
    return chosen.identity.startswith(tuple(f"{name}-" for name in _HASHED))  # for tests: all alike


def _short_name(chosen: Encoder) -> str:
    """The last part of the encoder's name, which a hub's name and a folder share."""
    return name_of(chosen).rstrip("/").rsplit("/", 1)[-1]


class loaded_once(cached_property[T]):
    """A part of an encoder that is loaded when first needed, by one thread while others wait.

    `functools.cached_property` lets each of them compute its own from Python 3.12 on.
    """

    def __init__(self, load: Any) -> None:
        super().__init__(load)
        self._loading = RLock()

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value, computed on first use."""
        with self._loading:
            return super().__get__(instance, owner)
