"""BERT-shaped encoders from a folder, without `transformers`, whose import takes seconds.

The names of the parameters are those of `transformers`, and so are the hidden states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from freight.encoders.batching import attend_packed
from freight.errors import MissingPart

Tensors = Mapping[str, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention (row, token, head, dim) from queries, keys and values (row, head, token, dim)."""

_WEIGHTS = "model.safetensors"
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
    "relu": functional.relu,
}
_NOT_ENCODERS = "is_decoder", "add_cross_attention", "quantization_config"
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True)
class BertConfig:
    """What the parameters of a BERT do not tell; defaults are those of `transformers`."""

    model_type: str = "bert"
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    max_position_embeddings: int = 512
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12

    @classmethod
    def read(cls, folder: Path) -> BertConfig | None:
        """The configuration in a folder; nothing if it is not of a plain BERT in one file."""
        try:
            stored = json.loads((folder / "config.json").read_text("utf-8"))
            own = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        except (OSError, ValueError, TypeError):
            return None  # what is wrong with it, `transformers` says
        plain = (
            stored.get("model_type") == "bert"
            and stored.get("position_embedding_type", "absolute") == "absolute"
            and stored.get("hidden_act", "gelu") in _ACTIVATIONS
            and not any(stored.get(name) for name in _NOT_ENCODERS)
            and (folder / _WEIGHTS).is_file()
        )
        return cls(**own) if plain else None


class Bert(nn.Module):
    """The encoder of BERT: token ids to hidden states."""

    def __init__(self, config: BertConfig, tensors: Tensors) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config, tensors, "embeddings")
        self.encoder = _Layers(config, tensors, "encoder.layer")

    @classmethod
    def load(cls, folder: Path, config: BertConfig, dtype: torch.dtype) -> Bert:
        """Read the parameters of a folder; those of heads on top of the encoder are left out."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            stored = load_file(folder / _WEIGHTS)
        except (OSError, SafetensorError) as error:
            raise MissingPart(f"{folder / _WEIGHTS} could not be read: {error}") from error
        tensors = {_plain_name(name): tensor for name, tensor in stored.items()}
        try:
            model = cls(config, tensors)
        except KeyError as missing:
            raise MissingPart(f"{folder / _WEIGHTS} has no parameter {missing}") from None
        table = tuple(model.embeddings.position_embeddings.weight.shape)
        if table != (config.max_position_embeddings, config.hidden_size):
            raise MissingPart(f"{folder / _WEIGHTS} has positions {table}, unlike config.json")
        return model.to(dtype).eval()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cu_seq_lens_q: Tensor | None = None,
        max_length_q: int = 0,
        *,
        layers: Sequence[int],
    ) -> Tensor:
        """The states (layer, row, token, dim) of these layers; those above them are not run.

        Rows are padded, and then a mask is 1 for their tokens, or packed, and then there are the
        bounds of the texts in the only row, and the length of the longest.
        """
        state = self.embeddings(input_ids, position_ids)
        attend: Attend
        if cu_seq_lens_q is not None:
            attend = partial(attend_packed, bounds=cu_seq_lens_q, longest=max_length_q)
        else:
            attend = partial(_attend_padded, mask=_additive_mask(attention_mask, state.dtype))
        wanted = {0: state} if 0 in layers else {}
        for layer in range(1, max(layers) + 1):
            state = self.encoder.layer[layer - 1](state, attend)
            if layer in layers:
                wanted[layer] = state
        return torch.stack([wanted[layer] for layer in layers])


def _plain_name(stored: str) -> str:
    """The parameter's name in the encoder: without the prefix of models with heads."""
    for old, new in _OLD_NAMES.items():
        if stored.endswith(f"LayerNorm{old}"):
            stored = stored.removesuffix(old) + new
    return stored.removeprefix("bert.")


def _additive_mask(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """What is added to the attention of every token to every other: 0, or minus infinity."""
    if mask is None:
        return None
    blocked = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return blocked.masked_fill_(mask == 0, float("-inf"))[:, None, None, :]


def _attend_padded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return attended.transpose(1, 2)


# Modules of our own, around the tensors of a file: those of torch would first fill theirs with
# random numbers, or import its compiler in order not to.


def _parameter(tensors: Tensors, name: str) -> nn.Parameter:
    return nn.Parameter(tensors[name], requires_grad=False)


class _Table(nn.Module):
    def __init__(self, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.weight = _parameter(tensors, f"{name}.weight")

    def forward(self, rows: Tensor) -> Tensor:
        return functional.embedding(rows, self.weight)


class _Linear(nn.Module):
    def __init__(self, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.weight = _parameter(tensors, f"{name}.weight")
        self.bias = _parameter(tensors, f"{name}.bias")

    def forward(self, state: Tensor) -> Tensor:
        return functional.linear(state, self.weight, self.bias)


class _Norm(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.eps = config.layer_norm_eps
        self.weight = _parameter(tensors, f"{name}.weight")
        self.bias = _parameter(tensors, f"{name}.bias")

    def forward(self, state: Tensor) -> Tensor:
        return functional.layer_norm(state, self.weight.shape, self.weight, self.bias, self.eps)


class _Embeddings(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.word_embeddings = _Table(tensors, f"{name}.word_embeddings")
        self.token_type_embeddings = _Table(tensors, f"{name}.token_type_embeddings")
        self.position_embeddings = _Table(tensors, f"{name}.position_embeddings")
        self.LayerNorm = _Norm(config, tensors, f"{name}.LayerNorm")

    def forward(self, ids: Tensor, positions: Tensor | None) -> Tensor:
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        summed = self.word_embeddings(ids) + self.token_type_embeddings.weight[0]
        state: Tensor = self.LayerNorm(summed + self.position_embeddings(positions))
        return state


class _Layers(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        depth = config.num_hidden_layers
        self.layer = nn.ModuleList(_Layer(config, tensors, f"{name}.{k}") for k in range(depth))


class _Layer(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[config.hidden_act]
        self.attention = _Attention(config, tensors, f"{name}.attention")
        self.intermediate = _Dense(tensors, f"{name}.intermediate")
        self.output = _Residual(config, tensors, f"{name}.output")

    def forward(self, state: Tensor, attend: Attend) -> Tensor:
        attended = self.attention(state, attend)
        inner = self.activation(self.intermediate.dense(attended))
        final: Tensor = self.output(inner, attended)
        return final


class _Attention(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.self = _Heads(config, tensors, f"{name}.self")
        self.output = _Residual(config, tensors, f"{name}.output")

    def forward(self, state: Tensor, attend: Attend) -> Tensor:
        attended: Tensor = self.output(self.self(state, attend), state)
        return attended


class _Heads(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.count = config.num_attention_heads
        self.query, self.key, self.value = (
            _Linear(tensors, f"{name}.{side}") for side in ("query", "key", "value")
        )

    def forward(self, state: Tensor, attend: Attend) -> Tensor:
        shape = *state.shape[:-1], self.count, -1
        sides = (side(state).view(shape) for side in (self.query, self.key, self.value))
        query, key, value = (side.transpose(1, 2) for side in sides)  # (row, head, token, dim)
        return attend(query, key, value).reshape(state.shape)


class _Dense(nn.Module):
    def __init__(self, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.dense = _Linear(tensors, f"{name}.dense")


class _Residual(nn.Module):
    def __init__(self, config: BertConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.dense = _Linear(tensors, f"{name}.dense")
        self.LayerNorm = _Norm(config, tensors, f"{name}.LayerNorm")

    def forward(self, inner: Tensor, before: Tensor) -> Tensor:
        state: Tensor = self.LayerNorm(self.dense(inner) + before)
        return state
