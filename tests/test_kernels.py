"""Compiled code is shared by content: between copies of the package, never across a change."""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import freight
from freight import kernels
from freight.transport import elementary

PACKAGE = Path(freight.__file__).parent
VERSION = f"numba-{numba.__version__}"

# exp_in_place calls _exp_block and uses the constants _FEW and _BLOCK
RUN = """
import json
import numpy as np
from freight.transport.elementary import exp_in_place
x = np.linspace(-1.0, 1.0, 64)
exp_in_place(x)
stats = exp_in_place.stats
counts = [sum(counter.values()) for counter in (stats.cache_hits, stats.cache_misses)]
print(json.dumps([x.tolist(), *counts, stats.cache_path]))
"""


class Run(NamedTuple):
    values: list[float]
    hits: int
    misses: int
    folder: str


def copy_package(folder: Path, **edits: tuple[str, str]) -> Path:
    """The package in another folder, its module of elementary functions edited there."""
    shutil.copytree(PACKAGE, folder / "freight", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "freight/transport/elementary.py"
    source = path.read_text()
    for old, new in edits.values():
        assert source.count(old) == 1
        source = source.replace(old, new)
    path.write_text(source)
    return folder


def run(folder: Path, cache: Path) -> Run:
    """Call a kernel of that copy in a process of its own."""
    given = os.environ | {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(cache)}
    given.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=given, check=True, capture_output=True, text=True)
    return Run(*json.loads(done.stdout))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds what one copy of the package has compiled."""
    first = tmp_path_factory.mktemp("first")
    folder = first / "cache"
    compiled = run(copy_package(first), folder)
    assert compiled[1:] == (0, 1, str(folder / "freight/kernels" / VERSION))
    np.testing.assert_allclose(compiled.values, np.exp(np.linspace(-1.0, 1.0, 64)), rtol=1e-15)
    return folder


def test_another_copy_of_the_same_sources_compiles_nothing(cache: Path, tmp_path: Path) -> None:
    assert run(copy_package(tmp_path), cache)[1:3] == (1, 0)


def test_another_comment_compiles_nothing(cache: Path, tmp_path: Path) -> None:
    edit = ('    """exp(x) = 2**n', '    # longer by a line\n    """So that exp(x) = 2**n')
    assert run(copy_package(tmp_path, doc=edit), cache)[1:3] == (1, 0)


def test_a_changed_callee_is_compiled_and_called(cache: Path, tmp_path: Path) -> None:
    edit = ("(r + r * r * p + 1.0) * scale[k]", "(r + r * r * p + 1.0) * scale[k] + 5.0")
    changed = run(copy_package(tmp_path, callee=edit), cache)
    assert changed[1:3] == (0, 1)
    np.testing.assert_allclose(changed.values, np.exp(np.linspace(-1.0, 1.0, 64)) + 5.0)


def test_a_changed_constant_of_a_callee_is_compiled(cache: Path, tmp_path: Path) -> None:
    edit = ("_LN2_HIGH = ", "_LN2_HIGH = 1.0 + ")
    changed = run(copy_package(tmp_path, constant=edit), cache)
    assert changed[1:3] == (0, 1)
    assert changed.values[0] != pytest.approx(np.exp(-1.0))


def test_a_damaged_file_is_compiled_again(cache: Path, tmp_path: Path) -> None:
    shutil.copytree(cache, tmp_path / "cache")
    for path in (tmp_path / "cache").rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:1000])
    assert run(copy_package(tmp_path), tmp_path / "cache")[1:3] == (0, 1)
    assert run(tmp_path, tmp_path / "cache")[1:3] == (1, 0)


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where a folder is needed")
    beside = copy_package(tmp_path) / "freight/__pycache__"
    assert run(tmp_path, tmp_path / "cache")[1:] == (0, 1, str(beside / VERSION))
    assert run(tmp_path, tmp_path / "cache")[1:3] == (1, 0)
    shutil.rmtree(beside)
    beside.write_text("no folder either")
    assert run(tmp_path, tmp_path / "cache")[1:3] == (0, 1)


def test_numba_s_own_folder_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernels.kernel_folder() == tmp_path / VERSION


def test_other_users_of_numba_keep_their_cache() -> None:
    config: Any = numba.config
    assert os.environ.get("NUMBA_CACHE_DIR", "") == config.CACHE_DIR
    theirs = numba.njit(cache=True)(lambda x: x)
    assert theirs.stats.cache_path != str(kernels.kernel_folder())


def test_every_kernel_can_be_stored() -> None:
    stored = 0
    for module in pkgutil.walk_packages([str(PACKAGE)], "freight."):
        if module.name.endswith(("__main__", "triton_solvers")):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher):
                assert "0x" not in kernels._describe_content(value)  # no address of this process
                assert kernels._describe_content(value) == kernels._describe_content(value)
                stored += 1
    assert stored > 100


def content(source: str, **names: Any) -> str:
    """The content of the kernel `f` in this source."""
    names |= {"kernel": kernels.kernel, "summing": kernels.summing, "__name__": "made_up"}
    exec(source, names)
    return kernels._describe_content(names["f"])


CALLS = "@kernel\ndef f(x):\n    return g(x) * K\n@{}\ndef g(x):\n    return x + {}\n"


@pytest.mark.parametrize(
    ("decorator", "term", "constant"),
    [("summing", "1.0", 2.0), ("kernel", "1", 2.0), ("kernel", "1.0", 2), ("kernel", "-0.0", 2.0)],
)
def test_content_changes_with_options_and_constants(
    decorator: str, term: str, constant: float
) -> None:
    before = content(CALLS.format("kernel", "1.0"), K=2.0)
    assert before == content("# moved down\n" + CALLS.format("kernel", "1.0"), K=2.0)
    assert before != content(CALLS.format(decorator, term), K=constant)


def test_content_changes_with_arrays_and_fields() -> None:
    source = "@kernel\ndef f(x):\n    return x[0] + K[0]\n"
    assert content(source, K=np.zeros(2)) != content(source, K=np.array([0.0, 1.0]))
    classes = NamedTuple("T", [("a", float), ("b", float)]), NamedTuple("T", [("b", float)])
    source = "@kernel\ndef f(x):\n    return K(x)\n"
    assert content(source, K=classes[0]) != content(source, K=classes[1])


def test_a_module_of_ours_is_no_constant() -> None:
    with pytest.raises(TypeError, match="import the constants and kernels themselves"):
        content("@kernel\ndef f(x):\n    return K.dot(x, x)\n", K=elementary)


def test_types_differ_with_the_order_of_their_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pair(NamedTuple):
        a: float
        b: float

    typeof: Any = numba.typeof
    forward = kernels._describe_type(typeof(Pair(1.0, 2.0)))
    monkeypatch.setattr(Pair, "_fields", ("b", "a"))
    assert kernels._describe_type(typeof(Pair(1.0, 2.0))) != forward
