"""What is said at the end of a run: means, flags, signatures; as a table or as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from freight.cli.options import Wanted

if TYPE_CHECKING:
    from freight.results import Result


class Summary:
    """Sums over the chunks of a run; the segments themselves are kept only where asked for."""

    def __init__(self, wanted: Sequence[Wanted], signatures: Sequence[str], keep: bool) -> None:
        self._wanted, self._signatures = wanted, signatures
        self._tallies: list[Any] = [0.0] * len(wanted)
        self._last: Sequence[Result] = ()
        self._flags: list[Counter[str]] = [Counter() for _ in wanted]
        self._kept: list[list[Result]] | None = [[] for _ in wanted] if keep else None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, results: "Sequence[Result]") -> None:
        """The results of the next chunk, one a metric."""
        from freight.results import flag_kind

        for k, result in enumerate(results):
            self._tallies[k] = self._tallies[k] + result.tally
            for flags in result.flags:
                self._flags[k].update(flag_kind(flag) for flag in flags)
            if self._kept is not None:
                self._kept[k].append(result)
        self._last = results
        self._count += len(results[0])

    def show(self) -> None:
        """A table for people, what was flagged, and the signatures."""
        systems = [self._system(k) for k in range(len(self._wanted))]
        print_table(self._count, self._wanted, systems, self._flags, self._signatures)

    def print_json(self, timings: dict[str, float]) -> None:
        """One object on standard output."""
        records = [self._record(k) for k in range(len(self._wanted))]
        print(json.dumps({"segments": self._count, "metrics": records, "timings": timings}))

    def _system(self, k: int) -> dict[str, float]:
        every = self._last[k].system_of(self._tallies[k])
        return {name: every[name] for name in self._wanted[k].columns}

    def _record(self, k: int) -> dict[str, Any]:
        kept = self._kept[k] if self._kept is not None else []
        names = self._wanted[k].columns
        return {
            "metric": self._wanted[k].metric.name,
            "system": {name: _number(value) for name, value in self._system(k).items()},
            "scores": {n: [_number(x) for part in kept for x in part[n]] for n in names},
            "references": [int(x) for part in kept for x in part.winners],
            "flags": [list(flags) for part in kept for flags in part.flags],
            "signature": self._signatures[k],
        }


def print_table(
    count: int,
    wanted: Sequence[Wanted],
    systems: Sequence[Mapping[str, float]],
    flags: Sequence[Mapping[str, int]],
    signatures: Sequence[str],
) -> None:
    """Means by metric and column, what was flagged, and the signatures."""
    console = Console()
    table = Table("metric", "column", title=f"{count} segments")
    table.add_column("mean", justify="right")
    for one, system in zip(wanted, systems, strict=True):
        arrows = {c.name: "↑" if c.higher else "↓" for c in one.metric.columns}
        for name in one.columns:
            table.add_row(one.metric.name, name + arrows[name], f"{system[name]:.4f}")
    console.print(table)
    for one, found in zip(wanted, flags, strict=True):
        for flag, times in found.items():
            line = f"{one.metric.name}: {times} of {count} segments: {flag}"
            console.print(line, style="yellow", highlight=False)
    for signature in signatures:
        console.print(signature, style="dim", soft_wrap=True, highlight=False)


def _number(value: float) -> float | None:
    return float(value) if value == value else None
