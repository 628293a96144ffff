"""Tokens found by a process of its own are those found here, and it can be done without."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from freight.encoders.loading import embedded_folder
from freight.encoders.tokenizer_process import Helper, Numbers, token_ids

MANY = [f"Text {k}, naïve 🦖 un{k}believable \ud800" + " and more" * (k % 7) for k in range(5000)]
FEW = ["", "  spaces ", "one", "\udfff half", "unbelievably good!"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(embedded_folder()).backend_tokenizer


@pytest.fixture
def helper(tokenizer: Any) -> Helper:
    """One whose process is there."""
    made = Helper(lambda: tokenizer)
    made(MANY)
    settled(made)
    assert made._process
    return made


def settled(helper: Helper) -> None:
    assert helper._begun
    helper._begun.join(60)


def same(found: Numbers, right: Numbers) -> bool:
    return np.array_equal(found[0], right[0]) and np.array_equal(found[1], right[1])


@pytest.mark.parametrize("texts", [MANY, FEW, []])
def test_the_numbers_are_the_same(helper: Helper, tokenizer: Any, texts: Sequence[str]) -> None:
    assert same(helper(texts), token_ids(tokenizer, texts))
    assert helper._process


def test_few_texts_are_not_worth_a_process(tokenizer: Any) -> None:
    helper = Helper(lambda: tokenizer)
    assert same(helper(FEW), token_ids(tokenizer, FEW))
    assert helper._begun is None


def test_a_process_that_is_lost_is_done_without(helper: Helper, tokenizer: Any) -> None:
    assert helper._process
    helper._process.kill()
    helper._process.wait()
    for _ in range(2):
        assert same(helper(MANY), token_ids(tokenizer, MANY))
    assert helper._process is None


def test_a_child_does_not_ask_the_process_of_its_parent(
    helper: Helper, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert helper._process
    asked = []
    monkeypatch.setattr(
        "freight.encoders.tokenizer_process._answer", lambda *given: asked.append(given)
    )
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert same(helper(FEW), token_ids(tokenizer, FEW))
    assert not asked


def test_one_that_disagrees_is_not_trusted(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = token_ids(tokenizer, ["something else"])
    monkeypatch.setattr("freight.encoders.tokenizer_process._answer", lambda *_: wrong)
    helper = Helper(lambda: tokenizer)
    helper(MANY)
    settled(helper)
    assert helper._process is None


def test_a_program_that_cannot_run_is_done_without(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    helper = Helper(lambda: tokenizer)
    assert same(helper(MANY), token_ids(tokenizer, MANY))
    settled(helper)
    assert helper._process is None


def test_special_tokens_written_out_are_read_alike(tokenizer: Any) -> None:
    literal = AutoTokenizer.from_pretrained(embedded_folder()).backend_tokenizer
    literal.encode_special_tokens = True
    helper = Helper(lambda: literal)
    texts = ["[CLS] and [MASK]", *MANY]
    helper(texts)
    settled(helper)
    assert same(helper(texts), token_ids(literal, texts))
    assert not same(helper(texts), token_ids(tokenizer, texts))
    assert helper._process


def test_the_process_ends_with_the_helper(helper: Helper, tokenizer: Any) -> None:
    other = Helper(lambda: tokenizer)
    other(MANY)
    settled(other)
    assert other._process
    process = other._process
    del other
    assert process.poll() is not None
    assert helper._process
    assert helper._process.poll() is None


_KILLED = """
import os, signal, sys
from tests.encoding.test_helper import MANY
from freight.encoders.tokenizer_process import Helper
from transformers import AutoTokenizer
from freight.encoders.loading import embedded_folder
fast = AutoTokenizer.from_pretrained(embedded_folder()).backend_tokenizer
helper = Helper(lambda: fast)
helper(MANY)
helper._begun.join(60)
print(helper._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_process_ends_with_a_parent_that_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED], capture_output=True, text=True, check=False
    )
    assert done.returncode < 0
    place = f"/proc/{int(done.stdout)}/cmdline"
    for _ in range(100):
        try:
            with open(place) as stream:
                if "token_ids" not in stream.read():
                    return
        except FileNotFoundError:
            return
        time.sleep(0.1)
    pytest.fail("the process outlives its parent")
