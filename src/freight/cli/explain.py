"""`freight explain`: why one text scores as it does, at the terminal or in a file.

The terminal shows both texts with a mark below every error, the worst words, what is added and
missing, and what differs critically; on request the plan, or the spans of the errors alone, of two
texts or of two files.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freight.cli import completion, options
from freight.cli.groups import EncoderOptions, SettingOptions, grouped
from freight.cli.options import (
    DEFAULT,
    given,
    language_setting,
    parse_settings,
    split_column,
    wanted_metrics,
)
from freight.data import Corpus
from freight.data.output import check_inputs, check_path, write_whole
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scorers import PipelineScorer
    from freight.explain.comparison import Comparison
    from freight.explain.explainer import Composed
    from freight.explain.explanation import Explanation, Plan, View


@dataclass(frozen=True)
class TextOptions:
    """The texts, and how many metrics explain them."""

    panel: ClassVar = SettingOptions.panel

    hyp: Annotated[str, typer.Argument(metavar="HYP", help="The hypothesis: a text.")]
    refs: Annotated[list[str], typer.Argument(metavar="REF", help="Its references: texts.")]
    against: Annotated[
        str | None, typer.Option(metavar="HYP", help="A second hypothesis to compare with.")
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="NAME[:COLUMN]",
            help=f"One or two. Default: {DEFAULT}.",
            autocompletion=completion.metrics,
        ),
    ] = None


@dataclass(frozen=True)
class ExplanationOutput:
    """What is shown, and where the explanation goes."""

    panel: ClassVar = "Output"

    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=".html .json .png .svg or .pdf; with --spans .jsonl or .tsv",
        ),
    ] = None
    as_json: options.AsJson = False
    spans: Annotated[
        bool,
        typer.Option(
            "--spans",
            help="List the errors: characters, severity. HYP and REF may be files, line by line.",
        ),
    ] = False
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the largest flows of the transport plan.")
    ] = False


@grouped
def explain_command(
    texts: TextOptions,
    settings: SettingOptions,
    encoder: EncoderOptions,
    output: ExplanationOutput,
) -> None:
    """Show which words are wrong, added or missing, and why a text scores as it does.

    Two metrics, or --against a second hypothesis, are compared side by side.
    """
    if output.spans:
        _list_spans(texts, settings, encoder, output)
        return
    if output.output is not None:
        from freight.explain.explanation import check_output

        check_output(output.output)
    encoder.set_threads()
    explanation = _explain(_load_scorers(texts, settings, encoder), texts)
    if output.output is not None:
        explanation.save(output.output)
    if output.as_json:
        print(json.dumps(explanation.to_dict(), allow_nan=False))
        return
    show(explanation, with_plan=output.plan)


def _list_spans(
    texts: TextOptions,
    settings: SettingOptions,
    encoder: EncoderOptions,
    output: ExplanationOutput,
) -> None:
    """Print or write the error spans of two texts, or of two files line by line."""
    from freight.core.scorers import pair_up
    from freight.explain.explainer import explain_segments
    from freight.explain.spans import SegmentErrors, json_lines, tab_separated

    forms = {".jsonl": json_lines, ".tsv": tab_separated}
    for name, is_given in (("against", texts.against is not None), ("plan", output.plan)):
        if is_given:
            raise InvalidInput(f"--spans and --{name} are two things; choose one")
    if output.output is not None:
        if output.output.suffix not in forms:
            raise InvalidInput(f"{output.output} is for spans; end it in .jsonl or .tsv")
        check_path(output.output)
        check_inputs([output.output], [texts.hyp, *texts.refs])
    segments, system = pair_up([texts.hyp], [texts.refs]), ""
    files = [Path(name) for name in (texts.hyp, *texts.refs)]
    if all(_is_file(path) for path in files):
        with Corpus(texts.hyp, texts.refs) as corpus:
            segments = [(hyp, refs) for hyp, refs in corpus]
            system = Path(files[0].name.removesuffix(".gz")).stem
    encoder.set_threads()
    every_ref = [ref for _, refs in segments for ref in refs]
    scorers = _load_scorers(replace(texts, refs=every_ref), settings, encoder)
    if len(scorers) > 1:
        raise InvalidInput("--spans finds errors by one metric; name one with -m")
    (metric,) = scorers
    if not hasattr(metric, "composition"):
        raise InvalidInput(f"{metric.name} has no transport plan to find errors by")
    explained: Any = explain_segments(cast("Composed", metric), segments)
    listed = (
        SegmentErrors(str(k), system, one.winner + 1, one.spans)
        for k, one in enumerate(explained, 1)
    )
    form = forms[output.output.suffix] if output.output else tab_separated
    lines = (json_lines if output.as_json else form)(listed)
    if output.output is None:
        for line in lines:
            print(line)
        return
    write_whole(output.output, "".join(f"{line}\n" for line in lines).encode())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def _load_scorers(
    texts: TextOptions, settings: SettingOptions, encoder: EncoderOptions
) -> "list[PipelineScorer]":
    """The metrics, each with the column that is asked for as its primary one."""
    parts = [split_column(name) for name in texts.metric or [DEFAULT]]
    if len({name for name, _ in parts}) < len(parts) or len(parts) > 2:
        raise InvalidInput("name one metric, or two different ones to compare them")
    names = [name for name, _ in parts]
    named = {
        **given(layer=settings.layer, preset=settings.preset, adapter=encoder.adapter),
        **language_setting(settings.lang, names, encoder.encoder, texts.refs),
        **parse_settings(settings.settings or []),
        **{f"{name}.column": column for name, column in parts if column},
    }
    requested = wanted_metrics(names, encoder.encoder, encoder.placement, named, encoder.cache)
    return [one.metric for one in requested]


def _explain(scorers: "list[PipelineScorer]", texts: TextOptions) -> "Explanation | Comparison":
    from freight.explain.comparison import compare

    if texts.against is None:
        explanations = [scorer.explain(texts.hyp, texts.refs) for scorer in scorers]
    elif len(scorers) == 1:
        hyps = texts.hyp, texts.against
        explanations = [scorers[0].explain(hyp, texts.refs) for hyp in hyps]
    else:
        raise InvalidInput("--against compares two hypotheses by one metric; name one with -m")
    first, *others = explanations
    return compare(first, others[0]) if others else first


MOST_FLOWS = 8
"""The number of moves listed per plan."""

_STYLES = {"~": "yellow", "!": "bold red", "-": "bold red"}
_LEGEND = "! major error   ~ minor error   - missing"


def show(
    explanation: "Explanation | Comparison",
    console: Console | None = None,
    with_plan: bool = False,
) -> None:
    """Print an explanation; two that are compared are printed one below the other."""
    from freight.explain.explanation import Explanation

    console = console or Console()
    if isinstance(explanation, Explanation):
        _show(explanation, console, with_plan)
        return
    for one in (explanation.one, explanation.other):
        _show(one, console, with_plan)
        console.print()
    console.print(Text("Largest differences", "bold"))
    for change in explanation.changes:
        console.print(Text(f"· {change}"), soft_wrap=True)


def _show(one: "Explanation", console: Console, with_plan: bool) -> None:
    console.print(_score_line(one))
    if one.meaning:
        console.print(Text(f"{one.column.name} {one.meaning}", "dim"))
    if len(one.references) > 1:
        each = ", ".join(f"{score:.4f}" for score in one.reference_scores)
        console.print(
            Text(f"reference {one.winner + 1} of {len(one.references)} is the best: {each}")
        )
    if one.views:
        for name in ("hyp", "ref"):
            for line in _marked_lines(one, name, console.width):
                console.print(line, soft_wrap=True)
        if one.spans:
            console.print(Text(f"     {_LEGEND}", "dim"))
    for name, several in (
        ("worst words", one.worst_words),
        ("added", one.phrases("added")),
        ("missing", one.phrases("missing")),
    ):
        if several:
            console.print(Text(f"{name}: {', '.join(map(_printable, several))}"), soft_wrap=True)
    for flag in one.flags:
        console.print(Text(_printable(flag), "yellow"), soft_wrap=True)
    for view in one.views if with_plan else ():
        console.print(_flow_table(view))
        console.print(_matching_text(view))
    from freight.core.result import cite

    console.print(Text(cite(one.signature), "dim"), soft_wrap=True)


def _score_line(one: "Explanation") -> Text:
    text = Text.assemble((f"{one.metric}  ", "bold"))
    for name, score in one.scores.items():
        primary = name == one.column.name
        arrow = ("↑" if one.column.higher else "↓") if primary else ""
        text.append(f"{name}{arrow} {score:.4f}  ", "bold" if primary else "dim")
    if one.views and one.base:
        text.append(f"base {one.base:.4f}, contributions {one.score - one.base:+.4f}", "dim")
    return text


def _marked_lines(one: "Explanation", name: str, width: int) -> Iterator[Text]:
    """The text in lines, each with marks below it, so that it can be read without colours.

    Terminals show a text that is read from right to left in either order: its errors are listed.
    """
    from freight.report.sankey import is_right_to_left

    text = _printable(getattr(one.views[0], name).text)
    marks, errors = [""] * len(text), []
    for span in one.spans:
        if span.side == name:
            mark = "-" if name == "ref" else {"minor": "~", "major": "!"}[span.severity]
            marks[span.start : span.end] = [mark] * (span.end - span.start)
            errors.append(Text(f"     {mark} {text[span.start : span.end]}", _STYLES[mark]))
    if is_right_to_left(text):
        yield from (Text.assemble((f"{name}  ", "dim"), text), *errors)
        return
    head = f"{name}  "
    for start, end in _line_breaks(text, max(width - len(head), 10)):
        line, below = Text.assemble((head, "dim")), Text("     ")
        for k in range(start, end):
            mark = marks[k]
            line.append(text[k], _STYLES.get(mark, ""))
            below.append((mark or " ") * cell_len(text[k]), _STYLES.get(mark, ""))
        yield line
        below.rstrip()
        if below.plain:
            yield below
        head = "     "


def _line_breaks(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Start and end of each line of at most this width, broken at spaces where possible."""
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


def _flow_table(view: "View") -> Table:
    """The largest flows of every plan, and the share of the cost that each makes up."""
    table = Table(title=f"Largest flows: {view.name}", title_justify="left")
    for name in ("plan", "hyp", "ref"):
        table.add_column(name, overflow="fold")
    for name in ("flow", "cost", "share of cost"):
        table.add_column(name, justify="right")
    for plan in view.plans:
        total = float((plan.flow * view.cost).sum())
        for i, j in _largest_flows(view, plan):
            mass, cost = float(plan.flow[i, j]), float(view.cost[i, j])
            ends = Text(_printable(view.hyp.names[i])), Text(_printable(view.ref.names[j]))
            part = f"{mass * cost / total:.0%}" if total > 0 else "–"
            table.add_row(plan.name, *ends, f"{mass:.3f}", f"{cost:.3f}", part)
    return table


def _largest_flows(view: "View", plan: "Plan") -> list[tuple[int, int]]:
    """The flows of most mass, without those at no cost between units that are in no text."""
    there = (view.hyp.spans[:, :1] >= 0) & (view.ref.spans[:, 0] >= 0)
    mass = np.where(there | (view.cost > 0), plan.flow, 0.0)
    order = np.argsort(-mass, axis=None, kind="stable")[:MOST_FLOWS]
    places = [divmod(k, mass.shape[1]) for k in order.tolist()]
    return [place for place in places if mass[place] > 0]


def _matching_text(view: "View") -> Text:
    """How noisy and how incomplete the matching of each plan is, and what words are unmatched."""
    lines = []
    for plan in view.plans:
        for name in ("hyp", "ref"):
            matching = view.matching(name, plan)
            lines.append(
                f"{plan.name}, {name}: {matching.noisy:.0%} of the mass moves elsewhere than to the"
                f" nearest unit, {matching.incomplete:.0%} is unmatched"
            )
    for name, side in (("hyp", view.hyp), ("ref", view.ref)):
        phrases = ", ".join(map(_printable, side.quote_words(side.unmatched_words)))
        lines += [f"unmatched, {name}: {phrases}"] if phrases else []
    return Text("\n".join(lines), "dim")


def _printable(text: str) -> str:
    """The text with control characters replaced by spaces, one for one."""
    return "".join(c if c.isprintable() else " " for c in text)
