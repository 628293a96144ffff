"""The scores that a study is made from: computed, kept in a cache, or read from a file.

Each distinct pair of hypothesis and references is scored once, and all metrics of a study are
scored in one pass, so that metrics with the same encoder share its vectors.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from platformdirs import user_cache_path

from freight.core.pipeline import ChunkSize, adapt, score_stream
from freight.core.result import Column, Result, count_segments
from freight.core.scorers import AdaptedScorer, PipelineScorer, Refs, Scorer, Signed, pair_up
from freight.data.judgements import Judgements
from freight.data.output import PART, open_output
from freight.data.wmt import Submission, read_scores
from freight.errors import FreightError, InvalidInput
from freight.transport.types import Array

if TYPE_CHECKING:
    from freight.core.types import Progress


@dataclass(frozen=True)
class StudyColumn:
    """One column of a metric, under the name that it has in a study."""

    name: str
    scorer: PipelineScorer
    column: Column

    def orient(self, scores: Array) -> Array:
        """Scores of which higher ones are better; what is not finite becomes nan."""
        finite = np.where(np.isfinite(scores), scores, np.nan)
        return finite if self.column.higher else -finite

    def rescale(self, oriented: Array) -> Array:
        """Oriented scores mapped to 0 for the worst possible score, 1 for identical texts."""
        sign = 1.0 if self.column.higher else -1.0
        worst, perfect = sign * self.column.worst, sign * self.column.perfect
        if not np.isfinite([worst, perfect]).all():
            raise InvalidInput(
                f"{self.name} has no scale from worst to best; an error needs one that has"
            )
        return (oriented - worst) / (perfect - worst)


def study_columns(
    scorers: Sequence[Scorer] | Mapping[str, Scorer],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> list[StudyColumn]:
    """The columns to judge: the primary one of each metric, unless others are named.

    The column of a metric that has several is called metric:column.
    """
    given = scorers if isinstance(scorers, Mapping) else _by_name(list(map(adapt, scorers)))
    named = {name: adapt(scorer) for name, scorer in given.items()}
    if not named:
        raise InvalidInput("there is no metric to judge; give at least one")
    for name in columns or {}:
        if name not in named:
            raise InvalidInput(f"columns name {name!r}; the metrics are {', '.join(named)}")
    return [one for name in named for one in _columns_of(name, named[name], columns or {})]


def _by_name(scorers: Sequence[PipelineScorer]) -> dict[str, PipelineScorer]:
    named: dict[str, PipelineScorer] = {}
    for scorer in scorers:
        if scorer.name in named:
            raise InvalidInput(f"two metrics are called {scorer.name}; give {{name: metric, ...}}")
        named[scorer.name] = scorer
    return named


def _columns_of(
    name: str, scorer: PipelineScorer, columns: Mapping[str, Sequence[str]]
) -> Iterator[StudyColumn]:
    known = {column.name: column for column in scorer.columns}
    for column in dict.fromkeys(columns.get(name) or [scorer.columns[0].name]):
        if column not in known:
            raise InvalidInput(f"{name} has no column {column!r}; there is {', '.join(known)}")
        label = f"{name}:{column}" if len(known) > 1 else name
        yield StudyColumn(label, scorer, known[column])


class SetScores(NamedTuple):
    """A metric's scores of a set: by column one number per row, and how many rows have each flag.

    `means` says whether the metric's own system scores are the means of its segment scores.
    """

    columns: dict[str, Array]
    flags: dict[str, int]
    means: bool


class ScoredSet(NamedTuple):
    """What each scorer gave, its signature, and whether it came from the cache.

    `shuffled` is what it gave for the references of other segments, where these were asked for.
    `cache_error` says why scores could not be written to the cache, if they could not.
    """

    scores: list[SetScores]
    signatures: list[str]
    from_cache: list[bool]
    cache_error: str = ""
    shuffled: Sequence[SetScores] = ()


def score_set(
    scorers: Sequence[PipelineScorer],
    judged: Judgements,
    cache: ScoreCache | None = None,
    progress: Progress | None = None,
    shuffled: tuple[tuple[str, ...], ...] | None = None,
) -> ScoredSet:
    """Score the texts of a set; IDF is fitted on its references, one document per row.

    Scores of a scorer without a signature are not cached: another scorer may have its name. With
    `shuffled`, other references for each row, the hypotheses are scored against these too, in the
    same pass, so that no text is encoded twice.
    """
    signatures = [scorer.signature for scorer in scorers]
    versions = [judged.refs] if shuffled is None else [judged.refs, shuffled]
    marks = "", "|shuffled"  # its IDF is that of the right references
    keys = [
        [
            score_key(signature + mark, judged.hyps, refs)
            for refs, mark in zip(versions, marks, strict=False)
        ]
        for signature in signatures
    ]
    caches = [cache if _is_signed(scorer) else None for scorer in scorers]
    known = [
        [one.read(key, len(judged)) if one else None for key in several]
        for one, several in zip(caches, keys, strict=True)
    ]
    missing = [tuple(v for v, one in enumerate(row) if one is None) for row in known]
    from_cache = [0 not in lacking for lacking in missing]
    cache_error = ""
    for lacking in dict.fromkeys(filter(None, missing)):
        chosen = [k for k, one in enumerate(missing) if one == lacking]
        asked = [versions[v] for v in lacking]
        several = [scorers[k] for k in chosen]
        for k, computed in zip(chosen, _compute(several, judged, asked, progress), strict=True):
            for v, scores in zip(lacking, computed, strict=True):
                known[k][v] = scores
                try:
                    if (one := caches[k]) and not cache_error:
                        one.write(keys[k][v], scores)
                except FreightError as error:
                    cache_error = str(error)
    if progress and not any(missing):
        progress(len(judged))
    every = [row[0] for row in known if row[0] is not None]
    others = [one for row in known for one in row[1:] if one is not None]
    return ScoredSet(every, signatures, from_cache, cache_error, others)


def _is_signed(scorer: PipelineScorer) -> bool:
    """Whether the signature names all choices of the scorer, rather than only its name."""
    return not isinstance(scorer, AdaptedScorer) or isinstance(scorer.scorer, Signed)


def _compute(
    scorers: Sequence[PipelineScorer],
    judged: Judgements,
    versions: Sequence[Sequence[tuple[str, ...]]],
    progress: Progress | None,
) -> list[list[SetScores]]:
    """By scorer and version of the references; the versions of a row are scored side by side."""
    rows = [(hyp, refs) for hyp, *row in zip(judged.hyps, *versions, strict=True) for refs in row]
    distinct = {row: k for k, row in enumerate(dict.fromkeys(rows))}
    index = np.array([distinct[row] for row in rows]).reshape(len(judged), len(versions))
    share = len(judged) / len(distinct)
    ready = [
        scorer.fit((ref for refs in judged.refs for ref in refs), judged.hyps, "given texts")
        if scorer.needs_fitting
        else scorer
        for scorer in scorers
    ]
    row_progress = (lambda count: progress(count * share)) if progress else None
    usual = ChunkSize()
    # As many rows to a chunk as without other versions: their texts are those of the rows.
    size = ChunkSize(len(versions) * usual.pairs, len(versions) * usual.characters)
    parts = list(score_stream(ready, distinct, row_progress, size))
    joined = [Result.joined(one) for one in zip(*parts, strict=True)]
    return [[_repeat_rows(result, column) for column in index.T] for result in joined]


def _repeat_rows(result: Result, index: Array) -> SetScores:
    """From one result per distinct text to scores per row."""
    columns = {name: values[index] for name, values in result.segments.items()}
    flags = count_segments(result.flags[k] for k in index)
    return SetScores(columns, flags, result.total is None)


_FORMAT_VERSION = "2"
_DAMAGED = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class ScoreCache:
    """A folder in which scores are kept, by default `freight/scores` in the user's cache."""

    folder: Path = field(
        default_factory=lambda: user_cache_path("freight", appauthor=False) / "scores"
    )

    def read(self, key: str, rows: int) -> SetScores | None:
        """The scores under a key; None where there are none, or their file is damaged."""
        try:
            with (
                self._path(key).open("rb") as stream,
                np.load(stream, allow_pickle=False) as arrays,
            ):
                names, counts = arrays["flags"].tolist(), arrays["counts"].tolist()
                columns = {name: arrays[f"column {name}"] for name in arrays["columns"].tolist()}
                means = bool(arrays["means"])
        except _DAMAGED:
            return None
        whole = columns and all(values.shape == (rows,) for values in columns.values())
        return SetScores(columns, dict(zip(names, counts, strict=True)), means) if whole else None

    def write(self, key: str, scores: SetScores) -> None:
        """Keep scores in a file that appears whole or not at all, other writers or not."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open_output(self._path(key)) as stream:
                np.savez_compressed(stream, **_arrays(scores))
        except (OSError, FreightError) as error:
            raise FreightError(f"scores cannot be kept in {self.folder}: {error}") from error

    @property
    def files(self) -> list[Path]:
        """All files of the cache, unfinished ones of killed runs included."""
        return sorted(p for p in self.folder.glob("*") if p.suffix in (".npz", PART))

    def clear(self) -> int:
        """Remove all files; returns how many bytes that freed."""
        freed = 0
        for path in self.files:
            freed += path.stat().st_size
            path.unlink(missing_ok=True)
        return freed

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def score_key(signature: str, hyps: Sequence[str], refs: Sequence[Sequence[str]]) -> str:
    """A hash of a metric's signature and the texts; their order and repeats matter for IDF."""
    digest = hashlib.sha256(f"{_FORMAT_VERSION}\n{signature}".encode("utf-8", "surrogatepass"))
    for hyp, several in zip(hyps, refs, strict=True):
        for text in (hyp, *several):
            content = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(content)} ".encode() + content)
        digest.update(b"|")
    return digest.hexdigest()


def _arrays(scores: SetScores) -> dict[str, Any]:
    columns = {f"column {name}": values for name, values in scores.columns.items()}
    return {
        "columns": np.array(list(scores.columns)),
        "flags": np.array(list(scores.flags), dtype=np.str_),
        "counts": np.array(list(scores.flags.values()), dtype=np.int64),
        "means": np.array(scores.means),
        **columns,
    }


_FINAL_NUMBER = re.compile(r"\d+$")
_NO_SCORE = "no score in the file"
_Texts = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class StoredScores:
    """A scorer that looks scores up by text; it has none for other texts. Higher is better."""

    name: str
    signature: str
    known: dict[_Texts, float]
    columns: tuple[Column, ...] = (Column("score", True, np.nan, np.nan),)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        """The stored score of each hypothesis; nan and a flag where there is none."""
        texts = [(hyp, tuple(several)) for hyp, several in pair_up(hyps, refs)]
        values = np.array([self.known.get(one, np.nan) for one in texts])
        flags = [[_NO_SCORE] if missing else [] for missing in np.isnan(values)]
        return Result.of(self, {"score": values}, flags, self.signature)


def load_stored_scores(path: Path, sets: Sequence[Judgements]) -> StoredScores:
    """The scores of a .seg.score file for the texts of these sets, by system and segment.

    The number at the end of a set's segment name is the segment's number in the file, from 1.
    """
    submission = read_scores(path)
    scores: dict[_Texts, list[float]] = {}
    for judged in sets:
        for texts, score in _matching_scores(submission, judged):
            scores.setdefault(texts, []).append(score)
    if not scores:
        systems = ", ".join(dict.fromkeys(system for _, system in submission.scores))
        raise InvalidInput(f"{path} has no system and segment of the set; it has {systems}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    known = {texts: float(np.mean(several)) for texts, several in scores.items()}
    name = submission.metric
    return StoredScores(name, f"{name}|scores:{path.name}@sha256-{digest}", known)


def _matching_scores(submission: Submission, judged: Judgements) -> Iterable[tuple[_Texts, float]]:
    pairs = judged.lang_pairs or ("",) * len(judged)
    only = next(iter(submission.scores))[0] if not judged.lang_pairs else None
    rows = zip(judged.hyps, judged.refs, judged.systems, judged.segment_names, pairs, strict=True)
    for hyp, refs, system, segment, pair in rows:
        number = _FINAL_NUMBER.search(segment)
        by_segment = submission.scores.get((only or pair, judged.system_names[system]), {})
        if number and int(number[0]) in by_segment:
            yield (hyp, refs), by_segment[int(number[0])]
