"""Heat maps: figures of every kind, in every script, written to files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from freight.errors import InvalidInput
from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation
from freight.report.heatmaps import MOST_UNITS, choose_fonts, plot
from made_explanations import explain_blend, explain_greedy, explain_transport

HYP, REF = "The boy in a blue coat walked.", "The young man in a slicker walks."
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
SCRIPTS = {
    "latin": explain_transport(HYP, REF),
    "chinese": explain_transport("委员会批准了新桥。", "市议会批准了新的桥。", words=r"\w"),
    "arabic": explain_transport("وافق المجلس على الجسر", "أقر مجلس المدينة"),
    "marks": explain_transport("$x_1$ & <b> \ue000 👩‍👩‍👧", "a\u0301 $\\frac{$ %", words=r"\S+"),
}


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_maps_are_written(script: str, ending: str, tmp_path: Path) -> None:
    plot(SCRIPTS[script], tmp_path / f"map{ending}")
    written = (tmp_path / f"map{ending}").read_bytes()
    assert written.startswith(STARTS[ending])
    assert len(written) > 4000
    plot(SCRIPTS[script], tmp_path / f"again{ending}")
    assert (tmp_path / f"again{ending}").read_bytes() == written


def test_text_in_an_svg_stays_text(tmp_path: Path) -> None:
    plot(SCRIPTS["chinese"], str(tmp_path / "map.svg"))
    drawn = (tmp_path / "map.svg").read_text("utf-8")
    assert all(f">{character}</text>" in drawn for character in "委员会批准了新桥市议的")


def test_there_is_one_map_per_cost_term_and_plan() -> None:
    shapes: dict[str, tuple[Explanation | Comparison, int]] = {
        "one": (SCRIPTS["latin"], 2),
        "two plans": (explain_greedy(HYP, REF), 3),
        "terms": (explain_blend(HYP, REF), 8),
        "both": (Comparison(SCRIPTS["latin"], explain_greedy("The man walks.", REF), ()), 5),
    }
    for name, (explanation, count) in shapes.items():
        axes = [a for a in plot(explanation).axes if a.images]
        assert len(axes) == count, name


def test_cells_show_their_numbers_in_the_order_of_the_texts() -> None:
    [cost, flow] = plot(SCRIPTS["latin"]).axes
    view = SCRIPTS["latin"].views[0]
    assert [t.get_text() for t in cost.get_yticklabels()] == list(view.hyp.names)
    assert [t.get_text() for t in cost.get_xticklabels()] == list(view.ref.names)
    assert len(cost.texts) == view.cost.size
    assert np.asarray(cost.images[0].get_array())[1, 2] == pytest.approx(view.cost[1, 2])
    assert np.asarray(flow.images[0].get_array())[0, 0] == pytest.approx(
        100 * view.plans[0].flow[0, 0]
    )


def test_long_texts_have_no_numbers_and_few_rows() -> None:
    words = " ".join(f"w{k}" for k in range(2 * MOST_UNITS))
    cost = plot(explain_transport(words, "w1 w2 w3")).axes[0]
    assert np.asarray(cost.images[0].get_array()).shape == (MOST_UNITS, 3)
    assert len(cost.texts) == 0


def test_nothing_to_draw_is_an_empty_figure(tmp_path: Path) -> None:
    nothing = replace(SCRIPTS["latin"], views=(), scores={"transport": np.nan})
    assert plot(nothing, tmp_path / "map.png").axes == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none of \.png"):
        plot(SCRIPTS["latin"], tmp_path / "map.gif")
    with pytest.raises(InvalidInput, match="no folder"):
        plot(SCRIPTS["latin"], tmp_path / "no" / "map.png")


def test_what_no_font_has_is_a_box() -> None:
    fonts = choose_fonts(["ab\ufdd0c"])
    assert fonts.families == ("DejaVu Sans",)
    assert fonts.drawable("ab\ufdd0\n") == "ab\u25a1 "
