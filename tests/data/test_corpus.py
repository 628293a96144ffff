"""Files of every format hold the same segments, and give them as often as they are asked."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from freight.data import Corpus
from freight.errors import InvalidInput

ROWS = [
    {"hyp": 'He said "no", twice', "ref": "He refused,\nand again"},
    {"hyp": "", "ref": "naïve 🦖"},
    {"hyp": "NaN", "ref": "null"},
]
FLAT = [(row["hyp"], [row["ref"]]) for row in ROWS]


def write(path: Path, rows: list[dict[str, object]]) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    kind = path.name.split(".")[1]
    if kind == "parquet":
        with opened(path, "wb") as stream:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
        return
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        if kind == "jsonl":
            stream.writelines(json.dumps(row) + "\n" for row in rows)
        else:
            writer = csv.writer(stream)
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "csv.gz", "jsonl.gz", "parquet.gz"])
def test_one_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    write(path, ROWS)
    with Corpus(str(path)) as corpus:
        assert len(corpus) == 3
        assert list(corpus) == list(corpus) == FLAT


def test_tabs_take_quotes_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_bytes('\ufeffhyp\tref\r\n"Well\tyes "\r\n'.encode())
    assert list(Corpus(str(path))) == [('"Well', ['yes "'])]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_several_references_in_one_cell(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    write(path, [{"hyp": "a", "refs": ["b", "c"], "x": 1}, {"hyp": "d", "refs": ["e"], "x": None}])
    assert list(Corpus(str(path))) == [("a", ["b", "c"]), ("d", ["e"])]


def test_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    write(path, [{"output": "a", "one": "b", "two": "c"}])
    found = Corpus(str(path), hyp_column="output", ref_columns=["two", "one"])
    assert list(found) == [("a", ["c", "b"])]


def test_texts_and_tables_mix(tmp_path: Path) -> None:
    (tmp_path / "hyp.txt").write_text("one\n\ntwo words\r\n")
    write(tmp_path / "ref.csv", ROWS)
    (tmp_path / "other.csv").write_text("text\nx\n\nz\n")
    refs = [str(tmp_path / "ref.csv"), str(tmp_path / "hyp.txt")]
    found = list(Corpus(str(tmp_path / "hyp.txt"), refs))
    assert [hyp for hyp, _ in found] == ["one", "", "two words"]
    assert [several for _, several in found] == [
        [row["ref"], hyp] for row, hyp in zip(ROWS, ["one", "", "two words"], strict=True)
    ]
    alone = list(Corpus(str(tmp_path / "other.csv"), [str(tmp_path / "hyp.txt")]))
    assert [hyp for hyp, _ in alone] == ["x", "", "z"]


def test_a_long_cell_and_lines_that_unicode_would_break(tmp_path: Path) -> None:
    path, text = tmp_path / "data.csv", "word " * 100_000
    write(path, [{"hyp": text, "ref": "a\u2028b\x85c"}])
    assert list(Corpus(str(path))) == [(text, ["a\u2028b\x85c"])]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no file"):
        Corpus(str(tmp_path), [str(tmp_path)])
