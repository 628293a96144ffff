"""`freight score` by the habits of sacrebleu, and as files of the WMT metrics task."""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

import freight
from freight.cli import main, repeat_options
from sharing import need_encoder

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
    return tmp_path


def score(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", "score", "--threads", "1", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ref -i a b -m bleu chrf -w 2", "ref -i a -i b -m bleu -m chrf -w 2"),
        ("-m lazy-emd hyp ref", "-m lazy-emd hyp ref"),
        ("-m bert-score:f1 chrf++ hyp", "-m bert-score:f1 -m chrf++ hyp"),
        ("ref -i - -b", "ref -i - -b"),
        ("-i a -- b c", "-i a -- b c"),
        ("--input a b --encoding utf-8 r", "--input a --input b --encoding utf-8 r"),
    ],
)
def test_words_that_go_with_an_option(typed: str, meant: str) -> None:
    assert repeat_options(typed.split()) == meant.split()


def test_scores_and_intervals_are_those_of_sacrebleu(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "ref.txt", "-i", "systems/best.txt", "-m", "bleu", "chrf", "-ci", "-f", "json"
    assert score(monkeypatch, *given, "-w", "6", "--confidence-n", "2000") == 0
    records = json.loads(capsys.readouterr().out)
    for record, own in zip(records, (BLEU(), CHRF()), strict=True):
        theirs = own.corpus_score(HYPS, [REFS], n_bootstrap=2000)
        assert record["score"] == pytest.approx(theirs.score, abs=1e-5)
        # another seed draws other segments: 2,000 draws leave the mean and the interval this close
        assert record["confidence_mean"] == pytest.approx(theirs._mean, rel=0.03)
        assert record["confidence_var"] == pytest.approx(theirs._ci, rel=0.12)
        assert "best" not in record


def test_paired_tests_are_those_of_sacrebleu_but_for_its_small_p_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    systems: list[tuple[str, Sequence[str]]] = [("best", HYPS), ("worse", WORSE)]
    for test, trials in (("bs", 1000), ("ar", 2000)):
        theirs: list[Any] = list(
            PairedTest(systems, {"chrF": CHRF()}, [REFS], test, trials)()[1]["chrF2"]
        )
        arguments = "ref.txt", "-i", "systems", "-m", "chrf", f"--paired-{test}", "-f", "json"
        assert score(monkeypatch, *arguments, f"-p{test}n", str(trials)) == 0
        records = json.loads(capsys.readouterr().out)
        assert [record["system"] for record in records] == ["best", "worse"]
        assert "p_value" not in records[0]
        for record, own in zip(records, theirs, strict=True):
            assert record["score"] == pytest.approx(own.score, abs=1e-4)
        # theirs of the bootstrap is about that of a one-sided test
        expected = theirs[1].p_value if test == "ar" else 2 * theirs[1].p_value
        assert records[1]["p_value"] == pytest.approx(expected, abs=0.04)
        same = "ref.txt", "-i", "systems/best.txt", "copy.txt", *arguments[3:]
        (folder / "copy.txt").write_text("\n".join(HYPS) + "\n")
        assert score(monkeypatch, *same, f"-p{test}n", "100") == 0
        assert json.loads(capsys.readouterr().out)[1]["p_value"] == 1


def test_the_scores_alone_and_as_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = "-m", "bleu", "-m", "lazy-emd", "--encoder", "hashed"
    expected = [
        freight.load("bleu").score(HYPS, REFS).system["score"],
        freight.load("lazy-emd", encoder="hashed").score(HYPS, REFS).system["objective"],
    ]
    assert score(monkeypatch, "ref.txt", "-i", "systems/best.txt", *metrics, "-b", "-w", "3") == 0
    assert capsys.readouterr().out.split() == [f"{value:.3f}" for value in expected]
    assert score(monkeypatch, "systems/best.txt", "ref.txt", *metrics, "-f", "text") == 0
    for line, value in zip(capsys.readouterr().out.splitlines(), expected, strict=True):
        assert line.endswith(f" = {value:.4f}")
    systems = "-i", "systems/", "-m", "chrf", "-f", "markdown", "-w", "1"
    assert score(monkeypatch, "ref.txt", *systems) == 0
    heading, _, best, worse = capsys.readouterr().out.splitlines()
    assert heading == "| system | chrf↑ |"
    assert best.startswith("| best | **")
    assert "**" not in worse
    assert score(monkeypatch, "ref.txt", *systems[:-3], "latex", "-par", "-parn", "50") == 0
    assert r"best & \textbf{" in capsys.readouterr().out


def test_tables_for_people_say_what_was_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = "ref.txt", "-i", "systems/best.txt", "systems/worse.txt", "-m", "chrf"
    assert score(monkeypatch, *systems, "--paired-bs", "--paired-bs-n", "50") == 0
    shown = capsys.readouterr().out
    assert "p against best" in shown
    assert f"2 systems × {len(REFS)} segments" in shown
    assert score(monkeypatch, *systems) == 0
    assert f"2 systems × {len(REFS)} segments" in capsys.readouterr().out
    assert score(monkeypatch, "systems/best.txt", "ref.txt", "-m", "bleu", "chrf") == 0
    shown = capsys.readouterr().out
    assert f"{len(REFS)} segments" in shown
    assert "score" in shown
    assert "mean" not in shown, "corpus BLEU is no mean"
    assert score(monkeypatch, *systems[:-3], "-m", "chrf", "--confidence") == 0
    shown = capsys.readouterr().out
    assert "95 % interval" in shown
    assert "system" not in shown
    assert score(monkeypatch, *systems, "--json", "--confidence", "--confidence-n", "50") == 0
    records = json.loads(capsys.readouterr().out)["confidence"]
    assert [record["system"] for record in records] == ["best", "worse"]


MISTAKES = {
    "two tests": (["-i", "systems", "--paired-bs", "--paired-ar"], "choose one"),
    "trials": (["-i", "systems", "-pbsn", "5"], "--paired-bs-n is for --paired-bs"),
    "one system": (["-i", "systems/best.txt", "-pbs"], "give several, -i A -i B"),
    "format": (["-i", "systems", "-f", "xml"], "--format xml; there is parquet"),
    "no folder": (["-i", "systems", "-f", "mtme"], "give one folder, -o out/"),
    "no pair": (["-i", "systems", "-f", "mtme", "-o", "out/"], "such as -l en-de"),
    "no set": (["-i", "systems", "-f", "wmt23", "-l", "a-b", "-o", "out/"], "such as -t"),
    "a run": (["-i", "systems", "-b", "-o", "out/"], "keeps no scores in memory"),
    "empty": (["-i", "nothing"], "nothing is a folder without files"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(
    mistake: tuple[list[str], str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "nothing").mkdir()
    arguments, message = mistake
    assert score(monkeypatch, "ref.txt", "-m", "chrf", *arguments) == 1
    assert message in capsys.readouterr().err


def test_the_layout_of_mt_metrics_eval(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "en-de.refA.txt").write_text("\n".join(REFS) + "\n")
    (folder / "systems/refA.txt").write_text("\n".join(REFS) + "\n")  # lies among the systems
    metrics = "-m", "chrf", "emd", "--encoder", "hashed"
    arguments = "en-de.refA.txt", "-i", "systems", *metrics, "-l", "en-de", "-o", "out"
    assert score(monkeypatch, *arguments, "-f", "mtme") == 0
    directory = folder / "out/metric-scores/en-de"
    assert sorted(path.name for path in directory.iterdir()) == [
        "chrf-refA.seg.score", "chrf-refA.sys.score", "emd-refA.seg.score", "emd-refA.sys.score",
    ]  # fmt: skip
    rows = [line.split() for line in (directory / "emd-refA.seg.score").read_text().splitlines()]
    assert [row[0] for row in rows] == ["best"] * len(REFS) + ["worse"] * len(REFS)
    distances = freight.load("emd", encoder="hashed").score(HYPS, REFS)["transport"]
    assert [float(row[1]) for row in rows[: len(REFS)]] == pytest.approx((-distances).tolist())
    whole = dict(
        line.split() for line in (directory / "chrf-refA.sys.score").read_text().splitlines()
    )
    corpus = freight.load("chrf").score(WORSE, REFS).system["score"]
    assert float(whole["worse"]) == pytest.approx(corpus)


def test_the_language_is_found_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["今天的天气很好。", "他们在北京开会。", "这是一本新书。"]
    (tmp_path / "zh.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    given = "zh.txt", "zh.txt", "-m", "lazy-emd", "-m", "bleu", "--encoder", "hashed", "--json"
    assert score(monkeypatch, *given, "--lang", "auto") == 0
    said = capsys.readouterr()
    assert said.err == "language: zh, by the look of the references\n"
    emd, bleu = json.loads(said.out)["metrics"]
    assert emd["signature"] == freight.load("lazy-emd", lang="zh", encoder="hashed").signature
    assert "tok:zh" in bleu["signature"]
    assert bleu["system"]["score"] == pytest.approx(100)
    assert score(monkeypatch, *given, "-l", "en-zh") == 0
    assert json.loads(capsys.readouterr().out)["metrics"][1]["signature"] == bleu["signature"]
    need_encoder("multilingual")
    assert score(monkeypatch, *given[:3], "lazy-emd", "--lang", "zh", "-b") == 0
    told = capsys.readouterr().err
    assert told == "language: Chinese; encoder: multilingual\n"


def test_unknown_vocabulary_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.vec").write_text("2 2\nkissa 1 0\n. 0 1\n", encoding="utf-8")
    (tmp_path / "fi.txt").write_text("kissa on matolla.\nkoira ja kissa.\n", encoding="utf-8")
    metric = "-m", "wmd", "--encoder", "static:v.vec", "--lang", "auto"
    assert score(monkeypatch, "fi.txt", "fi.txt", *metric) == 0
    said = capsys.readouterr().err
    assert said.count("more than 30% of the units are unknown to static:v.vec") == 1
    assert "they look like Finnish: take encoder multilingual, or vectors of that" in said


def test_zipped_where_the_year_has_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = "-l", "de-en", "-t", "newstest2021", "-o", "out"
    given = "ref.txt", "-i", "systems/worse.txt", "-m", "chrf", *pair
    assert score(monkeypatch, *given, "-f", "wmt22") == 0
    with gzip.open(folder / "out/chrf.seg.score.gz", "rt") as stream:
        first = stream.readline().rstrip("\n").split("\t")
    named = ["chrf", "de-en", "newstest2021", "all", "all", "ref", "worse", "1"]
    assert first[:-1] == named
    expected = freight.load("chrf").score(WORSE[:1], REFS[:1])["score"]
    assert np.allclose(float(first[-1]), expected)
