"""The page on small edits: tables, a heat map, and a verdict that the numbers must bear out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.stats import rankdata

from freight.report.plots import heat_map
from freight.transport.types import Array
from writing import bullets, claim, standing_alone, table

Drops = Mapping[str, Mapping[str, Array]]
SINGLE = ("casing", "punctuation", "filler", "swap", "deletion", "number", "negation")
STEPS = {kind: (kind, f"{kind} 2", f"{kind} 4") for kind in ("swap", "deletion")}
LAZY = ("lazy-emd transport", "lazy-emd objective")
CONTEXTUAL = ("freight", "bert-score", "emd", *LAZY, "bary-score", "mover-score")
STATIC = ("wrd-score", "std", "wmd")
LEXICAL = ("chrf", "rouge-1", "sentence-bleu")

INTRODUCTION = """# What a small edit costs

A metric is continuous if a small edit of a text costs little, if more edits cost more, and if it
matters less how an edit looks than what it does to the meaning. `python
benchmarks/studies/edits.py` makes this page: {count} references of WMT15 (half of them with a
number), edited by rule and scored against themselves, and {ours} sentences of our own, each with
one word replaced by a synonym, and negated. All metrics have their defaults; `mover-score` knows
its IDF from the sentences.

Costs are drops of the score on a scale from 0, a sentence scored against itself, to 1, the next
sentence of the set scored against it (the mean over the set): an edit that costs 0.05 takes a
twentieth of that drop.

- **casing**: no capitals; **punctuation**: no mark at the end; **filler**: "also", "clearly",
  "indeed" or "really" behind the first auxiliary; **synonym**: one word. These keep the meaning.
- **number**: the first digit of a number is another one; **negation**: "not" where the filler
  stood, and in our own sentences whatever negates them. These change it.
- **swap**: two neighbours change places; **deletion**: a content word is left out.

![Mean cost of each edit by metric](edits.svg)
"""
SINGLE_TEXT = """## One edit

Mean and standard deviation over the sentences that have a place for the edit ({counts}).
"""
STEPS_TEXT = """## One, two, four edits

Mean cost of 1, 2 and 4 edits, each set containing the one before; and the share of sentences whose
score falls with every step.
"""
MEANING_TEXT = """## Meaning

How often an edit that changes the meaning costs more than one that keeps it; 0.5 is chance, ties
count half. The first three columns compare two edits of the same sentence: of our own, then of
WMT15. "not" and the filler stand in the same place, so that neither length nor place tells them
apart. The last column is the AUC over all sentences, number and negation on one side, casing,
punctuation, filler and synonym on the other.
"""


def written_page(wmt: Drops, ours: Drops) -> dict[str, str]:
    """The files by name."""
    some = next(iter(wmt.values()))
    counts = ", ".join(f"{edit} {int(np.isfinite(some[edit]).sum())}" for edit in SINGLE)
    count, own = len(some["casing"]), len(next(iter(ours.values()))["synonym"])
    parts = [
        INTRODUCTION.format(count=count, ours=own),
        "## Verdict\n",
        verdict(wmt, ours) + "\n",
        SINGLE_TEXT.format(counts=counts),
        single_table(wmt, ours) + "\n",
        STEPS_TEXT,
        steps_table(wmt) + "\n",
        MEANING_TEXT,
        meaning_table(wmt, ours),
    ]
    return {"edits.md": "\n".join(parts) + "\n", "edits.svg": drawing(wmt, ours)}


def every_single(wmt: Drops, ours: Drops, metric: str) -> dict[str, Array]:
    """By heading: the costs of single edits, meaning-keeping ones first."""
    drops = {edit: wmt[metric][edit] for edit in SINGLE}
    own = {"synonym": ours[metric]["synonym"], "negation, ours": ours[metric]["negation"]}
    keeping = {edit: drops.pop(edit) for edit in SINGLE[:3]}
    return {**keeping, "synonym": own.pop("synonym"), **drops, **own}


def single_table(wmt: Drops, ours: Drops) -> str:
    rows = []
    for metric in wmt:
        costs = every_single(wmt, ours, metric)
        rows.append([metric, *(f"{_mean(x):.3f} ± {np.nanstd(x):.3f}" for x in costs.values())])
    return table(["metric", *every_single(wmt, ours, next(iter(wmt)))], rows)


def steps_table(wmt: Drops) -> str:
    head = ["metric", *(f"{kind}: {what}" for kind in STEPS for what in ("1, 2, 4", "falls"))]
    rows = []
    for metric, costs in wmt.items():
        row = [metric]
        for kind, steps in STEPS.items():
            row.append(" ".join(f"{_mean(costs[step]):.3f}" for step in steps))
            row.append(f"{falling(costs, kind):.0%}")
        rows.append(row)
    return table(head, rows)


def meaning_table(wmt: Drops, ours: Drops) -> str:
    head = ["metric", "negation over synonym", "negation over filler", "number over filler", "AUC"]
    tests = {metric: meanings(wmt[metric], ours[metric]) for metric in wmt}
    return table(head, [[metric, *(f"{x:.2f}" for x in row)] for metric, row in tests.items()])


def meanings(wmt: Mapping[str, Array], ours: Mapping[str, Array]) -> tuple[float, ...]:
    """How often edits that change the meaning cost more, in the order of the table."""
    changing = np.concatenate([wmt["number"], wmt["negation"], ours["negation"]])
    keeping = np.concatenate([*(wmt[edit] for edit in SINGLE[:3]), ours["synonym"]])
    return (
        share_costlier(ours["negation"], ours["synonym"]),
        share_costlier(wmt["negation"], wmt["filler"]),
        share_costlier(wmt["number"], wmt["filler"]),
        auc(changing, keeping),
    )


def share_costlier(one: Array, other: Array) -> float:
    """The share of sentences for which one edit costs more than the other, ties counting half."""
    both = (one - other)[np.isfinite(one - other)].round(9)
    return float((np.sign(both) + 1).mean() / 2)


def auc(high: Array, low: Array) -> float:
    """How often one of `high` is above one of `low`, ties counting half; nan does not count."""
    high, low = (side[np.isfinite(side)].round(9) for side in (high, low))
    ranks = rankdata(np.concatenate((high, low)))[: len(high)]
    return float((ranks.sum() - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))


def falling(costs: Mapping[str, Array], kind: str) -> float:
    """The share of sentences that cost more with every step, of those that have all of them."""
    steps = np.stack([costs[step] for step in STEPS[kind]])
    steps = steps[:, np.isfinite(steps).all(axis=0)]
    return float((np.diff(steps, axis=0, prepend=0.0) > 1e-9).all(axis=0).mean())


def drawing(wmt: Drops, ours: Drops) -> str:
    means = {m: [_mean(x) for x in every_single(wmt, ours, m).values()] for m in wmt}
    values = np.clip(np.array(list(means.values())).round(3), 0.0, None)
    columns = list(every_single(wmt, ours, next(iter(wmt))))
    label = "Mean cost of each edit by metric"
    return standing_alone(heat_map(values, list(means), columns, label, (0.0, 0.4)))


def verdict(wmt: Drops, ours: Drops) -> str:
    """A few sentences, each of them checked."""
    return bullets((*continuity(wmt, ours), *looks(wmt, ours), *meaning(wmt, ours)))


def continuity(wmt: Drops, ours: Drops) -> Iterator[str]:
    soft = [metric for metric in (*CONTEXTUAL, *STATIC) if metric != "mover-score"]
    worst = max(max(map(_mean, every_single(wmt, ours, m).values())) for m in soft)
    steep = _mean(wmt["mover-score"]["deletion"])
    least = min(falling(costs, "deletion") for costs in wmt.values())
    yield claim(
        f"Metrics of vectors are continuous: no edit costs more than"
        f" {_largest(wmt, ours, soft):.2f} of the way to another sentence, negations of our short"
        f" sentences aside (at most {worst:.2f}). `mover-score` is steep near the top, being"
        f" 1 / (1 + distance): one deletion is {steep:.2f}.",
        _largest(wmt, ours, soft) < 0.2 and worst < 0.3 < steep,
    )
    yield claim(
        f"More deletions cost more for every metric, in {np.floor(100 * least):.0f}% of sentences"
        f" or more.",
        least > 0.95,
    )


def looks(wmt: Drops, ours: Drops) -> Iterator[str]:
    swap = {metric: _mean(costs["swap"]) for metric, costs in wmt.items()}
    blind = [metric for metric, costs in wmt.items() if np.nanmax(np.abs(costs["swap 4"])) < 1e-6]
    mindful = [metric for metric in wmt if metric not in blind]
    cased = [metric for metric, costs in wmt.items() if _mean(costs["casing"]) > 1e-6]
    synonym = {metric: _mean(costs["synonym"]) for metric, costs in ours.items()}
    strings = [synonym[metric] for metric in LEXICAL]
    vectors = [synonym[m] for m in (*CONTEXTUAL, *STATIC) if m not in ("mover-score", "wmd")]
    yield claim(
        f"Word order is nothing to {_listed(blind)}; of the others `bary-score` minds it least"
        f" ({swap['bary-score']:.3f} a swap) and `sentence-bleu` most"
        f" ({swap['sentence-bleu']:.3f}), more than a deletion"
        f" ({_mean(wmt['sentence-bleu']['deletion']):.3f}).",
        min(mindful, key=swap.__getitem__) == "bary-score"
        and max(mindful, key=swap.__getitem__) == "sentence-bleu"
        and swap["sentence-bleu"] > _mean(wmt["sentence-bleu"]["deletion"]),
    )
    yield claim(
        f"Strings pay for looks: only {_listed(cased)} see capitals, and a synonym costs strings"
        f" {min(strings):.2f} to {max(strings):.2f}, metrics of vectors {min(vectors):.2f} to"
        f" {max(vectors):.2f} (`wmd` {synonym['wmd']:.2f}, `mover-score`"
        f" {synonym['mover-score']:.2f}).",
        set(cased) <= set(LEXICAL) and max(vectors) < min(strings),
    )


def meaning(wmt: Drops, ours: Drops) -> Iterator[str]:
    tests = {metric: meanings(wmt[metric], ours[metric]) for metric in wmt}
    seen = [tests[m][1] for m in CONTEXTUAL]
    dull = [tests[m][1] for m in (*STATIC, *LEXICAL)]
    ratios = [_mean(wmt[m]["negation"]) / _mean(wmt[m]["filler"]) for m in CONTEXTUAL]
    number = [tests[m][2] for m in (*CONTEXTUAL, *STATIC)]
    first, second, third = sorted(tests, key=lambda m: -tests[m][3])[:3]
    yield claim(
        f'Contextual metrics notice "not", a little: it costs more than an idle word in its place'
        f" in {min(seen):.0%} to {max(seen):.0%} of sentences, but only {min(ratios):.1f} to"
        f" {max(ratios):.1f} times as much. Static vectors and strings do not ({min(dull):.0%} to"
        f" {max(dull):.0%}): `wrd-score` and `std` make a negation more expensive than a synonym,"
        f" and an idle word more so.",
        min(seen) > 0.6
        and max(ratios) < 1.65
        and max(dull) < 0.55
        and min(tests["wrd-score"][0], tests["std"][0]) > 0.9,
    )
    yield claim(
        f"A changed number is cheaper than an idle word for every metric of vectors (it costs more"
        f" in {min(number):.0%} to {max(number):.0%} of sentences): where numbers matter, check"
        f" them apart.",
        max(number) < 0.5,
    )
    yield claim(
        f"Over all, edits of meaning are told from edits of looks best by `{first}`"
        f" (AUC {tests[first][3]:.2f}), to which casing and punctuation are nothing, then by"
        f" `{second}` ({tests[second][3]:.2f}) and `{third}` ({tests[third][3]:.2f}).",
        first == "rouge-1"
        and all(_mean(wmt[first][edit]) == 0 for edit in ("casing", "punctuation")),
    )


def _largest(wmt: Drops, ours: Drops, metrics: list[str]) -> float:
    """The most expensive single edit, our own negations aside."""
    several = [list(every_single(wmt, ours, metric).values())[:-1] for metric in metrics]
    return max(_mean(costs) for row in several for costs in row)


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


def _mean(costs: Array) -> float:
    return float(np.nanmean(costs))
