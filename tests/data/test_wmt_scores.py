"""Score files of the WMT metrics task, written and read back in every form."""

from pathlib import Path

import numpy as np
import pytest

from freight.data.wmt import COLUMNS, WmtTask, read_scores, reference_names, write_scores
from freight.errors import InvalidInput

SEGMENTS = np.array([[0.25, -1.5, 3.0], [1e-17, 2.0, -0.0]])


@pytest.mark.parametrize("form", COLUMNS)
def test_round_trip(form: str, tmp_path: Path) -> None:
    task = WmtTask(form, "cs-en", "newstest2018", ("refA",))
    systems = ["newstest2018.uedin.5561.cs-en", "online-A.0"]
    paths = write_scores(tmp_path, task, "lazy-emd", systems, SEGMENTS, SEGMENTS.mean(axis=1))
    stored = read_scores(paths[0])
    assert stored.metric == ("lazy-emd-refA" if form == "mtme" else "lazy-emd")
    assert list(stored.scores) == [("cs-en", "uedin.5561"), ("cs-en", "online-A.0")]
    for row, scores in zip(SEGMENTS, stored.scores.values(), strict=True):
        assert scores == dict(enumerate(row.tolist(), 1))
    with pytest.raises(InvalidInput, match="whole systems"):
        read_scores(paths[1])


def test_names_of_references() -> None:
    assert reference_names(["references/cs-en.refA.txt"]) == ("refA",)
    assert reference_names(["newstest2018-csen-ref.en"]) == ("ref",)
    assert reference_names(["a.en-de.ref.refB.de", "a.en-de.ref.refA.de"]) == ("refB", "refA")
    assert reference_names(["gold.txt"]) == ("ref",)
    assert reference_names(["one.txt", "two.txt"]) == ("refA", "refB")


def test_names_of_systems() -> None:
    task = WmtTask("wmt23", "en-de", "generaltest2024", ("refA",))
    assert task.system("generaltest2024.en-de.hyp.GPT-4.de") == "GPT-4"
    assert task.system("en-de") == "en-de"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\tc\n", "line 1 of .* has 3 cells"),
        ("a\t1\na\tx\n", "line 2 of .*: 'x' is not a score"),
        ("m\tcs-en\tt\ts\t1\t.5\nm\tcs-en\tt\ts\t1\t.5\n", "segment '1' is no number, or repeated"),
        ("SYSTEM\tSCORE\n", "has no scores"),
    ],
)
def test_what_is_no_score_file(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.seg.score"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=message):
        read_scores(path)


def test_a_segment_without_a_score_is_refused(tmp_path: Path) -> None:
    task = WmtTask("mtme", "cs-en", "", ("ref",))
    gap = np.array([[1.0, np.nan]])
    with pytest.raises(InvalidInput, match="chrf has no score for segment 2 of a"):
        write_scores(tmp_path, task, "chrf", ["a"], gap, np.array([1.0]))
