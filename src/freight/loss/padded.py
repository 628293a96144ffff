"""Padded states as measures: masked tokens change neither the value nor the gradient."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from freight.errors import InvalidInput
from freight.transport.types import Array, to_array


class LossInput(NamedTuple):
    """One side as the caller gives it, checked: states (row, unit, layer, dim)."""

    name: str
    states: Tensor
    kept: Tensor  # (row, unit)
    weights: Tensor | None


class PaddedSide(NamedTuple):
    """Rows of units before padding, in single precision or better."""

    states: Tensor  # (row, unit, layer, dim)
    inside: Tensor  # (row, unit)
    weights: Tensor  # (row, unit), as given, or 1
    sizes: Array

    def masses(self, weights: Tensor | None = None) -> Tensor:
        """Weights normalized to sum 1 per row, in double precision; equal if all of them are 0."""
        mass = (self.weights if weights is None else weights).double()
        mass = torch.where(mass.sum(-1, keepdim=True) > 0, mass, self.inside.to(mass.dtype))
        return mass / mass.sum(-1, keepdim=True)


def check_input(
    name: str, states: Tensor, mask: Tensor | None, weights: Tensor | None, layers: bool
) -> LossInput:
    """Check one side; states without a layer axis have one layer."""
    shapes = "(batch, layer, token, dim)" if layers else "(batch, token, dim)"
    if states.ndim == 3:
        states = states[:, None]
    elif states.ndim != 4 or not layers:
        raise InvalidInput(f"{name}_states has shape {tuple(states.shape)}; give {shapes}")
    if not states.is_floating_point():
        raise InvalidInput(f"{name}_states holds {states.dtype}; give floating-point numbers")
    states = states.transpose(1, 2)
    if mask is None:
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    for what, tensor in (("mask", mask), ("weights", weights)):
        if tensor is not None and tensor.shape != states.shape[:2]:
            raise InvalidInput(
                f"{name}_{what} has shape {tuple(tensor.shape)}, the states need"
                f" {tuple(states.shape[:2])}"
            )
    if mask.is_floating_point():
        raise InvalidInput(f"{name}_mask holds {mask.dtype}; give bool, or 1 where a token is")
    return LossInput(name, states, mask.bool(), weights)


def select_rows(side: LossInput, rows: Tensor) -> PaddedSide:
    """These rows with their units moved to the front; masked states are never read."""
    kept = side.kept[rows]
    sizes = kept.sum(1)
    width = int(sizes.max())
    order = (~kept).byte().argsort(dim=1, stable=True)[:, :width]
    inside = torch.arange(width, device=kept.device) < sizes[:, None]
    precision = torch.promote_types(side.states.dtype, torch.float32)
    selected = side.states[rows].to(precision).take_along_dim(order[..., None, None], 1)
    states = selected.where(inside[..., None, None], 0.0)
    weights = inside.to(precision)
    if side.weights is not None:
        weights = side.weights[rows].to(states).take_along_dim(order, 1).where(inside, 0.0)
    _check_finite(side.name, states, weights, rows)
    return PaddedSide(states, inside, weights, to_array(sizes))


def _check_finite(name: str, states: Tensor, weights: Tensor, rows: Tensor) -> None:
    bad = ~states.isfinite().flatten(1).all(1)
    if bool(bad.any()):
        raise InvalidInput(f"{name}_states is not finite in row {int(rows[bad][0])}")
    bad = ~(weights.isfinite() & (weights >= 0)).all(1)
    if bool(bad.any()):
        raise InvalidInput(f"{name}_weights has a weight < 0, or not finite, in row {rows[bad][0]}")
