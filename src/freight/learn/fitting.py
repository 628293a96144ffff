"""Fit the metric `freight` to human ratings and preferences, through its own transport plans.

A part of the segments is held out: one half of it decides when to stop and how strong the adapter
is, on the other the fitted metric is compared with the untrained one. Small differences to the
encoder's parameters are fitted (`TrainableMetric`); they start at zero.
"""

from __future__ import annotations

import hashlib
import io
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from freight.core.metric import Metric
from freight.data.judgements import Judgements
from freight.data.output import one_line_errors, write_whole
from freight.encoders.adapters import RIGHT, Adapter
from freight.errors import InvalidInput
from freight.judge.tuning import set_digest
from freight.learn.ratings import (
    LEAST_RATINGS,
    USES,
    SetGain,
    TrainingPart,
    check_enough,
    combined_p,
    count_judgements,
    draw_tested,
    held_out_share,
    keep_criteria,
    least_strength,
)
from freight.learn.trainable import Differences, TrainableMetric, deterministic
from freight.transport.types import Array

__all__ = [
    "CHECKPOINT",
    "LEAST_RATINGS",
    "Fit",
    "Recipe",
    "SetGain",
    "TrainingEvent",
    "fit",
    "provenance",
]

CHECKPOINT = "training.pt"
_LEVEL = 0.05
_WARM_UP = 20
_LOOK_ROWS = 300
"""How many early-stopping rows of a set are evaluated, at most."""
_LEAST_ROWS = 64
_STRENGTHS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Recipe:
    """How differences are fitted; the defaults were chosen on sets that were held out.

    A step takes `rows` rows out of `parts` sets, which are drawn in proportion to the square root
    of their number of references, since rows of one reference are much alike. `average` is the
    decay of the moving average of the differences, which is what is kept. The early-stopping rows
    are evaluated `looks` times; training ends after `patience` times without a gain. Of several
    `runs`, from one start over rows in another order, the best is kept, or their mean if it is
    better. `blind` weighs a penalty on what the hypothesis alone gives away: the squared
    correlation of ratings with scores against references of other segments, text lengths regressed
    out. `keep` weighs a penalty on falling below the untrained metric in a criterion of a set that
    has several: their mean can grow while one falls. `within` weighs preferences between texts of
    one segment whose ratings are a deviation apart, against r over all rows: steps then draw whole
    segments, and early stopping looks at both.
    """

    epochs: float = 1.0
    least_steps: int = 40
    rows: int = 512
    parts: int = 4
    rank: int = 2
    rate: float = 1e-3
    average: float = 0.98
    looks: int = 6
    patience: int = 3
    runs: int = 1
    blind: float = 0.0
    keep: float = 2.0
    within: float = 0.0


class TrainingEvent(NamedTuple):
    """One step: its loss and, where they were evaluated, the agreement on early-stopping rows."""

    step: int
    steps: int
    loss: float
    agreement: float | None
    untrained: float


@dataclass(frozen=True, eq=False)
class Fit:
    """What was fitted: the adapter, or None where it gained nothing on the test rows."""

    adapter: Adapter | None
    strength: float
    sets: tuple[SetGain, ...]
    curve: tuple[TrainingEvent, ...]
    notes: tuple[str, ...]

    @property
    def p(self) -> float:
        """The one-sided p-value of the gains on all sets together."""
        return combined_p(self.sets)


def fit(
    sets: Judgements | Sequence[Judgements],
    metric: Metric | None = None,
    *,
    humans: Sequence[str] | None = None,
    weights: str | None = "ratings",
    seed: int = 0,
    epochs: float | None = None,
    strength: float | None = None,
    folder: str | Path | None = None,
    progress: Callable[[TrainingEvent], None] | None = None,
    recipe: Recipe | None = None,
    hold_out: str = "segments",
) -> Fit:
    """Fit `metric`, by default `freight`, to judgement sets; every language pair is a set.

    `humans` names the criteria, by default all, which count the same; `weights` is the criterion
    that has the number of raters of a row. Without a `strength` the least one is taken that has
    nine tenths of the best gain on the early-stopping rows. The test has its own segments; with
    `hold_out` "pairs" or "systems" its own language pairs or systems, whatever their segments. The
    same call continues from a checkpoint in `folder`. On one device results are bitwise the same.
    """
    given = [sets] if isinstance(sets, Judgements) else list(sets)
    checkpoint = None if folder is None else Path(folder) / CHECKPOINT
    if metric is None:
        from freight.metrics import load

        metric = cast(Metric, load("freight"))
    recipe = recipe or Recipe()
    recipe = replace(recipe, epochs=recipe.epochs if epochs is None else epochs)
    named = [keep_criteria(one, humans, weights) for one in given]
    share = held_out_share(sum(map(count_judgements, named)))
    texts: dict[str, int] = {}
    judged = [part for one in named for part in one.split()]
    tested = draw_tested(judged, hold_out, share, seed)
    parts = [
        TrainingPart.of(one, texts, weights, share, seed, own)
        for one, own in zip(judged, tested, strict=True)
    ]
    check_enough(parts)
    if checkpoint is not None:
        with one_line_errors(checkpoint.parent):
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
    with deterministic():
        trainable = TrainableMetric(metric, list(texts), recipe.rank, seed)
        training = _Training(trainable, parts, recipe, seed)
        curve = training.run(checkpoint, _key(named, metric, recipe, seed, hold_out), progress)
        chosen = training.choose_strength() if strength is None else float(strength)
        gains = training.test(chosen)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    gained = chosen > 0 and combined_p(gains) < _LEVEL
    origin = provenance(named, recipe, seed, gains)
    adapter = training.adapter(_adapter_name(folder), chosen, origin) if gained else None
    return Fit(adapter, chosen, gains, curve, _notes(parts, gains, gained, hold_out))


def _adapter_name(folder: str | Path | None) -> str:
    name = Path(folder).name if folder is not None else ""
    valid = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name[:60] if valid else "adapter"


def _key(
    sets: Sequence[Judgements], metric: Metric, recipe: Recipe, seed: int, hold_out: str
) -> str:
    """A hash of all that a training depends on."""
    said = [set_digest(one) for one in sets], metric.signature, asdict(recipe), seed, hold_out
    return hashlib.sha256(repr(said).encode()).hexdigest()


def provenance(
    sets: Sequence[Judgements], recipe: Recipe, seed: int, gains: Sequence[SetGain]
) -> dict[str, Any]:
    """What an adapter says of its origin."""
    from freight import __version__

    data = [
        {"name": one.name, "rows": count_judgements(one), "sha256": set_digest(one)} for one in sets
    ]
    figures = [gain._asdict() for gain in gains]
    return {
        "data": data, "seed": seed, "recipe": asdict(recipe), "held_out": figures,
        "freight": __version__, "torch": torch.__version__,
    }  # fmt: skip


def _notes(
    parts: Sequence[TrainingPart], gains: Sequence[SetGain], gained: bool, hold_out: str
) -> tuple[str, ...]:
    shares = ", ".join(f"{sum(len(p.rows[use]) for p in parts):,} to {use}" for use in USES[::-1])
    own = "" if hold_out == "segments" else f"; the test has {hold_out} of its own"
    said = f"split by reference: {shares}{own}"
    p = combined_p(gains)
    verdict = "better than" if gained else "no better than"
    return said, f"on what was held out {verdict} untrained (p = {p:.2g}, all sets together)"


class _Training:
    """The state of a training run: differences, their average, the optimizer, the best so far."""

    def __init__(
        self, trainable: TrainableMetric, parts: Sequence[TrainingPart], recipe: Recipe, seed: int
    ) -> None:
        self.trainable, self.parts, self.recipe = trainable, list(parts), recipe
        self.learned = [part for part in parts if len(part.rows["train"]) > 3]
        rows = sum(len(part.rows["train"]) for part in self.learned)
        # Of few rows a step takes a fifth: more would cost as much, and teach no more.
        self.rows = min(recipe.rows, max(_LEAST_ROWS, rows // 5))
        self.steps = max(recipe.least_steps, math.ceil(recipe.epochs * rows / self.rows))
        self.rng = np.random.default_rng(seed)
        self.first, self.runs = self._copy(), list[Differences]()
        self.curve: list[TrainingEvent] = []
        self._begin()
        self._looked = [self._look_rows(part) for part in self.parts]
        self.untrained = self._look()
        if recipe.keep:
            self.learned = [self._with_untrained(part) for part in self.learned]

    def _begin(self) -> None:
        """Start a run, from the first differences."""
        self._set(self.first)
        self.best, self.average, self.begun = self._copy(), self._copy(), len(self.curve)
        self.best_agreement = -math.inf
        self.optimizer = torch.optim.AdamW(
            list(self.trainable.differences.values()),
            self.recipe.rate,
            betas=(0.9, 0.98),
            weight_decay=0.0,
        )

    def run(
        self, checkpoint: Path | None, key: str, progress: Callable[[TrainingEvent], None] | None
    ) -> tuple[TrainingEvent, ...]:
        """Take the steps of all runs; then the best differences are those of the metric."""
        if checkpoint is not None and checkpoint.exists():
            self._resume(checkpoint, key)
        while len(self.runs) < self.recipe.runs:
            self._finish_run(checkpoint, key, progress)
            self.runs.append(self.best)
            self._begin()
        if self.recipe.runs > 1:
            self.runs.append(_mean(self.runs))
        self.best = max(self.runs, key=self._look_at) if self.recipe.runs > 1 else self.runs[0]
        self._set(self.best)
        return tuple(self.curve)

    def _finish_run(
        self, checkpoint: Path | None, key: str, progress: Callable[[TrainingEvent], None] | None
    ) -> None:
        """Take the steps of one run, or stop early."""
        every = max(1, self.steps // self.recipe.looks)
        before, total = len(self.runs) * self.steps, self.recipe.runs * self.steps
        while len(self.curve) - self.begun < self.steps and not self._is_over():
            step = len(self.curve) - self.begun
            loss = self._step(step)
            agreement = None
            if (step + 1) % every == 0 or step + 1 == self.steps:
                agreement = self._look_at(self.average)
                if agreement > self.best_agreement:
                    self.best_agreement = agreement
                    self.best = {name: x.clone() for name, x in self.average.items()}
            event = TrainingEvent(before + step + 1, total, loss, agreement, self.untrained)
            self.curve.append(event)
            if agreement is not None and checkpoint is not None:
                self._save(checkpoint, key)
            if progress:
                progress(event)

    def choose_strength(self) -> float:
        """The strength by the early-stopping rows; 0 where none gains anything there."""
        looks = {strength: self._look_at(_scaled(self.best, strength)) for strength in _STRENGTHS}
        self._set(self.best)
        return least_strength(looks, self.untrained)

    def test(self, strength: float) -> tuple[SetGain, ...]:
        """Untrained and fitted on the test rows, which took part in no choice."""
        gains: list[SetGain] = []
        for part in self.parts:
            if len(part.rows["test"]) < 4:
                continue
            rows = part.texts_of(part.rows["test"])
            scores = []
            for factor in (0.0, strength):
                self._set(_scaled(self.best, factor))
                scores.append(self.trainable.score_all(part, rows))
            gains += part.gains(*scores)
        self._set(self.best)
        return tuple(gains)

    def adapter(self, name: str, strength: float, origin: dict[str, Any]) -> Adapter:
        """The best differences as an adapter of full strength."""
        encoder = self.trainable.encoder
        return Adapter(
            name=name,
            metric=self.trainable.metric.name,
            encoder=encoder.name,
            weights=encoder.weights_hash,
            tensors=_scaled(self.best, strength),
            provenance={**origin, "strength": strength},
        )

    def _step(self, step: int) -> float:
        """One step of the optimizer on rows of some sets."""
        recipe = self.recipe
        warm = min(1.0, (step + 1) / min(_WARM_UP, self.steps))
        pace = warm * (0.02 + 0.49 * (1.0 + math.cos(math.pi * step / self.steps)))
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate * pace
        roots = np.sqrt([part.segments for part in self.learned])
        odds = roots / roots.sum()
        drawn = self.rng.choice(len(odds), recipe.parts, p=odds)
        parts = [self.learned[k] for k in drawn]
        count = self.rows // recipe.parts
        chosen = [part.draw(count, self.rng, recipe.within > 0) for part in parts]
        rows = [part.texts_of(some) for part, some in zip(parts, chosen, strict=True)]
        scores, blind = self.trainable.scores_of(parts, rows, self.rng if recipe.blind else None)
        losses = [
            part.loss(own, texts, some, recipe.keep, recipe.within)
            for part, own, texts, some in zip(parts, scores, rows, chosen, strict=True)
        ]
        loss = torch.stack(losses).mean()
        if sum(map(len, blind)):
            loss = loss + recipe.blind * torch.cat(blind).mean().square()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(list(self.trainable.differences.values()), 1.0)
        self.optimizer.step()
        past = min(recipe.average, (step + 1) / (step + 10))
        with torch.no_grad():
            for name, value in self.trainable.differences.items():
                self.average[name].lerp_(value, 1.0 - past)
        return float(loss.detach())

    def _with_untrained(self, part: TrainingPart) -> TrainingPart:
        """A set of several criteria with the untrained scores of its training rows."""
        if part.judged.preferences is not None or len(part.judged.human) < 2:
            return part
        return replace(part, untrained=self.trainable.score_all(part, part.rows["train"]))

    def _look_rows(self, part: TrainingPart) -> Array:
        chosen = part.rows["stop"]
        if len(chosen) > _LOOK_ROWS and self.recipe.within and part.judged.preferences is None:
            refs = part.first_refs[chosen]
            names = np.unique(refs)
            count = max(1, len(names) * _LOOK_ROWS // len(chosen))
            kept = names[np.linspace(0, len(names) - 1, count).astype(int)]
            return chosen[np.isin(refs, kept)]
        if len(chosen) > _LOOK_ROWS:
            chosen = chosen[np.linspace(0, len(chosen) - 1, _LOOK_ROWS).astype(int)]
        return chosen

    def _look(self) -> float:
        """The mean agreement on the early-stopping rows."""
        values = [
            part.agreement(
                self.trainable.score_all(part, part.texts_of(chosen)), chosen, self.recipe.within
            )
            for part, chosen in zip(self.parts, self._looked, strict=True)
            if len(chosen) > 3
        ]
        return float(np.nanmean(values))

    def _look_at(self, differences: Differences) -> float:
        kept = self._copy()
        self._set(differences)
        agreement = self._look()
        self._set(kept)
        return agreement

    def _is_over(self) -> bool:
        """Whether the last `patience` agreements are all worse than an earlier one."""
        own = self.curve[self.begun :]
        seen = [event.agreement for event in own if event.agreement is not None]
        late = seen[-self.recipe.patience :]
        return len(seen) > self.recipe.patience and max(late) < self.best_agreement

    def _copy(self) -> Differences:
        return {name: x.detach().clone() for name, x in self.trainable.differences.items()}

    @torch.no_grad()
    def _set(self, differences: Differences) -> None:
        for name, value in differences.items():
            self.trainable.differences[name].copy_(value)

    def _save(self, path: Path, key: str) -> None:
        state = {
            "key": key, "differences": self._copy(), "average": self.average, "best": self.best,
            "runs": self.runs, "begun": self.begun,
            "best_agreement": self.best_agreement, "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.bit_generator.state, "curve": [tuple(event) for event in self.curve],
        }  # fmt: skip
        stream = io.BytesIO()
        torch.save(state, stream)
        write_whole(path, stream.getvalue())

    def _resume(self, path: Path, key: str) -> None:
        try:
            state = torch.load(path, map_location=self.trainable.device, weights_only=True)
            same = state["key"] == key
        except (OSError, RuntimeError, KeyError, pickle.UnpicklingError, EOFError):
            raise InvalidInput(f"{path} is no checkpoint of a training; remove it") from None
        if not same:
            raise InvalidInput(
                f"{path} is the checkpoint of a training on other data or with other settings;"
                " remove it, or give another folder"
            )
        self._set(state["differences"])
        self.average, self.best = state["average"], state["best"]
        self.best_agreement = state["best_agreement"]
        self.runs, self.begun = state["runs"], state["begun"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.bit_generator.state = state["rng"]
        self.curve = [TrainingEvent(*event) for event in state["curve"]]


def _scaled(differences: Differences, strength: float) -> Differences:
    """The same differences at another strength, of low rank by one of their factors."""
    return {
        name: value if name.endswith(RIGHT) else value * strength
        for name, value in differences.items()
    }


def _mean(runs: Sequence[Differences]) -> Differences:
    return {name: torch.stack([run[name] for run in runs]).mean(dim=0) for name in runs[0]}
