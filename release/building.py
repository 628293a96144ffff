"""Build the wheel and the source distribution, and hold them to the same bytes every time."""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
INFORMATION = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
_BUILD = "import sys, backend; backend.build_wheel(sys.argv[1]); backend.build_sdist(sys.argv[1])"
_FIRST = 315532800  # 1980, before which a zip file knows no time


def main() -> None:
    """Build into a folder, and again elsewhere: from here, and from the source distribution."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--glibc", help="the oldest version to run with, as 2.17; compiled by zig")
    given = parser.parse_args()
    if given.glibc:
        os.environ["FREIGHT_GLIBC"] = given.glibc
    built = checked_build(ROOT, given.output)
    if given.glibc:
        check_platform(built[0])
    for path in built:
        print(f"{digest(path)}  {path.name}  {path.stat().st_size:,} bytes")


def checked_build(source: Path, out: Path) -> list[Path]:
    """The wheel and the sdist of a tree; the sdist, unpacked, has to give the same two."""
    epoch = commit_time(source)
    built = wheel, sdist = build(source, out, epoch)
    surplus, lacking = difference(wheel, source)
    if surplus or lacking:
        sys.exit(f"the wheel has {surplus} too much and lacks {lacking}")
    with tempfile.TemporaryDirectory() as scratch:
        copy = unpacked(sdist, Path(scratch))
        again = build(copy, Path(scratch) / "dist", epoch)
        if [digest(path) for path in again] != [digest(path) for path in built]:
            sys.exit("a second build has other bytes than the first")
    return built


def build(source: Path, out: Path, epoch: int) -> list[Path]:
    """The wheel and the sdist that our backend makes of a tree, as of a second since 1970."""
    for earlier in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        earlier.unlink()
    command = [sys.executable, "-c", _BUILD, str(out.absolute())]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONPATH": "release"}
    # What is compiled once need not be again.
    environment.setdefault("SKBUILD_BUILD_DIR", f"build/wheel{os.environ.get('FREIGHT_GLIBC', '')}")
    done = subprocess.run(command, cwd=source, env=environment, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{source} could not be built:\n{done.stdout}{done.stderr}")
    return sorted(out.glob("*.whl")) + sorted(out.glob("*.tar.gz"))


def commit_time(source: Path) -> int:
    """When the tree was last committed; a fixed day where there is no history."""
    command = ["git", "-C", str(source), "log", "-1", "--format=%ct"]
    try:
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return _FIRST


def unpacked(sdist: Path, folder: Path) -> Path:
    """The tree that an sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def difference(wheel: Path, source: Path) -> tuple[list[str], list[str]]:
    """What a wheel has besides the package and its information, and what it lacks of them."""
    package = source / "src"
    wanted = {
        str(path.relative_to(package))
        for path in (package / "freight").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted.add("freight/_kernels.so")
    name, version = wheel.name.split("-")[:2]
    wanted |= {f"{name}-{version}.dist-info/{part}" for part in INFORMATION}
    packed = set(zipfile.ZipFile(wheel).namelist())
    return sorted(packed - wanted), sorted(wanted - packed)


def check_platform(wheel: Path) -> None:
    """Refuse a wheel whose library asks more of a system than its tag says."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    said = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    tag = wheel.stem.rpartition("-")[2]
    if f'"{tag}"' not in " ".join(said.split()):
        sys.exit(f"the wheel is tagged {tag}, and auditwheel says:\n{said}")


def digest(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
