"""Agreement with people in languages other than English: figures, and the tables of the pages.

    python benchmarks/studies/languages.py SCORES             # score, then write figures and tables
    python benchmarks/studies/languages.py SCORES --no-score  # figures and tables of what is there
    python benchmarks/studies/languages.py                    # tables from the stored figures

SCORES is a folder. Rows come in an order of its own, segment by segment, a block of each set in
turn; an interrupted run goes on where it was, and its figures are of the rows that are there. Sets
of WMT are looked for in $FREIGHT_DATA.
"""

import argparse
import gzip
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import freight
from freight.data.languages import language_name
from freight.metrics.bert_score import ALPHA
from freight.metrics.lazy_emd import HYP_PENALTY, REF_PENALTY
from freight.transport.types import Array

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/languages.json"
GUIDE = ROOT / "docs/languages.md"
DATA = Path(os.environ.get("FREIGHT_DATA", ROOT.parent / "shared")) / "data"
TAU_FROM = 25.0
"""WMT18 took one output for better than another from this difference of raw ratings on."""

SETS = {
    "WMT17 en-zh": ("wmt17-da", "en-zh"),
    "WMT17 en-ru": ("wmt17-da", "en-ru"),
    "WMT15 en-ru": ("wmt15-da", "en-ru"),
    "WMT18 en-cs": ("wmt18-da.en-cs", "en-cs"),
    "WMT18 en-et": ("wmt18-da.en-et", "en-et"),
    "WMT18 en-fi": ("wmt18-da.en-fi", "en-fi"),
    "WMT18 en-tr": ("wmt18-da.en-tr", "en-tr"),
    **{f"WMT15 {x}-en": ("wmt15-da", f"{x}-en") for x in ("cs", "de", "fi", "ru")},
    **{
        f"WMT17 {x}-en": ("wmt17-da", f"{x}-en") for x in ("cs", "de", "fi", "lv", "ru", "tr", "zh")
    },
}
FROM_ENGLISH = ("en-cs", "en-et", "en-fi", "en-tr")
"""The pairs of WMT18 whose raw ratings are at hand, and with them the preferences."""
GROUPS = ("multilingual", "embedded", "strings")
PENALTIES = ((0.23, 0.31), (0.009, 0.95), (0.018, 0.97), (1.0, 1.0))
ALPHAS = (0.48, 0.9, 0.96)
GUIDE_COLUMNS = {
    "freight": "freight:score",
    "bert-score": "bert-score:f1",
    "lazy-emd": "lazy-emd:objective",
    "freight, embedded": "freight, embedded:score",
    "chrf": "chrf:score",
}
TABLE_2 = {
    "sentBLEU": "sentence-bleu:score",
    "P_BERT": "bert-score:precision",
    "R_BERT": "bert-score:recall",
    "F_BERT": "bert-score:f1",
    "YiSi-1": "yisi-1:f",
    "F_alpha": "f-alpha:f",
    "EMD": "emd:transport",
    "Lazy-EMD": "lazy-emd:transport",
    "Lazy-EMD, objective": "lazy-emd:objective",
    "`freight`": "freight:score",
}
"""The rows of the paper's Table 2, then ours, and where their scores are."""


class Ratings(NamedTuple):
    """Rows of a set in the order they are scored in, and preferences (pair, better and worse)."""

    language: str
    rows: list[dict[str, Any]]
    preferences: Array


def main() -> None:
    """Score and count as far as is asked for, and write the guide's tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("scores", nargs="?", type=Path, help="a folder for scores")
    parser.add_argument("--no-score", action="store_true", help="take the scores that are there")
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="SET")
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=GROUPS)
    parser.add_argument("--multilingual", default="multilingual", help="the encoder, or its folder")
    parser.add_argument("--block", type=int, default=256, help="rows that are scored at a time")
    given = parser.parse_args()
    if given.scores and not given.no_score:
        score(given.scores, given.groups, given.sets, given.multilingual, given.block)
    if given.scores:
        RESULTS.write_text(json.dumps(figures(given.scores), indent=1, ensure_ascii=False) + "\n")
    guide = GUIDE.read_text("utf-8")
    for name, text in {"figures": table(), "settings": settings_table()}.items():
        start, end = marks(name)
        before, _, rest = guide.partition(start)
        guide = f"{before}{start}\n\n{text}\n{end}{rest.partition(end)[2]}"
    GUIDE.write_text(guide, encoding="utf-8")


def marks(name: str) -> tuple[str, str]:
    """What is before and after a table of the guide."""
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def read(name: str) -> Ratings:
    """A set; WMT18's official preferences are those of its raw ratings."""
    rows = rows_of(*SETS[name])
    segments: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        segments.setdefault(row["segment"], []).append(row)
    every = list(segments.values())
    shuffled = [every[k] for k in np.random.default_rng(0).permutation(len(every))]
    ordered = [row for several in shuffled for row in several]
    preferences: list[tuple[int, int]] = []
    if "da_raw" in rows[0]["human"]:
        start = 0
        for several in shuffled:
            preferences += _preferences(several, start)
            start += len(several)
    language = rows[0]["lang_pair"].rpartition("-")[2]
    return Ratings(language, ordered, np.array(preferences).reshape(-1, 2))


def rows_of(file: str, pair: str) -> list[dict[str, Any]]:
    """The rows of a file that are of this language pair."""
    with gzip.open(DATA / f"{file}.jsonl.gz", "rt", encoding="utf-8") as stream:
        return [row for row in map(json.loads, stream) if row["lang_pair"] == pair]


def _preferences(several: list[dict[str, Any]], start: int) -> Iterator[tuple[int, int]]:
    """Of the outputs for one segment."""
    for (i, one), (j, other) in combinations(enumerate(several, start), 2):
        gap = one["human"]["da_raw"] - other["human"]["da_raw"]
        if abs(gap) >= TAU_FROM:
            yield (i, j) if gap > 0 else (j, i)


def metrics_for(group: str, lang: str, encoder: Any) -> dict[str, Any]:
    """Those of one group by label; they share the encoder, if they have any."""
    if group == "strings":
        bleu = freight.load("sentence-bleu", lang=lang)
        return {"chrf": freight.load("chrf"), "sentence-bleu": bleu}
    if group == "embedded":
        return {"freight, embedded": freight.load("freight", encoder=encoder)}
    shared = {"encoder": encoder, "lang": lang}
    plain = ("freight", "bert-score", "f-alpha", "yisi-1", "emd", "lazy-emd")
    metrics = {name: freight.load(name, **shared) for name in plain}
    for hyp, ref in PENALTIES:
        label = f"lazy-emd({hyp:g},{ref:g})"
        metrics[label] = freight.load("lazy-emd", hyp=hyp, ref=ref, **shared)
    for alpha in ALPHAS:
        metrics[f"f-alpha({alpha:g})"] = freight.load("f-alpha", alpha=alpha, **shared)
    return metrics


def score(folder: Path, groups: list[str], names: list[str], multilingual: str, block: int) -> None:
    """A block of each set in turn, until all rows are scored."""
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for group in groups:
        begun = {}
        chosen = {"multilingual": multilingual, "embedded": "embedded"}.get(group)
        encoder = freight.encoder(chosen) if chosen else None
        for name in names:
            ratings = read(name)
            refs = list(dict.fromkeys(ref for row in ratings.rows for ref in row["refs"]))
            metrics = {
                label: metric.fit(refs) if metric.needs_fitting else metric
                for label, metric in metrics_for(group, ratings.language, encoder).items()
            }
            begun[name] = ratings, metrics
        most = max(len(ratings.rows) for ratings, _ in begun.values())
        for _ in range(0, most, block):
            for name, (ratings, metrics) in begun.items():
                _add_block(folder / f"{name}.{group}.npz", ratings, metrics, block)


def _add_block(path: Path, ratings: Ratings, metrics: Mapping[str, Any], block: int) -> None:
    before = _load(path)
    start = _count(before)
    rows = ratings.rows[start : start + block]
    if not rows:
        return
    results = freight.score_together(
        list(metrics.values()), [row["hyp"] for row in rows], [row["refs"] for row in rows]
    )
    scores = {
        f"{label}:{column.name}": result[column.name] if column.higher else -result[column.name]
        for label, result in zip(metrics, results, strict=True)
        for column in result.columns
    }
    whole: dict[str, Any] = {
        key: np.concatenate((before.get(key, []), own)) for key, own in scores.items()
    }
    part = path.with_suffix(".part.npz")
    np.savez(part, **whole)
    part.rename(path)
    print(path.stem, _count(whole), "of", len(ratings.rows), flush=True)


def stored_scores(folder: Path, name: str) -> dict[str, Array]:
    """By metric and column, higher is better, of the rows that all groups have."""
    parts = [_load(folder / f"{name}.{group}.npz") for group in GROUPS]
    count = min(map(_count, parts))
    return {key: values[:count] for part in parts for key, values in part.items()} if count else {}


def _load(path: Path) -> dict[str, Array]:
    return dict(np.load(path)) if path.exists() else {}


def _count(scores: Mapping[str, Array]) -> int:
    return len(next(iter(scores.values()), ()))


def figures(folder: Path) -> dict[str, Any]:
    """By set Pearson's r of every column, and τ where there are preferences."""
    stored: dict[str, Any] = {}
    for name in SETS:
        scores = stored_scores(folder, name)
        if not scores:
            continue
        ratings, count = read(name), _count(scores)
        people = np.array([row["human"]["da_z"] for row in ratings.rows[:count]])
        one: dict[str, Any] = {
            "language": ratings.language,
            "rows": count,
            "of": len(ratings.rows),
            "r": {key: round(_pearson(values, people), 4) for key, values in scores.items()},
        }
        inside = ratings.preferences[(ratings.preferences < count).all(axis=1)]
        if len(inside):
            one["preferences"] = {"rows": len(inside), "of": len(ratings.preferences)}
            one["τ"] = {key: round(_tau(values, inside), 4) for key, values in scores.items()}
        stored[name] = one
    return stored


def _pearson(scores: Array, people: Array) -> float:
    kept = ~np.isnan(scores)
    return float(np.corrcoef(scores[kept], people[kept])[0, 1])


def _tau(scores: Array, preferences: Array) -> float:
    """A tie counts against the metric."""
    return float(np.mean(np.where(np.greater(*scores[preferences.T]), 1.0, -1.0)))


def table() -> str:
    """The stored figures as a table of Markdown, the best of each row in bold."""
    stored = _stored()
    lines = _header("language and set", ("rows", *GUIDE_COLUMNS))
    for name, one in stored.items():
        if one["language"] != "en":
            language = language_name(one["language"])
            lines.append(_row(f"{language}, {name} | {_rows(one)}", one["r"]))
            if "τ" in one:
                rows = _rows(one["preferences"])
                lines.append(_row(f"{language}, {name} τ | {rows}", one["τ"]))
    for year in ("WMT15", "WMT17"):
        several = [
            one for name, one in stored.items() if name.startswith(year) and name[-2:] == "en"
        ]
        if several:
            total = {key: sum(one[key] for one in several) for key in ("rows", "of")}
            label = f"English, {year}, mean of {len(several)} pairs | {_rows(total)}"
            lines.append(_row(label, _mean([one["r"] for one in several])))
    return "\n".join(lines) + "\n"


def settings_table() -> str:
    """The settings of the Lazy-EMD paper on every set; the paper's for the language has a star."""
    penalties = {f"{_short(hyp)}, {_short(ref)}": f"({hyp:g},{ref:g})" for hyp, ref in PENALTIES}
    alphas = {f"α {_short(alpha)}": f"f-alpha({alpha:g}):f" for alpha in ALPHAS}
    tables = [_header("penalties", penalties), _header("α", alphas)]
    for name, one in _stored().items():
        if one["language"] != "en":
            figures, tau = (one["τ"], " τ") if "τ" in one else (one["r"], "")
            chosen = _paper_settings(one["language"])
            cells = [
                f"{_figure(figures[f'lazy-emd{key}:objective'])}"
                f" ({_figure(figures[f'lazy-emd{key}:transport'])})"
                f"{'*' if key == chosen[0] else ''}"
                for key in penalties.values()
            ]
            others = [
                f"{_figure(figures[key])}{'*' if label == chosen[1] else ''}"
                for label, key in alphas.items()
            ]
            first = f"{language_name(one['language'])}, {name}{tau}"
            for lines, own in zip(tables, (cells, others), strict=True):
                lines.append(f"| {first} | {' | '.join(own)} |")
    return "\n\n".join(map("\n".join, tables)) + "\n"


def _paper_settings(lang: str) -> tuple[str, str]:
    hyp, ref = HYP_PENALTY.choose(lang), REF_PENALTY.choose(lang)
    return f"({hyp:g},{ref:g})", f"α {_short(ALPHA.choose(lang))}"


def beside_published(published: Mapping[str, Mapping[str, float]]) -> str:
    """The rows of the paper's Table 2, by row and pair, beside ours with the same encoder."""
    stored = _stored()
    tau = {name[6:]: one for name, one in stored.items() if "τ" in one}
    rated = {name: one for name, one in stored.items() if one["language"] != "en"}
    counts = "; ".join(f"{pair} {_rows(one['preferences'])}" for pair, one in tau.items())
    lines = [
        "From English with an encoder that reads these languages: `multilingual`"
        " (multilingual-e5-small in 4 bits, 118 million parameters) beside the published"
        " bert-base-multilingual-cased (178 million). WMT18's preferences are raw ratings that"
        " differ by 25 or more; ours are made so (on cs-en, et-en, tr-en and en-cs they are exactly"
        f" the official ones): {counts}.",
        "",
        *_header("τ", [f"{pair}, {who}" for pair in tau for who in ("published", "ours")]),
    ]
    printed = {pair: {row: values[pair] for row, values in published.items()} for pair in tau}
    columns = [
        values
        for pair, one in tau.items()
        for values in (printed[pair], {row: one["τ"][key] for row, key in TABLE_2.items()})
    ]
    lines += _body(columns)
    lines += [
        "",
        "On each pair of either side recall is above precision, and Lazy-EMD above EMD.",
        "",
        "Pearson's r with the ratings themselves, and with those of WMT15 and WMT17. The published"
        " figures for en-ru and en-zh are τ of WMT18, which is not at hand, with"
        " bert-base-multilingual-cased and bert-base-chinese:",
        "",
        *_header("r", ["en-ru, published τ", "en-zh, published τ", *rated]),
        f"| rows | 22k | 29k | {' | '.join(map(_rows, rated.values()))} |",
    ]
    columns = [
        {row: values[pair] for row, values in published.items()} for pair in ("en-ru", "en-zh")
    ]
    columns += [{row: one["r"][key] for row, key in TABLE_2.items()} for one in rated.values()]
    return "\n".join((*lines, *_body(columns)))


def _body(columns: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """The rows of the paper's Table 2, the best of each column in bold."""
    best = [max(values.values()) for values in columns]
    for row in TABLE_2:
        cells = [_figure(values.get(row, np.nan)) for values in columns]
        bold = [values.get(row) == most for values, most in zip(columns, best, strict=True)]
        marked = [f"**{x}**" if first else x for x, first in zip(cells, bold, strict=True)]
        yield f"| {row} | {' | '.join(marked)} |"


def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return stored


def _header(first: str, columns: Iterable[str]) -> list[str]:
    every = [first, *columns]
    return [f"| {' | '.join(every)} |", f"| ---{' | ---:' * (len(every) - 1)} |"]


def _row(first: str, values: Mapping[str, float]) -> str:
    numbers = [values.get(key, np.nan) for key in GUIDE_COLUMNS.values()]
    best = int(np.nanargmax(numbers))
    cells = [f"**{_figure(x)}**" if k == best else _figure(x) for k, x in enumerate(numbers)]
    return f"| {first} | {' | '.join(cells)} |"


def _rows(one: Mapping[str, int]) -> str:
    """How many rows, and of how many where those are not all."""
    return f"{one['rows']:,}" + (f" of {one['of']:,}" if one["rows"] < one["of"] else "")


def _mean(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in several])) for key in several[0]}


def _figure(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}".replace("0.", ".", 1)


def _short(value: float) -> str:
    return f"{value:g}".removeprefix("0")


if __name__ == "__main__":
    main()
