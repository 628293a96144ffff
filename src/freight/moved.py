"""Import paths that have moved: they still work in this release, with a warning.

An old path becomes a module whose names are looked up where they live now. Delete this file, its
test and its two lines in `freight/__init__.py` in the next minor release.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "catalogue": "metrics",
    "clouds": "core.types",
    "comparing": "explain.comparison",
    "core.pairings": "core.costs",
    "costs": "core.costs",
    "data.candidates": "run.decoding",
    "data.places": "data.corpus",
    "decoding": "run.decoding",
    "doctor": "cli.doctor",
    "encoding": "encoders",
    "encoding.words": "encoders.words",
    "explanations": "explain.explanation",
    "interop.cards": "interop.evaluate",
    "interop.lm_eval": "interop.harnesses",
    "judge.cache": "judge.scores",
    "judge.grid": "judge.search",
    "judge.paired": "judge.systems",
    "judge.raters": "judge.annotation",
    "judge.sample": "judge.annotation",
    "judge.standings": "judge.systems",
    "judge.tune": "judge.tuning",
    "languages": "data.languages",
    "metric": "core.metric",
    "pairings": "core.costs",
    "pictures": "explain.explanation",
    "readouts": "core.readouts",
    "rehearsal": "core.sweep_cache",
    "report.export": "report.tables",
    "report.leaderboard": "report.tables",
    "results": "core.result",
    "run.local": "run.local_engine",
    "run.on_ray": "run.ray_engine",
    "run.summary": "run.shards",
    "scoring": "core.pipeline",
    "solvers": "transport.solvers",
    "train": "learn",
    "types": "transport.types",
    "units": "core.units",
    "weightings": "core.weightings",
}
"""By old module, the module that has most of its names."""

RENAMED = {
    "data.judgements.read_judgements": "data.judgement_files.read_judgements",
    "data.places.Places": "data.corpus.RowOrigins",
    "encoding.encoders": "encoders.list_encoders",
    "encoding.words.tokeniser": "encoders.words.word_tokenizer",
    "judge.error.scaled": "judge.error.rescale",
    "judge.grid.Choice": "judge.search.Choices",
    "judge.paired.against_first": "judge.systems.compare_with_baseline",
    "judge.sample.draw": "judge.annotation.draw_sample",
    "judge.significance.bootstrap": "judge.significance.bootstrap_interval",
    "judge.significance.permutation": "judge.significance.permutation_test",
    "judge.significance.williams_matrix": "judge.significance.williams_p_values",
    "judge.standings.standings": "judge.systems.rank_systems",
    "pictures.Pictured": "explain.explanation.Drawable",
    "rehearsal.Memories": "core.sweep_cache.SharedEncodings",
    "rehearsal.Rehearsal": "core.sweep_cache.SweepCache",
    "solvers.barycenter": "transport.barycenters.barycenter",
}
"""By old module and name, the full new name where that differs."""


class OldPaths(MetaPathFinder):
    """Finds the modules that have moved; asked only where nothing else is found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The alias of an old path."""
        package, _, name = fullname.partition(".")
        known = package == "freight" and name in MOVED
        return ModuleSpec(fullname, _Alias(name), is_package=True) if known else None


class _Alias(Loader):
    def __init__(self, name: str) -> None:
        self.name = name

    def exec_module(self, module: ModuleType) -> None:
        """Warn, and look names up where they are now."""
        warnings.warn(
            f"freight.{self.name} has moved to freight.{MOVED[self.name]}; the old path goes in the"
            " next minor release",
            FutureWarning,
            stacklevel=2,
        )
        vars(module)["__getattr__"] = self._look_up

    def _look_up(self, name: str) -> Any:
        home, renamed = f"freight.{MOVED[self.name]}", name
        if f"{self.name}.{name}" in RENAMED:
            home, _, renamed = f"freight.{RENAMED[f'{self.name}.{name}']}".rpartition(".")
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(home), renamed)


def old_names(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__` for names of its own that have changed."""
    path = module.removeprefix("freight.")

    def look_up(name: str) -> Any:
        new = RENAMED.get(f"{path}.{name}")
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message = f"{module}.{name} is called freight.{new} now; the old name goes in the next"
        warnings.warn(f"{message} minor release", FutureWarning, stacklevel=2)
        home, _, renamed = f"freight.{new}".rpartition(".")
        return getattr(import_module(home), renamed)

    return look_up


def install() -> None:
    """Make the old paths importable."""
    if not any(isinstance(finder, OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(OldPaths())
