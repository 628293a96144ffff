"""`freight compare`, which is `freight score REF -i A B ...` by another name."""

import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

import freight
from freight.cli import main
from freight.cli.groups import PairedTestOptions
from freight.errors import InvalidInput

ROOT = Path(__file__).parents[2]
REFS = (ROOT / "examples/ref.txt").read_text().splitlines()
HYPS = (ROOT / "examples/hyp.txt").read_text().splitlines()
WORSE = [" ".join(hyp.split()[:-2]) for hyp in HYPS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "systems").mkdir()
    for name, texts in (("ref", REFS), ("systems/best", HYPS), ("systems/worse", WORSE)):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n")
    rows = [
        {"hyp": hyp, "ref": ref, "system": system}
        for system, hyps in (("best", HYPS), ("worse", WORSE))
        for hyp, ref in zip(hyps, REFS, strict=True)
    ]
    (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


SYSTEMS = ["systems/best.txt", "systems/worse.txt"]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--paired-bs", "--paired-bs-n", "50"],
        ["--paired-ar", "-parn", "50", "-w", "1"],
        ["-f", "json", "--confidence", "-cin", "50"],
        ["-f", "markdown", "-pbs", "-pbsn", "50"],
        ["-b", "-w", "2"],
    ],
)
def test_it_prints_what_score_prints(
    options: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = ["-m", "chrf", "-m", "emd", "--encoder", "hashed", *options]
    assert run(monkeypatch, "compare", "ref.txt", *SYSTEMS, *metrics) == 0
    compared = capsys.readouterr().out
    assert run(monkeypatch, "score", "ref.txt", "-i", *SYSTEMS, *metrics) == 0
    assert capsys.readouterr().out == compared
    assert run(monkeypatch, "compare", "ref.txt", "systems", *metrics) == 0
    assert capsys.readouterr().out == compared, "a folder stands for the files in it"


def test_a_table_with_systems_is_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "compare", "table.jsonl", "-m", "chrf", "-b", "-w", "3") == 0
    chrf = freight.load("chrf")
    expected = [chrf.score(hyps, REFS).system["score"] for hyps in (HYPS, WORSE)]
    assert capsys.readouterr().out.split() == [f"{score:.3f}" for score in expected]


def test_more_references(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "ref.txt", *SYSTEMS, "--ref", "systems/best.txt", "-m", "chrf", "-b"
    assert run(monkeypatch, "compare", *more) == 0
    assert capsys.readouterr().out.split()[0] == "100.0000"


def test_a_page_and_a_table_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = "-o", "page.html", "-o", "scores.csv"
    assert run(monkeypatch, "compare", "ref.txt", *SYSTEMS, "-m", "chrf", *outputs) == 0
    assert "written: page.html" in capsys.readouterr().out
    assert "chrf score↑" in (folder / "page.html").read_text(encoding="utf-8")
    heading, first, *_ = (folder / "scores.csv").read_text().splitlines()
    assert heading.startswith("segment,system,chrf:score")
    assert first.startswith("1,best,")


MISTAKES = {
    "one system": (["ref.txt", "systems/best.txt"], "there is one system; give REF and the files"),
    "format": (["ref.txt", *SYSTEMS, "-f", "wmt22"], "--format wmt22; there is text, json"),
    "two tests": (["ref.txt", *SYSTEMS, "-pbs", "-par"], "choose one"),
    "twice": (["ref.txt", SYSTEMS[0], SYSTEMS[0]], "systems/best.txt is given twice"),
    "ending": (["ref.txt", *SYSTEMS, "-o", "out.xls"], "out.xls ends in none of"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments, message = MISTAKES[mistake]
    assert run(monkeypatch, "compare", *arguments, "-m", "chrf") == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


def test_the_chosen_test() -> None:
    assert PairedTestOptions().chosen() == ("", None)
    assert PairedTestOptions(paired_ar=True, paired_ar_n=7).chosen() == ("ar", 7)
    with pytest.raises(InvalidInput, match="--paired-ar-n is for --paired-ar; give that too"):
        PairedTestOptions(paired_bs=True, paired_ar_n=7).chosen()


def test_a_page_has_a_title_the_files_and_the_day(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ref.txt", *SYSTEMS, "-m", "chrf", "--title", "Best & worst"]
    assert run(monkeypatch, "compare", *arguments, "-o", "page.html") == 0
    page = (folder / "page.html").read_text("utf-8")
    assert "<h1>Best &amp; worst</h1>" in page
    today = datetime.now().date()
    day = f"{today.day} {today:%B %Y}"
    assert f"systems/best.txt, systems/worse.txt, ref.txt · {day}" in page
    capsys.readouterr()
    assert run(monkeypatch, "compare", *arguments) == 1
    assert "--title is the heading of a page; give -o page.html too" in capsys.readouterr().err
