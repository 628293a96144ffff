"""Results: a score for each segment, its flags, and the signature that names every choice."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from freight.core.flags import NO_FLAGS, Flag, FlagKind
from freight.core.types import PairScores, is_ours
from freight.errors import InvalidInput, MissingPart, source_digest
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.scale import Scale

REFERENCES = ("best", "each", "mean")
"""The rules by which several references become one score."""


_MOST_UNREAD = 0.1
"""The share of references in an unread language up to which scores are placed on a scale."""


@dataclass(frozen=True)
class Column:
    """A column of scores: which way is better, what identical texts get, and the range.

    `worst` is the score of unrelated texts (every cosine is 0), and of a text whose other side is
    empty. It is nan where there is no such score. Vectors that point in opposite
    directions may score worse; no score leaves `bounds`, whatever the rounding.
    """

    name: str
    higher: bool
    perfect: float
    worst: float
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def clip(self, scores: ArrayLike) -> Array:
        """The scores within the bounds; zero has no sign."""
        return np.clip(scores, *self.bounds) + 0.0


class NamedColumns(Protocol):
    """Whatever has a name and columns of scores."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The primary one first."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Scores in input order, the first column the primary one.

    `winners` is the reference that each segment's scores come from; `flags` says, by segment, what
    could not be scored normally. Where system scores are not means, `tallies` holds numbers per
    segment that add up, and `total` computes system scores from their sum.
    """

    name: str
    columns: tuple[Column, ...]
    segments: dict[str, Array]
    winners: Array
    flags: tuple[tuple[Flag, ...], ...]
    signature: str
    tallies: Array | None = None
    total: Callable[[Array], dict[str, float]] | None = None

    def __post_init__(self) -> None:
        if any(self.flags):
            flags = (tuple(_flag(flag) for flag in one) for one in self.flags)
            object.__setattr__(self, "flags", tuple(flags))

    @classmethod
    def of(
        cls,
        scorer: NamedColumns,
        scores: Mapping[str, ArrayLike],
        flags: Sequence[Sequence[str]] = (),
        signature: str = "",
    ) -> Result:
        """A result from one list of scores per column, for scorers of one's own."""
        lacking = [column.name for column in scorer.columns if column.name not in scores]
        if lacking:
            raise InvalidInput(f"{scorer.name} gave no scores for its column {lacking[0]!r}")
        segments = {c.name: np.asarray(scores[c.name], np.float64) for c in scorer.columns}
        count = len(segments[scorer.columns[0].name])
        if any(values.shape != (count,) for values in segments.values()):
            raise InvalidInput(f"the columns of {scorer.name} need one number per segment each")
        raised = tuple(tuple(_flag(flag) for flag in one) for one in flags) or ((),) * count
        winners = np.zeros(count, np.int64)
        signed = signature or scorer.name
        return cls(scorer.name, tuple(scorer.columns), segments, winners, raised, signed)

    @classmethod
    def joined(cls, parts: Sequence[Result]) -> Result:
        """Results of the same metric on consecutive segments, as one."""
        first = parts[0]
        columns = {
            name: np.concatenate([part.segments[name] for part in parts]) for name in first.segments
        }
        winners = np.concatenate([part.winners for part in parts])
        flags = tuple(raised for part in parts for raised in part.flags)
        tallied = [part.tallies for part in parts if part.tallies is not None]
        tallies = np.concatenate(tallied) if tallied else None
        return replace(first, segments=columns, winners=winners, flags=flags, tallies=tallies)

    def with_differences(
        self, hyps: Sequence[str], refs: Sequence[str] | Sequence[Sequence[str]]
    ) -> Result:
        """A copy whose flags also say what differs critically between the texts of each segment.

        The scores stay as they are. The spans of a difference are in the reference that wins.
        """
        from freight.core.critical import critical_differences

        segments = zip(hyps, refs, self.winners.tolist(), self.flags, strict=True)
        flags = tuple(
            (*raised, *critical_differences(hyp, several, winner))
            for hyp, several, winner, raised in segments
        )
        return replace(self, flags=flags)

    def only(self, rows: Array | slice) -> Result:
        """The segments of a mask, an index or a slice, as if the others had not been scored."""
        index = np.arange(len(self))[rows]
        return replace(
            self,
            segments={name: values[index] for name, values in self.segments.items()},
            winners=self.winners[index],
            flags=tuple(self.flags[k] for k in index),
            tallies=None if self.tallies is None else self.tallies[index],
        )

    def __repr__(self) -> str:
        flagged = sum(map(bool, self.flags))
        scores = [f"{name}={value:.4g}" for name, value in self.system.items()]
        noted = [f"{flagged} flagged"] if flagged else []
        extent = f"{len(self)} segment{'s' * (len(self) != 1)}"
        return f"Result({', '.join([self.name, extent, *scores, *noted])})"

    def _repr_html_(self) -> str:
        """A table for notebooks: the system scores, and what is to be cited."""
        whole = self.system
        rows = "".join(
            f"<tr><th>{escape(c.name)}{'↑' if c.higher else '↓'}</th>"
            f"<td>{whole[c.name]:.4f}</td></tr>"
            for c in self.columns
        )
        flagged = sum(map(bool, self.flags))
        noted = f", {flagged} flagged" if flagged else ""
        extent = f"{len(self)} segment{'s' * (len(self) != 1)}"
        caption = f"<caption>{escape(self.name)}: {extent}{noted}</caption>"
        meaning = f"<p>{escape(self.meaning)}</p>" if self.meaning else ""
        return f"<table>{caption}{rows}</table>{meaning}<p><code>{escape(self.citation)}</code></p>"

    @property
    def fits_scale(self) -> bool:
        """Whether a scale can place it: one reference each, in languages the encoder reads."""
        kinds = [{flag.kind for flag in one} for one in self.flags]
        unread = sum(FlagKind.UNREAD_LANGUAGE in one for one in kinds)
        return not (self.winners > 0).any() and unread <= _MOST_UNREAD * len(self)

    @property
    def scale(self) -> Scale | None:
        """Percentiles of the primary column on real texts; None where none were measured."""
        from freight.core.scale import scale_of

        return scale_of(self)

    @property
    def meaning(self) -> str:
        """A sentence that places the system score on the scale; empty where there is none."""
        score, scale = self.system[self.columns[0].name], self.scale
        return "" if scale is None or math.isnan(score) else scale.describe(score, len(self))

    @property
    def citation(self) -> str:
        """The signature in short, to be quoted with a score; see `cite`."""
        return cite(self.signature)

    def __getitem__(self, column: str) -> Array:
        """The scores in a column, one per segment."""
        return self.segments[column]

    def __len__(self) -> int:
        return len(self.winners)

    @property
    def system(self) -> dict[str, float]:
        """System scores by column: means over scored segments, unless `total` computes them."""
        return self.system_of(self.tally)

    @property
    def tally(self) -> Array:
        """What system scores are made of: numbers that add up over parts of a corpus."""
        if self.tallies is not None:
            return self.tallies.sum(axis=0)
        values = list(self.segments.values())
        return np.array([[np.nansum(x) for x in values], [np.isfinite(x).sum() for x in values]])

    @property
    def row_tallies(self) -> Array:
        """What the tally is the sum of: numbers for each segment, (segment, ...)."""
        if self.tallies is not None:
            return self.tallies
        values = np.stack(list(self.segments.values()), axis=1)
        return np.stack((np.nan_to_num(values, nan=0.0), np.isfinite(values)), axis=1)

    def system_of(self, tally: Array) -> dict[str, float]:
        """System scores out of a tally, or a sum of several."""
        return self.total(tally) if self.total is not None else mean_scores(self.segments, tally)

    @property
    def unknown(self) -> float:
        """The share of units that the encoder does not know: a segment's worse side, on average."""
        worst = [
            max(flag.share or 0.0 for flag in flags if flag.kind == FlagKind.UNKNOWN_UNITS)
            for flags in self.flags
            if any(flag.kind == FlagKind.UNKNOWN_UNITS for flag in flags)
        ]
        return sum(worst) / max(len(self), 1)

    def to_arrow(self, **kept: Sequence[Any]) -> Any:
        """A pyarrow table: one row per segment, with the winning reference and the flags.

        `kept` are columns to put in front, such as `id=ids, hyp=hyps, ref=refs`. The number of the
        winning reference counts from 0, as `refs` does.
        """
        import pyarrow

        for name, values in kept.items():
            if len(values) != len(self):
                raise InvalidInput(f"{name} has {len(values)} values for {len(self)} segments")
            if name in (*self.segments, "reference", "flags"):
                raise InvalidInput(
                    f"the result has a column {name} itself; give yours another name"
                )
        flags = pyarrow.array([list(f) for f in self.flags], pyarrow.list_(pyarrow.string()))
        table = pyarrow.table({**kept, **self.segments, "reference": self.winners, "flags": flags})
        return table.replace_schema_metadata({"freight": self.signature})

    def to_pandas(self, **kept: Sequence[Any]) -> Any:
        """The same as a pandas frame."""
        if find_spec("pandas") is None:
            raise MissingPart.extra("pandas", "pandas")
        return self.to_arrow(**kept).to_pandas()


def mean_scores(names: Iterable[str], tally: Array) -> dict[str, float]:
    """The mean of each column out of sums and counts (2, column); nan where nothing was scored."""
    sums, counts = tally
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return dict(zip(names, means.tolist(), strict=True))


def _flag(flag: str) -> Flag:
    """A flag as data; a scorer of someone's own may give a plain text."""
    return flag if isinstance(flag, Flag) else Flag(flag)


class ReducesReferences(NamedColumns, Protocol):
    """Whatever has a rule for several references besides."""

    @property
    def references(self) -> str:
        """How several references become one score: best, each or mean."""
        ...

    @property
    def signature(self) -> str:
        """Every choice, one line."""
        ...


def result_of(scorer: ReducesReferences, scored: PairScores, segments: Array) -> Result:
    """From scores and flags of every pair to a result with one score per segment."""
    inside = {c.name: c.clip(scored.columns[c.name]) for c in scorer.columns}
    chosen = reduce_references(scorer.columns, inside, segments, scorer.references)
    kept = [NO_FLAGS] * (int(segments[-1]) + 1)
    for segment, raised in zip(segments, scored.flags, strict=True):
        if raised:
            kept[segment] |= raised
    flags = tuple(tuple(sorted(raised)) if raised else () for raised in kept)
    columns, signature = scorer.columns, scorer.signature
    return Result(scorer.name, columns, chosen.scores, chosen.winners, flags, signature)


class Chosen(NamedTuple):
    """One score per segment and column, and the reference that it comes from."""

    scores: dict[str, Array]
    winners: Array


def check_references(rule: str) -> None:
    """Refuse an unknown rule for several references."""
    if rule not in REFERENCES:
        raise InvalidInput(f"references={rule!r}; there is {', '.join(REFERENCES)}")


def reduce_references(
    columns: tuple[Column, ...], scores: dict[str, Array], segments: Array, how: str
) -> Chosen:
    """From one score per reference to one per segment: best, each column's best, or mean."""
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    ends = np.append(starts[1:], len(segments))
    best = {c.name: _winners(scores[c.name], starts, ends, c.higher) for c in columns}
    primary = best[columns[0].name]
    if how == "mean":
        return Chosen({name: _means(x, starts) for name, x in scores.items()}, primary - starts)
    picks = best if how == "each" else dict.fromkeys(scores, primary)
    return Chosen({name: x[picks[name]] for name, x in scores.items()}, primary - starts)


def _means(values: Array, starts: Array) -> Array:
    """The mean of each segment's values, without those that could not be scored."""
    known = ~np.isnan(values)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _winners(values: Array, starts: Array, ends: Array, higher: bool) -> Array:
    """The first best of each segment's values; one that could not be scored never wins."""
    if len(starts) == len(values):
        return starts
    signed = np.where(np.isnan(values), -np.inf, values if higher else -values)
    return np.array([s + int(np.argmax(signed[s:e])) for s, e in zip(starts, ends, strict=True)])


def count_segments(flags: Iterable[Iterable[Flag]]) -> Counter[str]:
    """How many segments have a flag of each kind and side, in the order of their labels."""
    counts = Counter(label for segment in flags for label in {flag.label for flag in segment})
    return Counter(dict(sorted(counts.items())))


def signed(name: str, choices: Mapping[str, Any]) -> str:
    """A signature: the name, each choice, and the version."""
    from freight import __version__

    parts = [f"{choice}:{describe(value)}" for choice, value in choices.items()]
    return "|".join([name, *parts, f"version:{__version__}"])


def choices_of(data: Any) -> dict[str, Any]:
    """The fields of a dataclass; one that says so is left out while it has its default value."""
    named = {field: getattr(data, field.name) for field in fields(data)}
    return {
        field.name: value
        for field, value in named.items()
        if not (field.metadata.get("said if set") and value == field.default)
    }


EXECUTION = re.compile(r"/on:[^|,()\[\]]*")
"""What a signature says of where an encoder ran, which moves no score by more than rounding."""

_ENCODER = re.compile(
    r"[|,]encoder[:=](?P<words>distilled[^(|]*\()?(?P<name>[^@|,()]+)"
    r"(?:@(?P<version>[\w.-]*)(?P<adapter>\+[\w.*-]+)?)?"
)
_LAYERS = re.compile(r"[|,]layers[:=](\d+(?:,\d+)*)")


def cite(signature: str) -> str:
    """A signature in short: metric, encoder, layers, release, and a hash of the rest.

    It is the same for the same score on any device. A signature without a release is short already.
    """
    cited = EXECUTION.sub("", signature)
    name, *choices = cited.split("|")
    release = next((x for x in choices if x.startswith("version:")), None)
    if release is None:
        return cited
    library = [x.removeprefix("library:") for x in choices if x.startswith("library:")]
    parts = [re.split(r"[ (]", x)[0] for x in library]
    encoder = _ENCODER.search(cited)
    if encoder is not None:
        layers = None if encoder["words"] or encoder["name"] == "static" else _LAYERS.search(cited)
        parts += [_short_encoder(encoder), *([f"L{_ranges(layers[1])}"] if layers else [])]
    digest = hashlib.sha256(cited.encode("utf-8", "surrogatepass")).hexdigest()
    return "|".join([name, *parts, f"v{release.removeprefix('version:')}", f"#{digest[:6]}"])


def _short_encoder(encoder: re.Match[str]) -> str:
    """The public name of an encoder, or the hash of what has none, and its adapter."""
    from freight.encoders import PACKAGED

    name, version = encoder["name"], encoder["version"] or ""
    if name in PACKAGED:
        name = re.split(r"[: ]", PACKAGED[name].model)[0]
    elif name in ("folder", "static"):
        name = version.removeprefix("sha256-").partition(".")[0]
    words = f"{encoder['words'].partition(':')[0].rstrip('(')}:" if encoder["words"] else ""
    return f"{words}{name.rpartition('/')[2]}{encoder['adapter'] or ''}"


def _ranges(layers: str) -> str:
    """Layers as in 3-6, where they are consecutive."""
    every = [int(layer) for layer in layers.split(",")]
    if len(every) > 2 and every == [*range(every[0], every[-1] + 1)]:
        return f"{every[0]}-{every[-1]}"
    return layers


def describe(value: Any) -> str:
    """A value as a signature shows it: functions by name, data by its fields.

    What is written outside the package has a digest of its file besides: it has no release.
    """
    if isinstance(value, tuple) and not hasattr(value, "identity"):
        return ",".join(describe(item) for item in value)
    if isinstance(value, partial):
        return f"{describe(value.func)}({value.keywords})"
    if is_ours(value) or not (callable(value) or hasattr(value, "identity")):
        return _name_of(value)
    return f"{_name_of(value)}@{source_digest(value)[:12]}"


def _name_of(value: Any) -> str:
    if hasattr(value, "identity"):
        return str(value.identity)
    if isinstance(value, Column):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        inner = ",".join(f"{name}={describe(one)}" for name, one in choices_of(value).items())
        return f"{type(value).__name__}({inner})"
    if hasattr(value, "__name__") or " object at 0x" not in str(value):
        return getattr(value, "__name__", str(value))
    held = getattr(value, "__dict__", {}).items()
    return f"{type(value).__name__}({','.join(f'{name}={describe(x)}' for name, x in held)})"
