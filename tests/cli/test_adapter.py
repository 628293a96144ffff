"""`--adapter` on the commands that take a metric, mistakes included."""

import json
import sys
from pathlib import Path

import pytest

import freight
from freight.cli import main
from made_adapters import made_adapter

HYPS = ["a cat sat on the mat", "he went home", "nothing is new", "so it is"]
REFS = ["the cat is on a mat", "he goes back home", "there is nothing new", "thus it is"]


@pytest.fixture
def folder(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("freight.judge.scores.user_cache_path", lambda *_, **__: tmp_path / "cache")
    Path("tiny").symlink_to(tiny_model)
    made_adapter(tiny_model).save("mine")
    Path("hyp.txt").write_text("\n".join(HYPS))
    Path("ref.txt").write_text("\n".join(REFS))
    rated = zip(HYPS, REFS, (3, 1, 2, 4), strict=True)
    rows = [{"hyp": hyp, "ref": ref, "human": human} for hyp, ref, human in rated]
    Path("rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("lists.jsonl").write_text(json.dumps(HYPS) + "\n")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["freight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    "command",
    [
        ("score", "hyp.txt", "ref.txt", "-m", "freight", "-m", "chrf", "--json"),
        ("explain", HYPS[0], REFS[0], "--json"),
        ("compare", "ref.txt", "hyp.txt", "ref.txt", "--json"),
        ("judge", "rated.jsonl", "--json"),
        ("tune", "freight", "rated.jsonl", "--grid", "greedy=0.2,0.4", "--json"),
        ("mbr", "lists.jsonl", "-m", "freight", "-o", "out.jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_the_scores_are_those_of_the_adapter(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    trained = ("--encoder", "tiny", "--adapter", "mine")
    assert run(monkeypatch, *command, *trained) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    if command[0] == "mbr":
        said = Path("out.jsonl").read_text()
        choice = freight.mbr([HYPS], freight.load("freight", encoder="tiny", adapter="mine"))[0]
        assert json.loads(said.splitlines()[-1])["text"] == choice.text
        return
    assert "+mine-" in said
    assert run(monkeypatch, *command, "--encoder", "tiny") == 0
    assert "+mine-" not in capsys.readouterr().out


def test_a_sample_is_drawn_by_the_adapted_metric(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = ("--encoder", "tiny", "--adapter", "nowhere")
    sample = ("sample", "rated.jsonl", "-m", "freight", "-n", "2", "-o", "sheet.csv")
    assert run(monkeypatch, *sample, *trained) == 1
    assert "there is no adapter nowhere" in capsys.readouterr().err


def test_each_metric_may_have_an_adapter_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    score = ("score", "hyp.txt", "ref.txt", "-m", "freight", "-m", "bert-score", "--layer", "1")
    own = ("--encoder", "tiny", "--set", "freight.adapter=mine", "--json")
    assert run(monkeypatch, *score, *own) == 0
    ours, other = json.loads(capsys.readouterr().out)["metrics"]
    assert "+mine-" in ours["signature"]
    assert "+mine-" not in other["signature"]
    trained = freight.load("freight", encoder="tiny", adapter="mine", layer=1)
    assert ours["scores"]["score"] == trained.score(HYPS, REFS)["score"].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--adapter", "mine"), "mine is for tiny (weights"),
        (("--adapter", "mine", "-m", "bert-score", "--encoder", "tiny"), "it sets 'floor'"),
        (("--adapter", "mine", "-m", "chrf"), "chrf has no encoder that the adapter mine"),
        (("--adapter", "hyp.txt"), "hyp.txt is no adapter"),
    ],
)
def test_an_adapter_that_does_not_fit_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    message: str,
) -> None:
    assert run(monkeypatch, "score", "hyp.txt", "ref.txt", *options) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
