"""The page of reproduced tables: right on scores made up here, and true of the library now."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import freight
from asking import Question, Store, combined_p, differ_significantly
from freight.data.judgement_files import read_judgements
from freight.judge.pairwise import darr_tau
from layout import Untrue, checked, number, table
from page import head
from questions import column, scored, wmt15
from sections import bary_score, house, words

PAGE = Path(__file__).parents[1] / "docs/reproduction.md"
PAIRS = ("cs-en", "de-en", "fi-en", "ru-en", "en-ru")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """WMT15 with six rows a pair: one metric knows the ratings, one their opposite."""
    human = np.random.default_rng(0).normal(size=6 * len(PAIRS))
    rows = [
        {
            "lang_pair": PAIRS[k // 6],
            "segment": k,
            "refs": ["a"],
            "hyp": f"b{k}",
            "human": {"da_z": z},
        }
        for k, z in enumerate(human)
    ]
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data/wmt15-da.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    noise = np.random.default_rng(1).normal(size=len(human))
    wrong = {"bert-score:f1": 0.1 * noise - human, "mover-score:similarity": noise}
    own = {"freight:score": 2 * human + 1}
    np.savez(tmp_path / "e5.wmt15-da.npz", allow_pickle=False, **wrong, **own)
    gap = np.where(np.arange(len(human)) == 7, np.nan, human)
    others = {"chrf:score": noise, "wrd-score:f1": human, "wmd:distance": gap}
    np.savez(tmp_path / "words.wmt15-da.npz", allow_pickle=False, **others)
    return Store(tmp_path, tmp_path)


def test_a_question_takes_its_rows_and_all_metrics(store: Store) -> None:
    panel = store.ask("e5", wmt15("de-en"))
    judged = read_judgements(store.data / "data/wmt15-da.jsonl.gz")
    rows = np.array(judged.lang_pairs) == "de-en"
    noise = panel.scores["chrf:score"]
    assert panel.values["freight:score"] == pytest.approx(1.0)
    assert panel.values["bert-score:f1"] < -0.9
    assert panel.values["wrd-score(words):f1"] == pytest.approx(1.0)
    assert panel.values["wmd:distance"] == pytest.approx(1.0)
    assert store.unscored() == {"wmd": 1}
    r = np.corrcoef(noise, judged.human["da_z"][rows])[0, 1]
    assert panel.values["chrf:score"] == pytest.approx(r)
    assert panel.p("freight:score", "bert-score:f1") < 0.01
    assert differ_significantly([panel], "bert-score:f1", "freight:score")
    assert combined_p([panel], "chrf:score", "freight:score") > 0.95


def test_means_leave_out_pairs_from_english(store: Store) -> None:
    values = [store.ask("e5", wmt15(pair)).values["chrf:score"] for pair in PAIRS[:4]]
    assert column(store, "e5", "WMT15 r")["chrf:score"] == pytest.approx(np.mean(values))
    assert scored(store, "e5") == ["WMT15 r", "WMT15 τ"]


def test_what_is_missing_is_said(store: Store) -> None:
    assert store.ask("e5", Question("realsumm")).values == {}
    assert store.encoders == ("e5",)
    assert "wmt17-da, wmt18-darr.et-en" in "\n".join(head(store))
    assert "Not computed." in list(house.captions(store))
    assert "Not computed." in list(words.std(store))
    empty = Store(store.folder / "data", store.data)
    assert list(bary_score.section(empty))
    assert list(house.house(empty))


def test_the_house_metric_is_told_from_the_best_other(store: Store) -> None:
    page = "\n".join(house.house(store))
    assert re.search(r"\| WMT15 r \| 1.000 \| `(wrd-score\(words\)|wmd)` \| 1.000 \|", page)
    assert "first in" in page


def test_tables_mark_the_best_two_as_shown() -> None:
    columns = {"x": {"a": 0.5004, "b": 0.5, "c": 0.4, "d": -0.3}, "y": {"b": 1.0}}
    assert table("m", dict(zip("abcde", "ABCDE", strict=True)), columns).splitlines() == [
        "| m | x | y |",
        "| --- | --- | --- |",
        "| A | **.500** | – |",
        "| B | **.500** | 1.000 |",
        "| C | <u>.400</u> | – |",
        "| D | −.300 | – |",
    ]
    assert "**.2**" in table("m", {"a": "A", "b": "B"}, {"x": {"a": 0.2, "b": 0.3}}, 1, lower=True)
    assert [number(x) for x in (-0.0001, 0.9996, -1.5, np.nan)] == [".000", "1.000", "−1.500", "–"]


def test_a_sentence_cannot_outlive_its_numbers() -> None:
    assert checked(True, "Water is wet.") == "Water is wet."
    with pytest.raises(Untrue, match="Water is dry"):
        checked(False, "Water is dry.")


def test_the_page_prints_what_the_library_computes(data: Path) -> None:
    judged = read_judgements(data / "data/wmt18-darr.cs-en.jsonl.gz")
    assert judged.preferences is not None
    scores = freight.load("sentence-bleu").score(judged.hyps, judged.refs)["score"]
    rows = re.findall(
        r"^\| (?:metric|`sentence-bleu`) \|.*$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    header, cells = ([x.strip() for x in row.strip("|").split("|")] for row in rows[:2])
    assert cells[header.index("cs-en")] == number(darr_tau(scores, judged.preferences))
