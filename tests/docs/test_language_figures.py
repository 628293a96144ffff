"""The table of the language guide is that of the stored figures."""

import languages
from published import printed


def test_the_guide_shows_the_stored_figures() -> None:
    guide = languages.GUIDE.read_text("utf-8")
    assert f"{languages.MARKS[0]}\n\n{languages.table()}\n{languages.MARKS[1]}" in guide


def test_the_reproduction_page_has_them_beside_the_published_ones() -> None:
    rows = printed("lazy-emd", "Table 2").rows
    shown = languages.beside_published({row: values["en-cs"] for row, values in rows.items()})
    page = languages.ROOT / "docs/reproduction.md"
    assert f"\n\n{shown}\n\n" in page.read_text("utf-8")
