"""The embedded encoder: missing, it says how to get it; tampered with, it is not loaded."""

from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import freight
from freight.encoders import packaged_folder


@pytest.mark.usefixtures("unshared")
def test_without_the_extra_the_message_gives_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freight.encoders.find_spec", lambda name: None)
    with pytest.raises(freight.MissingPart, match=r"pip install 'freight\[embedded\]'"):
        freight.load("emd").score(["a"], ["b"])


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.safetensors").write_bytes(b"something else")
    spec = ModuleSpec("stand_in", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("freight.encoders.find_spec", lambda name: spec)
    with pytest.raises(freight.FreightError, match="is not what embedded was published with"):
        packaged_folder("embedded")
