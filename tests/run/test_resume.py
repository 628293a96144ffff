"""A run that is cut off anywhere goes on to the same bytes; one that differs is refused."""

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import freight
from freight.core.pipeline import ChunkSize
from freight.core.result import Column, Result
from freight.core.scorers import PipelineScorer, Refs
from freight.data import Corpus
from freight.errors import FreightError, InvalidInput
from freight.run import local
from freight.run.journal import RunFolder
from freight.run.resume import scored_segments
from freight.run.shards import FinishedShard, Shard, ShardTask
from runs import SHARD, SMALL_CHUNKS, WrappedScorer, content, metrics, rows, score, write_input

COUNT = 25


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """The input, and what a run over it leaves when nothing happens to it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    path = write_input(folder, COUNT)
    score(path, folder / "out")
    return path, content(folder / "out")


class Crash(BaseException):
    """The end of the process, as far as it can be had without one."""


class Faults:
    """Counts what is done to the disk, and at the chosen step does something else."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps, self.at = 0, -1
        self.fault: BaseException = Crash()
        for name in ("write", "fsync", "replace"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def arm(self, at: int, fault: BaseException) -> None:
        self.steps, self.at, self.fault = 0, at, fault

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.steps += 1
            if self.steps - 1 != self.at:
                return real(*arguments)
            if real.__name__ == "write":  # a part of it is there
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise self.fault

        return call


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    injector = Faults(monkeypatch)
    yield injector
    monkeypatch.undo()


@pytest.mark.parametrize("options", [{}, {"checkpoint": 0.0, "chunk": ChunkSize(pairs=7)}])
def test_a_crash_at_every_step_to_the_disk(
    undisturbed: tuple[Path, dict[str, bytes]],
    tmp_path: Path,
    faults: Faults,
    options: dict[str, Any],
) -> None:
    path, expected = undisturbed
    step = 0
    while True:
        output = tmp_path / f"out{step}"
        faults.arm(step, Crash())
        try:
            score(path, output, **options)
            break
        except Crash:
            faults.arm(-1, Crash())
            score(path, output, resume=True)
            assert content(output) == expected, step
        step += 1
    assert step > 30


def test_a_crash_of_every_resumed_run(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path, faults: Faults
) -> None:
    path, expected = undisturbed
    output, runs = tmp_path / "out", 0
    while True:
        faults.arm(20, Crash())
        try:
            score(path, output, resume=True)
            break
        except Crash:
            runs += 1
    assert runs >= 2
    assert content(output) == expected


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path, faults: Faults, number: int
) -> None:
    path, expected = undisturbed
    for step in range(0, 36, 3):
        output = tmp_path / f"out{step}"
        faults.arm(step, OSError(number, os.strerror(number)))
        with pytest.raises(FreightError, match=f"{os.strerror(number)}; .* --resume$"):
            score(path, output)
        assert not list(output.glob("*.part"))
        for name, data in content(output).items():
            if name.startswith("shard-"):
                assert data == expected[name]
        faults.arm(-1, Crash())
        score(path, output, resume=True)
        assert content(output) == expected


def _flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["shard-00001.parquet", "shards.jsonl", "manifest.json", "summary.json", "fitted.json"]
)
@pytest.mark.parametrize("damage", ["flipped", "cut short", "emptied", "gone"])
def test_a_damaged_file_is_made_good(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path, name: str, damage: str
) -> None:
    path, expected = undisturbed
    for place in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0) if damage == "flipped" else (0.5,):
        output = tmp_path / str(place)
        output.mkdir()
        for file, data in expected.items():
            (output / file).write_bytes(data)
        if damage == "flipped":
            _flip(output / name, place)
        elif damage == "gone":
            (output / name).unlink()
        else:
            half = len(expected[name]) // 2 if damage == "cut short" else 0
            (output / name).write_bytes(expected[name][:half])
        score(path, output, resume=True)
        assert content(output) == expected


def test_only_what_is_missing_is_scored(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = undisturbed
    asked, real = [], ShardTask._finish

    def noting(self: ShardTask, shard: Shard, results: Any) -> FinishedShard:
        asked.append(shard.number)
        return real(self, shard, results)

    monkeypatch.setattr(ShardTask, "_finish", noting)
    score(path, tmp_path / "out")
    assert asked == [0, 1, 2]
    for number in (0, 2):
        (tmp_path / f"out/shard-0000{number}.parquet").unlink()
    score(path, tmp_path / "out", resume=True)
    assert asked == [0, 1, 2, 0, 2]
    assert content(tmp_path / "out") == expected


class Stopped(Exception):
    """The run is killed."""


class Stopping(WrappedScorer):
    """A scorer that counts the texts that it scores, and stops the run at some chunk."""

    def __init__(self, inner: PipelineScorer, at: int) -> None:
        super().__init__(inner)
        self.at, self.texts = at, 0

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        result = super().score(hyps, refs)
        self.texts += len(hyps)
        return result

    def before_scoring(self) -> None:
        if self.calls == self.at:
            raise Stopped


def _stopping(at: int) -> tuple[Stopping, list[Any]]:
    yisi, bleu = metrics()
    scorer = Stopping(bleu, at)
    return scorer, [yisi, scorer]


@pytest.mark.parametrize("shard", [10, 1000])
@pytest.mark.parametrize("checkpoint", [0.0, 1e9])
def test_a_killed_run_goes_on_within_a_shard(tmp_path: Path, shard: int, checkpoint: float) -> None:
    path = write_input(tmp_path, COUNT)
    sizes: dict[str, Any] = {"shard": shard, "chunk": SMALL_CHUNKS}
    score(path, tmp_path / "undisturbed", shard=shard)
    _, several = _stopping(at=3)
    with pytest.raises(Stopped):
        score(path, tmp_path / "out", metrics=several, checkpoint=checkpoint, **sizes)
    kept = scored_segments(tmp_path / "out")
    scorer, several = _stopping(at=0)
    notes: list[str] = []
    score(path, tmp_path / "out", metrics=several, resume=True, note=notes.append, **sizes)
    assert content(tmp_path / "out") == content(tmp_path / "undisturbed")
    lost = checkpoint > 0 and shard > COUNT
    assert (kept[0] == 0) == lost
    assert kept[1] == scorer.texts + kept[0] == COUNT
    assert notes == [f"{tmp_path / 'out'} holds {kept[0]} of 25 segments; going on"]


def test_a_damaged_part_of_a_shard_is_scored_again(tmp_path: Path) -> None:
    path, expected = write_input(tmp_path, COUNT), tmp_path / "undisturbed"
    sizes: dict[str, Any] = {"shard": 1000, "chunk": SMALL_CHUNKS, "checkpoint": 0.0}
    score(path, expected, shard=1000)
    for line in range(2):
        output = tmp_path / f"out{line}"
        with pytest.raises(Stopped):
            score(path, output, metrics=_stopping(at=4)[1], **sizes)
        (file,) = output.glob("partial-*")
        lines = file.read_bytes().splitlines(keepends=True)
        lines[line] = lines[line].replace(b"0", b"1", 1)
        file.write_bytes(b"".join(lines))
        rows = scored_segments(output)[0]
        assert (rows == 0) == (line == 0)
        score(path, output, resume=True, **sizes)
        assert content(output) == content(expected)


def test_a_worker_that_begins_a_shard_again_repeats_rows(tmp_path: Path) -> None:
    path, output = write_input(tmp_path, COUNT), tmp_path / "out"
    sizes: dict[str, Any] = {"shard": 1000, "checkpoint": 0.0}
    lines: list[bytes] = []
    for pairs in (16, 8):
        chunk = ChunkSize(pairs=pairs)
        with pytest.raises(Stopped):
            score(path, output, metrics=_stopping(at=3)[1], chunk=chunk, resume=True, **sizes)
        lines.append((output / "partial-00000.jsonl").read_bytes())
        (output / "partial-00000.jsonl").unlink()
    (output / "partial-00000.jsonl").write_bytes(lines[0] + lines[1])
    rows = scored_segments(output)[0]
    (output / "partial-00000.jsonl").write_bytes(lines[1])
    assert rows == scored_segments(output)[0] > 0
    score(path, output, resume=True, **sizes)
    score(path, tmp_path / "undisturbed", shard=1000)
    assert content(output) == content(tmp_path / "undisturbed")


def test_resumption_says_what_there_is(tmp_path: Path) -> None:
    path, output, notes = write_input(tmp_path, COUNT), tmp_path / "out", list[str]()
    score(path, output, resume=True, note=notes.append)
    (output / "shard-00001.parquet").unlink()
    score(path, output, resume=True, note=notes.append)
    score(path, output, resume=True, note=notes.append)
    assert notes == [
        f"{output} holds no earlier run; a new one begins",
        f"{output} holds 15 of 25 segments; going on; 1 damaged or missing shard is scored again",
        f"{output} holds 25 of 25 segments; nothing is left to score",
    ]


@pytest.mark.parametrize("resume", [False, True])
def test_unfinished_files_of_others_are_left_alone(tmp_path: Path, resume: bool) -> None:
    path = write_input(tmp_path, 5)
    names = {"download.part", f"scores.csv.{'0' * 32}.part"}
    (tmp_path / "mine").mkdir()
    for name in names:
        (tmp_path / "mine" / name).write_text("a part")
    message = r"holds download\.part; name another" if resume else "is not empty"
    with pytest.raises(InvalidInput, match=message):
        score(path, tmp_path / "mine", resume=resume)
    assert {file.name for file in (tmp_path / "mine").iterdir()} == names


def test_what_a_killed_run_was_writing_is_removed(tmp_path: Path) -> None:
    path = write_input(tmp_path, COUNT)
    score(path, tmp_path / "out")
    expected = content(tmp_path / "out")
    (tmp_path / "out" / f"shard-00001.parquet.{'0' * 32}.part").touch()
    score(path, tmp_path / "out", resume=True)
    assert content(tmp_path / "out") == expected


def test_frequencies_are_fitted_once(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = undisturbed
    for name, data in expected.items():
        (tmp_path / name).write_bytes(data)

    def refuse(*_: Any) -> None:
        raise AssertionError("the metric is fitted again")

    monkeypatch.setattr(freight.Metric, "fit", refuse)
    (tmp_path / "shard-00002.parquet").unlink()
    score(path, tmp_path, resume=True)
    assert content(tmp_path) == expected


def test_the_scores_are_those_of_python(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, _ = undisturbed
    run = score(path, tmp_path / "out")
    given = rows(COUNT)
    tables = list(run.tables())
    assert [len(table) for table in tables] == [SHARD, SHARD, COUNT % SHARD]
    records = [row for table in tables for row in table.to_pylist()]
    assert [row["segment"] for row in records] == list(range(1, COUNT + 1))
    for metric, outcome in zip(metrics(), run.outcomes, strict=True):
        expected = metric.score([row["hyp"] for row in given], [row["refs"] for row in given])
        assert outcome.signature == expected.signature
        assert outcome.system == pytest.approx(expected.system, rel=1e-12)
        for column, values in expected.segments.items():
            assert [row[f"{metric.name}:{column}"] for row in records] == values.tolist()
        winners = [row[f"{metric.name}:reference"] for row in records]
        assert winners == (expected.winners + 1).tolist()
    assert run.outcomes[0].flags == {"empty side (hyp)": 1}
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["segments"] == COUNT
    assert summary["metrics"][1]["system"] == run.outcomes[1].system


def test_neither_cache_nor_workers_nor_shards_change_a_score(
    undisturbed: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    path, expected = undisturbed
    for name in ("cold", "warm"):
        score(path, tmp_path / name, cache=str(tmp_path / "cache"))
        assert content(tmp_path / name) == expected
    next((tmp_path / "cache").rglob("data.mdb")).write_bytes(b"nothing of the kind" * 1000)
    with pytest.warns(UserWarning, match="damaged"):
        score(path, tmp_path / "damaged", cache=str(tmp_path / "cache"))
    score(path, tmp_path / "partial", cache=str(tmp_path / "cache"))
    assert content(tmp_path / "damaged") == content(tmp_path / "partial") == expected
    one, other = (
        [row for table in score(path, tmp_path / f"of-{size}", shard=size).tables()
         for row in table.to_pylist()]
        for size in (7, 1000)
    )  # fmt: skip
    assert one == other


def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    with RunFolder(tmp_path / "out").lock(), pytest.raises(FreightError, match="another run"):
        score(path, tmp_path / "out", resume=True)
    score(path, tmp_path / "out")


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    score(path, tmp_path / "out", resume=True)
    before = content(tmp_path / "out")
    with pytest.raises(InvalidInput, match="not empty; go on with what is there by --resume"):
        score(path, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("")
    with pytest.raises(InvalidInput, match=r"holds thesis\.tex; name another folder"):
        score(path, tmp_path / "mine", resume=True)
    assert content(tmp_path / "out") == before


def test_a_damaged_manifest_does_not_let_another_run_in(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    score(path, tmp_path / "out")
    _flip(tmp_path / "out/manifest.json", 0.5)
    before = content(tmp_path / "out")
    with Corpus(str(path)) as corpus, pytest.raises(InvalidInput, match="no shard of this run"):
        local([freight.load("chrf")], corpus, tmp_path / "out", resume=True, shard=SHARD)
    assert content(tmp_path / "out") == before


def _load(name: str, **settings: Any) -> Any:
    return freight.load(name, encoder="hashed", **settings)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "input": (
        {"text": '{"hyp": "b", "ref": "a"}\n'},
        r"on other input: .*input\.jsonl has changed",
    ),
    "metric": ({"metrics": [_load("wmd")]}, "with the metrics emd, not wmd"),
    "fewer": ({"metrics": [_load("emd"), _load("wmd")]}, "with the metrics emd, not emd, wmd"),
    "setting": ({"metrics": [_load("emd", layer=1)]}, "with emd having layers:3, not layers:1"),
    "columns": ({"columns": [["objective"]]}, "with the columns transport, objective of emd, not"),
    "shard": ({"shard": 11}, "with 10 segments a shard, not 11"),
    "format": ({"ending": ".csv"}, "as parquet, not csv"),
    "reading": ({"corpus": {"encoding": "latin-1"}}, "with encoding utf-8, not latin-1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_run_is_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text('{"hyp": "a", "ref": "a"}\n')
    with Corpus(str(path)) as corpus:
        local([_load("emd")], corpus, tmp_path / "out", shard=SHARD)
    before = content(tmp_path / "out")
    options, message = dict(CHANGES[change][0]), CHANGES[change][1]
    path.write_text(options.pop("text", path.read_text()))
    chosen = options.pop("metrics", [_load("emd")])
    with (
        Corpus(str(path), **options.pop("corpus", {})) as corpus,
        pytest.raises(InvalidInput, match=f"was begun {message}.*; ask for the same"),
    ):
        local(chosen, corpus, tmp_path / "out", **{"resume": True, "shard": SHARD, **options})
    assert content(tmp_path / "out") == before


def test_the_input_may_move(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    score(path, tmp_path / "out")
    before = content(tmp_path / "out")
    (tmp_path / "out/shard-00000.parquet").unlink()
    score(path.rename(tmp_path / "moved.jsonl"), tmp_path / "out", resume=True)
    assert content(tmp_path / "out") == before


def test_input_that_changes_meanwhile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = write_input(tmp_path, 25), ShardTask._finish

    def meddle(self: ShardTask, shard: Shard, results: Any) -> FinishedShard:
        if shard.number == 1:
            os.utime(path, (0, 0))
        return real(self, shard, results)

    monkeypatch.setattr(ShardTask, "_finish", meddle)
    with pytest.raises(FreightError, match="changed while it was being scored"):
        score(path, tmp_path / "out")
    assert "shard-00001.parquet" not in content(tmp_path / "out")


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    with Corpus(str(path)) as corpus:
        for options, message in (
            ({"shard": 0}, "at least one segment"),
            ({"ending": ".xls"}, ".xls is no format"),
            ({"columns": [["f1"]]}, "chrf has no column 'f1'; there is score"),
        ):
            with pytest.raises(InvalidInput, match=message):
                local([freight.load("chrf")], corpus, tmp_path / "out", **options)
        for several in ([], [freight.load("chrf")] * 2):
            with pytest.raises(InvalidInput, match="at least one metric, and none of them twice"):
                local(several, corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class WordCount:
    """A scorer with nothing but a name, columns and score."""

    name = "words"
    columns = (Column("count", True, 9.0, 0.0),)

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        return Result.of(self, {"count": [len(hyp.split()) for hyp in hyps]})


def test_any_scorer_can_be_run(tmp_path: Path) -> None:
    path = write_input(tmp_path, COUNT)
    with Corpus(str(path)) as corpus:
        run = local([WordCount()], corpus, tmp_path / "out", shard=SHARD, chunk=SMALL_CHUNKS)
    counts = [len(row["hyp"].split()) for row in rows(COUNT)]
    written = [row["words:count"] for table in run.tables() for row in table.to_pylist()]
    assert written == counts
    (outcome,) = run.outcomes
    assert outcome.signature.startswith("words|source:")
    assert outcome.system == {"count": pytest.approx(sum(counts) / COUNT)}


class WithTallies(WordCount):
    """A scorer whose results have tallies that only it could make system scores of."""

    def score(self, hyps: Sequence[str], refs: Refs) -> Result:
        result = super().score(hyps, refs)
        return replace(result, tallies=result["count"][:, None], total=lambda tally: {})


def test_tallies_need_a_way_to_system_scores(tmp_path: Path) -> None:
    path = write_input(tmp_path, 5)
    message = r"the results of words have tallies; give it a method system_of\(tally\)"
    with Corpus(str(path)) as corpus, pytest.raises(InvalidInput, match=message):
        local([WithTallies()], corpus, tmp_path / "out")
