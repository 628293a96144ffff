"""Scores as files: JSON lines, CSV, TSV or Parquet, by the ending, written whole or not at all."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from freight.errors import InvalidInput

ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
Rows = dict[str, list[Any]]


def check_ending(path: Path) -> None:
    """Before any work: a place that cannot be written is no surprise at the end of it."""
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{path} ends in none of {' '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} in")


def write_table(path: Path, rows: Rows, notes: dict[str, str]) -> None:
    """Write columns of equal length; `notes` go into the metadata of a Parquet file."""
    part = path.with_name(path.name + ".part")
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(rows).replace_schema_metadata(notes), part)
    else:
        with part.open("w", encoding="utf-8", newline="") as stream:
            if path.suffix == ".jsonl":
                for row in _each(rows):
                    record = dict(zip(rows, row, strict=True))
                    stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            else:
                writer = csv.writer(stream, delimiter="," if path.suffix == ".csv" else "\t")
                writer.writerow(rows)
                writer.writerows([_cell(x) for x in row] for row in _each(rows))
    part.replace(path)


def _each(rows: Rows) -> Any:
    return zip(*rows.values(), strict=True)


def _cell(value: Any) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return "; ".join(value) if is_list else value
