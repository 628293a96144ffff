"""The compiled kernels: the same bits on every vector unit and with any number of threads."""

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import freight
from freight import Problem, kernels
from problems import Floats, random_batch

PACKAGE = Path(freight.__file__).parent
PROBLEMS = (
    Problem(),
    Problem(ref=0),
    Problem(1, 0.3),
    Problem(0.23, 0.31, 0.009),
    Problem(epsilon=0.002),
)


def vector_units() -> list[str]:
    def exists(name: str) -> bool:
        try:
            return kernels.use_vectors(name) == name
        except ValueError:
            return False

    units = [name for name in ("baseline", "avx2", "avx512") if exists(name)]
    kernels.use_vectors()
    return units


def every_result() -> list[Floats]:
    """What the kernels compute of one set of numbers."""
    batch = random_batch(5, 30, 23)
    rng = np.random.default_rng(0)
    plans = [freight.solve(problem, *batch) for problem in PROBLEMS]
    results = [x for plan in plans for x in (plan.flow, plan.gap, plan.regularised)]
    # Wide enough for several threads to factorise one matrix.
    wide = rng.uniform(0, 2, (250, 240)), np.full(250, 1 / 250), np.full(240, 1 / 240)
    results += [freight.solve(problem, *wide).flow for problem in (PROBLEMS[0], PROBLEMS[2])]
    bary = freight.barycenter(rng.normal(size=(2, 3, 9, 21)), rng.dirichlet(np.ones(9), 2))
    points = rng.normal(size=(40, 37)).astype(np.float32)
    results += [
        bary.points,
        kernels.lengths(points),
        kernels.unit_means(points, np.array([0, 9, 40])),
    ]
    return results


@pytest.fixture
def own_setting() -> Any:
    """Threads and vectors are what they were, afterwards."""
    before = kernels.get_kernel_threads()
    yield
    kernels.set_kernel_threads(before)
    kernels.use_vectors()


def assert_same_bits(one: list[Floats], other: list[Floats]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("own_setting")
def test_no_vector_unit_changes_a_bit() -> None:
    expected = every_result()
    units = vector_units()
    assert "baseline" in units
    for unit in units:
        assert kernels.use_vectors(unit) == unit
        assert_same_bits(every_result(), expected)
    with pytest.raises(ValueError, match="no vector unit 'abacus'"):
        kernels.use_vectors("abacus")


@pytest.mark.usefixtures("own_setting")
def test_no_number_of_threads_changes_a_bit() -> None:
    kernels.set_kernel_threads(1)
    expected = every_result()
    kernels.set_kernel_threads(3)
    assert kernels.get_kernel_threads() == 3
    assert_same_bits(every_result(), expected)


@pytest.mark.usefixtures("own_setting")
def test_kernels_may_be_called_by_many_threads_at_once() -> None:
    kernels.set_kernel_threads(3)
    expected = every_result()
    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(lambda _: every_result(), range(8)):
            assert_same_bits(results, expected)


@pytest.mark.usefixtures("own_setting")
def test_a_thread_may_work_alone() -> None:
    kernels.set_kernel_threads(4)
    assert kernels.spare_threads() == 2
    with ThreadPoolExecutor(1, initializer=kernels.work_alone) as pool:
        assert pool.submit(kernels.get_kernel_threads).result() == 1
    assert kernels.get_kernel_threads() == 4


def run(code: str, *options: str, **environment: str) -> str:
    given = {**os.environ, **environment}
    given = {name: value for name, value in given.items() if value != "unset"}
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, env=given, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNTS = """
import torch, freight
from freight.kernels import get_kernel_threads
{}
metric = freight.load("lazy-emd", encoder="hashed")
before, signature = torch.get_num_threads(), metric.signature
metric.score(["a cat sat on the mat"] * 40, ["the cat sat"] * 40)
print(get_kernel_threads(), torch.get_num_threads() - before, metric.signature == signature)
"""


def test_the_number_of_threads_is_the_users() -> None:
    cores = len(os.sched_getaffinity(0))
    assert run(COUNTS.format(""), OMP_NUM_THREADS="unset").split() == [str(cores), "0", "True"]
    alone = "torch.set_num_threads(1)"
    assert run(COUNTS.format(alone), OMP_NUM_THREADS="3").split() == ["3", "0", "True"]
    both = "freight.set_threads(2); assert torch.get_num_threads() == 2"
    assert run(COUNTS.format(both), OMP_NUM_THREADS="1").split() == ["2", "0", "True"]


FOUND: list[tuple[int, int]] = []
"""How many threads there were when each turn of the next test began."""


@pytest.mark.parametrize("turn", [1, 2])
def test_a_number_of_threads_ends_with_the_test_that_set_it(turn: int) -> None:
    FOUND.append((kernels.get_kernel_threads(), torch.get_num_threads()))
    assert FOUND[0] == FOUND[-1]
    freight.set_threads(max(FOUND[0]) + turn)


def test_a_forked_child_computes_too() -> None:
    code = """
import os, sys, signal, numpy as np, freight
from freight import kernels, Problem
kernels.set_kernel_threads(3)
mass = np.full((64, 20), .05)
batch = np.random.default_rng(0).uniform(size=(64, 20, 20)), mass, mass
flow = freight.solve(Problem(), *batch).flow
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = np.array_equal(freight.solve(Problem(), *batch).flow, flow)
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(freight.solve(Problem(), *batch).flow, flow)
print("ended")
"""
    assert run(code) == "ended"


def test_nothing_needs_to_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file, where a folder is needed"
    nowhere.write_text("")
    code = (
        "import freight\n"
        "metric = freight.load('freight', encoder='hashed')\n"
        "print(metric.score(['a cat sat'], ['the cat sat']).system)"
    )
    assert "score" in run(code, XDG_CACHE_HOME=str(nowhere), HOME=str(nowhere))


def test_a_lost_library_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "freight").mkdir()
    for name in ("__init__.py", "moved.py", "kernels.py"):
        shutil.copy(PACKAGE / name, tmp_path / "freight")
    code = "try:\n    import freight.kernels\nexcept ImportError as error:\n    print(error)"
    # Without `site` nothing points at the sources; the libraries are named instead.
    path = os.pathsep.join((str(tmp_path), sysconfig.get_path("purelib")))
    assert "`make kernels`" in run(code, "-S", PYTHONPATH=path)


def test_arrays_of_any_precision_and_strides() -> None:
    cost, hyp, ref = random_batch(3, 4, 5)
    expected = freight.solve(Problem(1, 1), cost, hyp, ref).flow
    turned = np.asfortranarray(cost)
    np.testing.assert_array_equal(freight.solve(Problem(1, 1), turned, hyp, ref).flow, expected)
    spread = np.zeros((3, 8, 10))[:, ::2, ::2]
    spread[:] = cost
    np.testing.assert_array_equal(freight.solve(Problem(1, 1), spread, hyp, ref).flow, expected)
    narrow = freight.solve(Problem(1, 1), cost.astype(np.float32), hyp, ref).flow
    np.testing.assert_allclose(narrow, expected, atol=1e-5)


def test_arrays_that_do_not_fit_are_refused() -> None:
    cost, hyp, ref = random_batch(3, 4, 5)
    sizes, terms = (np.full(3, 4), np.full(3, 5)), (1.0, 1.0, 0.0, 1e-9, 100)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.simplex((cost, hyp[:2], ref, *sizes), terms)
    with pytest.raises(TypeError, match="float32 or float64"):
        kernels.simplex((cost.astype(np.float16), hyp, ref, *sizes), terms)
    with pytest.raises(TypeError, match="without gaps"):
        kernels.lengths(np.zeros((4, 6))[:, ::2])
    given = np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros(1), np.zeros(1, np.int64)
    with pytest.raises(TypeError, match="without gaps"):
        kernels.enter_units(*given, 0, np.zeros(1), *(np.zeros(2) for _ in range(4)))


def compute(function: str, x: Floats) -> Floats:
    out = x.copy()
    kernels._run(function, out, len(out))
    return out


@pytest.mark.parametrize("size", [1, 7, 8, 23, 24, 100, 513])
def test_exp_and_log_are_right_to_the_last_bits(size: int) -> None:
    rng = np.random.default_rng(size)
    for spread in (1e-9, 1.0, 690.0):
        x = rng.uniform(-spread, spread, size)
        np.testing.assert_allclose(compute("exp", x), np.exp(x), rtol=4e-16)
        positive = np.exp(x)
        np.testing.assert_allclose(compute("log", positive), np.log(positive), rtol=4e-16, atol=0)


def test_exp_stays_a_number() -> None:
    x = compute("exp", np.array([-1e5, 1e5, 0.0] * 10))
    assert np.isfinite(x).all()
    assert (x > 0).all()
    assert x[2] == 1.0


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_thread_that_ends_gives_its_memory_back() -> None:
    cost, mass = np.random.default_rng(0).uniform(size=(500, 500)), np.full(500, 1 / 500)

    def solve_elsewhere() -> None:
        with ThreadPoolExecutor(1, initializer=kernels.work_alone) as pool:
            pool.submit(freight.solve, Problem(1, 1, 0.5), cost, mass, mass).result()

    solve_elsewhere()
    before = resident_bytes()
    for _ in range(120):  # 2 MB a matrix; malloc itself keeps some MB for each of its 16 arenas
        solve_elsewhere()
    assert resident_bytes() - before < 2**27
