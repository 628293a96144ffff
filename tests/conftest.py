"""Data beside the project, in $FREIGHT_DATA or else in ../shared, and a tiny model made here."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pages import browser, chromium_address, open_page  # noqa: F401

DATA = Path(os.environ.get("FREIGHT_DATA", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        message = f"the data beside the project is not at {DATA}; set FREIGHT_DATA"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return DATA


@pytest.fixture(scope="session")
def published(data: Path) -> dict[str, Any]:
    """Stored scores of published implementations, with the pairs that they scored."""
    stored: dict[str, Any] = json.loads((data / "golden/published.json").read_text())
    return stored


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a window of 24 tokens and the embedded encoder's vocabulary."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from freight.encoders import packaged_folder

    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(packaged_folder("embedded")).save_pretrained(folder)
    return folder
