"""`freight compare`, which is `freight score REF -i A B ...` by another name."""

import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

import freight
from freight.cli import main
from freight.cli.groups import PairedTestOptions
from freight.core.scale import find_scale
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


def test_people_beside_the_significance_test(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "compare", "ref.txt", *SYSTEMS, "-m", "chrf", "--baseline", "shuffled"
    assert run(monkeypatch, *arguments, "--json") == 0
    (record,) = json.loads(capsys.readouterr().out)["metrics"]
    systems = record["systems"]["score"]
    scale = find_scale(record["signature"], "score")
    assert scale is not None
    rate = scale.agree(systems["best"]["score"] - systems["worse"]["score"], len(REFS))
    assert rate is not None
    assert systems["best"]["people_agree"] == {"worse": pytest.approx(list(rate))}
    assert "people_agree" not in systems["worse"]
    assert record["baseline"]["shuffled"]["score"] < systems["worse"]["score"]
    assert run(monkeypatch, *arguments) == 0
    shown = capsys.readouterr().out
    assert str(rate) in shown
    assert "shuffled" in shown
    assert run(monkeypatch, "compare", "ref.txt", *SYSTEMS, "-m", "emd", "--encoder", "hashed") == 0
    assert "%" not in capsys.readouterr().out.partition("people")[2].partition("│")[2]


def test_a_score_is_placed_on_its_scale(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = "score", SYSTEMS[0], "ref.txt", "-m", "rouge-l", "-m", "bleu"
    assert run(monkeypatch, *arguments, "--baseline", "shuffled", "--seed", "3") == 0
    shown = capsys.readouterr().out
    expected = freight.load("rouge-l").score(HYPS, REFS)
    assert f"rouge-l score {expected.meaning}\n" in shown
    assert "shuffled references" in shown
    assert run(monkeypatch, *arguments, "--json") == 0
    rouge, bleu = json.loads(capsys.readouterr().out)["metrics"]
    scale = rouge["scale"]["score"]
    assert 0 < scale["better_than"] < 1
    assert scale["unrelated"] < rouge["system"]["score"] < scale["one_word_different"]
    assert bleu["scale"]["score"]["better_than"] is None
    assert "baseline" not in rouge
    assert run(monkeypatch, "score", SYSTEMS[0], "ref.txt", SYSTEMS[1], "-m", "rouge-l") == 0
    assert "better than" not in capsys.readouterr().out
    assert run(monkeypatch, "score", SYSTEMS[0], "ref.txt", "-m", "emd", "--encoder", "hashed") == 0
    assert "better than" not in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--baseline", "nothing"], ["--signature", "long"]])
def test_choices_that_there_are_not(
    option: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "score", SYSTEMS[0], "ref.txt", "-m", "chrf", *option) == 1
    assert f"{' '.join(option)}; there is s" in capsys.readouterr().err


def test_the_signature_is_short_unless_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = freight.load("chrf").score(HYPS, REFS)
    arguments = "score", SYSTEMS[0], "ref.txt", "-m", "chrf"
    assert run(monkeypatch, *arguments) == 0
    assert f"{expected.citation}\n" in capsys.readouterr().out
    assert run(monkeypatch, *arguments, "--signature", "full") == 0
    assert f"{expected.signature}\n" in capsys.readouterr().out
    (folder / "one.txt").write_text("A cat.\n")
    assert run(monkeypatch, "score", "one.txt", "one.txt", "-m", "chrf", "--baseline=shuffled") == 1
    assert "needs several segments with different references" in capsys.readouterr().err


def test_a_gate_names_the_systems_and_the_segments(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", "ref.txt", *SYSTEMS, "-m", "chrf"]
    assert run(monkeypatch, *arguments, "--fail-under", "1") == 0
    worse = freight.load("chrf").score(WORSE, REFS)
    capsys.readouterr()
    assert run(monkeypatch, *arguments, "--fail-under", f"{worse.system['score'] + 0.01}") == 3
    shown = capsys.readouterr()
    (line,) = [line for line in shown.err.splitlines() if "failed" in line]
    assert line.startswith(f"freight: failed: worse: chrf:score is {worse.system['score']:.4f}")
    assert "worse" in shown.out, "the table is there either way"
    lowest = worse["score"].argmin()
    bound = f"{worse['score'][lowest] + 0.01}"
    assert run(monkeypatch, *arguments, "--fail-under-segment", bound) == 3
    assert f"in 1 of {2 * len(REFS)}: worse {lowest + 1}" in capsys.readouterr().err


def test_names_and_intervals_are_whole_at_80_columns(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "systems/a-transformer-of-2018.txt").write_text("\n".join(HYPS) + "\n")
    monkeypatch.setenv("COLUMNS", "80")
    systems = [*SYSTEMS, "systems/a-transformer-of-2018.txt"]
    assert run(monkeypatch, "compare", "ref.txt", *systems, "-m", "chrf", "-o", "page.html") == 0
    shown = capsys.readouterr().out
    table = [line for line in shown.splitlines() if line.startswith("│")]
    assert max(map(len, table)) <= 80
    assert "│ chrf score↑ " in table[0]
    assert any("a-transformer-of-2018 " in line and " – " in line for line in table)
    assert "…" not in "".join(table)
    assert shown.count("differs") == shown.count("differs (") > 0, "a page adds no second count"
