"""Loops over the bytes of vector files: where each word begins, and finding one by its hash."""

from __future__ import annotations

import numpy as np

from freight.kernels import kernel
from freight.types import Array

_SPACE, _NEWLINE, _RETURN = 32, 10, 13


@kernel
def scan_binary(data: Array, start: int, count: int, dim: int) -> tuple[Array, Array, Array]:
    """Where words begin, how long they are, and where their values begin: word2vec's binary."""
    begins, lengths, values = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    at, found = start, 0
    while found < count:
        while at < data.size and data[at] == _NEWLINE:
            at += 1
        begin = at
        while at < data.size and data[at] != _SPACE:
            at += 1
        if at + 1 + 4 * dim > data.size:
            break
        begins[found], lengths[found], values[found] = begin, at - begin, at + 1
        at += 1 + 4 * dim
        found += 1
    return begins[:found], lengths[:found], values[:found]


@kernel
def scan_text(data: Array, start: int, count: int, dim: int) -> tuple[Array, Array, Array]:
    """The same for lines of text; a word may hold spaces, its values are the last of the line."""
    capacity = 1024 if count < 0 else count
    begins = np.empty(capacity, np.int64)
    lengths, values = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    at, found = start, 0
    while at < data.size:
        end = at
        while end < data.size and data[end] != _NEWLINE:
            end += 1
        stop = end
        while stop > at and (data[stop - 1] == _SPACE or data[stop - 1] == _RETURN):
            stop -= 1
        spaces, place = 0, stop
        while place > at and spaces < dim:
            place -= 1
            if data[place] == _SPACE:
                spaces += 1
        if spaces == dim and place > at:
            if found == capacity:
                begins, lengths = _twice(begins), _twice(lengths)
                values, capacity = _twice(values), 2 * capacity
            begins[found], lengths[found], values[found] = at, place - at, place + 1
            found += 1
        at = end + 1
    return begins[:found], lengths[:found], values[:found]


@kernel
def _twice(values: Array) -> Array:
    longer = np.empty(2 * values.size, np.int64)
    longer[: values.size] = values
    return longer


@kernel
def _hash(data: Array, begin: int, length: int) -> np.uint64:
    found = np.uint64(14695981039346656037)  # FNV-1a
    for at in range(begin, begin + length):
        found = (found ^ np.uint64(data[at])) * np.uint64(1099511628211)
    return found


@kernel
def word_hashes(data: Array, begins: Array, lengths: Array) -> Array:
    """The hash of each word."""
    hashes = np.empty(begins.size, np.uint64)
    for k in range(begins.size):
        hashes[k] = _hash(data, begins[k], lengths[k])
    return hashes


@kernel
def find_words(
    asked: Array,
    asked_begins: Array,
    asked_lengths: Array,
    hashes: Array,
    order: Array,
    data: Array,
    begins: Array,
    lengths: Array,
) -> Array:
    """The row of each word that is asked for, the first where there are several; -1 where none."""
    rows = np.full(asked_begins.size, -1, np.int64)
    for k in range(asked_begins.size):
        wanted = _hash(asked, asked_begins[k], asked_lengths[k])
        place = np.searchsorted(hashes, wanted)
        while place < hashes.size and hashes[place] == wanted and rows[k] < 0:
            row = order[place]
            same = lengths[row] == asked_lengths[k]
            if same:
                for at in range(asked_lengths[k]):
                    if data[begins[row] + at] != asked[asked_begins[k] + at]:
                        same = False
                        break
            if same:
                rows[k] = row
            place += 1
    return rows
