"""Texts as numbers of tokens; run as a program, for the process that has started it.

As a program it must start fast, so that nothing else of the package is imported here.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from threading import Lock, Thread
from typing import Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

_TOGETHER = 1024
_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, which is no character

Numbers = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


def token_ids(tokenizer: Any, texts: Sequence[str]) -> Numbers:
    """How many tokens each text has, special ones aside, and the ids of all end to end.

    Some texts at a time: the tokenizer makes an object of each, and while thousands of those are
    made or thrown away no other thread can do anything. Two threads, since one can read numbers off
    while the other waits for the tokenizer.
    """
    if len(texts) <= _TOGETHER:
        return _numbers(tokenizer, texts)
    parts = [texts[k : k + _TOGETHER] for k in range(0, len(texts), _TOGETHER)]
    with ThreadPoolExecutor(2) as pool:
        counts, ids = zip(*pool.map(lambda part: _numbers(tokenizer, part), parts), strict=True)
    return np.concatenate(counts), np.concatenate(ids)


def _numbers(tokenizer: Any, texts: Sequence[str]) -> Numbers:
    found = tokenizer.encode_batch_fast(cleaned(texts), add_special_tokens=False)
    counts = np.fromiter(map(len, found), np.int64, len(found))
    # A list a text, all at once, would send the garbage collector round and round.
    ids = chain.from_iterable(encoding.ids for encoding in found)
    return counts, np.fromiter(ids, np.int32, int(counts.sum()))


def cleaned(texts: Sequence[str]) -> list[str]:
    """White space around a text is no part of it, and half a character is unknown."""
    return [_HALF.sub("\ufffd", text.strip()) for text in texts]


def _serve() -> None:
    """Answer lists of texts with their numbers, until nobody asks any more."""
    from tokenizers import Tokenizer

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    described, literal = pickle.load(asked)
    tokenizer = Tokenizer.from_str(described)
    tokenizer.encode_special_tokens = literal
    while True:
        try:
            texts = pickle.load(asked)
        except EOFError:
            return
        pickle.dump(token_ids(tokenizer, texts), answers, protocol=5)
        answers.flush()


if __name__ == "__main__":
    _serve()


_WORTH = 4096
_SAMPLE = 256
_PIPE = 2**20


class Helper:
    """Numbers of tokens from a process of its own, once it is there and has been found right.

    Until then, for few texts, and when the process is lost, they are found here: they are the same.
    """

    def __init__(self, tokenizer: Callable[[], Any]) -> None:
        self._tokenizer = tokenizer
        self._one = Lock()
        self._owner = os.getpid()
        self._begun: Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, texts: Sequence[str]) -> Numbers:
        """Those of these texts, as `token_ids` has them."""
        with self._one:
            if self._process and self._owner == os.getpid():
                process, self._process = self._process, None
                try:
                    found = _answer(process, texts)
                except (OSError, EOFError, pickle.UnpicklingError):  # it is lost, and not missed
                    return token_ids(self._tokenizer(), texts)
                self._process = process
                return found
            if self._begun is None and len(texts) >= _WORTH:
                self._begun = Thread(target=self._begin, args=(texts[:_SAMPLE],), daemon=True)
                self._begun.start()
        return token_ids(self._tokenizer(), texts)

    def _begin(self, sample: Sequence[str]) -> None:
        """Start it, and trust it once it agrees about some texts."""
        try:
            tokenizer = self._tokenizer()
            described = tokenizer.to_str(), tokenizer.encode_special_tokens
            process = subprocess.Popen(
                [sys.executable, "-P", __file__],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pipesize=_PIPE,
            )  # fmt: skip
            finalize(self, _end, process)
            _ask(process, described)
            found = _answer(process, sample)
        except Exception:  # a tokenizer that cannot be described, a program that cannot be started
            return
        counts, ids = token_ids(tokenizer, sample)
        if np.array_equal(found[0], counts) and np.array_equal(found[1], ids):
            self._process = process


def _ask(process: subprocess.Popen[bytes], question: Any) -> None:
    stream: Any = process.stdin
    pickle.dump(question, stream, protocol=5)
    stream.flush()


def _answer(process: subprocess.Popen[bytes], texts: Sequence[str]) -> Numbers:
    _ask(process, list(texts))
    found: Numbers = pickle.load(process.stdout)  # type: ignore[arg-type]
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends when nobody can ask it any more."""
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):  # what could not be asked any more
            stream.close()  # type: ignore[union-attr]
    process.wait()
