"""The tables of the language guide and of the reproduction page are those of the stored figures."""

import json
from pathlib import Path

import pytest

import languages
from published import printed


@pytest.mark.parametrize(
    ("name", "table"), [("figures", languages.table()), ("settings", languages.settings_table())]
)
def test_the_guide_shows_the_stored_figures(name: str, table: str) -> None:
    start, end = languages.marks(name)
    assert f"{start}\n\n{table}\n{end}" in languages.GUIDE.read_text("utf-8")


def test_the_reproduction_page_has_them_beside_the_published_ones() -> None:
    shown = languages.beside_published(printed("lazy-emd", "Table 2").rows)
    page = languages.ROOT / "docs/reproduction.md"
    assert f"\n\n{shown}\n\n" in page.read_text("utf-8")


def test_the_sentence_beside_them_is_true() -> None:
    """Recall above precision, and Lazy-EMD above EMD, printed and ours."""
    published = printed("lazy-emd", "Table 2").rows
    stored = json.loads(languages.RESULTS.read_text("utf-8"))
    for pair in languages.FROM_ENGLISH:
        ours = stored[f"WMT18 {pair}"]["τ"]
        for more, less in (("R_BERT", "P_BERT"), ("Lazy-EMD", "EMD")):
            assert published[more][pair] > published[less][pair]
            assert ours[languages.TABLE_2[more]] > ours[languages.TABLE_2[less]]


def test_preferences_made_from_ratings_are_the_official_ones(data: Path) -> None:
    ratings = languages.read("WMT18 en-cs")
    texts = [row["hyp"] for row in ratings.rows]
    made = sorted((texts[better], texts[worse]) for better, worse in ratings.preferences)
    official = languages.rows_of("wmt18-darr.en-cs", "en-cs")
    assert made == sorted((row["better"], row["worse"]) for row in official)
