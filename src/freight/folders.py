"""Where Freight keeps files between runs: vectors, scores, unpacked files, compiled kernels."""

from pathlib import Path

import platformdirs


def user_cache(name: str) -> Path:
    """Our folder of that name in the user's cache (Linux: $XDG_CACHE_HOME or ~/.cache)."""
    return platformdirs.user_cache_path("freight", appauthor=False) / name
