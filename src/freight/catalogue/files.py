"""Presets in files: a metric's settings with how they were found, as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from freight.errors import InvalidInput

_INFINITE = {"inf": float("inf"), "-inf": float("-inf")}


def read_preset(path: Path, metric: str, known: Sequence[str]) -> dict[str, Any]:
    """The settings in a file, which has to be of this metric."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the preset {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput(f"the preset {path} is not JSON") from None
    settings = content.get("settings") if isinstance(content, dict) else None
    if not isinstance(settings, dict) or "metric" not in content:
        raise InvalidInput(f"{path} is no preset; it has no metric with settings")
    if content["metric"] != metric:
        raise InvalidInput(f"{path} is a preset of {content['metric']}, not of {metric}")
    for name in settings:
        if name not in known:
            raise InvalidInput(
                f"{path} sets {name!r}, which {metric} does not have; it has {', '.join(known)}"
            )
    return {name: _INFINITE.get(x, x) if isinstance(x, str) else x for name, x in settings.items()}


def write_preset(path: Path, content: Mapping[str, Any]) -> None:
    """Write a metric, its settings, and how they were found, whole or not at all."""
    check_preset(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(plain(content), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)


def check_preset(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix != ".json":
        raise InvalidInput(f"{path} does not end in .json")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def plain(value: Any) -> Any:
    """The same in the words of JSON: infinity is a text, and what is no number is null."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and value in _INFINITE.values():
        return "inf" if value > 0 else "-inf"
    return None if value != value else value
