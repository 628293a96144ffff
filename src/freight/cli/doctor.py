"""`freight doctor`: what is installed, what works, and how to repair what does not.

Each check imports what it looks at, so that a broken package is a fault like any other.
"""

import json
import os
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import freight
from freight.cli.options import AsJson
from freight.errors import FreightError

T = TypeVar("T")

_DISTRIBUTION, _COLLECTIONS = "freight", ("all", "dev")
_REINSTALL = "pip install --force-reinstall freight, in a new environment if that does not help"
_HYP, _REF = "The boy in a coat.", "The young man in a slicker."
_EXPECTED, _TOLERANCE = 0.6, 0.005


def doctor_command(as_json: AsJson = False) -> None:
    """Check the installation, and say what is wrong with it and what helps.

    Everything is tried once: packages, the default encoder, the GPU, caches, the score of two
    sentences. The exit status is 1 where something does not work.
    """
    with Console(stderr=True).status("checking"):
        report = check_installation()
    if as_json:
        print(json.dumps({"sound": report.sound, **asdict(report)}))
    else:
        show_report(report, Console())
    if not report.sound:
        raise typer.Exit(1)


@dataclass(frozen=True)
class Fault:
    """Something that should work and does not, and what helps."""

    what: str
    cure: str


@dataclass(frozen=True)
class Package:
    """A required package: the versions that fit, the installed one, and why an import fails."""

    name: str
    wanted: str
    version: str | None = None
    fits: bool = False
    error: str | None = None

    @property
    def fault(self) -> Fault | None:
        """Missing, too old or broken."""
        required = f"'{self.name}{self.wanted}'"
        if self.version is None:
            return Fault(f"{self.name} is not installed", f"pip install {required}")
        if not self.fits:
            what = f"{self.name} {self.version} is installed, {self.wanted} is needed"
            return Fault(what, f"pip install --upgrade {required}")
        if self.error:
            what = f"{self.name} {self.version} cannot be imported: {self.error}"
            return Fault(what, f"pip install --force-reinstall {required}")
        return None


@dataclass(frozen=True)
class Extra:
    """Packages that are installed together on request, and the command that does it."""

    packages: tuple[Package, ...]
    installed: bool
    install: str


@dataclass(frozen=True)
class DefaultEncoder:
    """The encoder that is used where none is named, and the seconds to load and try it."""

    name: str
    folder: str
    identity: str
    layers: int
    dimensions: int
    seconds: float


@dataclass(frozen=True)
class Gpu:
    """A CUDA device; `packed` says whether bfloat16 batches need no padding."""

    name: str
    memory: int
    capability: str
    bfloat16: bool
    packed: bool


@dataclass(frozen=True)
class CacheFolder:
    """A folder that may be deleted at any time, with its bytes and files."""

    name: str
    folder: str
    bytes: int
    files: int
    writable: bool

    @property
    def fault(self) -> Fault | None:
        """Not writable."""
        if self.writable:
            return None
        what = f"{self.folder} cannot be written to, so {self.name} are not kept"
        return Fault(what, "set XDG_CACHE_HOME to a folder of your own")


@dataclass(frozen=True)
class TrialScore:
    """The score of two sentences, the expected score, and the seconds it took."""

    metric: str
    encoder: str
    score: float
    expected: float
    seconds: float

    @property
    def fault(self) -> Fault | None:
        """Not the expected score."""
        if abs(self.score - self.expected) <= _TOLERANCE:
            return None
        what = f"two sentences score {self.score:.4f} by {self.metric}, not {self.expected:.4f}"
        return Fault(what, "pip install --force-reinstall 'freight[embedded]'")


@dataclass(frozen=True)
class InstallationReport:
    """The results of all checks."""

    version: str
    python: str
    system: str
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    packages: tuple[Package, ...]
    extras: dict[str, Extra]
    encoder: DefaultEncoder | None
    gpus: tuple[Gpu, ...]
    threads: dict[str, int]
    caches: tuple[CacheFolder, ...]
    trial: TrialScore | None

    @property
    def sound(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


def check_installation() -> InstallationReport:
    """Run every check, and score a pair of texts."""
    faults: list[Fault] = []
    packages: tuple[Package, ...] = attempt(check_packages, (), faults)
    extras: dict[str, Extra] = attempt(check_extras, {}, faults)
    report = InstallationReport(
        version=freight.__version__,
        python=f"{platform.python_version()} in {sys.prefix}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        faults=(),
        notes=attempt(check_torch_build, (), faults),
        packages=packages,
        extras=extras,
        encoder=attempt(check_encoder, None, faults),
        gpus=attempt(check_gpus, (), faults),
        threads=attempt(count_threads, {}, faults),
        caches=attempt(check_caches, (), faults),
        trial=attempt(check_score, None, faults),
    )
    installed = [
        package for extra in extras.values() if extra.installed for package in extra.packages
    ]
    faults = [
        *(package.fault for package in (*packages, *installed) if package.fault),
        *faults,
        *(cache.fault for cache in report.caches if cache.fault),
        *([report.trial.fault] if report.trial and report.trial.fault else []),
    ]
    return replace(report, faults=tuple(dict.fromkeys(faults)))


def attempt(check: Callable[[], T], otherwise: T, faults: list[Fault]) -> T:
    """The result of a check; if it fails for whatever reason, that is added to the faults."""
    try:
        return check()
    except FreightError as error:  # its message has the cure behind the semicolon
        what, _, cure = str(error).partition("; ")
        faults.append(Fault(what, cure.removeprefix("run").strip()))
    except Exception as error:
        first_line = str(error).strip().split("\n")[0]
        faults.append(Fault(f"{type(error).__name__}: {first_line}", _REINSTALL))
    return otherwise


def check_extras() -> dict[str, Extra]:
    """The extras but for collections of others."""
    extras = {}
    for name in metadata.metadata(_DISTRIBUTION).get_all("Provides-Extra") or ():
        if name not in _COLLECTIONS:
            packages = check_packages(name)
            installed = all(package.version for package in packages)
            extras[name] = Extra(packages, installed, f"pip install '{_DISTRIBUTION}[{name}]'")
    return extras


def check_packages(extra: str = "") -> tuple[Package, ...]:
    """The packages that are always needed, or those that an extra adds to them."""
    from packaging.specifiers import SpecifierSet

    required, packages = _required_packages(""), []
    if extra:
        required = tuple(sorted({*_required_packages(extra)} - {*required}))
    for name, wanted in required:
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages.append(Package(name, wanted))
        else:
            fits = SpecifierSet(wanted).contains(installed, prereleases=True)
            packages.append(Package(name, wanted, installed, fits, _import_error(name)))
    return tuple(packages)


@cache
def _required_packages(extra: str) -> tuple[tuple[str, str], ...]:
    """The names and version ranges that are required here, with or without an extra."""
    from packaging.requirements import Requirement

    try:
        every = [Requirement(text) for text in metadata.requires(_DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:
        raise FreightError(
            "freight is imported from a folder that is not installed; pip install -e ."
        ) from None
    apply = (x for x in every if not x.marker or x.marker.evaluate({"extra": extra}))
    return tuple((one.name, str(one.specifier)) for one in apply)


@cache
def _import_error(package: str) -> str | None:
    """Why a package cannot be imported; None where it can."""
    name = _import_name(package)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(_import_names().get(name, name))
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
    return None


@cache
def _import_names() -> dict[str, str]:
    """The module that each package is imported as; its own name comes first."""
    modules: dict[str, list[str]] = {}
    for module, packages in metadata.packages_distributions().items():
        for package in packages:
            if not module.startswith("_"):
                modules.setdefault(_import_name(package), []).append(module)
    return {
        name: min(several, key=lambda module: (_import_name(module) != name, module))
        for name, several in modules.items()
    }


def _import_name(package: str) -> str:
    return package.lower().replace("-", "_").replace(".", "_")


def check_torch_build() -> tuple[str, ...]:
    """A note where there is an NVIDIA driver that this build of torch cannot use."""
    import torch

    note = "there is an NVIDIA driver, but this torch is built without CUDA: all runs on CPU"
    return (note,) if shutil.which("nvidia-smi") and not torch.version.cuda else ()


def check_encoder() -> DefaultEncoder:
    """Load the default encoder and encode a sentence."""
    from freight.encoders import EMBEDDED, encoder, packaged_folder

    folder, start = str(packaged_folder("embedded")), time.perf_counter()
    chosen = encoder()
    cloud = chosen.encode([_HYP], [chosen.depth])
    seconds, dimensions = round(time.perf_counter() - start, 3), cloud.layers.shape[-1]
    return DefaultEncoder(EMBEDDED, folder, chosen.identity, chosen.depth, dimensions, seconds)


def check_gpus() -> tuple[Gpu, ...]:
    """The CUDA devices, in torch's order."""
    import torch

    from freight.encoders.batching import can_pack

    devices = []
    for k in range(torch.cuda.device_count()):
        device, about = torch.device("cuda", k), torch.cuda.get_device_properties(k)
        packed = can_pack("bert", torch.bfloat16, device)
        capability = f"{about.major}.{about.minor}"
        devices.append(Gpu(about.name, about.total_memory, capability, about.major >= 8, packed))
    return tuple(devices)


def count_threads() -> dict[str, int]:
    """The cores, and the threads of torch and of the kernels; `--threads` changes the latter."""
    import torch

    from freight.kernels import get_kernel_threads

    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return {"cores": cores, "torch": torch.get_num_threads(), "kernels": get_kernel_threads()}


def check_caches() -> tuple[CacheFolder, ...]:
    """The caches of Freight, and that of the model hub."""
    from huggingface_hub.constants import HF_HUB_CACHE
    from platformdirs import user_cache_path

    ours = user_cache_path("freight", appauthor=False)
    folders = {"vectors": ours / "vectors", "scores": ours / "scores"}
    folders |= {"models of the hub": Path(HF_HUB_CACHE)}
    return tuple(check_cache(name, folder) for name, folder in folders.items())


def check_cache(name: str, folder: Path) -> CacheFolder:
    """Count the files of a folder, and look whether it can be written to."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    writable = os.access(nearest, os.W_OK | os.X_OK)
    size = sum(path.stat().st_size for path in files)
    return CacheFolder(name, str(folder), size, len(files), writable)


def check_score() -> TrialScore:
    """Score two sentences; without the default encoder, equal ones by the hashed encoder."""
    from freight.encoders import EMBEDDED, packaged_folder
    from freight.metrics import load

    try:
        packaged_folder("embedded")
        name, hyp, expected = EMBEDDED, _HYP, _EXPECTED
    except FreightError:
        name, hyp, expected = "hashed", _REF, 1.0
    start = time.perf_counter()
    score = float(load("freight", encoder=name).score([hyp], [_REF])["score"][0])
    return TrialScore("freight", name, score, expected, round(time.perf_counter() - start, 3))


def show_report(report: InstallationReport, console: Console) -> None:
    """Print faults first, then a table of everything that was checked."""
    for fault in report.faults:
        console.print(Text.assemble(("✗ ", "bold red"), fault.what), soft_wrap=True)
        if fault.cure:
            console.print(Text.assemble("  → ", (fault.cure, "bold")), soft_wrap=True)
    for note in report.notes:
        console.print(Text.assemble(("! ", "bold yellow"), note), soft_wrap=True)
    if report.sound:
        console.print(Text.assemble(("✓ ", "bold green"), "nothing is wrong"))
    table = Table(show_header=False, title=f"freight {report.version}", title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    system = {"python": Text(report.python), "system": Text(report.system)}
    caches = {
        one.name: Text(f"{_size(one.bytes)} in {one.files:,} files  {one.folder}")
        for one in report.caches
    }
    for section in (system, _package_rows(report), _device_rows(report), caches):
        for name, value in section.items():
            table.add_row(Text(name), value)
        table.add_section()
    console.print(table)


def _package_rows(report: InstallationReport) -> dict[str, Text]:
    """Required packages, and extras with their versions or the command that installs them."""
    rows = {
        package.name: Text.assemble(
            (package.version or "missing", "red" if package.fault else ""),
            (f"  {package.wanted}", "dim"),
        )
        for package in report.packages
    }
    for name, extra in report.extras.items():
        text = Text(extra.install, "dim")
        if extra.installed:
            versions = (f"{package.name} {package.version}" for package in extra.packages)
            broken = any(package.fault for package in extra.packages)
            text = Text(", ".join(versions), "red" if broken else "")
        rows[f"[{name}]"] = text
    return rows


def _device_rows(report: InstallationReport) -> dict[str, Text]:
    """The encoder, the devices it runs on, and how long a score takes."""
    encoder, threads, trial = report.encoder, report.threads, report.trial
    rows = {"default encoder": Text("none", "red")}
    if encoder:
        size = f"{encoder.layers} layers, {encoder.dimensions} dimensions"
        rows["default encoder"] = Text(f"{encoder.name}: {size}, loads in {encoder.seconds:.1f} s")
        rows["  from"] = Text(encoder.folder)
    for k, gpu in enumerate(report.gpus):
        about = f"{gpu.name}, {_size(gpu.memory)}, compute capability {gpu.capability}"
        bfloat16, packed = ("yes" if able else "no" for able in (gpu.bfloat16, gpu.packed))
        about += f", bfloat16 {bfloat16}, packed batches {packed}"
        rows[f"gpu {k}"] = Text(about)
    rows |= {} if report.gpus else {"gpu": Text("none")}
    if threads:
        counts = f"{threads['torch']} of torch, {threads['kernels']} of the kernels"
        rows["threads"] = Text(f"{counts}, on {threads['cores']} cores")
    if trial:
        score = f"{trial.metric} on {trial.encoder} {trial.score:.4f} in {trial.seconds:.2f} s"
        rows["a score"] = Text(score, "red" if trial.fault else "")
    return rows


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"
