"""Whether a sentence vector, a term for length or a second encoder improves the default metric.

    python benchmarks/studies/second_round.py [--encoder FOLDER ...] [--rows 3000] [--save FOLDER]

Settings of each question are picked for each judgement set by the mean over all the others in
$FREIGHT_DATA (by default ../shared) and over both encoders, `freight` as it is being one of them;
WMT15 picks nothing. Prints tables of Markdown: what `freight` has, and by how much the pick differs
on the set that had no say in it. Every text goes through each encoder once; --save keeps the scores
of pairs, and a later run with more rows goes on from there.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import freight
from freight.core import costs, readouts
from freight.core.metric import Metric
from freight.core.result import Column
from freight.core.types import Cloud, Encoder, Measures, Pairs
from freight.core.weightings import Weighting
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.comparisons import (
    ResampledComparison,
    StatisticOptions,
    choose_statistic,
    comparison_of,
    criteria,
)
from freight.judge.significance import bootstrap_values
from freight.judge.tuning import fold_training_sets
from freight.transport.types import Array, Plans, Problem

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
SETS = {
    "wmt17-da": 10_000,
    "wmt18-darr.cs-en": 3000,
    "wmt18-darr.tr-en": 3000,
    "realsumm": 600,
    "webnlg2020-en": 10_000,
    "flickr8k-expert": 2000,
    "wmt15-da": 10_000,
}
"""How many rows or preferences of each are taken, at most, as whole segments."""
TOLD = "wmt15-da"
SHARES = (0.1, 0.2, 0.3)
WEIGHTS = (0.05, 0.1, 0.2, 0.4)
MIXED = (0.25, 0.5, 0.75)
FLOOR = 0.05
P = 0.01
AS_IT_IS = "as it is"
UNIT, TERM, LENGTH = "one more unit", "one more term", "length"

Kept = Mapping[str, Array]
"""Columns of the pairs of texts, by name."""
Scores = dict[str, dict[str, Array]]
"""By question and setting a score for each row of a set."""


def _pooled(single: Measures) -> Measures:
    """Each text as one unit: the mean of its units by their mass."""
    counts, owner = np.diff(single.offsets), single.owner
    there = np.flatnonzero(counts)
    shares = torch.as_tensor(single.weights, dtype=single.points.dtype)[:, None]
    sums = single.points.new_zeros((len(counts), single.points.shape[1]))
    means = sums.index_add(0, torch.as_tensor(owner), single.points * shares)
    first, last = single.offsets[there], single.offsets[there + 1] - 1
    return replace(
        single,
        points=means[there],
        weights=np.ones(len(there)),
        offsets=np.concatenate(([0], np.cumsum(counts > 0))),
        ids=np.full(len(there), -1),
        extent=np.stack((single.extent[first, 0], single.extent[last, 1]), axis=1),
        literal=None,
    )


@dataclass(frozen=True)
class Pooled:
    """Texts as one unit each."""

    of: Weighting

    def __call__(self, cloud: Cloud) -> Measures:
        """The mean of each text's standardised vectors."""
        return _pooled(self.of(cloud))


@dataclass(frozen=True)
class WithPooled:
    """Units, and after the last of each text their mean with a share of the mass.

    None is the share that every other unit has.
    """

    of: Weighting
    share: float | None

    def __call__(self, cloud: Cloud) -> Measures:
        """One unit more in each text."""
        single = self.of(cloud)
        whole = _pooled(single)
        counts, owners = np.diff(single.offsets), (single.owner, whole.owner)
        order = np.argsort(np.concatenate(owners), kind="stable")
        share = 1.0 / (counts + 1) if self.share is None else np.full(len(counts), self.share)
        weights = single.weights * (1.0 - share)[owners[0]], share[owners[1]]
        literal = single.literal
        if literal is not None:
            literal = np.concatenate((literal, np.zeros(len(whole.ids), bool)))[order]
        return replace(
            single,
            points=torch.cat((single.points, whole.points))[torch.as_tensor(order)],
            weights=np.concatenate(weights)[order],
            offsets=single.offsets + whole.offsets,
            ids=np.concatenate((single.ids, whole.ids))[order],
            extent=np.concatenate((single.extent, whole.extent))[order],
            literal=literal,
        )


@dataclass(frozen=True)
class WithSizes:
    """A read-out, and how many units both texts have."""

    of: readouts.Readout

    def __call__(self, plans: Sequence[Plans], pairs: Pairs) -> readouts.Reading:
        """Three columns."""
        hyp, ref = (size.astype(np.float64) for size in pairs.sizes)
        return readouts.Reading({**self.of(plans, pairs).columns, "hyp": hyp, "ref": ref})


def metrics_of(encoder: Encoder) -> dict[str, Metric]:
    """What has to go through the pipeline, `freight` first."""
    plain = freight.load("freight", encoder=encoder)
    assert isinstance(plain, Metric)
    sizes = tuple(Column(name, True, math.nan, math.nan) for name in ("hyp", "ref"))
    whole = replace(
        plain,
        weighting=Pooled(plain.weighting),
        cost=costs.cosine,
        problems=(Problem(math.inf, math.inf, 0.0),),
        readout=readouts.distance,
        columns=(Column("distance", False, 0.0, 1.0),),
    )
    units = {
        said_share(share): replace(plain, weighting=WithPooled(plain.weighting, share))
        for share in (None, *SHARES)
    }
    sized = replace(plain, readout=WithSizes(plain.readout), columns=(*plain.columns, *sizes))
    return {"": sized, "pooled": whole, **units}


def said_share(share: float | None) -> str:
    """The mass of the unit that is added."""
    return "mass of a token" if share is None else f"{share:g} of the mass"


def settings_of(kept: Kept) -> dict[str, dict[str, Array]]:
    """By question and setting the score of every pair, out of what the pipeline gave."""
    score = kept["score"]
    near = 1.0 - kept["distance"]
    gap = np.nan_to_num(np.log(kept["hyp"] / kept["ref"]))
    sides = {"either": np.abs(gap), "short": np.maximum(-gap, 0), "long": np.maximum(gap, 0)}
    terms = {f"{x:g} of the score": (1 - x) * score + x * np.maximum(near, 0) for x in SHARES}
    for x in SHARES:
        terms[f"{x:g} of the distance"] = score ** (1 - x) * np.maximum(near, FLOOR) ** x
    return {
        UNIT: {said_share(x): kept[said_share(x)] for x in (None, *SHARES)},
        TERM: terms,
        LENGTH: {
            f"{weight:g}, {side}": score * np.exp(-weight * far)
            for side, far in sides.items()
            for weight in WEIGHTS
        },
    }


def judged(rows: int, seed: int, titles: Sequence[str] = tuple(SETS)) -> Iterator[Judgements]:
    """Each set, by language pair; those of no pair are told apart by name alone."""
    for title in titles:
        most = SETS[title]
        for part in read_judgements(DATA / "data" / f"{title}.jsonl.gz").split():
            if part.lang_pairs[0].endswith("en"):
                one = drawn(part, min(rows, most), seed)
                if title.startswith("flickr"):
                    one = one.with_criteria(["expert_mean"])
                translated = "-" in one.lang_pairs[0]
                yield one if translated else replace(one, lang_pairs=())


def drawn(one: Judgements, rows: int, seed: int) -> Judgements:
    """Whole segments in random order, with so many rows, or preferences, or just above.

    More rows begin with those that fewer have.
    """
    preferred = one.preferences
    counted = one.segments if preferred is None else one.segments[preferred[:, 0]]
    sizes = np.bincount(counted, minlength=int(one.segments.max()) + 1)
    order = np.random.default_rng(seed).permutation(len(sizes))
    place = np.argsort(order)[one.segments]
    last = int(np.searchsorted(np.cumsum(sizes[order]), rows))
    by_place = np.argsort(place, kind="stable")
    return one.only(by_place[place[by_place] <= last])


def kept_scores(
    sets: Sequence[Judgements], encoder: Encoder, folder: Path | None
) -> list[dict[str, Array]]:
    """By set the columns of every pair of a hypothesis and a reference, known ones from files."""
    metrics = metrics_of(encoder)
    wanted: list[tuple[str, str]] = []
    stored: list[dict[str, Array]] = []
    counts = []
    for one in sets:
        path = folder and folder / f"{one.name}.npz"
        known = dict(np.load(path)) if path and path.exists() else {}
        pairs = [(hyp, ref) for hyp, refs in zip(one.hyps, one.refs, strict=True) for ref in refs]
        wanted += pairs[len(known.get("score", ())) :]
        counts.append(len(pairs))
        stored.append(known)
    fresh = _scored(metrics, wanted) if wanted else {}
    start, kept = 0, []
    for one, known, count in zip(sets, stored, counts, strict=True):
        end = start + max(count - len(known.get("score", ())), 0)
        whole = {
            name: np.concatenate((known.get(name, []), fresh[name][start:end])) for name in fresh
        } or known
        start = end
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(folder / f"{one.name}.npz", **whole)  # type: ignore[arg-type]
        kept.append({name: values[:count] for name, values in whole.items()})
    return kept


def _scored(metrics: Mapping[str, Metric], pairs: Sequence[tuple[str, str]]) -> dict[str, Array]:
    """All in one pass."""
    started = time.perf_counter()
    hyps, refs = zip(*pairs, strict=True)
    results = freight.score_together(list(metrics.values()), hyps, refs)
    print(f"{len(pairs)} pairs, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return {
        name if name and column == "score" else column: values
        for name, result in zip(metrics, results, strict=True)
        for column, values in result.segments.items()
    }


def best_of_references(one: Judgements, scores: Array) -> Array:
    """From a score a pair to one a row."""
    counts = [len(refs) for refs in one.refs]
    best: Array = np.maximum.reduceat(scores, np.cumsum([0, *counts[:-1]]))
    return best


@dataclass(frozen=True)
class Bench:
    """A set with its comparisons by criterion, and the scores of its rows by encoder."""

    judged: Judgements
    by: dict[str, ResampledComparison]
    plain: dict[str, Array]
    tried: dict[str, Scores]

    @classmethod
    def of(cls, one: Judgements, kept: Mapping[str, Kept], options: StatisticOptions) -> Bench:
        """With every setting of every question."""
        level, statistic = choose_statistic([one], None, None)
        every, by = np.ones(len(one), bool), {}
        for name in criteria(one, level, statistic):
            asked = comparison_of(one, every, level, statistic, name, options)
            assert isinstance(asked, ResampledComparison)
            by[name] = asked
        plain = {of: best_of_references(one, columns["score"]) for of, columns in kept.items()}
        tried = {
            of: {
                question: {AS_IT_IS: plain[of]}
                | {name: best_of_references(one, x) for name, x in settings.items()}
                for question, settings in settings_of(columns).items()
            }
            for of, columns in kept.items()
        }
        return cls(one, by, plain, tried)

    def value(self, scores: Array) -> float:
        """The mean over the criteria."""
        return float(np.mean([asked.value(scores) for asked in self.by.values()]))

    def resampled(self, scores: Array) -> Array:
        """The same in every resample."""
        return np.mean(
            [
                bootstrap_values(asked.statistic, scores, "inputs", *asked.options[:2])
                for asked in self.by.values()
            ],
            axis=0,
        )

    def mixed(self) -> dict[str, Array]:
        """Two encoders, by the share of the second."""
        one, other = self.plain.values()
        return {f"{x:g}": (1 - x) * one + x * other for x in MIXED}


class Entry(NamedTuple):
    """Scores of a column on each set beside those it is compared with."""

    title: str
    scores: list[Array]
    base: list[Array]
    picks: list[str]


def picked(benches: Sequence[Bench], values: Sequence[Mapping[str, float]]) -> list[str]:
    """For each set the setting with the best mean on the others; WMT15 has no say."""
    known = {
        one.judged.name: value
        for one, value in zip(benches, values, strict=True)
        if not one.judged.name.startswith(TOLD)
    }
    asking = [one.judged for one in benches if one.judged.name in known]
    picks = []
    for one in benches:
        others = [known[other.name] for other in fold_training_sets(asking, one.judged)]
        means = {name: np.mean([value[name] for value in others]) for name in others[0]}
        picks.append(max(means, key=means.__getitem__))
    return picks


def entries(benches: Sequence[Bench]) -> Iterator[Entry]:
    """Each question with each encoder, and then both together."""
    says = [one for one in benches if not one.judged.name.startswith(TOLD)]
    encoders = list(benches[0].plain)
    for question, settings in benches[0].tried[encoders[0]].items():
        values = [
            {
                name: float(np.mean([one.value(one.tried[of][question][name]) for of in encoders]))
                for name in settings
            }
            if one in says
            else dict[str, float]()
            for one in benches
        ]
        picks = picked(benches, values)
        for of in encoders:
            chosen = [b.tried[of][question][k] for b, k in zip(benches, picks, strict=True)]
            yield Entry(f"{of}, {question}", chosen, [b.plain[of] for b in benches], picks)
    if len(encoders) == 2:
        shares = [
            {name: one.value(x) for name, x in one.mixed().items()} if one in says else {}
            for one in benches
        ]
        picks = picked(benches, shares)
        for title, names in (("mean", ["0.5"] * len(benches)), ("share", picks)):
            both = [one.mixed()[name] for one, name in zip(benches, names, strict=True)]
            for of in encoders:
                base = [one.plain[of] for one in benches]
                yield Entry(f"both, {title} − {of}", both, base, names)


def table(benches: Sequence[Bench], columns: Sequence[Entry], plain: Sequence[str]) -> str:
    """What `freight` has x 100, and the differences, by set and criterion; then their means."""
    head = ["set", *plain, *(one.title for one in columns)]
    lines = [f"| {' | '.join(head)} |", f"| ---{' | ---:' * (len(head) - 1)} |"]
    for k, bench in enumerate(benches):
        for name, asked in bench.by.items():
            values = [f"{100 * asked.value(bench.plain[of]):.1f}" for of in plain]
            values += [_difference(asked, one.scores[k], one.base[k]) for one in columns]
            title = f"{bench.judged.name}, {name}" if len(bench.by) > 1 else bench.judged.name
            lines.append(f"| {title} | {' | '.join(values)} |")
    for title, told in (("mean of those that pick", False), ("mean of WMT15", True)):
        which = [k for k, b in enumerate(benches) if b.judged.name.startswith(TOLD) == told]
        if not which:
            continue
        means = [
            100 * np.mean([benches[k].value(benches[k].plain[of]) for k in which]) for of in plain
        ]
        shown = [f"{mean:.1f}" for mean in means]
        shown += [_mean_difference(benches, one, which) for one in columns]
        lines.append(f"| {title} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _difference(asked: ResampledComparison, scores: Array, base: Array) -> str:
    """In points, * where it is significantly better and † where it is worse."""
    far = 100 * (asked.value(scores) - asked.value(base))
    if np.array_equal(scores, base):
        return "0"
    p = asked.p_values(np.stack((scores, base)))
    return f"{_signed(far)}{'*' if p[0, 1] < P else '†' if p[1, 0] < P else ''}"


def _mean_difference(benches: Sequence[Bench], one: Entry, which: Sequence[int]) -> str:
    """With its 95 % interval: inputs are resampled, the sets and the picks are as they are."""
    pairs = [(benches[k], one.scores[k], one.base[k]) for k in which]
    far = 100 * np.mean([bench.value(x) - bench.value(base) for bench, x, base in pairs])
    drawn = [bench.resampled(x) - bench.resampled(base) for bench, x, base in pairs]
    low, high = np.quantile(100 * np.mean(drawn, axis=0), (0.025, 0.975))
    return f"{_signed(float(far))} ({_signed(low)} to {_signed(high)})"


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def settings_table(benches: Sequence[Bench]) -> str:
    """Every setting of every question: the mean over the sets that pick, by encoder."""
    says = [one for one in benches if not one.judged.name.startswith(TOLD)]
    encoders = list(benches[0].plain)
    lines = [
        f"| setting | {' | '.join(encoders)} | worst |",
        f"| ---{' | ---:' * (len(encoders) + 1)} |",
    ]
    for question, settings in benches[0].tried[encoders[0]].items():
        for name in list(settings)[1:]:
            far = np.array(
                [
                    [
                        one.value(one.tried[of][question][name]) - one.value(one.plain[of])
                        for one in says
                    ]
                    for of in encoders
                ]
            )
            k, where = np.unravel_index(far.argmin(), far.shape)
            worst = f"{_signed(100 * far.min())}, {says[where].judged.name}, {encoders[k]}"
            means = " | ".join(f"{100 * x:+.2f}".replace("-", "−") for x in far.mean(axis=1))
            lines.append(f"| {question}: {name} | {means} | {worst} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", action="append", metavar="FOLDER")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS, metavar="SET")
    parser.add_argument("--rows", type=int, default=3000, help="of each set, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save", type=Path, help="keep the scores of pairs here")
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    options = StatisticOptions(arguments.resamples, arguments.seed)
    sets = list(judged(arguments.rows, arguments.seed, arguments.sets))
    kept: dict[str, dict[str, Kept]] = {one.name: {} for one in sets}
    for given in arguments.encoder or ["embedded", str(DATA / "models/e5-small")]:
        encoder, label = freight.encoder(given), Path(given).name
        folder = arguments.save and arguments.save / label
        for one, stored in zip(sets, kept_scores(sets, encoder, folder), strict=True):
            kept[one.name][label] = stored
    benches = [Bench.of(one, kept[one.name], options) for one in sets]
    every = list(entries(benches))
    encoders = list(benches[0].plain)
    for of in (*encoders, "both"):
        columns = [one for one in every if one.title.startswith(f"{of}, ")]
        if columns:
            print(table(benches, columns, encoders if of == "both" else [of]), flush=True)
            for entry in columns:
                counted = Counter(entry.picks).most_common()
                print(f"- {entry.title}: {'; '.join(f'{n} × {k}' for k, n in counted)}", flush=True)
            print(flush=True)
    print(settings_table(benches))


if __name__ == "__main__":
    main()
