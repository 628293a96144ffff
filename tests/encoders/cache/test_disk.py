"""A cache on disk changes no bit, whether partial, full, damaged, shared or killed."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import lmdb
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import freight
from freight.cli.listing import cache_app
from freight.core.types import Cloud, Encoder, Progress
from freight.encoders import best_layer
from freight.encoders.cache import _entry_key, _read_cloud, disk
from freight.encoders.cache.disk import (
    CacheInfo,
    DiskCached,
    DiskStore,
    cache_info,
    clear_cache,
)
from freight.encoders.hashed import Hashed

KILLS = int(os.environ.get("FREIGHT_KILLS", "4"))
LIMIT = 2**22
TEXTS = ["A cat sat on the mat.", "", "Unbelievable, isn't it?", "  spaces \n", "one", "ein Bär \0"]
FIELDS = ("offsets", "ids", "start", "end", "kinds", "windowed", "halved")


@dataclass(frozen=True)
class Counting:
    """An encoder that records its calls, and may run out of memory for some texts."""

    __module__ = Hashed.__module__  # it stands in for the package's own
    inner: Encoder = field(default_factory=Hashed)
    halving: frozenset[str] = frozenset()
    asked: list[tuple[list[str], list[int]]] = field(default_factory=list, compare=False)

    @property
    def depth(self) -> int:
        return self.inner.depth

    @property
    def identity(self) -> str:
        return self.inner.identity

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
    ) -> Cloud:
        self.asked.append((list(texts), list(layers)))
        cloud = self.inner.encode(texts, layers, progress)
        halved = np.array([text in self.halving for text in texts], bool)
        return replace(cloud, halved=halved) if progress is None else cloud


def assert_same(one: Cloud, other: Cloud) -> None:
    assert one.texts == other.texts
    for name in FIELDS:
        mine, its = getattr(one, name), getattr(other, name)
        assert mine.dtype == its.dtype
        assert mine.tolist() == its.tolist(), name
    assert one.layers.dtype == other.layers.dtype
    assert one.layers.device == other.layers.device
    assert torch.equal(one.layers, other.layers)


def random_text(seed: int, most: int = 12) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(40)}" for _ in range(rng.randint(0, most)))


def data_file(folder: Path) -> Path:
    return next(folder.glob("*/data.mdb"))


@pytest.mark.parametrize("seed", range(5))
def test_any_history_gives_the_same_bits(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    plain = Hashed(dim=rng.choice([1, 8, 400]))
    cached = DiskCached(plain, str(tmp_path), LIMIT)
    for _ in range(40):
        texts = [random_text(rng.randrange(60)) for _ in range(rng.randint(1, 20))]
        layers = rng.choices(range(5), k=rng.randint(0, 4))
        assert_same(cached.encode(texts, layers), plain.encode(texts, layers))
        if rng.random() < 0.05:
            clear_cache(str(tmp_path))


def test_a_warm_cache_does_not_call_the_encoder(tmp_path: Path) -> None:
    inner = Counting()
    cached = DiskCached(inner, str(tmp_path))
    cold = cached.encode(TEXTS, [4, 1])
    assert inner.asked == [(TEXTS, [4, 1])]
    assert_same(cached.encode(TEXTS, [4, 1]), cold)
    twice = cached.encode([*TEXTS, *TEXTS[::-1]], [1])
    assert_same(twice, Hashed().encode([*TEXTS, *TEXTS[::-1]], [1]))
    assert len(inner.asked) == 1


def test_without_layers_the_encoder_is_called(tmp_path: Path) -> None:
    inner = Counting()
    cached = DiskCached(inner, str(tmp_path))
    cached.encode(TEXTS, [1])
    assert_same(cached.encode(TEXTS, []), Hashed().encode(TEXTS, []))
    assert inner.asked[1:] == [(TEXTS, [])]
    assert cache_info(str(tmp_path)).texts == len(TEXTS)


def test_texts_that_lack_a_layer_are_encoded_once(tmp_path: Path) -> None:
    inner = Counting()
    cached = DiskCached(inner, str(tmp_path))
    cached.encode(["a b", "c"], [1])
    cached.encode(["c", "d e"], [2])
    inner.asked.clear()
    assert_same(
        cached.encode(["a b", "c", "new", "d e", "new"], [2, 1, 3]),
        Hashed().encode(["a b", "c", "new", "d e", "new"], [2, 1, 3]),
    )
    assert inner.asked == [(["a b", "c", "new", "d e"], [2, 1, 3])]
    cached.encode(["d e", "f", "c"], [3, 1])
    assert inner.asked[1:] == [(["f"], [3, 1])]


def test_no_texts_and_wrong_layers_are_left_to_the_encoder(tmp_path: Path) -> None:
    assert_same(DiskCached(Hashed(), str(tmp_path)).encode([], [1]), Hashed().encode([], [1]))
    with pytest.raises(freight.InvalidInput, match=r"0\.\.4"):
        DiskCached(Hashed(), str(tmp_path)).encode(["a"], [5])


@pytest.mark.parametrize("known", [0, 3, 6])
def test_progress_adds_up(tmp_path: Path, known: int) -> None:
    @dataclass(frozen=True)
    class Reporting(Counting):
        def encode(
            self, texts: Sequence[str], layers: Sequence[int], progress: Progress | None = None
        ) -> Cloud:
            for _ in texts:
                if progress:
                    progress(1 / len(texts))
            return self.inner.encode(texts, layers)

    cached = DiskCached(Reporting(), str(tmp_path))
    cached.encode(TEXTS[:known], [1])
    parts: list[float] = []
    cached.encode(TEXTS, [1], parts.append)
    assert sum(parts) == pytest.approx(1)
    assert len(parts) == 1 + len(TEXTS) - known


def test_it_has_the_identity_of_the_encoder(tmp_path: Path) -> None:
    embedded = freight.encoder("embedded")
    cached = DiskCached(embedded, str(tmp_path))
    assert (cached.identity, cached.depth, cached.name) == (embedded.identity, 6, "embedded")
    assert best_layer(cached) == best_layer(embedded) == 4
    assert DiskCached(Hashed()).name == ""
    again = pickle.loads(pickle.dumps(cached))
    assert again == cached
    assert hash(again) == hash(cached)
    assert len(pickle.dumps(cached)) < 1000
    with pytest.raises(freight.InvalidInput, match="limit=7"):
        DiskCached(embedded, limit=7)


def test_encoders_do_not_get_each_others_vectors(tmp_path: Path) -> None:
    for plain in (Hashed(), Hashed(dim=8), Hashed(one_hot=True), Hashed()):
        assert_same(DiskCached(plain, str(tmp_path)).encode(TEXTS, [2]), plain.encode(TEXTS, [2]))


def test_the_folder_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    DiskCached(Hashed()).encode(TEXTS, [2])
    assert cache_info() == cache_info(str(tmp_path / "freight/vectors"))
    assert cache_info().texts == len(TEXTS)


@pytest.mark.filterwarnings("ignore::freight.errors.UntunedLayer")
def test_scores_of_a_transformer_have_the_same_bits(tmp_path: Path, tiny_model: Path) -> None:
    hyps = ["A cat sat.", "Never mind the weather.", " ".join(["very"] * 30) + " long", ""]
    refs = ["The cat sat down.", "The weather is fine.", "a long text", "x"]
    plain, names = freight.encoder(str(tiny_model)), ("lazy-emd", "bary-score")
    cached = DiskCached(plain, str(tmp_path))
    expected = freight.score_together([freight.load(n, encoder=plain) for n in names], hyps, refs)
    assert "windowed (hyp)" in expected[0].flags[2]
    metrics = [freight.load(name, encoder=cached) for name in names]
    metrics[0].score(hyps[:2], refs[:2])
    for _ in ("partial", "warm"):
        for result, its in zip(freight.score_together(metrics, hyps, refs), expected, strict=True):
            assert result.signature == its.signature
            assert result.flags == its.flags
            for column, values in its.segments.items():
                assert result[column].tobytes() == values.tobytes()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_vectors_are_on_the_device_of_the_encoder(tmp_path: Path) -> None:
    plain = freight.encoder("embedded", device="cuda")
    cached = DiskCached(plain, str(tmp_path))
    cached.encode(TEXTS[:3], [4])
    for _ in ("partial", "warm"):
        assert_same(cached.encode([*TEXTS, "one"], [4, 2]), plain.encode([*TEXTS, "one"], [4, 2]))


def test_a_halved_batch_is_not_stored(tmp_path: Path) -> None:
    inner = Counting(halving=frozenset(TEXTS[:2]))
    cached = DiskCached(inner, str(tmp_path))
    assert cached.encode(TEXTS, [1]).halved.tolist() == [True, True] + [False] * 4
    again = cached.encode(TEXTS[::-1], [1])
    assert again.halved.tolist() == [False] * 4 + [True, True]
    assert inner.asked[1:] == [([TEXTS[1], TEXTS[0]], [1])]
    assert cache_info(str(tmp_path)).texts == len(TEXTS) - 2


@pytest.mark.parametrize("dim", [2, 64, 500])
def test_a_full_cache_is_cleared(tmp_path: Path, dim: int) -> None:
    inner, limit = Counting(Hashed(dim=dim)), 2**20
    cached = DiskCached(inner, str(tmp_path), limit)
    stored = calls = 0
    while stored < 3 * limit:
        texts = [f"{random_text(stored + k)} {stored + k}" for k in range(200)]
        calls += 1
        cloud = cached.encode(texts, [0, 1, 2])
        assert_same(cloud, inner.inner.encode(texts, [0, 1, 2]))
        stored += cloud.layers.nbytes + 40 * len(cloud.ids)
        info = cache_info(str(tmp_path))
        assert info.used <= info.disk <= limit
    for _ in range(2):
        inner.asked.clear()
        cached.encode(["this", "is new"], [0, 1, 2])
    assert not inner.asked
    first = [f"{random_text(k)} {k}" for k in range(5)]
    assert_same(cached.encode(first, [0, 1, 2]), inner.inner.encode(first, [0, 1, 2]))
    assert inner.asked == [(first, [0, 1, 2])]
    assert 0 < info.texts < calls * 200


def test_a_lower_limit_is_kept_to(tmp_path: Path) -> None:
    texts = [f"{random_text(k)} {k}" for k in range(400)]
    DiskCached(Hashed(dim=500), str(tmp_path), 2**24).encode(texts, [0, 1])
    before = cache_info(str(tmp_path)).used
    small = DiskCached(Hashed(dim=500), str(tmp_path), 2**20)
    assert_same(small.encode(["one more"], [1]), Hashed(dim=500).encode(["one more"], [1]))
    assert cache_info(str(tmp_path)).used < 2**20 < before


def test_a_text_too_large_is_not_stored(tmp_path: Path) -> None:
    inner = Counting(Hashed(dim=400))
    cached = DiskCached(inner, str(tmp_path), 2**20)
    texts = ["small", " ".join(["word"] * 100), "also small"]
    for _ in range(2):
        assert_same(cached.encode(texts, [0]), inner.inner.encode(texts, [0]))
    assert inner.asked[1:] == [(texts[1:2], [0])]


def test_a_damaged_entry_is_replaced(tmp_path: Path) -> None:
    inner = Counting()
    cached = DiskCached(inner, str(tmp_path))
    cloud = cached.encode(TEXTS, [1, 2])
    path = data_file(tmp_path)
    content = path.read_bytes()
    vectors = cloud.layers[: cloud.offsets[1], 1].numpy().tobytes()
    assert vectors in content  # more than once where a page was copied on write
    path.write_bytes(content.replace(vectors, b"\1" + vectors[1:]))
    for _ in range(2):
        assert_same(cached.encode(TEXTS, [1, 2]), cloud)
    assert inner.asked[1:] == [(TEXTS[:1], [1, 2])]


def test_an_entry_of_another_text_is_not_used(tmp_path: Path) -> None:
    cached = DiskCached(Hashed(), str(tmp_path))
    cached.encode(["one", "two"], [1])
    one, two = (_entry_key(key, 1) for key in cached._keys(["one", "two"]))
    with lmdb.open(str(data_file(tmp_path).parent)) as env, env.begin(write=True) as txn:
        entry = txn.get(two)
        assert entry
        assert txn.get(one) not in (None, entry)
        txn.put(one, entry)
    assert_same(cached.encode(["one", "two"], [1]), Hashed().encode(["one", "two"], [1]))


@pytest.mark.parametrize("garbage", [b"garbage", b"garbage" * 10_000])
def test_a_damaged_file_is_started_anew(tmp_path: Path, garbage: bytes) -> None:
    inner = Counting()
    cached = DiskCached(inner, str(tmp_path))
    cloud = cached.encode(TEXTS, [1])
    data_file(tmp_path).write_bytes(garbage)
    with pytest.warns(UserWarning, match=r"data\.mdb was damaged"):
        assert_same(cached.encode(TEXTS, [1]), cloud)
    assert_same(cached.encode(TEXTS, [1]), cloud)
    assert len(inner.asked) == 2


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.2, 0.5, 0.8, 0.99])
def test_a_truncated_file_does_no_harm(tmp_path: Path, kept: float) -> None:
    cached = DiskCached(Hashed(), str(tmp_path))
    texts = [random_text(k, 60) for k in range(200)]
    for start in range(0, 200, 50):
        cached.encode(texts[start : start + 50], [1, 2])
    path = data_file(tmp_path)
    with lmdb.open(str(path.parent)) as env:
        pages = env.info()["last_pgno"] + 1
    os.truncate(path, int(kept * pages * 4096))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*was damaged", UserWarning)
        for layers in ([2], [1, 2], [2]):
            assert_same(cached.encode(texts, layers), Hashed().encode(texts, layers))
    inner = Counting()
    DiskCached(inner, str(tmp_path)).encode(texts, [1, 2])
    assert not inner.asked


@pytest.mark.parametrize("seed", range(12))
def test_pages_of_noise_do_no_harm(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    cached = DiskCached(Hashed(), str(tmp_path), LIMIT)
    texts = [random_text(k, 60) for k in range(60)]
    cached.encode(texts, [1, 2])
    with data_file(tmp_path).open("r+b") as file:
        pages = file.seek(0, os.SEEK_END) // 4096
        for _ in range(3):
            file.seek(4096 * rng.randrange(pages))
            file.write(rng.randbytes(4096))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*was damaged", UserWarning)
        for layers in ([2], [1, 2, 3], [2]):
            assert_same(cached.encode(texts, layers), Hashed().encode(texts, layers))


@pytest.mark.parametrize("why", ["readonly", "full", "no folder"])
def test_a_folder_that_cannot_be_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def failing(error: Exception, *_: object, **__: object) -> None:
        raise error

    folder = tmp_path / "vectors"
    if why == "readonly":
        readonly = lmdb.ReadonlyError("mdb_env_open", 30)
        monkeypatch.setattr(lmdb, "open", partial(failing, readonly))
    elif why == "full":
        full = lmdb.DiskError("mdb_txn_commit", 28)
        monkeypatch.setattr(disk, "_write_entries", partial(failing, full))
    else:
        folder.write_text("a file")
    inner = Counting()
    cached = DiskCached(inner, str(folder))
    with pytest.warns(UserWarning, match="nothing can be stored in") as caught:
        clouds = [cached.encode(TEXTS, [1]) for _ in range(3)]
    assert len(caught) == 1
    assert len(inner.asked) == 3
    for cloud in clouds:
        assert_same(cloud, Hashed().encode(TEXTS, [1]))


def test_info_and_clear(tmp_path: Path) -> None:
    folder = str(tmp_path / "vectors")
    assert cache_info(folder) == CacheInfo(folder, 0, 0, 0, 20 * 2**30)
    assert clear_cache(folder) == 0
    assert not (tmp_path / "vectors").exists()
    DiskCached(Hashed(), folder, LIMIT).encode(TEXTS, [1])
    info = cache_info(folder)
    assert (info.texts, info.limit) == (len(TEXTS), LIMIT)
    assert 0 < info.used <= info.disk
    assert clear_cache(folder) >= info.disk
    assert cache_info(folder).texts == 0
    assert sum(path.stat().st_size for path in Path(folder).iterdir()) == 0


def test_a_cache_that_cannot_be_cleared_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "not yours", str(path))

    DiskCached(Hashed(), str(tmp_path)).encode(TEXTS, [1])
    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(freight.FreightError, match="not yours"):
        clear_cache(str(tmp_path))


def test_the_command_line_shows_and_clears(tmp_path: Path) -> None:
    DiskCached(Hashed(), str(tmp_path)).encode(TEXTS, [1])
    shown = CliRunner().invoke(cache_app, ["info", "--folder", str(tmp_path)])
    assert shown.exit_code == 0
    assert f"{len(TEXTS)} " in shown.output
    assert CliRunner().invoke(cache_app, ["clear", "--folder", str(tmp_path)], "n\n").exit_code == 1
    assert cache_info(str(tmp_path)).texts == len(TEXTS)
    cleared = CliRunner().invoke(cache_app, ["clear", "--yes", "--folder", str(tmp_path)])
    assert cleared.output.startswith("freed ")
    assert cache_info(str(tmp_path)).texts == 0


def test_without_lmdb_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    monkeypatch.delitem(sys.modules, "freight.encoders.cache.disk")
    with pytest.raises(freight.MissingPart, match=r"freight\[cache\]"):
        importlib.import_module("freight.encoders.cache.disk")


def test_threads_may_share_it(tmp_path: Path) -> None:
    cached = DiskCached(Hashed(), str(tmp_path), LIMIT)

    def check(seed: int) -> None:
        texts = [random_text(seed % 7 + k) for k in range(20)]
        assert_same(cached.encode(texts, [seed % 5]), Hashed().encode(texts, [seed % 5]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(80)))


FORKING = """
import os, sys, threading, warnings
from test_disk import *
warnings.simplefilter("error")
cached, texts = DiskCached(Hashed(), sys.argv[1]), [random_text(k) for k in range(50)]
expected, stop = Hashed().encode(texts, [1]), threading.Event()
def work():
    while not stop.is_set():
        assert_same(cached.encode(texts, [1]), expected)
thread = threading.Thread(target=work)
thread.start()
for _ in range(10):
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if child == 0:
        try:
            assert_same(cached.encode([*texts, "in the child"], [1]),
                        Hashed().encode([*texts, "in the child"], [1]))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
assert_same(cached.encode(texts, [1]), expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_does_not_share_the_open_file(tmp_path: Path) -> None:
    with child(FORKING, str(tmp_path)) as started:
        assert started.wait(120) == 0


@contextmanager
def child(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that can import this file, and does not outlive the test."""
    paths = [str(Path(__file__).parent), *sys.path]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


POOL = 400
WRITING = """
import sys, warnings
from test_disk import *
warnings.simplefilter("error")
plain, rng = Hashed(dim=100), random.Random(int(sys.argv[2]))
cached = DiskCached(plain, sys.argv[1], LIMIT)
for call in range(int(sys.argv[3])):
    texts, layers = [random_text(rng.randrange(POOL)) for _ in range(30)], rng.sample(range(5), 2)
    cloud = cached.encode(texts, layers)
    if call % 10 == 0:
        assert_same(cloud, plain.encode(texts, layers))
    if call == 0:
        print("ready", flush=True)
"""


def assert_sound(folder: Path) -> int:
    """Check that each entry is what the encoder gives, and return the number of texts."""
    plain, texts = Hashed(dim=100), list(dict.fromkeys(map(random_text, range(POOL))))
    keys = dict(zip(texts, DiskCached(plain)._keys(texts), strict=True))
    stored: set[str] = set()
    for layer in range(5):
        cloud = DiskStore(folder, LIMIT).read(
            partial(_read_cloud, keys=keys, layers=[layer], device=torch.device("cpu"))
        )
        if cloud is not None:
            assert_same(cloud, plain.encode(cloud.texts, [layer]))
            stored.update(cloud.texts)
    assert len(stored) == cache_info(str(folder)).texts
    return len(stored)


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        started = [
            stack.enter_context(child(WRITING, str(tmp_path), str(seed), "40")) for seed in range(3)
        ]
        assert [process.wait(120) for process in started] == [0, 0, 0]
    assert assert_sound(tmp_path) > 0
    assert cache_info(str(tmp_path)).used <= LIMIT


def test_killed_processes_leave_a_sound_store(tmp_path: Path) -> None:
    rng = random.Random(0)
    for kill in range(0, KILLS, 2):
        one, other = (child(WRITING, str(tmp_path), str(kill + k), "100000") for k in range(2))
        with one as first, other as second:
            wait_for(first)
            wait_for(second)
            for process in (first, second):
                time.sleep(rng.uniform(0, 0.3))
                process.kill()
                assert process.wait() == -signal.SIGKILL
        assert assert_sound(tmp_path) > 0


def test_clearing_disturbs_nobody(tmp_path: Path) -> None:
    with child(WRITING, str(tmp_path), "0", "60") as started:
        wait_for(started)
        while started.poll() is None:
            clear_cache(str(tmp_path))
    assert started.returncode == 0


def wait_for(process: subprocess.Popen[str]) -> None:
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
