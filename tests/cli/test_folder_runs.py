"""`freight score -o out/` as a user runs it."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from freight.cli import main
from runs import content, rows, wait_for

COUNT = 25


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def _lines(texts: list[str]) -> str:
    return "".join(text + "\n" for text in texts)


def _write(given: list[dict[str, Any]], form: str) -> list[str]:
    """The same segments in one of the forms that can be read; the arguments that name them."""
    hyps = [row["hyp"] for row in given]
    refs = [[row["refs"][0] for row in given], [row["refs"][-1] for row in given]]
    name = f"input.{form}"
    if form.startswith("txt"):
        for file, texts in (("hyp", hyps), ("ref0", refs[0]), ("ref1", refs[1])):
            data = _lines(texts).encode()
            Path(f"{file}.{form}").write_bytes(gzip.compress(data) if ".gz" in form else data)
        return [f"hyp.{form}", f"ref0.{form}", f"ref1.{form}"]
    several = [list(pair) for pair in zip(*refs, strict=True)]
    if form == "parquet":
        table = pyarrow.table({"other": [None] * len(hyps), "hyp": hyps, "refs": several})
        pyarrow.parquet.write_table(table, name, row_group_size=7)
    elif form.startswith("csv"):
        opened = gzip.open(name, "wt") if ".gz" in form else open(name, "w", newline="")  # noqa: SIM115
        with opened as stream:
            csv.writer(stream).writerows([["hyp", "a", "b"], *zip(hyps, *refs, strict=True)])
        return [name, "--ref-column", "a", "--ref-column", "b"]
    else:
        records = [{"hyp": hyp, "refs": both} for hyp, both in zip(hyps, several, strict=True)]
        data = _lines([json.dumps(record) for record in records]).encode()
        Path(name).write_bytes(gzip.compress(data) if ".gz" in form else data)
    return [name]


SCORING = ["-m", "yisi-1", "-m", "chrf", "--encoder", "hashed", "--shard", "10", "--threads", "1"]


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet", "csv", "csv.gz", "txt", "txt.gz"])
def test_every_form_of_input_gives_the_same_shards(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = rows(COUNT)
    inputs = _write(given, form)
    assert run(monkeypatch, "score", *inputs, "-o", "out/", *SCORING) == 0
    assert "3 shards in out/" in capsys.readouterr().out
    assert run(monkeypatch, "score", *_write(given, "jsonl"), "-o", "plain/", *SCORING) == 0
    (folder / "out/shard-00001.parquet").unlink()
    assert run(monkeypatch, "score", *inputs, "-o", "out", "--resume", *SCORING) == 0
    files, expected = content(folder / "out"), content(folder / "plain")
    for name in ("summary.json", "fitted.json", *(f"shard-0000{k}.parquet" for k in range(3))):
        assert files[name] == expected[name]


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet"])
def test_shards_are_what_a_file_would_be(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = _write(rows(COUNT), "jsonl")
    assert run(monkeypatch, "score", *inputs, "-o", "out/", "--format", form, *SCORING) == 0
    shown = capsys.readouterr().out
    arguments = [part for part in SCORING if part not in ("--shard", "10")]
    assert run(monkeypatch, "score", *inputs, "-o", f"whole.{form}", *arguments) == 0
    assert shown == capsys.readouterr().out + "3 shards in out/\n"
    shards = sorted((folder / "out").glob("shard-*"))
    if form == "parquet":
        tables = [pyarrow.parquet.read_table(shard) for shard in shards]
        whole = pyarrow.parquet.read_table(f"whole.{form}")
        assert pyarrow.concat_tables(tables).equals(whole, check_metadata=True)
        return
    heading = form != "jsonl"
    lines = [shard.read_bytes().splitlines(keepends=True)[heading:] for shard in shards]
    whole = (folder / f"whole.{form}").read_bytes().splitlines(keepends=True)[heading:]
    assert [line for part in lines for line in part] == whole


@pytest.mark.parametrize("way", ["files", "column"])
def test_systems_are_told_apart(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = rows(COUNT)
    for name, step in (("one", 1), ("two", 2), ("ref", 3)):
        texts = [given[step * k % COUNT]["hyp"] or "a" for k in range(COUNT)]
        Path(f"{name}.txt").write_text(_lines(texts))
    inputs = ["one.txt", "ref.txt", "--against", "two.txt"]
    if way == "column":
        records = [{**row, "system": "ab"[k % 2]} for k, row in enumerate(given)]
        Path("input.jsonl").write_text(_lines([json.dumps(record) for record in records]))
        inputs = ["input.jsonl"]
    assert run(monkeypatch, "score", *inputs, "-o", "out/", *SCORING) == 0
    (folder / "out/shard-00001.parquet").unlink()
    assert run(monkeypatch, "score", *inputs, "-o", "out/", "--resume", *SCORING) == 0
    arguments = [part for part in SCORING if part not in ("--shard", "10")]
    assert run(monkeypatch, "score", *inputs, "-o", "whole.parquet", *arguments) == 0
    shards = sorted((folder / "out").glob("shard-*"))
    table = pyarrow.concat_tables([pyarrow.parquet.read_table(shard) for shard in shards])
    assert table.equals(pyarrow.parquet.read_table("whole.parquet"))
    assert table.column_names[:2] == ["segment", "system"]


def test_json_is_the_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = _write(rows(COUNT), "jsonl")
    for extra in ([], ["--resume"]):
        status = run(monkeypatch, "score", *inputs, "-o", "out/", "--json", *extra, *SCORING)
        assert status == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed == json.loads((folder / "out/summary.json").read_text())


MISTAKES = {
    "no folder": (["-o", "x", "--resume"], "--resume is for runs into a folder; write -o x/"),
    "nowhere": (["--workers", "2"], "--workers is for runs into a folder; write -o out/"),
    "format": (["-o", "out/", "--format", "xls"], "--format xls; there is parquet, jsonl"),
    "besides": (["-o", "out/", "-o", "x.csv"], "out/ is a folder; a run into a folder has no"),
    "engine": (["-o", "out/", "--engine", "spark"], "--engine spark; there is local, ray"),
    "address": (["-o", "out/", "--address", "auto"], "say --engine ray too"),
    "full": (["-o", "full/"], "full is not empty; go on with what is there by --resume"),
    "foreign": (["-o", "full/", "--resume"], "full holds thesis.tex; name another folder"),
    "a file": (["-o", "input.jsonl/"], "input.jsonl cannot be written: File exists"),
    "ending": (["-o", "out"], "out ends in none of .jsonl .csv .tsv .parquet; a folder ends in /"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "full").mkdir()
    (folder / "full/thesis.tex").write_text("")
    inputs = _write(rows(3), "jsonl")
    arguments, message = MISTAKES[mistake]
    assert run(monkeypatch, "score", *inputs, "-m", "chrf", *arguments) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert not (folder / "out").exists()


# The program itself; before the fourth shard it creates a file and waits for ever.
INTERRUPTED = """
import signal
import time
from pathlib import Path
from freight.cli import main
from freight.run.shards import ShardTask
finish = ShardTask._finish
def finish_or_wait(self, shard, results):
    if shard.number == 3:
        Path("waiting").touch()
        while True:
            time.sleep(0.01)
    return finish(self, shard, results)
ShardTask._finish = finish_or_wait
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
main()
"""


def test_ctrl_c_says_how_to_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = _write(rows(45), "jsonl")
    arguments = ["score", *inputs, "-o", "out/", *SCORING]
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        wait_for((folder / "waiting").exists, process)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate()
    assert process.returncode == 130
    assert len(list((folder / "out").glob("shard-*"))) == 3
    expected = f"of 45 segments in out/; go on with  freight {' '.join(arguments)} --resume"
    assert printed.strip().splitlines()[-1] == f"freight: stopped with 30 {expected}"
    assert "Traceback" not in printed
    assert run(monkeypatch, *arguments, "--resume") == 0
    assert run(monkeypatch, "score", *inputs, "-o", "undisturbed/", *SCORING) == 0
    assert content(folder / "out") == content(folder / "undisturbed")


def test_a_disk_that_is_really_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder / "out")]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    inputs = _write(rows(100), "jsonl")
    try:
        assert run(monkeypatch, "score", *inputs, "-o", "out/", *SCORING) == 1
        said = capsys.readouterr().err
        assert said.endswith("No space left on device; once that is mended, go on with --resume\n")
        assert said.count("\n") == 1
        assert not list((folder / "out").glob("*.part"))
        subprocess.run([*mount[:4], "remount,size=1m", *mount[5:]], check=True)
        assert run(monkeypatch, "score", *inputs, "-o", "out/", "--resume", *SCORING) == 0
        assert run(monkeypatch, "score", *inputs, "-o", "undisturbed/", *SCORING) == 0
        assert content(folder / "out") == content(folder / "undisturbed")
    finally:
        subprocess.run(["umount", str(folder / "out")], check=True)


def test_a_table_of_several_systems_says_how_many(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [{**row, "system": name} for name in ("one", "other") for row in rows(4)]
    Path("input.jsonl").write_text(_lines([json.dumps(row) for row in both]))
    assert run(monkeypatch, "score", "input.jsonl", "-o", "out/", "-m", "chrf") == 0
    assert "2 systems × 4 segments, together" in " ".join(capsys.readouterr().out.split())
