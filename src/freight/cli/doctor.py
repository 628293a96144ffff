"""`freight doctor`: what is installed, what works, and what to do about the rest."""

import json
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.cli.options import AsJson

if TYPE_CHECKING:
    from freight.cli.diagnosis import Examination


def doctor(as_json: AsJson = False) -> None:
    """Look at the installation, and say what is wrong with it and what helps.

    Everything is tried once: packages, the default encoder, the GPU, caches, a score of two
    sentences. The exit status is 1 where something that is promised does not hold.
    """
    from freight.cli.diagnosis import examine

    with Console(stderr=True).status("looking"):
        found = examine()
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        show(found, Console())
    if not found.sound:
        raise typer.Exit(1)


def show(found: "Examination", console: Console) -> None:
    """What is wrong first, then all that was looked at."""
    for trouble in found.troubles:
        console.print(Text.assemble(("✗ ", "bold red"), trouble.what), soft_wrap=True)
        if trouble.cure:
            console.print(Text.assemble("  → ", (trouble.cure, "bold")), soft_wrap=True)
    for note in found.notes:
        console.print(Text.assemble(("! ", "bold yellow"), note), soft_wrap=True)
    if found.sound:
        console.print(Text.assemble(("✓ ", "bold green"), "nothing is wrong"))
    table = Table(show_header=False, title=f"freight {found.version}", title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for part in (_system(found), _packages(found), _extras(found), _running(found), _kept(found)):
        for name, value in part.items():
            table.add_row(Text(name), value)
        table.add_section()
    console.print(table)


def _system(found: "Examination") -> dict[str, Text]:
    return {"python": Text(found.python), "system": Text(found.system)}


def _packages(found: "Examination") -> dict[str, Text]:
    return {
        package.name: Text.assemble(
            (package.version or "missing", "red" if package.trouble else ""),
            (f"  {package.wanted}", "dim"),
        )
        for package in found.packages
    }


def _extras(found: "Examination") -> dict[str, Text]:
    """The versions of what is here, the command for what is not."""
    rows = {}
    for extra in found.extras:
        if extra.installed:
            here = (f"{package.name} {package.version}" for package in extra.packages)
            broken = any(package.trouble for package in extra.packages)
            rows[f"[{extra.name}]"] = Text(", ".join(here), "red" if broken else "")
        else:
            rows[f"[{extra.name}]"] = Text(extra.install, "dim")
    return rows


def _running(found: "Examination") -> dict[str, Text]:
    """The encoder, what it runs on, and how long a score takes."""
    encoder, threads, trial = found.encoder, found.threads, found.trial
    rows = {"default encoder": Text("none", "red")}
    if encoder:
        size = f"{encoder.layers} layers, {encoder.dimensions} dimensions"
        rows["default encoder"] = Text(f"{encoder.name}: {size}, loads in {encoder.seconds:.1f} s")
        rows["  from"] = Text(encoder.folder)
    for k, gpu in enumerate(found.gpus):
        about = f"{gpu.name}, {_size(gpu.memory)}, compute capability {gpu.capability}"
        about += f", bfloat16 {_yes(gpu.bfloat16)}, packed batches {_yes(gpu.packed)}"
        rows[f"gpu {k}"] = Text(about)
    if not found.gpus:
        rows["gpu"] = Text("none")
    if threads:
        made = f"{threads.torch} of torch, {threads.kernels} of the kernels"
        rows["threads"] = Text(f"{made}, on {threads.cores} cores")
    if trial:
        times = f"{trial.seconds:.2f} s, again in {trial.again:.3f} s"
        score = f"{trial.metric} on {trial.encoder} {trial.score:.4f}"
        rows["a score"] = Text(f"{score} in {times}", "red" if trial.trouble else "")
    return rows


def _kept(found: "Examination") -> dict[str, Text]:
    return {
        cache.name: Text.assemble(
            f"{_size(cache.bytes)} in {cache.files:,} files  ",
            (cache.folder, "red" if cache.trouble else "dim"),
        )
        for cache in found.caches
    }


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"
