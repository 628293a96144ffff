"""`freight sample` as a user runs it: a sheet out, ratings in."""

import csv
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import freight
from freight.cli import app, main
from freight.data.judgement_files import read_judgements

WORDS = ["alpha", "beta", "gamma", "delta", "omega"]
PAIRS = [(f"{a} {b}", f"{a} {c}") for a in WORDS for b in WORDS for c in WORDS if b < c]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with (tmp_path / "pairs.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["hyp", "ref", "part"])
        writer.writerows([*pair, k % 2] for k, pair in enumerate(PAIRS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", "sample", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


HASHED = ["--encoder", "hashed", "-m", "wrd-score:recall"]


def rated(path: Path) -> None:
    rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    for k, row in enumerate(rows):
        row.update(rater1=str(k), rater2=str(2 * k), rater3="" if k == 4 else str(k % 3))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_there_and_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["pairs.csv", "-n", "20", "-o", "sheet.csv", "--instructions", "how.txt"]
    assert run(monkeypatch, *arguments, *HASHED, "--scale", "1:5", "--where", "part=1") == 0
    shown = capsys.readouterr().out
    assert "[0,0.2)" in shown
    assert "sheet.csv is for the raters, sheet.key.csv is not" in shown
    assert "from 1 to 5" in (folder / "how.txt").read_text()
    key = list(csv.DictReader((folder / "sheet.key.csv").read_text("utf-8-sig").splitlines()))
    sheet = list(csv.DictReader((folder / "sheet.csv").read_text("utf-8-sig").splitlines()))
    hyps, refs = zip(*((row["hyp"], row["ref"]) for row in sheet), strict=True)
    assert all(pair in PAIRS[1::2] for pair in zip(hyps, refs, strict=True))
    scores = freight.load("wrd-score", encoder="hashed").score(hyps, refs)["recall"]
    assert [float(row["score"]) for row in key] == pytest.approx(scores.tolist())

    rated(folder / "sheet.csv")
    assert run(monkeypatch, "--read", "sheet.csv", "-o", "rated.jsonl") == 0
    shown = capsys.readouterr().out
    assert "rater1, rater2" in shown
    assert "1.000" in shown
    assert "Krippendorff's alpha" in shown
    assert "over 19 texts that all have rated" in shown
    assert "rater3 has not rated row 5" in shown
    judged = read_judgements(folder / "rated.jsonl")
    assert judged.hyps == hyps
    assert judged.human["score"][4] == (4 + 8) / 2
    first = json.loads((folder / "rated.jsonl").read_text().splitlines()[1])
    assert first["raters"] == {"rater1": 1, "rater2": 2, "rater3": 1}


def test_texts_that_look_like_formulas_come_back_as_they_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["=1+1", "'=1+1", "-a", "a b", "@c"]
    rows = [{"hyp": text, "ref": f"+{text}", "system": "=s"} for text in texts]
    Path("texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["texts.jsonl", "-n", "5", "-o", "sheet.csv", *HASHED, "--stratum", "random"]
    assert run(monkeypatch, *arguments, "--escape") == 0
    for name in ("sheet.csv", "sheet.key.csv"):
        lines = csv.DictReader(Path(name).read_text("utf-8-sig").splitlines())
        cells = [cell for row in lines for column, cell in row.items() if column != "score"]
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    rated(folder / "sheet.csv")
    assert run(monkeypatch, "--read", "sheet.csv", "-o", "rated.jsonl") == 0
    back = [json.loads(line) for line in Path("rated.jsonl").read_text().splitlines()]
    assert sorted(row["hyp"] for row in back) == sorted(texts)
    assert {row["system"] for row in back} == {"=s"}


def test_strata_of_ones_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["pairs.csv", "-n", "6", "-o", "sheet.csv", *HASHED, "--raters", "1", "--no-fill"]
    assert run(monkeypatch, *arguments, "--stratum", "random", "--stratum", "[2,3]") == 0
    shown = capsys.readouterr().out
    assert "stratum [2,3] has 0 of 3 texts; not filled up" in shown
    sheet = (folder / "sheet.csv").read_text("utf-8-sig").splitlines()
    assert sheet[0] == "id,hyp,ref,rater1"
    assert len(sheet) == 4
    (folder / "sheet.csv").write_text("\n".join([sheet[0], *(line + "3" for line in sheet[1:])]))
    assert run(monkeypatch, "--read", "sheet.csv") == 0
    assert "1 rater: nobody to agree with" in capsys.readouterr().out


MISTAKES = {
    "no file": (["none.csv", "-o", "s.csv"], "there is no file none.csv"),
    "ending": (["pairs.csv", "-o", "s.xlsx"], "s.xlsx does not end in .csv"),
    "folder": (["pairs.csv", "-o", "no/s.csv"], "there is no folder no"),
    "stratum": (["pairs.csv", "-o", "s.csv", "--stratum", "high"], "stratum 'high' is not of"),
    "scale": (["pairs.csv", "-o", "s.csv", "--scale", "ten"], "--scale ten is not of the form"),
    "backwards": (["pairs.csv", "-o", "s.csv", "--scale", "5:1"], "lower number first"),
    "where": (["pairs.csv", "-o", "s.csv", "--where", "part"], "write --where part=VALUE"),
    "too many": (["pairs.csv", "-o", "s.csv", "-n", "999", *HASHED], "999 cannot be drawn"),
    "metric": (["pairs.csv", "-o", "s.csv", "-m", "wrdscore"], "did you mean wrd-score"),
    "instructions": (
        ["pairs.csv", "-o", "s.csv", "--instructions", "no/how.txt"],
        "there is no folder no to write how.txt in",
    ),
    "no csv": (["--read", "sheet.xlsx"], "save the sheet as CSV"),
    "no sheet": (["--read", "none.csv"], "there is no file none.csv"),
    "no set": (["--read", "pairs.csv"], "lacks rows, or one of the columns id"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = MISTAKES[mistake]
    assert run(monkeypatch, *arguments) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not list(folder.glob("s*.csv"))


def test_usage_is_status_two(folder: Path) -> None:
    for arguments in ([], ["pairs.csv"], ["pairs.csv", "--read", "sheet.csv", "-o", "x.csv"]):
        assert CliRunner().invoke(app, ["sample", *arguments]).exit_code == 2


def test_a_real_set(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = str(data / "data/wrdscore.jsonl.gz")
    assert run(monkeypatch, names, "-n", "25", "-o", "sheet.csv", *HASHED) == 0
    key = list(csv.DictReader((tmp_path / "sheet.key.csv").read_text("utf-8-sig").splitlines()))
    assert len(key) == 25
    assert {row["lang_pair"] for row in key} == {"java"}
    assert "25 texts" in capsys.readouterr().out
