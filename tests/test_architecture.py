"""Imports point one way, and what is public is what is exported."""

import ast
import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import freight

PACKAGE = Path(freight.__file__).parent
# A layer may import the ones before it; the modules inside one layer may import each other.
LAYERS = [
    {"errors", "kernels", "moved"},
    {"transport"},
    {"core.flags", "core.types", "data.languages"},
    {"core.quantities"},
    {"core.critical", "core.result", "data", "encoders"},
    {"core.scale", "core.units", "core.idf"},
    {"core.weightings"},
    {"core.costs", "core.joint_vocabulary"},
    {"core.readouts"},
    {"core.scorers"},
    {"core.metric"},
    {"core.pipeline", "core.overlap"},
    {"core.sweep_cache", "explain", "loss"},
    {"metrics"},
    {"run"},
    {"interop", "judge", "learn"},
    {"report"},
    {"serve"},
    {"cli"},
]


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def place(name: str) -> int:
    parts = name.removeprefix("freight.").split(".")
    for known in (".".join(parts[:2]), parts[0]):
        for rank, layer in enumerate(LAYERS):
            if known in layer:
                return rank
    if parts in (["core"], ["explain"]):
        return 0
    raise AssertionError(f"{name} has no place in LAYERS")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    name = ".".join(("freight", *path.relative_to(PACKAGE).with_suffix("").parts))
    for node in ast.parse(path.read_text()).body:
        targets = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("freight"):
            exact = node.module == "freight"
            targets = [f"freight.{a.name}" for a in node.names] if exact else [node.module]
        elif isinstance(node, ast.Import):
            targets = [a.name for a in node.names if a.name.startswith("freight")]
        for target in targets:
            if target == "freight" or target.split(".")[1] in freight.__all__:
                assert place(name) == len(LAYERS) - 1, "only the command line uses the public names"
                continue
            assert place(target) <= place(name), f"{name} imports {target}"


def test_all_is_what_is_exported() -> None:
    assert sorted(name for names in freight._HOMES.values() for name in names) == freight.__all__
    assert set(freight.__all__) <= set(dir(freight))
    with pytest.raises(AttributeError, match="nothing"):
        freight.nothing  # noqa: B018


def test_importing_does_not_import_torch() -> None:
    code = "import sys, freight; assert not {'torch', 'numpy'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lexical_metric_imports_no_torch(tmp_path: Path) -> None:
    code = """
import sys
sys.argv = ["freight", "score", "text.txt", "text.txt", "-m", "chrf"]
from freight.cli import main
try:
    main()
finally:
    heavy = {"torch", "transformers", "numba"} & {*sys.modules}
    assert not heavy, heavy
"""
    (tmp_path / "text.txt").write_text("A cat sat.\n")
    paths = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)


def test_everything_public_says_what_it_is() -> None:
    for name in freight.__all__:
        assert getattr(freight, name).__doc__, name
    for path in modules():
        assert ast.get_docstring(ast.parse(path.read_text())), path
    for path in modules():
        if path.stem.startswith("triton_") and not find_spec("triton"):
            continue  # torch brings it along where there are GPUs
        name = ".".join(("freight", *path.relative_to(PACKAGE).with_suffix("").parts))
        importlib.import_module(name.removesuffix(".__init__"))
