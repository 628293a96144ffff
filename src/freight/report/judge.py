"""The page of a study: agreement with people, its significance, and the largest disagreements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from freight.data.judgements import Judgements
from freight.judge.study import Agreement, Study
from freight.report import plots
from freight.report.formatting import decimals
from freight.report.pages import check_page, render, write_page
from freight.report.tables import (
    column_label,
    describe_lead,
    higher_is_better,
    level_name,
    sentinel_rows,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
)
from freight.transport.types import Array

# What keeps pages small.
_CASES = 4  # disagreements of each kind
_DETAILS = 60  # metrics shown in detail, over all sets and criteria together
_CHARACTERS = 700  # shown of a text
_CAPTIONS = {
    "systems": "Each point is the mean of a system. The line is fitted by least squares.",
    "texts": "Each point is a text (of very many, a sample). The line is fitted by least squares.",
    "pairs": "By how much a metric prefers the text that people preferred: left of 0 it ranks the"
    " pair wrongly.",
}


@dataclass(frozen=True)
class Detail:
    """One metric on one set: its plot, and its largest disagreements with people and a rival."""

    metric: str
    picture: str
    against_people: tuple[Disagreement, ...]
    rival: str
    against_rival: tuple[Disagreement, ...]


@dataclass(frozen=True)
class SetView:
    """One set by one criterion."""

    label: str
    agreement: str
    significance: str
    between_metrics: str
    details: tuple[Detail, ...]


@dataclass(frozen=True)
class Lead:
    """The metric that agrees best, its agreement, and whether its lead is significant."""

    best: str
    agreement: str
    significance: str


def write_judge_report(study: Study, path: Path) -> None:
    """Write the page of a study, one file that needs no network."""
    check_page(path)
    keys = set_criteria(study)
    shown = keys[: max(1, _DETAILS // max(1, len(study.metrics)))]
    page = render(
        "judge.html",
        title="Metrics against people",
        statistic=statistic_name(study),
        higher=higher_is_better(study),
        lead=_lead(study),
        facts=_facts(study),
        warnings=study.warnings,
        notes=study.notes,
        columns=table_columns(study),
        rows=table_rows(study),
        sentinels=sentinel_rows(study),
        intervals=[_intervals(study, *key) for key in keys],
        views=[_set_view(study, *key) for key in shown],
        left_out=[column_label(study, *key) for key in keys[len(shown) :]],
        humans=list(_between_humans(study)),
        pictures=_CAPTIONS[_point_kind(study)],
        negated=[metric for metric in study.metrics if metric in study.negated],
        signatures=study.signatures,
    )
    write_page(page, path)


def _point_kind(study: Study) -> str:
    if study.level == "system":
        return "systems"
    return "texts" if any(human for _, human in set_criteria(study)) else "pairs"


def _facts(study: Study) -> list[str]:
    rows = sum(len(one.hyps) for one in study.sets)
    pairs = sum(len(one.preferences) for one in study.sets if one.preferences is not None)
    numbers = len(study.metrics), len(study.sets), rows, pairs
    counts = zip(numbers, ("metric", "set", "text", "pair"), strict=True)
    facts = [f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
    return [level_name(study), *facts]


def _lead(study: Study) -> Lead:
    ranked = _ranked(study)
    if not ranked:
        return Lead("", "", "")
    best, value = ranked[0]
    keys = set_criteria(study)
    sets, humans = ({key[k] for key in keys} for k in (0, 1))
    noun = "sets" if len(humans) == 1 else "criteria" if len(sets) == 1 else "columns"
    where = f"on average over {len(keys)} {noun}" if len(keys) > 1 else f"on {keys[0][0]}"
    significance = _lead_significance(study, best, ranked[1][0]) if len(ranked) > 1 else ""
    return Lead(best, f"{statistic_name(study)} {decimals(value)} {where}", significance)


def _lead_significance(study: Study, best: str, second: str) -> str:
    places = study.metrics.index(best), study.metrics.index(second)
    p = np.array([float(matrix[places]) for matrix in study.significance.values()])
    if len(p) == 0:
        return f"The second best is {second}."
    if len(p) == 1:
        return describe_lead(second, float(p[0]))
    wins = int((p < 0.05).sum())
    return (
        f"Its lead over {second}, the second best, is significant (one-sided p < 0.05) in"
        f" {wins or 'none'} of them."
    )


def _ranked(study: Study) -> list[tuple[str, float]]:
    """Metrics that have an average, with it, the best first."""
    sign = -1 if higher_is_better(study) else 1
    averages = [(row.name, row.cells[-1].value) for row in table_rows(study) if row.cells]
    return sorted((x for x in averages if not np.isnan(x[1])), key=lambda x: sign * x[1])


def _metric_order(study: Study) -> list[str]:
    """Every metric, the best on average first."""
    return list(dict.fromkeys([*(name for name, _ in _ranked(study)), *study.metrics]))


def _intervals(study: Study, name: str, human: str, prefix: str = "") -> str:
    agreements = {a.metric: a for a in study.agreements if (a.set, a.human) == (name, human)}
    order = [metric for metric in _metric_order(study) if metric in agreements]
    ordered = [agreements[metric] for metric in order]
    value, low, high = np.array([(a.value, a.low, a.high) for a in ordered]).T
    title = prefix + column_label(study, name, human)
    return plots.intervals(order, value, low, high, title, _limits(study))


def _limits(study: Study) -> tuple[float, float]:
    """A common scale of all plots, with room for every interval."""
    numbers = np.array([(a.value, a.low, a.high) for a in study.agreements])
    low, high = float(np.nanmin(numbers, initial=1)), float(np.nanmax(numbers, initial=-1))
    room = 0.06 * max(high - low, 0.01)
    return (low - room, high + room) if low < high else (-1, 1)


def _set_view(study: Study, name: str, human: str) -> SetView:
    label = column_label(study, name, human)
    order = _metric_order(study)
    index = np.ix_(*[[study.metrics.index(metric) for metric in order]] * 2)
    details = tuple(_details(study, name, human, order))
    p, r = study.significance.get((name, human)), study.between_metrics.get(name)
    agreement = significance = between_metrics = ""
    if p is not None and len(order) > 1:
        title = f"one-sided p-values, row better than column, {label}"
        significance = plots.significances(p[index], order, title)
        agreement = _intervals(study, name, human, "agreement, ")
    if r is not None and len(order) > 1:
        title = f"correlation between metrics, {label}"
        between_metrics = plots.correlations(r[index], order, title)
    return SetView(label, agreement, significance, between_metrics, details)


def _details(study: Study, name: str, human: str, order: list[str]) -> Iterator[Detail]:
    judged = next(one for one in study.sets if one.name == name)
    agreements = {a.metric: a for a in study.agreements if (a.set, a.human) == (name, human)}
    for metric in order:
        if metric not in agreements:
            continue
        rival = next((other for other in order if other != metric), "")
        scores = study.scores[metric, name]
        against_rival: tuple[Disagreement, ...] = ()
        if rival and (rival, name) in study.scores:
            pair = scores, study.scores[rival, name]
            against_rival = disagreements(judged, (metric, rival), pair, _CASES)
        plot = _agreement_plot(study, judged, agreements[metric], scores)
        against_people = _against_people(judged, metric, human, scores)
        yield Detail(metric, plot, against_people, rival, against_rival)


def _against_people(
    judged: Judgements, metric: str, human: str, scores: Array
) -> tuple[Disagreement, ...]:
    if human in judged.human:
        both = judged.human[human], scores
        return disagreements(judged, ("people", metric), both, _CASES)
    return wrong_preferences(judged, scores, _CASES)


def _agreement_plot(study: Study, judged: Judgements, agreement: Agreement, scores: Array) -> str:
    title = f"{agreement.metric}  {decimals(agreement.value)}"
    human, negated = agreement.human, agreement.metric in study.negated
    axis = f"−{agreement.metric} (lower is better)" if negated else agreement.metric
    if study.level == "system":
        means = _system_means(judged, scores)
        rated = judged.system_human.get(human)
        people = _system_means(judged, judged.human[human]) if rated is None else rated
        return plots.scatter(people, means, title, human, judged.system_names, y_name=axis)
    if human in judged.human:
        return plots.scatter(judged.human[human], scores, title, human, y_name=axis)
    if judged.preferences is None:
        return ""
    better, worse = judged.preferences.T
    return plots.differences(scores[better] - scores[worse], title, negated)


def _system_means(judged: Judgements, values: Array) -> Array:
    """Means by system over the rows that have a value; nan where none has."""
    there = np.isfinite(values)
    size = len(judged.system_names)
    counts = np.bincount(judged.systems[there], minlength=size)
    sums = np.bincount(judged.systems[there], values[there], minlength=size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _between_humans(study: Study) -> Iterator[tuple[str, str]]:
    for name, values in study.between_humans.items():
        if values.shape[0] > 1:
            humans = [human for of, human in set_criteria(study) if of == name]
            label = f"correlation between criteria, {name}"
            yield name, plots.correlations(values, humans, label)


# The texts on which judges, people or metrics, disagree most.


@dataclass(frozen=True)
class Disagreement:
    """A segment with its labelled texts, and the percentile that each judge gives it."""

    origin: str
    texts: tuple[tuple[str, str], ...]
    percentiles: tuple[tuple[str, float], ...]


def percentiles(values: Array) -> Array:
    """The percentile of each value among all, from 0 to 100; nan stays nan."""
    ranks = rankdata(values, nan_policy="omit")
    return 100 * (ranks - 0.5) / max(1, np.isfinite(values).sum())


def disagreements(
    judged: Judgements, names: tuple[str, str], values: tuple[Array, Array], most: int
) -> tuple[Disagreement, ...]:
    """The rows whose percentiles by two judges differ most."""
    first, second = (percentiles(x) for x in values)
    order = np.argsort(-np.abs(first - second))
    cases = []
    for k in _distinct_rows(judged, order[: np.isfinite(first - second).sum()], most):
        row = int(order[k])
        both = (names[0], float(first[row])), (names[1], float(second[row]))
        texts = ("hyp", _truncate(judged.hyps[row])), *_references(judged, row)
        cases.append(Disagreement(_origin(judged, row), texts, both))
    return tuple(cases)


def wrong_preferences(judged: Judgements, scores: Array, most: int) -> tuple[Disagreement, ...]:
    """The pairs of texts that a metric most clearly ranks in the opposite order of people."""
    if judged.preferences is None:
        return ()
    places = percentiles(scores)
    gains = places[judged.preferences[:, 0]] - places[judged.preferences[:, 1]]
    pairs = judged.preferences[np.argsort(gains)[: (gains < 0).sum()]]
    cases = []
    for k in _distinct_rows(judged, pairs[:, 1], most):
        better, worse = (int(row) for row in pairs[k])
        texts = ("better", _truncate(judged.hyps[better])), ("worse", _truncate(judged.hyps[worse]))
        both = ("better", float(places[better])), ("worse", float(places[worse]))
        shared = _references(judged, worse)
        cases.append(Disagreement(_origin(judged, better, worse), (*texts, *shared), both))
    return tuple(cases)


def _truncate(text: str) -> str:
    return text if len(text) <= _CHARACTERS else text[:_CHARACTERS].rstrip() + " …"


def _distinct_rows(judged: Judgements, rows: Array, most: int) -> list[int]:
    """The positions of the first rows with distinct texts."""
    positions: dict[tuple[int, str], int] = {}
    for position, row in enumerate(rows):
        positions.setdefault((int(judged.segments[row]), judged.hyps[row]), position)
        if len(positions) == most:
            break
    return list(positions.values())


def _references(judged: Judgements, row: int) -> tuple[tuple[str, str], ...]:
    several = judged.refs[row]
    more = f" + {len(several) - 1}" if len(several) > 1 else ""
    return tuple((f"ref{more}", _truncate(ref)) for ref in several[:1])


def _origin(judged: Judgements, *rows: int) -> str:
    """The segment, counted from 1, and the systems if they have names, the better one first."""
    systems = " over ".join(judged.system_names[judged.systems[row]] for row in rows)
    segment = f"segment {judged.segments[rows[0]] + 1}"
    return f"{segment}, {systems}" if systems.replace(" over ", "") else segment
