"""How continuous metrics are: what small edits cost, as a page of the documentation.

    python benchmarks/studies/edits.py [--sentences 150] [--threads 1] [--seed 0]

Sentences are WMT15's English references in $FREIGHT_DATA (by default ../shared), edited as
`changes.py` does, and forty of our own in sentences.tsv, each with a synonym and with a negation.
Writes docs/studies/edits.md and edits.svg.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import changes
import freight
from edits_page import written_page
from freight.core.scorers import PipelineScorer
from freight.data.judgement_files import read_judgements
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
OURS = Path(__file__).with_name("sentences.tsv")
OUTPUT = Path(__file__).parents[2] / "docs/studies"
COLUMNS = {
    "freight": ("score",),
    "bert-score": ("f1",),
    "emd": ("transport",),
    "lazy-emd": ("objective", "transport"),
    "bary-score": ("distance",),
    "wrd-score": ("f1",),
    "std": ("distance",),
    "wmd": ("distance",),
    "mover-score": ("similarity",),
    "chrf": ("score",),
    "rouge-1": ("score",),
    "sentence-bleu": ("score",),
}
Edit = Callable[[str, np.random.Generator], str | None]
EDITS: dict[str, Edit] = {
    "casing": lambda text, _: changes.lower(text),
    "punctuation": lambda text, _: changes.unmark(text),
    "filler": lambda text, rng: changes.insert(text, rng.choice(changes.IDLE)),
    "swap": changes.swap,
    "deletion": changes.delete,
    "number": changes.renumber,
    "negation": lambda text, _: changes.insert(text, "not"),
    "swap 2": partial(changes.swap, count=2),
    "swap 4": partial(changes.swap, count=4),
    "deletion 2": partial(changes.delete, count=2),
    "deletion 4": partial(changes.delete, count=4),
}
UNRELATED = "unrelated"


class Edited(NamedTuple):
    """Sentences, and by the name of an edit what it makes of each, None where nothing."""

    refs: list[str]
    hyps: dict[str, list[str | None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    by_set = {
        "WMT15": _of_all_metrics(mechanical(arguments.sentences, arguments.seed)),
        "ours": _of_all_metrics(by_hand()),
    }
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, content in written_page(by_set["WMT15"], by_set["ours"]).items():
        (OUTPUT / name).write_text(content, encoding="utf-8")


def mechanical(count: int, seed: int) -> Edited:
    """References of 10 to 40 words, half of them with a number, each with all the edits."""
    judged = read_judgements(DATA / "data/wmt15-da.jsonl.gz")
    english = [pair.endswith("-en") for pair in judged.lang_pairs]
    texts = sorted({" ".join(refs[0].split()) for refs in judged.only(english).refs})
    fit = [text for text in texts if 10 <= len(text.split()) <= 40]
    mixed = np.random.default_rng(seed).permutation(fit).tolist()
    mixed.sort(key=lambda text: not any(map(str.isdigit, text)))
    half = count // 2
    refs = mixed[:half] + mixed[half - count :]
    hyps = {
        name: [edit(ref, np.random.default_rng([seed, k])) for k, ref in enumerate(refs)]
        for name, edit in EDITS.items()
    }
    return Edited(refs, hyps)


def by_hand() -> Edited:
    """Sentences of our own, each with a synonym and with a negation."""
    rows = [line.split("\t") for line in OURS.read_text(encoding="utf-8").splitlines()]
    refs, synonyms, negations = (list(side) for side in zip(*rows, strict=True))
    return Edited(refs, {"synonym": list(synonyms), "negation": list(negations)})


def _of_all_metrics(edited: Edited) -> dict[str, dict[str, Array]]:
    """By column and edit, the drops of every metric."""
    both: dict[str, dict[str, Array]] = {}
    for name, columns in COLUMNS.items():
        for column, shares in drops(freight.load(name), columns, edited).items():
            both[name if len(columns) == 1 else f"{name} {column}"] = shares
    return both


def drops(
    metric: PipelineScorer, columns: Sequence[str], edited: Edited
) -> dict[str, dict[str, Array]]:
    """By column and edit: what it takes off each score, nan where the edit could not be made.

    The unit is the mean drop from a sentence itself to the next one of the set.
    """
    refs = edited.refs
    versions: dict[str, Sequence[str | None]] = {
        "identical": refs,
        UNRELATED: refs[1:] + refs[:1],
        **edited.hyps,
    }
    hyps = [hyp for several in versions.values() for hyp in several]
    made = np.array([hyp is not None for hyp in hyps])
    texts = [hyp or "" for hyp in hyps]
    metric = metric.fit(refs, refs) if metric.needs_fitting else metric
    result = metric.score(texts, refs * len(versions))
    by_column = {}
    for column in result.columns:
        if column.name in columns:
            values = result[column.name] if column.higher else -result[column.name]
            scores = np.where(made, values, np.nan).reshape(len(versions), -1)
            by_column[column.name] = _shares(dict(zip(versions, scores, strict=True)))
    return by_column


def _shares(scores: dict[str, Array]) -> dict[str, Array]:
    whole = np.mean(scores["identical"] - scores[UNRELATED])
    return {
        edit: (scores["identical"] - values) / whole
        for edit, values in scores.items()
        if edit != "identical"
    }


if __name__ == "__main__":
    main()
