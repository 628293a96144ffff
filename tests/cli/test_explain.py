"""`freight explain`, as one types it."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import freight
from freight.cli import app, main
from freight.cli.explain import show

HYP, REF = "The boy in a coat.", "The young man in a slicker."


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["explain", *arguments, "--encoder", "hashed"])
    assert result.exit_code == 0, result.output
    return result.stdout


def drawn(
    name: str, hyp: str, *refs: str, width: int = 100, with_plan: bool = False, **options: Any
) -> str:
    """As printed where there are no colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(freight.load(name, encoder="hashed", **options).explain(hyp, refs), console, with_plan)
    printed: str = console.file.getvalue()  # type: ignore[attr-defined]
    return printed


def test_the_house_metric_is_the_default() -> None:
    shown = json.loads(run(HYP, REF, "--json"))
    metric = freight.load("freight", encoder="hashed")
    assert shown["metric"] == "freight"
    assert shown["scores"] == {"score": metric.score([HYP], [REF])["score"][0]}
    assert shown == json.loads(json.dumps(metric.explain(HYP, [REF]).to_dict()))


def test_at_a_terminal_without_colours() -> None:
    lines = drawn("lazy-emd", HYP, REF).splitlines()
    assert lines[0].startswith("lazy-emd  objective↓ 0.1722  transport 0.0691")
    assert lines[1:4] == [
        "hyp  The boy in a coat.",
        "         !!!      !!!!",
        "ref  The young man in a slicker.",
    ]
    text = "\n".join(lines)
    (worst,) = [line for line in lines if line.startswith("worst words: ")]
    assert {*worst.removeprefix("worst words: ").split(", ")} == {"boy", "coat"}
    assert "added: " not in text, "each stands for something"
    assert "unmatched" not in text
    assert "│" not in text
    with_plan = drawn("lazy-emd", HYP, REF, with_plan=True)
    assert "│ lazy │ The" in with_plan
    assert "lazy, hyp: " in with_plan
    assert "unmatched, hyp: boy, coat" in with_plan
    assert "unmatched, ref: young man, slicker" in with_plan
    assert lines[-1].startswith("lazy-emd|hashed-64x4|L3|v")


def test_colours_say_the_same() -> None:
    console = Console(file=io.StringIO(), width=100, color_system="standard", force_terminal=True)
    show(freight.load("emd", encoder="hashed").explain(HYP, REF), console)
    printed: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert "The \x1b" in printed
    assert "\x1b[1;31mb\x1b" in printed


def test_base_winner_flags_and_views() -> None:
    shown = drawn("std", HYP, "A dog.", REF, with_plan=True)
    assert "reference 2 of 2 is the best" in shown
    assert "Largest flows: unigrams" in shown
    assert "Largest flows: bigrams" in shown
    assert "base 1.0000, contributions -" in drawn("freight", HYP, REF)
    empty = drawn("wmd", "", REF, with_plan=True)
    assert "empty side" in empty
    assert "nan" in empty
    assert "Largest flows" not in empty


def test_long_and_wide_and_hostile_texts() -> None:
    long = drawn("emd", "word " * 60, REF, width=40)
    assert max(len(line) for line in long.splitlines() if line.startswith(("hyp", "     "))) <= 40
    wide = drawn("emd", "一 boy", "二 boy").splitlines()
    assert wide[2] == "     !!"
    nasty = drawn("emd", "a\x1b[31mred\x07 [bold]x[/bold]\n", REF)
    assert "\x1b" not in nasty
    assert "[bold]x[/bold]" in nasty


def test_errors_of_texts_from_right_to_left_are_listed() -> None:
    shown = drawn("emd", "وافق المجلس على الجسر", "وافق المجلس على النفق").splitlines()
    assert shown[1] == "hyp  وافق المجلس على الجسر"
    assert shown[2] == "     ! الجسر"
    assert shown[3] == "ref  وافق المجلس على النفق"


def test_two_metrics_and_two_hypotheses() -> None:
    shown = json.loads(run(HYP, REF, "-m", "bert-score:precision", "-m", "lazy-emd", "--json"))
    assert [shown[side]["metric"] for side in ("one", "other")] == ["bert-score", "lazy-emd"]
    assert shown["one"]["column"]["name"] == "precision"
    printed = run(HYP, REF, "-m", "lazy-emd", "--against", "The man in a coat.")
    assert "Largest differences" in printed
    assert "in the first" in printed


def test_settings_and_layers_reach_the_metric() -> None:
    options = ("-m", "lazy-emd", "--layer", "2", "--set", "lazy-emd.hyp=0.5", "--lang", "zh")
    shown = json.loads(run(HYP, REF, *options, "--json"))
    assert "layers:2" in shown["signature"]
    assert "Problem(hyp=0.5,ref=0.97" in shown["signature"]


def test_written_to_a_file(tmp_path: Path) -> None:
    run(HYP, REF, "-m", "emd", "-o", str(tmp_path / "it.json"))
    assert json.loads((tmp_path / "it.json").read_text())["metric"] == "emd"
    run("The <b>boy</b>.", REF, "-m", "std", "-m", "emd", "-o", str(tmp_path / "it.html"))
    page = (tmp_path / "it.html").read_text()
    assert "<b>boy" not in page
    assert "slicker" in page
    run(HYP, REF, "-m", "emd", "-o", str(tmp_path / "it.png"))
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_needs_its_extra(tmp_path: Path, monkeypatch: Any) -> None:
    explanation = freight.load("emd", encoder="hashed").explain(HYP, REF)
    shown = explanation._repr_html_()
    assert shown is not None
    assert "slicker" in shown
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert freight.load("emd", encoder="hashed").explain(HYP, REF)._repr_html_() is None
    with pytest.raises(freight.MissingPart, match=r"freight\[report\]"):
        explanation.save(tmp_path / "it.html")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([HYP, REF, "-m", "mover-score"], "fit it first"),
        ([HYP, REF, "-m", "bleu"], "bleu moves nothing"),
        ([HYP, REF, "-m", "nope"], "there is no metric 'nope'"),
        ([HYP, REF, "-m", "emd:nope"], "emd has no column 'nope'"),
        ([HYP, REF, "-m", "emd", "-m", "emd"], "two different ones"),
        ([HYP, REF, "-m", "emd", "-m", "wmd", "--against", "x"], "by one metric"),
        ([HYP, REF, "-m", "emd", "-o", "it.txt"], "it.txt ends in none of .html"),
        ([HYP, REF, "-m", "emd", "--set", "wmd.unit=true"], "wmd is not among the metrics"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], told: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr("sys.argv", ["freight", "explain", *arguments, "--encoder", "hashed"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
