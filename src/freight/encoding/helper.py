"""A process that tokenises, so that the threads of this one have the interpreter to themselves.

Tokenising makes thousands of Python objects, and while it does no other thread can ask anything of
a GPU, which then runs dry.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any
from weakref import finalize

import numpy as np

from freight.encoding import token_ids as program
from freight.encoding.token_ids import Numbers, token_ids

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
                [sys.executable, "-P", program.__file__],
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
