"""What a command line says of metrics: names, columns, settings; and the options that say it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freight.cli import completion
from freight.data.languages import AUTO
from freight.errors import InvalidInput

if TYPE_CHECKING:
    from freight.core.scoring import Scorer


DEFAULT = "freight"
"""The metric where none is named."""

# Options that several commands have, written once so that they mean the same in each.
MetricNames = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--metric",
        metavar="NAME[:COLUMN]",
        help=f"From `freight metrics`; may be repeated. Default: {DEFAULT}.",
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
Layer = Annotated[
    str | None, typer.Option(help="Hidden state: 4, -1 (the last), -5: (the last five), all.")
]
Lang = Annotated[
    str | None, typer.Option(help="Target language: en, zh, de, ...; auto looks at REF.")
]
Preset = Annotated[
    str | None, typer.Option(help="Settings by name, such as a paper's, or a .json file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[METRIC.]NAME=VALUE",
        help="A parameter of one metric or of all; may be repeated.",
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
class RequestedMetric:
    """A metric, and the columns of it that are to be shown."""

    metric: "Scorer"
    columns: tuple[str, ...]


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """From NAME=VALUE to values: JSON where it is that, text otherwise."""
    found: dict[str, Any] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"--set {item} lacks a value; write --set {item}=0.5")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = float(value) if value in ("inf", "-inf") else value
    return found


def parse_conditions(items: list[str]) -> dict[str, str]:
    """From COLUMN=VALUE to what rows have to have."""
    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"--where {item} lacks a value; write --where {item}=VALUE")
        found[name] = value
    return found


def parse_scale(scale: str | None) -> tuple[float, float] | None:
    """From LOW:HIGH to two numbers."""
    if scale is None:
        return None
    low, _, high = scale.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        raise InvalidInput(f"--scale {scale} is not of the form 0:10") from None
    if not found[0] < found[1]:
        raise InvalidInput(f"--scale {scale} is empty; write the lower number first")
    return found


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def language_setting(
    lang: str | None, names: list[str], encoder: str | None = None, refs: Iterable[str] = ()
) -> dict[str, str]:
    """The language, where a metric knows languages; where none does, a note that all are alike.

    `auto` is what the references seem to be in, which is said. A language other than English is
    noted where the encoder knows English alone.
    """
    import freight

    if lang is None:
        return {}
    chosen = detected(refs) if lang == AUTO else lang
    metrics = list(dict.fromkeys(name.partition(":")[0] for name in names))
    taking = [metric for metric in metrics if "encoder" in freight.parameters(metric)]
    if chosen not in ("en", "code") and any(_is_english(one, encoder) for one in taking):
        typer.echo(
            f"the embedded encoder knows English; for {chosen} give another, such as"
            " --encoder xlm-roberta-base",
            err=True,
        )
    if any("lang" in freight.parameters(metric) for metric in metrics):
        return {"lang": chosen}
    typer.echo(f"--lang {chosen} makes no difference to {', '.join(metrics)}", err=True)
    return {}


def target_setting(pair: str, names: list[str]) -> dict[str, str]:
    """The target language of SRC-TGT, where a metric knows languages."""
    import freight

    target = pair.rpartition("-")[2]
    metrics = {name.partition(":")[0] for name in names}
    known = any("lang" in freight.parameters(metric) for metric in metrics)
    return {"lang": target} if known else {}


def detected(refs: Iterable[str]) -> str:
    """The language that references seem to be in, which is told."""
    from freight.data.languages import detect

    found = detect(refs)
    if found is None:
        raise InvalidInput("--lang auto finds no language in the references; name it, --lang cs")
    typer.echo(f"language: {found}, by the look of the references", err=True)
    return found


def _is_english(metric: str, encoder: str | None) -> bool:
    """Whether a metric encodes with the embedded encoder, or what is distilled from it."""
    import freight
    from freight.encoders import DISTILLED, EMBEDDED

    return (encoder or freight.default_encoder(metric)) in (DISTILLED, EMBEDDED)


def wanted_metrics(
    names: list[str],
    encoder: str | None,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    cache: bool = False,
    every: bool = True,
) -> list[RequestedMetric]:
    """Load each metric once, with the settings that are for it, and the columns asked for.

    A setting goes to every metric that knows it, METRIC.NAME to that one alone. A name alone is for
    every column of a metric, or else for the primary one.
    """
    import freight

    columns: dict[str, list[str]] = {}
    for wanted in names:
        name, colon, column = wanted.partition(":")
        columns.setdefault(name, []).extend([column] if colon else [] if every else [""])
    unused = set(settings)
    found = []
    for name, picked in columns.items():
        mine, used = _settings(name, settings)
        unused -= used
        metric = freight.load(name, **encoder_setting(name, encoder, options, cache), **mine)
        found.append(RequestedMetric(metric, _columns(metric, picked)))
    for setting in sorted(unused):
        name = setting.partition(".")[0] if "." in setting else next(iter(columns))
        freight.load(name, **{setting.rpartition(".")[2]: settings[setting]})
        raise InvalidInput(f"--set {setting}: {name} is not among the metrics of this run")
    return found


def encoder_setting(
    metric: str, name: str | None, options: Mapping[str, Any], cache: bool
) -> dict[str, Any]:
    """The encoder, where the metric has one and something is said of it."""
    import freight
    from freight.encoders import is_static

    if (name is None and not options and not cache) or "encoder" not in freight.parameters(metric):
        return {}
    chosen = name or freight.default_encoder(metric)
    if cache and not is_static(chosen):  # looking up words is faster than reading a disk
        return {"encoder": freight.with_cache(freight.encoder(chosen, **options))}
    return {"encoder": freight.encoder(chosen, **options) if options else chosen}


def _settings(metric: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The settings that are for a metric, and under which names they were given."""
    import freight

    known = freight.parameters(metric)
    mine, used = {}, set()
    for given, value in settings.items():
        owner, _, name = given.rpartition(".")
        if owner in ("", metric) and name in known and name != "encoder":
            mine[name] = value
            used.add(given)
    return mine, used


def _columns(metric: "Scorer", picked: list[str]) -> tuple[str, ...]:
    there = [column.name for column in metric.columns]
    picked = [column or there[0] for column in picked]
    for column in picked:
        if column not in there:
            raise InvalidInput(
                f"{metric.name} has no column {column!r}; there is {', '.join(there)}"
            )
    return tuple(picked or there)
