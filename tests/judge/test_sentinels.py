"""Sentinels, chance levels and human ceilings: by hand, by brute force, and in every study."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.result import Column, Result
from freight.core.scorers import Refs
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements, raters_of
from freight.judge import ScoreCache, Study, judge
from freight.judge.comparisons import StatisticOptions, comparison_of
from freight.judge.pairwise import (
    SoftAccuracy,
    pairwise_confidence_error,
    soft_pairwise_accuracy,
)
from freight.judge.sentinels import unrelated_references
from freight.judge.significance import soft_accuracy_p_values
from freight.report.judge import write_judge_report
from freight.report.tables import leaderboard, ranks, sentinel_rows, study_record, table_rows
from freight.transport.types import Array
from ratings import ratings
from studies import preferred, rated


@dataclass
class Oracle:
    """Knows what people said of a hypothesis, if it sees the right reference: else its length."""

    known: dict[tuple[str, str], float]
    name: str = "oracle"
    columns: tuple[Column, ...] = (Column("score", True, 1.0, 0.0),)
    asked: list[tuple[str, str]] = field(default_factory=list)
    signature: str = "oracle|1"

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        pairs = [(hyp, ref[0]) for hyp, ref in zip(hyps, refs, strict=True)]
        self.asked += pairs
        values = [self.known.get(pair, len(pair[0]) / 1000) for pair in pairs]
        return Result.of(self, {"score": values}, [[] for _ in hyps], self.signature)


SET = rated("toys", 40, 4, ("sense",))


def oracle(judged: Judgements = SET) -> Oracle:
    pairs = zip(judged.hyps, (refs[0] for refs in judged.refs), strict=True)
    return Oracle(dict(zip(pairs, judged.human["sense"].tolist(), strict=True)))


def sentinel(study: Study, name: str) -> float:
    [value] = {one.value for one in study.sentinels.agreements if one.sentinel == name}
    return value


def test_nobody_gets_their_own_reference_and_a_segment_keeps_one() -> None:
    refs = tuple((f"reference {k // 3}",) for k in range(900))
    shuffled = unrelated_references(refs, seed=3)
    assert shuffled is not None
    assert all(a != b for a, b in zip(refs, shuffled, strict=True))
    assert sorted(shuffled) == sorted(refs)
    assert len({(a, b) for a, b in zip(refs, shuffled, strict=True)}) == 300
    assert unrelated_references(refs, seed=3) == shuffled != unrelated_references(refs, seed=4)


def test_references_with_a_text_in_common_are_not_exchanged() -> None:
    refs = (("a", "b"), ("b", "c"), ("d",), ("a",))
    for seed in range(20):
        shuffled = unrelated_references(refs, seed)
        assert shuffled is not None
        assert all(not {*own} & {*other} for own, other in zip(refs, shuffled, strict=True))
    assert unrelated_references((("a",), ("a",))) is None
    assert unrelated_references((("a", "b"), ("b", "c"))) is None


def test_sentinels_of_a_study_are_what_they_say() -> None:
    metric = oracle()
    study = judge([metric], SET, resamples=50)
    people = SET.human["sense"]
    long = np.corrcoef([len(hyp) for hyp in SET.hyps], people)[0, 1]
    assert sentinel(study, "length") == pytest.approx(long)
    chrf = judge_chrf(SET)
    assert sentinel(study, "chrf") == pytest.approx(chrf)
    # Against another reference the oracle knows the length alone.
    assert sentinel(study, "oracle (shuffled ref)") == pytest.approx(long)
    assert study.metrics == ("oracle",)
    assert [a.metric for a in study.agreements] == ["oracle"]
    assert study.warnings == ()
    assert study.sentinels.chance == {("toys", "sense"): 0.0}
    assert len(metric.asked) == 2 * len(SET)


def judge_chrf(judged: Judgements) -> float:
    return judge([freight.load("chrf")], judged, resamples=9, sentinels=False).agreements[0].value


def test_a_metric_that_reads_the_hypothesis_alone_is_warned_of() -> None:
    people = replace(SET, human={"sense": np.array([-float(len(hyp)) for hyp in SET.hyps])})
    blind = Oracle({}, columns=(Column("score", False, 0.0, 1.0),), name="blind")
    study = judge([blind], people, resamples=50)
    assert study.agreements[0].value == pytest.approx(1)
    assert sentinel(study, "length") == pytest.approx(-1)  # longer is better, it says
    [warning] = study.warnings
    assert warning.startswith("blind does not agree with people significantly better")
    assert "length" in warning  # by its better direction, which is the other one
    assert "chrf" not in warning


def test_no_text_is_encoded_for_shuffled_references(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = freight.encoder("hashed")
    kind: Any = type(encoder)
    encoded: list[int] = []
    encode = kind.encode

    def counted(self: Any, texts: Sequence[str], *rest: Any) -> Any:
        encoded.append(len(texts))
        return encode(self, texts, *rest)

    monkeypatch.setattr(kind, "encode", counted)
    counts = []
    for sentinels in (False, True):
        metric = freight.load("bert-score", encoder=encoder)
        judge([metric], SET, resamples=9, sentinels=sentinels)
        counts.append(sum(encoded))
        encoded.clear()
    assert counts[0] == counts[1] == len({*SET.hyps, *(ref for refs in SET.refs for ref in refs)})


def test_they_can_be_left_out_and_then_nothing_more_is_scored() -> None:
    metric = oracle()
    study = judge([metric], SET, resamples=20, sentinels=False)
    assert study.sentinels.agreements == ()
    assert study.sentinels.chance == {}
    assert len(metric.asked) == len(SET)


@pytest.mark.parametrize(
    ("level", "statistic"),
    [("text", "accuracy"), ("system", "soft-accuracy"), ("segment", "mse"), ("system", "kendall")],
)
def test_every_statistic_has_sentinels_and_tests(level: str, statistic: str) -> None:
    low, high = SET.human["sense"].min(), SET.human["sense"].max()
    known = {key: (x - low) / (high - low) for key, x in oracle().known.items()}
    study = judge([Oracle(known)], SET, level, statistic, resamples=40)
    names = [one.sentinel for one in study.sentinels.agreements]
    assert ("length" in names) == (statistic != "mse")  # a length has no scale
    assert "oracle (shuffled ref)" in names
    for one in study.sentinels.agreements:
        assert list(one.p_values) == ["oracle"]
        assert 0 < one.p_values["oracle"] < 0.3  # there are four systems only


def test_preferences_have_sentinels() -> None:
    pairs = preferred("pairs", 30, 4, 100)
    metric = Oracle(oracle(replace(pairs, human={"sense": pairs.human["hidden"]})).known)
    study = judge([metric], replace(pairs, human={}), resamples=50)
    assert study.statistic == "tau"
    assert {one.sentinel for one in study.sentinels.agreements} == {
        "length", "chrf", "oracle (shuffled ref)"
    }  # fmt: skip
    assert study.sentinels.ceiling == {}


def test_the_cache_keeps_both_and_knows_them_apart(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path)
    first = judge([oracle()], SET, resamples=20, cache=cache)
    metric = oracle()
    again = judge([metric], SET, resamples=20, cache=cache)
    assert metric.asked == []
    assert again.sentinels.agreements == first.sentinels.agreements
    assert again.notes[-1] == "scores from the cache: oracle"
    # Scores without sentinels first, with them later: the others are added.
    other = ScoreCache(tmp_path / "other")
    judge([oracle()], SET, resamples=20, cache=other, sentinels=False)
    added = judge([metric], SET, resamples=20, cache=other)
    assert len(metric.asked) == len(SET)
    assert added.sentinels.agreements == first.sentinels.agreements


@pytest.mark.parametrize("statistic", ["accuracy", "soft-accuracy", "kendall", "pearson"])
def test_chance_is_what_random_numbers_get(statistic: str) -> None:
    human, _, segments, systems = ratings(3, segments=60, systems=6, steps=1, missing=0.0)
    level = "text" if statistic == "accuracy" else "system"
    judged = replace(
        rated("random", 60, 6, ("x",)), segments=segments, systems=systems, human={"x": human}
    )
    usable = np.ones(len(human), bool)
    options = StatisticOptions(200)
    comparison = comparison_of(judged, usable, level, statistic, "x", options)
    assert comparison is not None
    rng = np.random.default_rng(0)
    values = [comparison.value(rng.normal(size=len(human))) for _ in range(400)]
    error = 4 * np.std(values) / 20
    # Tie calibration finds a little by luck.
    luck = 0.02 if statistic == "accuracy" else 0.0
    assert comparison.chance - error < np.mean(values) < comparison.chance + error + luck


def test_chance_of_accuracy_is_tying_everything_where_people_mostly_tie() -> None:
    human = np.array([1.0, 1.0, 1.0, 2.0] * 10)
    judged = replace(
        rated("tied", 10, 4, ("x",)), human={"x": human}, segments=np.repeat(np.arange(10), 4)
    )
    chance = [
        comparison.chance
        for human in (judged.human["x"], np.arange(40.0))
        if (
            comparison := comparison_of(
                replace(judged, human={"x": human}),
                np.ones(40, bool),
                "text",
                "accuracy",
                "x",
                StatisticOptions(9),
            )
        )
    ]
    assert chance == pytest.approx([0.5, 0.5])  # 3 of 6 pairs are tied; no pair is
    halves = replace(judged, human={"x": np.array([1.0, 1.0, 1.0, 1.0] * 9 + [1, 1, 1, 2.0])})
    comparison = comparison_of(
        halves, np.ones(40, bool), "text", "accuracy", "x", StatisticOptions(9)
    )
    assert comparison is not None
    assert comparison.chance == pytest.approx((9 + 0.5) / 10)


def test_chance_of_an_error_is_that_of_the_best_constant() -> None:
    human = np.array([0.0, 0.0, 0.5, 1.0])
    judged = replace(rated("four", 2, 2, ("x",)), human={"x": human})
    for kind, expected in (("mse", human.var()), ("mae", 0.375)):
        comparison = comparison_of(
            judged, np.ones(4, bool), "segment", kind, "x", StatisticOptions(9)
        )
        assert comparison is not None
        assert comparison.chance == pytest.approx(expected)


def test_raters_are_known_by_name() -> None:
    names = ["expert_mean", "expert1", "expert2", "Expert_3", "q1", "q2", "judge B", "fluency"]
    several = raters_of({}, dict.fromkeys(names, 1.0))
    assert list(several) == ["expert1", "expert2", "Expert_3", "judge B"]
    assert raters_of({"raters": 3}, {"expert1": 1.0, "mean": 1.0}) == {}
    assert raters_of({"ann": 1.0, "bob": 2.0}, {"mean": 1.5}) == {"ann": 1.0, "bob": 2.0}


def people(seed: int = 0) -> Judgements:
    """Three raters of the same texts, and their mean."""
    judged = rated("people", 40, 4, ("mean",))
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=len(judged))
    raters = {f"rater{k}": np.round(quality + rng.normal(size=160), 1) for k in (1, 2, 3)}
    mean = np.mean(list(raters.values()), axis=0)
    return replace(judged, human={"mean": mean, **raters}, raters=raters)


def test_the_ceiling_is_one_rater_against_the_mean_of_the_others() -> None:
    judged = people()
    study = judge([Oracle({})], judged, resamples=20)
    raters = np.array(list(judged.raters.values()))
    each: list[float] = [
        np.corrcoef(raters[k], np.delete(raters, k, axis=0).mean(axis=0))[0, 1] for k in range(3)
    ]
    ceiling = study.sentinels.ceiling
    assert ceiling["people", "mean"] == pytest.approx(np.mean(each))
    assert [ceiling["people", f"rater{k}"] for k in (1, 2, 3)] == pytest.approx(each)
    chosen = judge([Oracle({})], judged, humans=["mean"], resamples=20)
    assert chosen.sentinels.ceiling == {("people", "mean"): pytest.approx(np.mean(each))}
    # A criterion that is not their mean is another question.
    other = replace(judged, human={"fluency": judged.human["mean"][::-1].copy()})
    assert judge([Oracle({})], other, resamples=20).sentinels.ceiling == {}


def test_raters_are_read_from_a_set(data: Path, tmp_path: Path) -> None:
    judged = read_judgements(data / "data/flickr8k-expert.jsonl.gz", human=["expert_mean"])
    assert list(judged.human) == ["expert_mean"]
    assert list(judged.raters) == ["expert1", "expert2", "expert3"]
    assert np.mean(list(judged.raters.values()), axis=0) == pytest.approx(
        judged.human["expert_mean"], abs=1e-3
    )
    few = judged.only(np.arange(10))
    assert all(len(values) == 10 for values in few.raters.values())
    own = tmp_path / "own.jsonl"
    own.write_text(
        '{"hyp": "a", "ref": "a", "human": {"rating": 2}, "raters": {"ann": 1, "bob": 3}}\n'
        '{"hyp": "b", "ref": "a", "human": {"rating": 1}, "raters": {"ann": 1, "bob": null}}\n'
    )
    raters = read_judgements(own).raters
    assert raters["ann"].tolist() == [1, 1]
    assert np.isnan(raters["bob"][1])


def test_tables_pages_and_records_show_them_without_a_rank(tmp_path: Path) -> None:
    study = judge([oracle(), Oracle({}, name="blind", signature="blind|1")], SET, resamples=50)
    rows = {row.name: row.cells for row in sentinel_rows(study)}
    assert list(rows) == [
        "length", "chrf", "oracle (shuffled ref)", "blind (shuffled ref)", "chance"
    ]  # fmt: skip
    assert all(cell.place == 0 for cells in rows.values() for cell in cells)
    assert [row.name for row in table_rows(study)] == ["oracle", "blind"]
    assert set(ranks(study)) == {"oracle", "blind"}
    assert leaderboard(study, ".csv").splitlines()[-1] == ",chance,0.0"
    assert "| – | length |" in leaderboard(study)
    record = study_record(study)
    assert record["metrics"] == ["oracle", "blind"]
    assert record["sentinels"]["chance"] == [{"set": "toys", "human": "sense", "value": 0.0}]
    assert record["sentinels"]["signature"].startswith("chrf|")
    first = record["sentinels"]["agreements"][0]
    assert (first["sentinel"], set(first["p_values"])) == ("length", {"oracle", "blind"})
    write_judge_report(study, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "What a metric has to beat" in page
    assert "blind does not agree with people significantly better" in page
    assert record["warnings"] == list(study.warnings)


def exact_p(scores: Array, i: int, j: int) -> float:
    """The share of all sign flips with a larger sum of differences, equal ones half."""
    difference = scores[:, i] - scores[:, j]
    flips = np.array(list(product((-1.0, 1.0), repeat=len(difference))))
    sums = flips @ difference - difference.sum()
    return float(((sums > 1e-9).mean() + (sums >= -1e-9).mean()) / 2)


def test_soft_accuracy_over_all_sign_flips() -> None:
    rng = np.random.default_rng(1)
    human, metric = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    exact = 1 - np.mean([abs(exact_p(human, *p) - exact_p(metric, *p)) for p in pairs])
    segments, systems = np.indices((9, 4)).reshape(2, -1)
    rows = metric.ravel(), human.ravel(), segments, systems
    accuracy = soft_pairwise_accuracy(*rows, resamples=40_000)
    assert accuracy == pytest.approx(exact, abs=0.01)
    assert pairwise_confidence_error(*rows, resamples=40_000) == pytest.approx(1 - accuracy)


def test_soft_accuracy_is_tested_by_exchanging_systems() -> None:
    human, (near, far), segments, systems = ratings(
        5, segments=60, systems=7, noise=(0.1, 3.0), missing=0.1
    )
    soft = SoftAccuracy.of(human, segments, systems, 300)
    p = soft_accuracy_p_values(soft, np.stack((near, far)), resamples=200)
    # The same test, one permutation after the other.
    rows = soft.sample.rows
    sides = [(x[rows] - x[rows].mean()) / x[rows].std() for x in (near, far)]
    sides = [np.round(side, 9) for side in sides]
    once = soft.sample.once
    observed = [soft(side[None], once)[0] for side in sides]
    rng = np.random.default_rng(0)
    swaps = rng.random((200, 7)) < 0.5
    differences = []
    for swap in swaps:
        exchanged = swap[soft.sample.systems]
        one, other = np.where(exchanged, sides[::-1], sides)
        differences.append(soft(one[None], once)[0] - soft(other[None], once)[0])
    larger = np.array(differences) >= observed[0] - observed[1] - 1e-12
    assert p[0, 1] == pytest.approx((1 + larger.sum()) / 201)
    assert p[0, 1] < p[1, 0]
