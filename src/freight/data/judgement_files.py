"""Reading judgement sets: from tables, or from files as WMT distributed them.

`read_judgements` finds out the form from the path and the columns. A file beside the set may hold
ratings of whole systems.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freight.data.files import (
    FORMATS,
    HYP,
    REF,
    REFS,
    Row,
    is_stream,
    is_table,
    is_typed,
    lines,
    name_texts,
    parse_json,
    rows,
)
from freight.data.judgements import (
    Judgements,
    Output,
    assemble,
    check_spread,
    raters_of,
    rating,
    set_name,
)
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
    """Read and check a judgement set; its form follows from the path and the columns.

    A table (JSON lines, CSV, TSV, Parquet, gzipped or not) has in each row
    - `hyp`, `refs` or `ref`, and `human`, a number or an object of criteria; or
    - `ref`, `better`, `worse`, and optionally `better_system` and `worse_system`; or
    - `ref` and `outputs`, an object of system: text;
    and optionally `segment`, `system` and `lang_pair`. A row without a segment is an input of its
    own. Formats without objects and lists have columns named `human.NAME`, `outputs.NAME`,
    `ref.NAME`.

    WMT's segment tables (`RR-seglevel.csv`, `DArr-seglevel.csv`, `DA-seglevel.csv`: columns LP SID
    BETTER WORSE, or LP SID SYSTEM HUMAN) refer to outputs (`newstest2018.SYSTEM.cs-en`) and
    references (`newstest2018-csen-ref.en`), which are searched by name below `texts`, by default
    the table's folder, or its parent if the folder is called manual-evaluation.

    A folder has files of parallel lines: `DAseg.newstest2016.human.cs-en` with `.mt-system.` and
    `.reference.`, for each language pair.

    `human` names the criteria to keep, which may be other columns; an empty list keeps none.
    `where` keeps the rows whose columns have these values. `system_scores` are ratings of whole
    systems: a JSON list, or a table, of objects with `system`, optionally `lang_pair`, and
    criteria. By default they are searched beside the set: for a.b.jsonl in a.b.human.json and
    a.human.json, for WMT's tables in DA-syslevel.csv.
    """
    source = Path(path)
    judged = _read_set(source, human, where or {}, Path(texts) if texts else None, encoding)
    system_file = Path(system_scores) if system_scores else system_scores_beside(source)
    if system_file:
        judged = with_system_scores(judged, system_file, required=system_scores is not None)
    return judged.with_criteria(human)


RATERS = "ratings"
"""The column with the number of raters behind a row, where no other is named."""


def read_ratings(
    path: str | Path,
    human: Sequence[str] | None = None,
    raters: str | None = None,
    where: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
) -> Judgements:
    """A set to train on: preferences, or criteria and besides the number of raters of each row.

    That number is in the column `raters`, or in `ratings` where a set has it.
    """

    def read(names: Sequence[str] | None) -> Judgements:
        return read_judgements(path, names, where, encoding=encoding)

    try:
        judged = read(None)
    except InvalidInput:
        if not human:
            raise
        judged = read(human)
    if judged.preferences is not None:
        return judged
    if not judged.human:
        raise InvalidInput(f"{path} has neither ratings nor preferences of its rows")
    counting = raters or RATERS
    criteria = {name: x for name, x in judged.human.items() if name != counting}
    if human:
        criteria = read(human).human
    check_spread(Path(path), criteria)
    try:
        counts = judged if counting in judged.human else read([counting])
    except InvalidInput:
        if raters:
            raise
        return replace(judged, human=criteria)
    return replace(judged, human={**criteria, counting: counts.human[counting]})


def _read_set(
    path: Path,
    human: Sequence[str] | None,
    where: Mapping[str, Any],
    texts: Path | None,
    encoding: str,
) -> Judgements:
    if path.is_dir():
        return _filter_pair(read_parallel(path, encoding), where, path)
    if not path.exists():
        raise InvalidInput(f"there is no file {path}")
    if is_stream(path):
        raise InvalidInput(f"{path} is a pipe, which can be read once; write it to a file first")
    if not is_table(path):
        raise InvalidInput(f"{path} is no table; a judgement set ends in {' '.join(FORMATS)}")
    if is_wmt_table(path, encoding):
        return _filter_pair(read_wmt_table(path, texts, encoding), where, path)
    return read_table(path, human, where, encoding)


def _filter_pair(judged: Judgements, where: Mapping[str, Any], path: Path) -> Judgements:
    """WMT's files can be filtered by language pair only: they have no other column."""
    if not where:
        return judged
    if set(where) != {"lang_pair"}:
        other = next(name for name in where if name != "lang_pair")
        raise InvalidInput(f"{path} has no column {other!r}; it has lang_pair")
    rows = [pair == where["lang_pair"] for pair in judged.lang_pairs]
    if not any(rows):
        pairs = ", ".join(dict.fromkeys(judged.lang_pairs))
        raise InvalidInput(f"{path} has no lang_pair {where['lang_pair']!r}; there is {pairs}")
    return judged.only(rows)


HUMAN, RATED_BY = "human", "raters"
SEGMENT, SYSTEM, LANG_PAIR = "segment", "system", "lang_pair"
BETTER, WORSE, OUTPUTS = "better", "worse", "outputs"
NumberedRows = list[tuple[int, Row]]


def read_table(
    path: Path,
    human: Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
) -> Judgements:
    """A set from a table; its form follows from the columns."""
    numbered = list(enumerate(rows(path, encoding), 1))
    if not numbered:
        raise InvalidInput(f"{path} has no rows")
    numbered = [
        (number, name_texts(row, str(path)))
        for number, row in _filter_rows(path, numbered, where or {})
    ]
    table = _TableReader(path, human)
    columns = numbered[0][1]
    if BETTER in columns or WORSE in columns:
        return assemble(path, table.preferences(numbered), in_pairs=True)
    if OUTPUTS in columns or any(name.startswith(f"{OUTPUTS}.") for name in columns):
        return assemble(path, table.outputs(numbered))
    table.check_criteria(numbered)
    return assemble(path, table.ratings(numbered))


def _filter_rows(path: Path, numbered: NumberedRows, where: Mapping[str, Any]) -> NumberedRows:
    """The rows with these values, compared as text, since some formats have only text."""
    for name, value in where.items():
        values = dict.fromkeys(str(row[name]) for _, row in numbered if name in row)
        if not values:
            columns = ", ".join(numbered[0][1])
            raise InvalidInput(f"{path} has no column {name!r}; it has {columns}")
        if str(value) not in values:
            several = ", ".join(list(values)[:10]) + (", ..." if len(values) > 10 else "")
            raise InvalidInput(f"{path} has no rows where {name} is {value!r}; it is {several}")
        numbered = [(number, row) for number, row in numbered if str(row.get(name)) == str(value)]
    return numbered


@dataclass(frozen=True)
class _TableReader:
    """Turns the rows of a table into outputs, one method per form."""

    path: Path
    human: Sequence[str] | None

    def ratings(self, numbered: NumberedRows) -> Iterator[Output]:
        textual = not is_typed(self.path)
        for number, row in numbered:
            values = {
                name: rating(value, f"row {number} of {self.path}: {name}", textual)
                for name, value in self._criteria(row).items()
            }
            raters = {
                name: rating(value, f"row {number} of {self.path}: {name}", textual)
                for name, value in raters_of(_members(row, RATED_BY), _members(row, HUMAN)).items()
            }
            hyp, refs = self._text(row, HYP, number), self._refs(row, number)
            yield self._output(number, row, SYSTEM, hyp, refs, values)._replace(raters=raters)

    def preferences(self, numbered: NumberedRows) -> Iterator[Output]:
        for number, row in numbered:
            refs = self._refs(row, number)
            for side in (BETTER, WORSE):
                hyp = self._text(row, side, number)
                yield self._output(number, row, f"{side}_{SYSTEM}", hyp, refs)

    def outputs(self, numbered: NumberedRows) -> Iterator[Output]:
        for number, row in numbered:
            if not isinstance(row.get(OUTPUTS) or {}, dict):
                raise InvalidInput(f"row {number} of {self.path}: {OUTPUTS} is no {{system: text}}")
            refs, texts = self._refs(row, number), _members(row, OUTPUTS)
            for system, text in texts.items():
                if text is not None:
                    hyp = self._text(texts, system, number)
                    yield self._output(number, {**row, SYSTEM: system}, SYSTEM, hyp, refs)

    def check_criteria(self, numbered: NumberedRows) -> None:
        """Refuse criteria without ratings, before the rows are read."""
        rated = dict.fromkeys(name for _, row in numbered for name in self._criteria(row))
        named = dict.fromkeys(name for _, row in numbered for name in _members(row, HUMAN))
        for name in self.human or ():
            if name not in rated:
                near = get_close_matches(name, [*named, *numbered[0][1]], 1)
                meant = f"did you mean {near[0]}? " if near else ""
                there = ", ".join(named) or "none"
                raise InvalidInput(
                    f"{self.path} has no criterion {name!r}; {meant}there is {there}"
                )
        if self.human is None and not rated:
            columns = ", ".join(numbered[0][1])
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
            refs = {f"{REFS}[{k}]": text for k, text in enumerate(value)}
        else:
            names = [name for name in row if name in (REF, REFS) or name.startswith(f"{REF}.")]
            refs = {name: row[name] for name in names if row[name] or "." not in name}
        if not refs:
            raise InvalidInput(f"row {number} of {self.path} has no reference; call it {REF}")
        return tuple(self._text(refs, name, number) for name in refs)

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
        system_name = "" if name is None else str(name)
        return Output(number, str(pair or ""), segment, system_name, hyp, refs, ratings or {})


def _members(row: Row, name: str) -> dict[str, Any]:
    """The members of the object NAME and the columns NAME.x; a plain value has its own name."""
    value = row.get(name)
    members = value if isinstance(value, dict) else {} if value is None else {name: value}
    prefix = f"{name}."
    return {**members, **{k[len(prefix) :]: v for k, v in row.items() if k.startswith(prefix)}}


class Annotation(NamedTuple):
    """An output in which a person marked errors: start, end and severity, in characters of hyp."""

    segment: str
    system: str
    hyp: str
    refs: tuple[str, ...]
    errors: tuple[tuple[int, int, str], ...]


def read_annotations(path: str | Path) -> Iterator[Annotation]:
    """The outputs of a table whose column `errors` lists what a person marked.

    Errors have `start`, `end` and `severity`, minor or major; those without characters in the
    output, such as omissions, and those `in_source` are left out.
    """
    for number, row in enumerate(rows(Path(path)), 1):
        errors = row.get("errors")
        if not isinstance(errors, list):
            raise InvalidInput(f"row {number} of {path} has no list of errors; call it errors")
        marked = (e for e in errors if e.get("start") is not None and not e.get("in_source"))
        yield Annotation(
            str(row.get(SEGMENT, number)),
            str(row.get(SYSTEM) or ""),
            row[HYP],
            tuple(row[REFS] if REFS in row else [row[REF]]),
            tuple((int(e["start"]), int(e["end"]), str(e["severity"])) for e in marked),
        )


SystemScores = dict[tuple[str, str], dict[str, float]]
"""By language pair and system, its ratings by criterion."""


def system_scores_beside(path: Path) -> Path | None:
    """For a.b.jsonl a.b.human.json, or else a.human.json; for WMT's tables DA-syslevel.csv."""
    parts = set_name(path).split(".")
    names = [".".join((*parts[:k], "human.json")) for k in range(len(parts), 0, -1)]
    names += ["DA-syslevel.csv"] if path.name.endswith("-seglevel.csv") else []
    return next((path.parent / name for name in names if (path.parent / name).is_file()), None)


def with_system_scores(judged: Judgements, source: Path, required: bool = True) -> Judgements:
    """A copy with ratings of its systems from a file; nan and a note for systems without one.

    A file that rates none of the systems is an error if it is `required`, else ignored.
    """
    scores = _read_system_scores(source)
    by_system = [_scores_of(scores, key) for key in _system_keys(judged)]
    if not any(by_system):
        if required:
            raise InvalidInput(f"{source} rates none of the systems of {judged.name}")
        return judged
    names = dict.fromkeys(name for ratings in by_system for name in ratings)
    human: dict[str, Array] = {
        name: np.array([ratings.get(name, np.nan) for ratings in by_system]) for name in names
    }
    both = zip(judged.system_names, by_system, strict=True)
    unrated = [name for name, ratings in both if not ratings]
    notes = [f"{source.name} does not rate {', '.join(unrated)}"] if unrated else []
    notes += _systems_without_texts(judged, source, scores) + check_spread(source, human)
    return replace(judged, system_human=human, notes=(*judged.notes, *notes))


def _system_keys(judged: Judgements) -> list[tuple[str, str]]:
    """The language pair and the name of each system."""
    firsts = np.unique(judged.systems, return_index=True)[1]
    pairs = [judged.lang_pairs[row] if judged.lang_pairs else "" for row in firsts]
    return list(zip(pairs, judged.system_names, strict=True))


def _scores_of(scores: SystemScores, key: tuple[str, str]) -> dict[str, float]:
    return scores.get(key) or scores.get(("", key[1])) or {}


def _systems_without_texts(judged: Judgements, source: Path, scores: SystemScores) -> list[str]:
    pairs, known = set(judged.lang_pairs) | {""}, set(_system_keys(judged))
    names = {name for _, name in known}
    absent = [
        name
        for pair, name in scores
        if pair in pairs and (pair, name) not in known and (pair or name not in names)
    ]
    return [f"{source.name} also rates {', '.join(absent)}, without texts here"] if absent else []


def _read_system_scores(source: Path) -> SystemScores:
    scores: SystemScores = {}
    textual = is_table(source) and not is_typed(source)
    for number, row in enumerate(_score_objects(source), 1):
        if not isinstance(row, dict) or not isinstance(row.get("system"), str):
            raise InvalidInput(f"entry {number} of {source} names no system; it is {row!r}")
        key = str(row.get("lang_pair") or ""), row["system"]
        if key in scores:
            raise InvalidInput(f"{source} rates {' '.join(key).strip()} twice")
        scores[key] = _read_criteria(row, f"entry {number} of {source}", textual)
    return scores


def _score_objects(source: Path) -> Iterable[Any]:
    if is_table(source) and is_wmt_table(source):
        table = (row for _, row in wmt_rows(source))
        return (
            {"lang_pair": r["LP"], "system": r.get("SYSTEM"), "human": r.get("HUMAN")}
            for r in table
        )
    if is_table(source):
        return rows(source)
    objects = parse_json("".join(lines(source)), str(source))
    if not isinstance(objects, list):
        raise InvalidInput(f"{source} is no JSON list of objects with system and ratings")
    return objects


def _read_criteria(row: Mapping[str, Any], where: str, textual: bool) -> dict[str, float]:
    ratings = {
        name: rating(value, f"{where}: {name}", textual)
        for name, value in row.items()
        if name not in ("system", "lang_pair")
    }
    return {name: value for name, value in ratings.items() if not math.isnan(value)}
