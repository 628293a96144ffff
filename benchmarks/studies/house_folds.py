"""What the default metric is worth on a language pair that had no say in its settings, as a table.

    python benchmarks/studies/house_folds.py [--encoder FOLDER ...] [--rows 6000] [--threads 1]

Settings are picked for each language pair to English by the mean over all the others of WMT15 and
WMT17 (Pearson) and WMT18 (DARR tau) in $FREIGHT_DATA (by default ../shared), by each encoder alone
and by all of them together. Prints what WMT15 then says, beside the default settings.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.core.scorers import PipelineScorer
from freight.core.sweep_cache import SharedEncodings
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge.comparisons import StatisticOptions
from freight.judge.search import TrialRunner, TuningObjective, TuningSet
from freight.judge.tuning import fold_training_sets

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
RATED = ("wmt15-da", "wmt17-da")
PREFERRED = ("wmt18-darr.cs-en", "wmt18-darr.tr-en", "wmt18-darr.et-en")
PENALTIES, NEIGHBOURS, GREEDY = (0.5, 1.0, 2.0), (0.0, 0.05, 0.1), (0.0, 0.5)
GRID = [
    {"hyp": penalty, "ref": penalty, "neighbours": near, "greedy": greedy}
    for penalty, near, greedy in itertools.product(PENALTIES, NEIGHBOURS, GREEDY)
]
DEFAULT = {"hyp": 1.0, "ref": 1.0, "neighbours": 0.05, "greedy": 0.5}
TOLD = "wmt15-da"
KENDALL = "wmt15-da, tau"

Tried = dict[str, list[float]]
"""By set what each setting of the grid is worth."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", action="append", metavar="FOLDER")
    parser.add_argument("--rows", type=int, default=6000, help="of each set of preferences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device")
    parser.add_argument("--save", type=Path, help="keep what was tried, and start from it")
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    sets = list(judged(arguments.rows))
    known: dict[str, Tried] = {}
    if arguments.save and arguments.save.exists():
        known = json.loads(arguments.save.read_text("utf-8"))
    for name in arguments.encoder or ["embedded", str(DATA / "models/e5-small")]:
        if Path(name).name not in known:
            known[Path(name).name] = tried(name, arguments.device, sets)
            if arguments.save:
                arguments.save.write_text(json.dumps(known), "utf-8")
    print("| encoder | picked by | WMT15 r | τ | default r | τ | settings of the folds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, tables in known.items():
        for by, choosers in (("itself", [tables]), ("all of them", list(known.values()))):
            if by == "itself" or len(known) > 1:
                print(row(name, by, tables, choosers, sets))


def judged(rows: int) -> Iterator[Judgements]:
    """The pairs to English, a set each; of preferences those among the first rows."""
    for title in RATED:
        for part in read_judgements(DATA / "data" / f"{title}.jsonl.gz").split():
            if part.lang_pairs[0].endswith("-en"):
                yield part
    for title in PREFERRED:
        whole = read_judgements(DATA / "data" / f"{title}.jsonl.gz")
        yield from whole.only(whole.segments < np.sort(whole.segments)[:rows][-1]).split()


def tried(name: str, device: str | None, sets: Sequence[Judgements]) -> Tried:
    """Every setting on every set, and on those of WMT15 by Kendall's tau as well."""
    encoder = freight.encoder(name, **({"device": device} if device else {}))
    results: Tried = {}
    for one in sets:
        started, memories = time.perf_counter(), SharedEncodings()

        def make(settings: dict[str, Any], memories: SharedEncodings = memories) -> PipelineScorer:
            return memories.wrap(freight.load("freight", encoder=encoder, **settings))

        asked = [question(one)]
        if one.name.startswith(TOLD):
            asked.append(asked[0]._replace(statistic="kendall"))
        for which in asked:
            bench = TuningSet(one, which, [])
            bench.prepare(make({}), None)
            trials = TrialRunner(make, [bench])
            label = one.name.replace(TOLD, KENDALL) if which.statistic == "kendall" else one.name
            results[label] = [trials.run(settings, [one.name]).value for settings in GRID]
        print(f"{encoder.identity}: {one.name}, {time.perf_counter() - started:.0f} s", flush=True)
    return results


def question(one: Judgements) -> TuningObjective:
    """Pearson where people rated, DARR's tau where they preferred."""
    if one.human:
        return TuningObjective("segment", "pearson", one.criterion(), StatisticOptions())
    return TuningObjective("darr", "tau", "", StatisticOptions())


def row(
    name: str, by: str, tables: Tried, choosers: Sequence[Tried], sets: Sequence[Judgements]
) -> str:
    """The mean over WMT15's pairs, each under the settings that the other pairs picked."""
    told = [one for one in sets if one.name.startswith(TOLD)]
    picks = []
    for one in told:
        others = [other.name for other in fold_training_sets(sets, one)]
        values = np.mean([table[other] for table in choosers for other in others], axis=0)
        picks.append(int(np.argmax(values)))
    default = [GRID.index(DEFAULT)] * len(told)
    names = [[one.name.replace(TOLD, of) for one in told] for of in (TOLD, KENDALL)]
    figures = [
        100 * np.mean([tables[label][k] for label, k in zip(several, which, strict=True)])
        for which in (picks, default)
        for several in names
    ]
    shown = "; ".join(f"{count} × {said(GRID[k])}" for k, count in Counter(picks).most_common())
    return f"| {name} | {by} | " + " | ".join(f"{x:.1f}" for x in figures) + f" | {shown} |"


def said(settings: dict[str, float]) -> str:
    """Penalties, neighbours and greedy share."""
    return f"({settings['hyp']:g}, {settings['neighbours']:g}, {settings['greedy']:g})"


if __name__ == "__main__":
    main()
