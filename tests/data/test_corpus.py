"""Files of every format hold the same segments, and give them as often as they are asked."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from freight.data import Corpus
from freight.data.files import rows
from freight.data.judgement_files import read_judgements
from freight.data.tables import TableWriter
from freight.errors import InvalidInput

ROWS: list[dict[str, Any]] = [
    {"hyp": 'He said "no", twice', "ref": "He refused,\nand again"},
    {"hyp": "", "ref": "naïve 🦖"},
    {"hyp": "NaN", "ref": "null"},
]
FLAT = [(row["hyp"], [row["ref"]]) for row in ROWS]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
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


QUOTED = ['"', '"a"', "it's 5\" wide", '""', "", " a ", "back\\slash \\t", "a,b;c", "\u2028", "7"]
BROKEN = ["tab\there", "line\nfeed", "carriage\rreturn", 'all "\t\r\n" of them', "\n", "end\r"]


@pytest.mark.parametrize(
    ("ending", "texts"), [("tsv", QUOTED), ("csv", QUOTED + BROKEN), ("jsonl", QUOTED + BROKEN)]
)
def test_what_is_written_is_what_is_read(tmp_path: Path, ending: str, texts: list[str]) -> None:
    path = tmp_path / f"data.{ending}"
    with TableWriter(path, {}) as writer:
        writer.write({"hyp": texts[:3], 'the "ref"': texts[:3][::-1]})
        writer.write({"hyp": texts[3:], 'the "ref"': texts[3:][::-1]})
    records = list(rows(path))
    assert [row["hyp"] for row in records] == texts
    assert [row['the "ref"'] for row in records] == texts[:3][::-1] + texts[3:][::-1]


@pytest.mark.parametrize("text", BROKEN)
def test_tabs_refuse_what_they_cannot_hold(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.tsv"
    with pytest.raises(InvalidInput, match=r"which TSV cannot hold; write \.csv or \.jsonl"):
        write_texts(path, [text])
    assert not list(tmp_path.iterdir())


def write_texts(path: Path, texts: list[str]) -> None:
    with TableWriter(path, {}) as writer:
        writer.write({"hyp": texts})


def test_a_bare_carriage_return_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"hyp,ref\na,b\nc\rd,e\n")
    with pytest.raises(InvalidInput, match=r"line 3 of .* has a carriage return in it; quote its"):
        list(rows(path))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_several_references_in_one_cell(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data.{ending}"
    write(path, [{"hyp": "a", "refs": ["b", "c"], "x": 1}, {"hyp": "d", "refs": ["e"], "x": None}])
    assert list(Corpus(str(path))) == [("a", ["b", "c"]), ("d", ["e"])]


def test_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    write(path, [{"output": "a", "one": "b", "two": "c"}])
    corpus = Corpus(str(path), hyp_column="output", ref_columns=["two", "one"])
    assert list(corpus) == [("a", ["c", "b"])]


def test_texts_and_tables_mix(tmp_path: Path) -> None:
    (tmp_path / "hyp.txt").write_text("one\n\ntwo words\r\n")
    write(tmp_path / "ref.csv", ROWS)
    (tmp_path / "other.csv").write_text("text\nx\n\nz\n")
    refs = [str(tmp_path / "ref.csv"), str(tmp_path / "hyp.txt")]
    pairs = list(Corpus(str(tmp_path / "hyp.txt"), refs))
    assert [hyp for hyp, _ in pairs] == ["one", "", "two words"]
    assert [several for _, several in pairs] == [
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


def test_systems_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    said = [("amber", 7), ("beryl", 8), ("beryl", 7), ("amber", 9), ("beryl", 7), (None, 9)]
    write(path, [{"hyp": "a", "ref": "b", "system": x, "segment": k} for x, k in said])
    places = Corpus(str(path)).places
    assert places is not None
    assert places.names == ("amber", "beryl", "unnamed")
    assert places.systems.tolist() == [0, 1, 1, 0, 1, 2]
    assert places.segments.tolist() == [0, 1, 0, 2, 3, 2]  # the second 7 of beryl is another input
    assert places.rows_of(1).tolist() == [2, 1, 4]


def test_systems_without_segments_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    write(path, [{"hyp": "a", "ref": "b", "system": x} for x in ("amber", "amber", "be\nryl")])
    places = Corpus(str(path)).places
    assert places is not None
    assert places.names == ("amber", "be\ufffdryl")
    assert places.segments.tolist() == [0, 1, 0]
    write(path, [{"hyp": "a", "ref": "b", "system": ""}])
    assert Corpus(str(path)).places is None


def test_systems_in_files_take_turns(tmp_path: Path) -> None:
    for name, lines in {"one.txt": "a\nb", "two.de.txt": "c\nd", "ref.txt": "r\ns"}.items():
        (tmp_path / name).write_text(lines)
    one, two, ref = (str(tmp_path / name) for name in ("one.txt", "two.de.txt", "ref.txt"))
    corpus = Corpus(one, [ref], others=[two])
    assert len(corpus) == 4
    assert list(corpus) == [("a", ["r"]), ("c", ["r"]), ("b", ["s"]), ("d", ["s"])]
    assert list(corpus.references()) == ["r", "s"]
    assert corpus.places is not None
    assert corpus.places.names == ("one", "two.de")
    assert corpus.places.segments.tolist() == [0, 0, 1, 1]
    with pytest.raises(InvalidInput, match=r"one\.txt is given twice"):
        Corpus(one, [ref], others=[one])
    with pytest.raises(InvalidInput, match="has no references; give a file of them after"):
        Corpus(one, others=[two])


@pytest.mark.parametrize("hyp", ["prediction", "mt", "candidate", "output", "answer", "Hypothesis"])
@pytest.mark.parametrize("ref", ["reference", "target", "gold", "expected", "references"])
def test_other_names_of_the_columns(tmp_path: Path, hyp: str, ref: str) -> None:
    path = tmp_path / "data.jsonl"
    value = ["b", "c"] if ref == "references" else "b"
    path.write_text(json.dumps({"id": 7, ref: value, hyp: "a"}) + "\n")
    refs = value if isinstance(value, list) else [value]
    assert list(Corpus(str(path))) == [("a", refs)]
    rated = [{ref: value, hyp: text, "human": k} for k, text in enumerate("ad")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rated))
    judged = read_judgements(path)
    assert (judged.hyps, judged.refs) == (("a", "d"), (tuple(refs),) * 2)


def test_our_own_name_comes_before_others(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("hyp,prediction,ref,target\na,x,b,y\n")
    assert list(Corpus(str(path))) == [("a", ["b"])]


def test_two_names_for_a_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("prediction,answer,gold\na,b,c\n")
    with pytest.raises(InvalidInput, match="has prediction and answer, each of which may be hyp"):
        Corpus(str(path))
    assert list(Corpus(str(path), hyp_column="prediction", ref_columns=["answer"])) == [
        ("a", ["b"])
    ]
    assert list(Corpus(str(path), hyp_column="answer")) == [("b", ["c"])]
