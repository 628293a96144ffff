"""Fit an adapter of `freight-da`, as those that come with the library were fitted.

    python release/adapters.py ENCODER [--device auto] [--threads N] [-o build/adapters] [--ship]

The ratings are in $FREIGHT_DATA (by default ../shared). What is interrupted goes on where it
stopped. The whole of the differences is written to OUTPUT/ENCODER, and with --ship the share of
them that is shipped to the package. Two of the shipped ones are not made by this: that of e5-small
is the mean of a fit to translation and of one to all sets, that of the multilingual encoder had
the preferences besides that the ratings of one segment imply. Their files say so.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import freight
from freight.data.judgement_files import read_ratings
from freight.data.judgements import Judgements
from freight.learn import fit
from freight.learn.fitting import Recipe, TrainingEvent

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared")) / "data"
SHIPPED = Path(__file__).parents[1] / "src/freight/encoders/shipped"
NAME = "freight-da"
INTO_ENGLISH = ("wmt18-da.cs-en", "wmt18-da.de-en", "wmt18-da.et-en", "wmt18-da.tr-en")
OTHERS = ("realsumm", "webnlg2020-en", "flickr8k-expert")


@dataclass(frozen=True)
class Plan:
    """What an adapter is fitted to, and how; `share` of the differences is shipped."""

    sets: tuple[str, ...]
    recipe: Recipe
    share: float


PLANS = {
    "embedded": Plan(
        ("wmt17-da into English", *INTO_ENGLISH), Recipe(patience=99, blind=1.5), share=0.75
    ),
    "all-mpnet-base-v2": Plan(
        ("wmt17-da into English", *INTO_ENGLISH, *OTHERS),
        Recipe(epochs=2.5, rate=8e-4, looks=4, patience=99, blind=1.0, keep=1.0),
        share=1.0,
    ),
}


def main() -> None:
    """Fit, and write what was fitted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("encoder", choices=PLANS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/adapters"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--ship", action="store_true", help="put it in the place of the shipped one"
    )
    arguments = parser.parse_args()
    freight.set_threads(arguments.threads)
    plan, folder = PLANS[arguments.encoder], arguments.output / arguments.encoder
    encoder = freight.encoder(arguments.encoder, device=arguments.device)
    metric: Any = freight.load("freight", encoder=encoder)
    fitted = fit(
        list(read(plan.sets)),
        metric,
        strength=1.0,
        folder=folder,
        progress=tell,
        recipe=plan.recipe,
    )
    print(*fitted.notes, *fitted.sets, sep="\n")
    if fitted.adapter is None:
        raise SystemExit("nothing was gained")
    whole = replace(fitted.adapter, name=NAME)
    print(whole.save(folder))
    if arguments.ship:
        print(whole.scaled(plan.share).save(SHIPPED / f"{NAME}.{arguments.encoder}.safetensors"))


def read(names: tuple[str, ...]) -> Iterator[Judgements]:
    """The sets of these names, of which one may be restricted to pairs into English."""
    for name in names:
        file, _, restricted = name.partition(" ")
        judged = read_ratings(DATA / f"{file}.jsonl.gz")
        into = np.array([pair.endswith("-en") for pair in judged.lang_pairs])
        yield replace(judged.only(into), name=name) if restricted else judged


def tell(event: TrainingEvent) -> None:
    """Print a step, and the agreement with the held-out rows where it was looked at."""
    seen = "" if event.agreement is None else f"  {event.agreement:.4f} ({event.untrained:.4f})"
    print(f"{event.step}/{event.steps}  {event.loss:.4f}{seen}", flush=True)


if __name__ == "__main__":
    main()
