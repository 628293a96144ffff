"""Fit an adapter of `freight-da`, as they come with the library.

    python release/adapters.py ENCODER [--device auto] [--threads N] [-o build/adapters] [--ship]

The ratings are in $FREIGHT_DATA (by default ../shared). What is interrupted goes on where it
stopped. The whole of the differences is written to OUTPUT/ENCODER, and with --ship the share of
them that is shipped to the package. The adapter of e5-small is the mean of two such fits, of which
one had REALSumm, WebNLG and Flickr8k besides.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
FROM_ENGLISH = ("wmt18-da.en-et", "wmt18-da.en-fi", "wmt18-da.en-tr")
"""But for Czech, which is for testing."""


@dataclass(frozen=True)
class Plan:
    """What an adapter is fitted to, and how; `share` of the differences is shipped."""

    sets: tuple[str, ...]
    recipe: Recipe
    humans: tuple[str, ...] | None = None
    share: float = 0.75
    parameters: dict[str, Any] = field(default_factory=dict)


PLANS = {
    "embedded": Plan(("wmt17-da into English", *INTO_ENGLISH), Recipe(patience=99, blind=1.5)),
    "all-mpnet-base-v2": Plan(
        ("wmt17-da into English", *INTO_ENGLISH),
        Recipe(epochs=0.3, rows=384, rate=8e-4, looks=4, patience=99, blind=1.5),
    ),
    "multilingual": Plan(
        ("wmt17-da", *FROM_ENGLISH, *INTO_ENGLISH),
        Recipe(epochs=0.4, looks=4, patience=99, blind=1.0, within=3.0),
        humans=("da_z",),
        parameters={"recall": 0.8},
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
    metric: Any = freight.load("freight", encoder=encoder, **plan.parameters)
    fitted = fit(
        list(read(plan.sets)),
        metric,
        humans=plan.humans,
        strength=1.0,
        folder=folder,
        progress=tell,
        recipe=plan.recipe,
    )
    print(*fitted.notes, *fitted.sets, sep="\n")
    if fitted.adapter is None:
        raise SystemExit("nothing was gained")
    whole = replace(fitted.adapter, name=NAME, parameters=plan.parameters)
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
