"""The one place that says how our kernels are compiled, and where the machine code is kept."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock, local
from typing import Any, TypeVar

import numba

from freight.folders import user_cache

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-ordered into vector lanes, which takes the promise that all terms are finite.
_VECTORS = {"reassoc", "contract", "nsz", "nnan", "ninf"}

_COMPILED = re.compile(rb"^@(kernel|batch_kernel|summing)$", re.MULTILINE)

_ONE = RLock()
_THREAD = local()


def kernel(function: F) -> F:
    """Compile a function that works on one problem."""
    return _compile(function)


def summing(function: F) -> F:
    """Compile a short reduction of finite numbers that may be re-ordered for the vector unit."""
    return _compile(function, fastmath=_VECTORS)


def batch_kernel(function: F) -> F:
    """Compile a loop over a batch, its problems shared out among the threads."""
    return _compile(function, parallel=True)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wraps a parallel kernel: numba's simplest threading layer aborts when entered twice."""
    if getattr(_THREAD, "solitary", False) and _can_be_entered_twice():
        yield
    else:
        with _ONE:
            yield


def work_alone() -> None:
    """From now on this thread shares its kernels with no other, which may run theirs beside it."""
    numba.set_num_threads(1)
    _THREAD.solitary = True


def spare_threads() -> int:
    """How many threads may work alone, while two others prepare what they need."""
    return max(1, int(numba.get_num_threads()) - 2)


def _can_be_entered_twice() -> bool:
    try:
        library: Any = numba
        return bool(library.threading_layer() != "workqueue")
    except ValueError:  # none has been chosen yet
        return False


def set_threads(count: int) -> None:
    """Use this many threads for everything on the CPU: our kernels, and torch."""
    import torch

    numba.set_num_threads(count)
    torch.set_num_threads(count)


@cache
def kernel_folder() -> Path:
    """A folder for these very sources: numba itself does not notice that a callee has changed.

    What can be a callee: the solvers, and every module that compiles something. Versions of numba
    would throw away each other's files.
    """
    package = Path(__file__).parent
    callees = [
        path
        for path in package.rglob("*.py")
        if path.parent.name == "solvers" or _COMPILED.search(path.read_bytes())
    ]
    stamps = [(p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in callees]
    known = repr((package, numba.__version__, sorted(stamps)))
    digest = hashlib.sha256(known.encode()).hexdigest()[:16]
    return user_cache(f"kernels-{digest}")


def _compile(function: F, **options: Any) -> F:
    # Numba picks the folder of its cache while it decorates; other users of numba keep theirs.
    config: Any = numba.config
    before = config.CACHE_DIR
    if not before:
        config.CACHE_DIR = str(kernel_folder())
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    finally:
        config.CACHE_DIR = before
