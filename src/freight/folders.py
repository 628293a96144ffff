"""Where things are kept between runs."""

import os
from pathlib import Path


def user_cache(name: str) -> Path:
    """Our folder of that name in the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "freight" / name
