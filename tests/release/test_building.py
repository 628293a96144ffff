"""What is released is the same bytes every time, holds the whole package, and can be installed.

Compilers take most of the time when they optimise: that is for `make soak` (FREIGHT_OPTIMISED).
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import building
import freight

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="these are not the sources"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Built twice on the way: from here, and elsewhere from what the first build packed."""
    with pytest.MonkeyPatch.context() as patch:
        if "FREIGHT_OPTIMISED" not in os.environ:
            compile_quickly(patch)
        yield building.checked_build(ROOT, tmp_path_factory.mktemp("dist"))[0]


def compile_quickly(patch: pytest.MonkeyPatch) -> None:
    """Compile without optimisation, away from what is compiled to be released."""
    command = "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O0 -o <OBJECT> -c <SOURCE>"
    ours = shlex.quote(f"-DCMAKE_CXX_COMPILE_OBJECT={command}")
    patch.setenv("CMAKE_ARGS", f"{os.environ.get('CMAKE_ARGS', '')} {ours}".strip())
    patch.setenv("SKBUILD_BUILD_DIR", "build/unoptimised")


def test_it_is_compiled_where_the_environment_says(wheel: Path) -> None:
    folder = os.environ.get("SKBUILD_BUILD_DIR", "build/wheel")
    assert (ROOT / folder / "CMakeCache.txt").exists()


def test_time_of_day_does_not_matter_and_the_epoch_does(wheel: Path, tmp_path: Path) -> None:
    epoch = building.commit_time(ROOT)
    again, later = (building.build(ROOT, tmp_path / str(k), epoch + k)[0] for k in (0, 86400))
    assert building.digest(again) == building.digest(wheel)
    assert building.digest(later) != building.digest(wheel)


def test_the_wheel_is_the_package_and_nothing_else(wheel: Path) -> None:
    assert building.difference(wheel, ROOT) == ([], [])
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "py.typed",
        "core/sentences.txt",
        "core/moments.safetensors",
        "report/templates/page.js",
        "serve/page/docs.html",
    ):
        assert f"freight/{needed}" in names
    assert not [name for name in names if "test" in name or "__pycache__" in name]


def test_a_stray_and_a_lost_file_are_noticed(wheel: Path, tmp_path: Path) -> None:
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(other, "w") as changed:
        for name in packed.namelist():
            if name != "freight/py.typed":
                changed.writestr(name, packed.read(name))
        changed.writestr("freight/notes.orig", "")
    assert building.difference(other, ROOT) == (["freight/notes.orig"], ["freight/py.typed"])


def test_what_it_says_of_itself(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        name = next(x for x in packed.namelist() if x.endswith("dist-info/METADATA"))
        said = packed.read(name).decode()
    assert f"\nVersion: {freight.__version__}\n" in said
    assert "\nLicense-Expression: Apache-2.0\n" in said
    assert "\nRequires-Python: >=3.11\n" in said


def test_it_installs(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path), str(wheel)], check=True)
    code = (
        "import freight\n"
        "print(freight.__file__)\n"
        "print(freight.load('lazy-emd', encoder='hashed').signature)\n"
    )
    # Without `site` nothing points at the sources; the libraries are named instead.
    libraries = sysconfig.get_path("purelib")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), libraries))}
    command = [sys.executable, "-S", "-P", "-c", code]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, signature = done.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert signature == freight.load("lazy-emd", encoder="hashed").signature


def test_a_compiler_of_the_index_is_put_where_cmake_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = pytest.importorskip("backend", reason="scikit-build-core is not installed")
    monkeypatch.setattr(backend, "needs_zig", lambda: True)
    before = dict(os.environ)
    with backend.compiler():
        script = Path(os.environ["CXX"])
        assert os.environ["PATH"].startswith(str(script.parent))
        assert "ziglang c++ -mcpu=baseline -O3 -s" in script.read_text()  # always the same options
        assert "TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY" in os.environ["CMAKE_ARGS"]
    assert dict(os.environ) == before
    assert not script.exists()


def test_an_old_glibc_is_compiled_for_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = pytest.importorskip("backend", reason="scikit-build-core is not installed")
    monkeypatch.setenv("CXX", "g++")  # which compiles for the glibc of this machine
    assert not backend.needs_zig()
    monkeypatch.setenv("FREIGHT_GLIBC", "2.17")
    assert "ziglang" in backend.get_requires_for_build_wheel()
    with backend.compiler():
        assert "-linux-gnu.2.17" in Path(os.environ["CXX"]).read_text()
        assert os.environ["_PYTHON_HOST_PLATFORM"].startswith("manylinux_2.17_")
    assert "_PYTHON_HOST_PLATFORM" not in os.environ
