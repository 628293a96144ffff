"""`freight train metric` as a user runs it: on a tiny model, to the end, interrupted, mistaken."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.cli import main
from freight.learn import fitting, read_adapter
from pages import Elements

WORDS = ["cat", "dog", "house", "tree", "river", "stone", "cloud", "bird", "fish", "road"]


def sentences(count: int, seed: int) -> list[dict[str, Any]]:
    """Rated texts: a word that is replaced is a fault, words that are added are none."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        ref = rng.choice(WORDS, 5, replace=False).tolist()
        faults, added = rng.integers(0, 4, 2)
        hyp = ["bad"] * faults + ref[faults:] + ["fine"] * added
        human = {"share": -faults / 3, "noise": float(rng.normal())}
        texts = {"hyp": f"{' '.join(hyp)} {k}", "ref": f"{' '.join(ref)} {k}"}
        rows.append({**texts, "human": human, "segment": k, "ratings": int(rng.integers(1, 4))})
    return rows


def write(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiny").symlink_to(tiny_model)
    write("train.jsonl", sentences(300, 0))
    write("test.jsonl", sentences(150, 1))
    pairs = [
        {"ref": one["ref"], "better": one["ref"], "worse": one["hyp"], "segment": one["segment"]}
        for one in sentences(60, 2)
    ]
    write("pairs.jsonl", pairs)
    write("few.jsonl", sentences(20, 3))
    write("constant.jsonl", [{**one, "human": 3} for one in sentences(200, 4)])
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", "train", "metric", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


TINY = ("--encoder", "tiny", "--device", "cpu")


def test_an_adapter_a_page_and_the_tests(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = ("--test", "test.jsonl", "--test", "pairs.jsonl", "--human", "share")
    sets = ("train.jsonl", "-o", "taught", *TINY, *tests, "--set", "greedy=0.25")
    assert run(monkeypatch, *sets) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "written: taught" in said
    assert "On test sets: Pearson's r" in said
    assert "On test sets: DARR τ" in said
    assert sorted(path.name for path in Path("taught").iterdir()) == [
        "adapter.safetensors",
        "training.html",
    ]
    adapter = read_adapter("taught")
    assert adapter.name == "taught"
    assert adapter.parameters["greedy"] == 0.25
    assert [one["name"] for one in adapter.provenance["data"]] == ["train"]
    tested = {one["set"]: one for one in adapter.provenance["tests"]}
    assert set(tested) == {"test", "pairs"}
    judged = freight.read_judgements("test.jsonl", ["share"])
    trained = freight.load("freight", encoder="tiny", adapter="taught")
    untrained = freight.load("freight", encoder="tiny", greedy=0.25)
    for metric, value in ((trained, "trained"), (untrained, "untrained")):
        scores = metric.score(judged.hyps, judged.refs)["score"]
        agreement = np.corrcoef(scores, judged.human["share"])[0, 1]
        assert tested["test"][value] == pytest.approx(agreement, abs=1e-6)
    assert tested["test"]["trained"] > tested["test"]["untrained"]
    page = Elements(Path("taught/training.html").read_text())
    assert page.names["svg"] == 2
    assert not page.open
    for part in ("Before and after", "On test sets", "Curves", "train", "taught"):
        assert part in page.text


def test_what_was_killed_goes_on_to_the_same_adapter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ("train.jsonl", *TINY, "--human", "share")
    assert run(monkeypatch, *train, "-o", "whole") == 0, capsys.readouterr().err
    save = fitting._Training._save

    def die(self: Any, path: Path, key: str) -> None:
        save(self, path, key)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting._Training, "_save", die)
        assert run(monkeypatch, *train, "-o", "whole2") == 1
    assert "the same command continues in whole2" in capsys.readouterr().err
    assert [path.name for path in Path("whole2").iterdir()] == [fitting.CHECKPOINT]
    other = ("test.jsonl", *TINY, "--human", "share", "-o", "whole2")
    assert run(monkeypatch, *other) == 1
    assert "other data or with other settings" in capsys.readouterr().err
    assert run(monkeypatch, *train, "-o", "whole2") == 0
    assert "continuing in whole2" in capsys.readouterr().err
    assert read_adapter("whole2").digest == read_adapter("whole").digest


def test_without_a_gain_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = ("train.jsonl", *TINY, "--human", "noise", "-o", "nothing")
    assert run(monkeypatch, *noise) == 0
    assert "nothing is written" in capsys.readouterr().out
    assert not Path("nothing").exists()
    assert run(monkeypatch, *noise, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["adapter"] is None
    assert record["folder"] is None
    assert record["curve"]
    assert not Path("nothing").exists()


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "constant": (("constant.jsonl",), "human is 3 everywhere; there is nothing to agree with"),
    "few": (("few.jsonl",), f"give at least {fitting.LEAST_RATINGS}"),
    "leak": (("train.jsonl", "--test", "train.jsonl"), "300 texts of the test set train are in"),
    "criterion": (("train.jsonl", "--human", "shares"), "did you mean share?"),
    "no set": (("nowhere.jsonl",), "there is no file nowhere.jsonl"),
    "not empty": (("train.jsonl", "-o", "tiny"), "the folder tiny is not empty"),
    "file": (("train.jsonl", "-o", "few.jsonl"), "few.jsonl is no folder"),
    "words": (("train.jsonl", "--encoder", "distilled"), "cannot be trained; take freight"),
    "lexical": (("train.jsonl", "-m", "chrf"), "chrf has no encoder to train; take freight"),
    "other": (("train.jsonl", "-m", "bary-score"), "bary-score"),
    "adapter": (("train.jsonl", "--set", "adapter=x"), "--set adapter is not for training"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(
    mistake: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments, message = MISTAKES[mistake]
    encoder = () if "--encoder" in arguments else TINY[:2]
    output = () if "-o" in arguments else ("-o", "out")
    assert run(monkeypatch, *arguments, *encoder, *output) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("out").exists()
