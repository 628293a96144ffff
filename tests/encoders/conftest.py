"""Encoders that several tests share."""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

import freight
from freight.encoders.transformer import Transformer, embedded_folder


@pytest.fixture(scope="session")
def embedded_transformer() -> Transformer:
    encoder = freight.encoder("embedded")
    assert isinstance(encoder, Transformer)
    return encoder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a window of 24 tokens and the embedded encoder's vocabulary."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded_folder()).save_pretrained(folder)
    return folder
