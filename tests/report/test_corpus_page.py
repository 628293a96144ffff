"""The page of a corpus, as a file and in a real browser."""

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.flags import Flag
from freight.core.result import Column, Result
from freight.core.scorers import Refs
from freight.data.corpus import RowOrigins
from freight.errors import InvalidInput
from freight.report.corpus import ScoredCorpus, corpus_page, page, write_corpus_report
from freight.report.segments import bucket_edges, extreme_rows, listed_rows, pair_differences
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


@cache
def compared() -> str:
    """The page of two systems, which several tests look at."""
    return scored(HYPS, BOTH, SYSTEMS)


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
      const choose = (name, value) => {{
        const field = document.querySelector(`.pair [name=${{name}}]`);
        field.value = value;
        field.dispatchEvent(new Event("input", {{ bubbles: true }}));
      }};
      const out = {{}};
      const finish = () => {{
        out.fetched = performance.getEntriesByType("resource").map((one) => one.name);
        const note = document.createElement("pre");
        note.id = "out";
        note.textContent = JSON.stringify(out);
        document.body.append(note);
      }};
      (async () => {{
        await drawn;
        {acts}
      }})().finally(finish);
    </script></body>"""
    page = POLICY.sub("", made).replace("</body>", script)
    rendered, messages = open_page(page, "#out")
    assert messages == ""
    kept = re.search(r'<pre id="out">(.*?)</pre>', rendered, re.DOTALL)
    assert kept
    out = json.loads(kept[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert out.pop("fetched") == []
    return out, rendered


def test_a_page_is_one_file() -> None:
    made = compared()
    elements = Elements(made)
    assert all(link.startswith(("data:", "#")) for link in elements.links)
    assert not re.search(r"https?://|@import", made)
    assert {"lazy-emd objective↓", "bleu score↑", "amber", "beryl"} <= set(
        elements.text.split("\n")
    )
    assert "bleu moves nothing, so there is no plan to show" in elements.text
    assert "1 flagged" in elements.text
    assert f"2 systems × {len(HYPS) // 2} segments" in elements.text


def test_a_browser_opens_it_without_complaint(open_page: OpenPage) -> None:
    _, messages = open_page(compared())
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
      out.matches = [numbers(), status()];
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
    assert out["matches"] == [["78"], "1–1 of 1"]
    assert out["none"] == [[], "no matching segments"]
    assert out["flagged"] == [10, "1–10 of 10", "flag"]


def test_explanations_open_on_demand(open_page: OpenPage) -> None:
    acts = """
      out.before = all(".explanation").length;
      const key = document.querySelector("details[data-key]");
      key.open = true;
      key.dispatchEvent(new Event("toggle"));
      await explanation("");
      out.opened = [key.querySelectorAll(".explanation .fx").length, key.textContent];
      const segmentOf = (one) => Math.floor(one.dataset.key.split(":")[1] / 2);
      const segment = segmentOf(key);
      out.explained = all("details[data-key]").filter((one) => segmentOf(one) === segment).length;
      const opener = all("table.paged .opener")[segment];
      opener.click();
      await explanation("");
      out.row = all("table.paged .opened .explanation").length;
      out.expanded = opener.getAttribute("aria-expanded");
      opener.click();
      out.closed = all("table.paged .opened").length;
      out.without = all("details.extreme:not([data-key])").length;
    """
    out, _ = acted(open_page, compared(), acts)
    assert out["before"] == 0
    count, text = out["opened"]
    assert count == 1
    assert "lazy-emd" in text
    assert (out["row"], out["expanded"], out["closed"]) == (out["explained"], "true", 0)
    assert out["without"] == 4  # bleu's


def test_two_systems_are_compared(open_page: OpenPage) -> None:
    acts = """
      const beats = (k) => [...all(".differences table.compared")[k].querySelectorAll(".opener")]
        .map((one) => one.textContent);
      const look = () => [texts(".summary")[0], texts(".beats"), beats(0), beats(1)];
      out.heads = texts("table.paged thead button");
      out.rows = texts("table.paged tbody .opener");
      out.cells = texts("table.paged tbody tr:first-child .number");
      out.row = texts("table.paged tbody tr:nth-child(3) :is(dt, dd)");
      out.first = look();
      out.bars = all(".drawn rect").map((bar) => +bar.getAttribute("height")).filter((x) => x > 0);
      choose("first", "1");
      out.turned = look();
      choose("metric", "1");
      out.bleu = texts("table.paged tbody tr:first-child .number");
    """
    out, _ = acted(open_page, compared(), acts)
    result = freight.load("lazy-emd", encoder="hashed").score(HYPS, BOTH)
    amber, beryl = result["objective"][::2], result["objective"][1::2]
    assert out["heads"] == ["segment", "amber", "beryl", "amber better by", "reference and outputs"]
    assert out["rows"] == [str(k + 1) for k in range(len(REFS))]
    gap = beryl[0] - amber[0]  # lower is better
    assert out["cells"] == [f"{amber[0]:.3f}", f"{beryl[0]:.3f}", f"+{gap:.3f}"]
    names = [text.split(" ")[0] for text in out["row"][::2]]
    assert names == ["reference", "amber", "beryl"]
    assert out["row"][1::2][:2] == [REFS[2], GOOD[2]]
    assert out["row"][5].startswith("(empty)")
    summary, heads, better, worse = out["first"]
    counts = int((amber < beryl - 1e-9).sum()), int((amber > beryl + 1e-9).sum())
    assert summary.startswith(f"Of 6 segments amber scores better in {counts[0]}, beryl in")
    assert heads[0] == "Where amber beats beryl most"
    assert better == [str(k + 1) for k in np.argsort(amber - beryl)[:2]]
    assert len(worse) == min(counts[1], 2)
    assert out["bars"]
    turned, heads, *lists = out["turned"]
    assert turned.startswith(f"Of 6 segments beryl scores better in {counts[1]}, amber in")
    assert heads[1] == "Where amber beats beryl most"
    assert lists == [worse, better]
    assert out["bleu"][0] != out["cells"][1]


def test_errors_are_marked_where_systems_differ_most(open_page: OpenPage) -> None:
    hyps = ["Take 10 mg a day.", "Take 100 mg a day.", "We went home.", "We went home early."]
    refs = ["Take 100 mg a day."] * 2 + ["We went home early."] * 2
    metric = freight.load("lazy-emd", encoder="hashed")
    names = ["amber", "beryl"] * 2
    made = page([metric.score(hyps, refs)], hyps, refs, names, [metric], 1, title="Doses 🦖")
    out, _ = acted(
        open_page,
        made,
        """
      out.title = [document.title, texts("h1")[0]];
      out.marked = all(".differences .compared .fx-w").map((x) => [x.className, x.textContent]);
      out.hint = texts(".differences .hint")[0];
    """,
    )
    assert out["title"] == ["Doses 🦖", "Doses 🦖"]
    assert out["marked"] == [["fx-w fx-major", "10"]]
    assert "Error spans are marked in 2 outputs" in out["hint"]


def test_differences_of_systems_that_share_some_inputs() -> None:
    names = ("a", "b", "c")
    origins = RowOrigins(names, np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 5]))
    scores = np.array([0.1, 0.5, 0.9, 0.6, 0.2, 0.7])
    p_values = np.full((3, 3), 0.25)
    one, lacking, _ = pair_differences(scores, True, origins, p_values, 5)
    assert (one.systems, one.count, one.better, one.worse) == ((0, 1), 2, 1, 1)
    assert (one.first, one.second) == ((2,), (1,))
    assert one.mean == pytest.approx((0.7 - 0.1) / 2)
    assert sum(one.histogram) == 2
    assert one.histogram[-1] == 1  # the largest difference is at the end
    assert (lacking.systems, lacking.count, lacking.mean) == ((0, 2), 0, None)
    falling = pair_differences(scores, False, origins, p_values, 5)[0]
    assert (falling.first, falling.second) == ((1,), (2,))
    equal = pair_differences(np.ones(6), True, origins, p_values, 5)[0]
    assert (equal.better, equal.worse, equal.first, equal.second) == (0, 0, (), ())
    assert sum(equal.histogram) == 0  # equal segments count for neither side


def test_lengths_are_cut_at_round_numbers() -> None:
    lengths = np.arange(5, 205).astype(float)
    assert bucket_edges(lengths) == [5, 40, 80, 120, 160, 205]
    assert bucket_edges(np.full(100, 7.0)) == [7, 8]
    assert bucket_edges(np.array([3.0, 90.0])) == [3, 91]


def test_scores_by_length_are_those_of_the_segments() -> None:
    refs = ["word " * 3] * 40 + ["word " * 30] * 40
    hyps = ["word " * 3] * 40 + ["other " * 30] * 40
    metric = freight.load("chrf")
    texts = hyps * 2, refs * 2
    made = page([metric.score(*texts)], *texts, ["a"] * 80 + ["b"] * 80)
    columns = re.findall(r"<button[^>]*>(\d[^<]*)</button>", made)
    assert columns == ["15–19 (40)", "150–150 (40)"]
    table = made[made.index('id="buckets"') :]
    values = re.findall(r'data-value="([^"]*)"', table[: table.index("</table>")])
    low = metric.score(["other " * 30], ["word " * 30]).system["score"]
    assert [float(value) for value in values] == pytest.approx([100, low] * 2)


def test_hostile_texts_stay_texts(open_page: OpenPage) -> None:
    tame = [text + "x" * len(HOSTILE) for text in HYPS]
    wild = [text + HOSTILE for text in HYPS]
    refs = [text + "x" * len(HOSTILE) for text in BOTH], [text + HOSTILE for text in BOTH]
    names = SYSTEMS, [name + HOSTILE for name in SYSTEMS]
    acts = """
      all("details").forEach((one) => { one.open = true; one.dispatchEvent(new Event("toggle")); });
      all(".opener").forEach((one) => one.click());
      await explanation("");
      out.scripts = all("script").length;
      out.images = all("img").length;
      out.title = document.title;
      out.hyp = texts("table.paged tbody dl dd")[1];
    """
    made = scored(wild, refs[1], names[1])
    out, _ = acted(open_page, made, acts)
    assert out["images"] == 0
    assert out["scripts"] == 4  # the page's, two of data, and this test's
    assert out["title"] == "Systems compared"
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
    count = len(json.loads(gzip.decompress(base64.b64decode(embedded[1])))["rows"])
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
    long = "word " * 40_000
    made = scored([long, "a b c", "a b"], ["a b c"] * 3, None)
    assert "200,000 characters" in made
    assert "1 too long to be explained on this page" in Elements(made).text
    assert len(made) < 200_000


def test_a_place_that_cannot_be_written_is_named_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        write_corpus_report(ScoredCorpus([], []), tmp_path / "no" / "page.html")


def test_a_page_says_what_scores_mean() -> None:
    metric = freight.load("chrf")
    one = metric.score(REFS, GOOD)
    alone = page([one], REFS, GOOD)
    assert one.meaning in alone
    assert "measured on WMT17 and WMT18 into English" in alone
    compared = page([metric.score(HYPS, BOTH)], HYPS, BOTH, SYSTEMS)
    assert "of systems that differ as amber and beryl, people prefer the first in" in compared
    other = page([freight.load("emd", encoder="hashed").score(REFS, GOOD)], REFS, GOOD)
    assert "measured on" not in other
