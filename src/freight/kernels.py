"""How numba compiles our kernels, where the machine code is kept, and which threads run it.

Compiled code is stored by content: the file name is a digest of the bytecode of the kernel and of
everything that it calls, the constants they use, the options, the signature and the processor. The
same sources in another folder (another clone, an installed wheel) share the machine code; a
kernel is compiled again as soon as it, one of its callees or one of their constants has changed.
Numba's own cache goes by path and line, and does not notice that a callee has changed.
"""

import hashlib
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from threading import RLock, local
from types import CodeType, ModuleType
from typing import Any, TypeVar, cast
from uuid import uuid4

import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from platformdirs import user_cache_path

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-ordered into vector lanes, which takes the promise that all terms are finite.
_VECTORS = {"reassoc", "contract", "nsz", "nnan", "ninf"}

_dumps: Callable[[Any], bytes] = dumps

_ONE = RLock()
_THREAD = local()


def kernel(function: F) -> F:
    """Compile a function that works on one problem."""
    return _compile(function)


def summing(function: F) -> F:
    """Compile a short reduction of finite numbers that may be re-ordered for the vector unit."""
    return _compile(function, fastmath=_VECTORS)


def batch_kernel(function: F) -> F:
    """Compile a loop over a batch whose problems are shared out among the threads."""
    return _compile(function, parallel=True)


def _compile(function: F, **options: Any) -> F:
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if compiled is not function:  # with NUMBA_DISABLE_JIT numba compiles nothing
        compiled._cache = _ContentCache(compiled)
    return cast(F, compiled)


def kernel_folder() -> Path:
    """Where compiled kernels are kept: in $NUMBA_CACHE_DIR where that is set, else in our cache.

    A folder that cannot be written is replaced by `__pycache__` beside this module. Every version
    of numba has a folder of its own.
    """
    config: Any = numba.config
    return _writable_folder(str(config.CACHE_DIR))


@cache
def _writable_folder(given: str) -> Path:
    version = f"numba-{numba.__version__}"
    ours = user_cache_path("freight", appauthor=False) / "kernels"
    first = (Path(given) if given else ours) / version
    for folder in (first, Path(__file__).parent / "__pycache__" / version):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return first  # what is there can still be read


class _ContentCache:
    """The compiled signatures of one kernel on disk; takes the place of numba's own cache."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @property
    def cache_path(self) -> str:
        return str(kernel_folder())

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The stored code for these types, or None."""
        context.refresh()
        try:
            payload = pickle.loads(self._path(signature, context.codegen()).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        rebuild: Any = CompileResult._rebuild
        return rebuild(context, *payload)

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store what was compiled for these types; a folder that cannot be written is no error."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        path = self._path(signature, result.codegen)
        payload = _dumps(result._reduce())
        unfinished = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            unfinished.write_bytes(payload)
            unfinished.replace(path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def flush(self) -> None:
        """Numba calls this to recompile a function whose globals have changed."""
        self.__dict__.pop("_content", None)

    def _path(self, signature: Any, codegen: Any) -> Path:
        arguments = [_describe_type(kind) for kind in getattr(signature, "args", signature)]
        parts = [self._content, *arguments, repr(codegen.magic_tuple())]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        function = self._dispatcher.py_func
        return kernel_folder() / f"{function.__module__}.{function.__qualname__}-{digest[:32]}.nbc"

    @cached_property
    def _content(self) -> str:
        # Not while decorating: what a kernel calls may be defined below it.
        return _describe_content(self._dispatcher)


def _describe_content(dispatcher: Any) -> str:
    """All that the machine code of a kernel depends on, apart from types and processor."""
    reachable = {_name(dispatcher): dispatcher}
    waiting = [dispatcher]
    while waiting:
        for value in _referenced(waiting.pop().py_func).values():
            if isinstance(value, Dispatcher) and _name(value) not in reachable:
                reachable[_name(value)] = value
                waiting.append(value)
    parts = [f"numba {numba.__version__}, numpy {np.__version__}"]
    parts += [_describe_kernel(reachable[name]) for name in sorted(reachable)]
    return "\n".join(parts)


def _describe_kernel(dispatcher: Any) -> str:
    function, options = dispatcher.py_func, dispatcher.targetoptions
    parts = [_name(dispatcher)]
    parts += [f"{key}={_describe(options[key])}" for key in sorted(options)]
    for code in _code_objects(function.__code__):
        constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
        parts += [code.co_code.hex(), repr(code.co_names)]
        parts += [_describe(c) for c in constants if c != function.__doc__]
    parts += [f"{key}: {_describe(value)}" for key, value in _referenced(function).items()]
    parts.append(_describe(function.__defaults__))
    return "\n".join(parts)


def _referenced(function: Any) -> dict[str, Any]:
    """The globals and closure variables that the function may use, by name."""
    names = {name for code in _code_objects(function.__code__) for name in code.co_names}
    values = {n: function.__globals__[n] for n in sorted(names) if n in function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return values | {name: cell.cell_contents for name, cell in cells}


def _code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_objects(constant)


def _describe(value: Any) -> str:
    """A text that changes with the value and is the same in every process."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_describe(item) for item in value)})"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(_describe(item) for item in value))}}}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return repr(value)
    if isinstance(value, ModuleType) and not value.__name__.startswith("freight"):
        return value.__name__
    if callable(value):  # a kernel, a class, or what numba itself implements
        return f"{_name(value)} {getattr(value, '_fields', '')}"
    raise TypeError(f"a kernel refers to {value!r}: import the constants and kernels themselves")


def _describe_type(kind: Any) -> str:
    """A numba type; of a named tuple numba itself gives the class, but not the order of fields."""
    inner = [_describe_type(item) for item in getattr(kind, "types", ())]
    return f"{kind} {getattr(kind, 'fields', '')} {inner}"


def _name(value: Any) -> str:
    return f"{value.__module__}.{getattr(value, '__qualname__', None) or value.__name__}"


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
