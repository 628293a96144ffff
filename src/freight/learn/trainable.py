"""What is fitted: the metric as a differentiable function of small differences to its encoder.

Units, masses, costs, problems and read-out are those of the metric `freight` itself; only the
parameters of its encoder are replaced by ones with gradients. Plans are not differentiated: by the
envelope theorem the derivative of the optimal value with respect to the cost is the plan itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from freight.core.costs import STEP, side_by_side
from freight.core.metric import Metric
from freight.core.readouts import LazyAndGreedy
from freight.core.types import Cloud, Pairs
from freight.encoders.adapters import LEFT, RIGHT, adapter_of
from freight.encoders.batching import (
    BatchShape,
    PackedWindows,
    make_padded_batch,
    split_into_windows,
)
from freight.encoders.transformer import Transformer, differentiable_states
from freight.errors import InvalidInput
from freight.learn.ratings import TrainingPart
from freight.transport.solvers import solve
from freight.transport.types import Array, send_to_device

_INNER = "model."
"""How the names of the model's parameters begin in the module around it."""

_IDLE = ("key.bias", ".k.bias")
"""Key biases are not trained: softmax is invariant to them, as they shift all logits of a query."""

_MOST_NUMBERS = 135_000
"""How many numbers an adapter has at most, so that its file is below 300 kB."""

_TOLERANCE = 1e-5
"""The tolerance of the plans: a smaller one makes no difference to the loss of a step."""

_SCORED_TOKENS = 2**17
"""How many tokens are scored at a time on a GPU."""

_KEPT = 2**31
"""Bytes that a step on a CPU keeps of its encoder's intermediate values; on a GPU half of what is
free. The rest is recomputed in the backward pass.
"""
_KEPT_OF_ONE = 150
"""Bytes that a layer keeps of one dimension of a token."""

Differences = dict[str, Tensor]
"""Differences to parameters, by their names in an adapter."""


class TrainableMetric:
    """The metric with differences to its encoder's parameters: leaves of the graph, 0 at first.

    All biases and layer norms below the highest layer that the metric needs are trained, and
    matrices by differences of low `rank`, from the top down, as many as one file has room for.
    """

    def __init__(self, metric: Metric, texts: Sequence[str], rank: int = 0, seed: int = 0) -> None:
        encoder = metric.encoder
        if not isinstance(encoder, Transformer) or not isinstance(metric.readout, LazyAndGreedy):
            raise InvalidInput(
                f"{metric.name} on {encoder.identity} cannot be trained; take freight on a"
                " transformer"
            )
        if adapter_of(encoder) is not None:
            raise InvalidInput("the encoder has an adapter already; train without one")
        self.metric, self.encoder = metric, encoder
        self.device = encoder.torch_device
        self._model = _Model(encoder._model)
        self._tokens = encoder.prepare(list(texts))
        self._budget = 2**16 if self.device.type == "cuda" else 2**10
        self._base = dict(encoder._model.named_parameters())
        self.differences = self._fresh(rank, seed)

    @property
    def lengths(self) -> Array:
        """The number of tokens of each text."""
        return np.diff(self._tokens.offsets)

    def scores(self, pairs: Array, owner: Array, rows: int) -> Tensor:
        """The score of each row: of its pairs (pair, 2) of text numbers, the best one."""
        distinct, index = np.unique(pairs, return_inverse=True)
        cloud = self._encode(distinct)
        measures = self.metric.weighting(self.metric.units(cloud))
        index = index.reshape(-1, 2)
        # A text without units counts as 0, since there is nothing to solve.
        there = np.flatnonzero((np.diff(measures.offsets)[index] > 0).all(axis=1))
        # On a GPU few batches are solved faster than narrow ones.
        step = 64 if self.device.type == "cuda" else STEP
        scores = measures.points.new_zeros(len(index))
        batches = list(side_by_side(measures, measures, index[there], step, fill=False))
        if batches:
            which = there[np.concatenate([batch.which for batch in batches])]
            distances = torch.cat([self._distances(batch) for batch in batches])
            solved = (-distances.clamp(min=0.0)).exp()
            scores = scores.index_copy(0, send_to_device(which, self.device), solved)
        if rows == len(pairs):
            return scores
        best = scores.new_zeros(rows)
        where = send_to_device(owner, self.device)
        return best.scatter_reduce(0, where, scores, "amax", include_self=False)

    def scores_of(
        self,
        parts: Sequence[TrainingPart],
        rows: Sequence[Array],
        blind: np.random.Generator | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The scores of rows of several sets, encoded together.

        With a generator, which draws references of other segments, also the products whose mean is
        the correlation of the ratings with the scores against those.
        """
        given = [*zip(parts, rows, strict=True)]
        both = [part.pairs(some) for part, some in given]
        others = [part.blind_pairs(some, blind) for part, some in given if blind is not None]
        both += [(pairs, np.arange(len(pairs))) for pairs, _ in others]
        sizes = [*map(len, rows), *(len(pairs) for pairs, _ in others)]
        starts = np.cumsum([0, *sizes])
        owner = np.concatenate([own + at for (_, own), at in zip(both, starts, strict=False)])
        pairs = np.concatenate([pairs for pairs, _ in both])
        scores = torch.split(self.scores(pairs, owner, int(starts[-1])), sizes)
        products = [
            part.blind_products(own, *other, self.lengths)
            for part, own, other in zip(parts, scores[len(rows) :], others, strict=False)
        ]
        return list(scores[: len(rows)]), products

    @torch.no_grad()
    def score_all(self, part: TrainingPart, rows: Array) -> Array:
        """Scores of these rows of a set, however many; nan elsewhere."""
        longest = np.array([self.lengths[[part.hyp[k], *part.refs[k]]].sum() for k in rows])
        order = np.argsort(longest, kind="stable")
        budget = _SCORED_TOKENS if self.device.type == "cuda" else _SCORED_TOKENS // 32
        group = np.cumsum(longest[order]) // budget
        scores = np.full(len(part.judged), np.nan)
        for k in np.unique(group):
            some = rows[order[group == k]]
            scores[some] = self.scores_of([part], [some])[0][0].double().cpu().numpy()
        return scores

    def _fresh(self, rank: int, seed: int) -> Differences:
        used = {n: x for n, x in self._base.items() if self._is_used(n) and not n.endswith(_IDLE)}
        fresh = {name: torch.zeros(x.shape) for name, x in used.items() if x.ndim == 1}
        room = _MOST_NUMBERS - sum(x.numel() for x in fresh.values())
        generator = torch.Generator().manual_seed(seed)
        for name, (rows, columns) in (
            (n, x.shape) for n, x in [*used.items()][::-1] if x.ndim == 2
        ):
            room -= rank * (rows + columns)
            if not rank or room < 0:
                break
            drawn = torch.randn((rank, columns), generator=generator) / math.sqrt(columns)
            fresh |= {name + LEFT: torch.zeros((rows, rank)), name + RIGHT: drawn}
        return {name: x.to(self.device).requires_grad_() for name, x in fresh.items()}

    def _is_used(self, name: str) -> bool:
        """Whether the layers that the metric needs depend on a parameter."""
        numbers = [int(part) for part in name.split(".") if part.isdigit()]
        if not numbers:
            return name.startswith("embeddings.LayerNorm")
        return numbers[0] < max(self.metric.layers)

    def _changed(self) -> dict[str, Tensor]:
        changed = {}
        for name, value in self.differences.items():
            if name.endswith(RIGHT):
                continue
            own = name.removesuffix(LEFT)
            difference = value if own == name else value @ self.differences[own + RIGHT]
            changed[_INNER + own] = self._base[own].float() + difference
        return changed

    @property
    def _kept_of_token(self) -> int:
        return _KEPT_OF_ONE * max(self.metric.layers) * self.encoder._width

    def _room(self) -> float:
        """Bytes that a step may keep, if it keeps anything."""
        if not torch.is_grad_enabled():
            return math.inf
        if self.device.type == "cuda":
            return torch.cuda.mem_get_info(self.device)[0] / 2
        return _KEPT

    def _distances(self, pairs: Pairs) -> Tensor:
        cost = self.metric.cost(pairs)
        hyp, ref = (send_to_device(mass, self.device) for mass in pairs.masses)
        hyp_sizes, ref_sizes = pairs.sizes
        given = cost.detach().double()
        plans = [
            solve(problem, given, hyp, ref, hyp_sizes, ref_sizes, tolerance=_TOLERANCE)
            for problem in self.metric.problems
        ]
        fixed = [replace(plan, cost=cost, flow=plan.flow.to(cost.dtype)) for plan in plans]
        distances: Tensor = self.metric.readout.distance(fixed)  # type: ignore[attr-defined]
        return distances.to(cost.dtype)

    def _encode(self, texts: Array) -> Cloud:
        """The cloud of these texts, encoded by the changed model."""
        tokens, encoder = self._tokens.only(texts), self.encoder
        special, padding = encoder._tokenizer.special, encoder._tokenizer.padding
        windows = split_into_windows(tokens.ids, tokens.offsets, special, encoder._limit)
        changed, room = self._changed(), self._room()
        pieces, places = [], []
        for shape, chosen in _plan_by_length(windows.lengths, self._budget):
            batch = make_padded_batch(shape, windows, chosen, padding)
            inputs = {name: send_to_device(x, self.device) for name, x in batch.arrays.items()}
            run = partial(functional_call, self._model, changed, (inputs, self.metric.layers))
            room -= shape.rows * shape.length * self._kept_of_token
            states = checkpoint(run, use_reentrant=False) if room < 0 else run()
            position = send_to_device(batch.position, self.device)
            pieces.append(states.flatten(1, 2)[:, position].transpose(0, 1))
            places.append(batch.source)
        order = np.argsort(np.concatenate(places))
        states = torch.cat(pieces)[send_to_device(order, self.device)]
        whole = np.zeros(len(texts), bool)
        return tokens.cloud(_gather_windows(states, windows, len(tokens.ids)), whole, whole)


class _Model(nn.Module):
    """An encoder's model as a module whose output is the states of some layers, with gradients."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Mapping[str, Tensor], layers: Sequence[int]) -> Tensor:
        return differentiable_states(self.model, inputs, layers)


def _gather_windows(states: Tensor, windows: PackedWindows, units: int) -> Tensor:
    """The states of the units of texts; of a unit in several windows, their mean."""
    if len(windows.units) == units:
        return states
    used = np.flatnonzero(windows.units >= 0)
    target = windows.units[used]
    seen = send_to_device(np.bincount(target, minlength=units), states.device)
    start = states.new_zeros((units, *states.shape[1:]))
    rows = states[send_to_device(used, states.device)]
    summed = start.index_add(0, send_to_device(target, states.device), rows)
    return summed / seen[:, None, None]


def _plan_by_length(lengths: Array, budget: int) -> Iterator[tuple[BatchShape, Array]]:
    """Windows of about one length together, at most so many tokens with their padding."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        length = int(lengths[order[start]])
        chosen = order[start : start + max(1, budget // length)]
        yield BatchShape(len(chosen), length), chosen
        start += len(chosen)


@contextmanager
def deterministic() -> Iterator[None]:
    """Have torch take the operations whose bits do not change from run to run."""
    before = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    exact = torch.backends.cuda.matmul.allow_tf32
    efficient: bool = torch.backends.cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.matmul.allow_tf32 = True  # far finer than the steps that are taken
    torch.backends.cuda.enable_mem_efficient_sdp(False)  # its gradients differ from run to run
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = exact
        torch.backends.cuda.enable_mem_efficient_sdp(efficient)
        torch.use_deterministic_algorithms(before, warn_only=warned)
