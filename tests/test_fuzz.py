"""Texts that nobody would write can be scored, explained and shown in a page.

`FREIGHT_FUZZ` is the number of texts.
"""

import base64
import gzip
import json
import os
import re
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import pytest

import freight
from freight.core.result import Result
from freight.core.scorers import PipelineScorer
from freight.explain.explanation import Explanation
from freight.report.corpus import page
from freight.report.explanation import fragment
from pages import Elements

COUNT = int(os.environ.get("FREIGHT_FUZZ", "500"))
BATCH = 250
PIECES = [
    "the cat", "sat", "on", "a mat", ".", " ", "\t", "\n", "\r\n",
    "\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\u200b", "\u00ad",
    "\ud800", "\udfff", "\ud83d", "\U0010ffff", "שלום עולם", "مرحبا", "\u202e", "\u2066abc\u2069",
    "e\u0301\u0327", "a" + "\u0308" * 40, "👩\u200d👩\u200d👧", "🦖", "火车晚点了", "ไม่มีช่องว่าง",
    "<blink>", "</p>", "<iframe src=x>", "</script>", "<script>alert(1)</script>",
    "<!--", "-->", "]]>", "<![CDATA[",
    "&amp;", "&#0;", "&lt", "<svg onload=alert(1)>", "</template>", "'\" onmouseover=\"x",
    "javascript:alert(1)", "{{ 7*7 }}", "{% raw %}", "${x}", "\\u003c", "\\", "%s", "$\\frac{1$",
    "0", "-1", "1e309", "nan", "inf", "None", "null", "true", "[]", "{}", "NaN%",
]  # fmt: skip
DRAWING = {"svg", "g", "defs", "path", "use", "text", "image", "clippath", "rect", "line"}
TEMPLATES = files("freight.report").joinpath("templates").iterdir()
SOURCES = "".join(one.read_text("utf-8") for one in TEMPLATES if one.name.endswith(".html"))
OURS = {tag.lower() for tag in re.findall(r"<(\w+)", SOURCES)} | DRAWING


def texts(count: int, seed: int) -> Iterator[str]:
    """Pieces at random, some of them characters from anywhere; a few texts are a megabyte."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        if k % 200 == 77:
            yield ("x" * 1000 + " ") * 1000 if k % 400 == 77 else "é" * 2**20
            continue
        parts = []
        for _ in range(int(rng.integers(0, 9))):
            anywhere = rng.random() < 0.3
            point = int(rng.choice([128, 0x3000, 0xD800, 0xE000, 0x110000]))
            odd = chr(int(rng.integers(max(0, point - 900), point)))
            parts.append(odd if anywhere else PIECES[int(rng.integers(len(PIECES)))])
        yield "".join(parts) if rng.random() < 0.5 else " ".join(parts)


def check_page(made: str, our_scripts: int) -> Elements:
    elements = Elements(made)
    assert set(elements.names) <= OURS
    assert elements.names["script"] == our_scripts
    assert all(link.startswith(("data:", "#")) for link in elements.links)
    return elements


def check_result(result: Result) -> None:
    """Every text has a finite score, or a flag that says why not; the scores tell texts apart."""
    for column in result.columns:
        values = result[column.name]
        assert len(np.unique(values[np.isfinite(values)])) > 1
        assert not np.isinf(values).any()
        for k in np.flatnonzero(np.isnan(values)):
            assert result.flags[k]


def check_explanation(metric: PipelineScorer, hyp: str, ref: str, score: float) -> None:
    explanation: Explanation = metric.explain(hyp, ref)
    column = explanation.column.name
    assert explanation.scores[column] == pytest.approx(score, abs=1e-5, nan_ok=True)
    json.dumps(explanation.to_dict(), allow_nan=False)
    drawn = Elements(fragment(explanation))
    assert set(drawn.names) <= OURS - {"script", "style"}
    assert not drawn.links or all(link.startswith("#") for link in drawn.links)


@pytest.mark.parametrize("batch", range(-(-COUNT // BATCH)))
def test_anything_can_be_scored_explained_and_reported(batch: int) -> None:
    names = [("lazy-emd", "emd"), ("bert-score", "std"), ("freight", "wrd-score")][batch % 3]
    metrics = [freight.load(name, encoder="hashed") for name in names]
    check(metrics, list(texts(BATCH, batch)), explain=3)


def test_anything_goes_through_the_embedded_encoder() -> None:
    hyps = [text for text in texts(max(40, COUNT // 100), 99) if len(text) < 2000]
    check([freight.load("lazy-emd"), freight.load("freight")], hyps, explain=2)


def test_anything_can_be_scored_by_its_letters_and_words() -> None:
    hyps = [text for text in texts(max(40, COUNT // 20), 98) if len(text) < 2000]
    names = "bleu", "chrf", "rouge-l", "ter", "wer", "character"
    check([freight.load(name) for name in names], hyps, explain=0)


def check(metrics: list[PipelineScorer], hyps: list[str], explain: int) -> None:
    refs = hyps[1:] + hyps[:1]
    systems = [text[:20] for text in hyps[:3]] * len(hyps)
    results = freight.score_together(metrics, hyps, refs)
    for metric, result in zip(metrics, results, strict=True):
        check_result(result)
        short = [k for k in range(len(hyps)) if max(len(hyps[k]), len(refs[k])) < 500]
        for k in short[:: len(short) // explain] if explain else ():
            check_explanation(metric, hyps[k], refs[k], result[result.columns[0].name][k])
    made = page(results, hyps, refs, systems[: len(hyps)], metrics, explain)
    sent = made.encode("utf-8", "replace").decode()
    check_page(sent, 3)
    for name in ("rows", "explanations"):
        block = re.search(
            rf'<script type="application/gzip" id="{name}">(.*?)</script>', sent, re.DOTALL
        )
        assert block
        data = json.loads(gzip.decompress(base64.b64decode(block[1], validate=True)))
        if name == "explanations":
            assert all(set(Elements(one).names) <= OURS - {"script"} for one in data.values())


def test_two_texts_too_long_for_each_other_are_refused() -> None:
    long = "word " * 30_000
    metric = freight.load("lazy-emd", encoder="hashed")
    with pytest.raises(freight.InvalidInput, match="30,000 units are too long to be matched"):
        metric.score([long], [long])
    assert np.isfinite(metric.score([long[:25_000]], ["a word"])["transport"]).all()
