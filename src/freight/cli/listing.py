"""`freight metrics`, `freight encoders` and `freight version`: what there is."""

from rich.console import Console
from rich.table import Table

import freight


def metrics() -> None:
    """List the metrics, with their columns and which way is better."""
    from freight.catalogue import METRICS

    table = Table("metric", "columns", "what it is", "presets", title="Metrics")
    about = freight.metrics()
    for name in METRICS:
        table.add_row(name, _columns(name), about[name], "  ".join(freight.presets(name)))
    Console().print(table)


def _columns(name: str) -> str:
    light = {"encoder": "hashed"} if "encoder" in freight.parameters(name) else {}
    try:
        columns = freight.load(name, **light).columns
    except freight.MissingPart as missing:
        return f"[yellow]{missing}[/yellow]"
    return "  ".join(f"{c.name}{'↑' if c.higher else '↓'}" for c in columns)


def encoders() -> None:
    """List the encoders."""
    table = Table("encoder", "what it is", title="Encoders")
    for name, about in freight.encoders().items():
        table.add_row(name, about)
    Console().print(table)


def version() -> None:
    """Print the version."""
    print(f"freight {freight.__version__}")
