"""`freight score`: files in, a table, a file or JSON out."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from freight.data import STDIN, read_lines
from freight.data.tables import check_ending, write_table
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.results import Result


def score(
    hyp: Annotated[str, typer.Argument(help="Hypotheses, one a line; - for standard input.")],
    refs: Annotated[list[str], typer.Argument(metavar="REF...", help="References, one a line.")],
    metric: Annotated[
        list[str], typer.Option("-m", "--metric", metavar="NAME[:COLUMN]", help="What to score by.")
    ] = ["lazy-emd"],  # noqa: B006
    encoder: Annotated[str, typer.Option(help="A name from `freight encoders`.")] = "embedded",
    layer: Annotated[int | None, typer.Option(help="Hidden state; -1 is the last.")] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A metric's parameter.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".jsonl .csv .tsv or .parquet")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
) -> None:
    """Score each hypothesis against its reference, or the best of its references."""
    if output is not None:
        check_ending(output)
    if [hyp, *refs].count(STDIN) > 1:
        raise InvalidInput("standard input can be read once; give - for one file only")
    hyps, columns = read_lines(hyp, encoding), [read_lines(ref, encoding) for ref in refs]
    for path, lines in zip(refs, columns, strict=True):
        if len(lines) != len(hyps):
            raise InvalidInput(f"{hyp} has {len(hyps)} lines but {path} has {len(lines)}")
    options = {
        "encoder": encoder,
        **({} if layer is None else {"layer": layer}),
        **_set(parameters),
    }
    started = time.perf_counter()
    names, _, picked = zip(*(wanted.partition(":") for wanted in metric), strict=True)
    results = list(zip(_score(names, options, hyps, columns), picked, strict=True))
    seconds = time.perf_counter() - started
    for result, column in results:
        if column and column not in result.segments:
            has = ", ".join(result.segments)
            raise InvalidInput(f"{result.name} has no column {column!r}; there is {has}")
    if output is not None:
        notes = {result.name: result.signature for result, _ in results}
        write_table(output, _rows(results), notes)
    if as_json:
        records = [_record(result) for result, _ in results]
        print(json.dumps({"metrics": records, "seconds": round(seconds, 3)}))
    else:
        _show(results)


def _score(
    names: Sequence[str], options: dict[str, Any], hyps: list[str], columns: list[list[str]]
) -> "list[Result]":
    import freight

    refs = [list(row) for row in zip(*columns, strict=True)]
    loaded = []
    for name in names:
        known = freight.parameters(name)
        mine = {key: value for key, value in options.items() if key != "layer" or key in known}
        loaded.append(freight.load(name, **mine))
    return freight.score_together(loaded, hyps, refs)


def _set(parameters: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in parameters or []:
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"--set {item} lacks a value; write --set {item}=0.5")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = float(value) if value in ("inf", "nan") else value
    return found


def _picked(result: "Result", column: str) -> list[str]:
    return [column] if column else list(result.segments)


def _rows(results: "list[tuple[Result, str]]") -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"segment": list(range(1, len(results[0][0]) + 1))}
    flags = []
    for result, column in results:
        for name in _picked(result, column):
            rows[f"{result.name}:{name}"] = result[name].tolist()
        rows[f"{result.name}:reference"] = result.winners.tolist()
        flags.append(result.flags)
    rows["flags"] = [
        sorted({f for one in segment for f in one}) for segment in zip(*flags, strict=True)
    ]
    return rows


def _record(result: "Result") -> dict[str, Any]:
    clean = {name: [_number(x) for x in values] for name, values in result.segments.items()}
    return {
        "metric": result.name,
        "system": {name: _number(value) for name, value in result.system.items()},
        "segments": clean,
        "references": result.winners.tolist(),
        "flags": [list(f) for f in result.flags],
        "signature": result.signature,
    }


def _number(value: float) -> float | None:
    return float(value) if value == value else None


def _show(results: "list[tuple[Result, str]]") -> None:
    console = Console()
    table = Table(
        "metric", "column", title=f"{len(results[0][0])} segments", caption_justify="left"
    )
    table.add_column("mean", justify="right")
    for result, column in results:
        directions = {c.name: "↑" if c.higher else "↓" for c in result.columns}
        for name in _picked(result, column):
            table.add_row(result.name, name + directions[name], f"{result.system[name]:.4f}")
    console.print(table)
    for result, _ in results:
        flagged: dict[str, int] = {}
        for flags in result.flags:
            for flag in flags:
                kind = flag.rstrip("0123456789%").strip()
                flagged[kind] = flagged.get(kind, 0) + 1
        for flag, count in flagged.items():
            console.print(f"[yellow]{result.name}: {count} of {len(result)} segments: {flag}")
        console.print(result.signature, style="dim", soft_wrap=True, highlight=False)
