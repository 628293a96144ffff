"""Token ids of texts, computed here or in processes of their own.

Tokenizing creates Python objects by the thousand, which blocks the other threads of a process that
feeds a GPU; `TokenizerProcesses` moves it out. This file is also the program that runs in those
processes. It must start fast, so it imports nothing else of the package.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from threading import Lock, Thread
from typing import Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

TokenIds = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""The number of tokens of each text, and the ids of all texts end to end.

A plain tuple, since it is pickled by a program whose classes have other names.
"""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PIPE_BYTES = 2**20


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


def clean_texts(texts: Sequence[str]) -> list[str]:
    """Texts without white space around them; lone surrogates become the replacement character."""
    return [replace_surrogates(text.strip()) for text in texts]


def replace_surrogates(text: str) -> str:
    """The text with the replacement character for each lone surrogate, which UTF-8 cannot write."""
    return _LONE_SURROGATE.sub("\ufffd", text)


class TokenizerProcesses:
    """Token ids from processes that share the texts, once they are running and have been checked.

    Until then, for few texts, and after a process is lost, they are computed here: the result is
    the same. The processes are started by the first call with at least `min_texts` texts, and are
    used if they agree about the first `sample` of them. There is one for every four cores, at most
    four, unless `count` says otherwise.
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
            if self._starting is None and len(texts) >= self._min_texts:
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
        process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            pipesize=_PIPE_BYTES, env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
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
    from tokenizers import Tokenizer

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    description, encode_special_tokens = pickle.load(requests)
    tokenizer = Tokenizer.from_str(description)
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
