"""A folder such as a reader has: the examples, and files of their own as the pages name them."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from written import ROOT

Rows = list[dict[str, Any]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    lines = (ROOT / "examples/judged.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for write in (texts, candidates, tables, judgements, corpora):
        write(tmp_path, rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("freight.judge.scores.user_cache_path", lambda *_, **__: tmp_path / "cache")
    return tmp_path


def texts(folder: Path, _: Rows) -> None:
    for side, names in {
        "hyp": ("hyp", "one", "two", "three", "system", "baseline", "new"),
        "ref": ("ref", "ref1", "ref2"),
    }.items():
        lines = (ROOT / f"examples/{side}.txt").read_text("utf-8").splitlines()[:3]
        for name in names:
            (folder / f"{name}.txt").write_text("\n".join(lines), "utf-8")


def candidates(folder: Path, rows: Rows) -> None:
    lists = [[row["hyp"] for row in rows[k : k + 4]] for k in (0, 4)]
    (folder / "candidates.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lists))
    (folder / "candidates.txt").write_text("\n\n".join("\n".join(one) for one in lists), "utf-8")


def tables(folder: Path, rows: Rows) -> None:
    rows = [
        {**row, "hyp": f"{row['hyp']} {more}"} for more in ("Yes.", "No.", "So?") for row in rows
    ]
    rows = [{**row, "segment": k // 4} for k, row in enumerate(rows)]
    pairs = {"hyp": [row["hyp"] for row in rows], "ref": [row["ref"] for row in rows]}
    pyarrow.parquet.write_table(pyarrow.table(pairs), folder / "big.parquet")
    for name in ("data", "outputs"):
        _lines(folder / f"{name}.jsonl", rows)
    lines = (f'"{hyp}","{ref}"' for hyp, ref in zip(*pairs.values(), strict=True))
    (folder / "outputs.csv").write_text("\n".join(("hyp,ref", *lines, "")), "utf-8")
    (folder / "how.txt").write_text("Rate how much of the meaning is there, from 0 to 10.\n")


def judgements(folder: Path, rows: Rows) -> None:
    _lines(folder / "train.jsonl", [row for row in rows if row["segment"] <= 2])
    _lines(folder / "test.jsonl", [row for row in rows if row["segment"] > 3])
    marks = [row["human"]["adequacy"] for row in rows]
    both = [{"correctness": mark, "fluency": 100 - mark % 50} for mark in marks]
    mine = [{**row, "part": "news", "human": human} for row, human in zip(rows, both, strict=True)]
    with gzip.open(folder / "ratings.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in mine)
    better = rows[0::4], rows[3::4]
    pairs = [
        {"ref": one["ref"], "better": one["hyp"], "worse": other["hyp"]}
        for one, other in zip(*better, strict=True)
    ]
    for name in ("cs-en", "tr-en"):
        _lines(folder / f"pairs.{name}.jsonl", pairs)


def corpora(folder: Path, rows: Rows) -> None:
    (folder / "texts.txt").write_text("\n".join(row["hyp"] for row in rows * 5), "utf-8")
    for name in ("texts", "notes"):
        (folder / name).mkdir()
        (folder / name / "one.txt").write_text("\n".join(row["hyp"] for row in rows), "utf-8")
    with gzip.open(folder / "news.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{row['ref']}\n{row['hyp']}\n" for row in rows * 5)
    with zipfile.ZipFile(folder / "src.zip", "w") as archive:
        names = ("parseHttpRequest", "readHttpHeader", "writeHttpRequest", "parseFileHeader")
        methods = " ".join(f"void {name}() {{}}" for name in names)
        archive.writestr("A.java", f"class A {{ {methods} }}")


def _lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
