"""Fitting: through the plans of the metric itself, on what is not held out, with the same bits."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import freight
from freight.core.metric import Metric
from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.learn import fit
from freight.learn.fitting import (
    CHECKPOINT,
    LEAST_RATINGS,
    Fit,
    Recipe,
    TrainingEvent,
    _Training,
    provenance,
)
from freight.learn.ratings import (
    SetGain,
    TrainingPart,
    combined_p,
    draw_tested,
    least_strength,
)
from freight.learn.trainable import TrainableMetric

WORDS = ["cat", "dog", "sat", "ran", "mat", "house", "station", "came", "nobody", "small", "red"]
QUICK = Recipe(least_steps=12, epochs=0.0, rows=32, parts=1, looks=3)


def judgements(
    rows: int, seed: int = 0, name: str = "made", noise: float = 0.1, outputs: int = 1
) -> Judgements:
    """Ratings that count the words of the reference which are missing, whatever replaces them.

    Of each segment there are so many outputs.
    """
    rng = np.random.default_rng(seed)
    hyps, refs, ratings, ref = [], [], [], list[str]()
    for row in range(rows):
        ref = ref if row % outputs else list(rng.choice(WORDS, 6))
        wrong = rng.random(6) < rng.random()
        hyp = [
            str(rng.choice(WORDS)) if bad else word for word, bad in zip(ref, wrong, strict=True)
        ]
        hyps.append(" ".join(hyp))
        refs.append((" ".join(ref),))
        ratings.append(-wrong.sum() + noise * rng.normal())
    numbers = np.arange(rows) // outputs
    none = np.zeros(rows, int)
    human = {"quality": np.array(ratings), "ratings": rng.integers(1, 4, rows).astype(float)}
    return Judgements(name, tuple(hyps), tuple(refs), numbers, none, ("system",), human)


@pytest.fixture(scope="module")
def metric(tiny_model: Path) -> Metric:
    loaded = freight.load("freight", encoder=str(tiny_model))
    assert isinstance(loaded, Metric)
    return loaded


def pairs(count: int) -> tuple[Any, Any]:
    return np.arange(2 * count).reshape(-1, 2), np.arange(count)


def test_scores_are_those_of_the_metric(metric: Metric) -> None:
    judged = judgements(12)
    texts = [
        text for hyp, (ref,) in zip(judged.hyps, judged.refs, strict=True) for text in (hyp, ref)
    ]
    trainable = TrainableMetric(metric, texts, rank=2)
    scores = trainable.scores(*pairs(12), 12).detach().numpy()
    expected = metric.score(judged.hyps, [ref for (ref,) in judged.refs])["score"]
    np.testing.assert_allclose(scores, expected, atol=2e-5)
    several = trainable.scores(pairs(12)[0], np.repeat(np.arange(6), 2), 6).detach().numpy()
    np.testing.assert_array_equal(several, scores.reshape(6, 2).max(axis=1))


def test_a_text_without_units_counts_as_0(metric: Metric) -> None:
    nothing = "\u200b"  # not white space, and no token
    texts = ["the cat sat", nothing]
    index = np.array([[0, 0], [1, 0], [0, 1]])
    assert len(metric.encoder.encode([nothing], (0,)).layers) == 2  # the special tokens
    trainable = TrainableMetric(metric, texts)
    scores = trainable.scores(index, np.arange(3), 3).detach().numpy()
    assert scores[0] == pytest.approx(1.0, abs=1e-4)
    assert scores[1] == scores[2] == 0.0
    alone = trainable.scores(index[1:], np.zeros(2, int), 1).detach().numpy()
    assert alone.tolist() == [0.0]


def test_gradients_are_those_of_the_scores(tiny_model: Path) -> None:
    metric = freight.load("freight", encoder=str(tiny_model), epsilon=1e-4)
    assert isinstance(metric, Metric)
    judged = judgements(8)
    texts = [
        text for hyp, (ref,) in zip(judged.hyps, judged.refs, strict=True) for text in (hyp, ref)
    ]
    trainable = TrainableMetric(metric, texts, rank=1)
    generator = torch.Generator().manual_seed(1)
    directions = {
        name: torch.randn(x.shape, generator=generator) for name, x in trainable.differences.items()
    }

    def total(step: float) -> float:
        with torch.no_grad():
            for name, x in trainable.differences.items():
                x += step * directions[name]
            value = float(trainable.scores(*pairs(8), 8).double().sum())
            for name, x in trainable.differences.items():
                x -= step * directions[name]
        return value

    trainable.scores(*pairs(8), 8).sum().backward()  # type: ignore[no-untyped-call]
    slope = sum(
        float((x.grad * directions[name]).sum())
        for name, x in trainable.differences.items()
        if x.grad is not None
    )
    assert slope == pytest.approx((total(1e-3) - total(-1e-3)) / 2e-3, rel=0.03)


def test_what_is_not_kept_for_the_way_back_has_the_same_gradients(
    metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = judgements(12)
    texts = [
        text for hyp, (ref,) in zip(judged.hyps, judged.refs, strict=True) for text in (hyp, ref)
    ]

    def bytes_and_gradients() -> tuple[int, dict[str, torch.Tensor | None]]:
        trainable = TrainableMetric(metric, texts, rank=1)
        saved = list[int]()

        def keep(value: torch.Tensor) -> torch.Tensor:
            saved.append(value.nbytes)
            return value

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            scores = trainable.scores(*pairs(12), 12)
        scores.sum().backward()  # type: ignore[no-untyped-call]
        return sum(saved), {name: x.grad for name, x in trainable.differences.items()}

    kept, gradients = bytes_and_gradients()
    monkeypatch.setattr("freight.learn.trainable._KEPT", 0)
    fewer, same = bytes_and_gradients()
    assert fewer < kept / 2
    assert gradients.keys() == same.keys()
    for name, gradient in gradients.items():
        other = same[name]
        assert (gradient is None) == (other is None)
        assert gradient is None or other is None or torch.equal(gradient, other), name


def test_a_criterion_that_falls_is_part_of_the_loss() -> None:
    judged = judgements(40)
    good = judged.human["quality"]
    other = np.random.default_rng(3).normal(size=40)
    human = {"good": good, "other": np.where(np.arange(40) < 5, np.nan, other)}
    part = TrainingPart.of(replace(judged, human=human), {}, None, 0.2, 0)
    rows = np.arange(40)
    scores = torch.tensor(good)  # agree with the one criterion alone
    plain = part.loss(scores, rows, rows, keep=2.0)
    assert float(plain) == float(part.loss(scores, rows, rows))  # nothing known to fall from
    known = replace(part, untrained=other)
    fallen = float(known.loss(scores, rows, rows, keep=2.0) - plain)
    r = np.corrcoef(good[5:], other[5:])[0, 1]
    assert fallen == pytest.approx(2.0 * (1.0 - r) / 2, rel=1e-5)  # the mean of 0 and 1 - r
    assert float(known.loss(scores, rows, rows)) == float(plain)
    kept = replace(part, untrained=good)
    assert float(kept.loss(scores, rows, rows, keep=2.0)) == float(plain)


@pytest.mark.parametrize(("rows", "expected"), [(300, 64), (1000, 120), (5000, 512)])
def test_few_ratings_take_few_rows_a_step(metric: Metric, rows: int, expected: int) -> None:
    judged = judgements(rows)
    texts: dict[str, int] = {}
    part = TrainingPart.of(judged, texts, "ratings", 0.2, 0)
    part = replace(part, rows={**part.rows, "stop": part.rows["stop"][:5]})
    training = _Training(TrainableMetric(metric, list(texts)), [part], Recipe(), 0)
    trained_on = len(part.rows["train"])
    assert training.rows == min(512, max(64, trained_on // 5))
    assert training.rows == pytest.approx(expected, abs=15)


def test_what_an_adapter_says_of_its_origin_needs_no_installed_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert provenance([judgements(5)], Recipe(), 0, [])["freight"] == freight.__version__


def test_an_adapter_gives_what_was_fitted(metric: Metric, tiny_model: Path) -> None:
    sets = judgements(400)
    fitted = fit(sets, metric, recipe=replace(QUICK, least_steps=60, rate=1e-2))
    assert fitted.p < 0.05
    assert fitted.adapter is not None
    assert fitted.adapter.provenance["data"][0]["rows"] == 400
    trained = freight.load("freight", encoder=str(tiny_model), adapter=fitted.adapter)
    (gain,) = fitted.sets
    test = TrainingPart.of(sets, {}, "ratings", 0.2, 0).rows["test"]
    refs = [sets.refs[k][0] for k in test]
    scores = trained.score([sets.hyps[k] for k in test], refs)["score"]
    r = np.corrcoef(scores, sets.human["quality"][test])[0, 1]
    assert (gain.rows, gain.statistic) == (len(test), "pearson")
    assert gain.after > gain.before
    assert r == pytest.approx(gain.after, abs=0.01)
    untrained = freight.load("freight", encoder=str(tiny_model), adapter=fitted.adapter.scaled(0.0))
    np.testing.assert_array_equal(
        untrained.score(sets.hyps[:9], [ref for (ref,) in sets.refs[:9]])["score"],
        metric.score(sets.hyps[:9], [ref for (ref,) in sets.refs[:9]])["score"],
    )


def same(one: Fit, other: Fit) -> bool:
    return (one.curve, one.sets, one.strength) == (other.curve, other.sets, other.strength)


def test_the_same_call_gives_the_same_bits_and_another_seed_others(metric: Metric) -> None:
    sets = judgements(120)
    first = fit(sets, metric, recipe=QUICK)
    assert same(first, fit(sets, metric, recipe=QUICK))
    assert not same(first, fit(sets, metric, recipe=QUICK, seed=1))


def test_a_resumed_training_ends_as_an_uninterrupted_one(metric: Metric, tmp_path: Path) -> None:
    sets, folder = judgements(120), tmp_path / "not" / "there"

    def interrupt(event: TrainingEvent) -> None:
        if event.step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(sets, metric, recipe=QUICK, folder=folder, progress=interrupt)
    assert (folder / CHECKPOINT).exists()
    with pytest.raises(InvalidInput, match="other data or with other settings"):
        fit(judgements(120, seed=5), metric, recipe=QUICK, folder=folder)
    steps: list[int] = []
    resumed = fit(
        sets, metric, recipe=QUICK, folder=folder, progress=lambda event: steps.append(event.step)
    )
    assert steps[0] > 1
    assert same(resumed, fit(sets, metric, recipe=QUICK))
    assert not (folder / CHECKPOINT).exists()


def test_ratings_without_a_pattern_give_no_adapter(metric: Metric) -> None:
    sets = judgements(150)
    shuffled = np.random.default_rng(3).permutation(sets.human["quality"])
    fitted = fit(replace(sets, human={"quality": shuffled}), metric, recipe=QUICK)
    assert fitted.adapter is None
    assert "no better than untrained" in fitted.notes[-1]


def test_a_reference_is_in_one_share_only_whichever_set_it_is_in() -> None:
    ratings = judgements(200)
    preferences = replace(
        judgements(200, seed=0, name="preferred"),
        human={},
        preferences=np.stack((np.arange(0, 200, 2), np.arange(1, 200, 2)), axis=1),
    )
    texts: dict[str, int] = {}
    parts = [TrainingPart.of(one, texts, "ratings", 0.2, 7) for one in (ratings, preferences)]
    where: dict[str, set[str]] = {}
    for part in parts:
        for use, rows in part.rows.items():
            first = rows if part.judged.preferences is None else part.judged.preferences[rows, 0]
            for row in first:
                where.setdefault(part.judged.refs[row][0], set()).add(use)
    assert {len(uses) for uses in where.values()} == {1}
    assert all(0.1 < len(parts[0].rows[use]) / 200 < 0.3 for use in ("stop", "test"))


def test_preferences_pull_the_better_text_up_and_the_worse_one_down(metric: Metric) -> None:
    sets = judgements(260)
    order = np.argsort(sets.human["quality"])
    near = np.stack((order[60:], order[:-60]), axis=1)
    preferred = replace(sets, human={}, preferences=near)
    part = TrainingPart.of(preferred, {}, None, 0.2, 0)
    chosen = part.rows["train"][:1]
    rows = part.texts_of(chosen)
    scores = torch.tensor([0.4, 0.5], requires_grad=True)
    part.loss(scores, rows, chosen).backward()  # type: ignore[no-untyped-call]
    better = int(np.searchsorted(rows, near[chosen[0], 0]))
    assert scores.grad is not None
    assert scores.grad[better] < 0 < scores.grad[1 - better]
    (gain,) = fit(preferred, metric, recipe=QUICK).sets
    assert (gain.statistic, gain.rows) == ("tau", len(part.rows["test"]))


def test_ratings_of_one_segment_are_preferences_too() -> None:
    judged = judgements(60, outputs=4)
    part = TrainingPart.of(judged, {}, "ratings", 0.0, 0)
    rows = np.arange(8, 60)
    pairs = part.ordered(rows)
    expected = {
        (a, b)
        for a in range(52)
        for b in range(52)
        if a // 4 == b // 4 and part.target[a + 8] - part.target[b + 8] >= 1.0
    }
    assert expected
    assert {tuple(pair) for pair in pairs.tolist()} == expected
    scores = torch.tensor(part.target[rows], requires_grad=True)
    plain = part.loss(scores, rows, rows)
    both = part.loss(scores, rows, rows, within=2.0)
    assert plain < both < plain + 2.0 * np.log(2.0)  # all in order
    assert part.loss(5.0 * scores, rows, rows, within=2.0).item() == pytest.approx(both.item())
    assert part.loss(-scores, rows, rows, within=2.0) > 2.0 + 2.0 * np.log(2.0)
    wrong = np.full(60, np.nan)
    wrong[rows] = -part.target[rows]
    assert part.agreement(wrong, rows) == pytest.approx(-1.0)
    assert part.agreement(wrong, rows, within=1.0) == pytest.approx(-1.0)
    flat = np.where(np.isfinite(wrong), np.arange(60) // 4, np.nan)  # ties within each segment
    r = part.agreement(flat, rows)
    assert part.agreement(flat, rows, within=3.0) == pytest.approx((r - 3.0) / 4.0)


def test_a_step_draws_whole_segments_for_preferences_within_them() -> None:
    part = TrainingPart.of(judgements(200, outputs=4), {}, "ratings", 0.1, 0)
    train = part.rows["train"]
    drawn = part.draw(40, np.random.default_rng(0), whole=True)
    assert len(drawn) == 40
    assert set(drawn) <= set(train)
    assert len(np.unique(drawn // 4)) == 10
    scattered = part.draw(40, np.random.default_rng(0))
    expected = np.sort(np.random.default_rng(0).choice(train, 40, replace=False))
    np.testing.assert_array_equal(scattered, expected)
    np.testing.assert_array_equal(part.draw(999, np.random.default_rng(0), whole=True), train)


def test_fitting_to_preferences_within_segments(metric: Metric) -> None:
    judged = judgements(400, outputs=4)
    recipe = replace(QUICK, least_steps=40, rate=1e-2, within=2.0)
    fitted = fit(judged, metric, recipe=recipe)
    losses = [event.loss for event in fitted.curve]
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    looks = [event.agreement for event in fitted.curve if event.agreement is not None]
    by_r = fit(judged, metric, recipe=replace(recipe, within=0.0))
    assert fitted.curve[0].untrained != by_r.curve[0].untrained  # tau counts too
    assert len(looks) > 1
    assert same(fitted, fit(judged, metric, recipe=recipe))


def with_systems(judged: Judgements, names: tuple[str, ...]) -> Judgements:
    return replace(judged, systems=np.arange(len(judged)) % len(names), system_names=names)


def test_whole_systems_and_language_pairs_can_be_held_out(metric: Metric) -> None:
    judged = with_systems(judgements(200), ("a", "b", "c", "d", "e"))
    (tested,) = draw_tested([judged], "systems", 0.2, 3)
    part = TrainingPart.of(judged, {}, "ratings", 0.2, 3, tested)
    (held,) = set(judged.systems[part.rows["test"]])
    assert len(part.rows["test"]) == 40
    assert held not in judged.systems[np.concatenate((part.rows["train"], part.rows["stop"]))]
    pairs = replace(judged, lang_pairs=("de-en", "cs-en", "ru-en", "fi-en") * 50)
    fitted = fit(pairs, metric, recipe=QUICK, hold_out="pairs")
    (gain,) = fitted.sets
    assert gain.name.startswith("made ")
    assert gain.rows == 50
    assert "the test has pairs of its own" in fitted.notes[0]


def test_what_cannot_be_held_out_is_said(metric: Metric) -> None:
    with pytest.raises(InvalidInput, match="one system in made only"):
        fit(judgements(150), metric, hold_out="systems")
    with pytest.raises(InvalidInput, match="one language pair or set only"):
        fit(judgements(150), metric, hold_out="pairs")
    with pytest.raises(InvalidInput, match="there is segments, pairs, systems"):
        fit(judgements(150), metric, hold_out="words")


def test_several_runs_are_resumed_with_the_same_bits(metric: Metric, tmp_path: Path) -> None:
    recipe = replace(QUICK, runs=2, blind=1.0)
    whole = fit(judgements(200), metric, recipe=recipe)
    assert [event.step for event in whole.curve] == list(range(1, 25))

    class Stop(Exception):
        pass

    def stop(event: TrainingEvent) -> None:
        if event.step == 18:
            raise Stop

    with pytest.raises(Stop):
        fit(judgements(200), metric, recipe=recipe, folder=tmp_path, progress=stop)
    resumed = fit(judgements(200), metric, recipe=recipe, folder=tmp_path)
    assert [event.loss for event in resumed.curve] == [event.loss for event in whole.curve]
    assert resumed.sets == whole.sets


def test_blind_products_are_a_partial_correlation() -> None:
    judged = judgements(60)
    texts: dict[str, int] = {}
    part = TrainingPart.of(judged, texts, "ratings", 0.0, 0)
    rng = np.random.default_rng(1)
    pairs, rows = part.blind_pairs(np.arange(60), rng)
    own = {part.refs[row][0] for row in rows}
    assert len(rows) > 40
    assert set(pairs[:, 1]) <= own
    assert all(ref not in part.refs[row] for row, ref in zip(rows, pairs[:, 1], strict=True))
    lengths = rng.integers(3, 20, len(texts))
    scores = rng.normal(size=len(rows))
    products = part.blind_products(torch.tensor(scores), pairs, rows, lengths).numpy()
    known = lengths[pairs].astype(float)
    design = np.column_stack((np.ones(len(rows)), known, np.log(known + 1)))
    left = [x - design @ np.linalg.lstsq(design, x)[0] for x in (scores, part.target[rows])]
    r = np.corrcoef(left)[0, 1]
    assert products.mean() == pytest.approx(r * (len(rows) - 1) / len(rows), rel=1e-6)
    by_length = part.blind_products(torch.tensor(known[:, 0]), pairs, rows, lengths).numpy()
    assert abs(by_length.mean()) < 0.5


def test_too_little_is_refused(metric: Metric) -> None:
    with pytest.raises(InvalidInput, match=f"at least {LEAST_RATINGS}"):
        fit(judgements(LEAST_RATINGS - 1), metric)
    one_text = replace(judgements(150), refs=(("cat",),) * 150)
    with pytest.raises(InvalidInput, match="held out"):
        fit(one_text, metric)
    flat = replace(judgements(150), human={"quality": np.ones(150)})
    with pytest.raises(InvalidInput, match="made are all equal"):
        fit(flat, metric)


def test_all_sets_count_in_one_p_value() -> None:
    gain = SetGain("a", "x", "pearson", 100, 0.5, 0.6, 0.05)
    assert combined_p([gain]) == pytest.approx(0.05)
    assert combined_p([gain, gain._replace(name="b")]) < 0.02
    assert combined_p([gain, gain._replace(criterion="y")]) == pytest.approx(0.05)
    assert combined_p([gain, gain._replace(name="b", p=0.95)]) == pytest.approx(0.5)


def test_the_least_strength_is_taken_that_has_nearly_all_of_the_gain() -> None:
    looks = {0.25: 0.3, 0.5: 0.5, 0.75: 0.66, 1.0: 0.7}
    assert least_strength(looks, 0.2) == 0.75
    assert least_strength(looks | {1.0: 0.9}, 0.2) == 1.0
    assert least_strength(looks, 0.7) == 0.0
