"""The results of training a metric, as a page and at the terminal: curves, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.judge.study import Study
from freight.learn.fitting import Fit, SetGain
from freight.report import plots
from freight.report.formatting import decimals, p_value
from freight.report.pages import render, write_page
from freight.report.tables import column_label, set_criteria, statistic_name

_HEADS = ("set", "rows", "untrained", "trained", "p")


@dataclass(frozen=True, eq=False)
class Training:
    """A fit, and studies on test sets, of which the first metric is the trained one.

    `signatures` are those of the trained and of the untrained metric.
    """

    metric: str
    encoder: str
    fit: Fit
    signatures: tuple[str, ...]
    tests: tuple[Study, ...] = ()

    @property
    def gain(self) -> str:
        """Mean agreement on the rows held out, before and after, in one phrase."""
        before, after = (_mean([getattr(one, side) for one in self.fit.sets]) for side in _SIDES)
        p = f"p {p_value(self.fit.p)}"
        return f"{decimals(before)} untrained, {decimals(after)} trained ({p})"

    def record(self, folder: str | None) -> dict[str, Any]:
        """All of it as plain data; `folder` has the adapter, None where nothing was gained."""
        fit = self.fit
        return {
            "metric": self.metric,
            "encoder": self.encoder,
            "adapter": None if fit.adapter is None else fit.adapter.identity,
            "folder": folder,
            "strength": fit.strength,
            "p": fit.p,
            "held_out": [one._asdict() for one in fit.sets],
            "tests": self.records(),
            "curve": [event._asdict() for event in fit.curve],
            "notes": list(fit.notes),
            "signatures": list(self.signatures),
        }

    def records(self) -> list[dict[str, Any]]:
        """The agreements on the tests as plain data."""
        return [
            {"set": name, "criterion": human, "rows": rows, "statistic": study.statistic,
             "untrained": before, "trained": after, "p": p}
            for study in self.tests
            for name, human, rows, before, after, p in _compared(study)
        ]  # fmt: skip


_SIDES = ("before", "after")


def write_training_page(training: Training, path: Path) -> None:
    """Write the page of a training, one file that needs no network."""
    fit = training.fit
    page = render(
        "training.html",
        title=f"Training {training.metric}",
        lead=training.gain,
        facts=_facts(training),
        heads=_HEADS,
        held_out=[_gain_row(one) for one in fit.sets],
        tests=[(_study_title(study), _test_rows(study)) for study in training.tests],
        pictures=_curves(fit),
        data=_data_rows(fit),
        notes=fit.notes,
        signatures=training.signatures,
    )
    write_page(page, path)


def show_training(training: Training, console: Console) -> None:
    """Print what was gained on the rows held out, and on tests."""
    fit = training.fit
    console.print(_table("Agreement on held-out rows", [_gain_row(one) for one in fit.sets]))
    for study in training.tests:
        console.print(_table(_study_title(study), _test_rows(study)))
    for note in fit.notes:
        console.print(Text(note), highlight=False, soft_wrap=True)


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(title=title, title_justify="left")
    for place, head in enumerate(_HEADS):
        table.add_column(head, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _gain_row(gain: SetGain) -> tuple[str, ...]:
    name = f"{gain.name} {gain.criterion}".strip()
    sides = decimals(gain.before), decimals(gain.after)
    return name, f"{gain.rows:,}", *sides, p_value(gain.p)


def _test_rows(study: Study) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, human, count, before, after, p in _compared(study):
        label = column_label(study, name, human)
        rows.append((label, f"{count:,}", decimals(before), decimals(after), p_value(p)))
    return rows


def _compared(study: Study) -> list[tuple[str, str, int, float, float, float]]:
    """By set and criterion: rows, untrained, trained, and p of the trained one being better."""
    values = {(one.metric, one.set, one.human): one for one in study.agreements}
    rows = []
    for name, human in set_criteria(study):
        after, before = (values[metric, name, human] for metric in study.metrics)
        p = study.significance.get((name, human))
        sure = float("nan") if p is None else float(p[0, 1])
        rows.append((name, human, after.rows, before.value, after.value, sure))
    return rows


def _study_title(study: Study) -> str:
    return f"On test sets: {statistic_name(study)}"


def _facts(training: Training) -> list[str]:
    fit = training.fit
    facts = [f"encoder {training.encoder}", f"strength {fit.strength:g}"]
    if fit.curve:
        facts.append(f"{fit.curve[-1].step:,} of {fit.curve[-1].steps:,} steps")
    if fit.adapter is not None:
        facts.append(f"adapter {fit.adapter.identity}")
        numbers = sum(tensor.numel() for tensor in fit.adapter.tensors.values())
        facts.append(f"{numbers:,} numbers")
    return facts


def _curves(fit: Fit) -> list[str]:
    looks = [event for event in fit.curve if event.agreement is not None]
    pictures = []
    if looks:
        values = [float(event.agreement or 0.0) for event in looks]
        title, level = "Held-out agreement", looks[0].untrained
        steps = [event.step for event in looks]
        pictures.append(plots.curve(steps, values, title, "step", level, "untrained"))
    if fit.curve:
        steps, losses = [event.step for event in fit.curve], [event.loss for event in fit.curve]
        pictures.append(plots.curve(steps, losses, "Loss", "step"))
    return pictures


def _data_rows(fit: Fit) -> list[tuple[str, ...]]:
    """What the adapter was fitted on, as its provenance has it."""
    provenance = fit.adapter.provenance if fit.adapter is not None else {}
    return [
        (str(one["name"]), f"{one['rows']:,}", str(one["sha256"])[:12])
        for one in provenance.get("data", ())
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
