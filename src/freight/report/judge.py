"""The page of a study: who agrees best with people, whether that is real, and where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freight.data.judgements import Judgements
from freight.judge.study import Agreement, Study
from freight.report import plots
from freight.report.extremes import Case, against_preferences, between
from freight.report.html import check_page, render, write_page
from freight.report.tables import (
    column_label,
    decimals,
    higher_is_better,
    level_name,
    set_criteria,
    statistic_name,
    table_columns,
    table_rows,
    verdict,
)
from freight.transport.types import Array

# What keeps pages small: the cases listed of each kind, and the metrics shown in detail, over all
# sets and criteria together.
_CASES = 4
_DETAILS = 60
_SCATTER = "the line is fitted by least squares."
_PICTURES = {
    "systems": f"A point is a system, by its mean; {_SCATTER}",
    "texts": f"A point is a text (a sample where there are many); {_SCATTER}",
    "pairs": "How much better the better text of a pair scores; left of 0 the metric errs.",
}


@dataclass(frozen=True)
class Detail:
    """One metric on one set: its scatter, and the texts that it is at odds with people over."""

    metric: str
    picture: str
    people: tuple[Case, ...]
    rival: str
    rivals: tuple[Case, ...]


@dataclass(frozen=True)
class SetView:
    """One set by one criterion."""

    label: str
    significance: str
    between_metrics: str
    details: tuple[Detail, ...]


@dataclass(frozen=True)
class Lead:
    """The finding: the metric that agrees best, by how much, and how sure its lead is."""

    best: str
    found: str
    verdict: str


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
        intervals=[_intervals(study, *key) for key in keys],
        views=[_view(study, *key) for key in shown],
        left_out=[column_label(study, *key) for key in keys[len(shown) :]],
        humans=list(_between_humans(study)),
        pictures=_PICTURES[_points(study)],
        signatures=study.signatures,
    )
    write_page(page, path)


def _points(study: Study) -> str:
    if study.level == "system":
        return "systems"
    return "texts" if any(human for _, human in set_criteria(study)) else "pairs"


def _facts(study: Study) -> list[str]:
    rows = sum(len(one.hyps) for one in study.sets)
    pairs = sum(len(one.preferences) for one in study.sets if one.preferences is not None)
    numbers = len(study.metrics), len(study.sets), rows, pairs
    counts = zip(numbers, ("metric", "set", "text", "pair"), strict=True)
    said = [f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
    return [level_name(study), *said]


def _lead(study: Study) -> Lead:
    ranked = _ranked(study)
    if not ranked:
        return Lead("", "", "")
    best, value = ranked[0]
    keys = set_criteria(study)
    sets, humans = ({key[k] for key in keys} for k in (0, 1))
    noun = "sets" if len(humans) == 1 else "criteria" if len(sets) == 1 else "columns"
    where = f"on average over {len(keys)} {noun}" if len(keys) > 1 else f"on {keys[0][0]}"
    verdict = _verdict(study, best, ranked[1][0]) if len(ranked) > 1 else ""
    return Lead(best, f"{statistic_name(study)} {decimals(value)} {where}", verdict)


def _verdict(study: Study, best: str, second: str) -> str:
    places = study.metrics.index(best), study.metrics.index(second)
    p = np.array([float(matrix[places]) for matrix in study.significance.values()])
    if len(p) == 0:
        return f"Next comes {second}."
    if len(p) == 1:
        return verdict(second, float(p[0]))
    wins = int((p < 0.05).sum())
    return (
        f"Its lead over {second}, the next, is significant (one-sided p < 0.05) in"
        f" {wins or 'none'} of them."
    )


def _ranked(study: Study) -> list[tuple[str, float]]:
    """Metrics and their averages, the best first; those without one are left out."""
    sign = -1 if higher_is_better(study) else 1
    found = [(row.metric, row.cells[-1].value) for row in table_rows(study) if row.cells]
    return sorted((x for x in found if not np.isnan(x[1])), key=lambda x: sign * x[1])


def _ordered(study: Study) -> list[str]:
    """Every metric, the best on average first."""
    return list(dict.fromkeys([*(name for name, _ in _ranked(study)), *study.metrics]))


def _intervals(study: Study, name: str, human: str) -> str:
    found = {a.metric: a for a in study.agreements if (a.set, a.human) == (name, human)}
    order = [metric for metric in _ordered(study) if metric in found]
    value, low, high = np.array([(found[m].value, found[m].low, found[m].high) for m in order]).T
    title = column_label(study, name, human)
    return plots.intervals(order, value, low, high, title, _limits(study))


def _limits(study: Study) -> tuple[float, float]:
    """What holds every interval, with a little room: pictures side by side share a scale."""
    found = np.array([(a.value, a.low, a.high) for a in study.agreements])
    low, high = float(np.nanmin(found, initial=1)), float(np.nanmax(found, initial=-1))
    room = 0.06 * max(high - low, 0.01)
    return (low - room, high + room) if low < high else (-1, 1)


def _view(study: Study, name: str, human: str) -> SetView:
    label = column_label(study, name, human)
    order = _ordered(study)
    index = np.ix_(*[[study.metrics.index(metric) for metric in order]] * 2)
    details = tuple(_details(study, name, human, order))
    p, r = study.significance.get((name, human)), study.between_metrics.get(name)
    beats = alike = ""
    if p is not None and len(order) > 1:
        said = f"one-sided p-values, row better than column, {label}"
        beats = plots.significances(p[index], order, said)
    if r is not None and len(order) > 1:
        alike = plots.correlations(r[index], order, f"metrics against each other, {label}")
    return SetView(label, beats, alike, details)


def _details(study: Study, name: str, human: str, order: list[str]) -> Iterator[Detail]:
    judged = next(one for one in study.sets if one.name == name)
    found = {a.metric: a for a in study.agreements if (a.set, a.human) == (name, human)}
    for metric in order:
        if metric not in found:
            continue
        rival = next((other for other in order if other != metric), "")
        scores = study.scores[metric, name]
        rivals: tuple[Case, ...] = ()
        if rival and (rival, name) in study.scores:
            pair = scores, study.scores[rival, name]
            rivals = between(judged, (metric, rival), pair, _CASES)
        drawn = _picture(study, judged, found[metric], scores)
        yield Detail(metric, drawn, _people(judged, metric, human, scores), rival, rivals)


def _people(judged: Judgements, metric: str, human: str, scores: Array) -> tuple[Case, ...]:
    if human in judged.human:
        return between(judged, ("people", metric), (judged.human[human], scores), _CASES)
    return against_preferences(judged, scores, _CASES)


def _picture(study: Study, judged: Judgements, agreement: Agreement, scores: Array) -> str:
    title = f"{agreement.metric}  {decimals(agreement.value)}"
    human = agreement.human
    if study.level == "system":
        means = _system_means(judged, scores)
        rated = judged.system_human.get(human)
        people = _system_means(judged, judged.human[human]) if rated is None else rated
        return plots.scatter(people, means, title, human, judged.system_names)
    if human in judged.human:
        return plots.scatter(judged.human[human], scores, title, human)
    if judged.preferences is None:
        return ""
    better, worse = judged.preferences.T
    return plots.differences(scores[better] - scores[worse], title)


def _system_means(judged: Judgements, values: Array) -> Array:
    """By system, over the rows that have a value; not a number where none has."""
    there = np.isfinite(values)
    size = len(judged.system_names)
    counts = np.bincount(judged.systems[there], minlength=size)
    sums = np.bincount(judged.systems[there], values[there], minlength=size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _between_humans(study: Study) -> Iterator[tuple[str, str]]:
    for name, values in study.between_humans.items():
        if values.shape[0] > 1:
            humans = [human for of, human in set_criteria(study) if of == name]
            label = f"criteria against each other, {name}"
            yield name, plots.correlations(values, humans, label)
