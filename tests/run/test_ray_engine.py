"""A Ray cluster of several nodes comes to the same bytes, whatever becomes of its nodes."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from freight.data import Corpus
from freight.errors import FreightError, InvalidInput, MissingPart
from freight.run import Run, on_ray
from freight.run.worker_pool import WorkerPool
from runs import (
    SHARD,
    SMALL_CHUNKS,
    FailingScorer,
    content,
    dying_metrics,
    metrics,
    score,
    wait_for,
    waiting_metrics,
    write_input,
)

ray: Any = pytest.importorskip("ray", reason="ray is not installed; pip install 'freight[ray]'")
pytestmark = [
    pytest.mark.ray,
    # Sockets and processes of Ray's own, and its notes on future versions.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning:ray.*"),
]

COUNT = 155
QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_input(folder, COUNT)
    score(path, folder / "out")
    return path, content(folder / "out")


@pytest.fixture(scope="session")
def head() -> Iterator[Any]:
    """The only Ray cluster of the test run: a head without cores."""
    from ray.cluster_utils import Cluster

    folders = Path(__file__).parent, Path(__file__).parents[1]
    paths = [*map(str, folders), *(part for part in sys.path if part)]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.setenv("RAY_AUTH_MODE", "disabled")  # or it writes a token to the user's home
        started = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": QUICK}
        )
        yield started
        started.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def cluster(head: Any) -> Iterator[Any]:
    """The cluster with two nodes of one core each; a node that a test removed is replaced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(head.worker_nodes) < 2:
            head.add_node(num_cpus=1)
        head.wait_for_nodes()
    yield head
    if ray.is_initialized():
        ray.shutdown()


def run(path: Path, output: Path, chosen: list[Any] | None = None, **options: Any) -> Run:
    with Corpus(str(path)) as corpus:
        return on_ray(
            chosen or metrics(), corpus, output, shard=SHARD, chunk=SMALL_CHUNKS, **options
        )


def test_a_cluster_changes_no_byte(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    progress: list[float] = []
    done = run(path, tmp_path / "out", address=cluster.address, progress=progress.append)
    assert content(tmp_path / "out") == expected
    assert sum(progress) == COUNT == done.segments
    assert not ray.is_initialized()


class AfterFirstShard:
    """Progress that does something once, when the first shard is finished."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action, self.done = action, False

    def __call__(self, rows: float) -> None:
        if rows and not self.done:
            self.done = True
            self.action()


def test_a_node_that_is_lost_changes_nothing(
    cluster: Any,
    undisturbed: tuple[Path, dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, expected = undisturbed
    gate, remove = tmp_path / "the loss is noticed", WorkerPool._remove_worker

    def remove_and_open(self: Any, worker: Any, reason: str) -> None:
        remove(self, worker, reason)
        gate.touch()

    monkeypatch.setattr(WorkerPool, "_remove_worker", remove_and_open)
    node = cluster.worker_nodes.copy().pop()
    lose = AfterFirstShard(lambda: cluster.remove_node(node, allow_graceful=False))
    waiting, address = waiting_metrics(gate), cluster.address
    with pytest.warns(UserWarning, match=r"a worker failed: .*; the others go on"):
        run(path, tmp_path / "out", waiting, address=address, progress=lose)
    assert content(tmp_path / "out") == expected


def test_an_actor_that_is_killed_is_replaced(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    dying = dying_metrics(tmp_path, deaths=2)
    with pytest.warns(UserWarning, match=r"a worker failed: .*; the others go on"):
        run(path, tmp_path / "out", dying, address=cluster.address, workers=1)
    assert content(tmp_path / "out") == expected


DRIVER = """
import sys
from pathlib import Path
from runs import waiting_metrics
from test_ray_engine import run
path, output, gate, address = sys.argv[1:]
run(Path(path), Path(output), waiting_metrics(Path(gate)), address=address)
"""


def test_a_driver_that_is_killed_lets_go_of_the_cluster(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    output, gate = tmp_path / "out", tmp_path / "the driver is dead"
    arguments = [str(path), str(output), str(gate), cluster.address]
    with subprocess.Popen([sys.executable, "-c", DRIVER, *arguments]) as driver:
        wait_for(lambda: list(output.glob("shard-*.parquet")), driver)
        driver.kill()
    gate.touch()
    run(path, output, address=cluster.address, resume=True)
    assert content(output) == expected


def test_what_the_user_can_correct_is_one_line(cluster: Any, tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    ray.init(address=cluster.address, log_to_driver=False)
    failing = FailingScorer(FreightError("a text is too long"))
    with Corpus(str(path)) as corpus, pytest.raises(FreightError, match=r"^a text is too long$"):
        on_ray([failing], corpus, tmp_path / "out")
    assert ray.is_initialized(), "a connection that was made before is not closed"
    with Corpus(str(path)) as corpus, pytest.raises(InvalidInput, match="has no 64 cores"):
        on_ray([failing], corpus, tmp_path / "out", threads=64)


def test_without_ray_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    path = write_input(tmp_path, 5)
    with Corpus(str(path)) as corpus, pytest.raises(MissingPart, match=r"freight\[ray\]"):
        on_ray(metrics(), corpus, tmp_path / "out")
