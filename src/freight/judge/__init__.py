"""How well metrics agree with people: statistics, studies, and samples to be rated."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freight.judge.scores import ScoreCache
    from freight.judge.study import Agreement, Study, judge


__all__ = ["Agreement", "ScoreCache", "Study", "judge"]

_HOMES = {"Agreement": "study", "ScoreCache": "scores", "Study": "study", "judge": "study"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'freight.judge' has no attribute {name!r}")
    return getattr(import_module(f"freight.judge.{_HOMES[name]}"), name)
