"""Write docs/reproduction.md from scores: published figures beside ours, and which claims hold.

    python benchmarks/reproduction/page.py SCORES

SCORES is a folder that scores.py filled. What is not there is said to be missing. Also writes the
page's pictures, and benchmarks/results/agreement.json, from which other pages take their figures.
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

from asking import Store
from claims import claims_table
from layout import plain_table
from published import PAPERS
from questions import column, scored
from scores import SETS, STRINGS, WORDS
from sections import bary_score, house, lazy_emd, std, wrd_score

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FREIGHT_DATA", "../shared"))
PAPER_SECTIONS = dict(zip(PAPERS, (lazy_emd, bary_score, std, wrd_score), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scores", type=Path, metavar="SCORES")
    parser.add_argument("-o", "--output", type=Path, default=ROOT, help="the project's folder")
    arguments = parser.parse_args()
    store, root = Store(arguments.scores, DATA), arguments.output
    page = "\n\n".join(blocks(store)) + "\n"
    (root / "docs/reproduction.md").write_text(page, encoding="utf-8")
    for name, picture in bary_score.pictures(store).items():
        (root / "docs/figures" / name).write_text(picture, encoding="utf-8")
    figures = json.dumps(agreement(store), indent=1, ensure_ascii=False)
    (root / "benchmarks/results/agreement.json").write_text(figures + "\n", encoding="utf-8")


def blocks(store: Store) -> Iterator[str]:
    """The page, paragraph by paragraph."""
    yield from head(store)
    yield "## All claims"
    yield (
        "Every claim of the four papers that figures or mathematics can decide, in the paper's "
        "order and our words. **holds in part** means with some encoders or sets and not with "
        "others; **untested**, that data or models are missing."
    )
    for paper, name in PAPERS.items():
        yield f"### Claims of {name}"
        yield claims_table(PAPER_SECTIONS[paper].claims(store))
    for section in PAPER_SECTIONS.values():
        yield from section.section(store)
    yield from house.captions(store)
    yield from house.house(store)


def head(store: Store) -> Iterator[str]:
    """What the page is, and what it was computed with."""
    yield "# What the papers found, and what comes out here"
    yield (
        "Every table of the four papers, with our figures wherever the data are at hand. The "
        "encoders are others than theirs, so it is the order of the metrics that can be compared, "
        "not the numbers. Verdicts are computed from the tables."
    )
    yield (
        "`make reproduction` computes the scores (on a CPU that takes hours, nearly all of them "
        "for the contextual encoders) and writes this page. Each language pair is scored by "
        "itself: IDF is fitted on its own references."
    )
    yield plain_table(
        ["scores", "computed with", "not computed"],
        [
            [name, store.made(name), _missing(store, name)]
            for name in (*store.encoders, *store.vectors, STRINGS)
        ],
    )
    yield (
        "The best of a column is **bold**, the second <u>underlined</u>, for each source by "
        "itself; – was not computed, ? marks a published cell that looks damaged in print. A "
        "difference is called significant at the 5 % level, two-sided and without correction for "
        "multiple comparisons: by Williams' test for Pearson's r over segments, else by a paired "
        "permutation test with 1,000 permutations; p-values of several language pairs are combined "
        "by Stouffer's method."
    )
    unscored = [f"`{metric}` {count}" for metric, count in store.unscored().items()]
    if unscored:
        yield (
            "Rows that a metric could not score are left out for it alone; over all files: "
            f"{', '.join(unscored)}."
        )


def _missing(store: Store, name: str) -> str:
    wanted = SETS if name in (*store.encoders, WORDS, STRINGS) else SETS[:1]
    return ", ".join(title for title in wanted if not store.holds(name, title)) or "–"


def agreement(store: Store) -> dict[str, object]:
    """Every figure of the last section: by encoder, metric and column."""
    return {
        "source": "docs/reproduction.md, section 'The default metric'",
        "encoders": {
            encoder: {
                label: {
                    name: round(column(store, encoder, name)[label], 3)
                    for name in scored(store, encoder)
                    if label in column(store, encoder, name)
                }
                for label in house.rows_of(store, encoder)
            }
            for encoder in store.encoders
        },
    }


if __name__ == "__main__":
    main()
