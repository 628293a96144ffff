"""How `freight score` says what it found, in the words and habits of sacrebleu."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from freight.cli.options import RequestedMetric
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.result import Column, Result
    from freight.data.corpus import RowOrigins
    from freight.judge.significance import Interval
    from freight.report.formatting import Mark


FORMS = ("text", "json", "markdown", "latex")

Input = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        "--input",
        metavar="HYP...",
        help="Hypotheses of one or several systems, or folders of them; all else is references.",
    ),
]
Confidence = Annotated[
    bool, typer.Option("--confidence", "-ci", help="Bootstrap intervals, of one system too.")
]
Samples = Annotated[
    int, typer.Option("--confidence-n", "-cin", min=1, help="Bootstrap samples for them.")
]
ByBootstrap = Annotated[
    bool, typer.Option("--paired-bs", "-pbs", help="Test systems against the first: bootstrap.")
]
ByPermutation = Annotated[
    bool, typer.Option("--paired-ar", "-par", help="The same: approximate randomisation.")
]
BootstrapTrials = Annotated[
    int | None, typer.Option("--paired-bs-n", "-pbsn", min=1, help="Default: 1000.")
]
PermutationTrials = Annotated[
    int | None, typer.Option("--paired-ar-n", "-parn", min=1, help="Default: 10000.")
]
Width = Annotated[int, typer.Option("-w", "--width", min=0, max=15, help="Decimals.")]
ScoreOnly = Annotated[bool, typer.Option("-b", "--score-only", help="The scores, nothing else.")]


@dataclass(frozen=True)
class Manner:
    """The form and the decimals, how often to resample (0: no intervals), and the paired test.

    Without a form it is a table for people.
    """

    form: str | None = None
    width: int = 4
    bare: bool = False
    samples: int = 0
    test: str = ""
    trials: int | None = None
    seed: int = 0

    @classmethod
    def of(
        cls, tests: dict[str, bool], trials: dict[str, int | None], samples: int, **said: Any
    ) -> "Manner":
        """What the options come to; two tests at once are refused."""
        wanted = [name for name, yes in tests.items() if yes]
        if len(wanted) > 1:
            raise InvalidInput("--paired-bs and --paired-ar are two tests; choose one")
        unused = [name for name, count in trials.items() if count and name not in wanted]
        if unused:
            raise InvalidInput(f"--paired-{unused[0]}-n is for --paired-{unused[0]}; give that too")
        test = wanted[0] if wanted else ""
        return cls(**said, samples=samples, test=test, trials=trials.get(test))

    @property
    def brief(self) -> bool:
        """Whether a metric is one number, that of its primary column, unless others are named."""
        return self.bare or self.form is not None

    def number(self, value: float) -> str:
        """With so many decimals."""
        return f"{value:.{self.width}f}"


class SacreCommand(TyperCommand):
    """A command whose -i takes all words up to the next option, and whose -m all metrics' names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give each of the words an option of its own."""
        return super().parse_args(ctx, spread(args))


def spread(words: list[str]) -> list[str]:
    """From -i A B to -i A -i B, and the same for -m where what follows is a metric's name."""
    found: list[str] = []
    option, taken = "", 0
    for place, word in enumerate(words):
        if word == "--":
            return [*found, *words[place:]]
        if word.startswith("-") and word != "-":
            option, taken = word, 0
        elif _is_more(option, taken, word):
            found.append(option)
        else:
            taken += 1
        found.append(word)
    return found


def sides(
    hyp: str | None, refs: list[str], inputs: list[str], against: list[str]
) -> tuple[list[str], list[str]]:
    """Hypotheses and references, whether hypotheses come first or after -i."""
    if not inputs:
        if hyp is None:
            raise typer.BadParameter("give HYP and REF, or REF and -i HYP")
        return [hyp, *against], refs
    given = [file for one in inputs for file in _files(one)]
    return [*given, *against], refs if hyp is None else [hyp, *refs]


def _is_more(option: str, taken: int, word: str) -> bool:
    if not taken:
        return False
    if option in ("-i", "--input"):
        return True
    if option not in ("-m", "--metric"):
        return False
    from freight.metrics import METRICS

    return word.partition(":")[0] in METRICS


def _files(name: str) -> list[str]:
    """The files of a folder by name, or the file itself."""
    if name == "-" or not Path(name).is_dir():
        return [name]
    found = sorted(x for x in Path(name).iterdir() if x.is_file() and not x.name.startswith("."))
    if not found:
        raise InvalidInput(f"{name} is a folder without files; give one of systems' outputs")
    return [str(path) for path in found]


@dataclass(frozen=True)
class Line:
    """A score of one system by one column, with what was asked for besides."""

    metric: str
    column: "Column"
    primary: bool
    system: str
    score: float
    interval: "Interval | None"
    p: float
    signature: str

    @property
    def name(self) -> str:
        """The metric, and the column where it is not the primary one."""
        return self.metric if self.primary else f"{self.metric}:{self.column.name}"

    @property
    def arrow(self) -> str:
        """Which way is better."""
        return "↑" if self.column.higher else "↓"


def lines(
    wanted: Sequence[RequestedMetric],
    results: "Sequence[Result]",
    places: "RowOrigins | None",
    manner: Manner,
) -> list[Line]:
    """Metrics by columns by systems, in the order in which they were given."""
    return [
        line
        for one, result in zip(wanted, results, strict=True)
        for line in _lines(one, result, places, manner)
    ]


def printed(found: Sequence[Line], manner: Manner) -> str:
    """As the manner has it; for people it is a table, which is drawn elsewhere."""
    if manner.bare:
        return "\n".join(manner.number(line.score) for line in found)
    if manner.form == "json":
        records = [record(line, manner) for line in found]
        return json.dumps(records if len(records) > 1 else records[0], indent=1, ensure_ascii=False)
    if manner.form == "text":
        return "\n".join(_said(line, manner) for line in found)
    from freight.report.formatting import FORMS

    return FORMS[str(manner.form)](*_grid(found, manner)).rstrip()


def drawn(found: Sequence[Line], title: str, manner: Manner) -> Table:
    """A table for people: intervals where there are some, p where systems were tested."""
    systems = list(dict.fromkeys(line.system for line in found))
    several = ["system"] if len(systems) > 1 else []
    table = Table("metric", "column", *several, title=title)
    for name in ("score", "95 % interval", *([f"p against {systems[0]}"] if manner.test else [])):
        table.add_column(name, justify="right")
    for line in found:
        system = [Text(line.system)] * len(several)
        named: list[str | Text] = [line.metric, line.column.name + line.arrow, *system]
        low, high = (line.interval.low, line.interval.high) if line.interval else (math.nan,) * 2
        cells = manner.number(line.score), f"{manner.number(low)} – {manner.number(high)}"
        tested = [_chance(line.p)] if manner.test else []
        table.add_row(*named, *cells, *tested, end_section=line.system == systems[-1])
    return table


def record(line: Line, manner: Manner) -> dict[str, Any]:
    """With sacrebleu's keys, and the system where there are several."""
    found: dict[str, Any] = {"name": line.name}
    if line.system:
        found["system"] = line.system
    found |= {"score": _rounded(line.score, manner), "signature": line.signature}
    if line.interval is not None:
        mean, half = line.interval.mean, _half(line.interval)
        found |= {"confidence_mean": _rounded(mean, manner)}
        found |= {"confidence_var": _rounded(half, manner)}
        found["confidence"] = _around(line.interval, manner)
    if not math.isnan(line.p):
        found["p_value"] = line.p
    return found


def _lines(
    one: RequestedMetric, result: "Result", places: "RowOrigins | None", manner: Manner
) -> Iterator[Line]:
    there = {column.name: column for column in result.columns}
    parts: list[Result] = [result]
    names: tuple[str, ...] = ("",)
    if places is not None:
        names = places.names
        parts = [result.only(places.rows_of(k)) for k in range(len(names))]
    intervals, chances = _resampled(result, parts, places, manner)
    for name in one.columns:
        for k, (system, part) in enumerate(zip(names, parts, strict=True)):
            values = there[name], name == result.columns[0].name, system, part.system[name]
            known = intervals[k].get(name), chances.get((name, k), math.nan)
            yield Line(one.metric.name, *values, *known, result.signature)


def _resampled(
    result: "Result", parts: "Sequence[Result]", places: "RowOrigins | None", manner: Manner
) -> "tuple[list[dict[str, Interval]], dict[tuple[str, int], float]]":
    """A system's intervals by column, and by column and system the p that it is as the first."""
    from freight.judge.systems import against_first, system_scores

    if manner.test and places is not None:
        asked = manner.test, manner.trials, manner.seed, manner.samples or 1000
        tested = against_first(result, places, *asked)
        several = [{one.column: one.scores[k] for one in tested} for k in range(len(parts))]
        return several, {(x.column, k): float(p) for x in tested for k, p in enumerate(x.p)}
    if not manner.samples:
        return [{} for _ in parts], {}
    return [system_scores(part, manner.samples, manner.seed) for part in parts], {}


def _said(line: Line, manner: Manner) -> str:
    """One line: which system, the signature, the score."""
    named = "" if line.primary else f":{line.column.name}"
    around = f" ({_around(line.interval, manner)})" if line.interval else ""
    chance = "" if math.isnan(line.p) else f" (p = {_chance(line.p)})"
    shown = f"{line.signature}{named} = {manner.number(line.score)}{around}{chance}"
    return f"{line.system}\t{shown}" if line.system else shown


def _grid(found: Sequence[Line], manner: Manner) -> "tuple[list[str], list[list[Mark]]]":
    """Systems by metrics, the best of each bold, a star where one differs from the first."""
    from freight.report.formatting import Mark

    systems = list(dict.fromkeys(line.system for line in found))
    columns = list(dict.fromkeys(line.name + line.arrow for line in found))
    rows = [[Mark(system or "system")] for system in systems]
    for k in range(0, len(found), len(systems)):
        group = found[k : k + len(systems)]
        values = [line.score if line.column.higher else -line.score for line in group]
        best = max(round(value, manner.width) for value in values)
        for row, line, value in zip(rows, group, values, strict=True):
            place = int(len(systems) > 1 and round(value, manner.width) == best)
            row.append(Mark(_cell(line, manner), place))
    return ["system", *columns], rows


def _cell(line: Line, manner: Manner) -> str:
    half = f" ± {manner.number(_half(line.interval))}" if line.interval else ""
    return f"{manner.number(line.score)}{half}{'*' if line.p < 0.05 else ''}"


def _half(interval: "Interval") -> float:
    return (interval.high - interval.low) / 2


def _around(interval: "Interval", manner: Manner) -> str:
    return f"μ = {manner.number(interval.mean)} ± {manner.number(_half(interval))}"


def _rounded(value: float, manner: Manner) -> float | None:
    return None if math.isnan(value) else float(manner.number(value))


def _chance(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.4f}"
