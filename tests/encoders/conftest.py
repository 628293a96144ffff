"""Encoders that several tests share."""

import pytest

import freight
from freight.encoders.transformer import Transformer


@pytest.fixture(scope="session")
def embedded_transformer() -> Transformer:
    encoder = freight.encoder("embedded")
    assert isinstance(encoder, Transformer)
    return encoder
