"""How a command line names metrics and columns."""

import pytest

from freight.cli.options import split_column


@pytest.mark.parametrize(
    ("text", "metric", "column"),
    [
        ("emd", "emd", None),
        ("emd:transport", "emd", "transport"),
        ("emd:", "emd", ""),
        ("my.py:serve", "my.py:serve", None),
        ("a/b.c/my.py:serve:transport", "a/b.c/my.py:serve", "transport"),
        (r"C:\\my.py:serve", r"C:\\my.py:serve", None),
    ],
)
def test_a_name_is_split_from_its_column(text: str, metric: str, column: str | None) -> None:
    assert split_column(text) == (metric, column)
