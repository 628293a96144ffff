"""The table of the language guide is that of the stored figures."""

import languages


def test_the_guide_shows_the_stored_figures() -> None:
    guide = languages.GUIDE.read_text("utf-8")
    assert f"{languages.MARKS[0]}\n\n{languages.table()}\n{languages.MARKS[1]}" in guide
