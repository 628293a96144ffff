"""`freight judge` as a user runs it, mistakes included."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import freight
from freight.cli import main
from freight.cli.listing import cache_app as cache_app
from pages import OpenPage

EXAMPLE = Path(__file__).parents[2] / "examples/judged.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(EXAMPLE, tmp_path)
    pairs = {"ref": "a b", "better": "a b", "worse": "c d"}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pairs) + "\n")
    (tmp_path / "alone.csv").write_text("hyp,ref,human\na b,a b,3\nc,a b,1\na,a b,2\n")
    (tmp_path / "unrated.csv").write_text("hyp,ref\na b,a b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("freight.judge.scores.user_cache_path", lambda *_, **__: tmp_path / "cache")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", "judge", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


METRICS = ["-m", "chrf", "-m", "bert-score", "-m", "bert-score:recall", "--encoder", "hashed"]


def test_json_says_what_python_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "judged.jsonl", *METRICS, "--json", "-o", "study.json") == 0
    study = json.loads(capsys.readouterr().out)
    assert study == json.loads((folder / "study.json").read_text())
    judged = freight.read_judgements("judged.jsonl")
    assert study["metrics"] == ["chrf", "bert-score:f1", "bert-score:recall"]
    assert (study["level"], study["statistic"], study["average"]) == ("segment", "pearson", {})
    scores = freight.load("bert-score", encoder="hashed").score(judged.hyps, judged.refs)
    assert study["sets"][0]["scores"]["bert-score:recall"] == pytest.approx(scores["recall"])
    r = np.corrcoef(scores["recall"], judged.human["adequacy"])[0, 1]
    agreement = study["agreements"][2]
    assert agreement["value"] == pytest.approx(r)
    assert agreement["low"] <= r <= agreement["high"]
    assert (agreement["human"], agreement["rows"]) == ("adequacy", 20)
    assert study["significance"][0]["p"][0][0] is None


def test_the_table_and_the_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "judged.jsonl", *METRICS, "--level", "text", "--resamples", "50") == 0
    shown = capsys.readouterr().out
    assert "Pearson's r↑, text level" in shown
    assert "Significant differences" in shown
    assert "compared: judged 20 rows" in shown
    assert "from the cache" not in shown
    assert run(monkeypatch, "judged.jsonl", *METRICS, "--statistic", "kendall") == 0
    assert "scores from the cache: chrf, bert-score" in capsys.readouterr().out
    assert run(monkeypatch, "judged.jsonl", *METRICS, "--no-cache") == 0
    assert "from the cache" not in capsys.readouterr().out
    # Each metric with its own references, and with those of other segments.
    assert len(list((folder / "cache/scores").iterdir())) == 4
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    assert "│ scores  │ 4" in CliRunner().invoke(cache_app, ["info"]).output
    assert CliRunner().invoke(cache_app, ["clear", "--yes"]).exit_code == 0
    assert not list((folder / "cache/scores").iterdir())


def test_sentinels_stand_below_the_metrics_unless_switched_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["judged.jsonl", "-m", "rouge-1", "--resamples", "50"]
    assert run(monkeypatch, *arguments) == 0
    shown = capsys.readouterr().out
    assert [name in shown for name in ("length", "chrf", "rouge-1 (shuffled ref)", "chance")] == [
        True
    ] * 4
    assert "rouge-1 does not agree with people significantly better" in shown
    assert run(monkeypatch, *arguments, "--no-sentinels", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sentinels"] == {"agreements": [], "chance": [], "ceiling": [], "signature": ""}
    assert record["warnings"] == []


def test_rows_and_sets_can_be_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["judged.jsonl", "alone.csv", "-m", "rouge-1", "--json"]
    assert run(monkeypatch, *arguments) == 0
    study = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in study["sets"]] == ["judged", "alone"]
    assert study["average"]["rouge-1"] == pytest.approx(
        np.mean([agreement["value"] for agreement in study["agreements"]])
    )
    where = ["--where", "system=amber", "--statistic", "mae", "--scale", "0:100"]
    assert run(monkeypatch, "judged.jsonl", "-m", "rouge-1", "--json", *where) == 0
    study = json.loads(capsys.readouterr().out)
    assert study["sets"][0]["rows"] == 5
    assert "only rows where system is amber" in study["notes"]
    assert any("from [0, 100] to [0, 1]" in note for note in study["notes"])


MISTAKES = {
    "no file": (["nowhere.jsonl"], "there is no file nowhere.jsonl"),
    "level": (["judged.jsonl", "--level", "word"], "there is no level 'word'; there is segment"),
    "no preferences": (["judged.jsonl", "--level", "darr"], "judged has no preferences"),
    "no ratings": (["pairs.jsonl", "--level", "system"], "has one system"),
    "only preferences": (["pairs.jsonl", "--level", "segment"], "has no ratings for level segment"),
    "unrated": (["unrated.csv"], "unrated.csv has no ratings"),
    "one system": (["alone.csv", "--level", "system"], "alone has one system"),
    "one text": (["alone.csv", "--level", "text"], "alone has one text per segment"),
    "criterion": (["judged.jsonl", "--human", "wit"], "has no criterion 'wit'; there is adequacy"),
    "statistic": (["judged.jsonl", "--statistic", "r"], "there is no statistic 'r'"),
    "tau": (["judged.jsonl", "--statistic", "tau", "--level", "text"], "no tau on level text"),
    "column": (["judged.jsonl", "-m", "chrf:f1"], "chrf has no column 'f1'; there is score"),
    "metric": (["judged.jsonl", "-m", "bertscore"], "did you mean bert-score"),
    "mixed": (["judged.jsonl", "pairs.jsonl"], "judge them separately, or give a level"),
    "ending": (["judged.jsonl", "-o", "x.pdf"], "x.pdf ends in none of .html .json .md"),
    "page's folder": (["judged.jsonl", "-o", "no/x.html"], "there is no folder no"),
    "record's folder": (["judged.jsonl", "-o", "no/x.json"], "there is no folder no"),
    "where": (["judged.jsonl", "--where", "system"], "--where system lacks a value"),
    "rows": (["judged.jsonl", "--where", "system=x"], "no rows where system is 'x'"),
    "scale": (["judged.jsonl", "--statistic", "mse", "--scale", "9:1"], "--scale 9:1 is empty"),
    "narrow": (["judged.jsonl", "--statistic", "mse", "--scale", "0:9"], "is not in [0.0, 9.0]"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_one_clear_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: str,
) -> None:
    arguments, message = MISTAKES[case]
    metric = [] if "-m" in arguments else ["-m", "chrf"]
    assert run(monkeypatch, *arguments, *metric) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (folder / "cache").exists()


def test_a_page_opens_in_a_browser(
    folder: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage
) -> None:
    page = folder / "report.html"
    assert run(monkeypatch, "judged.jsonl", *METRICS, "--level", "system", "-o", str(page)) == 0
    document, messages = open_page(page.read_text(encoding="utf-8"))
    assert messages == ""
    for text in ("bert-score:recall", "agrees best", "system level", "compared: judged 20 rows"):
        assert text in document
