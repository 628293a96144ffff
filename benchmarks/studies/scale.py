"""What scores are like on real texts: the anchors of `freight.core.scale`, and agreement.

    python benchmarks/studies/scale.py score ENCODER [--threads 1]     # some minutes each
    python benchmarks/studies/scale.py fit

ENCODER is embedded, multilingual, e5-small, all-mpnet-base-v2, distilled (word metrics) or strings.
`score` keeps the scores of every row in build/scale/; `fit` makes of them the data file of the
package, the figures of docs/meaning.md and benchmarks/results/meaning.json.

The texts are those of wmt17-da, wmt18-da and wmt18-systems in $FREIGHT_DATA (by default ../shared).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

import freight
from freight.core.result import Result, cite
from freight.core.scale import scale_key
from freight.core.scorers import PipelineScorer
from freight.core.types import Encoder
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared")) / "data"
SCORES = Path("build/scale")
TO_ENGLISH = ("cs-en", "de-en", "et-en", "tr-en")
FROM_ENGLISH = ("en-cs", "en-et", "en-fi", "en-tr")
SHARES = {"embedded": 3, "e5-small": 8, "all-mpnet-base-v2": 16}
"""Only one row of so many is scored with an encoder that takes long."""

CONTEXTUAL = (
    "freight",
    "lazy-emd",
    "emd",
    "bert-score",
    "f-alpha",
    "yisi-1",
    "bary-score",
    "mover-score",
)
METRICS = {
    "embedded": CONTEXTUAL,
    "multilingual": CONTEXTUAL[:6],
    "e5-small": CONTEXTUAL[:6],
    "all-mpnet-base-v2": CONTEXTUAL[:6],
    "distilled": ("wrd-score", "wrd-score-code", "std", "wmd", "wmdo", "sms", "s+wms"),
    "strings": (
        *("bleu", "sentence-bleu", "chrf", "chrf++", "word-f", "ter"),
        *("rouge-1", "rouge-2", "rouge-l", "nist", "wer", "per", "character"),
    ),
}


class TextRow(NamedTuple):
    """An output beside a reference: of a system in a test set, unrelated, or almost the same."""

    kind: str  # typical, unrelated, near; system for those that systems are compared by
    pair: str
    system: str
    segment: int
    hyp: str
    ref: str


def read(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def typical(pairs: str, share: int) -> list[TextRow]:
    """One of `share` outputs of WMT17 in the language pairs that begin or end so."""
    every = [
        TextRow("typical", x["lang_pair"], x["system"], x["segment"], x["hyp"], x["refs"][0])
        for x in read("wmt17-da")
        if x["lang_pair"].endswith(pairs) or x["lang_pair"].startswith(pairs)
    ]
    return every[::share]


def by_system(pair: str, outputs: int, rng: np.random.Generator) -> list[TextRow]:
    """About so many outputs of WMT18 in a language pair: segments that all systems have, if any."""
    segments = defaultdict(list)
    for row in every_output(pair):
        segments[row.segment].append(row)
    names = sorted(segments)
    systems = len({row.system for rows in segments.values() for row in rows})
    order = sorted(rng.permutation(len(names)), key=lambda k: -len(segments[names[k]]))
    return [row for k in order[: outputs // systems] for row in segments[names[k]]]


def unrelated(rows: Sequence[TextRow], count: int, rng: np.random.Generator) -> list[TextRow]:
    """Outputs beside references of other segments in the same language."""
    languages = defaultdict(list)
    for row in rows:
        languages[row.pair.split("-")[1]].append(row)
    shuffled = []
    for several in languages.values():
        for one in rng.permutation(len(several))[: count // len(languages)]:
            row, other = several[one], several[int(rng.integers(len(several)))]
            if other.ref != row.ref:
                shuffled.append(row._replace(kind="unrelated", ref=other.ref))
    return shuffled


def near(rows: Sequence[TextRow], count: int) -> list[TextRow]:
    """Outputs of at least eight words that differ from the reference in a single word or mark."""
    chosen = {(x.hyp, x.ref): x._replace(kind="near") for x in rows if _is_near(x.hyp, x.ref)}
    return list(chosen.values())[:count]


def _is_near(hyp: str, ref: str) -> bool:
    words = hyp.split(), ref.split()
    if hyp == ref or min(map(len, words)) < 8 or abs(len(words[0]) - len(words[1])) > 1:
        return False
    changes = SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for how, a, b, c, d in changes if how != "equal") == 1


def every_output(pair: str) -> list[TextRow]:
    """All rated outputs of WMT18 in a language pair."""
    return [
        TextRow("system", pair, x["system"], x["segment"], x["hyp"], x["refs"][0])
        for x in read(f"wmt18-da.{pair}")
    ]


def rows_for(encoder: str) -> list[TextRow]:
    """The rows that are scored with an encoder, in the language that it is for."""
    rng = np.random.default_rng(0)
    if encoder == "multilingual":
        rows = typical("en-", 4) + typical("-en", 20)
        outputs = {"en-cs": 400, "en-et": 840, "en-fi": 720, "en-tr": 480}
        systems = [row for pair in FROM_ENGLISH for row in by_system(pair, outputs[pair], rng)]
        others = [row for pair in FROM_ENGLISH for row in every_output(pair)]
        return rows + systems + unrelated(rows + systems, 420, rng) + near(others, 150)
    share = SHARES.get(encoder, 1)
    rows = typical("-en", share)
    outputs = {"cs-en": 2500, "de-en": 4800, "et-en": 4200, "tr-en": 2500}
    systems = [row for pair in TO_ENGLISH for row in by_system(pair, outputs[pair] // share, rng)]
    others = [row for pair in TO_ENGLISH for row in every_output(pair)]
    return rows + systems + unrelated(rows, 2000 // share, rng) + near(others, 800 // share)


def load(name: str, encoder: str, lang: str) -> PipelineScorer:
    if encoder in ("distilled", "strings"):
        return freight.load(name)
    return freight.load(name, encoder=_encoder(encoder), lang=lang)


@cache
def _encoder(name: str) -> Encoder:
    """One for all metrics, since its weights are hashed."""
    return freight.encoder(name)


def score(encoder: str) -> None:
    """Score all rows by all metrics of an encoder, and keep the scores."""
    every = rows_for(encoder)
    kept: dict[str, Any] = {"rows": np.array([row[:4] for row in every], object)}
    languages = np.array([row.pair.split("-")[1] for row in every])
    print(
        encoder, len(every), {k: sum(r.kind == k for r in every) for k in {r.kind for r in every}}
    )
    for lang in dict.fromkeys(languages.tolist()):
        index = np.flatnonzero(languages == lang)
        hyps, refs = [every[k].hyp for k in index], [every[k].ref for k in index]
        fitted_on = [row.ref for row in every if row.pair.endswith(lang) and row.kind != "near"]
        others = [row.hyp for row in every if row.pair.endswith(lang) and row.kind != "near"]
        metrics = [load(name, encoder, lang) for name in METRICS[encoder]]
        metrics = [x.fit(fitted_on, others) if x.needs_fitting else x for x in metrics]
        results = freight.score_together(metrics, hyps, refs)
        for result in results:
            kept[f"{result.name}/{lang}"] = _stored(result, index)
        print(encoder, lang, {x.name: next(iter(x.system.values())) for x in results}, flush=True)
    SCORES.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(SCORES / f"{encoder}.npz", **kept)


def _stored(result: Result, index: Any) -> Any:
    kept = {"index": index, "scores": result.segments, "tallies": result.tallies}
    return np.array({**kept, "columns": result.columns}, object)


# From scores to scales


STEPS = (0, 1, 2, *range(5, 100, 5), 98, 99, 100)
SIZES = (25, 50, 100, 200, 400)
DRAWS = 10
RESAMPLES = 200
FEWEST = {"typical": 300, "unrelated": 50, "near": 20}


KINDS = {"typical": ("typical", "system"), "unrelated": ("unrelated",), "near": ("near",)}


class Measured(NamedTuple):
    """The scores of a metric with an encoder in one language or several, which share a scale."""

    metric: PipelineScorer
    languages: list[str]
    rows: list[Any]  # (kind, pair, system, segment)
    results: Result


def read_scores(encoder: str) -> Iterator[Measured]:
    """By metric and settings: those of several languages are one where the scale is the same."""
    with np.load(SCORES / f"{encoder}.npz", allow_pickle=True) as stored:
        every = {name: stored[name].item() for name in stored.files if name != "rows"}
        rows = stored["rows"]
    same = defaultdict(list)
    for name, one in every.items():
        metric, lang = name.split("/")
        loaded = load(metric, encoder, lang)
        if loaded.needs_fitting:
            loaded = loaded.fit(["a cat", "a dog"], ["a cat", "the dog"])
        adds_up = one["tallies"] is not None
        total = loaded.score(["a cat"], ["a cat"]).total if adds_up else None
        index = one["index"]
        result = Result(
            metric, one["columns"], one["scores"], np.zeros(len(index), np.int64),
            ((),) * len(index), loaded.signature, one["tallies"], total,
        )  # fmt: skip
        same[scale_key(loaded.signature)].append((loaded, lang, rows[index].tolist(), result))
    for several in same.values():
        results = Result.joined([result for *_, result in several])
        chosen = [row for _, _, some, _ in several for row in some]
        yield Measured(several[0][0], [lang for _, lang, *_ in several], chosen, results)


def by_kind(measured: Measured, *kinds: str) -> Array:
    return np.flatnonzero([row[0] in kinds for row in measured.rows])


def scale_record(measured: Measured, texts: str) -> dict[str, Any]:
    """The anchors of every column, and how often people agree by it."""
    result, columns = measured.results, {}
    kinds = {kind: result.only(by_kind(measured, *names)) for kind, names in KINDS.items()}
    groups = defaultdict(list)
    for k, row in enumerate(measured.rows):
        if row[0] == "system":
            groups[row[1], row[2]].append(k)
    systems = [result.only(np.array(rows)).system for rows in groups.values()]
    for column in result.columns:
        name = column.name
        three = {
            kind: percentiles(kinds[kind][name], (5, 50, 95)) for kind in ("unrelated", "near")
        }
        columns[name] = {
            "higher": column.higher,
            **three,
            "typical": percentiles(kinds["typical"][name], STEPS),
            "systems": sorted(round_to(x[name]) for x in systems),
            "unrelated_system": round_to(kinds["unrelated"].system[name]),
            "is_mean": result.total is None,
        }
    metric = measured.metric
    return {"metric": metric.name, "citation": cite(metric.signature), "texts": texts,
            "columns": columns}  # fmt: skip


def percentiles(scores: Array, steps: Sequence[float]) -> list[float]:
    known = scores[np.isfinite(scores)]
    return [round_to(x) for x in np.percentile(known, steps)]


def round_to(value: float) -> float:
    return float(f"{value:.4g}")


class Comparison(NamedTuple):
    """Pairs of systems on samples of segments: how much better by the metric and by people."""

    pair: Array  # language pair
    systems: Array  # (row, 2)
    segments: Array
    difference: Array  # of the first from the second, positive where the first is better
    agrees: Array  # of people, bool
    weights: Array  # those of a pair of systems and a size add up to 1


def human_means(pair: str) -> dict[str, float]:
    ratings = defaultdict(list)
    for x in read(f"wmt18-da.{pair}"):
        ratings[x["system"]].append(x["human"]["da_z"])
    return {system: float(np.mean(some)) for system, some in ratings.items()}


def comparisons(measured: Measured, column: str, people: dict[str, dict[str, float]]) -> Comparison:
    """Every two systems of a language pair, on random samples of the segments that all have."""
    result, rows = measured.results, measured.rows
    higher = next(c.higher for c in result.columns if c.name == column)
    rng = np.random.default_rng(0)
    parts = []
    for number, pair in enumerate(people):
        index = [k for k, row in enumerate(rows) if row[0] == "system" and row[1] == pair]
        systems = sorted({rows[k][2] for k in index})
        table: dict[int, dict[str, int]] = defaultdict(dict)
        for k in index:
            table[rows[k][3]][rows[k][2]] = k
        grid = np.array([[x[s] for s in systems] for x in table.values() if len(x) == len(systems)])
        truth = np.array([people[pair][s] for s in systems])
        i, j = np.triu_indices(len(systems), 1)
        for size in sorted({min(size, len(grid)) for size in SIZES}):
            for _ in range(DRAWS):
                some = grid[rng.permutation(len(grid))[:size]]
                scores = system_scores(result, column, some)
                difference = (scores[i] - scores[j]) * (1 if higher else -1)
                agrees = np.sign(difference) == np.sign(truth[i] - truth[j])
                ones = np.ones(len(i))
                parts.append((ones * number, np.stack((i, j), 1), ones * size, np.abs(difference),
                              agrees, ones / DRAWS))  # fmt: skip
    return Comparison(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def system_scores(result: Result, column: str, rows: Array) -> Array:
    """The score of each system on rows (segment, system)."""
    if result.total is None or result.tallies is None:
        return np.nanmean(result[column][rows], axis=0)
    sums = result.tallies[rows].sum(axis=0)
    return np.array([result.system_of(tally)[column] for tally in sums])


def fit_agreement(data: Comparison, weights: Array) -> tuple[float, float]:
    """Slope and noise of logit P = slope · difference / sqrt(1 + noise / segments)."""

    def loss(log_noise: float) -> float:
        noise = np.exp(log_noise)
        return slope_loss(data, noise, weights)(np.log(fit_slope(data, noise, weights)))

    noise = float(
        np.exp(
            minimize_scalar(loss, bounds=(0.0, 7.0), method="bounded", options={"xatol": 0.02}).x
        )
    )
    return fit_slope(data, noise, weights), noise


def fit_slope(data: Comparison, noise: float, weights: Array) -> float:
    """The slope alone, of maximum likelihood."""
    size = data.difference / np.sqrt(1.0 + noise / data.segments)
    middle = -np.log(np.average(size, weights=weights))
    loss = slope_loss(data, noise, weights)
    best = minimize_scalar(
        loss, bounds=(middle - 4, middle + 5), method="bounded", options={"xatol": 0.005}
    )
    return float(np.exp(best.x))


def slope_loss(data: Comparison, noise: float, weights: Array) -> Callable[[float], float]:
    """Minus the log-likelihood by the logarithm of the slope."""
    size = data.difference / np.sqrt(1.0 + noise / data.segments)
    signed = np.where(data.agrees, size, -size)
    return lambda log_slope: float(weights @ np.logaddexp(0.0, -np.exp(log_slope) * signed))


def predict(data: Comparison, slope: float, noise: float) -> Array:
    return 1.0 / (1.0 + np.exp(-slope * data.difference / np.sqrt(1.0 + noise / data.segments)))


def resampled_weights(data: Comparison) -> Iterator[Array]:
    """The weights in bootstrap samples of the systems of each language pair."""
    rng = np.random.default_rng(0)
    names = [(p, s) for p in np.unique(data.pair) for s in np.unique(data.systems[data.pair == p])]
    keys = {name: k for k, name in enumerate(names)}
    first = np.array([keys[p, s] for p, s in zip(data.pair, data.systems[:, 0], strict=True)])
    second = np.array([keys[p, s] for p, s in zip(data.pair, data.systems[:, 1], strict=True)])
    owner = np.array([p for p, _ in names])
    for _ in range(RESAMPLES):
        counts = np.zeros(len(names))
        for p in np.unique(owner):
            inside = np.flatnonzero(owner == p)
            counts[inside] = np.bincount(
                rng.integers(len(inside), size=len(inside)), minlength=len(inside)
            )
        yield data.weights * counts[first] * counts[second]


def calibration(data: Comparison, bins: int = 4) -> dict[str, Any]:
    """Predicted and observed agreement in bins, each language pair predicted from the others.

    The four bins that decide have equally many rows; beside them are four of equal width from .5
    to 1. A bin is predicted, observed, the 95 % interval of the observed from resampled systems,
    and its share of the data.
    """
    predicted = np.zeros(len(data.pair))
    for pair in np.unique(data.pair):
        held = data.pair == pair
        slope, noise = fit_agreement(data, data.weights * ~held)
        predicted[held] = predict(data, slope, noise)[held]
    order = np.argsort(predicted)
    place = np.empty(len(order))
    place[order] = np.cumsum(data.weights[order]) / data.weights.sum()
    cuts = {"equal count": place, "equal width": 2 * predicted - 1}
    return {how: _bins(np.minimum((x * bins).astype(int), bins - 1), predicted, data)
            for how, x in cuts.items()}  # fmt: skip


def _bins(number: Array, predicted: Array, data: Comparison) -> list[list[float]]:
    table = []
    samples = [*resampled_weights(data)]
    for k in np.unique(number):
        inside = number == k
        weights = data.weights[inside]
        values = (np.average(x[inside], weights=weights) for x in (predicted, data.agrees))
        share = weights.sum() / data.weights.sum()
        drawn = [x[inside] for x in samples if x[inside].any()]
        observed = [np.average(data.agrees[inside], weights=x) for x in drawn]
        interval = np.percentile(observed, (2.5, 97.5))
        table.append([round(float(x), 3) for x in (*values, *interval, share)])
    return table


TEXTS = {"to": "WMT17 and WMT18 into English", "from": "WMT17 and WMT18 from and into English"}
PACKAGE_FILE = Path("src/freight/core/scale.json")
GAP = 0.05  # a fit that is further off on language pairs that it has not seen is not shipped
FIGURES_FILE = Path("benchmarks/results/meaning.json")


def fit() -> None:
    """Make the data file of the package, and the figures of the documentation."""
    scales, figures = {}, {}
    for encoder in METRICS:
        if not (SCORES / f"{encoder}.npz").is_file():
            print(f"{encoder}: not scored")
            continue
        others = encoder == "multilingual"
        people = {pair: human_means(pair) for pair in (FROM_ENGLISH if others else TO_ENGLISH)}
        for measured in read_scores(encoder):
            if any(len(by_kind(measured, *KINDS[k])) < few for k, few in FEWEST.items()):
                print(f"{measured.metric.name}, {measured.languages}: too few texts")
                continue
            record = scale_record(measured, TEXTS["from" if others else "to"])
            pairs = {row[1] for row in measured.rows if row[0] == "system"}
            if pairs >= {*people}:
                column = measured.results.columns[0].name
                fitted = agreement(measured, column, people)
                if largest_gap(fitted) <= GAP:
                    record["columns"][column]["agreement"] = fitted["parameters"]
                figures[record["citation"].rsplit("|", 2)[0]] = fitted
            scales[scale_key(measured.metric.signature)] = record
            print(record["citation"], len(measured.rows), flush=True)
    PACKAGE_FILE.write_text(
        json.dumps({"percentiles": STEPS, "scales": scales}, separators=(",", ":")) + "\n"
    )
    FIGURES_FILE.write_text(json.dumps({"agreement": figures}, indent=1) + "\n")
    write_table()


PAGE = Path("docs/meaning.md")
SHOWN = (
    "freight",
    "lazy-emd",
    "emd",
    "bert-score",
    "bary-score",
    "mover-score",
    "std",
    "wmd",
    "chrf",
)
SHOWN_ENCODERS = (
    "all-MiniLM-L6-v2",
    "distilled",
    "multilingual-e5-small",
    "e5-small",
    "all-mpnet-base-v2",
    "sacrebleu",
)


def calibration_table(figures: dict[str, Any]) -> str:
    """The table of the page: predicted and observed agreement of people, by metric."""
    lines = [
        "| metric | 1 | 2 | 3 | 4 | largest gap | of equal width |",
        "| --- | --- | --- | --- | --- | ---: | ---: |",
    ]
    for name, fitted in figures.items():
        metric, encoder = name.split("|")[:2]
        if metric in SHOWN and encoder.split(":")[0] in SHOWN_ENCODERS:
            rows = fitted["held out"]["equal count"]
            bins = [f"{a:.2f}, {b:.2f} ({low:.2f}–{high:.2f})" for a, b, low, high, _ in rows]
            gaps = " | ".join(f"{largest_gap(fitted, how):.3f}" for how in BINS)
            lines.append(f"| `{metric}`, {encoder} | {' | '.join(bins)} | {gaps} |")
    return "\n".join(lines)


BINS = ("equal count", "equal width")


def largest_gap(fitted: dict[str, Any], how: str = BINS[0]) -> float:
    """Between predicted and observed, by default in the bins with equally many rows."""
    return max(abs(a - b) for a, b, *_ in fitted["held out"][how])


def write_table() -> None:
    """Put the table into the page, between its marks."""
    figures = json.loads(FIGURES_FILE.read_text())["agreement"]
    before, rest = PAGE.read_text().split("<!-- calibration -->")
    _, after = rest.split("<!-- /calibration -->")
    table = f"<!-- calibration -->\n{calibration_table(figures)}\n<!-- /calibration -->"
    PAGE.write_text(f"{before}{table}{after}")


def agreement(
    measured: Measured, column: str, people: dict[str, dict[str, float]]
) -> dict[str, Any]:
    """The probability that people agree, by difference and segments; its interval; calibration."""
    data = comparisons(measured, column, people)
    slope, noise = fit_agreement(data, data.weights)
    slopes = [fit_slope(data, noise, weights) for weights in resampled_weights(data)]
    low, high = np.percentile(slopes, (2.5, 97.5))
    pairs = len(np.unique(np.column_stack((data.pair, data.systems)), axis=0))
    return {
        "parameters": [round_to(x) for x in (slope, low, high, noise, data.segments.max())],
        "pairs of systems": pairs,
        "held out": calibration(data),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("score", "fit"))
    parser.add_argument("encoder", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    freight.set_threads(asked.threads)
    for one in asked.encoder:
        score(one)
    if asked.what == "fit":
        fit()
