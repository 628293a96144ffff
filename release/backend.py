"""How the package is built: by scikit-build-core, with a compiler of the machine or of the index.

Where the machine has no C++ compiler, and $CXX names none, the build asks for `ziglang`, which is
one, and puts it where CMake looks. It does so too where $FREIGHT_GLIBC says which version of glibc
must suffice, as 2.17: zig compiles for it on any machine, and the wheel is tagged `manylinux`. Zig
compiles the library of C++ for each set of options that it links with, and that takes several times
as long as our own sources. So it is always given the same ones, and CMake's checks, which have
options of their own, do not link.
"""

import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scikit_build_core import build

_COMPILERS = ("c++", "g++", "clang++")
_NO_LINKING = "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"
# Zig compiles for this very machine unless it is told otherwise.
_TOOLS = {"c++": "c++ -mcpu=baseline -O3 -s", "ar": "ar", "ranlib": "ranlib"}
GLIBC = "FREIGHT_GLIBC"


def needs_zig() -> bool:
    """Whether a version of glibc is asked for, or there is no other C++ compiler."""
    if os.environ.get(GLIBC):
        return True
    return not (os.environ.get("CXX") or any(shutil.which(name) for name in _COMPILERS))


@contextmanager
def compiler() -> Iterator[None]:
    """Make sure that CMake finds a compiler."""
    if not needs_zig():
        yield
        return
    before = dict(os.environ)
    tools = dict(_TOOLS)
    if glibc := os.environ.get(GLIBC):
        machine = platform.machine()
        tools["c++"] += f" -target {machine}-linux-gnu.{glibc}"
        os.environ["_PYTHON_HOST_PLATFORM"] = f"manylinux_{glibc}_{machine}"  # the wheel's tag
    with tempfile.TemporaryDirectory() as folder:
        for name, command in tools.items():
            path = Path(folder, name)
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {command} "$@"\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        os.environ["CXX"] = str(Path(folder, "c++"))
        os.environ["CMAKE_ARGS"] = f"{os.environ.get('CMAKE_ARGS', '')} {_NO_LINKING}".strip()
        os.environ["PATH"] = os.pathsep.join((folder, os.environ.get("PATH", os.defpath)))
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building takes besides, which depends on the machine."""
    besides = ["ziglang"] if needs_zig() else []
    return [*build.get_requires_for_build_wheel(config_settings), *besides]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(folder: str, config_settings: Any = None, metadata: str | None = None) -> str:
    """Build the wheel."""
    with compiler():
        return build.build_wheel(folder, config_settings, metadata)


def build_editable(folder: str, config_settings: Any = None, metadata: str | None = None) -> str:
    """Build the kernels beside the sources, and a wheel that points there."""
    with compiler():
        return build.build_editable(folder, config_settings, metadata)


get_requires_for_build_sdist = build.get_requires_for_build_sdist
build_sdist = build.build_sdist
prepare_metadata_for_build_wheel = build.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build.prepare_metadata_for_build_editable
