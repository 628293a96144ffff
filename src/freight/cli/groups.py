"""Options in groups: a command takes a few dataclasses, and the shell sees their fields.

A group is a dataclass whose fields are annotated as typer's parameters. `grouped` turns a
function that takes groups into a command. The groups that several commands share are defined here.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from freight.cli import completion, options
from freight.cli.options import (
    DEFAULT,
    SelectedMetric,
    given,
    language_setting,
    parse_settings,
    wanted_metrics,
)
from freight.data.wmt import COLUMNS
from freight.errors import InvalidInput

PRINTED = ("text", "json", "markdown", "latex")
DEFAULT_SAMPLES = 1000
SHARD_FORMATS = ("parquet", "jsonl", "csv", "tsv")
ENGINES = ("local", "ray")
SIGNATURES = ("short", "full")
BASELINES = ("shuffled",)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command of the function: its options are the fields of the function's parameters.

    The panel of a group is the heading of its options in the help text.
    """
    groups = {name: kind for name, kind in get_type_hints(command).items() if name != "return"}

    @wraps(command)
    def call(**values: Any) -> None:
        command(
            **{
                name: kind(**{field.name: values[field.name] for field in fields(kind)})
                for name, kind in groups.items()
            }
        )

    parameters = [one for kind in groups.values() for one in _parameters(kind)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        annotation = hints[field.name]
        kind, info = get_args(annotation)
        if isinstance(info, OptionInfo):
            info = copy(info)
            info.rich_help_panel = group.panel
            if info.metavar is None and int in (kind, *get_args(kind)):
                info.metavar = "N"
            annotation = Annotated[kind, info]
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        keyword = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(field.name, keyword, default=default, annotation=annotation)


def files_of(name: str) -> list[str]:
    """The file itself, or the files of a folder by name."""
    if name == "-" or not Path(name).is_dir():
        return [name]
    files = sorted(x for x in Path(name).iterdir() if x.is_file() and not x.name.startswith("."))
    if not files:
        raise InvalidInput(f"{name} is a folder without files; give one of systems' outputs")
    return [str(path) for path in files]


@dataclass(frozen=True)
class MetricOptions:
    """The names of the metrics."""

    panel: ClassVar = "Metrics"

    metric: options.MetricNames = None

    @property
    def names(self) -> list[str]:
        """The metrics named, or the default one."""
        return self.metric or [DEFAULT]


@dataclass(frozen=True)
class SettingOptions:
    """Settings of the metrics."""

    panel: ClassVar = MetricOptions.panel

    layer: options.Layer = None
    lang: options.Lang = None
    preset: options.Preset = None
    settings: options.Settings = None


@dataclass(frozen=True)
class EncoderOptions:
    """The encoder, its adapter, where it runs, and the cache of its vectors."""

    panel: ClassVar = "Encoder"

    encoder: options.EncoderName = None
    adapter: options.AdapterPath = None
    device: options.Device = None
    dtype: options.Dtype = None
    threads: options.Threads = None
    cache: options.Cache = False

    @property
    def placement(self) -> dict[str, Any]:
        """The options that the encoder itself takes."""
        return given(device=self.device, dtype=self.dtype)

    def set_threads(self) -> None:
        """Limit the threads of this process, where a number is given."""
        if self.threads is not None:
            import freight

            freight.set_threads(self.threads)


@dataclass(frozen=True)
class TableOptions:
    """How input files are read."""

    panel: ClassVar = "Input files"

    hyp_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of a table. Default: hyp.")
    ] = None
    ref_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Column of a table; may be repeated. Default: refs or ref."
        ),
    ] = None
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class AgreementOptions:
    """The statistic of agreement with people, and its resampling."""

    panel: ClassVar = "Statistics"

    level: options.Level = None
    statistic: options.Statistic = None
    scale: options.Scale = None
    resamples: options.Resamples = 1000
    seed: options.Seed = 0


@dataclass(frozen=True)
class PrintOptions:
    """What is printed."""

    panel: ClassVar = "Output"

    as_json: options.AsJson = False
    escape: options.Escape = False
    width: Annotated[
        int, typer.Option("-w", "--width", min=0, max=15, help="Number of decimals.")
    ] = 4
    critical: Annotated[
        bool, typer.Option("--critical", help="List the segments with critical differences.")
    ] = False
    score_only: Annotated[
        bool, typer.Option("-b", "--score-only", help="Print the scores and nothing else.")
    ] = False
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{BASELINES[0]}: also score against references of other segments.",
            autocompletion=completion.among(*BASELINES),
        ),
    ] = None
    signature: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"{' or '.join(SIGNATURES)}: to cite, or every choice.",
            autocompletion=completion.among(*SIGNATURES),
        ),
    ] = SIGNATURES[0]
    explain: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Explain the N worst and N best segments on a page."),
    ] = 10
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The heading of a page, -o page.html.")
    ] = None

    def page_title(self, outputs: Sequence[str]) -> str:
        """The heading of the pages among the outputs; refused where there is no page."""
        if self.title is not None and not any(one.endswith((".html", ".htm")) for one in outputs):
            raise InvalidInput("--title is the heading of a page; give -o page.html too")
        return self.title or ""


@dataclass(frozen=True)
class IntervalOptions:
    """Bootstrap confidence intervals."""

    panel: ClassVar = "Confidence intervals"

    confidence: Annotated[
        bool, typer.Option("--confidence", "-ci", help="Print bootstrap confidence intervals.")
    ] = False
    confidence_n: Annotated[
        int, typer.Option("--confidence-n", "-cin", min=1, help="Bootstrap samples.")
    ] = DEFAULT_SAMPLES
    seed: options.Seed = 0


@dataclass(frozen=True)
class PairedTestOptions:
    """Significance tests of systems against the first one."""

    panel: ClassVar = "Paired tests against the first system"

    paired_bs: Annotated[
        bool, typer.Option("--paired-bs", "-pbs", help="Paired bootstrap resampling.")
    ] = False
    paired_bs_n: Annotated[
        int | None,
        typer.Option("--paired-bs-n", "-pbsn", min=1, help="Bootstrap samples. Default: 1000."),
    ] = None
    paired_ar: Annotated[
        bool, typer.Option("--paired-ar", "-par", help="Paired approximate randomization.")
    ] = False
    paired_ar_n: Annotated[
        int | None,
        typer.Option("--paired-ar-n", "-parn", min=1, help="Permutations. Default: 10000."),
    ] = None

    def chosen(self) -> tuple[str, int | None]:
        """The test (bs, ar or none) and its number of resamples; two tests at once are refused."""
        tests = {"bs": self.paired_bs, "ar": self.paired_ar}
        resamples = {"bs": self.paired_bs_n, "ar": self.paired_ar_n}
        asked = [name for name, yes in tests.items() if yes]
        if len(asked) > 1:
            raise InvalidInput("--paired-bs and --paired-ar are two tests; choose one")
        for name, count in resamples.items():
            if count and name not in asked:
                raise InvalidInput(f"--paired-{name}-n is for --paired-{name}; give that too")
        return (asked[0], resamples[asked[0]]) if asked else ("", None)


@dataclass(frozen=True)
class FolderOptions:
    """A run into a folder of shards."""

    panel: ClassVar = "Runs into a folder, -o out/"

    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run that is in the folder.")
    ] = False
    shard: Annotated[
        int | None, typer.Option("--shard", min=1, help="Segments per file. Default: 20000.")
    ] = None
    checkpoint: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Keep what is scored of a file so often. Default: 30."
        ),
    ] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per GPU.")] = (
        None
    )
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{' or '.join(ENGINES)}. Default: {ENGINES[0]}.",
            autocompletion=completion.among(*ENGINES),
        ),
    ] = None
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster. Default: $RAY_ADDRESS.")
    ] = None

    def run(self, outputs: Sequence[str], form: str | None) -> "FolderRun | None":
        """The run into a folder; nothing where the outputs are files, or there are none."""
        if form is not None and form not in SHARD_FORMATS:
            known = ", ".join((*SHARD_FORMATS, *PRINTED, *COLUMNS))
            raise InvalidInput(f"--format {form}; there is {known}")
        folder = next((one for one in outputs if one.endswith("/") or Path(one).is_dir()), None)
        if folder is None:
            for name, value in {**vars(self), "format": form}.items():
                if value is not None and value is not False:
                    wrong = next(iter(outputs), "out")
                    raise InvalidInput(f"--{name} is for runs into a folder; write -o {wrong}/")
            return None
        if len(outputs) > 1:
            raise InvalidInput(f"{folder} is a folder; a run into a folder has no other output")
        engine = self.engine or ENGINES[0]
        if engine not in ENGINES:
            raise InvalidInput(f"--engine {engine}; there is {', '.join(ENGINES)}")
        if self.address is not None and engine != "ray":
            raise InvalidInput("--address is that of a Ray cluster; say --engine ray too")
        sizes = given(shard=self.shard, checkpoint=self.checkpoint, workers=self.workers)
        chosen = {"resume": self.resume, **sizes, **given(address=self.address)}
        return FolderRun(Path(folder), engine, form or SHARD_FORMATS[0], chosen)


@dataclass(frozen=True)
class FolderRun:
    """A folder, the engine that scores into it, the format of the shards, and its arguments."""

    path: Path
    engine: str
    form: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Presentation:
    """How scores are printed: the format, the decimals, intervals and the paired test.

    Without a format they are printed as a table, `critical` with a list of critical differences.
    `samples` is the number of bootstrap samples, 0 for no intervals; `test` is bs, ar or empty.
    """

    form: str | None = None
    width: int = 4
    score_only: bool = False
    samples: int = 0
    test: str = ""
    resamples: int | None = None
    seed: int = 0
    critical: bool = False
    signature: str = SIGNATURES[0]
    baseline: str | None = None

    def __post_init__(self) -> None:
        if self.baseline not in (None, *BASELINES):
            raise InvalidInput(f"--baseline {self.baseline}; there is {', '.join(BASELINES)}")
        if self.signature not in SIGNATURES:
            raise InvalidInput(f"--signature {self.signature}; there is {', '.join(SIGNATURES)}")

    @classmethod
    def of(
        cls,
        form: str | None,
        printing: PrintOptions,
        intervals: IntervalOptions,
        tests: PairedTestOptions,
    ) -> "Presentation":
        """The presentation that the options describe; other formats are for files."""
        test, resamples = tests.chosen()
        return cls(
            form=form if form in PRINTED else None,
            width=printing.width,
            score_only=printing.score_only,
            samples=intervals.confidence_n if intervals.confidence else 0,
            test=test,
            resamples=resamples,
            seed=intervals.seed,
            critical=printing.critical,
            signature=printing.signature,
            baseline=printing.baseline,
        )

    @property
    def primary_only(self) -> bool:
        """Whether a metric is printed as its primary column alone, unless others are named."""
        return self.score_only or self.form is not None

    @property
    def needs_scores(self) -> bool:
        """Whether the scores of all segments have to be in memory."""
        return self.primary_only or bool(self.samples) or bool(self.test)

    def cited(self, signature: str) -> str:
        """The signature as it is printed."""
        from freight.core.result import cite

        return cite(signature) if self.signature == SIGNATURES[0] else signature

    def number(self, value: float) -> str:
        """The number with the decimals asked for."""
        return f"{value:.{self.width}f}"


@dataclass(frozen=True)
class MetricChoice:
    """The metrics of a run, which are loaded once its references can be read."""

    names: list[str]
    settings: SettingOptions
    encoder: EncoderOptions

    def load(
        self,
        refs: Iterable[str],
        language_pair: str | None = None,
        every_column: bool = True,
    ) -> list[SelectedMetric]:
        """Load the metrics, each with the columns asked for.

        The language is that of --lang, the target of the language pair, or that of the references.
        A metric named without a column stands for all its columns, or for the
        primary one.
        """
        named, encoder = self.settings, self.encoder
        encoder.set_threads()
        language = language_setting(named.lang, self.names, encoder.encoder, refs, language_pair)
        settings = given(layer=named.layer, preset=named.preset, adapter=encoder.adapter)
        return wanted_metrics(
            self.names,
            encoder.encoder,
            encoder.placement,
            {**settings, **language, **parse_settings(named.settings or [])},
            encoder.cache,
            every=every_column,
        )
