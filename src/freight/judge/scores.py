"""The scores of several metrics on a set: each distinct text once, all metrics in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from freight.core.result import Column, Result, flag_kind
from freight.core.scoring import Scorer, score_stream
from freight.errors import FreightError, InvalidInput
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.types import Progress
    from freight.data.judgements import Judgements
import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Never
from uuid import uuid4

from freight.core.metric import Metric
from freight.core.pipeline import Chunk, Scored
from freight.core.scoring import Refs, score_together
from freight.data.judgements import Judgements
from freight.data.wmt import Submission, read_scores
from freight.folders import user_cache


@dataclass(frozen=True)
class Entrant:
    """One column of a metric, under the name that a study calls it by."""

    name: str
    scorer: Scorer
    column: Column

    def oriented(self, scores: Array) -> Array:
        """Scores that are higher for better; what is no finite number is nan."""
        finite = np.where(np.isfinite(scores), scores, np.nan)
        return finite if self.column.higher else -finite

    def scaled(self, oriented: Array) -> Array:
        """The same from 0, the worst there is, to 1 for identical texts."""
        sign = 1.0 if self.column.higher else -1.0
        worst, perfect = sign * self.column.worst, sign * self.column.perfect
        if not np.isfinite([worst, perfect]).all():
            raise InvalidInput(
                f"{self.name} has no scale from worst to best; an error needs one that has"
            )
        return (oriented - worst) / (perfect - worst)


def entrants(
    scorers: Sequence[Scorer] | Mapping[str, Scorer],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> list[Entrant]:
    """The columns to judge, the primary one of a metric unless others are named.

    A metric that has several columns is called metric:column.
    """
    named = scorers if isinstance(scorers, Mapping) else _by_name(scorers)
    if not named:
        raise InvalidInput("there is no metric to judge; give at least one")
    for name in columns or {}:
        if name not in named:
            raise InvalidInput(f"columns name {name!r}; the metrics are {', '.join(named)}")
    return [entrant for name in named for entrant in _entrants(name, named[name], columns or {})]


def _by_name(scorers: Sequence[Scorer]) -> dict[str, Scorer]:
    found: dict[str, Scorer] = {}
    for scorer in scorers:
        if scorer.name in found:
            raise InvalidInput(f"two metrics are called {scorer.name}; give {{name: metric, ...}}")
        found[scorer.name] = scorer
    return found


def _entrants(name: str, scorer: Scorer, columns: Mapping[str, Sequence[str]]) -> Iterator[Entrant]:
    there = {column.name: column for column in scorer.columns}
    for column in dict.fromkeys(columns.get(name) or [scorer.columns[0].name]):
        if column not in there:
            raise InvalidInput(f"{name} has no column {column!r}; there is {', '.join(there)}")
        label = f"{name}:{column}" if len(there) > 1 else name
        yield Entrant(label, scorer, there[column])


class ScoredSet(NamedTuple):
    """What each scorer gave, who of them was remembered, and what went wrong with remembering."""

    scores: list[Scores]
    remembered: list[bool]
    trouble: str = ""


def score_set(
    scorers: Sequence[Scorer],
    judged: Judgements,
    cache: ScoreCache | None = None,
    progress: Progress | None = None,
) -> ScoredSet:
    """Score the texts of a set; IDF is learnt from its references, a text a row."""
    keys = [score_key(scorer.signature, judged.hyps, judged.refs) for scorer in scorers]
    known = [cache.read(key, len(judged)) if cache else None for key in keys]
    wanted = [k for k, found in enumerate(known) if found is None]
    trouble = ""
    fresh = _score([scorers[k] for k in wanted], judged, progress) if wanted else []
    for k, scores in zip(wanted, fresh, strict=True):
        known[k] = scores
        try:
            if cache and not trouble:
                cache.write(keys[k], scores)
        except FreightError as error:
            trouble = str(error)
    if progress and not wanted:
        progress(len(judged))
    remembered = [k not in wanted for k in range(len(scorers))]
    return ScoredSet([found for found in known if found is not None], remembered, trouble)


def _score(
    scorers: Sequence[Scorer], judged: Judgements, progress: Progress | None
) -> list[Scores]:
    rows = list(zip(judged.hyps, judged.refs, strict=True))
    distinct = {row: k for k, row in enumerate(dict.fromkeys(rows))}
    place = np.array([distinct[row] for row in rows])
    share = len(rows) / len(distinct)
    ready = [
        scorer.fit((ref for refs in judged.refs for ref in refs), judged.hyps, "given texts")
        if scorer.needs_fitting
        else scorer
        for scorer in scorers
    ]
    told = (lambda count: progress(count * share)) if progress else None
    parts = list(score_stream(ready, distinct, told))
    return [_spread(Result.joined(one), place) for one in zip(*parts, strict=True)]


def _spread(result: Result, place: Array) -> Scores:
    columns = {name: values[place] for name, values in result.segments.items()}
    flags = Counter(flag_kind(flag) for k in place for flag in result.flags[k])
    return Scores(columns, dict(flags), result.total is None)


_NUMBER = re.compile(r"\d+$")
_Texts = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Stored:
    """A metric that knows the scores of some texts, and none of any others; higher is better."""

    name: str
    signature: str
    known: dict[_Texts, float]
    columns: tuple[Column, ...] = (Column("score", True, np.nan, np.nan),)
    references: str = "best"
    parts: tuple[Metric, ...] = ()
    needs_fitting: bool = False

    def fit(
        self, refs: Iterable[str], hyps: Iterable[str] | None = None, source: str = "fit"
    ) -> Stored:
        """The metric itself: it learns nothing from texts."""
        return self

    def read(self, chunk: Chunk, scored: Sequence[Scored]) -> Result:
        """What the file says of each segment."""
        starts = np.flatnonzero(np.diff(chunk.segments, prepend=-1))
        groups = np.split(chunk.index, starts[1:])
        texts = [(chunk.texts[g[0, 0]], tuple(chunk.texts[k] for k in g[:, 1])) for g in groups]
        values: Array = np.array([self.known.get(one, np.nan) for one in texts])
        flags = tuple(("no score in the file",) if x else () for x in np.isnan(values))
        winners = np.zeros(len(texts), np.int64)
        return Result(self.name, self.columns, {"score": values}, winners, flags, self.signature)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """What the file says of each hypothesis."""
        return score_together([self], hyps, refs)[0]

    def explain(self, hyp: str, ref: str | Sequence[str], column: str | None = None) -> Never:
        """Refused."""
        raise InvalidInput(f"{self.name} is scores out of a file, which do not say why")


def stored(path: Path, sets: Sequence[Judgements]) -> Stored:
    """The scores of a .seg.score file, by system and segment, for the texts of these sets.

    A set's segment is the one that its name ends in the number of, counted from 1.
    """
    found = read_scores(path)
    scores: dict[_Texts, list[float]] = {}
    for judged in sets:
        for texts, score in _matched(found, judged):
            scores.setdefault(texts, []).append(score)
    if not scores:
        systems = ", ".join(dict.fromkeys(system for _, system in found.scores))
        raise InvalidInput(f"{path} has no system and segment of the set; it has {systems}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    known = {texts: float(np.mean(several)) for texts, several in scores.items()}
    return Stored(found.metric, f"{found.metric}|scores:{path.name}@sha256-{digest}", known)


def _matched(found: Submission, judged: Judgements) -> Iterable[tuple[_Texts, float]]:
    pairs = judged.lang_pairs or ("",) * len(judged)
    only = next(iter(found.scores))[0] if not judged.lang_pairs else None
    rows = zip(judged.hyps, judged.refs, judged.systems, judged.segment_names, pairs, strict=True)
    for hyp, refs, system, segment, pair in rows:
        number = _NUMBER.search(segment)
        mine = found.scores.get((only or pair, judged.system_names[system]), {})
        if number and int(number[0]) in mine:
            yield (hyp, refs), mine[int(number[0])]


_FORM = "1"
_DAMAGED = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)


class Scores(NamedTuple):
    """A metric's scores by column, a number a row, and how many rows have which flag.

    `means` says whether the metric's own system scores are the means of these.
    """

    columns: dict[str, Array]
    flags: dict[str, int]
    means: bool


@dataclass(frozen=True)
class ScoreCache:
    """A folder to remember scores in, by default `freight/scores` in the user's cache."""

    folder: Path = field(default_factory=lambda: user_cache("scores"))

    def read(self, key: str, rows: int) -> Scores | None:
        """What is remembered, or nothing; a damaged file is nothing."""
        try:
            with (
                self._path(key).open("rb") as stream,
                np.load(stream, allow_pickle=False) as found,
            ):
                names, counts = found["flags"].tolist(), found["counts"].tolist()
                columns = {name: found[f"column {name}"] for name in found["columns"].tolist()}
                means = bool(found["means"])
        except _DAMAGED:
            return None
        whole = columns and all(values.shape == (rows,) for values in columns.values())
        return Scores(columns, dict(zip(names, counts, strict=True)), means) if whole else None

    def write(self, key: str, scores: Scores) -> None:
        """Remember, whole or not at all, undisturbed by who reads or writes the same meanwhile."""
        part = self.folder / f"{uuid4().hex}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                np.savez_compressed(stream, **_arrays(scores))
            part.replace(self._path(key))
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise FreightError(f"scores cannot be kept in {self.folder}: {error}") from error

    @property
    def files(self) -> list[Path]:
        """What is remembered, and what a run that was killed has left."""
        return sorted(p for p in self.folder.glob("*") if p.suffix in (".npz", ".part"))

    def clear(self) -> int:
        """Forget everything, and say how many bytes that freed."""
        freed = 0
        for path in self.files:
            freed += path.stat().st_size
            path.unlink(missing_ok=True)
        return freed

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def score_key(signature: str, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> str:
    """A name for a metric's scores of these texts: their order and repeats count, for IDF."""
    digest = hashlib.sha256(f"{_FORM}\n{signature}".encode("utf-8", "surrogatepass"))
    for hyp, several in zip(hyps, refs, strict=True):
        for text in (hyp, *several):
            content = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(content)} ".encode() + content)
        digest.update(b"|")
    return digest.hexdigest()


def _arrays(scores: Scores) -> dict[str, Any]:
    columns = {f"column {name}": values for name, values in scores.columns.items()}
    return {
        "columns": np.array(list(scores.columns)),
        "flags": np.array(list(scores.flags), dtype=np.str_),
        "counts": np.array(list(scores.flags.values()), dtype=np.int64),
        "means": np.array(scores.means),
        **columns,
    }
