"""The scores of a study: by scorers with three members, from a file, and from the cache."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import freight
from freight.cli import main
from freight.core.pipeline import adapt
from freight.core.scorers import Refs
from freight.data.wmt import WmtTask, write_scores
from freight.errors import InvalidInput
from freight.judge import ScoreCache, judge
from freight.judge.scores import load_stored_scores
from freight.judge.search import Choices
from freight.judge.tuning import tune

SETS = Path(__file__).parents[2] / "examples/judged.jsonl"


class Overlap:
    """A scorer with nothing but the three members that every scorer has."""

    name = "overlap"
    columns = (freight.Column("share", True, 1.0, 0.0),)

    def __init__(self) -> None:
        self.calls = 0

    def score(self, hyps: Sequence[str], refs: Refs) -> freight.Result:
        self.calls += 1
        shares = [overlap(hyp, list(several)) for hyp, several in zip(hyps, refs, strict=True)]
        return freight.Result.of(self, {"share": shares})


def overlap(hyp: str, refs: Sequence[str]) -> float:
    words = set(hyp.split())
    return max(len(words & set(ref.split())) / max(len(words), 1) for ref in refs)


def test_three_members_are_enough_to_be_judged() -> None:
    judged = freight.read_judgements(SETS)
    study = judge([Overlap(), freight.load("chrf")], judged, resamples=20)
    expected = [overlap(hyp, refs) for hyp, refs in zip(judged.hyps, judged.refs, strict=True)]
    assert study.metrics == ("overlap", "chrf")
    assert study.scores["overlap", "judged"].tolist() == expected
    r = np.corrcoef(expected, judged.human["adequacy"])[0, 1]
    assert study.agreements[0].value == pytest.approx(r)
    assert study.signatures[0].startswith("overlap|source:")
    assert study.significance["judged", "adequacy"].shape == (2, 2)


@pytest.mark.parametrize(
    ("level", "statistic"), [("text", "kendall"), ("system", "pearson"), ("segment", "mse")]
)
def test_three_members_are_enough_on_every_level(level: str, statistic: str) -> None:
    judged = freight.read_judgements(SETS)
    study = judge({"mine": Overlap()}, judged, level, statistic, resamples=20)
    assert study.metrics == ("mine",)
    assert np.isfinite(study.agreements[0].value)


def test_scores_without_a_signature_are_not_cached(tmp_path: Path) -> None:
    judged, cache, own = freight.read_judgements(SETS), ScoreCache(tmp_path), Overlap()
    for _ in range(2):
        notes = judge([own, freight.load("chrf")], judged, resamples=9, cache=cache).notes
    assert own.calls == 2
    assert notes[-1] == "scores from the cache: chrf"
    assert len(cache.files) == 2  # chrF with the right references, and with shuffled ones


def test_three_members_are_enough_for_a_rival_of_a_tuned_metric() -> None:
    judged = freight.read_judgements(SETS)
    train, test = judged.only(judged.segments < 3), judged.only(judged.segments >= 3)
    space = {"hyp": Choices((0.2, 0.4))}
    settings = {"encoder": "hashed"}
    rivals = {"overlap": Overlap()}
    result = tune("lazy-emd", space, train, test, settings, rivals, resamples=9)
    assert result.tests is not None
    assert result.tests.metrics[-1] == "overlap"


class Nameless:
    columns = Overlap.columns


class Careless(Overlap):
    def score(self, hyps: Sequence[str], refs: Refs) -> list[float]:  # type: ignore[override]
        return [0.5 for _ in hyps]


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (Nameless(), "is not a scorer: it has no name and no score"),
        (Careless(), "overlap.score returned list, not a freight.Result"),
    ],
)
def test_what_a_scorer_lacks_is_named(scorer: Overlap, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        judge([scorer], freight.read_judgements(SETS))


FILE = """
import freight

class Length:
    name = "length"
    columns = (freight.Column("share", True, 1.0, 0.0),)

    def score(self, hyps, refs):
        shares = [min(len(h) / len(r[0]), 1.0) for h, r in zip(hyps, refs)]
        return freight.Result.of(self, {"share": shares})

length = Length()
"""


def test_a_scorer_in_a_file_is_judged_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    command = ["judge", str(SETS), "-m", f"{tmp_path / 'mine.py'}:length", "-m", "chrf"]
    monkeypatch.setattr("sys.argv", ["freight", *command, "--no-cache", "--resamples", "20"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    shown = capsys.readouterr().out
    judged = freight.read_judgements(SETS)
    shares = [
        min(len(hyp) / len(refs[0]), 1.0)
        for hyp, refs in zip(judged.hyps, judged.refs, strict=True)
    ]
    assert "length" in shown
    assert f"{np.corrcoef(shares, judged.human['adequacy'])[0, 1]:.3f}" in shown


@pytest.mark.parametrize("form", ["mtme", "wmt23"])
def test_a_file_is_judged_as_its_metric(form: str, tmp_path: Path) -> None:
    judged, chrf = freight.read_judgements(SETS), freight.load("chrf")
    scores = chrf.score(judged.hyps, judged.refs)["score"]
    table = np.zeros((len(judged.system_names), 5))
    table[judged.systems, judged.segments] = scores
    task = WmtTask(form, "de-en", "examples", ("refA",))
    path = write_scores(tmp_path, task, "chrf", judged.system_names, table, table.mean(axis=1))[0]
    again = load_stored_scores(path, [judged])
    study = judge({"chrf": chrf, "from file": again}, judged, resamples=50)
    one, other = study.agreements
    assert other.value == pytest.approx(one.value)
    assert other.low == pytest.approx(one.low)
    assert "sha256-" in again.signature
    with pytest.raises(InvalidInput, match=r"chrf.* cannot explain its scores"):
        adapt(again).explain("a", "b")


def test_a_file_of_other_systems_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.seg.score"
    path.write_text("nobody\t1.0\n")
    with pytest.raises(InvalidInput, match="has no system and segment of the set; it has nobody"):
        load_stored_scores(path, [freight.read_judgements(SETS)])


def test_texts_that_are_not_in_the_file_have_no_score(tmp_path: Path) -> None:
    judged = freight.read_judgements(SETS)
    path = tmp_path / "m.seg.score"
    path.write_text("".join(f"{judged.system_names[0]}\t{k}\n" for k in range(5)))
    result = load_stored_scores(path, [judged]).score(
        [judged.hyps[0], "another"], [judged.refs[0], ["ref"]]
    )
    assert np.isfinite(result["score"]).tolist() == [True, False]
    assert result.flags[1] == ("no score in the file",)
