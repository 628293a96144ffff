"""The page of reproduced tables: right on scores made up here, and true of the library now."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
import published
import scores
from asking import Question, Store, combined_p, differ_significantly
from claims import FAILS, HOLDS, PARTLY, UNTESTED, Outcome, decide_cases
from freight.data.judgement_files import read_judgements
from freight.judge.pairwise import darr_tau
from layout import Line, Untrue, checked, number, printed_lines, side_by_side, table
from page import blocks, head
from published import PAPERS, Printed, printed, tables
from questions import column, scored, wmt15
from sections import house

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
    others = {"wrd-score:f1": human, "wmd:distance": gap}
    np.savez(tmp_path / "words.wmt15-da.npz", allow_pickle=False, **others)
    np.savez(tmp_path / "strings.wmt15-da.npz", allow_pickle=False, **{"chrf:score": noise})
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


def test_without_scores_all_that_is_published_is_there(tmp_path: Path, data: Path) -> None:
    page = "\n\n".join(blocks(Store(tmp_path, data)))
    assert not _dropped(page, data)
    assert page.count(UNTESTED) > 30


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
    bleu = freight.load("sentence-bleu").score(judged.hyps, judged.refs)["score"]
    part = PAGE.read_text("utf-8").split("### Table 2: WMT18")[1]
    lines = [
        line for line in part.splitlines() if line.startswith(("| metric", "| `sentence-bleu`"))
    ]
    header, cells = ([x.strip() for x in line.strip("|").split("|")] for line in lines[:2])
    assert cells[header.index("cs-en")] == number(darr_tau(bleu, judged.preferences))


def test_scores_have_the_idf_of_their_language_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"lang_pair": pair, "segment": k, "refs": [ref], "hyp": hyp, "human": {"da_z": k}}
        for pair, texts in {
            "cs-en": (("a red house", "a red horse"), ("a dog", "a cat")),
            "de-en": (("red red wine", "a glass of wine"), ("red wine", "red beer")),
        }.items()
        for k, (ref, hyp) in enumerate(texts)
    ]
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data/wmt15-da.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    monkeypatch.setattr(scores, "DATA", tmp_path)
    monkeypatch.setattr(scores, "VECTORS", {"wrd-score": ("wrd-score", {"idf": "ref"})})
    monkeypatch.setattr(scores, "ABLATION", {})
    own = scores.score_rows(scores.Source("words", "words"), "wmt15-da")["wrd-score:f1"]
    judged = read_judgements(tmp_path / "data/wmt15-da.jsonl.gz")
    alone = [
        freight.load("wrd-score", idf="ref").score(part.hyps, part.refs)["f1"]
        for part in judged.split()
    ]
    together = freight.load("wrd-score", idf="ref").score(judged.hyps, judged.refs)["f1"]
    assert own == pytest.approx(np.concatenate(alone), abs=1e-6)
    assert np.abs(own - together).max() > 0.01


def test_no_published_cell_is_dropped(data: Path) -> None:
    assert not _dropped(PAGE.read_text("utf-8"), data)


def test_a_dropped_cell_is_noticed(data: Path) -> None:
    page = PAGE.read_text("utf-8")
    assert "| 55.49 |" in page
    assert _dropped(page.replace("| 55.49 |", "| – |"), data)


def test_the_tables_are_those_of_the_papers(data: Path) -> None:
    for paper in PAPERS:
        theirs = [t for t in _published(data, paper)["tables"] if "duplicate_of" not in t]
        assert tables(paper) == tuple(t["table"] for t in theirs)
        for one in theirs:
            ours = printed(paper, one["table"])
            assert list(ours.columns) == one["columns"]
            rows = {
                row: {c: v for c, v in cells.items() if v is not None}
                for row, cells in one["rows"].items()
            }
            assert ours.rows == rows
            assert len(ours.doubt) >= len(one.get("cells_in_doubt", ()))


def test_the_examples_are_those_of_the_papers(data: Path) -> None:
    names = [
        (e["reference"], e["prediction"], *(e["scores"][c] for c in ("precision", "recall", "f1")))
        for e in _published(data, "wrd-score")["examples"]
    ]
    assert list(published.NAMES) == names
    lazy = [
        (e["reference"], c["text"])
        for e in _published(data, "lazy-emd")["examples"]
        for c in e["candidates"]
    ]
    assert [(ref, hyp) for ref, hyp, _ in published.EXAMPLES] == lazy
    eight = next(e for e in _published(data, "std")["examples"] if e["id"] == "Table VIII")
    assert eight["reference"] == published.VICTORY
    assert {c["name"]: c["text"] for c in eight["candidates"]} == published.VICTORIES
    speeds = [q["value"] for q in _published(data, "bary-score")["quoted"][:2]]
    assert list(published.SPEED.values()) == speeds


def test_every_claim_of_the_papers_has_a_verdict(data: Path) -> None:
    page = PAGE.read_text("utf-8")
    for paper, name in PAPERS.items():
        part = page.split(f"### Claims of {name}\n")[1].split("\n#")[0]
        lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line[:1] == "|"]
        claims = _published(data, paper)["claims"]
        assert [line[1] for line in lines[2:]] == [claim["place"] for claim in claims]
        assert {line[2].strip("*") for line in lines[2:]} <= {HOLDS, FAILS, PARTLY, UNTESTED}
        assert all(len(line) == 4 and line[3] for line in lines[2:])


def test_a_claim_holds_in_all_cases_in_none_or_in_part() -> None:
    yes, no = Outcome(True, ".5"), Outcome(False, ".1")
    assert decide_cases("", "", {"a": yes, "b": yes}).verdict == HOLDS
    assert decide_cases("", "", {"a": yes, "b": no}).verdict == PARTLY
    assert decide_cases("", "", {"a": no}, "of r") == ("", "", FAILS, "a .1; of r")
    assert decide_cases("", "", {}).verdict == UNTESTED


def test_published_figures_stand_as_printed_beside_ours() -> None:
    paper = Printed(
        ("x", "y"), {"a": {"x": 55.49}, "b": {"x": 50.0, "y": 1.0}}, frozenset([("b", "y")])
    )
    lines = [*printed_lines(paper).values(), Line("`a`", "ours", {"x": 55.449})]
    assert side_by_side(lines, paper.columns, digits=1, paper=paper).splitlines()[2:] == [
        "| a | published | **55.49** |  |",
        "| b | published | <u>50.0</u> | 1.0? |",
        "| `a` | ours | 55.4 | – |",
    ]


def _published(data: Path, paper: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((data / f"published/{paper}.json").read_text("utf-8"))
    return content


def _dropped(page: str, data: Path) -> list[tuple[str, str, str, str]]:
    """The published cells that no table of the paper's section prints in its row and column.

    A table counts for a published one if all that they share is equal.
    """
    missing = []
    for paper, name in PAPERS.items():
        shown = list(_shown_tables(page.split(f"\n## {name}\n")[1].split("\n## ")[0]))
        for one in _published(data, paper)["tables"]:
            cells = {
                (row, c): v
                for row, of in one["rows"].items()
                for c, v in of.items()
                if v is not None
            }
            there: set[tuple[str, str]] = set()
            for values in shown:
                shared = values.keys() & cells.keys()
                if all(values[cell] == cells[cell] for cell in shared):
                    there |= shared
            missing += [(paper, one["table"], *cell) for cell in sorted(cells.keys() - there)]
    return missing


def _shown_tables(section: str) -> Iterator[dict[tuple[str, str], float]]:
    """The published cells of each table, by row and column."""
    for part in re.findall(r"(?:^\|.*\n?)+", section, re.MULTILINE):
        head, _, *body = [
            [cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in part.strip().splitlines()
        ]
        if head[:2] != ["metric", "scores"]:
            continue
        yield {
            (row[0], c): float(re.sub(r"\*\*|</?u>|\?", "", cell).replace("−", "-"))
            for row in body
            if row[1] == "published"
            for c, cell in zip(head[2:], row[2:], strict=True)
            if cell not in ("", "–")
        }
