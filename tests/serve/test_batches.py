"""Requests that wait together are scored together, and none of them can tell."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import freight
from freight.core.types import Segment
from freight.encoders.hashed import Hashed
from freight.serve import worker as working
from freight.serve.jobs import Busy, Gauges, Late, Limits, Stopping
from freight.serve.models import ServedModels, load_encoders
from freight.serve.worker import Worker

TEXTS = [
    "The old bridge has carried heavy lorries over the river since 1987.",
    "A cat sat on the mat.",
    "Heavy trucks have crossed the ancient bridge for decades, and nobody ever measured it.",
    "",
    "It rained.",
    "The committee will publish its findings on the accident before the end of the year, it said.",
]
SEGMENTS: list[Segment] = [(hyp, [ref]) for hyp in TEXTS for ref in TEXTS]


@pytest.fixture(scope="session")
def embedded() -> ServedModels:
    return ServedModels(load_encoders(["embedded", "distilled"], 256), memory=2**16)


def together(
    models: ServedModels,
    asks: Callable[[Worker], list[Awaitable[Any]]],
    limits: Limits | None = None,
) -> tuple[list[Any], Gauges]:
    """What a worker answers to those who ask at once; errors are answers too."""
    gauges = Gauges()

    async def run() -> list[Any]:
        worker = Worker(models, limits or Limits(seconds=300), gauges, threads=1)
        worker.start()
        try:
            return await asyncio.gather(*asks(worker), return_exceptions=True)
        finally:
            worker.stop()
            await worker.join()

    return asyncio.run(run()), gauges


def counted(gauges: Gauges, name: str) -> float:
    lines = gauges.text().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def test_an_answer_does_not_depend_on_its_neighbours(embedded: ServedModels) -> None:
    wanted = [embedded.requested_metric(name) for name in ("freight", "lazy-emd", "std")]

    def crowd(worker: Worker) -> list[Awaitable[Any]]:
        return [
            worker.score([segment], [wanted[k % len(wanted)]]) for k, segment in enumerate(SEGMENTS)
        ]

    found, gauges = together(embedded, crowd)
    assert counted(gauges, "freight_batch_requests_count") < len(SEGMENTS) / 3

    async def one_by_one(worker: Worker) -> list[Any]:
        return [
            await worker.score([segment], [wanted[k % len(wanted)]])
            for k, segment in enumerate(SEGMENTS)
        ]

    [alone], gauges = together(embedded, lambda w: [one_by_one(w)])
    assert counted(gauges, "freight_batch_requests_count") == len(SEGMENTS)
    for segment, one, other in zip(SEGMENTS, alone, found, strict=True):
        for name, values in one[0].segments.items():
            np.testing.assert_array_equal(values, other[0][name], err_msg=str(segment))
        assert one[0].flags == other[0].flags


def test_small_batches_agree_with_large_ones(embedded: ServedModels) -> None:
    [[found]], _ = together(
        embedded, lambda w: [w.score(SEGMENTS, [embedded.requested_metric("freight")])]
    )
    local = freight.load("freight").score([h for h, _ in SEGMENTS], [r for _, r in SEGMENTS])
    np.testing.assert_allclose(found["score"], local["score"], atol=1e-5)
    assert found.flags == local.flags


def test_large_batches_have_the_bits_of_the_command_line() -> None:
    models = ServedModels(load_encoders(["embedded"], 4096))
    segments = SEGMENTS[:8]
    [[found]], _ = together(models, lambda w: [w.score(segments, [models.requested_metric("emd")])])
    code = (
        "import freight, json, sys; freight.set_threads(1); segments = json.load(sys.stdin);"
        "result = freight.load('emd').score([h for h, _ in segments], [r for _, r in segments]);"
        "print(json.dumps(result['transport'].tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(segments),
        capture_output=True,
        text=True,
        check=True,
    )
    assert found["transport"].tolist() == json.loads(done.stdout)


def test_metrics_over_one_encoder_share_one_encoding(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    kind: Any = Hashed
    encode = kind.encode

    def counting(self: Any, texts: Any, *rest: Any) -> Any:
        calls.append(list(texts))
        return encode(self, texts, *rest)

    names = ("emd", "lazy-emd", "bert-score")
    monkeypatch.setattr(kind, "encode", counting)
    segments: list[Segment] = [("what no test says", ["nor this one"])]
    together(light, lambda w: [w.score(segments, [light.requested_metric(name) for name in names])])
    assert len([texts for texts in calls if "nor this one" in texts]) == 1


def test_one_bad_request_fails_alone(light: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = working.score_together

    def touchy(scorers: Any, hyps: Any, refs: Any) -> Any:
        if "poison" in hyps:
            raise RuntimeError("broken")
        return honest(scorers, hyps, refs)

    monkeypatch.setattr(working, "score_together", touchy)
    wanted = [light.requested_metric("emd")]
    hyps = ["good", "poison", "fine"]
    found, _ = together(light, lambda w: [w.score([(hyp, ["x"])], wanted) for hyp in hyps])
    assert isinstance(found[1], RuntimeError)
    for answer in (found[0], found[2]):
        assert np.isfinite(answer[0]["transport"]).all()


def test_errors_of_the_user_reach_who_made_them(light: ServedModels) -> None:
    segment: Segment = ("a b", ["a c"])
    bad = light.requested_metric("lazy-emd", settings={"hyp": 0, "ref": 0})
    found, _ = together(
        light,
        lambda w: [w.score([segment], [bad]), w.score([segment], [light.requested_metric("emd")])],
    )
    assert isinstance(found[0], freight.InvalidInput)
    assert len(found[1][0]) == 1


def test_a_large_request_does_not_keep_small_ones_waiting(light: ServedModels) -> None:
    order: list[str] = []
    wanted = [light.requested_metric("emd")]

    async def ask(worker: Worker, name: str, segments: list[Segment]) -> None:
        await worker.score(segments, wanted)
        order.append(name)

    large: list[Segment] = [(f"words number {k}", [f"word {k}"]) for k in range(2000)]
    together(
        light,
        lambda w: [ask(w, "large", large), *(ask(w, f"{k}", large[:1]) for k in range(4))],
        Limits(seconds=300, queue=5000),
    )
    assert order[-1] == "large"


def test_large_requests_are_put_together_again(light: ServedModels) -> None:
    segments: list[Segment] = [
        (f"words number {k}", [f"word {k}", "number words"]) for k in range(700)
    ]
    wanted = [light.requested_metric("bleu"), light.requested_metric("emd")]
    [found], _ = together(light, lambda w: [w.score(segments, wanted)])
    for result, name in zip(found, ("bleu", "emd"), strict=True):
        settings = {"encoder": "hashed"} if name == "emd" else {}
        local = freight.load(name, **settings).score(
            [h for h, _ in segments], [r for _, r in segments]
        )
        for column in local.columns:
            np.testing.assert_array_equal(result[column.name], local[column.name])
        assert result.system == local.system
        np.testing.assert_array_equal(result.winners, local.winners)


@contextmanager
def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    honest = working.score_together

    def slowed(*given: Any) -> Any:
        time.sleep(seconds)
        return honest(*given)

    with monkeypatch.context() as patch:
        patch.setattr(working, "score_together", slowed)
        yield


def test_those_who_come_too_many_are_sent_away(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [light.requested_metric("emd")]
    with slow(monkeypatch, 0.2):
        found, gauges = together(
            light,
            lambda w: [w.score([("a", ["b"])], wanted) for _ in range(20)],
            Limits(seconds=300, queue=5),
        )
    refused = [one for one in found if isinstance(one, Busy)]
    assert len(refused) >= 14
    assert all(one.seconds >= 1 for one in refused)
    assert len(found) - len(refused) >= 5
    assert counted(gauges, "freight_queue_pairs") == 0


def test_one_large_request_is_taken_by_an_empty_queue(light: ServedModels) -> None:
    segments: list[Segment] = [("a", ["b"])] * 20
    limits = Limits(seconds=300, queue=5)
    [found], _ = together(
        light, lambda w: [w.score(segments, [light.requested_metric("emd")])], limits
    )
    assert len(found[0]) == 20


def test_what_is_late_is_let_go(light: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is being worked on when its time is up, the second has not been begun."""
    wanted = [light.requested_metric("emd")]

    async def after(delay: float, ask: Awaitable[Any]) -> Any:
        await asyncio.sleep(delay)
        return await ask

    light.scorer(wanted[0])
    with slow(monkeypatch, 1.0):

        def asks(worker: Worker) -> list[Awaitable[Any]]:
            while not worker.ready:
                time.sleep(0.01)
            return [
                worker.score([("a", ["b"])], wanted),
                after(0.1, worker.score([("c", ["d"])], wanted)),
            ]

        (first, second), _ = together(light, asks, Limits(seconds=0.3))
    assert isinstance(first, Late)
    assert first.begun
    assert isinstance(second, Late)
    assert not second.begun


def test_it_goes_on_when_all_that_waited_is_late(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [light.requested_metric("emd")]
    honest = Worker._warm

    def warmed(self: Worker) -> None:
        time.sleep(0.6)
        honest(self)

    monkeypatch.setattr(Worker, "_warm", warmed)

    async def twice(worker: Worker) -> Any:
        with pytest.raises(Late):
            await worker.score([("a", ["b"])], wanted)
        while not worker.ready:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert worker.working
        worker._limits = Limits(seconds=300)
        return await worker.score([("c", ["d"])], wanted)

    [found], _ = together(light, lambda w: [twice(w)], Limits(seconds=0.3))
    assert len(found[0]) == 1


def test_it_goes_on_after_a_fault(light: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [light.requested_metric("emd")]

    async def twice(worker: Worker) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(worker, "_encode", lambda groups: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await worker.score([("a", ["b"])], wanted)
        return await worker.score([("a", ["b"])], wanted)

    [found], _ = together(light, lambda w: [twice(w)])
    assert len(found[0]) == 1


def test_stopping_answers_what_waits_and_takes_nothing_new(
    light: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [light.requested_metric("emd")]

    async def late(worker: Worker) -> Any:
        await asyncio.sleep(0.1)
        worker.stop()
        return await worker.score([("c", ["d"])], wanted)

    with slow(monkeypatch, 0.3):
        (first, second), _ = together(light, lambda w: [w.score([("a", ["b"])], wanted), late(w)])
    assert len(first[0]) == 1
    assert isinstance(second, Stopping)


def test_words_without_end_do_not_fill_the_memory() -> None:
    metric: Any = freight.load("wmd", encoder=freight.encoder("distilled", max_words=50))
    texts = [" ".join(f"word{k}x{j}" for j in range(30)) for k in range(4)]
    kept = [metric.score([text], [texts[0]])["distance"][0] for text in texts]
    assert len(metric.encoder._vocabulary.ids) <= 60
    again: Any = freight.load("wmd")
    fresh = again.score(texts, [texts[0]] * 4)["distance"]
    np.testing.assert_array_equal(kept, fresh)
