"""What a trained metric reads: checks of the trained and the untrained one side by side, as a page.

    python benchmarks/studies/robustness.py ADAPTER [--encoder embedded] [--rows 250]

ADAPTER is a folder that `freight train metric` wrote, or the name of a shipped one. Sets are those
in $FREIGHT_DATA (by default ../shared). Writes docs/studies/robustness.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import freight
from edits import Edited, by_hand, drops, mechanical
from freight.core.scorers import PipelineScorer
from freight.data.judgement_files import read_ratings
from freight.data.judgements import Judgements
from freight.encoders.cache import MemoryCached
from freight.judge import judge
from freight.learn import Adapter, read_adapter
from freight.transport.types import Array
from writing import bullets, table

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
OUTPUT = Path(__file__).parents[2] / "docs/studies/robustness.md"
UNTRAINED, TRAINED = "untrained", "trained"
SETS = ("wmt15-da", "ted-mqm.zh-en", "realsumm", "webnlg2020-en", "flickr8k-expert", "wrdscore")
CALIBRATED = "wmt15-da"
SHUFFLES = 3
BINS = 10

Metrics = dict[str, PipelineScorer]


class Blind(NamedTuple):
    """A metric that sees another text's reference: r with the ratings, and without lengths."""

    name: str
    rows: int
    length: float
    raw: dict[str, float]
    partial: dict[str, float]
    p: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("adapter")
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=250, help="of each set, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    adapter = read_adapter(arguments.adapter)
    encoder = MemoryCached(freight.encoder(arguments.encoder, device=arguments.device))
    metrics: Metrics = {
        UNTRAINED: freight.load(adapter.metric, encoder=encoder),
        TRAINED: freight.load(adapter.metric, encoder=encoder, adapter=adapter),
    }
    parts = [part for name in SETS for part in _parts(name, arguments.rows, arguments.seed)]
    page = [
        introduction(adapter, arguments.rows),
        blindness([check_blind(metrics, part, arguments.seed) for part in parts]),
        small_edits(metrics, arguments.seed),
        domains(metrics, parts, adapter),
        calibration(metrics, [part for part in parts if part.name.startswith(CALIBRATED)]),
    ]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text("\n".join(page), encoding="utf-8")


def _parts(name: str, rows: int, seed: int) -> Iterator[Judgements]:
    """A set by language pair, those into English, at most so many rows of each."""
    judged = read_ratings(DATA / f"data/{name}.jsonl.gz")
    for part in judged.split():
        pair = part.lang_pairs[0] if part.lang_pairs else "en"
        if "-" in pair and not pair.endswith("-en"):
            continue
        order = np.random.default_rng(seed).permutation(len(part))[:rows]
        yield replace(part.only(np.sort(order)), notes=())


def introduction(adapter: Adapter, rows: int) -> str:
    data = ", ".join(str(one["name"]) for one in adapter.provenance.get("data", ()))
    return f"""# What a trained metric reads

A metric that is trained on ratings can learn to read the wrong thing: how long or how fluent a text
is, whatever the reference says. This page has checks of `{adapter.metric}` with the adapter
`{adapter.name}` (encoder {adapter.encoder}; trained on {data or "its own ratings"}) and without it.
`python benchmarks/studies/robustness.py {adapter.name}.{adapter.encoder}` makes it, of at most
{rows:,} rows of each language pair.
"""


def check_blind(metrics: Metrics, judged: Judgements, seed: int) -> Blind:
    """Agreement when every text is compared with the references of another segment."""
    human = _target(judged)
    lengths = _lengths(judged.hyps)
    draws = [_shuffled(judged, np.random.default_rng([seed, k])) for k in range(SHUFFLES)]
    raw, partial, p = {}, {}, {}
    for name, metric in metrics.items():
        both = []
        for refs in draws:
            scores = metric.score(judged.hyps, refs)["score"]
            controls = np.column_stack([lengths, _lengths([one[0] for one in refs])])
            both.append((_pearson(scores, human), _partial(scores, human, controls)))
        raw[name], partial[name] = np.mean(both, axis=0).tolist()
        p[name] = _p_of_r(partial[name], len(judged) - 4)
    best = np.sqrt(max(0.0, _explained(human, lengths[:, None])))
    return Blind(judged.name, len(judged), float(best), raw, partial, p)


def _shuffled(judged: Judgements, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """The references of another segment for each row, each segment taking those of one other."""
    names = np.unique(judged.segments)
    order = rng.permutation(len(names))
    other = dict(zip(names[order].tolist(), names[np.roll(order, 1)].tolist(), strict=True))
    first = {int(judged.segments[k]): judged.refs[k] for k in range(len(judged))}
    return [first[other[int(segment)]] for segment in judged.segments]


def blindness(checks: Sequence[Blind]) -> str:
    rows = [
        [
            one.name,
            f"{one.rows:,}",
            f"{one.length:.3f}",
            *(f"{one.raw[name]:.3f}" for name in (UNTRAINED, TRAINED)),
            *(f"{one.partial[name]:+.3f} ({_p(one.p[name])})" for name in (UNTRAINED, TRAINED)),
        ]
        for one in checks
    ]
    head = (
        "set",
        "rows",
        "length alone",
        UNTRAINED,
        TRAINED,
        f"{UNTRAINED}, beyond",
        "trained, beyond",
    )
    sure = {name: sum(one.p[name] < 0.05 for one in checks) for name in (TRAINED, UNTRAINED)}
    worst = max(checks, key=lambda one: abs(one.partial[TRAINED]))
    verdict = bullets(
        [
            f"Beyond length the trained metric keeps at most r {worst.partial[TRAINED]:+.3f}"
            f" ({worst.name}; untrained {worst.partial[UNTRAINED]:+.3f}); the mean of the absolute"
            f" values is {np.mean([abs(x.partial[TRAINED]) for x in checks]):.3f}, untrained"
            f" {np.mean([abs(x.partial[UNTRAINED]) for x in checks]):.3f}.",
            f"On {sure[TRAINED]} of {len(checks)} sets that is more than chance (p < .05),"
            f" untrained on {sure[UNTRAINED]}:"
            " where it is, the trained metric has learned something of the text itself, such as how"
            " fluent it is.",
        ]
    )
    return f"""## The hypothesis alone

Every text is scored against the references of another segment of its set (mean of {SHUFFLES}
draws), so that agreement with the ratings can come from the text alone. *Length alone* is the
multiple correlation of the ratings with the length of the text in characters and its logarithm; the
last two columns are the partial correlation of the blind score with the ratings when the lengths of
both texts are taken out, with its two-sided p-value.

{table(head, rows)}

{verdict}
"""


EDIT_PAIRS = (
    ("negation", "filler"),
    ("number", "casing"),
    ("deletion", "punctuation"),
    ("number", "filler"),
)


def small_edits(metrics: Metrics, seed: int) -> str:
    ruled, ours = mechanical(150, seed), by_hand()
    shares = {name: _drops(metric, ruled) for name, metric in metrics.items()}
    own = {name: _drops(metric, ours) for name, metric in metrics.items()}
    costs = [
        [edit, *(f"{np.nanmean(shares[name][edit]):.3f}" for name in metrics)]
        for edit in ruled.hyps
    ]
    costs += [
        [f"{edit} (our own)", *(f"{np.nanmean(own[name][edit]):.3f}" for name in metrics)]
        for edit in ours.hyps
    ]
    orders = [
        [f"{a} costs more than {b}", *(f"{_wins(shares[name], a, b):.2f}" for name in metrics)]
        for a, b in EDIT_PAIRS
    ]
    orders.append(
        [
            "negation costs more than synonym (our own)",
            *(f"{_wins(own[name], 'negation', 'synonym'):.2f}" for name in metrics),
        ]
    )
    for kind in ("swap", "deletion"):
        steps = [kind, f"{kind} 2", f"{kind} 4"]
        falls = [f"{_falling(shares[name], steps):.2f}" for name in metrics]
        orders.append([f"{kind}: 1, 2, 4 of them cost more and more", *falls])
    return f"""## Small edits

The edits of [what a small edit costs](edits.md): the mean share of the way from a sentence itself
to another one that an edit takes.

{table(("edit", *metrics), costs)}

The share of sentences for which it is so; 0.5 is chance in comparisons of two edits.

{table(("order", *metrics), orders)}
"""


def _drops(metric: PipelineScorer, edited: Edited) -> dict[str, Array]:
    return drops(metric, ("score",), edited)["score"]


def _wins(shares: dict[str, Array], one: str, other: str) -> float:
    both = np.isfinite(shares[one]) & np.isfinite(shares[other])
    gap = shares[one][both] - shares[other][both]
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))


def _falling(shares: dict[str, Array], steps: Sequence[str]) -> float:
    costs = np.stack([np.zeros(len(shares[steps[0]])), *(shares[step] for step in steps)])
    costs = costs[:, np.isfinite(costs).all(axis=0)]
    return float(np.mean((np.diff(costs, axis=0) > 0).all(axis=0)))


def domains(metrics: Metrics, parts: Sequence[Judgements], adapter: Adapter) -> str:
    without = [replace(one, human=_criteria(one)) for one in parts]
    both = {name: metrics[name] for name in (TRAINED, UNTRAINED)}
    study = judge(both, without, resamples=1000, sentinels=False)
    values = {(one.metric, one.set, one.human): one for one in study.agreements}
    known = {str(one["name"]) for one in adapter.provenance.get("data", ())}
    rows = []
    for one in study.agreements:
        if one.metric != TRAINED:
            continue
        before = values[UNTRAINED, one.set, one.human].value
        p = study.significance.get((one.set, one.human))
        better, worse = ("–", "–") if p is None else (_p(float(p[0, 1])), _p(float(p[1, 0])))
        label = f"{one.set} {one.human}".strip() + (" (trained on)" if one.set in known else "")
        numbers = f"{before:.3f}", f"{one.value:.3f}", f"{one.value - before:+.3f}"
        rows.append([label, f"{one.rows:,}", *numbers, better, worse])
    head = ("set, criterion", "rows", UNTRAINED, TRAINED, "gain", "p better", "p worse")
    return f"""## Other domains

Pearson's r with the ratings, and one-sided p-values: the trained metric agrees better, or worse.

{table(head, rows)}
"""


def calibration(metrics: Metrics, parts: Sequence[Judgements]) -> str:
    """A line from score to rating, fitted on the other language pairs of the set."""
    rows = []
    totals: dict[str, list[float]] = {name: [] for name in metrics}
    scores = {
        (name, one.name): metric.score(one.hyps, one.refs)["score"]
        for name, metric in metrics.items()
        for one in parts
    }
    for left_out in parts:
        cells = [left_out.name, f"{len(left_out):,}"]
        for name in metrics:
            others = [one for one in parts if one is not left_out]
            x = np.concatenate([scores[name, one.name] for one in others])
            y = np.concatenate([_target(one, standard=False) for one in others])
            slope, start = np.polyfit(x, y, 1)
            said = start + slope * scores[name, left_out.name]
            true = _target(left_out, standard=False)
            error = _calibration_error(said, true)
            totals[name].append(error)
            cells += [f"{error:.3f}", f"{np.sqrt(np.mean((said - true) ** 2)):.3f}"]
        rows.append(cells)
    means = [f"{np.mean(totals[name]):.3f}" for name in metrics]
    rows.append(["mean", "", means[0], "", means[1], ""])
    head = (
        "left out",
        "rows",
        *(f"{name} {what}" for name in metrics for what in ("error", "RMSE")),
    )
    identical = [
        float(metric.score(["It is so."], ["It is so."])["score"][0]) for metric in metrics.values()
    ]
    return f"""## Calibration

A line from score to rating is fitted on the other language pairs of WMT15, and read on the one
left out: whether a score means the same rating elsewhere. *Error* is the mean distance of the
rating that the line says from the mean rating, over {BINS} bins of equal size; *RMSE* is that of
single ratings.

{table(head, rows)}

A text that is its own reference has {identical[0]:.3f} untrained and {identical[1]:.3f} trained.
"""


def _calibration_error(said: Array, true: Array) -> float:
    bins = np.array_split(np.argsort(said, kind="stable"), BINS)
    gaps = [abs(said[rows].mean() - true[rows].mean()) * len(rows) for rows in bins]
    return float(np.sum(gaps) / len(said))


def _criteria(judged: Judgements) -> dict[str, Array]:
    return {name: values for name, values in judged.human.items() if name != "ratings"}


def _target(judged: Judgements, standard: bool = True) -> Array:
    """The mean over criteria, each standardised unless its own scale is wanted."""
    columns = np.stack(list(_criteria(judged).values()))
    if standard:
        columns = (columns - np.nanmean(columns, axis=1, keepdims=True)) / np.nanstd(
            columns, axis=1, keepdims=True
        )
    return np.nan_to_num(np.nanmean(columns, axis=0))


def _lengths(texts: Sequence[str]) -> Array:
    characters = np.array([len(text) for text in texts], np.float64)
    return np.log1p(characters)


def _residual(values: Array, controls: Array) -> Array:
    design = np.column_stack([np.ones(len(values)), controls])
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def _explained(values: Array, controls: Array) -> float:
    design = np.column_stack([controls, np.expm1(controls)])
    return 1.0 - float(np.var(_residual(values, design)) / np.var(values))


def _pearson(x: Array, y: Array) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _partial(x: Array, y: Array, controls: Array) -> float:
    design = np.column_stack([controls, np.expm1(controls)])
    return _pearson(_residual(x, design), _residual(y, design))


def _p_of_r(r: float, freedom: int) -> float:
    t = r * np.sqrt(freedom / max(1e-12, 1 - r * r))
    return float(2 * stats.t.sf(abs(t), freedom))


def _p(p: float) -> str:
    return "<.001" if p < 0.0005 else ">.999" if p > 0.9995 else f"{p:.3f}"[1:]


if __name__ == "__main__":
    main()
