"""Write docs/reproduction.md from scores: published figures beside ours, and which order holds.

    python benchmarks/reproduction/page.py SCORES -o docs/reproduction.md

SCORES is a folder that scores.py filled. What is not there is said to be missing.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from asking import Store
from layout import plain_table
from scores import SETS
from sections import bary_score, house, lazy_emd, words

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
SECTIONS = (lazy_emd.section, bary_score.section, words.std, words.wrd, house.captions, house.house)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scores", type=Path, metavar="SCORES")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    store = Store(arguments.scores, DATA)
    blocks = [*head(store), *(block for section in SECTIONS for block in section(store))]
    arguments.output.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def head(store: Store) -> Iterator[str]:
    """What the page is, and what it was computed with."""
    yield "# What the papers found, and what comes out here"
    yield (
        "Every table of the four papers that can be computed with the data and the encoders at "
        "hand, the published figures beside ours. The encoders are others than theirs, so it is "
        "the order of the metrics that can be compared, not the numbers. Verdicts are computed "
        "from the tables."
    )
    yield (
        "`make reproduction` computes the scores (on a CPU that takes hours, nearly all of them "
        "for the contextual encoders) and writes this page."
    )
    yield plain_table(
        ["scores", "computed with", "not computed"],
        [
            [name, store.made(name), _missing(store, name)]
            for name in (*store.encoders, *store.vectors)
        ],
    )
    yield (
        "The best of a column is **bold**, the second <u>underlined</u>; – was not computed. A "
        "difference is called significant at the 5 % level, two-sided and without correction for "
        "multiple comparisons: by Williams' test for Pearson's r over segments, else by a paired "
        "permutation test with 1,000 permutations; p-values of several language pairs are combined "
        "by Stouffer's method."
    )
    for metric, count in store.unscored().items():
        yield f"`{metric}` could not score {count} rows of all files: left out for it alone."


def _missing(store: Store, name: str) -> str:
    wanted = SETS if name in (*store.encoders, "words") else SETS[:1]
    gaps = {title: store.partial(name, title) for title in wanted}
    parts = [
        f"{title} ({', '.join(gap)})" if store.holds(name, title) else title
        for title, gap in gaps.items()
        if gap
    ]
    return ", ".join(parts) or "–"


if __name__ == "__main__":
    main()
