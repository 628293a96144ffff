"""Texts as tokens with their character spans, by a tokenizer of the `tokenizers` library.

Token ids are computed here or in processes of their own: tokenizing creates Python objects by the
thousand, which blocks the other threads of a process that feeds a GPU; `TokenizerProcesses` moves
it out. This file is also the program that runs in those processes, which must start fast: nothing
that it imports imports torch.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import string
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from freight.core.types import Cloud, Kind, Spans, UnitSpans
from freight.encoders import loaded_once
from freight.encoders.batching import SpecialTokens, ranges
from freight.transport.types import Array

if TYPE_CHECKING:
    import torch

TokenIds = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""The number of tokens of each text, and the ids of all texts end to end.

A plain tuple, since it is pickled by a program whose classes have other names.
"""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NORMALIZER_SETTINGS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
_SPECIAL_SETTINGS = "unk_token", "pad_token"
_PIPE_BYTES = 2**20
_ASCII_MARKS = set(string.punctuation)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of all texts, special ones included, packed end to end.

    `ids` are those of the vocabulary; `unit_ids` number unknown tokens by their characters.
    """

    texts: tuple[str, ...]
    offsets: Array
    ids: Array
    unit_ids: Array
    kind: Array
    places: UnitSpans

    def only(self, chosen: Array) -> Tokens:
        """The tokens of these texts, by their numbers."""
        sizes = np.diff(self.offsets)[chosen]
        units = ranges(self.offsets[chosen], sizes)
        return Tokens(
            tuple(self.texts[k] for k in chosen),
            np.concatenate(([0], np.cumsum(sizes))),
            self.ids[units],
            self.unit_ids[units],
            self.kind[units],
            self.places.at(units),
        )

    def cloud(self, layers: torch.Tensor, windowed: Array, halved: Array) -> Cloud:
        """The cloud of these tokens with the vectors (unit, layer, dim)."""
        return Cloud(
            texts=self.texts,
            layers=layers,
            offsets=self.offsets,
            ids=self.unit_ids,
            places=self.places,
            kind=self.kind,
            windowed=windowed,
            halved=halved,
        )


class Tokenizer:
    """A `tokenizers.Tokenizer`, without its own truncation and padding.

    `unknown` is the id of unknown tokens, if there is one, and `padding` that of padding tokens:
    any will do, since no vector depends on it.
    """

    def __init__(self, backend: Any, unknown: int | None, padding: int | None) -> None:
        self._backend, self._unknown, self.padding = backend, unknown, padding or 0
        # Now, since it must not change while a thread works with it.
        self._space = self._backend.token_to_id("▁")  # of SentencePiece: white space alone
        self._backend.no_truncation()
        self._backend.no_padding()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """The tokens of texts, special ones included."""
        return self._tokens(texts, token_ids(self._backend, texts))

    def tokenize_in_processes(self, texts: Sequence[str]) -> Tokens:
        """The same tokens, computed by processes of their own where there are many texts."""
        return self._tokens(texts, self.processes(texts))

    @loaded_once
    def processes(self) -> TokenizerProcesses:
        """The processes for many texts; they are not started before it is worth it."""
        return TokenizerProcesses(self._backend)

    def _tokens(self, texts: Sequence[str], numbers: TokenIds) -> Tokens:
        counts, inner_ids = numbers
        offsets = np.concatenate(([0], np.cumsum(counts + self.special.total)))
        inner = self._inner(offsets)
        ids = np.zeros(int(offsets[-1]), np.int64)
        kind = np.full(len(ids), Kind.SPECIAL, np.uint8)
        for place, token in enumerate(self.special.opening):
            ids[offsets[:-1] + place] = token
        for place, token in enumerate(self.special.closing, -len(self.special.closing)):
            ids[offsets[1:] + place] = token
        ids[inner] = inner_ids
        kind[inner] = self._kinds[inner_ids]
        unknown = np.flatnonzero(kind & Kind.UNKNOWN)
        unit_ids = self._number(ids, unknown, texts, offsets) if len(unknown) else ids
        continued = None if self._continuing is None else self._continuing[ids]
        places = UnitSpans(lambda: self._spans(texts, offsets), continued)
        return Tokens(tuple(texts), offsets, ids, unit_ids, kind, places)

    def _number(self, ids: Array, unknown: Array, texts: Sequence[str], offsets: Array) -> Array:
        """The ids, unknown tokens numbered by their characters; only their texts need spans."""
        owner = np.searchsorted(offsets, unknown, "right") - 1
        chosen, place = np.unique(owner, return_inverse=True)
        begins = np.concatenate(([0], np.cumsum(np.diff(offsets)[chosen])))
        spans = self._spans([texts[k] for k in chosen], begins)
        units = begins[place] + unknown - offsets[owner]
        bounds = zip(owner.tolist(), spans.start[units], spans.end[units], strict=True)
        from freight.encoders.words import text_id

        numbered = ids.copy()
        numbered[unknown] = [text_id(texts[k][start:end]) for k, start, end in bounds]
        return numbered

    def _inner(self, offsets: Array) -> Array:
        """The units that are not special tokens."""
        opening = len(self.special.opening)
        return ranges(offsets[:-1] + opening, np.diff(offsets) - self.special.total)

    def _spans(self, texts: Sequence[str], offsets: Array) -> Spans:
        """Tokenize once more: spans are expensive, and most metrics do not need them."""
        encodings = self._backend.encode_batch(clean_texts(texts), add_special_tokens=False)
        inner, total = self._inner(offsets), int(offsets[-1])
        lengths, leads = _margins(texts)
        start, end = np.zeros((2, total), np.int64)
        for place in range(-len(self.special.closing), 0):
            start[offsets[1:] + place] = end[offsets[1:] + place] = lengths
        owner = np.repeat(leads, np.diff(offsets) - self.special.total)
        bounds, words = _flat(encodings, len(inner))
        if self._space is not None:
            bounds = self._without_spaces(texts, encodings, bounds)
        start[inner], end[inner] = bounds.T + owner
        word = np.full(total, -1)
        word[inner] = words
        # Special tokens between two texts keep a word from continuing in the next text.
        continued = (word >= 0) & (np.diff(word, prepend=-2) == 0)
        if not self.special.total:
            continued[offsets[:-1][np.diff(offsets) > 0]] = False
        return Spans(start, end, continued)

    def _without_spaces(self, texts: Sequence[str], encodings: list[Any], bounds: Array) -> Array:
        """Bounds of SentencePiece's tokens without the white space in front, which is part of them.

        A token that is white space alone covers nothing; in front of a text it is put there by
        the tokenizer, which counts the first character as its own.
        """
        lengths = np.array([len(text.strip()) for text in texts], np.int64)
        begins = np.concatenate(([0], np.cumsum(lengths + 1)))
        joined = "".join(f"{text.strip()}x" for text in texts)
        where = np.arange(len(joined))
        black = ~np.fromiter(map(str.isspace, joined), bool, len(joined))
        next_black = np.minimum.accumulate(np.where(black, where, len(joined))[::-1])[::-1]
        counts = np.fromiter(map(len, encodings), np.int64, len(encodings))
        base = np.repeat(begins[:-1], counts)
        start, end = bounds.T
        start = np.minimum(next_black[start + base] - base, end)
        ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int64, len(start))
        end = np.where(ids == self._space, start, end)
        return np.stack((start, end), axis=1)

    @loaded_once
    def special(self) -> SpecialTokens:
        """The special tokens that the tokenizer puts around a text."""
        example = self._backend.encode("a")
        ids, mask = example.ids, example.special_tokens_mask
        opening = mask.index(0) if 0 in mask else 0
        closing = mask[::-1].index(0) if 0 in mask else 0
        return SpecialTokens(tuple(ids[:opening]), tuple(ids[len(ids) - closing :]))

    @loaded_once
    def _continuing(self) -> Array | None:
        """Whether a token goes on with a word, by id; None where only its text can tell."""
        model, splitter = self._backend.model, self._backend.pre_tokenizer
        kinds = type(model).__name__, type(splitter).__name__
        if kinds != ("WordPiece", "BertPreTokenizer"):
            return None
        continuing = np.zeros(len(self._kinds), bool)
        for token, index in self._backend.get_vocab().items():
            continuing[index] = token.startswith(model.continuing_subword_prefix)
        return continuing

    @loaded_once
    def _kinds(self) -> Array:
        """The kind of every token of the vocabulary, by id."""
        vocabulary = self._backend.get_vocab()
        kinds = np.zeros(max(vocabulary.values()) + 1, np.int64)
        for token, index in vocabulary.items():
            piece = token.removeprefix("##").lstrip("Ġ▁")
            if token and not piece:
                kinds[index] |= Kind.BLANK
            elif all(unicodedata.category(c)[0] in "PS" for c in piece):
                kinds[index] |= mark_kind(piece)
        if self._unknown is not None:
            kinds[self._unknown] = Kind.UNKNOWN | Kind.LITERAL
        return kinds


def open_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of a folder, if tokenizer.json says all; otherwise ask `transformers`.

    For the settings in tokenizer_config.json count more than those in tokenizer.json, and where it
    does not name the unknown token, its class does.
    """
    from tokenizers import Tokenizer as Backend

    if not (folder / "tokenizer.json").is_file():
        return None
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        backend = Backend.from_file(str(folder / "tokenizer.json"))
    except Exception:  # `tokenizers` has no error of its own; what is wrong, `transformers` says
        return None
    normalizer = backend.normalizer
    agrees = all(
        name not in settings or settings[name] == getattr(normalizer, attribute, settings[name])
        for name, attribute in _NORMALIZER_SETTINGS.items()
    )
    if not agrees or settings.get("split_special_tokens") or "unk_token" not in settings:
        return None
    unknown, padding = (_token_id(backend, settings.get(name)) for name in _SPECIAL_SETTINGS)
    return Tokenizer(backend, unknown, padding)


def _token_id(backend: Any, token: str | Mapping[str, Any] | None) -> int | None:
    """The id of a token of tokenizer_config.json, which may be written with its properties."""
    content = token["content"] if isinstance(token, Mapping) else token
    number: int | None = None if content is None else backend.token_to_id(content)
    return number


def _margins(texts: Sequence[str]) -> tuple[Array, Array]:
    """The length of each text, and the white space that it starts with."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    leads = (len(text) - len(text.lstrip()) for text in texts)
    return lengths, np.fromiter(leads, np.int64, len(texts))


def _flat(encodings: list[Any], total: int) -> tuple[Array, Array]:
    """Character bounds (token, 2) and word numbers of all encodings end to end; -1 is no word."""
    pairs = chain.from_iterable(e.offsets for e in encodings)
    bounds = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * total).reshape(-1, 2)
    words = (-1 if word is None else word for e in encodings for word in e.word_ids)
    return bounds, np.fromiter(words, np.int64, total)


def token_ids(tokenizer: Any, texts: Sequence[str], chunk: int = 1024) -> TokenIds:
    """The token ids of texts by a `tokenizers.Tokenizer`, without special tokens.

    It goes chunk by chunk: the tokenizer makes an object of each text, and no other thread can run
    while thousands of them are created or freed. There are two threads, so that one reads ids while
    the other waits for the tokenizer.
    """
    if len(texts) <= chunk:
        return _chunk_ids(tokenizer, texts)
    parts = [texts[k : k + chunk] for k in range(0, len(texts), chunk)]
    with ThreadPoolExecutor(2) as pool:
        counts, ids = zip(*pool.map(lambda part: _chunk_ids(tokenizer, part), parts), strict=True)
    return np.concatenate(counts), np.concatenate(ids)


def _chunk_ids(tokenizer: Any, texts: Sequence[str]) -> TokenIds:
    encodings = tokenizer.encode_batch_fast(clean_texts(texts), add_special_tokens=False)
    counts = np.fromiter(map(len, encodings), np.int64, len(encodings))
    # Making a list per text, all at once, would trigger the garbage collector again and again.
    ids = chain.from_iterable(encoding.ids for encoding in encodings)
    return counts, np.fromiter(ids, np.int32, int(counts.sum()))


def mark_kind(mark: str) -> Kind:
    """The kind of a punctuation mark with these characters."""
    ascii_marks = set(mark) <= _ASCII_MARKS
    return Kind.PUNCTUATION if ascii_marks else Kind.PUNCTUATION | Kind.TYPOGRAPHIC


def clean_texts(texts: Sequence[str]) -> list[str]:
    """Texts without white space around them; lone surrogates become the replacement character."""
    return [replace_surrogates(text.strip()) for text in texts]


def replace_surrogates(text: str) -> str:
    """The text with the replacement character for each lone surrogate, which UTF-8 cannot write."""
    return _LONE_SURROGATE.sub("\ufffd", text)


class TokenizerProcesses:
    """Token ids from processes that share the texts, once they are running and have been checked.

    Until then, for few texts, and after a process is lost, they are computed here: the result is
    the same. The processes are started by the first call with at least `min_texts` short texts, and
    are used if they agree about the first `sample` of them. There is one for every four cores, at
    most four, unless `count` says otherwise.
    """

    def __init__(
        self,
        tokenizer: Any,
        min_texts: int = 4096,
        sample: int = 256,
        count: int | None = None,
    ) -> None:
        self._tokenizer, self._min_texts, self._sample = tokenizer, min_texts, sample
        self._count = count or max(1, min(4, (os.cpu_count() or 1) // 4))
        self._lock = Lock()
        self._owner = os.getpid()
        self._starting: Thread | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def __call__(self, texts: Sequence[str]) -> TokenIds:
        """The token ids of these texts, as `token_ids` gives them."""
        with self._lock:
            if self._processes and self._owner == os.getpid():
                processes, self._processes = self._processes, []
                try:
                    answer = _ask_all(processes, texts)
                except (OSError, EOFError, pickle.UnpicklingError):  # a process is lost
                    return token_ids(self._tokenizer, texts)
                self._processes = processes
                return answer
            many = max(len(texts), sum(map(len, texts)) // 100)  # long ones count several times
            if self._starting is None and many >= self._min_texts:
                sample = texts[: self._sample]
                self._starting = Thread(target=self._start, args=(sample,), daemon=True)
                self._starting.start()
        return token_ids(self._tokenizer, texts)

    def wait_until_started(self, timeout: float = 60) -> bool:
        """Wait for a start that has begun, and say whether the processes are in use."""
        if self._starting is not None:
            self._starting.join(timeout)
        return bool(self._processes)

    def _start(self, sample: Sequence[str]) -> None:
        try:
            tokenizer = self._tokenizer
            description = tokenizer.to_str(), tokenizer.encode_special_tokens
            processes = [self._start_one(description) for _ in range(self._count)]
            answers = [_ask(process, sample) for process in processes]
        except Exception:  # a tokenizer that cannot be described, a program that cannot be started
            return
        counts, ids = token_ids(tokenizer, sample)
        if all(np.array_equal(a[0], counts) and np.array_equal(a[1], ids) for a in answers):
            self._processes = processes

    def _start_one(self, description: Any) -> subprocess.Popen[bytes]:
        threads = max(1, (os.cpu_count() or 1) // self._count)  # of the tokenizer itself
        path = os.pathsep.join(folder for folder in sys.path if folder)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "freight.encoders.tokenizer"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pipesize=_PIPE_BYTES,
            env={**os.environ, "PYTHONPATH": path, "RAYON_NUM_THREADS": str(threads)},
        )  # fmt: skip
        finalize(self, _stop, process)
        _send(process, description)
        return process


def _ask_all(processes: Sequence[subprocess.Popen[bytes]], texts: Sequence[str]) -> TokenIds:
    """The texts shared out in order, and the answers put together again."""
    share = -(-len(texts) // len(processes))
    parts = [texts[k * share : (k + 1) * share] for k in range(len(processes))]
    with ThreadPoolExecutor(len(processes)) as pool:
        counts, ids = zip(*pool.map(_ask, processes, parts), strict=True)
    return np.concatenate(counts), np.concatenate(ids)


def _ask(process: subprocess.Popen[bytes], texts: Sequence[str]) -> TokenIds:
    _send(process, list(texts))
    answer: TokenIds = pickle.load(process.stdout)  # type: ignore[arg-type]
    return answer


def _send(process: subprocess.Popen[bytes], message: Any) -> None:
    stream: Any = process.stdin
    pickle.dump(message, stream, protocol=5)
    stream.flush()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Close its input, which ends the process."""
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # unsent data of a process that is lost
            stream.close()  # type: ignore[union-attr]
    process.wait()


def _serve() -> None:
    """The program: answer lists of texts with their token ids until the input is closed."""
    from tokenizers import Tokenizer as Backend

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    description, encode_special_tokens = pickle.load(requests)
    tokenizer = Backend.from_str(description)
    tokenizer.encode_special_tokens = encode_special_tokens
    while True:
        try:
            texts = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(token_ids(tokenizer, texts), answers, protocol=5)
        answers.flush()


if __name__ == "__main__":
    _serve()
