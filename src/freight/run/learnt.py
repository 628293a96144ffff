"""What metrics learn from the input before they can score, kept so that it is learnt once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from freight.blend import Blend
from freight.data import Corpus
from freight.frequencies import Frequencies
from freight.metric import Metric
from freight.scoring import Scorer

LEARNT = "learnt.json"
SOURCE = "given texts"


def fitted(metrics: Sequence[Scorer], corpus: Corpus) -> list[Scorer]:
    """Each metric, having learnt from the input what it needs."""
    refs, hyps = _Side(corpus, refs=True), _Side(corpus, refs=False)
    return [one.fit(refs, hyps, SOURCE) if one.needs_fitting else one for one in metrics]


def written(metrics: Sequence[Scorer]) -> bytes:
    """The frequencies that these metrics know, as a file."""
    tables = [[_tables(part) for part in metric.parts] for metric in metrics]
    return json.dumps(tables).encode() + b"\n"


def restored(metrics: Sequence[Scorer], content: bytes) -> list[Scorer]:
    """Each metric, knowing what is in such a file; one that needs nothing stays as it is."""
    tables = json.loads(content)
    return [
        _taught(one, found) if one.needs_fitting else one
        for one, found in zip(metrics, tables, strict=True)
    ]


def restorable(metrics: Sequence[Scorer]) -> bool:
    """Whether what they learn can be written down."""
    return all(isinstance(one, (Metric, Blend)) for one in metrics if one.needs_fitting)


@dataclass(frozen=True)
class _Side:
    """All texts of one side, as often as they are wanted."""

    corpus: Corpus
    refs: bool

    def __iter__(self) -> Iterator[str]:
        if self.refs:
            return self.corpus.references()
        return (hyp for hyp, _ in self.corpus)


def _tables(part: Metric) -> list[dict[str, Any] | None]:
    idfs = [side.idf if side else None for side in (part.weighting, part.ref_weighting)]
    return [asdict(idf.table) if idf and idf.table else None for idf in idfs]


def _taught(scorer: Scorer, tables: Sequence[Any]) -> Scorer:
    if isinstance(scorer, Blend):
        parts = [_part(*both) for both in zip(scorer.parts, tables, strict=True)]
        return replace(scorer, parts=tuple(parts))
    assert isinstance(scorer, Metric)
    return _part(scorer, tables[0])


def _part(metric: Metric, tables: Sequence[dict[str, Any] | None]) -> Metric:
    hyp, ref = (_frequencies(table) for table in tables)
    if hyp:
        metric = replace(metric, weighting=metric.weighting.fitted(hyp))
    if ref and metric.ref_weighting:
        metric = replace(metric, ref_weighting=metric.ref_weighting.fitted(ref))
    return metric


def _frequencies(table: dict[str, Any] | None) -> Frequencies | None:
    if table is None:
        return None
    counted = {name: tuple(table[name]) for name in ("ids", "counts")}
    return Frequencies(**{**table, **counted})
