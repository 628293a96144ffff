"""Systems by one metric: intervals and paired tests beside scipy's, on shared inputs."""

import numpy as np
import pytest
from scipy import stats

import freight
from freight.core.result import Column, Result
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.judge.systems import (
    compare_with_baseline,
    rank_systems,
    resampled_scores,
    system_scores,
)
from ratings import Floats


def result_of(values: Floats, higher: bool = True) -> Result:
    column = Column("score", higher, 1.0, 0.0)
    size = len(values)
    return Result("toy", (column,), {"score": values}, np.zeros(size, int), ((),) * size, "toy")


def places_of(systems: int, inputs: int) -> RowOrigins:
    names = tuple("abcdef"[:systems])
    return RowOrigins(
        names, np.tile(np.arange(systems), inputs), np.repeat(np.arange(inputs), systems)
    )


def test_intervals_and_p_are_what_scipy_says() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.15, 1, 80), rng.normal(0, 1, 80)
    scores = np.stack((one, other), 1).ravel()
    ranking = rank_systems(result_of(scores), places_of(2, 80), 20_000)[0]
    for score, values in zip(ranking.scores, (one, other), strict=True):
        assert score.value == pytest.approx(values.mean())
        expected = stats.bootstrap((values,), np.mean, method="percentile", rng=rng)
        interval = expected.confidence_interval
        assert score[2:4] == pytest.approx((interval.low, interval.high), abs=0.02)
    expected = stats.permutation_test(
        (one, other),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        alternative="greater",
        n_resamples=20_000,
        vectorized=True,
        rng=rng,
    )
    assert ranking.p_values[0, 1] == pytest.approx(expected.pvalue, abs=0.01)
    assert ranking.p_values[0, 1] + ranking.p_values[1, 0] == pytest.approx(1, abs=0.001)
    assert ranking.order == [0, 1]


def test_where_lower_is_better_the_other_wins() -> None:
    values = np.arange(40.0)
    values[1::2] += 3
    higher, lower = (
        rank_systems(result_of(values, way), places_of(2, 20))[0] for way in (True, False)
    )
    assert (higher.order, lower.order) == ([1, 0], [0, 1])
    np.testing.assert_allclose(higher.p_values, lower.p_values.T)
    assert higher.p_values[1, 0] < 0.01


def test_systems_meet_on_the_inputs_that_they_share() -> None:
    values = np.concatenate((np.arange(10.0), np.arange(10.0) + 1, [100.0, 200.0]))
    systems = np.repeat([0, 1, 2], [10, 10, 2])
    segments = np.concatenate((np.arange(10), np.arange(4, 14)[::-1], [70, 80]))
    ranking = rank_systems(result_of(values), RowOrigins(("a", "b", "c"), systems, segments))[0]
    assert ranking.common.tolist() == [[10, 6, 0], [6, 10, 0], [0, 0, 2]]
    assert np.isnan(ranking.p_values[2]).all()
    assert [score.value for score in ranking.scores] == [4.5, 5.5, 150]
    # On the six inputs that both have, a has 4..9 and b 10..5.
    assert ranking.p_values[0, 1] > 0.5 > ranking.p_values[1, 0]


def test_what_could_not_be_scored_is_left_out() -> None:
    score = system_scores(result_of(np.array([1.0, np.nan, 3.0])))["score"]
    assert score.value == 2
    assert 1 <= score.low <= score.high <= 3
    alone = system_scores(result_of(np.array([1.0])))["score"]
    assert alone.value == 1
    assert np.isnan(alone.low)


def test_scores_that_are_no_means() -> None:
    refs = ["the cat sat on the mat", "a dog ran far away", "it rains today again"] * 4
    good = [ref.replace("a", "e", k % 2) for k, ref in enumerate(refs)]
    bad = [ref.replace(" ", " very ", 2) for ref in refs]
    metric = freight.load("bleu")
    rows = [text for pair in zip(good, bad, strict=True) for text in pair]
    result = metric.score(rows, [ref for ref in refs for _ in range(2)])
    ranking = rank_systems(result, places_of(2, 12), 200)[0]
    for score, hyps in zip(ranking.scores, (good, bad), strict=True):
        assert score.value == pytest.approx(metric.score(hyps, refs).system["score"])
        assert score.low <= score.value <= score.high
    assert ranking.p_values[0, 1] < 0.05


def test_approximate_randomization_is_scipys_two_sided_permutation_test() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(0.2, 1, 60), rng.normal(0, 1, 60)
    result = result_of(np.stack((one, other), 1).ravel())
    comparison = compare_with_baseline(result, places_of(2, 60), "ar", 20_000)[0]
    expected = stats.permutation_test(
        (one, other),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=rng,
    )
    assert np.isnan(comparison.p_values[0])
    assert comparison.p_values[1] == pytest.approx(expected.pvalue, abs=0.015)


def test_the_paired_bootstrap_counts_deviations_as_large_as_the_observed_difference() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(0.3, 1, 40), rng.normal(0, 1, 40)
    origins = places_of(2, 40)
    result = result_of(np.stack((one, other), 1).ravel())
    comparison = compare_with_baseline(result, origins, "bs", 20_000, seed=4)[0]
    drawn = [resampled_scores(result_of(side), 20_000, seed=4)[:, 0] for side in (one, other)]
    observed = one.mean() - other.mean()
    deviations = np.abs(drawn[0] - drawn[1] - observed) * np.sqrt(40 / 39)
    expected = (1 + (deviations >= abs(observed)).sum()) / 20_001
    assert comparison.p_values[1] == pytest.approx(expected)
    assert comparison.p_values[1] == pytest.approx(stats.ttest_rel(one, other).pvalue, abs=0.015)
    with pytest.raises(InvalidInput, match="test='t'; there is bs, ar"):
        compare_with_baseline(result, origins, "t")


@pytest.mark.parametrize("test", ["bs", "ar"])
@pytest.mark.parametrize("name", ["bleu", "chrf", "rouge-l"])
def test_systems_that_hardly_differ_are_not_significantly_different(test: str, name: str) -> None:
    refs = [f"the {k}th cat sat on the {k % 7}th mat" for k in range(150)]
    hyps = [ref.replace("sat", "lay") if k % 3 else ref for k, ref in enumerate(refs)]
    changed = [hyps[0].replace("cat", "dog"), *hyps[1:]]
    metric = freight.load(name)
    for other, least in ((hyps, 1.0), (changed, 0.5)):
        rows = [text for pair in zip(hyps, other, strict=True) for text in pair]
        result = metric.score(rows, [ref for ref in refs for _ in range(2)])
        comparison = compare_with_baseline(result, places_of(2, 150), test, 300)[0]
        assert comparison.p_values[1] >= least
        ranking = rank_systems(result, places_of(2, 150), 300)[0]
        assert ranking.p_values[0, 1] >= least / 2


LEVELS = np.array([0.01, 0.05, 0.1])


def check_level(p_values: Floats, exhausted: bool = True) -> None:
    """Rejections of a true null hypothesis, at most the level; where it is exhausted, near it."""
    rejected = (np.asarray(p_values)[:, None] <= LEVELS).mean(axis=0)
    error = np.sqrt(LEVELS * (1 - LEVELS) / len(p_values))
    assert (rejected <= LEVELS + 3 * error).all()
    assert not exhausted or (rejected >= LEVELS - 4 * error).all()


def null_differences(kind: str, experiments: int, inputs: int, rng: np.random.Generator) -> Floats:
    """Differences of two systems (experiment, input) whose outputs are exchangeable."""
    differences = rng.normal(size=(experiments, inputs))
    if kind == "ties":
        differences = np.sign(differences) * rng.integers(0, 3, differences.shape)
    if kind.endswith("differ"):
        return np.where(np.arange(inputs) < int(kind.split()[0]), differences, 0.0)
    result: Floats = differences
    return result


@pytest.mark.parametrize("test", ["bs", "ar", "ranking"])
@pytest.mark.parametrize("kind", ["normal", "ties", "1 differ", "2 differ", "5 differ"])
def test_true_null_hypotheses_are_rejected_no_more_often_than_the_level(
    test: str, kind: str
) -> None:
    """Every column is an experiment of its own."""
    experiments, inputs = 800, 120
    rng = np.random.default_rng(5)
    one = rng.normal(50, 5, (experiments, inputs))
    other = one + null_differences(kind, experiments, inputs, rng)
    values = np.stack((one, other), 2).reshape(experiments, -1)
    columns = tuple(Column(f"c{k}", bool(k % 2), 1.0, 0.0) for k in range(experiments))
    scores = {column.name: row for column, row in zip(columns, values, strict=True)}
    empty = np.zeros(2 * inputs, int)
    result = Result("toy", columns, scores, empty, ((),) * len(empty), "toy")
    origins = places_of(2, inputs)
    if test == "ranking":
        p_values = np.array([x.p_values[0, 1] for x in rank_systems(result, origins, 400)])
    else:
        compared = compare_with_baseline(result, origins, test, 400, samples=2)
        p_values = np.array([x.p_values[1] for x in compared])
    check_level(p_values, exhausted=kind == "normal")
