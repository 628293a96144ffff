"""Read-outs of plans that were written down, not solved."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import freight
from freight.core import readouts
from freight.core.flags import FlagKind
from freight.core.readouts import Reading, attribute
from freight.core.types import Pairs
from freight.transport.types import Plans, Problem

COST = np.array([[0.1, 0.9], [0.8, 0.2]])
FLOW = np.array([[0.4, 0.1], [0.2, 0.3]])


def plan(flow: Any = FLOW, cost: Any = COST, problem: Problem | None = None) -> Plans:
    """A batch of one; the masses are the sums of the flow unless the problem is relaxed."""
    flow, cost = np.asarray(flow)[None], np.asarray(cost)[None]
    sizes = np.array([flow.shape[1]]), np.array([flow.shape[2]])
    weights = flow.sum(axis=2), flow.sum(axis=1)
    done = np.zeros(1), np.ones(1, bool)
    return Plans(problem or Problem(), cost, *weights, *sizes, flow, *done)


def one_pair(unknown: float = 0.0) -> Pairs:
    half, two = np.full((1, 2), 0.5), np.array([2])
    return Pairs(np.arange(1), half, half, two, two, np.array([unknown]))


def read(readout: Any, *plans: Plans, unknown: float = 0.0) -> dict[str, float]:
    reading = readout(plans, one_pair(unknown))
    return {name: float(values[0]) for name, values in reading.columns.items()}


def test_transport_is_the_cost_of_the_flow() -> None:
    assert read(readouts.Transport(), plan()) == pytest.approx(
        {"transport": 0.35, "objective": 0.35}
    )
    assert read(readouts.Transport(cut=0.8), plan())["transport"] == pytest.approx(0.10)


def test_the_objective_has_the_penalty_on_unmatched_mass() -> None:
    flow = np.diag([0.5, 0.25])
    relaxed = plan(flow, problem=Problem(hyp=2.0, ref=math.inf))
    half = np.full((1, 2), 0.5)
    relaxed = replace(relaxed, hyp_weights=half)
    divergence = 0.25 * math.log(0.5) + 0.25  # of 0.25 from 0.5, with the mass terms
    expected = 0.05 + 0.05 + 2.0 * divergence
    assert read(readouts.Transport(), relaxed)["objective"] == pytest.approx(expected)


def test_precision_and_recall_are_read_off_two_plans() -> None:
    precise, complete = plan(np.diag([0.5, 0.5])), plan([[0.5, 0.0], [0.5, 0.0]])
    scores = read(readouts.PrecisionRecall(), precise, complete)
    assert scores == pytest.approx({"precision": 0.85, "recall": 0.55, "f1": 2 * 0.85 * 0.55 / 1.4})
    weighed = read(readouts.PrecisionRecall(alpha=0.7, name="f"), precise, complete)
    assert weighed["f"] == pytest.approx(0.85 * 0.55 / (0.7 * 0.85 + 0.3 * 0.55))
    assert read(readouts.PrecisionRecall(alpha=1.0, name="f"), precise, complete)[
        "f"
    ] == pytest.approx(0.55)


def test_baselines_rescale_each_column() -> None:
    both = plan(np.diag([0.5, 0.5]))
    scores = read(readouts.PrecisionRecall(baselines=(0.5, 0.4, 0.2)), both, both)
    assert scores == pytest.approx({"f1": 0.7, "precision": 0.45 / 0.6, "recall": 0.65 / 0.8})


def test_f_without_similarity_is_0_and_flagged() -> None:
    far = plan(np.diag([0.5, 0.5]), np.full((2, 2), 1.5))
    reading = readouts.PrecisionRecall()([far, far], one_pair())
    assert reading.columns["f1"].tolist() == [0.0]
    assert reading.flags[FlagKind.NO_SIMILARITY].tolist() == [True]


def test_flow_averages_are_those_of_equations_4_and_5() -> None:
    scores = read(readouts.FlowAverages(), plan())
    near = 1.0 - COST
    precision = np.mean((FLOW * near).sum(axis=1) / FLOW.sum(axis=1))
    recall = np.mean((FLOW * near).sum(axis=0) / FLOW.sum(axis=0))
    assert scores["precision"] == pytest.approx(precision)
    assert scores["recall"] == pytest.approx(recall)
    assert scores["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert scores["wrd"] == pytest.approx(0.35)


def test_a_unit_without_mass_is_left_out_of_the_average() -> None:
    scores = read(readouts.FlowAverages(), plan([[1.0, 0.0], [0.0, 0.0]]))
    assert scores == pytest.approx({"f1": 0.9, "precision": 0.9, "recall": 0.9, "wrd": 0.1})


def test_the_released_code_of_wrdscore_mixes_two_plans() -> None:
    nearest = plan(np.diag([0.5, 0.5]))
    scores = read(readouts.greedy_precision, plan(), nearest)
    assert scores["recall"] == pytest.approx(0.65)
    assert scores["precision"] == pytest.approx(0.85)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("complement", 0.65), ("inverse", 1 / 1.35), ("exponential", math.exp(-0.35))],
)
def test_similarities_of_a_distance(how: Any, expected: float) -> None:
    scores = read(readouts.Similarity(how), plan())
    assert scores == pytest.approx({"similarity": expected, "distance": 0.35})


def test_the_house_metric_mixes_an_objective_with_two_greedy_plans() -> None:
    greedy, other = plan(np.diag([0.5, 0.5])), plan([[0.5, 0.0], [0.5, 0.0]])
    score = read(readouts.LazyAndGreedy(0.25), plan(), greedy, other)["score"]
    assert score == pytest.approx(math.exp(-(0.75 * 0.35 + 0.25 * (0.15 + 0.45) / 2)))
    complete = read(readouts.LazyAndGreedy(0.25, recall=0.8), plan(), greedy, other)["score"]
    assert complete == pytest.approx(math.exp(-(0.75 * 0.35 + 0.25 * (0.2 * 0.15 + 0.8 * 0.45))))


def test_wmdo_adds_chunks_and_unknown_words() -> None:
    straight, swapped = plan(np.diag([0.5, 0.5])), plan([[0.0, 0.5], [0.5, 0.0]])
    readout = readouts.Fragmented(order=0.18, unknown=0.1)
    # in order: one chunk of two words; swapped: the second word opens one more, two of two
    assert read(readout, straight, unknown=0.5)["distance"] == pytest.approx(0.15 + 0.09 + 0.05)
    assert read(readout, swapped)["distance"] == pytest.approx(0.85 + 0.18)


@pytest.mark.parametrize(
    ("readout", "column", "count"),
    [
        (readouts.Transport(), "transport", 1),
        (readouts.distance, "distance", 1),
        (readouts.PrecisionRecall(), "f1", 2),
        (readouts.FlowAverages(), "f1", 1),
        (readouts.Similarity("exponential"), "similarity", 1),
        (readouts.LazyAndGreedy(0.5), "score", 3),
        (readouts.LazyAndGreedy(0.5, recall=0.8), "score", 3),
        (readouts.Fragmented(0.18, 0.1), "distance", 1),
    ],
)
def test_what_units_add_sums_to_the_score(readout: Any, column: str, count: int) -> None:
    plans = [plan()] * count
    score = read(readout, *plans)[column]
    alone = [
        replace(
            one,
            cost=one.cost[0],
            flow=one.flow[0],
            hyp_weights=one.hyp_weights[0],
            ref_weights=one.ref_weights[0],
        )
        for one in plans
    ]
    shares = attribute(readout, column, score, alone)
    assert shares.base + shares.hyp.sum() + shares.ref.sum() == pytest.approx(score)


def test_a_plain_function_is_a_read_out() -> None:
    def largest(plans: Sequence[Plans], pairs: Pairs) -> Reading:
        return Reading({"largest": plans[0].cost.max(axis=(1, 2), initial=0.0)})

    metric: Any = freight.load("emd", encoder="hashed")
    column = freight.Column("largest", higher=False, perfect=0.0, worst=2.0)
    own = type(metric)(**{**vars(metric), "readout": largest, "columns": (column,)})
    result = own.score(["a b"], ["a b"])
    assert 0.0 < result["largest"][0] <= 2.0
    explained = own.explain("a b", "a b")
    assert explained.base == pytest.approx(result["largest"][0])
