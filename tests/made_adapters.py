"""Adapters that are made, not fitted: random differences to a model in a folder."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel

import freight
from freight.encoders.transformer import Transformer
from freight.learn import Adapter


def transformer(folder: Path) -> Transformer:
    made = freight.encoder(str(folder))
    assert isinstance(made, Transformer)
    return made


def made_adapter(folder: Path, scale: float = 0.1, **changes: Any) -> Adapter:
    """Random differences to the biases and layer norms of the model in a folder."""
    torch.manual_seed(1)
    model = AutoModel.from_pretrained(folder)
    tensors = {
        name: scale * torch.randn_like(parameter)
        for name, parameter in model.named_parameters()
        if (name.endswith("bias") or "LayerNorm" in name) and not name.startswith("pooler.")
    }
    weights = transformer(folder).weights_hash
    said = {"parameters": {"layer": [1, 2], "floor": 0.1}, **changes}
    return Adapter("mine", "freight", "tiny", weights, tensors, **said)
