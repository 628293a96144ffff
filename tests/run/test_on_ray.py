"""A Ray cluster of several nodes comes to the same bytes, whatever becomes of its nodes."""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from freight.data import Corpus
from freight.errors import FreightError, InvalidInput, MissingPart
from freight.run import Run, on_ray
from runs import SHARD, Failing, content, in_small_chunks, metrics, score, write_input

ray: Any = pytest.importorskip("ray", reason="ray is not installed; pip install 'freight[ray]'")
pytestmark = [
    pytest.mark.ray,
    # Sockets and processes of Ray's own, and what it says of versions to come.
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


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without cores, and two nodes with one each."""
    from ray.cluster_utils import Cluster

    folders = Path(__file__).parent, Path(__file__).parents[1]
    paths = [*map(str, folders), *(part for part in sys.path if part)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # or it writes a token to the user's home
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": QUICK}
        )
        for _ in range(2):
            found.add_node(num_cpus=1)
        found.wait_for_nodes()
    yield found
    if ray.is_initialized():
        ray.shutdown()
    found.shutdown()


def run(path: Path, output: Path, deaths: int = 0, **options: Any) -> Run:
    chosen = in_small_chunks(notes=output.parent, deaths=deaths)
    with Corpus(str(path)) as corpus:
        return on_ray(chosen, corpus, output, shard=SHARD, **options)


def test_a_cluster_changes_no_byte(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    ticks: list[float] = []
    done = run(path, tmp_path / "out", address=cluster.address, progress=ticks.append)
    assert content(tmp_path / "out") == expected
    assert sum(ticks) == COUNT == done.segments
    assert not ray.is_initialized()


class Losing:
    """Once a shard is there, does something to the cluster."""

    def __init__(self, how: Callable[[], None]) -> None:
        self.how, self.done = how, False

    def __call__(self, rows: float) -> None:
        if rows and not self.done:
            self.done = True
            self.how()


def test_a_node_that_is_lost_changes_nothing(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    node = cluster.worker_nodes.copy().pop()
    losing = Losing(lambda: cluster.remove_node(node, allow_graceful=False))
    with pytest.warns(UserWarning, match=r"a worker failed: .*; the others go on"):
        run(path, tmp_path / "out", address=cluster.address, progress=losing)
    assert content(tmp_path / "out") == expected


def test_an_actor_that_is_killed_is_replaced(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    with pytest.warns(UserWarning, match=r"a worker failed: .*; the others go on"):
        run(path, tmp_path / "out", deaths=2, address=cluster.address, workers=1)
    assert content(tmp_path / "out") == expected


DRIVER = """
import sys
from pathlib import Path
from test_on_ray import run
run(Path(sys.argv[1]), Path(sys.argv[2]), address=sys.argv[3])
"""


def test_a_driver_that_is_killed_lets_go_of_the_cluster(
    cluster: Any, undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    arguments = [str(path), str(tmp_path / "out"), cluster.address]
    with subprocess.Popen([sys.executable, "-c", DRIVER, *arguments]) as driver:
        while not (tmp_path / "out/shard-00000.parquet").exists():
            assert driver.poll() is None
            time.sleep(0.01)
        driver.kill()
    run(path, tmp_path / "out", address=cluster.address, resume=True)
    assert content(tmp_path / "out") == expected


def test_what_the_user_can_mend_is_told(cluster: Any, tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    ray.init(address=cluster.address, log_to_driver=False)
    failing: Any = Failing(FreightError("a text is too long"))
    with Corpus(str(path)) as corpus, pytest.raises(FreightError, match=r"^a text is too long$"):
        on_ray([failing], corpus, tmp_path / "out")
    assert ray.is_initialized(), "a cluster that was joined before is not left"
    with Corpus(str(path)) as corpus, pytest.raises(InvalidInput, match="has no 64 cores"):
        on_ray([failing], corpus, tmp_path / "out", threads=64)


def test_without_ray_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    path = write_input(tmp_path, 5)
    with Corpus(str(path)) as corpus, pytest.raises(MissingPart, match=r"freight\[ray\]"):
        on_ray(metrics(), corpus, tmp_path / "out")
