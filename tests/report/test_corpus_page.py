"""The page of a corpus, as a file and in a real browser."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.flags import Flag
from freight.core.result import Column, Result
from freight.core.scorers import Refs
from freight.errors import InvalidInput
from freight.report.corpus import ScoredCorpus, corpus_page, page, write_corpus_report
from freight.report.segments import extreme_rows, listed_rows
from pages import Elements, OpenPage

HOSTILE = (
    "</td></style></script><script>document.title='owned'</script><!--<script>"
    "<img src=x onerror=\"document.title='owned'\">&lt;&amp;"
)
DRAWING = {"svg", "g", "defs", "path", "use", "text", "image", "clippath", "rect"}
POLICY = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')

REFS = [
    "the cat sat on the mat", "a dog ran far away", "it rains again today", "she sells sea shells",
    "ten green bottles hang on the wall", "no news is good news",
]  # fmt: skip
GOOD = [ref.replace("the", "a").replace("sea", "ocean") for ref in REFS]
BAD = ["the dog sat", "a cat", "", "he buys sea shells and much more", "nine bottles", "no"]
HYPS = [text for pair in zip(GOOD, BAD, strict=True) for text in pair]
BOTH = [ref for ref in REFS for _ in range(2)]
SYSTEMS = ["amber", "beryl"] * len(REFS)


def scored(hyps: list[str], refs: list[str], systems: list[str] | None, explain: int = 2) -> str:
    metrics = [freight.load("lazy-emd", encoder="hashed"), freight.load("bleu")]
    results = freight.score_together(metrics, hyps, refs)
    return page(results, hyps, refs, systems, metrics, explain)


def toy_corpus(count: int, seed: int = 0) -> ScoredCorpus:
    """So many rows, scored at random by a metric that does not exist."""
    rng = np.random.default_rng(seed)
    scores = {"score": rng.normal(size=count)}
    flags = [(Flag("hyp is empty"),) if k % 1000 == 7 else () for k in range(count)]
    column = Column("score", True, 1.0, 0.0)
    result = Result("toy", (column,), scores, np.zeros(count, int), tuple(flags), "toy")
    segments = [
        (f"hypothesis {k} of many, " + "word " * 20, [f"reference {k}, " + "word " * 20])
        for k in range(count)
    ]
    return ScoredCorpus([result], segments)


def acted(open_page: OpenPage, made: str, acts: str) -> tuple[dict[str, Any], str]:
    """What a script that acts on the page leaves in `out`, and what became of the page."""
    script = f"""<script>
      const all = (selector) => [...document.querySelectorAll(selector)];
      const texts = (selector) => all(selector).map((one) => one.textContent);
      const typed = (name, value) => {{
        const field = document.querySelector(`.filters [name=${{name}}]`);
        field.value = value;
        field.dispatchEvent(new Event("input", {{ bubbles: true }}));
      }};
      const out = {{}};
      {acts}
      out.fetched = performance.getEntriesByType("resource").map((one) => one.name);
      const note = document.createElement("pre");
      note.id = "out";
      note.textContent = JSON.stringify(out);
      document.body.append(note);
    </script></body>"""
    found, messages = open_page(POLICY.sub("", made).replace("</body>", script))
    assert messages == ""
    kept = re.search(r'<pre id="out">(.*?)</pre>', found, re.DOTALL)
    assert kept
    out = json.loads(kept[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert out.pop("fetched") == []
    return out, found


def test_a_page_is_one_file() -> None:
    made = scored(HYPS, BOTH, SYSTEMS)
    found = Elements(made)
    assert all(link.startswith(("data:", "#")) for link in found.links)
    assert not re.search(r"https?://|@import", made)
    assert {"lazy-emd objective↓", "bleu score↑", "amber", "beryl"} <= set(found.text.split("\n"))
    assert "bleu moves nothing, so there is no plan to show" in found.text
    assert "1 flagged" in found.text
    assert f"2 systems × {len(HYPS) // 2} segments" in found.text


def test_a_browser_opens_it_without_complaint(open_page: OpenPage) -> None:
    _, messages = open_page(scored(HYPS, BOTH, SYSTEMS))
    assert messages == ""


def test_of_ten_thousand_rows_a_page_is_drawn(open_page: OpenPage) -> None:
    acts = """
      const numbers = () => texts("table.paged tbody .opener");
      const status = () => document.querySelector(".pager [role=status]").textContent;
      const press = (name) => document.querySelector(`.pager [name=${name}]`).click();
      const shown = () => texts("table.paged tbody td:nth-child(2)");
      const scores = () => shown().map((x) => +x.replace("−", "-"));
      out.first = [numbers().length, numbers()[0], status()];
      press("on");
      out.second = [numbers().length, numbers()[0], status()];
      press("last");
      out.last = [numbers().length, numbers()[49], status()];
      all("table.paged thead button")[1].click();
      out.falling = [scores(), status()];
      all("table.paged thead button")[1].click();
      out.rising = scores();
      typed("text", "HYPOTHESIS 77 OF");
      out.found = [numbers(), status()];
      typed("text", "no such thing");
      out.none = [numbers(), status()];
      typed("text", "");
      all(".pick")[0].click();
      out.flagged = [numbers().length, status(), document.activeElement.name];
    """
    out, _ = acted(open_page, corpus_page(toy_corpus(10_000)), acts)
    assert out["first"] == [50, "1", "1–50 of 10,000"]
    assert out["second"] == [50, "51", "51–100 of 10,000"]
    assert out["last"] == [50, "10000", "9,951–10,000 of 10,000"]
    falling, status = out["falling"]
    assert status == "1–50 of 10,000"
    assert falling == sorted(falling, reverse=True)
    rising = out["rising"]
    assert rising == sorted(rising)
    assert max(rising) < min(falling)
    assert out["found"] == [["78"], "1–1 of 1"]
    assert out["none"] == [[], "no matching segments"]
    assert out["flagged"] == [10, "1–10 of 10", "flag"]


def test_explanations_open_on_demand(open_page: OpenPage) -> None:
    acts = """
      out.before = all(".explanation").length;
      const key = document.querySelector("details[data-key]");
      key.open = true;
      key.dispatchEvent(new Event("toggle"));
      out.opened = [key.querySelectorAll(".explanation .fx").length, key.textContent];
      const row = key.dataset.key.split(":")[1];
      const opener = all("table.paged .opener")[+row];
      opener.click();
      out.row = all("table.paged .opened .explanation").length;
      out.expanded = opener.getAttribute("aria-expanded");
      opener.click();
      out.closed = all("table.paged .opened").length;
      out.without = all("details.extreme:not([data-key])").length;
    """
    out, _ = acted(open_page, scored(HYPS, BOTH, SYSTEMS), acts)
    assert out["before"] == 0
    count, text = out["opened"]
    assert count == 1
    assert "lazy-emd" in text
    assert (out["row"], out["expanded"], out["closed"]) == (1, "true", 0)
    assert out["without"] == 4  # bleu's


def test_systems_are_filtered_and_empty_texts_named(open_page: OpenPage) -> None:
    acts = """
      typed("system", "1");
      out.systems = [...new Set(texts("table.paged tbody td:nth-child(2)"))];
      out.nothing = texts("table.paged tbody em");
    """
    out, _ = acted(open_page, scored(HYPS, BOTH, SYSTEMS), acts)
    assert out == {"systems": ["beryl"], "nothing": ["(empty)"]}


def test_hostile_texts_stay_texts(open_page: OpenPage) -> None:
    tame = [text + "x" * len(HOSTILE) for text in HYPS]
    wild = [text + HOSTILE for text in HYPS]
    refs = [text + "x" * len(HOSTILE) for text in BOTH], [text + HOSTILE for text in BOTH]
    names = SYSTEMS, [name + HOSTILE for name in SYSTEMS]
    acts = """
      all("details").forEach((one) => { one.open = true; one.dispatchEvent(new Event("toggle")); });
      all(".opener").forEach((one) => one.click());
      out.scripts = all("script").length;
      out.images = all("img").length;
      out.title = document.title;
      out.hyp = document.querySelector("table.paged .opened dd").textContent;
    """
    made = scored(wild, refs[1], names[1])
    out, _ = acted(open_page, made, acts)
    assert out["images"] == 0
    assert out["scripts"] == 4  # the page's, two of data, and this test's
    assert out["title"] == "Scores of a corpus"
    assert out["hyp"] == wild[0]
    counts = [
        Counter({k: n for k, n in Elements(one).names.items() if k not in DRAWING})
        for one in (made, scored(tame, refs[0], names[0]))
    ]
    assert counts[0] == counts[1]


class CharacterOverlap:
    """A scorer with nothing but what a scorer has to have."""

    name = "overlap"
    columns = (Column("score", True, 1.0, 0.0),)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        scores = [
            len({*hyp} & {*ref[0]}) / max(len({*ref[0]}), 1)
            for hyp, ref in zip(hyps, refs, strict=True)
        ]
        return Result.of(self, {"score": np.array(scores)})


def test_any_scorer_has_a_page_and_only_some_explain() -> None:
    scorer = CharacterOverlap()
    result = scorer.score(GOOD, [[ref] for ref in REFS])
    text = Elements(page([result], GOOD, REFS, None, [scorer], 2)).text
    assert "overlap score↑" in text
    assert "overlap cannot explain its scores: it has no method explain." in text


def test_of_many_rows_a_sample_is_listed() -> None:
    assert listed_rows(50, (), 100) == list(range(50))
    rows = listed_rows(100_000, [5, 77_778], 100)
    assert len(rows) == 102
    assert {0, 5, 77_778, 99_999} <= set(rows)
    made = corpus_page(toy_corpus(1000), most_rows=100)
    embedded = re.search(r'id="rows">(.*?)</script>', made, re.DOTALL)
    assert embedded
    count = len(json.loads(embedded[1])["rows"])
    assert 100 < count <= 120
    assert f"Only {count} of 1,000 segments are listed" in Elements(made).text


def test_ends() -> None:
    scores = np.array([3.0, np.nan, 1.0, 2.0, 5.0, 4.0])
    assert extreme_rows(scores, True, 2) == ([2, 3], [4, 5])
    assert extreme_rows(scores, False, 2) == ([4, 5], [2, 3])
    assert extreme_rows(scores, True, 9) == ([2, 3], [4, 5])
    assert extreme_rows(np.array([np.nan]), True, 9) == ([], [])


def test_one_segment_and_nothing_scored() -> None:
    column = Column("distance", False, 0.0, np.nan)
    for values in ([0.5], [np.nan], [np.nan, np.nan, np.nan]):
        size = len(values)
        numbers = {"distance": np.array(values)}
        result = Result("toy", (column,), numbers, np.zeros(size, int), ((),) * size, "toy")
        assert "toy distance↓" in page([result], ["a"] * size, ["b"] * size)


def test_what_is_long_is_shortened() -> None:
    long = "word " * 200_000
    made = scored([long, "a b c", "a b"], ["a b c"] * 3, None)
    assert "1,000,000 characters" in made
    assert "1 too long to be explained on this page" in Elements(made).text
    assert len(made) < 1_000_000


def test_a_place_that_cannot_be_written_is_named_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        write_corpus_report(ScoredCorpus([], []), tmp_path / "no" / "page.html")
