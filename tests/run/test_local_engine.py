"""Worker processes change no bit, and one that dies is done without."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from freight.data import Corpus
from freight.errors import FreightError
from freight.run import local
from runs import (
    SMALL_CHUNKS,
    FailingScorer,
    content,
    dying_metrics,
    metrics,
    score,
    write_input,
)

COUNT = 155


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_input(folder, COUNT)
    score(path, folder / "out")
    return path, content(folder / "out")


def test_the_number_of_workers_changes_no_byte(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    progress: list[float] = []
    score(path, tmp_path / "out", workers=2, progress=progress.append)
    assert content(tmp_path / "out") == expected
    assert sum(progress) == COUNT
    assert not multiprocessing.active_children()


def test_a_worker_that_dies_is_done_without(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    dying = dying_metrics(tmp_path, deaths=1)
    with pytest.warns(UserWarning, match="failed: it was killed, .*; the others go on"):
        score(path, tmp_path / "out", workers=2, metrics=dying, chunk=SMALL_CHUNKS)
    assert content(tmp_path / "out") == expected


def test_when_the_last_worker_dies_the_run_can_be_resumed(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    dying = dying_metrics(tmp_path, deaths=2)
    with (
        pytest.warns(UserWarning, match="the others go on"),
        pytest.raises(
            FreightError, match=r"no worker is left; the last one failed: .* go on with --resume"
        ),
    ):
        score(path, tmp_path / "out", workers=2, metrics=dying, chunk=SMALL_CHUNKS)
    assert not multiprocessing.active_children()
    score(path, tmp_path / "out", resume=True)
    assert content(tmp_path / "out") == expected


def fail(error: Exception, folder: Path, **options: Any) -> None:
    with Corpus(str(write_input(folder, COUNT))) as corpus:
        local([FailingScorer(error)], corpus, folder / "out", shard=10, resume=True, **options)


def test_what_the_user_can_mend_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(FreightError, match=r"^a text is too long$"):
        fail(FreightError("a text is too long"), tmp_path, workers=2)


def test_any_other_failure_is_told_when_nobody_is_left(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match="RuntimeError: CUDA error: lost; the others go on"),
        pytest.raises(FreightError, match="failed: RuntimeError: CUDA error: lost; go on with"),
    ):
        fail(RuntimeError("CUDA error: lost"), tmp_path, workers=2)


def test_a_lost_gpu_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FreightError, match=r"^the GPU failed \(CUDA error: lost\); go on with"):
        fail(RuntimeError("CUDA error: lost\nmore"), tmp_path)
    with pytest.raises(RuntimeError, match=r"^a bug$"):
        fail(RuntimeError("a bug"), tmp_path)


def test_threads_are_put_back(tmp_path: Path) -> None:
    import torch

    path, before = write_input(tmp_path, 5), torch.get_num_threads()
    with Corpus(str(path)) as corpus:
        local(metrics(), corpus, tmp_path / "out", threads=1)
    assert torch.get_num_threads() == before
