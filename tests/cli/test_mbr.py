"""`freight mbr` as a user runs it, mistakes included."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet
import pytest

import freight
from freight.cli import main

LISTS = [["the cat sat", "a cat sat", "dogs bark", "the cat sat"], ["so be it", "so be it!"]]
HASHED = ("-m", "lazy-emd", "--encoder", "hashed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text("".join(json.dumps(one) + "\n" for one in LISTS))
    with gzip.open("c.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\r\n\r\n".join("\r\n".join(one) for one in LISTS))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", "mbr", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def choices(**said: Any) -> list[freight.Choice]:
    return freight.mbr(LISTS, freight.load("lazy-emd", encoder="hashed"), **said)


@pytest.mark.parametrize("name", ["c.jsonl", "c.txt.gz"])
def test_chosen_texts_a_line(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, name, *HASHED) == 0
    assert capsys.readouterr().out.splitlines() == [choice.text for choice in choices()]


def test_json_lines_hold_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = ("--utilities", "--matrix", "--no-itself")
    assert run(monkeypatch, "c.jsonl", *HASHED, *more, "-o", "out.jsonl") == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    for row, choice in zip(rows, choices(itself=False, matrix=True), strict=True):
        assert choice.matrix is not None
        assert row == {
            "index": choice.index,
            "text": choice.text,
            "utility": choice.utility,
            "flags": [],
            "utilities": choice.utilities.tolist(),
            "matrix": choice.matrix.tolist(),
        }


def test_tables_by_their_ending(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "c.jsonl", *HASHED, "-o", "out.csv") == 0
    assert run(monkeypatch, "c.jsonl", *HASHED, "-o", "out.parquet") == 0
    with Path("out.csv").open(newline="") as stream:
        comma = list(csv.DictReader(stream))
    table = pyarrow.parquet.read_table("out.parquet")
    expected = choices()
    assert [row["text"] for row in comma] == [choice.text for choice in expected]
    assert table["utility"].to_pylist() == [choice.utility for choice in expected]
    assert table.schema.metadata[b"lazy-emd"].decode() == expected[0].signature


def test_objects_have_references_and_weights(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"candidates": ["a b", "c d"], "references": ["c d", "a b"], "weights": [3, 1], "id": 7},
        {"candidates": ["a b", "c d"], "weights": [3, 1]},
    ]
    Path("o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(monkeypatch, "o.jsonl", "-m", "chrf") == 0
    assert capsys.readouterr().out.splitlines() == ["c d", "a b"]


@pytest.mark.parametrize("written", ['["a b", "c", "a b"]\n', "a b\nc\na b\n"])
def test_standard_input_is_of_either_kind(
    written: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(written.encode())))
    assert run(monkeypatch, "-", "-m", "mover-score", "--encoder", "hashed") == 0
    assert capsys.readouterr().out == "a b\n"


def test_what_could_not_be_compared_is_null(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("e.jsonl").write_text('["", "a b", "a b c"]\n')
    more = ("-m", "wmd", "--encoder", "hashed", "--utilities", "-o", "out.jsonl")
    assert run(monkeypatch, "e.jsonl", *more) == 0
    row = json.loads(Path("out.jsonl").read_text())
    assert row["utilities"][0] is None
    assert row["flags"] == ["both sides empty", "empty side"]


@pytest.mark.parametrize(
    ("name", "content", "more", "message"),
    [
        ("a.jsonl", '["a"]\n{"x": 1}\n', (), "line 2 of a.jsonl is neither"),
        ("a.jsonl", '["a"\n', (), "line 1 of a.jsonl is not JSON"),
        ("a.jsonl", '{"candidates": []}\n', (), "line 1 of a.jsonl: there are no candidates"),
        ("a.jsonl", '["a\\nb"]\n', (), "has a line break in it"),
        ("a.txt", "a\n\n\nb\n", (), "line 3 of a.txt ends a list without candidates"),
        ("a.txt", "\n", (), "a.txt is empty"),
        ("a.txt", "a\n", ("-o", "out.docx"), "ends in none of"),
        ("a.txt", "a\n", ("-o", "out.csv", "--matrix"), "write -o out.jsonl"),
        ("a.txt", "a\n", ("-m", "chrf:f"), "no column 'f'"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    more: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    assert run(monkeypatch, name, *(more if "-m" in more else ("-m", "chrf", *more))) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_language_is_that_of_the_candidates(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("de.txt").write_text("Der Hund ist nicht im Haus.\nDer Hund und die Katze sind da.\n")
    assert run(monkeypatch, "de.txt", *HASHED, "--lang", "auto") == 0
    assert "language: de" in capsys.readouterr().err
