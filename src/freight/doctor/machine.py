"""What there is to run on, and what is kept on disk."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from freight.doctor.troubles import Trouble
from freight.folders import user_cache


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

    from freight.encoding.packed import packs

    found = []
    for k in range(torch.cuda.device_count()):
        device, about = torch.device("cuda", k), torch.cuda.get_device_properties(k)
        fits = packs("bert", torch.bfloat16, device)
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
