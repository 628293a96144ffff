"""Token ids from a process of its own are the same as here, and a lost process does no harm."""

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from freight.encoders import packaged_folder
from freight.encoders.tokenizer import TokenIds, TokenizerProcesses, token_ids

MANY = [f"Text {k}, naïve 🦖 un{k}believable \ud800" + " and more" * (k % 7) for k in range(2500)]
FEW = ["", "  spaces ", "one", "\udfff half", "unbelievably good!"]
MIN_TEXTS = len(FEW) + 1


def load_tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(packaged_folder("embedded")).backend_tokenizer


def start(tokenizer: Any) -> TokenizerProcesses:
    """A process for `tokenizer` that was asked for MANY texts, and is in use if all went well."""
    process = TokenizerProcesses(tokenizer, MIN_TEXTS, count=3)
    assert same(process(MANY), token_ids(tokenizer, MANY))
    process.wait_until_started()
    return process


def same(ids: TokenIds, expected: TokenIds) -> bool:
    pairs: Iterable[tuple[Any, Any]] = zip(ids, expected, strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer()


@pytest.fixture(scope="module")
def shared(tokenizer: Any) -> TokenizerProcesses:
    """A running process that no test may harm."""
    process = start(tokenizer)
    assert process._processes
    return process


@pytest.mark.parametrize("texts", [MANY, FEW, []])
def test_ids_are_the_same(shared: TokenizerProcesses, tokenizer: Any, texts: Sequence[str]) -> None:
    assert same(shared(texts), token_ids(tokenizer, texts))
    assert shared._processes


@pytest.mark.parametrize("chunk", [1, 7, 5000])
def test_ids_do_not_depend_on_the_chunk(tokenizer: Any, chunk: int) -> None:
    assert same(token_ids(tokenizer, MANY[:50], chunk), token_ids(tokenizer, MANY[:50]))


def test_few_texts_do_not_start_a_process(tokenizer: Any) -> None:
    process = TokenizerProcesses(tokenizer, MIN_TEXTS)
    assert same(process(FEW), token_ids(tokenizer, FEW))
    assert process._starting is None
    assert not process.wait_until_started()


def test_few_long_texts_do(tokenizer: Any) -> None:
    process = TokenizerProcesses(tokenizer, MIN_TEXTS)
    process(["as long as six of the usual length " * 20])
    assert process.wait_until_started()


def test_a_lost_process_does_no_harm(tokenizer: Any) -> None:
    process = start(tokenizer)
    assert process._processes
    process._processes[1].kill()
    process._processes[1].wait()
    for _ in range(2):
        assert same(process(MANY), token_ids(tokenizer, MANY))
    assert not process._processes


def test_a_forked_child_does_not_use_the_process_of_its_parent(
    shared: TokenizerProcesses, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("freight.encoders.tokenizer._ask", lambda *given: asked.append(given))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert same(shared(FEW), token_ids(tokenizer, FEW))
    assert not asked


def test_a_process_that_disagrees_is_not_used(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = token_ids(tokenizer, ["something else"])
    monkeypatch.setattr("freight.encoders.tokenizer._ask", lambda *_: wrong)
    assert not start(tokenizer)._processes


def test_a_program_that_cannot_run_does_no_harm(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert not start(tokenizer)._processes


def test_special_tokens_in_a_text_are_read_alike(tokenizer: Any) -> None:
    literal = load_tokenizer()
    literal.encode_special_tokens = True
    process = TokenizerProcesses(literal, MIN_TEXTS)
    texts = ["[CLS] and [MASK]", *MANY]
    process(texts)
    assert process.wait_until_started()
    assert same(process(texts), token_ids(literal, texts))
    assert not same(process(texts), token_ids(tokenizer, texts))


def test_the_process_ends_with_its_owner(shared: TokenizerProcesses, tokenizer: Any) -> None:
    other = start(tokenizer)
    assert other._processes
    processes = other._processes
    del other
    assert all(process.poll() is not None for process in processes)
    assert shared._processes
    assert all(process.poll() is None for process in shared._processes)


_KILLED = """
import os, signal
from test_tokenizer_processes import load_tokenizer, start
process = start(load_tokenizer())
print(process._processes[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="waits for the end of a process by pidfd")
def test_the_process_ends_when_its_parent_is_killed() -> None:
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode < 0, done.stderr
    try:
        process = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return
    ended, _, _ = select.select([process], [], [], 60)
    os.close(process)
    assert ended, "the process outlives its parent"
