"""Hidden states of a transformer, without running the layers above the highest one wanted."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import torch
from torch import Tensor, nn


class _Enough(Exception):
    """Raised inside the model once the highest layer wanted has been seen."""


@torch.inference_mode()
def hidden_states(model: Any, inputs: Mapping[str, Any], layers: Sequence[int]) -> Tensor:
    """The states (layer, row, token, dim) of these layers; 0 is what enters the first one.

    The last state is taken from the model's own list, since some models still normalise it.
    """
    blocks = _blocks(model)
    if blocks is None or max(layers) >= len(blocks):
        found = model(**inputs, output_hidden_states=True).hidden_states
        return torch.stack([found[layer] for layer in layers])
    seen: dict[int, Tensor] = {}
    with ExitStack() as hooks, suppress(_Enough):
        for layer in range(max(layers) + 1):
            handle = blocks[layer].register_forward_pre_hook(
                _note(seen, layer, max(layers)), with_kwargs=True
            )
            hooks.callback(handle.remove)
        model(**inputs)
    return torch.stack([seen[layer] for layer in layers])


def _note(seen: dict[int, Tensor], layer: int, top: int) -> Any:
    def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen[layer] = args[0] if args else kwargs["hidden_states"]
        if layer == top:
            raise _Enough

    return hook


def _blocks(model: Any) -> nn.ModuleList | None:
    """The list of the model's layers, where it has one."""
    depth = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module
    return None
