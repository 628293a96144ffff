"""What a trained metric forgets: its agreement with people as its adapter becomes stronger.

    python benchmarks/studies/forgetting.py ADAPTER [--encoder embedded] [--rows 10000]

ADAPTER is a folder that `freight train metric` wrote, or freight-da.embedded; it must not be
trained on a set of `SETS`, each of which is scored at every strength of what was fitted. They are
in $FREIGHT_DATA (by default ../shared). Writes the figures to benchmarks/results/fitting.json and
draws docs/studies/forgetting.svg.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import freight
from freight.core.scorers import PipelineScorer
from freight.data.judgement_files import read_ratings
from freight.data.judgements import Judgements
from freight.judge.correlation import pearson
from freight.learn import read_adapter
from freight.report.plots import ACCENT, INK, MUTED, WARN, picture
from writing import standing_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/fitting.json"
FIGURE = ROOT / "docs/studies/forgetting.svg"
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)
SETS = {
    "wmt15-da": "WMT15 into English",
    "ted-mqm.zh-en": "TED talks, MQM",
    "realsumm": "REALSumm",
    "webnlg2020-en": "WebNLG 2020",
    "flickr8k-expert": "Flickr8k",
}
COLOURS = dict(zip(SETS.values(), (ACCENT, INK, WARN, MUTED, "#7a4fb0"), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("adapter")
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rows", type=int, default=10_000, help="of each set, at most")
    arguments = parser.parse_args()
    adapter = read_adapter(arguments.adapter)
    known = {str(one["name"]) for one in adapter.provenance["data"]}
    if known & set(SETS):
        raise SystemExit(f"the adapter was trained on {', '.join(sorted(known & set(SETS)))}")
    sets = {title: list(parts(name, arguments.rows)) for name, title in SETS.items()}
    encoder = freight.encoder(arguments.encoder, device=arguments.device)
    values: dict[str, list[float]] = {title: [] for title in sets}
    whole = 1.0 / adapter.provenance.get("strength", 1.0)
    for strength in STRENGTHS:
        taken = adapter.scaled(whole * strength)
        metric = freight.load(adapter.metric, encoder=encoder, adapter=taken)
        for title, judged in sets.items():
            columns = [one for part in judged for one in agreements(metric, part)]
            values[title].append(float(np.mean(columns)))
            print(f"{strength:4.2f}  {title:20s} {100 * values[title][-1]:.1f}", flush=True)
    figures = json.loads(RESULTS.read_text("utf-8"))
    figures["forgetting"] = {
        "trained on": sorted(known),
        "rows": {title: sum(map(len, judged)) for title, judged in sets.items()},
        "strengths": STRENGTHS,
        "agreement": values,
    }
    RESULTS.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    FIGURE.write_text(standing_alone(curves(values)), "utf-8")


def parts(name: str, rows: int) -> Iterator[Judgements]:
    """A set by language pair, those into English; at most so many rows of all, drawn at random."""
    judged = read_ratings(DATA / f"data/{name}.jsonl.gz")
    into = [one for one in judged.split() if all(pair.endswith("en") for pair in one.lang_pairs)]
    for one in into:
        order = np.random.default_rng(0).permutation(len(one))[: rows // len(into)]
        yield one.only(np.sort(order))


def agreements(metric: PipelineScorer, judged: Judgements) -> list[float]:
    """Pearson's r with each criterion of a set."""
    scores = metric.score(judged.hyps, judged.refs)["score"]
    criteria = {name: x for name, x in judged.human.items() if name != "ratings"}
    return [pearson(scores, human) for human in criteria.values()]


def curves(values: dict[str, list[float]]) -> str:
    """The gain over the untrained metric, by strength."""

    def draw(axes: Axes) -> None:
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        gains = {title: 100 * (np.array(one) - one[0]) for title, one in values.items()}
        heights = spread_labels([float(gain[-1]) for gain in gains.values()], 0.55)
        for (title, gain), height in zip(gains.items(), heights, strict=True):
            axes.plot(STRENGTHS, gain, "o-", color=COLOURS[title], markersize=4)
            axes.text(1.54, height, title, color=COLOURS[title], fontsize=8, va="center")
        axes.set_xlim(-0.04, 2.05)
        axes.set_xticks(STRENGTHS)
        axes.set_xlabel("strength of the adapter")
        axes.set_ylabel("gain in r, points")

    return picture("Gain over the untrained metric by strength of the adapter", 6.6, 3.4, draw)


def spread_labels(heights: list[float], apart: float) -> list[float]:
    """The heights of labels, moved up where they would be written over one another."""
    moved = dict.fromkeys(range(len(heights)), 0.0)
    last = -np.inf
    for place in np.argsort(heights).tolist():
        last = moved[place] = max(heights[place], last + apart)
    return list(moved.values())


if __name__ == "__main__":
    main()
