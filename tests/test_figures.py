"""The pictures of the documentation: drawn from what they claim, and linked to."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import figures
import figures_bary
import figures_lazy
import figures_prices
import freight

DOCS = Path(__file__).parents[1] / "docs"


def test_word_order_is_what_parts_the_two_costs_of_std(data: Path) -> None:
    both = figures.std_figures(f"static:{data / 'vectors/glove.100d.60k.bin'}")
    prices = []
    for explanation in (both.one, both.other):
        view = explanation.views[0]
        assert view.ref.names == (
            "The",
            "man",
            "will",
            "fly",
            "to",
            "France",
            "for",
            "holiday",
            ".",
        )
        prices.append(view.cost[view.hyp.names.index("vacation"), view.ref.names.index("holiday")])
    assert prices[0] == pytest.approx(0.17, abs=0.01)
    assert prices[1] - prices[0] == pytest.approx(0.4 * 7 / 9, abs=0.01)


@pytest.mark.parametrize("draw", [figures_bary.interpolation, figures_bary.layers])
def test_barycenters_are_drawn(draw: object) -> None:
    root = ElementTree.fromstring(draw())  # type: ignore[operator]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}use"))) > 60


def test_the_barycenter_of_ring_and_star_lies_between_them() -> None:
    ring, star = figures_bary._ring(), figures_bary._star()
    middle = freight.barycenter(np.stack((ring, star))).points
    assert np.abs(middle - (ring + star) / 2).max() < 1e-9


def test_four_matchings_are_drawn() -> None:
    drawn = figures_lazy.matchings()
    ElementTree.fromstring(drawn)
    prices = [float(x) for x in re.findall(r"= ([\d.]+)</text>", drawn)]
    precision, recall, emd, lazy = prices
    assert lazy < precision < recall < emd
    assert emd == pytest.approx(0.315)


def test_transport_falls_where_the_objective_rises() -> None:
    ElementTree.fromstring(figures_prices.prices())
    transport, objective = figures_prices.curves()
    assert figures_prices.COSTS[transport.argmax()] == pytest.approx(0.54)
    assert (np.diff(objective) > 0).all()
    assert objective == pytest.approx(0.54 * (1 - np.exp(-figures_prices.COSTS / 0.54)), abs=1e-6)


def test_pages_link_to_pictures_that_are_there() -> None:
    linked = set()
    for path in DOCS.rglob("*.md"):
        for place in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", path.read_text("utf-8")):
            assert (path.parent / place).is_file(), f"{path.name} shows {place}"
            linked.add((path.parent / place).resolve())
    assert set((DOCS / "figures").resolve().iterdir()) <= linked
