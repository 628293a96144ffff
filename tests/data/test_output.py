"""Files are written whole or not at all, and never over what is read."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from freight.cli import main
from freight.data.files import rows as read_rows
from freight.data.output import check_inputs, check_path, open_output, write_whole
from freight.data.tables import TableWriter, unescape_formula
from freight.errors import FreightError, InvalidInput
from runs import wait_for


def test_a_file_is_there_at_the_end_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with open_output(path) as stream:
        stream.write(b"after")
        stream.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with open_output(path) as first, open_output(path) as second:
        for _ in range(3):
            first.write(b"first\n" * 10_000)
            second.write(b"second\n" * 10_000)
    assert path.read_bytes() == b"first\n" * 30_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_stops_the_writer_leaves_nothing(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")

    def stop() -> None:
        with open_output(path) as stream:
            stream.write(b"x" * 100_000)
            raise error

    with pytest.raises(error):
        stop()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_not_followed(tmp_path: Path) -> None:
    other, path = tmp_path / "other.txt", tmp_path / "out.csv"
    other.write_text("other")
    for name in ("out.csv", "out.csv.part"):
        (tmp_path / name).symlink_to(other)
    write_whole(path, b"mine")
    assert other.read_text() == "other"
    assert path.read_bytes() == b"mine"
    assert not path.is_symlink()


def test_permissions_are_those_of_any_file_or_of_the_one_before(tmp_path: Path) -> None:
    path, plain = tmp_path / "out.csv", tmp_path / "plain"
    plain.touch()
    write_whole(path, b"")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    write_whole(path, b"")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, step: str
) -> None:
    path = tmp_path / f"out{ending}"

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    message = f"{path} cannot be written: No space left on device"
    with pytest.raises(FreightError) as said, TableWriter(path, {}) as writer:
        writer.write({"text": ["a text"] * 10_000, "score": [0.5] * 10_000})
    assert str(said.value) == message
    assert not list(tmp_path.iterdir())


def test_an_error_that_its_writer_passes_over_is_not_lost(tmp_path: Path) -> None:
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")

    def write() -> None:
        with open_output(full) as stream:
            try:
                stream.write(b"x" * 100_000)
            except FreightError:
                stream.write(b"x")

    with pytest.raises(FreightError, match="No space left"):
        write()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_pipe_is_written_to(tmp_path: Path, ending: str) -> None:
    pipe, plain = tmp_path / f"pipe{ending}", tmp_path / f"plain{ending}"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    for path in (pipe, plain):
        with TableWriter(path, {"a": "b"}) as writer:
            writer.write({"text": ["a"], "score": [0.5]})
    reader.join()
    assert read == [plain.read_bytes()]
    assert pipe.is_fifo()


def test_long_names_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    write_whole(path, b"a")
    assert path.read_bytes() == b"a"


def test_an_input_is_recognised_by_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").touch()
    Path("folder").mkdir()
    Path("link.csv").symlink_to("in.csv")
    os.link("in.csv", "hard.csv")
    with pytest.raises(InvalidInput, match=r"^in\.csv is an input; write to another file$"):
        check_inputs([Path("in.csv")], ["-", "in.csv"])
    for name in ("link.csv", "hard.csv", "folder/../in.csv", str(tmp_path / "in.csv")):
        with pytest.raises(InvalidInput, match=r"is the input in\.csv by another name; write to"):
            check_inputs([Path("out.csv"), Path(name)], ["in.csv"])
    with pytest.raises(InvalidInput, match=r"is the input link\.csv by another name"):
        check_inputs([Path("in.csv")], ["link.csv"])
    with pytest.raises(InvalidInput, match="is given twice"):
        check_inputs([Path("a.csv"), tmp_path / "a.csv"], [])
    check_inputs([Path("out.csv"), Path("new.csv")], ["in.csv", "-", "absent"])


def test_what_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="is a folder; name a file"):
        check_path(tmp_path)
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_path(tmp_path / "a/b.csv")
    with pytest.raises(InvalidInput, match=r"ends in none of \.csv"):
        check_path(tmp_path / "b.txt", (".csv",))
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    with pytest.raises(InvalidInput, match="cannot be written: permission denied"):
        check_path(tmp_path / "b.csv")


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


COMMANDS = {
    "score": ["score", "in.jsonl", "-m", "chrf", "-o", "{}"],
    "score, its reference": ["score", "other.txt", "in.jsonl", "-m", "chrf", "-o", "{}"],
    "score, a page": ["score", "in.jsonl", "-m", "chrf", "-o", "{}.html"],
    "compare": ["compare", "in.jsonl", "-m", "chrf", "-o", "{}"],
    "mbr": ["mbr", "in.jsonl", "-m", "chrf", "-o", "{}"],
    "judge": ["judge", "in.jsonl", "-m", "chrf", "-o", "{}.json"],
    "tune": ["tune", "emd", "in.jsonl", "-o", "{}.json"],
    "train": ["train", "cooccurrence", "in.jsonl", "-o", "{}.txt"],
    "train, a folder": ["train", "cooccurrence", "here", "-o", "{}.txt"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_writes_over_its_input(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    row = b'{"hyp": "a text", "ref": "a text", "human": 1, "candidates": ["a text"]}\n'
    Path("in.jsonl").write_bytes(2 * row)
    Path("other.txt").write_text("a text\n" * 2)
    Path("here").mkdir()
    output = COMMANDS[command][-1].format("in.jsonl" if "." not in COMMANDS[command][-1] else "in")
    if not Path(output).exists():
        os.link("in.jsonl", output)  # the input by another name
    os.link("in.jsonl", "here/text.txt")
    assert _run(monkeypatch, *COMMANDS[command][:-1], output) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"freight: {output} is ")
    assert said.endswith("write to another file\n")
    assert said.count("\n") == 1
    assert Path("in.jsonl").read_bytes() == 2 * row


TERMINATED = """
import time
from pathlib import Path
from freight.cli import main
from freight.data.files import rows as read_rows
from freight.data import tables
real = tables._CsvWriter.write
def write_and_wait(self, columns):
    real(self, columns)
    self._stream.flush()
    Path("waiting").touch()
    while True:
        time.sleep(0.01)
tables._CsvWriter.write = write_and_wait
main()
"""


def test_sigterm_removes_what_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a text\n")
    arguments = ["score", "text.txt", "text.txt", "-m", "chrf", "-o", "out.csv"]
    with subprocess.Popen(
        [sys.executable, "-c", TERMINATED, *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(Path("waiting").exists, process)
        unfinished = list(tmp_path.glob("out.csv.*.part"))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert len(unfinished) == 1
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in said
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "waiting"}


@pytest.mark.parametrize("options", [["--json"], ["-b"], []])
@pytest.mark.parametrize("full", [False, True])
def test_nobody_reads_what_is_printed(
    options: list[str], full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a text\n")
    arguments = ["score", "text.txt", "text.txt", "-m", "chrf", *options]
    read, write = os.pipe()
    os.close(read)
    output = os.open("/dev/full", os.O_WRONLY) if full else write
    done = subprocess.run(
        [sys.executable, "-c", "from freight.cli import main; main()", *arguments],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
    )
    for end in {output, write}:
        os.close(end)
    assert done.returncode == 1
    said = "freight: standard output: No space left on device\n" if full else ""
    assert done.stderr == said


def test_formulas_are_escaped_on_request(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@a", "'=a", "''-", "a=b", "'a", "", "1", "\ta"]
    columns: dict[str, list[Any]] = {
        "text": texts,
        "score": [-0.5] * len(texts),
        "flags": [["-a", "b"]] * len(texts),
    }
    for ending in (".csv", ".tsv"):
        several = texts[: -(ending == ".tsv") or None]
        kept = {name: values[: len(several)] for name, values in columns.items()}
        for escape in (False, True):
            path = tmp_path / f"out{ending}"
            with TableWriter(path, {}, escape) as writer:
                writer.write(kept)
            rows = list(read_rows(path))
            assert [float(row["score"]) for row in rows] == [-0.5] * len(several)
            written = [row["text"] for row in rows]
            assert (written == several) == (not escape)
            if escape:
                assert not any(text[:1] in ("=", "+", "-", "@", "\t") for text in written)
                assert [unescape_formula(text) for text in written] == several
                assert rows[0]["flags"] == "'-a; b"


def test_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    for ending, expected in ((".jsonl", "a\ud800"), (".csv", "a?"), (".tsv", "a?"),
                             (".parquet", "a?")):  # fmt: skip
        path = tmp_path / f"out{ending}"
        with TableWriter(path, {}) as writer:
            writer.write({"text": ["a\ud800"]})
        assert [row["text"] for row in read_rows(path)] == [expected]
