"""What a shell offers while one types: names, columns, encoders.

A key that is pressed cannot wait for torch, so names and columns are written down here once more;
a test holds them to the catalogue.
"""

import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout

_TRANSPORT, _FORCE = ("transport", "objective"), ("f1", "precision", "recall")
_CLOSENESS, _SCORE = ("similarity", "distance"), ("score",)
_STRINGS = (
    "bleu sentence-bleu chrf chrf++ word-f ter rouge-1 rouge-2 rouge-l nist meteor"
    " wer per character"
)

COLUMNS: dict[str, tuple[str, ...]] = {
    "freight": _SCORE,
    "lazy-emd": _TRANSPORT,
    "emd": _TRANSPORT,
    "bert-score": _FORCE,
    "f-alpha": ("f", *_FORCE[1:]),
    "yisi-1": ("f", *_FORCE[1:]),
    "bary-score": ("distance",),
    "wrd-score": (*_FORCE, "wrd"),
    "wrd-score-code": (*_FORCE, "wrd"),
    "std": ("distance", "similarity", "unigram", "bigram"),
    "wmd": ("distance",),
    "wmdo": ("distance",),
    "mover-score": _CLOSENESS,
    "sms": _CLOSENESS,
    "s+wms": _CLOSENESS,
    "doc-lazy-emd": ("objective", "transport"),
    **dict.fromkeys(_STRINGS.split(), _SCORE),
}
"""The metrics, and the columns of each, the primary one first."""

ENCODERS = ("embedded", "distilled", "distilled:", "static:", "hashed", "one-hot")
"""How the names of encoders begin; folders and files are completed by the shell itself."""


def metrics(incomplete: str) -> list[tuple[str, str]]:
    """Names of metrics, with their columns for a hint; after a colon, the columns."""
    name, colon, _ = incomplete.partition(":")
    if colon:
        return [(f"{name}:{column}", f"column of {name}") for column in COLUMNS.get(name, ())]
    return [(name, " ".join(columns)) for name, columns in COLUMNS.items()]


def encoders() -> list[str]:
    """Names of encoders, or how they begin."""
    return list(ENCODERS)


def among(*values: str) -> Callable[[], list[str]]:
    """Offer these."""
    return lambda: list(values)


def in_bash(run: Callable[[], None]) -> None:
    """Run a completion that bash asks for, which takes words apart at colons and equals signs.

    They are put together again, and of what is found, only what follows the last colon is said.
    """
    at = int(os.environ["COMP_CWORD"])
    words = _rejoined(os.environ["COMP_WORDS"].split("\n")[: at + 1])
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(len(words) - 1)
    said = words[-1][: words[-1].rfind(":") + 1]
    found = io.StringIO()
    try:
        with redirect_stdout(found):
            run()
    finally:
        for line in found.getvalue().splitlines():
            print(line.removeprefix(said))


def _rejoined(words: list[str]) -> list[str]:
    found: list[str] = []
    for k, word in enumerate(words):
        if found and (word.startswith(":") or found[-1].endswith(":")):
            found[-1] += word
        elif word == "=" and found and found[-1].startswith("--"):
            found.extend([""] if k == len(words) - 1 else [])
        else:
            found.append(word)
    return found
