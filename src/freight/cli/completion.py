"""Shell completion of metrics, their columns and settings, and of encoders.

All of it comes from the declarations of the metrics, which do not import torch: a key that is
pressed cannot wait for that.
"""

import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout

ENCODERS = (
    "embedded",
    "multilingual",
    "e5-small",
    "all-mpnet-base-v2",
    "distilled",
    "distilled:",
    "static:",
    "hashed",
    "one-hot",
)
"""How the names of encoders begin; folders and files are completed by the shell itself."""


def metrics(incomplete: str) -> list[tuple[str, str]]:
    """Names of metrics, with their columns for a hint; after a colon, the columns."""
    from freight.metrics import built_in_metrics
    from freight.metrics.extensions import installed

    known = built_in_metrics()
    name, colon, _ = incomplete.partition(":")
    if colon:
        columns = known[name].columns or () if name in known else ()
        return [(f"{name}:{column}", f"column of {name}") for column in columns]
    built_in = [(name, " ".join(one.columns or ())) for name, one in known.items()]
    return built_in + [(name, "installed") for name in installed() if name not in known]


def settings(incomplete: str) -> list[tuple[str, str]]:
    """Parameters of all metrics, or of one after its name and a dot; after =, the choices."""
    from freight.metrics import built_in_metrics

    known = built_in_metrics()
    given, equals, _ = incomplete.partition("=")
    owner, dot, name = given.rpartition(".")
    owners = [known[owner]] if owner in known else [] if dot else list(known.values())
    pairs = [pair for declaration in owners for pair in declaration.parameters.items()]
    if not equals:
        sentences = {key: one.description for key, one in reversed(pairs)}
        ordered = dict.fromkeys(key for key, _ in pairs)
        return [(f"{owner}{dot}{key}=", sentences[key]) for key in ordered]
    choices = dict.fromkeys(choice for key, one in pairs if key == name for choice in one.choices)
    return [(f"{given}={choice}", f"choice of {name}") for choice in choices]


def encoders() -> list[str]:
    """Names of encoders, or their beginnings."""
    return list(ENCODERS)


def among(*values: str) -> Callable[[], list[str]]:
    """A completion that offers these values."""
    return lambda: list(values)


def in_bash(run: Callable[[], None]) -> None:
    """Run a completion for bash, which splits words at colons and equals signs.

    The words are put together again, and of each answer only what follows the last colon or equals
    sign of the word is printed.
    """
    at = int(os.environ["COMP_CWORD"])
    words = _rejoin(os.environ["COMP_WORDS"].split("\n")[: at + 1])
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(len(words) - 1)
    typed = words[-1][: max(words[-1].rfind(":"), words[-1].rfind("=")) + 1]
    answers = io.StringIO()
    try:
        with redirect_stdout(answers):
            run()
    finally:
        for line in answers.getvalue().splitlines():
            print(line.removeprefix(typed))


def _rejoin(words: list[str]) -> list[str]:
    """The words as they were typed: NAME:COLUMN and NAME=VALUE whole, --option VALUE apart."""
    whole: list[str] = []
    for k, word in enumerate(words):
        last = whole[-1] if whole else ""
        if word == "=" and last.startswith("--"):
            whole.extend([""] if k == len(words) - 1 else [])
        elif whole and (word[:1] in (":", "=") or last[-1:] in (":", "=")):
            whole[-1] += word
        else:
            whole.append(word)
    return whole
