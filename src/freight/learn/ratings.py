"""Judgements as numbers, split into training, early-stopping and test rows; losses and gains.

The split is by the text of the first reference, so that a segment is in one part only, whichever
sets it is in. On request whole language pairs or systems are held out for the test.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import softplus

from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.correlation import Correlation
from freight.judge.levels import Statistic, estimate
from freight.judge.pairwise import Preferences
from freight.judge.significance import permutation_p_values, williams_p_values
from freight.transport.types import Array

LEAST_RATINGS = 100
"""Fewer ratings, or preferences, teach nothing that could be shown on those held out."""

USES = ("test", "stop", "train")

_APART = 1.0
"""Texts of a segment whose ratings differ by so many deviations of their set are a preference.

WMT takes 25 points of 100, which is nearly the same.
"""
_STEEP = 2.0
"""The slope of the logistic loss of such preferences, per root mean square score difference."""


class SetGain(NamedTuple):
    """Agreement on the test rows of a set, untrained and trained.

    `p` is the one-sided p-value of the gain.
    """

    name: str
    criterion: str
    statistic: str
    rows: int
    before: float
    after: float
    p: float


def combined_p(gains: Sequence[SetGain]) -> float:
    """One p-value for all sets: Stouffer's method, z weighted by the square root of the rows.

    The z of a set is the mean over its criteria.
    """
    names = dict.fromkeys(gain.name for gain in gains)
    total = scale = 0.0
    for name in names:
        own = [gain for gain in gains if gain.name == name]
        z = float(np.mean([stats.norm.isf(min(max(gain.p, 1e-12), 1 - 1e-12)) for gain in own]))
        total += math.sqrt(own[0].rows) * z
        scale += own[0].rows
    return float(stats.norm.sf(total / math.sqrt(scale))) if scale else 1.0


def least_strength(agreement: Mapping[float, float], untrained: float) -> float:
    """The least strength that has nearly all of the best gain; 0 where there is none.

    What the rest would gain is lost on other kinds of texts: docs/studies/fitting.md.
    """
    gains = {strength: value - untrained for strength, value in agreement.items()}
    enough = 0.9 * max(gains.values())
    return min(x for x, gain in gains.items() if gain >= enough) if enough > 0 else 0.0


def keep_criteria(
    judged: Judgements, humans: Sequence[str] | None, weights: str | None
) -> Judgements:
    """A copy with these criteria, and the one that has the number of raters."""
    if humans is None or not judged.human:
        return judged
    kept = [*humans, str(weights)] if weights in judged.human else list(humans)
    return judged.with_criteria(kept)


def count_judgements(judged: Judgements) -> int:
    """How many ratings, or preferences, a set has."""
    return len(judged) if judged.preferences is None else len(judged.preferences)


def held_out_share(ratings: int) -> float:
    """The share of segments for early stopping; the test gets as many again."""
    return 0.2 if ratings < 2000 else 0.1 if ratings < 20_000 else 0.05


HOLD_OUT = ("segments", "pairs", "systems")
"""What is held out whole for the test: segments, language pairs or systems."""


def draw_tested(
    sets: Sequence[Judgements], what: str, share: float, seed: int
) -> Sequence[Array | None]:
    """For each set, whether each row is a test row: those of some pairs or systems, at least one.

    None where segments are held out, which are drawn by the text of their reference.
    """
    if what not in HOLD_OUT:
        raise InvalidInput(f"hold_out={what!r}; there is {', '.join(HOLD_OUT)}")
    if what == "segments":
        return [None] * len(sets)
    if what == "systems":
        return [_drawn_systems(one, share, seed) for one in sets]
    names = _drawn_names([one.name for one in sets], "language pair or set", share, seed)
    return [np.full(len(one), one.name in names) for one in sets]


def _drawn_systems(judged: Judgements, share: float, seed: int) -> Array:
    names = _drawn_names(judged.system_names, f"system in {judged.name}", share, seed)
    held: Array = np.isin(np.array(judged.system_names)[judged.systems], sorted(names))
    return held


def _drawn_names(names: Sequence[str], what: str, share: float, seed: int) -> set[str]:
    known = sorted(set(names), key=partial(_draw, seed=seed))
    if len(known) < 2:
        raise InvalidInput(f"there is one {what} only; hold out segments instead")
    return set(known[: max(1, round(share * len(known)))])


def check_enough(parts: Sequence[TrainingPart]) -> None:
    """Refuse sets that are too small to fit to, or that leave nothing to hold out."""
    for part in parts:
        if part.judged.preferences is None and not np.isfinite(part.target).any():
            raise InvalidInput(f"the ratings of {part.name} are all equal; they teach nothing")
    count = sum(len(part.rows["train"]) for part in parts)
    total = sum(part.size for part in parts)
    if total < LEAST_RATINGS:
        raise InvalidInput(
            f"{total} ratings are too few to learn from; give at least {LEAST_RATINGS}"
        )
    if not count or not all(any(len(p.rows[use]) for p in parts) for use in ("stop", "test")):
        raise InvalidInput(
            "all ratings are of so few segments that none can be held out; give more segments"
        )


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """One judgement set as numbers, its rows split into training, early-stopping and test rows.

    `target` is the mean of the criteria, each with mean 0 and deviation 1; `weight` grows with the
    number of raters. In a set of preferences `rows` are numbers of preferences, not of texts.
    `untrained` are the scores of the untrained metric, where they are known.
    """

    judged: Judgements
    hyp: Array
    refs: tuple[Array, ...]
    target: Array
    weight: Array
    rows: dict[str, Array]
    untrained: Array | None = None

    @classmethod
    def of(
        cls,
        judged: Judgements,
        texts: dict[str, int],
        weights: str | None,
        share: float,
        seed: int,
        tested: Array | None = None,
    ) -> TrainingPart:
        """A set whose rows are split by their first reference, whichever sets that is in.

        `tested` marks the test rows where language pairs or systems are held out. Rows without
        text on a side, or without a rating, are left out.
        """
        human = dict(judged.human)
        raters = human.pop(str(weights), None) if len(human) > 1 else None
        judged = replace(judged, human=human)
        raters = np.ones(len(judged)) if raters is None else np.nan_to_num(raters, nan=1.0)
        target = _mean_criterion(human, len(judged))
        both = zip(judged.hyps, judged.refs, strict=True)
        usable = np.array([all(map(str.strip, (hyp, *refs))) for hyp, refs in both])
        drawn = np.array([_draw(refs[0], seed) for refs in judged.refs])
        use = np.searchsorted([share, 2 * share], drawn, "right")
        if tested is not None:
            use = np.where(tested, 0, np.where(use == 0, len(USES) - 1, use))
        if judged.preferences is None:
            usable &= np.isfinite(target)
        else:
            same = [judged.hyps[a] == judged.hyps[b] for a, b in judged.preferences]
            usable = usable[judged.preferences].all(axis=1) & ~np.array(same, bool)
            uses = use[judged.preferences]  # of one segment, and perhaps of a held-out system
            use = uses[:, 0] if tested is None else uses.min(axis=1)
        rows = {name: np.flatnonzero(usable & (use == k)) for k, name in enumerate(USES)}
        number = partial(_number, texts)
        return cls(
            judged,
            np.array([number(hyp) for hyp in judged.hyps]),
            tuple(np.array([number(ref) for ref in dict.fromkeys(refs)]) for refs in judged.refs),
            target,
            raters / (raters + 1.0),
            rows,
        )

    @property
    def name(self) -> str:
        """The name of the set."""
        return self.judged.name

    @property
    def size(self) -> int:
        """How many judgements can be used."""
        return sum(map(len, self.rows.values()))

    @cached_property
    def segments(self) -> int:
        """How many references the training rows have."""
        return len({self.refs[row][0] for row in self.texts_of(self.rows["train"])})

    @cached_property
    def first_refs(self) -> Array:
        """The number of each row's first reference, which stands for its segment."""
        return np.array([refs[0] for refs in self.refs], np.int64)

    @cached_property
    def _groups(self) -> list[Array]:
        """The training rows of each segment."""
        rows = self.rows["train"]
        order = np.argsort(self.first_refs[rows], kind="stable")
        _, starts = np.unique(self.first_refs[rows][order], return_index=True)
        return np.split(rows[order], starts[1:])

    def draw(self, count: int, rng: np.random.Generator, whole: bool = False) -> Array:
        """This many training rows, drawn, in order; `whole` draws ratings segment by segment."""
        rows = self.rows["train"]
        if not whole or self.judged.preferences is not None:
            return np.sort(rng.choice(rows, min(count, len(rows)), replace=False))
        order = rng.permutation(len(self._groups))
        ends = np.cumsum([len(self._groups[k]) for k in order])
        taken = order[: np.searchsorted(ends, count) + 1]
        return np.sort(np.concatenate([self._groups[k] for k in taken])[:count])

    def ordered(self, rows: Array) -> Array:
        """The places in `rows` of pairs (pair, 2) of one segment rated far apart, better first."""
        target, refs = self.target[rows], self.first_refs[rows]
        apart = target[:, None] - target[None, :] >= _APART
        return np.argwhere(apart & (refs[:, None] == refs[None, :]))

    def texts_of(self, chosen: Array) -> Array:
        """The rows of texts behind these rows."""
        pairs = self.judged.preferences
        return chosen if pairs is None else np.unique(pairs[chosen])

    def pairs(self, rows: Array) -> tuple[Array, Array]:
        """Hypothesis and reference numbers (pair, 2), and the place of each pair's row."""
        counts = np.array([len(self.refs[row]) for row in rows], np.int64)
        refs = np.concatenate([self.refs[row] for row in rows])
        owner = np.repeat(np.arange(len(rows)), counts)
        return np.stack((np.repeat(self.hyp[rows], counts), refs), axis=1), owner

    def loss(
        self, scores: Tensor, rows: Array, chosen: Array, keep: float = 0.0, within: float = 0.0
    ) -> Tensor:
        """1 - Pearson's r, or the mean logistic loss on preferences.

        To 1 - r is added `within` x the logistic loss on the preferences that ratings of one
        segment imply, and `keep` x the mean over criteria of how far r is below that of the
        untrained scores, where these are known.
        """
        if self.judged.preferences is not None:
            both = np.searchsorted(rows, self.judged.preferences[chosen])
            ahead = scores[both[:, 0]] - scores[both[:, 1]]
            return softplus(-ahead / scores.detach().std().clamp(min=1e-6)).mean()
        target, weight = (
            torch.as_tensor(x[chosen], device=scores.device, dtype=scores.dtype)
            for x in (self.target, self.weight)
        )
        loss = 1.0 - _pearson(scores, target, weight)
        pairs = self.ordered(chosen) if within else np.empty((0, 2), np.int64)
        if len(pairs):
            ahead = scores[pairs[:, 0]] - scores[pairs[:, 1]]
            unit = ahead.square().mean().clamp(min=1e-12).sqrt()
            share = weight[pairs].prod(dim=1)
            surprise = softplus(-_STEEP * ahead / unit)
            loss = loss + within * (share * surprise).sum() / share.sum()
        if keep == 0.0 or self.untrained is None:
            return loss
        before = torch.as_tensor(self.untrained[chosen], device=scores.device, dtype=scores.dtype)
        falls = []
        for values in self.judged.human.values():
            rated = torch.as_tensor(values[chosen], device=scores.device, dtype=scores.dtype)
            known = weight * rated.isfinite()
            rated = rated.nan_to_num()
            falls.append((_pearson(before, rated, known) - _pearson(scores, rated, known)).relu())
        return loss + keep * torch.stack(falls).mean()

    def blind_pairs(self, rows: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Each of these hypotheses with a reference of another row, and these rows.

        Rows that meet one of their own references, or are not rated, are left out.
        """
        order = rng.permutation(len(rows))
        other = np.empty_like(rows)
        other[order] = rows[np.roll(order, 1)]
        kept = [
            k
            for k in np.flatnonzero(np.isfinite(self.target[rows]))
            if self.refs[other[k]][0] not in self.refs[rows[k]]
        ]
        refs = np.array([self.refs[row][0] for row in other[kept]], np.int64)
        return np.stack((self.hyp[rows[kept]], refs), axis=1), rows[kept]

    def blind_products(self, scores: Tensor, pairs: Array, rows: Array, lengths: Array) -> Tensor:
        """Products of scores and ratings, lengths regressed out; their mean is the correlation."""
        if len(rows) < 8:
            return scores.new_zeros(0)
        known = np.log(lengths[pairs] + 1.0)
        basis = np.linalg.qr(np.column_stack((np.ones(len(rows)), known, np.exp(known))))[0]
        target = self.target[rows] - basis @ (basis.T @ self.target[rows])
        target = torch.as_tensor(target, device=scores.device, dtype=scores.dtype)
        taken = torch.as_tensor(basis, device=scores.device, dtype=scores.dtype)
        left = scores - taken @ (taken.mT @ scores)
        return (left * target) / (left.std() * target.std()).clamp(min=1e-12)

    def agreement(self, scores: Array, chosen: Array, within: float = 0.0) -> float:
        """Pearson's r with the target, or tau on preferences; `scores` are those of all texts.

        With `within` it is (r + within * tau) / (1 + within), where tau is that on the preferences
        that ratings of one segment imply.
        """
        if self.judged.preferences is not None:
            return _tau(scores, self.judged.preferences[chosen])
        r = float(np.corrcoef(scores[chosen], self.target[chosen])[0, 1])
        pairs = self.ordered(chosen) if within else np.empty((0, 2), np.int64)
        return (r + within * _tau(scores[chosen], pairs)) / (1.0 + within) if len(pairs) else r

    def gains(self, before: Array, after: Array) -> Iterator[SetGain]:
        """Both metrics on the test rows, by each criterion."""
        chosen, pairs = self.rows["test"], self.judged.preferences
        if pairs is not None:
            both = np.nan_to_num(np.stack((after, before)))
            origin = self.judged.segments, self.judged.systems
            preferences = Preferences.of(pairs[chosen], len(self.judged), *origin)
            p = permutation_p_values(preferences, both)[0, 1]
            yield self._gain("", "tau", preferences, both, len(chosen), p)
            return
        both = np.stack((after[chosen], before[chosen]))
        for criterion, values in self.judged.human.items():
            human = values[chosen]
            known = np.isfinite(human)
            if known.sum() > 3 and np.ptp(human[known]) > 0:
                statistic = Correlation.of("segment", "pearson", human)
                p = williams_p_values(both, human)[0, 1]
                yield self._gain(criterion, "pearson", statistic, both, int(known.sum()), p)

    def _gain(
        self, criterion: str, kind: str, statistic: Statistic, both: Array, rows: int, p: float
    ) -> SetGain:
        after, before = (estimate(statistic, scores) for scores in both)
        return SetGain(self.name, criterion, kind, rows, before, after, float(p))


def _tau(scores: Array, pairs: Array) -> float:
    """Kendall's tau on pairs (pair, 2), the better one first; a tie is discordant."""
    better, worse = scores[pairs].T
    return float(np.mean(better > worse) - np.mean(better <= worse))


def _number(texts: dict[str, int], text: str) -> int:
    return texts.setdefault(text, len(texts))


def _draw(text: str, seed: int) -> float:
    """A number from 0 to 1 that a text and the seed determine."""
    digest = hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _mean_criterion(human: Mapping[str, Array], count: int) -> Array:
    """The mean over criteria of ratings with mean 0 and deviation 1; nan where there is none."""
    rated = np.full((max(len(human), 1), count), np.nan)
    for row, values in zip(rated, human.values(), strict=False):
        spread = np.nanstd(values) if np.isfinite(values).any() else 0.0
        if spread > 0:
            row[:] = (values - np.nanmean(values)) / spread
    known = np.isfinite(rated).sum(axis=0)
    total = np.nansum(rated, axis=0)
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def _pearson(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    share = weight / weight.sum()
    x, y = x - (share * x).sum(), y - (share * y).sum()
    spread = (share * x * x).sum() * (share * y * y).sum()
    return (share * x * y).sum() / spread.clamp(min=1e-12).sqrt()
