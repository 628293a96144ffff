"""Small records with a seal, so that a damaged or foreign one is found out."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

SEAL = "seal"


def digest(content: Any) -> str:
    """The SHA-256 of plain data, however its keys are ordered."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sealed(content: Mapping[str, Any], owner: str = "", indent: int | None = None) -> bytes:
    """A record as JSON; `owner` has to be known to open it again."""
    marked = {**content, SEAL: digest([owner, content])}
    return json.dumps(marked, indent=indent, ensure_ascii=False).encode() + b"\n"


def opened(record: bytes | None, owner: str = "") -> dict[str, Any] | None:
    """What was sealed; nothing where that is not what is there."""
    try:
        content = json.loads(record or b"")
        seal = content.pop(SEAL)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if seal == digest([owner, content]) else None
