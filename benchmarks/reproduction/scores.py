"""Score every judgement set with every metric, encoder by encoder: what the page is made of.

    python benchmarks/reproduction/scores.py -o SCORES [--encoder NAME=FOLDER[@LAYER] ...]

Writes SCORES/<encoder>.<set>.npz, a number a row and a column of a metric, higher being better.
Sets are those of $FREIGHT_DATA (by default ../shared). Lexical metrics and word vectors count as
the encoder "words". What is there already is not scored again. LAYER is for metrics of one layer.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.data.judgements import Judgements, read_judgements
from freight.scoring import Scorer

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
    "lazy-emd(.009,.95)": ("lazy-emd", {"hyp": 0.009, "ref": 0.95}),
    "lazy-emd(.018,.97)": ("lazy-emd", {"hyp": 0.018, "ref": 0.97}),
    "lazy-emd(1,1)": ("lazy-emd", {"hyp": 1.0, "ref": 1.0}),
    "f-alpha": ("f-alpha", {}),
    "yisi-1": ("yisi-1", {}),
    "bary-score": ("bary-score", {}),
    "bary-score(idf)": ("bary-score", {"idf": "ref"}),
    "mover-score": ("mover-score", {}),
    "wrd-score": ("wrd-score", {}),
    "emd(mean)": ("emd", {"layer": LAST, "join": "mean"}),
    "emd(unit-mean)": ("emd", {"layer": LAST, "join": "unit-mean"}),
    "emd(power-means)": ("emd", {"layer": LAST, "join": "power-means"}),
}
WORDS: Settings = {
    "std": ("std", {}),
    "wrd-score": ("wrd-score", {}),
    "wmd": ("wmd", {}),
    "sentence-bleu": ("sentence-bleu", {}),
    "chrf": ("chrf", {}),
    "rouge-1": ("rouge-1", {}),
    "rouge-2": ("rouge-2", {}),
    "rouge-l": ("rouge-l", {}),
}


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
    for named in arguments.encoder or ["words", "embedded"]:
        name, _, folder = named.partition("=")
        folder, _, layer = (folder or name).partition("@")
        found = None if name == "words" else _encoder(folder, arguments.device)
        layers = {"layer": int(layer)} if layer else {}
        for title in arguments.sets or SETS:
            target = arguments.output / f"{name}.{title}.npz"
            if not target.exists():
                started = time.perf_counter()
                judged = read_judgements(DATA / "data" / f"{title}.jsonl.gz")
                chosen = judged.only(np.arange(len(judged)) < (arguments.rows or len(judged)))
                columns = scored(chosen, found, layers)
                np.savez_compressed(target, **columns)
                spent = time.perf_counter() - started
                print(f"{target.name}: {len(chosen)} rows, {spent:.0f} s", flush=True)


def scored(judged: Judgements, encoder: Any, layers: dict[str, int]) -> dict[str, Any]:
    """Every column of every metric, higher being better."""
    lang = judged.lang_pairs[0].rpartition("-")[2] if judged.lang_pairs else "en"
    settings = CONTEXTUAL if encoder is not None else WORDS
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
) -> Scorer:
    if encoder is not None:
        own = OF_ONE_LAYER.get(name, ())
        given = {"layer": layers.get("layer"), "lang": lang}
        settings = {"encoder": encoder, **{k: given[k] for k in own}, **settings}
    return freight.load(name, **settings)


def _encoder(name: str, device: str | None) -> Any:
    return freight.encoder(name, device=device) if device else freight.encoder(name)


if __name__ == "__main__":
    main()
