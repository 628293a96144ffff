"""Plots: well-formed, in the page's colours, small, and showing what they were given."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from freight.report import plots
from freight.report.formatting import shorten
from freight.report.plots import picture
from freight.transport.types import Array

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 5000))
SQUARE = np.array([[1.0, 0.25], [-0.5, 1.0]])


def texts(drawing: str) -> list[str]:
    """What is written in a picture, which has to be well-formed."""
    tree = ElementTree.fromstring(drawing.replace("xlink:href", "href"))
    return ["".join(node.itertext()).strip() for node in tree.iter("text")]


DRAWN = {
    "intervals": plots.intervals(["a", "b"], X[:2], X[:2] - 1, X[:2] + 1, "t", (-3, 3)),
    "few": plots.scatter(X[:50], Y[:50], "t", "h"),
    "many": plots.scatter(X, Y, "t", "h"),
    "differences": plots.differences(X, "t"),
    "histogram": plots.histogram(X, "t"),
    "one value": plots.histogram(np.array([0.1 + 0.2, 0.3, np.nan]), "t"),
    "no value": plots.histogram(np.array([np.nan]), "t"),
    "correlations": plots.correlations(SQUARE, ["a", "b"], "t"),
    "significances": plots.significances(abs(SQUARE), ["a", "b"], "t"),
    "landscape": plots.landscape(X[:12].reshape(3, 4), list("abc"), list("defg"), "x", "y"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_whole_small_and_of_the_page(name: str) -> None:
    drawing = DRAWN[name]
    assert texts(drawing)
    assert "http" not in drawing
    assert "var(--" in drawing or "currentColor" in drawing
    assert not re.search(r"#0[1-5]0[2-6]0[3-7]", drawing), "a stand-in colour is left"
    assert len(drawing) < 70_000


def test_the_same_numbers_give_the_same_picture() -> None:
    assert plots.scatter(X, Y, "t", "h") == DRAWN["many"]
    assert plots.scatter(X, Y, "t", "h", seed=1) != DRAWN["many"]


def test_many_points_are_pixels_and_few_are_shapes() -> None:
    assert "data:image/png" in DRAWN["many"]
    assert "data:image/png" not in DRAWN["few"]


def test_the_line_is_that_of_least_squares_over_all_points() -> None:
    slope, level = plots._fit_line(X, 3 * X + 2)
    np.testing.assert_allclose((slope, level), (3, 2))
    np.testing.assert_allclose(plots._fit_line(X, Y), np.polyfit(X, Y, 1), atol=1e-12)
    assert plots._fit_line(np.ones(3), np.array([1.0, 2.0, 6.0])) == (0.0, 3.0)


def test_cells_bear_their_numbers() -> None:
    assert {".250", "−.500", "1"} <= set(texts(DRAWN["correlations"]))
    p = np.array([[0.5, 0.0002], [0.9997, 0.5]])
    labels = texts(plots.significances(p, ["a", "b"], "t"))
    assert {"<.001", "1"} <= set(labels)
    assert ".500" not in labels, "a metric has no p against itself"


def test_too_many_cells_bear_none() -> None:
    names = [str(k) for k in range(40)]
    drawing = plots.correlations(np.eye(40), names, "t")
    assert "data:image/png" in drawing
    assert sorted(texts(drawing)) == sorted(names * 2)


@pytest.mark.parametrize("higher", [True, False])
def test_the_best_of_a_landscape_is_bold(higher: bool) -> None:
    values = np.array([[0.1, 0.2], [0.3, np.nan]])
    drawing = plots.landscape(values, ["a", "b"], ["c", "d"], "hyp", "ref", higher)
    tree = ElementTree.fromstring(drawing)
    bold = [t.text for t in tree.iter("text") if re.search("bold|700", t.get("style", ""))]
    assert bold == [".300" if higher else ".100"]
    assert {"hyp", "ref"} <= set(texts(drawing))


@pytest.mark.parametrize(
    ("human", "metric"),
    [
        (np.array([]), np.array([])),
        (np.array([1.0]), np.array([2.0])),
        (np.array([1.0, np.nan, 1.0]), np.array([np.nan, 1.0, 2.0])),
        (np.ones(5), np.ones(5)),
    ],
)
def test_scatters_of_next_to_nothing(human: Array, metric: Array) -> None:
    assert texts(plots.scatter(human, metric, "t", "h"))
    assert texts(plots.differences(metric - metric, "t"))


def test_text_stays_text() -> None:
    name = '<script>$\\frac{1$</script> & "quotes" 火车'
    drawing = plots.intervals([name], X[:1], X[:1], X[:1], name, (-3, 3))
    assert shorten(name) in texts(drawing)
    assert "<script" not in drawing


def test_ids_of_two_pictures_do_not_meet() -> None:
    def draw(axes: object) -> None:
        axes.plot([0, 1], [0, 1], "o")  # type: ignore[attr-defined]

    first, second = (set(re.findall(r'id="([^"]+)"', picture(s, 2, 2, draw))) for s in "ab")
    assert first
    assert not first & second


def test_a_strip_has_plain_numbers_and_rings_the_best() -> None:
    rng = np.random.default_rng(0)
    places, values = np.geomspace(0.05, 5, 30), rng.normal(size=30)
    values[3] = np.nan
    drawn = plots.strip(places, values, "r", "hyp", log=True)
    assert "mathdefault" not in drawn
    assert ">0.1<" in drawn
    assert drawn.count("var(--warm)") == plots.strip(places, values, "r", "hyp").count(
        "var(--warm)"
    )
    named = plots.strip(np.array([0.0, 1.0]), np.array([0.2, 0.4]), "r", "mass", ("even", "norm"))
    assert ">even<" in named
    assert ">norm<" in named
