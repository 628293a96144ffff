"""What a result says of itself: a short repr, a table for notebooks, and a citation."""

import shutil
from pathlib import Path

import pytest

import freight
from freight.core.result import cite
from freight.encoders.transformer import Transformer

HYPS, REFS = ["The boy in a coat.", ""], ["The young man in a slicker.", "A cat sat."]
FULL = (
    "freight|encoder:{encoder}|layers:3,4,5,6|units:tokens|weighting:Mass(pooling=standardised)"
    "|references:best|version:0.1.0"
)
EMBEDDED = "embedded@sha256-53aa51172d14.d9e070/float32/on:cpu*2/padded/512"


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        (EMBEDDED, "all-MiniLM-L6-v2|L3-6"),
        ("embedded@sha256-53aa.d9+mine*0.5-8d2f/float32/on:cuda/packed/9", None),
        ("multilingual@sha256-cda1fc089b4d.7bdd5a/float32/on:mps/padded/1", None),
        ("intfloat/e5-small@ab12/float32/on:cpu*1/padded/512", "e5-small|L3-6"),
        ("folder@sha256-440103ce1b64.bee2a5/float32/on:cpu*1/padded/512", "440103ce1b64|L3-6"),
        ("static@sha256-040f4f52a9ed/en/lower", "040f4f52a9ed"),
        (f"distilled({EMBEDDED},layer 0)/en/lower", "distilled:all-MiniLM-L6-v2"),
        ("letters", "letters|L3-6"),
    ],
)
def test_a_citation_has_the_encoder_by_its_public_name(encoder: str, name: str | None) -> None:
    metric, *parts, release, digest = cite(FULL.format(encoder=encoder)).split("|")
    assert (metric, release, len(digest)) == ("freight", "v0.1.0", 7)
    assert name is None or "|".join(parts) == name
    assert ("+mine*0.5-8d2f" in parts[0]) == ("+mine" in encoder)


def test_where_an_encoder_runs_is_not_cited() -> None:
    here, there = (
        cite(FULL.format(encoder=f"embedded@sha256-53aa.d9/float32/on:{where}"))
        for where in ("cpu*2/padded/512", "cuda/packed/65536")
    )
    assert here == there
    assert cite(FULL.format(encoder="embedded@sha256-53aa.d9/bfloat16/on:cuda/packed/9")) != here
    inner = "distilled(embedded@sha256-53aa.d9/float32/on:{},layer 0)/en/lower"
    words = [FULL.format(encoder=inner.format(where)) for where in ("cpu*2/padded/512", "cuda")]
    assert cite(words[0]) == cite(words[1])
    assert cite(words[0]) != cite(words[0].replace("layer 0", "layer 1"))


def test_every_choice_of_a_score_is_in_the_hash() -> None:
    metric = freight.load("lazy-emd", encoder="hashed")
    other = freight.load("lazy-emd", encoder="hashed", hyp=0.24)
    assert metric.score(HYPS, REFS).citation == cite(metric.signature)
    assert cite(metric.signature)[:-7] == cite(other.signature)[:-7]
    assert cite(metric.signature) != cite(other.signature)
    fitted = freight.load("yisi-1", encoder="hashed")
    assert cite(fitted.fit(REFS).signature) != cite(fitted.fit(HYPS).signature)


def test_other_signatures() -> None:
    assert cite("mine") == "mine"
    assert cite("bleu|library:sacrebleu(tok:13a,version:2.6.0)|version:0.1.0").startswith(
        "bleu|sacrebleu|v0.1.0|#"
    )
    parts = "std|parts:Metric(name=std-1,encoder=letters,layers=0,units=words)|version:0.1.0"
    assert cite(parts).startswith("std|letters|L0|v0.1.0|#")
    assert cite(parts.replace("0,units", "2,4,units")).startswith("std|letters|L2,4|")


def test_a_folder_is_named_by_its_hash(tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    first, second = Transformer(str(tiny_model)).identity, Transformer(str(copy)).identity
    assert first == second
    assert first.startswith("folder@sha256-")


def test_a_result_is_shown_in_short() -> None:
    result = freight.load("lazy-emd", encoder="hashed").score(HYPS, REFS)
    shown = repr(result)
    assert shown.startswith("Result(lazy-emd, 2 segments, objective=")
    assert shown.endswith(", 1 flagged)")
    assert len(shown) < 120
    picture = freight.load("emd", encoder="hashed").explain(HYPS[0], REFS[0])
    named = f"emd transport={picture.score:.4g}"
    assert repr(picture) == f"Explanation({named}, '{HYPS[0]}', '{REFS[0]}')"


def test_a_notebook_shows_scores_and_citation() -> None:
    result = freight.load("lazy-emd", encoder="hashed").score(HYPS, REFS)
    shown = result._repr_html_()
    assert f"<td>{result.system['objective']:.4f}</td>" in shown
    assert "objective↓" in shown
    assert f"<code>{result.citation}</code>" in shown
    hostile = freight.Result.of(
        freight.load("chrf"), {"score": [1.0]}, signature="<script>alert(1)</script>"
    )
    assert "<script>" not in hostile._repr_html_()


def test_a_notebook_without_widgets_has_a_plain_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("freight.core.pipeline.find_spec", lambda name: None)
    freight.score(["A cat."], ["A dog."], metric="emd", encoder="hashed", progress=True)
    assert "1/1" in capsys.readouterr().err
