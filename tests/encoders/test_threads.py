"""Any metric object may be used from any number of threads: the bits are those of one thread."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Lock, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

import freight
from freight.core import sweep_cache, units
from freight.core.metric import Metric
from freight.core.types import Encoder
from freight.encoders import loaded_once
from freight.encoders.batching import TokenBatch
from freight.encoders.cache import MemoryCached
from freight.encoders.static import Static
from freight.encoders.transformer import Transformer
from freight.errors import MissingPart
from freight.transport.devices import GPU_LOCK

T = TypeVar("T")

THREADS = 8
WORDS = [f"{a}{b}{c}" for a in "bdgklmnprst" for b in "aeiou" for c in "bdgklmnprst"]
WORD_METRICS = ["wmd", "std", "sms", "wrd-score"]

pytestmark = pytest.mark.filterwarnings("ignore::freight.errors.UnknownVocabulary")


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    """Threads take turns a hundred times as often, so that what is not safe shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of all words but every tenth."""
    rng = np.random.default_rng(0)
    known = [word for k, word in enumerate(WORDS) if k % 10]
    path = tmp_path_factory.mktemp("vectors") / "words.npz"
    np.savez(path, words=np.array(known), vectors=rng.normal(size=(len(known), 8)))
    return path


def race(work: Callable[[int], T]) -> list[T]:
    """What eight threads that start together make of their numbers."""
    start = Barrier(THREADS)

    def begin(number: int) -> T:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def batches(number: int, calls: int, pairs: int) -> list[tuple[list[str], list[str]]]:
    """What one thread scores: sentences with words that nobody has asked for before, and others."""
    rng = np.random.default_rng(number)
    mine = [word for k, word in enumerate(WORDS) if k % THREADS in (number, (number + 1) % THREADS)]

    def sentence() -> str:
        return " ".join(rng.choice(mine, size=rng.integers(3, 9)))

    return [
        tuple([f"the {sentence()}." for _ in range(pairs)] for _ in range(2))  # type: ignore[misc]
        for _ in range(calls)
    ]


def read(scorer: Any, number: int, calls: int, pairs: int) -> list[Any]:
    """All that a thread sees of its results."""
    results = [scorer.score(hyps, refs) for hyps, refs in batches(number, calls, pairs)]
    return [
        ({name: values.tobytes() for name, values in x.segments.items()}, x.flags, x.system)
        for x in results
    ]


def check(make: Callable[[], Any], calls: int = 3, pairs: int = 2) -> None:
    """One object in eight threads gives what a new object gives in one, and remains usable."""
    shared = make()
    seen = race(lambda number: read(shared, number, calls, pairs))
    alone = make()
    expected = [read(alone, number, calls, pairs) for number in range(THREADS)]
    assert repr(seen) == repr(expected)
    assert repr(read(shared, 0, calls, pairs)) == repr(expected[0])


@pytest.mark.parametrize("name", freight.list_metrics())
def test_every_metric(name: str) -> None:
    hyps, refs = batches(0, 1, 8)[0]
    options = {"encoder": "hashed"} if "encoder" in freight.parameters(name) else {}
    try:
        metric = freight.load(name, **options)
    except MissingPart as missing:
        pytest.skip(str(missing))
    check(lambda: metric.fit(refs, hyps))


@pytest.mark.parametrize("name", ["freight", "mover-score"])
def test_a_transformer(name: str) -> None:
    hyps, refs = batches(0, 1, 8)[0]
    check(lambda: freight.load(name).fit(refs, hyps), calls=1)


def test_a_transformer_that_is_loaded_by_all_at_once(tiny_model: Path) -> None:
    check(lambda: freight.load("emd", encoder=str(tiny_model), layer=2), calls=2)


@pytest.mark.parametrize("name", WORD_METRICS)
def test_word_vectors_of_a_file(name: str, vectors: Path) -> None:
    check(lambda: freight.load(name, encoder=f"static:{vectors}"), calls=12)


@pytest.mark.parametrize("encoder", ["hashed", "one-hot", "distilled"])
def test_other_word_vectors(encoder: str) -> None:
    check(lambda: freight.load("wrd-score", encoder=encoder), calls=6)


def test_a_vocabulary_that_is_cleared_again_and_again(vectors: Path) -> None:
    check(lambda: freight.load("wmd", encoder=Static(f"static:{vectors}", max_words=40)), calls=12)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_encoders_with_a_cache(kind: str, vectors: Path, tmp_path: Path) -> None:
    def make() -> Any:
        words = freight.encoder(f"static:{vectors}")
        folder = str(tmp_path / "cache")
        cached: Encoder = (
            MemoryCached(words, 2**14) if kind == "memory" else freight.with_cache(words, folder)
        )
        return freight.load("wmd", encoder=cached)

    check(make, calls=4)


def test_settings_that_share_costs(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_cache, "LIMIT", 1)  # every cost drives out the one before

    def size(_: object) -> int:
        sleep(0.001)  # a chance for the other threads
        return 1

    monkeypatch.setattr(sweep_cache, "_size", size)
    metric = freight.load("wrd-score", encoder=f"static:{vectors}").parts[0]
    others = [replace(metric, layers=metric.layers * (1 + k % 3)) for k in range(THREADS)]
    hyps, refs = batches(0, 1, 10)[0]
    segments = [(hyp, [ref]) for hyp, ref in zip(hyps, refs, strict=True)]

    def scores(cache: sweep_cache.SweepCache, metric: Metric) -> list[bytes]:
        return [values.tobytes() for _ in range(4) for values in cache.score(metric).values()]

    shared = sweep_cache.SweepCache(segments)
    seen = race(lambda number: scores(shared, others[number]))
    assert seen == [scores(sweep_cache.SweepCache(segments), other) for other in others]


class Exclusive:
    """What two threads must not use at once: they find it taken."""

    def __init__(self) -> None:
        self._taken = Lock()

    @contextmanager
    def used(self) -> Iterator[None]:
        assert self._taken.acquire(blocking=False)
        sleep(0.001)
        yield
        self._taken.release()


def test_wordnet_is_used_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("nltk.translate.meteor_score")
    reader = Exclusive()

    def score(ref: list[str], hyp: list[str], **_: float) -> float:
        with reader.used():
            return len(set(ref) & set(hyp)) / len(ref)

    monkeypatch.setattr(module, "wordnet", SimpleNamespace(ensure_loaded=lambda: None))
    monkeypatch.setattr(module, "single_meteor_score", score)
    check(lambda: freight.load("meteor"))


def test_a_spacy_pipeline_is_used_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pytest.importorskip("spacy").blank("en")
    reader = Exclusive()

    def pipe(texts: Iterable[str]) -> Iterator[Any]:
        with reader.used():
            yield from pipeline.pipe(texts)

    monkeypatch.setattr(units, "loaded", lambda _: SimpleNamespace(pipe=pipe))
    check(lambda: freight.load("lazy-emd", encoder="hashed", tags="made", tag_share=0.25))


def test_a_part_is_loaded_by_one_thread() -> None:
    loads = []

    class Loading:
        together = Barrier(THREADS)

        @loaded_once
        def part(self) -> object:
            loads.append(self)
            with suppress(BrokenBarrierError):
                self.together.wait(0.1)  # only threads that load at the same time meet here
            return object()

    one = Loading()
    assert len(set(race(lambda _: one.part))) == 1
    assert loads == [one]


def test_whoever_scores_may_encode_while_a_graph_is_to_be_captured(tiny_model: Path) -> None:
    """As where a pooling is measured: two threads that both need both locks must not block."""
    encoder = Transformer(str(tiny_model), device="cpu")
    scoring, encoded = Event(), Event()

    def states(batch: TokenBatch, layers: Sequence[int]) -> torch.Tensor:
        return torch.zeros(len(layers), *batch.arrays["input_ids"].shape, 16)

    graphs = SimpleNamespace(waiting=True, states=states, capture=lambda: None)
    vars(encoder).update(_packs=True, cuda_graphs=graphs, _limit=24)

    def score() -> None:
        with GPU_LOCK:
            scoring.set()
            encoded.wait(0.2)  # meanwhile the other thread comes to its capture
            encoder.encode(["a b"], [1])

    def encode() -> None:
        scoring.wait()
        encoder.encode(["a"], [1])
        encoded.set()

    threads = [Thread(target=work, daemon=True) for work in (score, encode)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
