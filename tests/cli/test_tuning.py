"""`freight tune` as a user runs it, mistakes included."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import freight
from freight.cli import main
from freight.judge.search import Choices
from freight.judge.tuning import tune
from freight.report.tuning import show_tuned
from studies import rated

OPTIONS = ["--encoder", "hashed", "--resamples", "20", "--grid", "hyp=0.1,0.4,1.6"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ratings of two language pairs by lazy-emd itself, under hyp=1.6."""
    metric = freight.load("lazy-emd", encoder="hashed", hyp=1.6)
    for name, pairs in (("train", ("cs-en", "de-en")), ("test", ("cs-en",))):
        with (tmp_path / f"{name}.jsonl").open("w") as stream:
            for pair in pairs:
                judged = rated(f"{name} {pair}", 10, 3, ("quality",))
                scores = -metric.score(judged.hyps, judged.refs)["objective"]
                for k, score in enumerate(scores):
                    row = {
                        "hyp": judged.hyps[k], "refs": judged.refs[k], "lang_pair": pair,
                        "segment": int(judged.segments[k]), "system": int(judged.systems[k]),
                        "human": {"quality": float(score)},
                    }  # fmt: skip
                    stream.write(json.dumps(row) + "\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> int:
    """Run the program itself, in the folder; its exit status."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_tune_test_and_score_with_what_was_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train.jsonl", "--test", "test.jsonl", "--against", "emd", *OPTIONS]
    outputs = ["-o", "page.html", "--preset", "tuned.json"]
    assert run(monkeypatch, folder, "tune", "lazy-emd", *arguments, *outputs) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 settings, Pearson's r, segment level" in shown
    assert "Significance of the gain of tuned lazy-emd:objective" in shown
    assert "emd:transport" in shown
    assert "written: page.html" in shown
    assert "which is optimistic" not in shown
    page = (folder / "page.html").read_text()
    assert "Tuning lazy-emd" in page
    assert 'class="warning"' not in page
    assert json.loads((folder / "tuned.json").read_text())["settings"]["hyp"] == 1.6

    texts = ["test.jsonl", "-m", "lazy-emd", "--encoder", "hashed", "--json"]
    assert run(monkeypatch, folder, "score", *texts, "--preset", "tuned.json") == 0
    record = json.loads(capsys.readouterr().out)["metrics"][0]
    expected = freight.load("lazy-emd", encoder="hashed", hyp=1.6)
    assert record["signature"] == expected.signature


def test_folds_and_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train.jsonl", "--folds", "lang_pair", *OPTIONS]
    assert run(monkeypatch, folder, "tune", "lazy-emd", *arguments) == 0
    assert "best settings on the other sets" in capsys.readouterr().out
    assert run(monkeypatch, folder, "tune", "lazy-emd:objective", *arguments, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["settings"] == {"column": "objective", "hyp": 1.6}
    assert [trial["hyp"] for trial in report["trials"]] == [0.1, 0.4, 1.6]
    held = [one for one in report["found"]["held_out"] if one["metric"] == "tuned lazy-emd"]
    assert [one["set"] for one in held] == ["train cs-en", "train de-en"]
    assert [one["value"] for one in held] == pytest.approx([1, 1])


def test_what_is_not_to_be_trusted_is_red(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train.jsonl", *OPTIONS, "-o", "page.html"]
    assert run(monkeypatch, folder, "tune", "lazy-emd", *arguments) == 0
    assert "measured on the rows that the settings were picked on" in capsys.readouterr().out
    assert 'class="warning"' in (folder / "page.html").read_text()
    assert run(monkeypatch, folder, "tune", "lazy-emd", *arguments, "--test", "train.jsonl") == 0
    assert "tuned and tested on the same rows: 60 of 60 rows of train" in capsys.readouterr().out
    assert "tuned and tested on the same rows" in (folder / "page.html").read_text()

    judged = freight.read_judgements(folder / "test.jsonl")
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=120)
    space = {"hyp": Choices((0.1, 0.4))}
    show_tuned(tune("lazy-emd", space, judged, judged, {"encoder": "hashed"}, resamples=5), console)
    assert "\x1b[1;31mtuned and tested on the same rows" in stream.getvalue()


@pytest.mark.parametrize(
    "grid",
    [
        ["--grid", "hyp=0.1:2:3", "--trials", "4"],
        ["--grid", "hyp=0.1:2:3", "--grid", "mass=uniform,norm"],
        ["--grid", "mass=uniform,norm"],
        ["--grid", "hyp=0.1,1", "--grid", "layer=1:3", "--grid", "column=objective,transport"],
    ],
)
def test_every_search_has_its_pictures(
    folder: Path, monkeypatch: pytest.MonkeyPatch, grid: list[str]
) -> None:
    arguments = ["train.jsonl", "--encoder", "hashed", *grid, "-o", "page.html"]
    assert run(monkeypatch, folder, "tune", "lazy-emd", *arguments) == 0
    page = (folder / "page.html").read_text()
    several = grid.count("--grid")
    assert page.count("<svg") == {1: 1, 2: 1, 3: 3}[several]
    assert page.count("<tr>") > np.prod([1, several])


MISTAKES = {
    "no file": (["nowhere.jsonl"], "there is no file nowhere.jsonl"),
    "grid": (["train.jsonl", "--grid", "ref"], "--grid ref lacks values"),
    "parameter": (["train.jsonl", "--grid", "speed=1,2"], "no parameter 'speed'"),
    "value": (["train.jsonl", "--grid", "ref=-1,2"], "ref"),
    "folds": (["train.jsonl", "--folds", "5"], "--folds 5; there is lang_pair"),
    "one pair": (["test.jsonl", "--folds", "lang_pair"], "is the only one"),
    "ending": (["train.jsonl", "-o", "page.pdf"], "ends in neither .html nor .json"),
    "no folder": (["train.jsonl", "--preset", "no/tuned.json"], "there is no folder no"),
    "both": (["train.jsonl", "--set", "hyp=1"], "hyp is both set and searched"),
    "rival": (["train.jsonl", "--against", "bert"], "there is no metric 'bert'"),
    "rival twice": (["train.jsonl", "--against", "emd", "--against", "emd"], "given twice"),
    "criterion": (["train.jsonl", "--human", "charm"], "no criterion 'charm'"),
    "statistic": (["train.jsonl", "--statistic", "r"], "there is no statistic 'r'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = MISTAKES[mistake]
    assert run(monkeypatch, folder, "tune", "lazy-emd", *OPTIONS, *arguments) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out
    assert {path.name for path in folder.iterdir()} == {"train.jsonl", "test.jsonl"}
