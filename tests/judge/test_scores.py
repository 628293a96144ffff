"""Scores out of a file agree with people as the metric does that computed them."""

from pathlib import Path

import numpy as np
import pytest

import freight
from freight.data.wmt import WmtTask, write_scores
from freight.errors import InvalidInput
from freight.judge import judge
from freight.judge.scores import load_stored_scores

SETS = Path(__file__).parents[2] / "examples/judged.jsonl"


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
    with pytest.raises(InvalidInput, match="cannot be explained"):
        again.explain("a", "b")


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
