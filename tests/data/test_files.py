"""What is wrong with a file is one line, whichever way it is read; pipes and UTF-16 are read."""

import gzip
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pyarrow
import pyarrow.parquet
import pytest

from freight.cli import main
from freight.data import Corpus
from freight.data.files import lines, rows
from freight.data.judgement_files import read_judgements
from freight.errors import InvalidInput
from freight.learn import read_corpus
from freight.run.decoding import CandidateFile

READERS: dict[str, Callable[[Path], object]] = {
    "corpus": lambda path: Corpus(str(path)),
    "candidates": lambda path: CandidateFile(str(path)),
    "judgements": read_judgements,
}
DEEP = "[" * 100_000
LARGE = "9" * 5000


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (LARGE, r"line 2 of .*in\.jsonl has an integer of more than 4,300 digits$"),
        (DEEP, r"line 2 of .*in\.jsonl is JSON that is nested too deeply to be read$"),
    ],
)
def test_json_that_is_too_much(tmp_path: Path, reader: str, value: str, message: str) -> None:
    row = '{"hyp": "a", "ref": "a", "human": 1, "candidates": ["a"], "x": %s}\n'
    path = tmp_path / "in.jsonl"
    path.write_text(row % 1 + row % value)
    with pytest.raises(InvalidInput, match=message):
        READERS[reader](path)


def test_settings_that_are_too_much_are_texts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (LARGE, DEEP):
        settings = ["explain", "a", "b", "-m", "emd", "--encoder", "hashed", "--set"]
        monkeypatch.setattr(sys, "argv", ["freight", *settings, f"nothing={value}"])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr().err
        assert "emd has no parameter 'nothing'" in said
        assert said.count("\n") == 1


def _write_parquet(path: Path) -> None:
    rng = random.Random(0)
    texts = [f"{rng.random()}" for _ in range(5000)]
    table = pyarrow.table({"hyp": texts, "ref": texts})
    pyarrow.parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("place", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_a_damaged_page_of_parquet(tmp_path: Path, packed: bool, place: float) -> None:
    path = tmp_path / "in.parquet"
    _write_parquet(path)
    content = bytearray(path.read_bytes())
    start = int(place * len(content)) + 100
    content[start : start + 50] = bytes(byte ^ 0x5A for byte in content[start : start + 50])
    if packed:
        path = tmp_path / "in.parquet.gz"
        path.write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"^.*in\.parquet(\.gz)? is not a whole Parquet file"):
        list(rows(path))


def test_columns_of_parquet_with_one_name(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    arrays = [pyarrow.array(["a"])] * 3
    pyarrow.parquet.write_table(pyarrow.table(arrays, ["hyp", "ref", "ref"]), path)
    with pytest.raises(InvalidInput, match=r"in\.parquet has two columns named 'ref'"):
        Corpus(str(path))


TEXT = "Ċ a \u010a0 line\r\nтекст\n\n\U0001f600 the last"


def test_a_byte_order_mark_that_is_missing_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a text\n")
    with pytest.raises(InvalidInput, match=r"line 1 of in\.txt is not utf-16"):
        list(lines(tmp_path / "in.txt", "utf-16", "in.txt"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("packed", [False, True])
def test_wide_encodings_are_read(tmp_path: Path, encoding: str, packed: bool) -> None:
    path = tmp_path / ("in.txt.gz" if packed else "in.txt")
    content = TEXT.encode(encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    expected = TEXT.splitlines(keepends=True)
    assert list(lines(path, encoding)) == expected
    if encoding in ("utf-16", "utf-32"):  # with a byte order mark
        assert list(lines(path)) == expected
    path.write_bytes(gzip.compress(content[:-1]) if packed else content[:-1])
    with pytest.raises(InvalidInput, match=rf"line 4 of .* is not {encoding} \(.*\); re-encode it"):
        list(lines(path, encoding))


@pytest.mark.parametrize("order", ["le", "be"])
def test_wide_encodings_without_a_mark_are_named(tmp_path: Path, order: str) -> None:
    (tmp_path / "in.txt").write_bytes("a text\nanother\n".encode(f"utf-16-{order}"))
    message = f"looks like UTF-16 without a byte order mark; pass --encoding utf-16-{order}, or"
    with pytest.raises(InvalidInput, match=message):
        list(lines(tmp_path / "in.txt"))


def _pipe(path: Path, content: bytes) -> Path:
    """A named pipe into which a thread writes the content once."""
    os.mkfifo(path)
    Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


def test_pipes_are_read(tmp_path: Path) -> None:
    hyp = _pipe(tmp_path / "hyp", b"a\nb\n")
    ref = _pipe(tmp_path / "ref.gz", gzip.compress(b"c\nd\n"))
    with Corpus(str(hyp), [str(ref)]) as corpus:
        for _ in range(2):
            assert list(corpus) == [("a", ["c"]), ("b", ["d"])]
    _write_parquet(tmp_path / "plain.parquet")
    table = _pipe(tmp_path / "in.parquet", (tmp_path / "plain.parquet").read_bytes())
    with Corpus(str(table)) as corpus:
        assert len(list(corpus)) == len(corpus) == 5000
    lists = CandidateFile(str(_pipe(tmp_path / "in.jsonl", b'["a", "b"]\n')))
    assert [[list(one.texts) for one in lists] for _ in range(2)] == [[["a", "b"]]] * 2
    assert read_corpus([str(_pipe(tmp_path / "corpus", b"a b\nc\n"))]).tokens == 3


def test_a_mistake_in_a_pipe_names_the_pipe(tmp_path: Path) -> None:
    pipe = _pipe(tmp_path / "in.jsonl", b'{"hyp": "a"}\n')
    with pytest.raises(InvalidInput, match=rf"row 1 of {pipe} has no column 'ref'"):
        Corpus(str(pipe))


def test_judgements_in_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.jsonl")
    with pytest.raises(InvalidInput, match="is a pipe, which can be read once; write it to a file"):
        read_judgements(tmp_path / "in.jsonl")
