"""The pictures of the papers, drawn by the library, for the documentation.

    python benchmarks/studies/figures.py

Writes docs/figures/*.svg. STD's are drawn with the GloVe vectors in $FREIGHT_DATA (by default
../shared), all others with the embedded encoder.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

import figures_bary
import figures_flow
import figures_lazy
import figures_meaning
import figures_prices
import freight
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, Side, View
from freight.transport.types import Array

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
OUTPUT = Path(__file__).parents[2] / "docs/figures"
REF = "The man will fly to France for a holiday."
HYP = "The guy is scheduled to France for a vacation."
REVERSED = "vacation a for France to scheduled is guy The."


def main() -> None:
    OUTPUT.mkdir(exist_ok=True)
    std_figures(f"static:{DATA / 'vectors/glove.100d.60k.bin'}").plot(OUTPUT / "std-order.svg")
    pictures = {
        "bary-interpolation.svg": figures_bary.interpolation(),
        "bary-layers.svg": figures_bary.layers(),
        "flow.svg": figures_flow.flow(),
        "lazy-matchings.svg": figures_lazy.matchings(),
        "meaning-agreement.svg": figures_meaning.agreement(),
        "meaning-scale.svg": figures_meaning.anchors(),
        "prices.svg": figures_prices.prices(),
    }
    for name, picture in pictures.items():
        (OUTPUT / name).write_text(picture, "utf-8")


def std_figures(encoder: str) -> Comparison:
    """What moving words costs in STD, in the order of the sentence and in reverse: its figures."""
    metric = freight.load("std", preset="paper", encoder=encoder)
    straight, reverse = (_words(metric.explain(hyp, REF)) for hyp in (HYP, REVERSED))
    return Comparison(straight, reverse, ())


def _words(explanation: Explanation) -> Explanation:
    """The cost between words alone, of each text its own."""
    view = explanation.views[0]
    own = [_own(side) for side in (view.hyp, view.ref)]
    hyp, ref = _only(view.hyp, own[0]), _only(view.ref, own[1])
    words = View("words", 1.0, hyp, ref, view.cost[np.ix_(*own)], {}, ())
    return replace(explanation, views=(words,))


def _own(side: Side) -> Array:
    """The units that are in the text, in its order."""
    units = np.flatnonzero(side.spans[:, 0] >= 0)
    return units[np.argsort(side.spans[units, 0], kind="stable")]


def _only(side: Side, units: Array) -> Side:
    names = tuple(side.names[k] for k in units.tolist())
    parts = {
        name: getattr(side, name)[units]
        for name in ("spans", "weights", "contributions", "match_quality", "unmatched_mass")
    }
    return replace(side, names=names, **parts)


if __name__ == "__main__":
    main()
