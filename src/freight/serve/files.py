"""Uploaded tables: bytes in, segments out; and results as tables to be downloaded."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from freight.data.lines import decoded
from freight.data.rows import Row, parse_rows
from freight.errors import InvalidInput
from freight.pipeline import Segment
from freight.results import Result

FORMATS = {"csv": "text/csv", "tsv": "text/tab-separated-values", "jsonl": "application/jsonl"}
_SHOWN = "the file"


def segments_of(content: bytes, kind: str, most: int) -> list[Segment]:
    """Each row's hypothesis with its references: columns `hyp`, and `ref` or `refs`.

    Reading stops once there are more texts than `most`, and says so.
    """
    found: list[Segment] = []
    count = 0
    for number, row in enumerate(_rows(content, kind), 1):
        found.append(_segment(row, number))
        count += 1 + len(found[-1][1])
        if count > most:
            raise InvalidInput(
                f"{_SHOWN} has more than {most:,} texts; send it in parts, use `freight score`, or"
                " start the service with a larger --texts"
            )
    if not found:
        raise InvalidInput(f"{_SHOWN} has no rows; give columns hyp, and ref or refs")
    return found


def table(results: Sequence[Result], kind: str) -> str:
    """A row a segment: its number, each column of each metric, the references and the flags."""
    names: list[str] = ["segment"]
    columns: list[list[Any]] = [list(range(1, len(results[0]) + 1))]
    for k, result in enumerate(results):
        same = sum(other.name == result.name for other in results[:k])
        title = result.name if not same else f"{result.name} ({same + 1})"
        for column in result.columns:
            names.append(f"{title}:{column.name}")
            columns.append([None if x != x else float(x) for x in result[column.name]])
        names.append(f"{title}:reference")
        columns.append([int(winner) for winner in result.winners])
    every = zip(*(result.flags for result in results), strict=True)
    names.append("flags")
    columns.append([sorted({flag for one in row for flag in one}) for row in every])
    return "".join(_written(names, zip(*columns, strict=True), kind))


def _rows(content: bytes, kind: str) -> Iterator[Row]:
    stream = io.BytesIO(content)
    try:
        yield from parse_rows(decoded(stream, "utf-8", _SHOWN), f".{kind}", _SHOWN)
    except RecursionError:
        raise InvalidInput(f"{_SHOWN} is nested too deeply") from None


def _segment(row: Row, number: int) -> Segment:
    hyps = _texts(row, "hyp", number)
    refs = _texts(row, "refs" if "refs" in row else "ref", number)
    if len(hyps) != 1 or not refs:
        raise InvalidInput(
            f"row {number} of {_SHOWN} has {len(hyps)} hypotheses and {len(refs)} references"
        )
    return hyps[0], refs


def _texts(row: Row, name: str, number: int) -> list[str]:
    if name not in row:
        raise InvalidInput(
            f"row {number} of {_SHOWN} has no column {name}; give hyp, and ref or refs"
        )
    value: Any = row[name]
    several = value if isinstance(value, list) else [value]
    for text in several:
        if not isinstance(text, str):
            raise InvalidInput(f"row {number} of {_SHOWN}: {name} is not a text")
    return several


def _written(names: Sequence[str], rows: Any, kind: str) -> Iterator[str]:
    if kind == "jsonl":
        for row in rows:
            yield json.dumps(dict(zip(names, row, strict=True)), allow_nan=False) + "\n"
        return
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="," if kind == "csv" else "\t", lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow("; ".join(x) if isinstance(x, list) else x for x in row)
    yield stream.getvalue()
