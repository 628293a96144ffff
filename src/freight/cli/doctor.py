"""`freight doctor`: what is installed, what works, and how to repair what does not."""

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.cli.options import AsJson

if TYPE_CHECKING:
    from freight.cli.installation import InstallationReport


def doctor_command(as_json: AsJson = False) -> None:
    """Check the installation, and say what is wrong with it and what helps.

    Everything is tried once: packages, the default encoder, the GPU, caches, the score of two
    sentences. The exit status is 1 where something does not work.
    """
    from freight.cli.installation import check_installation

    with Console(stderr=True).status("checking"):
        report = check_installation()
    if as_json:
        print(json.dumps(report.to_dict()))
    else:
        show_report(report, Console())
    if not report.sound:
        raise typer.Exit(1)


def show_report(report: "InstallationReport", console: Console) -> None:
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
    for section in (system, _package_rows(report), _device_rows(report), _cache_rows(report)):
        for name, value in section.items():
            table.add_row(Text(name), value)
        table.add_section()
    console.print(table)


def _package_rows(report: "InstallationReport") -> dict[str, Text]:
    """Required packages, and extras with their versions or the command that installs them."""
    rows = {
        package.name: Text.assemble(
            (package.version or "missing", "red" if package.fault else ""),
            (f"  {package.wanted}", "dim"),
        )
        for package in report.packages
    }
    for extra in report.extras:
        text = Text(extra.install, "dim")
        if extra.installed:
            versions = (f"{package.name} {package.version}" for package in extra.packages)
            broken = any(package.fault for package in extra.packages)
            text = Text(", ".join(versions), "red" if broken else "")
        rows[f"[{extra.name}]"] = text
    return rows


def _device_rows(report: "InstallationReport") -> dict[str, Text]:
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
    if not report.gpus:
        rows["gpu"] = Text("none")
    if threads:
        counts = f"{threads['torch']} of torch, {threads['kernels']} of the kernels"
        rows["threads"] = Text(f"{counts}, on {threads['cores']} cores")
    if trial:
        score = f"{trial.metric} on {trial.encoder} {trial.score:.4f} in {trial.seconds:.2f} s"
        rows["a score"] = Text(score, "red" if trial.fault else "")
    return rows


def _cache_rows(report: "InstallationReport") -> dict[str, Text]:
    return {
        cache.name: Text.assemble(
            f"{_size(cache.bytes)} in {cache.files:,} files  ",
            (cache.folder, "red" if cache.fault else "dim"),
        )
        for cache in report.caches
    }


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"
