"""How a command line names metrics, columns and settings, and the options that commands share."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from freight.cli import completion
from freight.data.languages import (
    AUTO,
    detect,
    detect_surely,
    language_code,
    language_name,
    reads_english,
)
from freight.errors import InvalidInput, MissingPart

if TYPE_CHECKING:
    from freight.core.result import Column, Result
    from freight.core.scorers import PipelineScorer


DEFAULT = "freight"
"""The metric by default."""

_IN_FILE = re.compile(r"(.+\.py:[^:]*)(?::([^:]*))?")

# Options that several commands have, written once so that they mean the same in each.
MetricNames = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--metric",
        metavar="NAME[:COLUMN]",
        help=f"From `freight metrics`, or file.py:NAME; may be repeated. Default: {DEFAULT}.",
        autocompletion=completion.metrics,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        help="From `freight encoders`; default: the metric's own.",
        autocompletion=completion.encoders,
    ),
]
AdapterPath = Annotated[
    str | None,
    typer.Option(
        "--adapter", metavar="FOLDER", help="Fitted to ratings by `freight train metric`."
    ),
]
Layer = Annotated[
    str | None, typer.Option(help="Hidden state: 4, -1 (the last), -5: (the last five), all.")
]
Lang = Annotated[
    str | None,
    typer.Option(
        help="Target language: a code (de, zh-Hans) or a name (german); auto looks at REF."
    ),
]
Preset = Annotated[
    str | None, typer.Option(help="Settings by name, such as a paper's, or a .json file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[METRIC.]NAME=VALUE",
        help="A parameter of one metric or of all (`freight metrics METRIC` lists them);"
        " may be repeated.",
        autocompletion=completion.settings,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the files.")]
Device = Annotated[
    str | None,
    typer.Option(
        help="cpu, cuda, cuda:1; default: a GPU where there is one.",
        autocompletion=completion.among("cpu", "cuda"),
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="float32, bfloat16 or float16; default: float32.",
        autocompletion=completion.among("float32", "bfloat16", "float16"),
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        help="segment, text, system or darr; default: what the data has.",
        autocompletion=completion.among("segment", "text", "system", "darr"),
    ),
]
Statistic = Annotated[
    str | None,
    typer.Option(
        help="pearson, spearman, kendall, accuracy, soft-accuracy, tau, mse or mae; "
        "default: pearson, and tau for preferences.",
        autocompletion=completion.among(
            "pearson", "spearman", "kendall", "accuracy", "soft-accuracy", "tau", "mse", "mae"
        ),
    ),
]
Escape = Annotated[
    bool,
    typer.Option("--escape", help="In .csv .tsv: ' before a text that begins with = + - or @."),
]
Cache = Annotated[bool, typer.Option("--cache", help="Remember vectors on disk.")]
Threads = Annotated[int | None, typer.Option(min=1, help="On the CPU; default: all.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed draws the same.")]
Resamples = Annotated[
    int, typer.Option(min=1, help="Number of bootstrap samples, and of permutations of a test.")
]
Conditions = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Take these rows only.")
]
Scale = Annotated[
    str | None, typer.Option(metavar="LOW:HIGH", help="Of the human scores, for mse and mae.")
]


@dataclass(frozen=True)
class SelectedMetric:
    """A metric, and the columns of it that are to be shown."""

    metric: "PipelineScorer"
    columns: tuple[str, ...]


def split_column(text: str) -> tuple[str, str | None]:
    """The metric and the column of NAME[:COLUMN], where NAME may be FILE.py:NAME."""
    in_file = _IN_FILE.fullmatch(text)
    if in_file:
        return in_file[1], in_file[2]
    name, colon, column = text.partition(":")
    return name, column if colon else None


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Values by name from NAME=VALUE: JSON where it is JSON, text otherwise."""
    parsed: dict[str, Any] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"--set {item} lacks a value; write --set {item}=0.5")
        try:
            parsed[name] = json.loads(value)
        except (ValueError, RecursionError):
            parsed[name] = float(value) if value in ("inf", "-inf") else value
    return parsed


def parse_conditions(items: list[str]) -> dict[str, str]:
    """Required values by column from COLUMN=VALUE."""
    conditions = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"--where {item} lacks a value; write --where {item}=VALUE")
        conditions[name] = value
    return conditions


def parse_scale(scale: str | None) -> tuple[float, float] | None:
    """Two numbers from LOW:HIGH."""
    if scale is None:
        return None
    low, _, high = scale.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError:
        raise InvalidInput(f"--scale {scale} is not of the form 0:10") from None
    if not bounds[0] < bounds[1]:
        raise InvalidInput(f"--scale {scale} is empty; write the lower number first")
    return bounds


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def language_setting(
    lang: str | None,
    names: list[str],
    encoder: str | None = None,
    refs: Iterable[str] = (),
    pair: str | None = None,
) -> dict[str, str]:
    """The language as a setting, and a line on stderr for what it changes.

    It is that of --lang, or the target of the language pair SRC-TGT, and without either that of
    the references, where a metric would encode them with an encoder of some languages only. Where
    their language has no encoder, they are refused unless one is named.
    """
    target = lang if lang is not None or pair is None else pair.rpartition("-")[2]
    if target is not None:
        chosen = _detected(refs) if target == AUTO else language_code(target)
        return _apply_language(chosen, names, encoder, said=True)
    if not _metrics_by_language(names):
        return {}
    return _apply_language(detect_surely(refs), names, encoder, said=False)


def _apply_language(
    lang: str | None, names: list[str], encoder: str | None, said: bool
) -> dict[str, str]:
    """The settings of a language; metrics without an encoder get it only where it was said."""
    import freight

    by_language, metrics = _metrics_by_language(names), _distinct(names)
    if lang is not None and by_language and not reads_english(lang):
        _say_encoder(lang, by_language, encoder)
    if lang is None or (not said and (encoder is not None or reads_english(lang))):
        return {}
    if not said:
        return {f"{metric}.lang": lang for metric in by_language}
    if not by_language and not any("lang" in freight.parameters(one) for one in metrics):
        typer.echo(f"--lang {lang} makes no difference to {', '.join(metrics)}", err=True)
        return {}
    return {"lang": lang}


def _say_encoder(lang: str, metrics: list[str], encoder: str | None) -> None:
    """Which encoder reads a language, or that the one that is named does not."""
    import freight
    from freight.encoders import MULTILINGUAL, PACKAGED, languages_of

    language, multilingual = language_name(lang), PACKAGED[MULTILINGUAL]
    if encoder is not None:
        known = languages_of(freight.encoder(encoder))
        if known is not None and lang not in known:
            note = f"freight: the encoder {encoder} does not read {language}: its scores say little"
            typer.echo(note, err=True)
        return
    if not multilingual.is_installed:
        raise MissingPart(
            f"the references are in {language}, which the encoder of {', '.join(metrics)} does not"
            f" read; run  {multilingual.install}  or name one, --encoder embedded for what there is"
        )
    typer.echo(f"language: {language}; encoder: {MULTILINGUAL}", err=True)


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(split_column(name)[0] for name in names))


def _metrics_by_language(names: list[str]) -> list[str]:
    """The metrics whose encoder depends on the language, unless one is named."""
    from freight.encoders import FOR_OTHERS
    from freight.metrics import default_encoder

    return [one for one in _distinct(names) if default_encoder(one) in FOR_OTHERS]


def _detected(refs: Iterable[str]) -> str:
    """The language that the references seem to be in, noted on stderr."""
    if (language := detect(refs)) is None:
        raise InvalidInput("--lang auto finds no language in the references; name it, --lang cs")
    typer.echo(f"language: {language}, by the look of the references", err=True)
    return language


def wanted_metrics(
    names: list[str],
    encoder: str | None,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    cache: bool = False,
    every: bool = True,
) -> list[SelectedMetric]:
    """Load each metric once, with its settings and the columns that were asked for.

    A setting goes to every metric that has it, METRIC.NAME to that metric only. A name without a
    column means every column of a metric, or with `every=False` the primary one.
    """
    import freight

    columns: dict[str, list[str]] = {}
    for wanted in names:
        name, column = split_column(wanted)
        unnamed = [] if every else [""]
        columns.setdefault(name, []).extend(unnamed if column is None else [column])
    unused = set(settings)
    loaded: list[SelectedMetric] = []
    for name, picked in columns.items():
        mine, used = _settings(name, settings)
        unused -= used
        chosen = encoder_setting(name, encoder, options, cache, mine.get("lang"))
        metric = freight.load(name, **chosen, **mine)
        if any(other.metric.name == metric.name for other in loaded):
            raise InvalidInput(f"two metrics are called {metric.name}; name one of them otherwise")
        loaded.append(SelectedMetric(metric, _columns(metric, picked)))
    for setting in sorted(unused):
        owner, _, parameter = setting.rpartition(".")
        name = owner or next(iter(columns))
        freight.load(name, **{parameter: settings[setting]})
        raise InvalidInput(f"--set {setting}: {name} is not among the metrics of this run")
    return loaded


def encoder_setting(
    metric: str,
    name: str | None,
    options: Mapping[str, Any],
    cache: bool,
    lang: str | None = None,
) -> dict[str, Any]:
    """The encoder as a setting, where the metric has one and an option concerns it."""
    import freight
    from freight.encoders import is_static

    if (name is None and not options and not cache) or "encoder" not in freight.parameters(metric):
        return {}
    chosen = name or freight.default_encoder(metric, lang)
    if chosen is None:  # a user's factory that has an encoder object for a default
        return {}
    if cache and not is_static(chosen):  # looking up words is faster than reading a disk
        return {"encoder": freight.with_cache(freight.encoder(chosen, **options))}
    return {"encoder": freight.encoder(chosen, **options) if options else chosen}


def _settings(metric: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The settings of a metric by parameter, and the names under which they were given."""
    from freight.metrics import find_metric

    declaration = find_metric(metric)
    mine, used = {}, set()
    for given, value in settings.items():
        owner, _, name = given.rpartition(".")
        if owner not in ("", metric) or name == "encoder":
            continue
        current = declaration.current_name(name)
        if current in declaration.settable:
            mine[current] = value
            used.add(given)
    return mine, used


def _columns(metric: "PipelineScorer", picked: list[str]) -> tuple[str, ...]:
    there = [column.name for column in metric.columns]
    picked = [column or there[0] for column in picked]
    for column in picked:
        if column not in there:
            known = ", ".join(there)
            raise InvalidInput(f"{metric.name} has no column {column!r}; there is {known}")
    return tuple(picked or there)


@dataclass(frozen=True)
class Threshold:
    """A score that the systems have to reach in a column of a metric, or every segment has to.

    Without a metric it is for the first one, without a column for the primary one. What could not
    be scored has not reached it.
    """

    metric: str
    column: str
    value: float
    every_segment: bool

    @classmethod
    def parse(cls, text: str, every_segment: bool) -> "Threshold":
        """From METRIC:COLUMN:X, where the first two may be left out."""
        name, _, number = text.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidInput(f"--fail-under {text}: {number!r} is not a number")
        metric, column = split_column(name)
        return cls(metric, column or "", value, every_segment)

    def find(self, requested: Sequence[SelectedMetric]) -> "tuple[int, Column]":
        """The number of the metric, and its column."""
        names = [one.metric.name for one in requested]
        if self.metric and self.metric not in names:
            raise InvalidInput(f"--fail-under {self.metric}: scored is {', '.join(names)}")
        k = names.index(self.metric) if self.metric else 0
        columns = {column.name: column for column in requested[k].metric.columns}
        if self.column and self.column not in columns:
            known = ", ".join(columns)
            raise InvalidInput(f"{names[k]} has no column {self.column!r}; there is {known}")
        return k, columns[self.column or requested[k].columns[0]]

    def is_missed(self, score: float, column: "Column") -> bool:
        """Whether a score is worse, or there is none."""
        return not (score >= self.value if column.higher else score <= self.value)


def missed_thresholds(
    thresholds: Sequence[Threshold],
    requested: Sequence[SelectedMetric],
    systems: Mapping[str, Sequence[Mapping[str, float]]],
    results: "Sequence[Result]" = (),
    rows: Sequence[str] = (),
) -> list[str]:
    """A line for each threshold that is missed, by the scores of systems, or of named rows."""
    lines = []
    for one in thresholds:
        k, column = one.find(requested)
        name = f"{requested[k].metric.name}:{column.name}"
        beyond = f"{'under' if column.higher else 'over'} {one.value:g}"
        if one.every_segment:
            every = zip(rows, results[k][column.name], strict=True)
            bad = [row for row, x in every if one.is_missed(x, column)]
            if bad:
                first = ", ".join(bad[:10]) + (", ..." if len(bad) > 10 else "")
                lines.append(f"{name} is {beyond} in {len(bad)} of {len(results[k])}: {first}")
            continue
        for system, scores in systems.items():
            score = scores[k][column.name]
            if one.is_missed(score, column):
                whose = f"{system}: " if system else ""
                lines.append(f"{whose}{name} is {score:.4f}, {beyond}")
    return lines


@dataclass(frozen=True)
class GateOptions:
    """What the scores have to reach."""

    panel: ClassVar = "Gate, for continuous integration"

    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[METRIC[:COLUMN]:]X",
            help="Exit with status 3 where a system's score is worse; may be repeated.",
        ),
    ] = None
    fail_under_segment: Annotated[
        list[str] | None,
        typer.Option(metavar="[METRIC[:COLUMN]:]X", help="The same for every segment."),
    ] = None

    def thresholds(self) -> list[Threshold]:
        """What was asked, before any work is done."""
        asked = ((self.fail_under, False), (self.fail_under_segment, True))
        return [Threshold.parse(one, each) for several, each in asked for one in several or ()]
