"""Captions, and the default metric against all others."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from asking import Store, combined_p
from layout import bullets, listed, number, p_value, plain_table, table
from questions import CAPTIONS, column, panels, scored
from scores import MORE_LEXICAL

HOUSE = "freight:score"
SEEDS = ("lazy-emd:", "bary-score", "wrd-score", "std:distance")
"""What the labels of the four published metrics start with; with settings not theirs, none."""

LEVEL = 0.05


class Contest(NamedTuple):
    """The default metric beside the best other one, with the p that it is ahead, or behind."""

    column: str
    own: float
    other: str
    best: float
    others: int
    p: float
    behind: float


def captions(store: Store) -> Iterator[str]:
    """Flickr8k, every metric, an encoder a column."""
    yield "## Captions"
    encoders = [encoder for encoder in store.encoders if store.holds(encoder, CAPTIONS.set)]
    if not encoders:
        yield "Not computed."
        return
    yield (
        "Flickr8k-Expert, Kendall's τ with the experts' mean over single captions; the best of "
        "five references counts. Of the four papers BaryScore alone speaks of captions, of "
        "MSCOCO's "
        "at system level ([above](#figure-6-captions-system-level))."
    )
    by_encoder = {encoder: store.ask(encoder, CAPTIONS).values for encoder in encoders}
    yield table("metric", _rows(by_encoder.values()), by_encoder)
    yield bullets(f"{encoder}: {_captioning(values)}" for encoder, values in by_encoder.items())


def _captioning(values: dict[str, float]) -> str:
    first = ", ".join(f"{shown(label)} {number(values[label])}" for label in _ranked(values)[:4])
    others = [label for label in ("bert-score:f1", "mover-score:similarity") if label in values]
    own = values["bary-score:distance"]
    places = [
        f"{'above' if own > values[x] else 'below'} {shown(x)} ({number(values[x])})"
        for x in others
    ]
    return f"the first four are {first}; `bary-score` ({number(own)}) is {listed(places)}."


def house(store: Store) -> Iterator[str]:
    """All metrics by encoder, and whether the lead of `freight` is significant."""
    yield "## The default metric"
    yield (
        "`freight` against every other metric. WMT15 and WMT17 are means over the pairs to "
        "English, over segments; RS is REALSumm. The others have their published settings; the "
        "settings of `freight` were chosen with WMT15 in view and a look at other sets of these "
        "([how](metrics/freight.md)), so its figures may be optimistic. The best other metric, on "
        "the other hand, is picked on the same rows that it is tested on."
    )
    for encoder in store.encoders:
        columns = {name: column(store, encoder, name) for name in scored(store, encoder)}
        yield f"**{encoder}**"
        yield table("metric", _rows(columns.values()), columns)
    yield (
        "p-values below are one-sided: the null hypothesis is that `freight` and the best other "
        "metric agree equally well with people, the alternative that `freight` agrees better. They "
        "come from Williams' test for r over segments, else from paired permutation tests with "
        "1,000 permutations of inputs (of systems on system level), and are combined over language "
        "pairs by Stouffer's method. A p-value near 1 means that `freight` agrees worse."
    )
    yield "### Against the best of the four published metrics"
    yield (
        "`lazy-emd` with the paper's penalties, `bary-score` with and without IDF, `wrd-score` on "
        "the encoder and on word vectors, `std` on word vectors."
    )
    yield from _compared({e: list(_contests(store, e, SEEDS)) for e in store.encoders})
    yield "### Against the best other metric of all"
    yield from _compared({e: list(_contests(store, e)) for e in store.encoders})


def _compared(contests: dict[str, list[Contest]]) -> Iterator[str]:
    for encoder, several in contests.items():
        yield f"**{encoder}**"
        body = [
            [c.column, number(c.own), shown(c.other), number(c.best), str(c.others), p_value(c.p)]
            for c in several
        ]
        yield plain_table(["column", "`freight`", "best other", "", "of", "p"], body)
    yield "Verdict:"
    yield bullets(f"{encoder}: {_summary(several)}" for encoder, several in contests.items())


def shown(label: str) -> str:
    """A metric's name, with its column where it has several."""
    metric, _, name = label.partition(":")
    several = metric.startswith(("lazy-emd", "bert-score"))
    return f"`{metric}` {name}" if several else f"`{metric}`"


def rows_of(store: Store, encoder: str) -> dict[str, str]:
    """By label how a metric is called, of all that have a row."""
    return _rows(column(store, encoder, name) for name in scored(store, encoder))


def _rows(columns: Iterable[dict[str, float]]) -> dict[str, str]:
    return {label: shown(label) for values in columns for label in values if not _again(label)}


def _again(label: str) -> bool:
    """What has a row already: the default penalties, and STD's other columns."""
    metric, _, name = label.partition(":")
    other = metric == "std" and name != "distance"
    return other or metric in _ELSEWHERE or metric.startswith("std(")


_ELSEWHERE = frozenset({"lazy-emd(.23,.31)", *MORE_LEXICAL})
"""Rows of other tables alone, scored on a few sets; for English the first is the default."""


def _ranked(values: dict[str, float]) -> list[str]:
    return sorted(values, key=values.__getitem__, reverse=True)


def _contests(store: Store, encoder: str, among: tuple[str, ...] = ("",)) -> Iterator[Contest]:
    """With the best of those whose label starts so."""
    for name in scored(store, encoder):
        values = column(store, encoder, name)
        if HOUSE not in values:
            continue
        rivals = (x for x in _ranked(values) if x.startswith(among))
        others = [x for x in rivals if x != HOUSE and not _again(x)]
        best, asked = others[0], panels(store, encoder, name)
        ps = combined_p(asked, HOUSE, best), combined_p(asked, best, HOUSE)
        yield Contest(name, values[HOUSE], best, values[best], len(others), *ps)


def _summary(several: list[Contest]) -> str:
    ahead = [c for c in several if c.own > c.best]
    significant = [c.column for c in ahead if c.p < LEVEL]
    lost = [f"{c.column} ({shown(c.other)})" for c in several if c.behind < LEVEL]
    won = f"first in {len(ahead)} of {len(several)} columns, significantly (p < {number(LEVEL, 2)})"
    return (
        f"{won} in {len(significant)}{f': {listed(significant)}' if significant else ''}. "
        f"Significantly behind the best other one: {listed(lost) if lost else 'in none'}."
    )
