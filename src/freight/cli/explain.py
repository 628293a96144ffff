"""`freight explain`: why one text scores as it does, at the terminal or in a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freight.cli import completion, options
from freight.cli.options import DEFAULT, detected, given, parse_settings, wanted_metrics
from freight.data.languages import AUTO
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scoring import Scorer
    from freight.explain.comparison import Comparison
    from freight.explain.explanation import Explanation
from collections.abc import Iterator

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.explain.comparison import Comparison
from freight.explain.explanation import Explanation, Plan, Side, View


def explain(
    hyp: Annotated[str, typer.Argument(metavar="HYP", help="The hypothesis: a text.")],
    refs: Annotated[list[str], typer.Argument(metavar="REF", help="Its references: texts.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help=f"One or two; default: {DEFAULT}.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="HYP", help="A second hypothesis, to compare with.")
    ] = None,
    encoder: options.EncoderName = None,
    layer: options.Layer = None,
    lang: options.Lang = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".html .json .png .svg or .pdf")
    ] = None,
    as_json: options.AsJson = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
) -> None:
    """Show what moved where, and what each word adds to the score.

    Two metrics, or --against a second hypothesis, are compared side by side.
    """
    if output is not None:
        from freight.explain.explanation import check_place

        check_place(output)
    if threads is not None:
        import freight

        freight.set_threads(threads)
    lang = detected(refs) if lang == AUTO else lang
    named = {**given(layer=layer, lang=lang, preset=preset), **parse_settings(settings or [])}
    scorers = _scorers(metric or [DEFAULT], encoder, given(device=device, dtype=dtype), named)
    found = _explained(scorers, hyp, against, refs)
    if output is not None:
        found.save(output)
    if as_json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return

    show(found)


def _scorers(
    names: list[str], encoder: str | None, options: dict[str, str], settings: dict[str, object]
) -> "list[Scorer]":
    """The metrics, each led by the column that is asked for."""
    parted = [name.partition(":") for name in names]
    leading = {f"{name}.column": column for name, _, column in parted if column}
    if len({name for name, _, _ in parted}) < len(parted) or len(parted) > 2:
        raise InvalidInput("name one metric, or two different ones to compare them")
    wanted = wanted_metrics([n for n, _, _ in parted], encoder, options, {**settings, **leading})
    return [one.metric for one in wanted]


def _explained(
    scorers: "list[Scorer]", hyp: str, against: str | None, refs: list[str]
) -> "Explanation | Comparison":
    from freight.explain.comparison import compare

    if against is None:
        found = [scorer.explain(hyp, refs) for scorer in scorers]
    elif len(scorers) == 1:
        found = [scorers[0].explain(text, refs) for text in (hyp, against)]
    else:
        raise InvalidInput("--against compares two hypotheses by one metric; name one with -m")
    return found[0] if len(found) == 1 else compare(found[0], found[1])


MOVES = 8
"""How many of a plan's moves are listed."""

_GOOD = 0.75
_STYLES = {" ": "green", "~": "yellow", "+": "bold red", "-": "bold red"}
_LEGEND = "~ matched in part   + added, - omitted: without a counterpart"


def show(found: Explanation | Comparison, console: Console | None = None) -> None:
    """Print all that there is to say in lines; two explanations one below the other."""
    console = console or Console()
    if isinstance(found, Explanation):
        _show(found, console)
        return
    for one in (found.one, found.other):
        _show(one, console)
        console.print()
    console.print(Text("What differs most", "bold"))
    for change in found.changes:
        console.print(Text(f"· {change}"), soft_wrap=True)


def _show(one: Explanation, console: Console) -> None:
    console.print(_scores(one))
    if len(one.references) > 1:
        each = ", ".join(f"{score:.4f}" for score in one.reference_scores)
        console.print(Text(f"reference {one.winner + 1} of {len(one.references)} wins: {each}"))
    if one.views:
        for mark, side in (("+", one.views[0].hyp), ("-", one.views[0].ref)):
            for line in _marked(side, mark, console.width):
                console.print(line, soft_wrap=True)
        console.print(Text(f"     {_LEGEND}", "dim"))
    for view in one.views:
        console.print(_moves(view))
        console.print(_matching(view))
    for name, several in (("added", one.additions), ("omitted", one.omissions)):
        if several:
            console.print(Text(f"{name}: {', '.join(map(_printable, several))}"), soft_wrap=True)
    for flag in one.flags:
        console.print(Text(flag, "yellow"))
    console.print(Text(one.signature, "dim"), soft_wrap=True)


def _scores(one: Explanation) -> Text:
    text = Text.assemble((f"{one.metric}  ", "bold"))
    for name, score in one.scores.items():
        primary = name == one.column.name
        arrow = ("↑" if one.column.higher else "↓") if primary else ""
        text.append(f"{name}{arrow} {score:.4f}  ", "bold" if primary else "dim")
    if one.views and one.base:
        text.append(
            f"{one.base:.4f} to start with, {one.score - one.base:+.4f} by the words", "dim"
        )
    return text


def _marked(side: Side, lost: str, width: int) -> Iterator[Text]:
    """The text in lines, each with marks below it, so that colours are not needed."""
    text = _printable(side.text)
    marks = _marks(side, lost)
    head = {"+": "hyp  ", "-": "ref  "}[lost]
    for start, end in _lines(text, max(width - len(head), 10)):
        line, below = Text.assemble((head, "dim")), Text("     ")
        for k in range(start, end):
            mark = marks[k]
            line.append(text[k], _STYLES.get(mark, "dim"))
            below.append((mark or " ") * cell_len(text[k]), _STYLES.get(mark, ""))
        yield line
        below.rstrip()
        if below.plain:
            yield below
        head = "     "


def _marks(side: Side, lost: str) -> list[str]:
    """A mark for every character of the text, none where no unit covers it; short units win."""
    marks = [""] * len(side.text)
    gone = set(side.lost.tolist())
    places = side.places
    for unit, start, end in places[np.argsort(places[:, 1] - places[:, 2], kind="stable")].tolist():
        mark = lost if unit in gone else " " if side.matched[unit] >= _GOOD else "~"
        marks[start:end] = [mark] * (end - start)
    return marks


def _lines(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where lines start and end that fit, cut at spaces where there are any."""
    start = 0
    while start < len(text):
        end, room = start, width
        while end < len(text) and cell_len(text[end]) <= room:
            room -= cell_len(text[end])
            end += 1
        space = text.rfind(" ", start + 1, end)
        end = space + 1 if end < len(text) and space > start else max(end, start + 1)
        yield start, end
        start = end


def _moves(view: View) -> Table:
    """The strongest moves of every plan, and which part of its cost each is."""
    table = Table(title=f"What moved: {view.name}", title_justify="left")
    for name in ("plan", "hyp", "ref"):
        table.add_column(name, overflow="fold")
    for name in ("mass", "cost", "of the cost"):
        table.add_column(name, justify="right")
    for plan in view.plans:
        total = float((plan.flow * view.cost).sum())
        for i, j in _strongest(view, plan):
            mass, cost = float(plan.flow[i, j]), float(view.cost[i, j])
            ends = Text(_printable(view.hyp.names[i])), Text(_printable(view.ref.names[j]))
            part = f"{mass * cost / total:.0%}" if total > 0 else "–"
            table.add_row(plan.name, *ends, f"{mass:.3f}", f"{cost:.3f}", part)
    return table


def _strongest(view: View, plan: Plan) -> list[tuple[int, int]]:
    """The moves of most mass, but for what stays at no cost on a unit that is not in a text."""
    there = (view.hyp.spans[:, :1] >= 0) & (view.ref.spans[:, 0] >= 0)
    mass = np.where(there | (view.cost > 0), plan.flow, 0.0)
    order = np.argsort(-mass, axis=None, kind="stable")[:MOVES]
    places = [divmod(k, mass.shape[1]) for k in order.tolist()]
    return [place for place in places if mass[place] > 0]


def _matching(view: View) -> Text:
    """How noisy and how incomplete each plan is, from either side."""
    lines = []
    for plan in view.plans:
        for name in ("hyp", "ref"):
            found = view.matching(name, plan)
            lines.append(
                f"{plan.name}, {name}: {found.noisy:.0%} of the mass went elsewhere than to the"
                f" nearest, {found.incomplete:.0%} nowhere"
            )
    return Text("\n".join(lines), "dim")


def _printable(text: str) -> str:
    """The same characters, one for one, without those that would steer the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
