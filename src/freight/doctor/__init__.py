"""What is installed, what works, and what to do about the rest.

Nothing is taken for granted here, so every part is imported where it is looked at.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

import freight
from freight.doctor.installed import Extra, Package, extras, requirements
from freight.doctor.machine import Cache, Gpu, Threads, caches, gpus, notes, threads
from freight.doctor.troubles import Trouble, tried
from freight.doctor.trying import Encoding, Trial, encoding, trial

__all__ = ["Examination", "Trouble", "examine"]


@dataclass(frozen=True)
class Examination:
    """All that was found; `troubles` are what is promised and does not hold."""

    version: str
    python: str
    system: str
    troubles: tuple[Trouble, ...]
    notes: tuple[str, ...]
    packages: tuple[Package, ...]
    extras: tuple[Extra, ...]
    encoder: Encoding | None
    gpus: tuple[Gpu, ...]
    threads: Threads | None
    caches: tuple[Cache, ...]
    trial: Trial | None

    @property
    def sound(self) -> bool:
        """Whether all that is promised holds."""
        return not self.troubles

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = asdict(self)
        found["extras"] = {
            extra.name: {**asdict(extra), "installed": extra.installed, "install": extra.install}
            for extra in self.extras
        }
        return {"sound": self.sound, **found}


def examine() -> Examination:
    """Look at everything, and score a pair of texts."""
    troubles: list[Trouble] = []
    core: tuple[Package, ...] = tried(requirements, (), troubles)
    more: tuple[Extra, ...] = tried(extras, (), troubles)
    there = [*core, *(package for extra in more if extra.installed for package in extra.packages)]
    troubles += [package.trouble for package in there if package.trouble]
    found = Examination(
        version=freight.__version__,
        python=f"{platform.python_version()} in {sys.prefix}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        troubles=(),
        notes=tried(notes, (), troubles),
        packages=core,
        extras=more,
        encoder=tried(encoding, None, troubles),
        gpus=tried(gpus, (), troubles),
        threads=tried(threads, None, troubles),
        caches=tried(caches, (), troubles),
        trial=tried(trial, None, troubles),
    )
    troubles += [cache.trouble for cache in found.caches if cache.trouble]
    troubles += [found.trial.trouble] if found.trial and found.trial.trouble else []
    return replace(found, troubles=tuple(dict.fromkeys(troubles)))
