"""Judgement sets as tables: a rating a row, a preference a row, or all systems' texts in a row."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freight.data.judgements.outputs import Output, assemble, rating
from freight.data.judgements.sets import Judgements
from freight.data.rows import Row, is_typed, rows
from freight.errors import InvalidInput

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
