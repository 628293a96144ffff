"""Every block of code in the documentation runs, or says why it does not."""

from pathlib import Path
from typing import Any

import pytest

import written
from freight.errors import InvalidInput
from written import Block, blocks_of

CODE = {page: blocks_of(page) for page in written.PAGES}
RUN = [page for page, blocks in CODE.items() if any(block.reason is None for block in blocks)]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(written.ROOT)))
def test_the_code_of_a_page_runs(page: Path, desk: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in CODE[page]:
        if block.reason is None:
            written.run(block, names)


def test_there_is_code_to_run() -> None:
    names = {page.name for page in RUN}
    assert {"tutorial.md", "choosing.md", "own-metric.md", "judging.md", "README.md"} <= names


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (Block("sh", "rm -r everything\n", None, None), AssertionError),
        (Block("sh", "make nothing\n", None, None), AssertionError),
        (Block("sh", "pip install 'freight[nothing]'\n", None, None), AssertionError),
        (
            Block("sh", "freight score missing.txt examples/ref.txt -m chrf\n", None, None),
            InvalidInput,
        ),
        (Block("sh", "freight version\n", "freight of long ago\n", None), AssertionError),
        (Block("python", "print(1 + 1)\n", "3\n", None), AssertionError),
        (Block("python", "assert 1 > 2\n", None, None), AssertionError),
        (Block("python", "missing\n", None, None), NameError),
    ],
)
def test_what_is_not_true_is_noticed(block: Block, error: type[Exception], desk: Path) -> None:
    with pytest.raises(error):
        written.run(block, {})


def test_reasons_are_given_for_what_is_not_run() -> None:
    skipped = [block for blocks in CODE.values() for block in blocks if block.reason is not None]
    assert all(len(block.reason or "") > 10 for block in skipped)
    assert len(skipped) < 20
