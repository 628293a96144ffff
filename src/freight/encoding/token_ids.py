"""Texts as numbers of tokens; run as a program, for the process that has started it.

As a program it must start fast, so that nothing else of the package is imported here.
"""

import os
import pickle
import re
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

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
