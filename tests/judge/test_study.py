"""A study against scipy on made-up sets, against known figures on real ones, and its cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import freight
from freight.core.flags import Flag, FlagKind
from freight.core.result import Column, Result
from freight.core.scorers import Refs
from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.judge import ScoreCache, Study, judge
from freight.judge.error import rescale
from freight.judge.scores import SetScores, score_key
from studies import preferred, rated


@dataclass
class Toy:
    """Counts what it is asked; its score is a hash of the text, or nan where that says so."""

    name: str = "toy"
    columns: tuple[Column, ...] = (Column("score", True, 1.0, 0.0),)
    asked: list[str] = field(default_factory=list)
    salt: int = 1
    nan: str = "never"

    @property
    def signature(self) -> str:
        return f"{self.name}|salt:{self.salt}"

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        self.asked += hyps
        values = [toy_score(text, self.salt, self.nan) for text in hyps]
        flags = [[Flag(FlagKind.UNKNOWN_UNITS, 0.5)] if "coal" in text else [] for text in hyps]
        return Result.of(self, {one.name: values for one in self.columns}, flags, self.signature)


def toy_score(text: str, salt: int, nan: str = "never") -> float:
    value = sum(salt * (k + 1) * ord(c) % 97 for k, c in enumerate(text)) / (97 * len(text))
    return np.nan if nan in text else value


SET = rated("toys", 12, 4, ("sense", "grammar"))


def expected(judged: Judgements, salt: int = 1) -> np.ndarray[Any, Any]:
    return np.array([toy_score(text, salt) for text in judged.hyps])


def value(study: Study, metric: str, human: str) -> float:
    return next(a.value for a in study.agreements if (a.metric, a.human) == (metric, human))


@pytest.mark.parametrize("how", ["pearson", "spearman", "kendall"])
def test_every_level_is_what_scipy_says(how: str) -> None:
    of = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[how]
    x, y = expected(SET), SET.human["sense"]
    means = [[z[SET.systems == k].mean() for k in range(4)] for z in (x, y)]
    inside = [of(x[SET.segments == k], y[SET.segments == k])[0] for k in range(12)]
    for level, wanted in (
        ("segment", of(x, y)[0]),
        ("text", np.mean(inside)),
        ("system", of(*means)[0]),
    ):
        study = judge([Toy()], SET, level, how, resamples=20)
        assert value(study, "toy", "sense") == pytest.approx(wanted, abs=1e-12)
        assert study.level == level
        assert {a.human for a in study.agreements} == {"sense", "grammar"}


def test_preferences_are_the_default_where_there_is_nothing_else() -> None:
    pairs = replace(preferred("pairs", 30, 4, 100), human={})
    x = expected(pairs)
    better, worse = pairs.preferences.T  # type: ignore[union-attr]
    study = judge([Toy(), Toy("other", salt=3)], pairs, resamples=50)
    assert (study.level, study.statistic, study.humans) == ("darr", "tau", ())
    assert value(study, "toy", "") == pytest.approx(np.where(x[better] > x[worse], 1, -1).mean())
    assert study.agreements[0].rows == 100
    assert study.significance["pairs", ""].shape == (2, 2)


def test_errors_bring_both_sides_to_a_scale_of_0_to_1() -> None:
    percent = Toy("percent", (Column("score", True, 2.0, 0.0),))
    distance = Toy("distance", (Column("score", False, 0.0, 1.0),))
    people = rescale(SET.human["sense"])
    study = judge([percent, distance], SET, statistic="mse", resamples=50)
    x = expected(SET)
    assert value(study, "percent", "sense") == pytest.approx(((x / 2 - people) ** 2).mean())
    assert value(study, "distance", "sense") == pytest.approx(((1 - x - people) ** 2).mean())
    p = study.significance["toys", "sense"]
    assert p[0, 1] + p[1, 0] == pytest.approx(1)
    bounded = judge([percent], SET, statistic="mae", scale=(-9, 9), resamples=50)
    wide = (SET.human["sense"] + 9) / 18
    assert value(bounded, "percent", "sense") == pytest.approx(np.abs(x / 2 - wide).mean())
    with pytest.raises(freight.InvalidInput, match="wmd has no scale"):
        judge({"wmd": Toy(columns=(Column("d", False, 0.0, np.nan),))}, SET, statistic="mse")


def test_distances_are_turned_and_columns_are_named() -> None:
    both = Column("near", True, 1.0, 0.0), Column("far", False, 0.0, 1.0)
    study = judge([Toy(columns=both)], SET, columns={"toy": ["near", "far"]}, resamples=20)
    assert study.metrics == ("toy:near", "toy:far")
    assert value(study, "toy:near", "sense") == -value(study, "toy:far", "sense")
    assert study.between_metrics["toys"] == pytest.approx(np.array([[1, -1], [-1, 1]]))
    assert study.between_humans["toys"][0, 1] == pytest.approx(
        np.corrcoef(SET.human["sense"], SET.human["grammar"])[0, 1]
    )
    assert judge([Toy(columns=both)], SET, resamples=20).metrics == ("toy:near",)
    assert judge({"mine": Toy(), "yours": Toy()}, SET, resamples=9).metrics == ("mine", "yours")


def test_williams_for_pearson_by_rows_and_permutations_elsewhere() -> None:
    metrics = [Toy(), Toy("other", salt=3)]
    notes = {level: judge(metrics, SET, level, resamples=20).notes for level in ("segment", "text")}
    assert any("Williams" in note for note in notes["segment"])
    assert any("permutations" in note for note in notes["text"])


def test_rows_that_a_metric_cannot_score_are_left_out_for_all_and_said() -> None:
    study = judge([Toy(), Toy("picky", nan="salt")], SET, resamples=20)
    usable = np.array(["salt" not in text for text in SET.hyps])
    assert 0 < usable.sum() < len(SET)
    x, y = expected(SET), SET.human["sense"]
    assert value(study, "toy", "sense") == pytest.approx(
        np.corrcoef(x[usable], y[usable])[0, 1], abs=1e-12
    )
    said = f"toys: {(~usable).sum()} rows that picky could not score are left out for all metrics"
    assert said in study.notes
    assert len(study.scores["toy", "toys"]) == len(SET)
    coal = sum("coal" in text for text in SET.hyps)
    assert f"toy: {coal} of 48 texts: unknown units" in study.notes
    with pytest.raises(freight.InvalidInput, match="blind could score no text of toys"):
        judge([Toy("blind", nan="")], SET)


def test_language_pairs_are_judged_apart_and_names_are_kept_apart() -> None:
    judged = replace(SET, lang_pairs=("cs-en",) * 24 + ("de-en",) * 24)
    study = judge(
        [Toy()],
        [judged, judged],
        resamples=20,
        notes=["news only"],
        warnings=["small"],
        sentinels=False,
    )
    names = ["toys cs-en", "toys de-en", "toys cs-en (2)", "toys de-en (2)"]
    assert [one.name for one in study.sets] == names
    assert study.notes[0] == "news only"
    assert study.warnings == ("small",)
    assert [a.rows for a in study.agreements] == [24] * 8


def test_people_who_said_the_same_of_everything_are_noted_and_left_out() -> None:
    flat = replace(SET, human={**SET.human, "flat": np.ones(48)})
    study = judge([Toy()], flat, resamples=20)
    assert study.humans == ("sense", "grammar")
    assert study.between_humans["toys"].shape == (2, 2)
    assert any("flat" in note for note in study.notes)
    with pytest.raises(freight.InvalidInput, match="nothing to agree with"):
        judge([Toy()], replace(SET, human={"flat": np.ones(48)}))


def test_systems_that_were_judged_as_wholes() -> None:
    whole = replace(SET, human={}, system_human={"da": np.array([1.0, 4.0, 2.0, 3.0])})
    study = judge([Toy()], whole, resamples=20)
    means = [expected(SET)[SET.systems == k].mean() for k in range(4)]
    assert study.level == "system"
    assert value(study, "toy", "da") == pytest.approx(np.corrcoef(means, [1, 4, 2, 3])[0, 1])


ONE = replace(SET, systems=np.zeros(48, int), system_names=("A",), segments=np.arange(48))
PAIRS = replace(preferred("pairs", 9, 3, 9), human={})
BAD: dict[str, tuple[Any, ...]] = {
    "level": ("no level 'word'", SET, {"level": "word"}),
    "statistic": ("no statistic 'r'", SET, {"statistic": "r"}),
    "both": ("no tau on level text; on it there is", SET, {"level": "text", "statistic": "tau"}),
    "darr": ("toys has no preferences", SET, {"level": "darr"}),
    "one system": ("has one system; level system", ONE, {"level": "system"}),
    "one text": ("has one text per segment", ONE, {"level": "text"}),
    "no ratings": ("pairs has no ratings for level text", PAIRS, {"level": "text"}),
    "criterion": ("no criterion 'x'; name one of sense", SET, {"humans": ["x"]}),
    "mixed": ("toys asks for level segment, pairs for darr", [SET, PAIRS], {}),
    "column": ("toy has no column 'f1'", SET, {"columns": {"toy": ["f1"]}}),
    "no such metric": ("columns name 'x'", SET, {"columns": {"x": ["f1"]}}),
    "scale": ("is not in", SET, {"statistic": "mse", "scale": (0, 0.1)}),
    "soft": (
        "no ratings for level system",
        replace(SET, human={}, system_human={"da": np.arange(4.0)}),
        {"statistic": "soft-accuracy"},
    ),
    "nothing": ("there is no judgement set", [], {}),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_named_before_any_work(case: str) -> None:
    message, sets, arguments = BAD[case]
    toy = Toy()
    with pytest.raises(freight.InvalidInput, match=message):
        judge([toy], sets, **arguments)
    assert not toy.asked


def test_two_metrics_of_one_name() -> None:
    with pytest.raises(freight.InvalidInput, match="two metrics are called toy"):
        judge([Toy(), Toy()], SET)
    with pytest.raises(freight.InvalidInput, match="no metric to judge"):
        judge([], SET)


def test_what_was_scored_once_is_not_scored_again(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path / "scores")
    first = judge([Toy()], SET, resamples=20, sentinels=False, cache=cache)
    ticks: list[float] = []
    toy, other = Toy(), Toy("other", salt=3)
    again = judge(
        [toy, other],
        SET,
        "system",
        resamples=20,
        sentinels=False,
        cache=cache,
        progress=ticks.append,
    )
    assert not toy.asked
    assert len(other.asked) == len(SET)
    assert sum(ticks) == pytest.approx(len(SET))
    assert (again.scores["toy", "toys"] == first.scores["toy", "toys"]).all()
    assert "scores from the cache: toy" in again.notes
    assert set(first.notes) - set(again.notes) == {n for n in first.notes if "Williams" in n}
    changed = replace(SET, hyps=(*SET.hyps[:-1], "other words"))
    salted = Toy(salt=2)
    for study in (judge([toy], changed, resamples=9, sentinels=False, cache=cache),
                  judge([salted], SET, resamples=9, sentinels=False, cache=cache)):  # fmt: skip
        assert not any("cache" in note for note in study.notes)
    assert len(toy.asked) == len(salted.asked) == len(SET)


def test_each_distinct_text_is_scored_once() -> None:
    toy = Toy()
    twice = replace(SET, hyps=SET.hyps[:4] * 12, refs=SET.refs[:4] * 12)
    judge([toy], twice, resamples=9, sentinels=False)
    assert len(toy.asked) == 4


@pytest.mark.parametrize("damage", [b"", b"no zip", None])
def test_a_damaged_file_is_computed_again(tmp_path: Path, damage: bytes | None) -> None:
    cache = ScoreCache(tmp_path)
    judge([Toy()], SET, resamples=9, sentinels=False, cache=cache)
    (file,) = cache.files
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] if damage is None else damage)
    toy = Toy()
    study = judge([toy], SET, resamples=9, sentinels=False, cache=cache)
    assert len(toy.asked) == len(SET)
    assert (study.scores["toy", "toys"] == expected(SET)).all()
    assert file.read_bytes() == content or cache.read(file.stem, len(SET)) is not None
    assert cache.clear() > 0
    assert not cache.files


def test_scores_of_another_length_are_not_taken(tmp_path: Path) -> None:
    cache, key = ScoreCache(tmp_path), score_key("x", ["a"], [["b"]])
    cache.write(key, SetScores({"score": np.arange(3.0)}, {"odd": 1}, True))
    assert cache.read(key, 2) is None
    stored = cache.read(key, 3)
    assert stored is not None
    assert (stored.flags, stored.means) == ({"odd": 1}, True)
    assert score_key("x", ["a", "b"], [["c"], ["d"]]) != score_key("x", ["a"], [["b", "c", "d"]])


def test_a_cache_that_cannot_be_written_is_noted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    study = judge([Toy()], SET, resamples=9, sentinels=False, cache=ScoreCache(tmp_path / "file"))
    assert any(note.startswith("scores cannot be kept in") for note in study.notes)


def test_idf_is_fitted_to_the_set(tmp_path: Path) -> None:
    metric = freight.load("yisi-1", encoder="hashed")
    study = judge([metric], SET, resamples=9, sentinels=False, cache=ScoreCache(tmp_path))
    wanted = metric.score(SET.hyps, SET.refs)["f"]
    assert study.scores["yisi-1:f", "toys"] == pytest.approx(wanted, abs=1e-9)
    assert "yisi-1: IDF is fitted on the references of each set" in study.notes


def real(data: Path, name: str, **options: Any) -> Judgements:
    return read_judgements(data / f"data/{name}.jsonl.gz", **options)


def test_published_figures_of_strings(data: Path) -> None:
    rouge, chrf = freight.load("rouge-1"), freight.load("chrf")
    darr = judge([chrf], real(data, "wmt18-darr.cs-en"), resamples=9, sentinels=False)
    assert darr.agreements[0].value == pytest.approx(0.290, abs=0.002)
    for kind, wanted in (("mse", 0.0809), ("mae", 0.2181)):
        names = judge([rouge], real(data, "wrdscore"), statistic=kind, resamples=9, sentinels=False)
        assert names.agreements[0].value == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("part", ["abs", "ext"])
def test_realsumm_by_text_and_by_system(data: Path, part: str) -> None:
    judged, rouge = real(data, "realsumm", where={"part": part}), freight.load("rouge-1")
    x, y = rouge.score(judged.hyps, judged.refs)["score"], judged.human["litepyramid_recall"]
    means = [[z[judged.systems == k].mean() for k in range(len(judged.system_names))]
             for z in (x, y)]  # fmt: skip
    study = judge([rouge], judged, "system", "kendall", resamples=9, sentinels=False)
    assert study.agreements[0].value == pytest.approx(stats.kendalltau(*means)[0])
    groups = [judged.segments == k for k in range(100)]
    inside = [stats.pearsonr(x[g], y[g])[0] for g in groups if np.ptp(y[g]) and np.ptp(x[g])]
    text = judge([rouge], judged, "text", resamples=9, sentinels=False).agreements[0]
    assert text.value == pytest.approx(np.sum(inside) / (100 - text.skipped))


def test_criteria_of_webnlg(data: Path) -> None:
    wanted = ["correctness", "data_coverage", "relevance"]
    judged = real(data, "webnlg2020-en", human=wanted)
    study = judge([freight.load("rouge-1")], judged, resamples=9, sentinels=False)
    x = study.scores["rouge-1", judged.name]
    assert study.humans == tuple(wanted)
    for agreement in study.agreements:
        y = judged.human[agreement.human]
        there = ~np.isnan(y)
        assert agreement.rows == there.sum()
        assert agreement.value == pytest.approx(np.corrcoef(x[there], y[there])[0, 1])
