"""The compiled kernels (`src/cpp`), and how many threads they may use.

A kernel distributes its batch over threads of its own, with the GIL released; there are as many
threads as OMP_NUM_THREADS says, else as this process has cores. Arrays of float32 or float64 are
read where they lie, whatever their strides. Structures are those of `batches.hpp`, `scanning.hpp`
and `judging.hpp`.
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from ctypes import Structure, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[Any]
# Cost (pair, n, m), masses (pair, n) and (pair, m), and how many units exist (pair,).
_Batched: TypeAlias = tuple[_Array, _Array, _Array, _Array, _Array]
_LIBRARY = Path(__file__).with_name("_kernels.so")

try:
    _library = ctypes.CDLL(str(_LIBRARY))
except OSError as error:
    raise ImportError(
        f"the compiled kernels cannot be loaded ({error}); reinstall freight, or run"
        " `make kernels` among its sources"
    ) from None
_library.freight_use_vectors.restype = c_char_p
_library.freight_scan.restype = c_void_p


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    """Fields of a structure that are of one kind."""
    return [(name, kind) for name in names.split()]


class _Numbers(Structure):
    _fields_ = [("data", c_void_p), ("stride", c_int64 * 3), ("wide", c_bool)]


class _Batch(Structure):
    _fields_ = [
        *_fields(_Numbers, "cost hyp_weights ref_weights"),
        *_fields(c_void_p, "hyp_sizes ref_sizes"),
        ("pairs", c_int64),
    ]


class _Terms(Structure):
    _fields_ = [*_fields(c_double, "hyp ref epsilon tolerance"), ("max_iterations", c_int64)]


class _Solved(Structure):
    _fields_ = [
        ("flow", c_void_p),
        *_fields(c_int64, "n m"),
        *_fields(c_void_p, "gap converged places masses transport"),
    ]


class _Barycenters(Structure):
    _fields_ = [
        *_fields(_Numbers, "layers weights"),
        ("sizes", c_void_p),
        *_fields(c_int64, "texts depth width dim max_iterations"),
        *_fields(c_void_p, "points objective converged"),
    ]


class _Coefficients(Structure):
    _fields_ = [
        *_fields(_Numbers, "gram weights"),
        *_fields(c_int64, "texts size length max_iterations"),
        *_fields(c_void_p, "places values converged"),
    ]


class _Points(Structure):
    _fields_ = [("data", c_void_p), ("dim", c_int64), ("wide", c_bool)]


class _WordTable(Structure):
    _fields_ = [
        ("count", c_int64),
        *_fields(c_void_p, "hashes order data"),
        ("size", c_int64),
        *_fields(c_void_p, "begins lengths"),
    ]


class _Texts(Structure):
    _fields_ = [*_fields(c_void_p, "data starts"), ("count", c_int64)]


class _Sample(Structure):
    _fields_ = [("data", c_void_p), *_fields(c_int64, "rows points")]


class _Groups(Structure):
    _fields_ = [("starts", c_void_p), ("count", c_int64)]


def set_threads(count: int) -> None:
    """Use this many threads for everything on the CPU: our kernels, and torch."""
    import torch

    set_kernel_threads(count)
    torch.set_num_threads(count)


def set_kernel_threads(count: int) -> None:
    """Use this many threads for the kernels of this process."""
    _library.freight_set_threads(c_int(count))


def get_kernel_threads() -> int:
    """How many threads a kernel that is called here may use."""
    return int(_library.freight_get_threads())


def work_alone() -> None:
    """From now on this thread shares its kernels with no other, which may run theirs beside it."""
    _library.freight_set_own_threads(c_int(1))


def spare_threads() -> int:
    """How many threads may work alone, while two others prepare what they need."""
    return max(1, get_kernel_threads() - 2)


def use_vectors(name: str = "") -> str:
    """Use the vector unit of this name, else the widest there is; the bits are the same."""
    used = _library.freight_use_vectors(name.encode())
    if used is None:
        raise ValueError(f"this processor has no vector unit {name!r}")
    return str(used.decode())


def _run(kernel: str, *arguments: Any) -> None:
    """Run a kernel on structures, arrays and numbers; arrays are those that it is to read."""
    if getattr(_library, f"freight_{kernel}")(*(_passed(one) for one in arguments)):
        raise MemoryError("too little memory for this batch")


def _passed(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return _at(argument)
    if isinstance(argument, Structure):
        return byref(argument)
    return c_double(argument) if isinstance(argument, float) else c_int64(argument)


def _at(array: _Array) -> c_void_p:
    """Where the array lies; it has to be kept until the kernel returns."""
    return c_void_p(array.__array_interface__["data"][0])


def _whole(array: Any) -> _Array:
    return np.ascontiguousarray(array, np.int64)


def _floats(array: Any) -> _Array:
    return np.ascontiguousarray(array, np.float64)


def _numbers(array: _Array) -> _Numbers:
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"float32 or float64 is wanted, not {array.dtype}")
    return _Numbers(_at(array), (c_int64 * 3)(*array.strides), array.dtype == np.float64)


def _settle(batch: _Batched) -> tuple[_Batched, _Batch]:
    """The arrays as they are to be kept, and the structure of where they lie."""
    cost, hyp, ref = batch[:3]
    sizes = _whole(batch[3]), _whole(batch[4])
    if len({len(one) for one in batch}) > 1 or cost.shape[1:] != (hyp.shape[1], ref.shape[1]):
        raise ValueError("the arrays of a batch do not fit each other")
    numbers = _numbers(cost), _numbers(hyp), _numbers(ref)
    return (cost, hyp, ref, *sizes), _Batch(*numbers, *map(_at, sizes), len(cost))


def _solver(kernel: str) -> Callable[[_Batched, Any], tuple[_Array, _Array, _Array]]:
    """The plans of a batch by one kernel, their duality gaps, and which converged.

    The terms are the penalties of hyp and ref, epsilon, tolerance and max_iterations.
    """

    def solve(batch: _Batched, terms: Any) -> tuple[_Array, _Array, _Array]:
        kept, given = _settle(batch)
        pairs, n, m = kept[0].shape
        flow, gap, converged = np.zeros((pairs, n, m)), np.empty(pairs), np.empty(pairs, bool)
        _run(kernel, given, _Terms(*terms), _Solved(_at(flow), n, m, _at(gap), _at(converged)))
        return flow, gap, converged

    return solve


def simplex_entries(batch: _Batched, terms: Any) -> tuple[_Array, _Array, _Array, _Array, _Array]:
    """Gaps, convergence and costs of exact plans; places (n * m past the last) and masses."""
    kept, given = _settle(batch)
    pairs, n, m = kept[0].shape
    (gap, cost), converged = np.empty((2, pairs)), np.empty(pairs, bool)
    places, masses = np.empty((pairs, n + m), np.int64), np.empty((pairs, n + m))
    out = [_at(array) for array in (gap, converged, places, masses, cost)]
    _run("simplex", given, _Terms(*terms), _Solved(None, n, m, *out))
    return gap, converged, cost, places, masses


simplex = _solver("simplex")
nearest = _solver("nearest")
interior_point = _solver("interior_point")
sinkhorn = _solver("sinkhorn")


def find_faults(batch: _Batched, hyp: float, ref: float, rtol: float) -> _Array:
    """A kind of fault and its position (pair, 3), 0 where there is none."""
    kept, given = _settle(batch)
    faults = np.empty((len(kept[0]), 3), np.int64)
    _run("find_faults", given, _Terms(hyp, ref, 0.0, 0.0, 0), rtol, faults)
    return faults


def totals(batch: _Batched, flow: _Array, hyp: float, ref: float, epsilon: float) -> _Array:
    """Transport, objective and regularised value (pair, 3) of plans."""
    kept, given = _settle(batch)
    out = np.empty((len(kept[0]), 3))
    _run("totals", given, _Terms(hyp, ref, epsilon, 0.0, 0), _numbers(flow), out)
    return out


def barycenters(
    layers: _Array, weights: _Array, sizes: _Array, max_iterations: int
) -> tuple[_Array, _Array, _Array]:
    """Points, objective and convergence of texts with layers (text, layer * unit, dim)."""
    texts, width, dim = len(layers), weights.shape[1], layers.shape[2]
    points, objective = np.zeros((texts, width, dim)), np.empty(texts)
    converged, sizes = np.empty(texts, bool), _whole(sizes)
    given = _Barycenters(
        _numbers(layers), _numbers(weights), _at(sizes), texts, layers.shape[1] // width, width,
        dim, max_iterations, _at(points), _at(objective), _at(converged),
    )  # fmt: skip
    _run("barycenters", given)
    return points, objective, converged


def barycenter_coefficients(
    gram: _Array, weights: _Array, max_iterations: int
) -> tuple[_Array, _Array, _Array]:
    """Where coefficients (text, unit, layer * unit) of barycenters are not 0, and their values.

    Both are (text, entry); a place past the last coefficient is none. The third is which converged.
    """
    (texts, size), length = weights.shape, gram.shape[1]
    values, converged = np.empty((texts, 2 * length)), np.empty(texts, bool)
    places = np.empty(values.shape, np.int32)
    given = _Coefficients(
        _numbers(gram), _numbers(weights), texts, size, length, max_iterations, _at(places),
        _at(values), _at(converged),
    )  # fmt: skip
    _run("coefficients", given)
    return places, values, converged


def _make_points(points: _Array) -> _Points:
    if points.dtype not in (np.float32, np.float64) or not points.flags.c_contiguous:
        raise TypeError("word vectors are float32 or float64, without gaps")
    return _Points(_at(points), points.shape[1], points.dtype == np.float64)


def lengths(points: _Array) -> _Array:
    """The length of each point; 1 for a zero vector, which is orthogonal to everything."""
    out = np.empty(len(points))
    _run("lengths", _make_points(points), len(points), out)
    return out


def unit_means(points: _Array, offsets: _Array) -> _Array:
    """Sums of consecutive points, scaled to unit length."""
    out = np.empty((len(offsets) - 1, points.shape[1]), np.float32)
    _run("unit_means", _make_points(points), len(out), _whole(offsets), out)
    return out


def nsim(
    points: _Array,
    lengths: _Array,
    centroids: _Array,
    texts: _Array,
    offsets: _Array,
    sizes: _Array,
    unit: _Array,
    place: _Array,
) -> _Array:
    """Softmax of the similarity of each unit of a pair to its text, 1 for the text's own."""
    mass, near = np.zeros(len(unit)), np.ascontiguousarray(centroids, np.float32)
    packed = [_whole(one) for one in (texts, offsets, sizes, unit)]
    given = _make_points(points), _floats(lengths), near, len(texts)
    _run("nsim", *given, *packed, _floats(place), mass)
    return mass


def cosines(
    points: _Array, lengths: _Array, hyp: _Array, ref: _Array, hyp_sizes: _Array, ref_sizes: _Array
) -> _Array:
    """Cosines (pair, width, width) of units, in double precision."""
    pairs, width = hyp.shape
    out = np.zeros((pairs, width, width))
    packed = [_whole(one) for one in (hyp, ref, hyp_sizes, ref_sizes)]
    _run("cosines", _make_points(points), _floats(lengths), pairs, width, *packed, out)
    return out


def enter_units(
    ids: _Array,
    text_offsets: _Array,
    text_weights: _Array,
    texts: _Array,
    before: int,
    offsets: _Array,
    *entered: _Array,
) -> None:
    """Enter the units of one side of every pair into sizes, unit, place and own, as they are."""
    for array, dtype in zip(entered, (np.int64, np.int64, np.float64, np.float64), strict=True):
        if array.dtype != dtype or not array.flags.c_contiguous:
            raise TypeError("units are entered into arrays without gaps")
    given = _whole(ids), _whole(text_offsets), _floats(text_weights), _whole(texts)
    _run("enter_units", len(texts), *given, before, _whole(offsets), *entered)


def fragmentation(flow: _Array, hyp_sizes: _Array, ref_sizes: _Array) -> _Array:
    """Chunks over matched words, at most 1, for every pair.

    Each reference word is matched to the hypothesis word that sends it most, among equals to the
    one nearest to the match before; one that is not right behind that match opens a chunk.
    """
    (pairs, n, m), out = flow.shape, np.empty(len(flow))
    sizes = _whole(hyp_sizes), _whole(ref_sizes)
    _run("fragmentation", pairs, _floats(flow), n, m, *sizes, out)
    return out


def scan_words(
    data: _Array, start: int, count: int | None, dim: int
) -> tuple[_Array, _Array, _Array]:
    """Where words start, their lengths, and where their values start, in a word2vec file.

    A binary file has `count` words. In one of text, which has None, a word may contain spaces, and
    its values end the line; words end at the first line that has not as many.
    """
    words = c_int64()
    numbers = [c_int64(x) for x in (len(data), start, -1 if count is None else count, dim)]
    places = _library.freight_scan(_at(data), *numbers, byref(words))
    if not places:
        raise MemoryError("too little memory for the words of this file")
    begins, sizes, values = np.empty((3, words.value), np.int64)
    _library.freight_take_places(c_void_p(places), _at(begins), _at(sizes), _at(values))
    return begins, sizes, values


def hash_words(data: _Array, begins: _Array, lengths: _Array) -> _Array:
    """The hash of each word."""
    out = np.empty(len(begins), np.uint64)
    _run("hash_words", data, len(begins), _whole(begins), _whole(lengths), out)
    return out


def find_words(
    asked: _Array, asked_begins: _Array, asked_lengths: _Array,
    hashes: _Array, order: _Array, data: _Array, begins: _Array, lengths: _Array,
) -> _Array:  # fmt: skip
    """The row of each word that is looked up, the first of several; -1 if there is none."""
    rows, kept = np.empty_like(asked_begins), [_whole(x) for x in (order, begins, lengths)]
    where = [_at(one) for one in kept]
    table = _WordTable(len(hashes), _at(hashes), where[0], _at(data), len(data), *where[1:])
    _run("find_words", asked, len(rows), _whole(asked_begins), _whole(asked_lengths), table, rows)
    return rows


def compare_words(
    texts: Sequence[str], common: Iterable[str], index: _Array
) -> tuple[_Array, _Array, _Array]:
    """The share of common words, in lower case, of each text; words and shared words of pairs.

    Those are the distinct words of the first text, and how many of them that are Latin, Greek or
    Cyrillic the second has.
    """
    (listed, begins), (data, starts) = _in_bytes(list(common)), _in_bytes(texts)
    hashes = np.sort(hash_words(listed, begins[:-1], np.diff(begins)))
    given, pairs = _Texts(_at(data), _at(starts), len(texts)), _whole(index)
    shares, (words, shared) = np.empty(len(texts)), np.empty((2, len(pairs)), np.int64)
    _run("compare_words", given, hashes, len(hashes), pairs, len(pairs), shares, words, shared)
    return shares, words, shared


def _in_bytes(texts: Sequence[str]) -> tuple[_Array, _Array]:
    """The texts in UTF-8, and where each starts."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.fromiter(map(len, encoded), np.int64, len(texts))
    return np.frombuffer(b"".join((*encoded, b" ")), np.uint8), np.append(0, np.cumsum(sizes))


def _make_samples(*arrays: _Array) -> list[_Sample]:
    return [_Sample(_at(array), *array.shape) for array in arrays]


def _correlation(kernel: str) -> Callable[[_Array, _Array, _Array, _Array], _Array]:
    """Correlations (resample, group) of weighted points by one kernel."""

    def correlate(x: _Array, y: _Array, weights: _Array, starts: _Array) -> _Array:
        kept, starts = [_floats(one) for one in (x, y, weights)], _whole(starts)
        out = np.empty((max(map(len, kept)), len(starts) - 1))
        groups = _Groups(_at(starts), len(starts) - 1)
        _run(kernel, *_make_samples(*kept), groups, len(out), out)
        return out

    return correlate


pearsons = _correlation("pearsons")
kendalls = _correlation("kendalls")


def ranks(x: _Array, weights: _Array, starts: _Array) -> _Array:
    """The rank of each point within its group, from 1, as if it were repeated weight times."""
    kept, starts = [_floats(x), _floats(weights)], _whole(starts)
    out, groups = np.zeros((max(map(len, kept)), x.shape[1])), _Groups(_at(starts), len(starts) - 1)
    _run("ranks", *_make_samples(*kept), groups, len(out), out)
    return out


def accuracies(
    metric: _Array,
    human: _Array,
    weights: _Array,
    starts: _Array,
    group_weights: _Array,
    epsilon: float,
    margin: float,
) -> tuple[_Array, _Array]:
    """Accuracies over pairs and their epsilons; one that is not a number is calibrated."""
    kept = [_floats(one) for one in (metric, human, weights, group_weights)]
    starts, resamples = _whole(starts), max(map(len, kept))
    accuracy, epsilons = np.empty(resamples), np.full(resamples, epsilon, np.float64)
    groups = _Groups(_at(starts), len(starts) - 1)
    _run("accuracies", *_make_samples(*kept), groups, resamples, margin, accuracy, epsilons)
    return accuracy, epsilons
