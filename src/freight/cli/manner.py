"""How `freight score` says what it found, in the words and habits of sacrebleu."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from freight.errors import InvalidInput

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
    from freight.catalogue import METRICS

    return word.partition(":")[0] in METRICS


def _files(name: str) -> list[str]:
    """The files of a folder by name, or the file itself."""
    if name == "-" or not Path(name).is_dir():
        return [name]
    found = sorted(x for x in Path(name).iterdir() if x.is_file() and not x.name.startswith("."))
    if not found:
        raise InvalidInput(f"{name} is a folder without files; give one of systems' outputs")
    return [str(path) for path in found]
