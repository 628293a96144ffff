"""Judgement sets: what people said of texts, out of tables, or files as WMT distributed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from freight.data.judgements.forms import read_table
from freight.data.judgements.sets import Judgements
from freight.data.judgements.systems import scores_beside, with_system_scores
from freight.data.judgements.wmt import is_wmt_table, read_parallel, read_wmt_table
from freight.data.rows import FORMATS, is_table
from freight.errors import InvalidInput

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
