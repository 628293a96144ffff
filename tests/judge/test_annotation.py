"""Samples for people to rate: drawn by strata, blind, and read back into a judgement set."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from freight.data.judgement_files import read_judgements
from freight.data.judgements import Judgements
from freight.errors import InvalidInput
from freight.judge.annotation import (
    REST,
    WRD_SCORE,
    Stratum,
    draw_sample,
    key_path,
    read_sheet,
    write_rated,
    write_sheet,
)

COUNT = 200
SCORES = np.linspace(0, 1, COUNT)
ROUGE = np.tile([0.2, 0.7], COUNT // 2)


@pytest.fixture
def texts() -> Judgements:
    """A text for each score, by two systems in turn."""
    return Judgements(
        "texts",
        tuple(f"hyp {k}" for k in range(COUNT)),
        tuple((f"ref {k}",) for k in range(COUNT)),
        np.arange(COUNT) // 2,
        np.arange(COUNT) % 2,
        ("secret-A", "secret-B"),
        {},
    )


def test_strata_are_intervals() -> None:
    scores = np.array([-0.1, 0, 0.2, 0.5, 0.8, 1 + 1e-7, 1.1, np.nan])
    members = [np.flatnonzero(s.contains(scores, np.zeros(8))).tolist() for s in WRD_SCORE]
    assert members == [[0, 1, 2, 3, 4, 5, 6, 7], [1], [2], [3], [4, 5]]
    assert not WRD_SCORE[4].contains(scores, np.full(8, 0.5)).any()
    half = Stratum.parse("( -inf, .5 ]")
    assert np.flatnonzero(half.contains(scores)).tolist() == [0, 1, 2, 3]
    with pytest.raises(InvalidInput, match="needs the texts' ROUGE-1"):
        WRD_SCORE[4].contains(scores)


@pytest.mark.parametrize("text", ["", "0:1", "[1,0]", "[0,0)", "[a,b]", "[0,1] bleu<3", "[0,1"])
def test_what_is_no_stratum(text: str) -> None:
    with pytest.raises(InvalidInput, match="stratum"):
        Stratum.parse(text)


def test_each_stratum_has_its_share(texts: Judgements) -> None:
    sample = draw_sample(texts, SCORES, 52, rouge=ROUGE, seed=3)
    assert len(set(sample.rows.tolist())) == 52
    labels = np.array(sample.strata)
    for k, stratum in enumerate(WRD_SCORE):
        rows = sample.rows[labels == stratum.label]
        assert len(rows) == (11 if k < 2 else 10)
        assert stratum.contains(SCORES, ROUGE)[rows].all()
    assert sample.notes == ()
    assert (np.diff(sample.rows) < 0).any()  # the order gives nothing away
    assert list(sample.strata) != sorted(sample.strata)


def test_a_seed_is_a_sample(texts: Judgements) -> None:
    one, same, other = (
        draw_sample(texts, SCORES, 50, rouge=ROUGE, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.rows, same.rows)
    assert one.strata == same.strata
    assert one.rows.tolist() != other.rows.tolist()


def test_a_short_stratum_is_filled_or_left(texts: Judgements) -> None:
    strata = [Stratum.parse("[0,0.01)"), Stratum.parse("[0.5,1]")]
    filled = draw_sample(texts, SCORES, 20, strata)
    assert len(filled.rows) == 20
    assert filled.strata.count(REST) == 8
    assert filled.notes == ("stratum [0,0.01) has 2 of 10 texts; filled up from the rest",)
    left = draw_sample(texts, SCORES, 20, strata, fill=False)
    assert len(left.rows) == 12
    assert left.notes == ("stratum [0,0.01) has 2 of 10 texts; not filled up",)


def test_nothing_is_rated_twice(texts: Judgements) -> None:
    same = replace(texts, hyps=("one",) * COUNT, refs=(("ref",),) * COUNT)
    with pytest.raises(InvalidInput, match="has 1 different texts; 2 cannot be drawn"):
        draw_sample(same, SCORES, 2, [Stratum.parse("random")])
    assert draw_sample(same, SCORES, 1, [Stratum.parse("random")]).rows.tolist() == [0]


def test_random_is_even(texts: Judgements) -> None:
    counts = np.zeros(COUNT)
    for seed in range(400):
        counts[draw_sample(texts, SCORES, 50, [Stratum.parse("random")], seed=seed).rows] += 1
    assert counts.mean() == 100
    assert counts.std() == pytest.approx(np.sqrt(400 * 0.25 * 0.75), rel=0.2)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def fill_in(path: Path, ratings: list[list[str]], raters: int = 3) -> None:
    """Rate a sheet the way a spreadsheet would save it."""
    rows = rows_of(path)
    for row, values in zip(rows, ratings, strict=True):
        row.update({f"rater{k + 1}": values[k] for k in range(raters)})
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)


def sheet_of(texts: Judgements, folder: Path, count: int = 5) -> Path:
    path = folder / "sheet.csv"
    write_sheet(path, texts, draw_sample(texts, SCORES, count, rouge=ROUGE), SCORES)
    return path


def test_a_sheet_is_blind_and_its_key_is_not(texts: Judgements, tmp_path: Path) -> None:
    path = sheet_of(texts, tmp_path, 50)
    rows, key = rows_of(path), rows_of(key_path(path))
    assert list(rows[0]) == ["id", "hyp", "ref", "rater1", "rater2", "rater3"]
    assert "secret" not in path.read_text()
    assert [row["id"] for row in rows] == [row["id"] for row in key]
    for row, known in zip(rows, key, strict=True):
        k = int(known["row"]) - 1
        assert row["hyp"] == texts.hyps[k]
        assert float(known["score"]) == SCORES[k]
        assert known["system"] == texts.system_names[k % 2]
        assert Stratum.parse(known["stratum"]).contains(SCORES, ROUGE)[k]


def test_ratings_come_back_as_a_set(texts: Judgements, tmp_path: Path) -> None:
    refs = (("ref\nof two lines", "ünd"), *(("x",) for _ in range(COUNT - 1)))
    path = sheet_of(replace(texts, refs=refs, lang_pairs=("cs-en",) * COUNT), tmp_path, COUNT)
    ratings = [[str(k % 11), f" {k % 7}.5 ", ""] for k in range(COUNT)]
    ratings[3] = ["", "", ""]
    ratings[4][0] = ""
    fill_in(path, ratings)
    sheet = read_sheet(path)
    assert sheet.raters == ("rater1", "rater2")
    assert sheet.notes == (
        "rater1 has not rated rows 4, 5",
        "rater2 has not rated row 4",
        "rater3 has rated nothing and is left out",
    )
    assert sheet.means[7] == (7 + 0.5) / 2
    assert sheet.means[4] == 4.5
    write_rated(tmp_path / "rated.jsonl", sheet)
    judged = read_judgements(tmp_path / "rated.jsonl")
    np.testing.assert_array_equal(judged.human["score"], sheet.means)
    assert judged.criterion() == "score"
    rows = [int(row["row"]) - 1 for row in rows_of(key_path(path))]
    assert judged.hyps == tuple(texts.hyps[k] for k in rows)
    assert judged.refs == tuple(refs[k] for k in rows)
    assert [judged.system_names[k] for k in judged.systems] == [
        texts.system_names[k % 2] for k in rows
    ]
    assert set(judged.lang_pairs) == {"cs-en"}
    few = read_judgements(tmp_path / "rated.jsonl", where={"stratum": "[0.5,0.8)"})
    assert 0 < len(few) < COUNT


def test_a_sheet_with_mistakes(texts: Judgements, tmp_path: Path) -> None:
    path = sheet_of(texts, tmp_path)
    with pytest.raises(InvalidInput, match="no ratings yet"):
        read_sheet(path)
    fill_in(path, [["1", "2", "3"], ["5", "ok", ""], ["4", "4", "11"], ["x"] * 3, ["1"] * 3])
    with pytest.raises(InvalidInput, match=r"row 2 of .*: rater2 is 'ok'.*3 more, in row 4, 4, 4"):
        read_sheet(path)
    fill_in(path, [["1", "2", "3"], ["5", "5", ""], ["4", "4", "11"], ["2"] * 3, ["1"] * 3])
    assert read_sheet(path).ratings.shape == (5, 3)
    with pytest.raises(InvalidInput, match=r"row 3 of .*: rater3 is 11, not from 0 to 10$"):
        read_sheet(path, (0, 10))
    for broken in ("nan", "inf", "1,5"):
        fill_in(path, [[broken] * 3, *[["1"] * 3] * 4])
        with pytest.raises(InvalidInput, match=r"row 1 of .*: rater1 is"):
            read_sheet(path)


def test_a_sheet_is_not_what_was_drawn(texts: Judgements, tmp_path: Path) -> None:
    path = sheet_of(texts, tmp_path)
    fill_in(path, [["1", "2", "3"]] * 5)
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    for content, message in (
        (whole.replace("hyp ", "hyq ", 1), "row 1 of .*: the texts are not those that were drawn"),
        (whole + lines[1], "id 1 twice"),
        (whole.replace('"1"', '"99"', 1), "row 1 of .*: id 99 is not in .*sheet.key.csv"),
        (whole.replace(",", ";"), "save it with commas"),
        ("", "lacks rows"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidInput, match=message):
            read_sheet(path)
    path.write_text("".join([lines[0], *lines[:1:-1]]))
    assert read_sheet(path).notes == ("ids 1 of the key are not in the sheet",)
    key_path(path).unlink()
    with pytest.raises(InvalidInput, match=r"there is no file .*sheet.key.csv"):
        read_sheet(path)


def test_nothing_is_overwritten(texts: Judgements, tmp_path: Path) -> None:
    path = sheet_of(texts, tmp_path)
    with pytest.raises(InvalidInput, match="exists already; remove it"):
        sheet_of(texts, tmp_path)
    path.unlink()
    with pytest.raises(InvalidInput, match=r"sheet.key.csv exists already"):
        sheet_of(texts, tmp_path)
    sample = draw_sample(texts, SCORES, 5, rouge=ROUGE)
    with pytest.raises(InvalidInput, match=r"does not end in .csv"):
        write_sheet(tmp_path / "sheet.xlsx", texts, sample, SCORES)
