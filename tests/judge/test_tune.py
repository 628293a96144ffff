"""Tuning finds what is known by construction, looks at no row that it is tested on, and says so."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.scorers import pair_up
from freight.core.sweep_cache import SharedEncodings, SweepCache
from freight.core.types import Cloud, Progress
from freight.data.judgements import Judgements
from freight.encoders.hashed import Hashed
from freight.errors import InvalidInput, MissingPart
from freight.judge.search import Choices, Dimension, Range, grid_settings, parse_space
from freight.judge.tuning import TRYING, tune
from studies import preferred, rated

HASHED: dict[str, Any] = {"encoder": "hashed"}
GRID: dict[str, Dimension] = {"hyp": Choices((0.1, 0.4, 1.6)), "ref": Choices((0.2, 0.8))}


def made_by(name: str, pair: str = "", **settings: Any) -> Judgements:
    """Ratings that are the scores of lazy-emd under these settings, with a little noise."""
    judged = rated(name, 20, 4, ("quality",))
    scores = freight.load("lazy-emd", **HASHED, **settings).score(judged.hyps, judged.refs)
    noise = np.random.default_rng(0).normal(size=len(judged))
    human = -scores["objective"] + 1e-4 * scores["objective"].std() * noise
    pairs = (pair,) * len(judged) if pair else ()
    return replace(judged, human={"quality": human}, lang_pairs=pairs)


@pytest.mark.parametrize(("hyp", "ref"), [(0.1, 0.8), (0.4, 0.2), (1.6, 0.8)])
def test_the_settings_that_made_the_ratings_are_found(hyp: float, ref: float) -> None:
    train, test = made_by("one", hyp=hyp, ref=ref), made_by("other", hyp=hyp, ref=ref)
    tuning = tune("lazy-emd", GRID, train, test, HASHED, resamples=50)
    assert tuning.best.settings == {"hyp": hyp, "ref": ref}
    assert tuning.best.value == pytest.approx(1, abs=1e-6)
    assert len(tuning.trials) == 6
    assert tuning.tests is not None
    assert tuning.tests.metrics == ("tuned lazy-emd:objective", "default lazy-emd:objective")
    tuned, default = tuning.tests.agreements
    assert tuned.value > 0.999 > default.value
    assert tuning.tests.significance["other", "quality"][0, 1] < 0.01
    assert tuning.warnings == ()


def test_columns_and_layers_are_searched_like_anything_else() -> None:
    train = made_by("one", hyp=0.2, ref=0.2, layer=2)
    paper = freight.load("lazy-emd", **HASHED, hyp=0.2, ref=0.2, layer=2)
    scores = paper.score(train.hyps, train.refs)["transport"]
    train = replace(train, human={"quality": -scores})
    space = parse_space("lazy-emd", ["column=objective,transport", "layer=1:3"])
    tuning = tune("lazy-emd", space, train, (), {**HASHED, "hyp": 0.2, "ref": 0.2})
    assert tuning.best.settings == {"column": "transport", "layer": 2}
    assert tuning.best.value == pytest.approx(1)


def test_preferences_are_tuned_by_tau() -> None:
    judged = preferred("pairs", 20, 4, 60)
    hidden = -freight.load("lazy-emd", **HASHED, hyp=1.6, ref=0.2).score(judged.hyps, judged.refs)[
        "objective"
    ]
    pairs = judged.preferences
    assert pairs is not None
    swap = hidden[pairs[:, 0]] < hidden[pairs[:, 1]]
    ordered = np.where(swap[:, None], pairs[:, ::-1], pairs)
    tuning = tune("lazy-emd", GRID, replace(judged, human={}, preferences=ordered), (), HASHED)
    assert tuning.objective[:3] == ("darr", "tau", "")
    assert tuning.best.settings == {"hyp": 1.6, "ref": 0.2}
    assert tuning.best.value == 1


def test_errors_are_tuned_downwards() -> None:
    judged = rated("errors", 20, 4, ("quality",))
    score = freight.load("f-alpha", **HASHED, alpha=0.9).score(judged.hyps, judged.refs)["f"]
    judged = replace(judged, human={"quality": score})
    space = parse_space("f-alpha", ["alpha=0.1:0.9:3:linear"])
    tuning = tune("f-alpha", space, judged, (), HASHED, statistic="mse", scale=(0.0, 1.0))
    assert tuning.best.settings == {"alpha": 0.9}
    assert tuning.best.value == pytest.approx(0)
    assert tuning.default.value > 0


@pytest.mark.parametrize("trials", [None, 12])
def test_a_fold_never_sees_its_own_rows(trials: int | None) -> None:
    sets = [made_by("a", "a-en", hyp=0.4, ref=0.8), made_by("b", "b-en", hyp=0.4, ref=0.8)]
    last = made_by("c", "c-en", hyp=0.1, ref=0.2)
    folds = []
    for sign in (1, -1):
        poisoned = replace(last, human={"quality": sign * last.human["quality"]})
        tuning = tune(
            "lazy-emd", GRID, [*sets, poisoned], (), HASHED, trials=trials, folds=True, resamples=20
        )
        assert tuning.held_out is not None
        assert [fold.set for fold in tuning.folds] == ["a a-en", "b b-en", "c c-en"]
        assert tuning.held_out.metrics == ("tuned lazy-emd", "default lazy-emd")
        assert [a.set for a in tuning.held_out.agreements[::2]] == [f.set for f in tuning.folds]
        folds.append(tuning.folds[-1])
    assert folds[0] == folds[1]
    if trials is None:
        assert folds[0].settings == {"hyp": 0.4, "ref": 0.8}


def test_a_pair_that_two_sets_have_is_held_out_of_both() -> None:
    same = [made_by(name, "a-en", hyp=0.1, ref=0.2) for name in ("a", "again")]
    other = made_by("b", "b-en", hyp=0.4, ref=0.8)
    tuning = tune("lazy-emd", GRID, [*same, other], (), HASHED, folds=True, resamples=20)
    right = {"hyp": 0.4, "ref": 0.8}, {"hyp": 0.1, "ref": 0.2}
    assert [fold.settings for fold in tuning.folds] == [right[0], right[0], right[1]]


def test_several_language_pairs_decide_by_their_mean() -> None:
    sets = [made_by("a", "a-en", hyp=0.4, ref=0.8), made_by("b", "b-en", hyp=0.1, ref=0.2)]
    tuning = tune("lazy-emd", GRID, sets, (), HASHED)
    for trial in tuning.trials:
        assert list(trial.values) == ["a a-en", "b b-en"]
        assert trial.value == pytest.approx(sum(trial.values.values()) / 2)
    assert tuning.best.value == max(trial.value for trial in tuning.trials)


def test_a_search_by_trials_finds_the_optimum() -> None:
    pytest.importorskip("optuna")
    train = made_by("one", hyp=0.5, ref=1.0)
    space = parse_space("lazy-emd", ["hyp=0.05:5", "ref=0.05:5"])
    tuning = tune("lazy-emd", space, train, (), HASHED, trials=60)
    assert len(tuning.trials) == 60
    assert tuning.best.value > 0.999
    assert tuning.best.value > tuning.default.value
    assert 0.25 < tuning.best.settings["hyp"] < 1
    again = tune("lazy-emd", space, train, (), HASHED, trials=60)
    assert [t.settings for t in again.trials] == [t.settings for t in tuning.trials]


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingPart, match=r"pip install 'freight\[tune\]'"):
        tune("lazy-emd", GRID, made_by("one"), (), HASHED, trials=3)


def test_the_same_rows_are_a_warning() -> None:
    train, test = made_by("one", hyp=0.4, ref=0.8), made_by("other", hyp=0.4, ref=0.8)
    half = train.only(np.arange(len(train)) < 40)
    tuning = tune("lazy-emd", GRID, train, [half, test], HASHED, resamples=20)
    assert tuning.warnings == ("tuned and tested on the same rows: 40 of 40 rows of one",)
    (warning,) = tune("lazy-emd", GRID, train, (), HASHED).warnings
    assert "measured on the rows that the settings were picked on" in warning


def test_an_interrupt_keeps_what_was_found() -> None:
    seen = []

    def progress(stage: str, share: float) -> None:
        seen.append(share)
        if stage == TRYING and seen.count(1 / 6) == 3:
            raise KeyboardInterrupt

    train = made_by("one", hyp=0.1, ref=0.2)
    tuning = tune("lazy-emd", GRID, train, (), HASHED, progress=progress)
    assert len(tuning.trials) == 3
    assert tuning.best.settings == {"hyp": 0.1, "ref": 0.2}
    assert "stopped after 3 settings; these are the best settings until then" in tuning.warnings


def test_rows_are_whole_segments_by_seed() -> None:
    train = made_by("one", hyp=0.4, ref=0.8)
    drawn = [tune("lazy-emd", GRID, train, (), HASHED, rows=30, seed=s).train[0] for s in (0, 0, 1)]
    assert [len(one) for one in drawn] == [32, 32, 32]
    assert all(np.all(np.bincount(one.segments) == 4) for one in drawn)
    assert drawn[0].hyps == drawn[1].hyps != drawn[2].hyps
    assert drawn[0].notes == ("tuned on 32 of 80 rows: 8 of 20 segments, drawn at random (seed 0)",)


def test_what_cannot_be_tried_is_counted() -> None:
    space = {"hyp": Choices((0.0, 0.4)), "ref": Choices((0.0, 0.8))}
    tuning = tune("lazy-emd", space, made_by("one", hyp=0.4, ref=0.8), (), HASHED)
    assert np.isnan(tuning.trials[0].value)
    assert tuning.best.settings == {"hyp": 0.4, "ref": 0.8}
    assert [note for note in tuning.notes if "1 settings could not be tried" in note]


MISTAKES: dict[str, tuple[dict[str, Dimension], dict[str, Any], str]] = {
    "parameter": ({"speed": Choices((1,))}, {}, "lazy-emd has no parameter 'speed'"),
    "nothing": ({}, {}, "say what to search"),
    "twice": (GRID, {"settings": {"hyp": 1.0}}, "hyp is both set and searched"),
    "one pair": (GRID, {"folds": True}, "the only one"),
    "column": ({"column": Choices(("f1",))}, {}, "no column 'f1'"),
    "criterion": (GRID, {"human": "charm"}, "no criterion 'charm'"),
    "level": (GRID, {"level": "darr"}, "has no preferences"),
    "trials": (GRID, {"trials": 0}, "from 1 up"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    space, options, message = MISTAKES[mistake]
    settings = {**HASHED, **options.get("settings", {})}
    others = {name: value for name, value in options.items() if name != "settings"}
    with pytest.raises(InvalidInput, match=message):
        tune("lazy-emd", space, made_by("one"), (), settings, **others)


def test_grids() -> None:
    space = parse_space(
        "lazy-emd",
        ["hyp=0.1:10:3", "ref=0:1:5", "epsilon=1:3:3:linear", "layer=2:4", "mass=uniform,norm"],
    )
    assert [list(one.values) for one in space.values()] == [
        [0.1, 1.0, 10.0],
        [0.0, 0.25, 0.5, 0.75, 1.0],
        [1.0, 2.0, 3.0],
        [2, 3, 4],
        ["uniform", "norm"],
    ]
    assert len(parse_space("lazy-emd", ["hyp=0.1:2"])["hyp"].values) == 7
    several = parse_space("lazy-emd", ["hyp=0.5,inf", "layer=-5:", "idf=null,ref"])
    assert [one.values for one in several.values()] == [(0.5, np.inf), ("-5:",), (None, "ref")]
    assert list(parse_space("lazy-emd", [])) == ["hyp", "ref", "column"]
    columns = grid_settings({"column": Choices(("a", "b")), "hyp": Choices((1, 2))})
    assert [one["column"] for one in columns] == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("hyp", "lacks values; write --grid hyp=0.1:2"),
        ("hyp=2:1", "the range 2:1 is empty"),
        ("hyp=0:1:3:log", "cannot be log"),
        ("hyp=0.1:1:1", "at least 2 values"),
        ("speed=1", "no parameter 'speed'"),
    ],
)
def test_grids_that_are_none(item: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_space("lazy-emd", [item])
    with pytest.raises(InvalidInput, match="given twice"):
        parse_space("lazy-emd", ["hyp=1,2", "hyp=3"])
    with pytest.raises(InvalidInput, match="say what to search of emd"):
        parse_space("emd", [])


def test_a_preset_comes_back_as_it_was(tmp_path: Path) -> None:
    space = {"hyp": Choices((0.4, np.inf)), "column": Choices(("objective",))}
    train = made_by("one", hyp=np.inf, ref=0.8)
    tuning = tune("lazy-emd", space, train, (), {**HASHED, "ref": 0.8, "preset": "authors"})
    path = tmp_path / "tuned.json"
    tuning.write_preset(path)
    loaded = freight.load("lazy-emd", preset=str(path), **HASHED)
    assert loaded.signature == tuning.signatures[0]
    assert loaded.columns[0].name == "objective"
    assert "hyp=inf,ref=0.8" in loaded.signature
    assert "cut=0.999" in loaded.signature
    content = json.loads(path.read_text())
    assert "encoder" not in content["settings"]
    assert content["found"]["loaded"] == {"encoder": "hashed"}
    assert content["found"]["value"] == tuning.best.value
    assert content["found"]["train"][0]["rows"] == 80
    other = freight.load("lazy-emd", preset=str(path), ref=0.1, column="transport", **HASHED)
    assert "ref=0.1" in other.signature
    assert other.columns[0].name == "transport"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[1]", "is no preset"),
        ('{"metric": "emd", "settings": {}}', "is a preset of emd, not of lazy-emd"),
        ('{"metric": "lazy-emd", "settings": {"speed": 1}}', "sets 'speed', which lazy-emd does"),
        ('{"metric": "lazy-emd", "settings": {"preset": "exact"}}', "sets 'preset'"),
        ('{"metric": "lazy-emd", "settings": {"encoder": "static:x.kv"}}', "give encoder yourself"),
        ('{"metric": "lazy-emd", "settings": {"tags": "./pipeline"}}', "give tags yourself"),
    ],
)
def test_presets_that_are_none(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        freight.load("lazy-emd", preset=str(path))


@dataclass(frozen=True)
class Counting(Hashed):
    """Remembers what it was asked for."""

    asked: list[tuple[int, tuple[int, ...]]] = field(default_factory=list, compare=False)

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        self.asked.append((len(texts), tuple(layers)))
        return super().encode(texts, layers, progress)


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("lazy-emd", {}),
    ("lazy-emd", {"hyp": 1.0, "column": "objective"}),
    ("lazy-emd", {"layer": 2, "unit": "words", "mass": "norm"}),
    ("bert-score", {"idf": "own"}),
    ("yisi-1", {}),
    ("freight", {}),
    ("bary-score", {}),
    ("wmdo", {}),
    ("std", {}),
    ("chrf", {}),
]


def test_rehearsed_scores_are_the_scores_bit_for_bit() -> None:
    judged = rated("bits", 6, 3, ("quality",))
    hyps, refs = ["", *judged.hyps], [("",), *((ref, "the coal train") for (ref,) in judged.refs)]
    memories, rehearsal = SharedEncodings(), SweepCache(pair_up(hyps, refs))
    for name, settings in SETTINGS:
        given = {**HASHED, **settings} if name != "chrf" else settings
        scorer = freight.load(name, **given)
        expected = scorer.score(hyps, refs)
        remembering = memories.wrap(scorer)
        assert remembering.signature == scorer.signature
        for scores in (rehearsal.score(remembering), remembering.score(hyps, refs).segments):
            assert list(scores) == list(expected.segments)
            for column, values in scores.items():
                np.testing.assert_array_equal(values, expected[column])


def test_texts_are_encoded_once_for_all_settings() -> None:
    encoder = Counting()
    space = parse_space("lazy-emd", ["hyp=0.1,0.5", "layer=1,3", "mass=uniform,norm"])
    tune("lazy-emd", space, made_by("one"), (), {"encoder": encoder})
    assert len(encoder.asked) == 1
    assert encoder.asked[0][1] == (1, 3)


def test_the_end_of_a_range_is_named() -> None:
    train = made_by("one", hyp=0.4, ref=0.8)
    said = "hyp=0.4 is the end of its range; the optimum may lie outside"
    for ends, named in (((0.1, 0.4), True), ((0.1, 1.6), False)):
        tuning = tune("lazy-emd", {"hyp": Range(*ends, count=3)}, train, (), {**HASHED, "ref": 0.8})
        assert tuning.best.settings == {"hyp": 0.4}
        assert (said in tuning.notes) == named


def test_ranges_are_searched_between_their_values() -> None:
    assert Range(0.1, 2.0).round(0.123456) == 0.1235
    assert Range(1, 9, whole=True, log=False).values == (1, 2, 4, 5, 6, 8, 9)
