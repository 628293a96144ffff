"""Judgement sets: what people said of texts, out of tables, or files as WMT distributed them."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freight.data.files import FORMATS, Row, is_table, is_typed, lines, rows
from freight.data.judgements import Judgements, Output, assemble, check_spread, rating, set_name
from freight.data.wmt import is_wmt_table, read_parallel, read_wmt_table, wmt_rows
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.transport.types import Array


__all__ = ["Judgements", "read_judgements"]


def read_judgements(
    path: str | Path,
    human: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    system_scores: str | Path | None = None,
    texts: str | Path | None = None,
    encoding: str = "utf-8",
) -> Judgements:
    """Read and check a judgement set; what it is follows from the path and the columns.

    A table (JSON lines, CSV, TSV, Parquet, gzipped or not) has in each row
    - `hyp`, `refs` or `ref`, and `human`, a number or an object of criteria; or
    - `ref`, `better`, `worse`, and perhaps `better_system` and `worse_system`; or
    - `ref` and `outputs`, an object of system: text;
    and perhaps `segment`, `system` and `lang_pair`. A row without a segment is an input of its own.
    Where a cell cannot hold an object or a list, columns are named `human.NAME`, `outputs.NAME`,
    `ref.NAME`.

    WMT's segment tables (`RR-seglevel.csv`, `DArr-seglevel.csv`, `DA-seglevel.csv`: columns LP SID
    BETTER WORSE, or LP SID SYSTEM HUMAN) find outputs (`newstest2018.SYSTEM.cs-en`) and references
    (`newstest2018-csen-ref.en`) by name, anywhere below `texts`, by default their own folder or,
    where that is called manual-evaluation, the one it is in.

    A folder holds parallel lines: `DAseg.newstest2016.human.cs-en` with `.mt-system.` and
    `.reference.`, for each language pair.

    `human` names the criteria to keep, which may be other columns, none where it is empty; `where`
    keeps the rows whose columns have these values. `system_scores` are ratings of whole systems: a
    JSON list, or a table, of objects with `system`, perhaps `lang_pair`, and criteria. By default
    they are looked for beside the set: a.b.jsonl takes a.b.human.json or a.human.json, WMT's tables
    take DA-syslevel.csv.
    """
    place = Path(path)
    found = _read(place, human, where or {}, Path(texts) if texts else None, encoding)
    source = Path(system_scores) if system_scores else scores_beside(place)
    if source:
        found = with_system_scores(found, source, asked=system_scores is not None)
    return found.with_criteria(human)


def _read(
    path: Path,
    human: Sequence[str] | None,
    where: Mapping[str, Any],
    texts: Path | None,
    encoding: str,
) -> Judgements:
    if path.is_dir():
        return _one_pair(read_parallel(path, encoding), where, path)
    if not path.exists():
        raise InvalidInput(f"there is no file {path}")
    if not is_table(path):
        raise InvalidInput(f"{path} is no table; a judgement set ends in {' '.join(FORMATS)}")
    if is_wmt_table(path, encoding):
        return _one_pair(read_wmt_table(path, texts, encoding), where, path)
    return read_table(path, human, where, encoding)


def _one_pair(found: Judgements, where: Mapping[str, Any], path: Path) -> Judgements:
    """WMT's files can be cut by language pair, and have no other column."""
    if not where:
        return found
    if set(where) != {"lang_pair"}:
        other = next(name for name in where if name != "lang_pair")
        raise InvalidInput(f"{path} has no column {other!r}; it has lang_pair")
    rows = [pair == where["lang_pair"] for pair in found.lang_pairs]
    if not any(rows):
        there = ", ".join(dict.fromkeys(found.lang_pairs))
        raise InvalidInput(f"{path} has no lang_pair {where['lang_pair']!r}; there is {there}")
    return found.only(rows)


HYP, REF, REFS, HUMAN = "hyp", "ref", "refs", "human"
SEGMENT, SYSTEM, LANG_PAIR = "segment", "system", "lang_pair"
BETTER, WORSE, OUTPUTS = "better", "worse", "outputs"
Numbered = list[tuple[int, Row]]


def read_table(
    path: Path,
    human: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
) -> Judgements:
    """A set out of a table whose columns say which form it has."""
    found = list(enumerate(rows(path, encoding), 1))
    if not found:
        raise InvalidInput(f"{path} has no rows")
    found = _filtered(path, found, where or {})
    table = _Table(path, human)
    columns = found[0][1]
    if BETTER in columns or WORSE in columns:
        return assemble(path, table.preferences(found), in_pairs=True)
    if OUTPUTS in columns or any(name.startswith(f"{OUTPUTS}.") for name in columns):
        return assemble(path, table.outputs(found))
    table.check_criteria(found)
    return assemble(path, table.ratings(found))


def _filtered(path: Path, found: Numbered, where: Mapping[str, Any]) -> Numbered:
    """Rows with these values; compared as texts, since the cells of some formats are."""
    for name, value in where.items():
        there = dict.fromkeys(str(row[name]) for _, row in found if name in row)
        if not there:
            columns = ", ".join(found[0][1])
            raise InvalidInput(f"{path} has no column {name!r}; it has {columns}")
        if str(value) not in there:
            several = ", ".join(list(there)[:10]) + (", ..." if len(there) > 10 else "")
            raise InvalidInput(f"{path} has no rows where {name} is {value!r}; it is {several}")
        found = [(number, row) for number, row in found if str(row.get(name)) == str(value)]
    return found


@dataclass(frozen=True)
class _Table:
    path: Path
    human: Sequence[str] | None

    def ratings(self, found: Numbered) -> Iterator[Output]:
        textual = not is_typed(self.path)
        for number, row in found:
            values = {
                name: rating(value, f"row {number} of {self.path}: {name}", textual)
                for name, value in self._criteria(row).items()
            }
            hyp = self._text(row, HYP, number)
            yield self._output(number, row, SYSTEM, hyp, self._refs(row, number), values)

    def preferences(self, found: Numbered) -> Iterator[Output]:
        for number, row in found:
            refs = self._refs(row, number)
            for side in (BETTER, WORSE):
                hyp = self._text(row, side, number)
                yield self._output(number, row, f"{side}_{SYSTEM}", hyp, refs)

    def outputs(self, found: Numbered) -> Iterator[Output]:
        for number, row in found:
            if not isinstance(row.get(OUTPUTS) or {}, dict):
                raise InvalidInput(f"row {number} of {self.path}: {OUTPUTS} is no {{system: text}}")
            refs, texts = self._refs(row, number), _members(row, OUTPUTS)
            for system, text in texts.items():
                if text is not None:
                    hyp = self._text(texts, system, number)
                    yield self._output(number, {**row, SYSTEM: system}, SYSTEM, hyp, refs)

    def check_criteria(self, found: Numbered) -> None:
        """Refuse what nobody rated by, before any row is looked at more closely."""
        there = dict.fromkeys(name for _, row in found for name in self._criteria(row))
        named = dict.fromkeys(name for _, row in found for name in _members(row, HUMAN))
        for name in self.human or ():
            if name not in there:
                raise InvalidInput(
                    f"{self.path} has no criterion {name!r}; there is {', '.join(named) or 'none'}"
                )
        if self.human is None and not there:
            columns = ", ".join(found[0][1])
            raise InvalidInput(
                f"{self.path} has no ratings; it has {columns}; call them {HUMAN} or {HUMAN}.NAME"
            )

    def _criteria(self, row: Row) -> dict[str, Any]:
        members = _members(row, HUMAN)
        if self.human is None:
            return members
        known = {**row, **members}
        return {name: known[name] for name in self.human if name in known}

    def _refs(self, row: Row, number: int) -> tuple[str, ...]:
        value = row.get(REFS)
        if isinstance(value, list):
            found = {f"{REFS}[{k}]": text for k, text in enumerate(value)}
        else:
            names = [name for name in row if name in (REF, REFS) or name.startswith(f"{REF}.")]
            found = {name: row[name] for name in names if row[name] or "." not in name}
        if not found:
            raise InvalidInput(f"row {number} of {self.path} has no reference; call it {REF}")
        return tuple(self._text(found, name, number) for name in found)

    def _text(self, row: Row, name: str, number: int) -> str:
        if name not in row:
            columns = ", ".join(row)
            raise InvalidInput(
                f"row {number} of {self.path} has no column {name!r}; it has {columns}"
            )
        if not isinstance(row[name], str):
            raise InvalidInput(f"row {number} of {self.path}: {name} is {row[name]!r}, not a text")
        return row[name]

    def _output(
        self,
        number: int,
        row: Row,
        system: str,
        hyp: str,
        refs: tuple[str, ...],
        ratings: Mapping[str, float] | None = None,
    ) -> Output:
        segment = row.get(SEGMENT)
        if not isinstance(segment, Hashable):
            raise InvalidInput(f"row {number} of {self.path}: {SEGMENT} is {segment!r}, no name")
        if segment is None or segment == "":
            segment = f"row {number}"
        pair, name = row.get(LANG_PAIR), row.get(system)
        who = "" if name is None else str(name)
        return Output(number, str(pair or ""), segment, who, hyp, refs, ratings or {})


def _members(row: Row, name: str) -> dict[str, Any]:
    """What is in the object of that name, or in the columns NAME.x; a plain value is its own."""
    value = row.get(name)
    found = value if isinstance(value, dict) else {} if value is None else {name: value}
    prefix = f"{name}."
    return {**found, **{k[len(prefix) :]: v for k, v in row.items() if k.startswith(prefix)}}


Ratings = dict[tuple[str, str], dict[str, float]]


def scores_beside(path: Path) -> Path | None:
    """For a.b.jsonl: a.b.human.json, or else a.human.json; for WMT's tables their own."""
    parts = set_name(path).split(".")
    names = [".".join((*parts[:k], "human.json")) for k in range(len(parts), 0, -1)]
    names += ["DA-syslevel.csv"] if path.name.endswith("-seglevel.csv") else []
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def with_system_scores(found: Judgements, source: Path, asked: bool = True) -> Judgements:
    """A copy that knows how its systems were rated; nan and a note for those that were not.

    Where none of them is in the file, that is an error if the file was asked for.
    """
    scores = _read_system_scores(source)
    mine = [_mine(scores, key) for key in _keys(found)]
    if not any(mine):
        if asked:
            raise InvalidInput(f"{source} rates none of the systems of {found.name}")
        return found
    names = dict.fromkeys(name for ratings in mine for name in ratings)
    human: dict[str, Array] = {
        name: np.array([ratings.get(name, np.nan) for ratings in mine]) for name in names
    }
    unrated = [name for name, ratings in zip(found.system_names, mine, strict=True) if not ratings]
    notes = [f"{source.name} does not rate {', '.join(unrated)}"] if unrated else []
    notes += _without_texts(found, source, scores) + check_spread(source, human)
    return replace(found, system_human=human, notes=(*found.notes, *notes))


def _keys(found: Judgements) -> list[tuple[str, str]]:
    """The language pair and the name of each system."""
    firsts = np.unique(found.systems, return_index=True)[1]
    pairs = [found.lang_pairs[row] if found.lang_pairs else "" for row in firsts]
    return list(zip(pairs, found.system_names, strict=True))


def _mine(scores: Ratings, key: tuple[str, str]) -> dict[str, float]:
    return scores.get(key) or scores.get(("", key[1])) or {}


def _without_texts(found: Judgements, source: Path, scores: Ratings) -> list[str]:
    pairs, there = set(found.lang_pairs) | {""}, set(_keys(found))
    names = {name for _, name in there}
    absent = [
        name
        for pair, name in scores
        if pair in pairs and (pair, name) not in there and (pair or name not in names)
    ]
    return [f"{source.name} also rates {', '.join(absent)}, without texts here"] if absent else []


def _read_system_scores(source: Path) -> Ratings:
    scores: Ratings = {}
    textual = is_table(source) and not is_typed(source)
    for number, row in enumerate(_objects(source), 1):
        if not isinstance(row, dict) or not isinstance(row.get("system"), str):
            raise InvalidInput(f"entry {number} of {source} names no system; it is {row!r}")
        key = str(row.get("lang_pair") or ""), row["system"]
        if key in scores:
            raise InvalidInput(f"{source} rates {' '.join(key).strip()} twice")
        scores[key] = _criteria(row, f"entry {number} of {source}", textual)
    return scores


def _objects(source: Path) -> Iterable[Any]:
    if is_table(source) and is_wmt_table(source):
        table = (row for _, row in wmt_rows(source))
        return (
            {"lang_pair": r["LP"], "system": r.get("SYSTEM"), "human": r.get("HUMAN")}
            for r in table
        )
    if is_table(source):
        return rows(source)
    try:
        found = json.loads("".join(lines(source)))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{source} is not JSON ({error.msg}, line {error.lineno})") from None
    if not isinstance(found, list):
        raise InvalidInput(f"{source} is no JSON list of objects with system and ratings")
    return found


def _criteria(row: Mapping[str, Any], where: str, textual: bool) -> dict[str, float]:
    found = {
        name: rating(value, f"{where}: {name}", textual)
        for name, value in row.items()
        if name not in ("system", "lang_pair")
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}
