"""Requests that wait together are scored together, and none of them can tell."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import freight
from freight.core.types import Segment
from freight.encoders.hashed import Hashed
from freight.serve import worker as worker_module
from freight.serve.access import PrometheusMetrics
from freight.serve.app import create_app
from freight.serve.jobs import Job, score_pieces
from freight.serve.models import ServedModels, load_encoders
from freight.serve.refusals import DeadlinePassed, Limits, QueueFull, Refusal, ShuttingDown
from freight.serve.worker import Worker
from serve.conftest import BASE, Gate

TEXTS = [
    "The old bridge has carried heavy lorries over the river since 1987.",
    "A cat sat on the mat.",
    "Heavy trucks have crossed the ancient bridge for decades, and nobody ever measured it.",
    "",
    "It rained.",
    "The committee will publish its findings on the accident before the end of the year, it said.",
]
SEGMENTS: list[Segment] = [(hyp, [ref]) for hyp in TEXTS for ref in TEXTS]
PATIENT = Limits(seconds=600)


@pytest.fixture(scope="module")
def embedded() -> ServedModels:
    models = ServedModels(load_encoders(["embedded", "distilled"], 256), memory=2**16)
    models.metrics = {name: models.metrics[name] for name in ("freight", "lazy-emd", "std")}
    return models


@pytest.fixture
def one_thread() -> None:
    """Scoring of this thread has the bits that a worker of one thread has."""
    freight.set_threads(1)


def run_worker(
    models: ServedModels,
    ask: Callable[[Worker], list[Awaitable[Any]]],
    limits: Limits = PATIENT,
) -> tuple[list[Any], PrometheusMetrics]:
    """What a worker answers to requests sent at once; errors are answers too."""
    metrics = PrometheusMetrics()

    async def run() -> list[Any]:
        worker = Worker(models, limits, metrics, threads=1)
        worker.start()
        try:
            return await asyncio.gather(*ask(worker), return_exceptions=True)
        finally:
            worker.stop()
            await worker.join()

    return asyncio.run(run()), metrics


def counter(metrics: PrometheusMetrics, name: str) -> float:
    lines = metrics.text().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def test_an_answer_does_not_depend_on_its_neighbours(embedded: ServedModels) -> None:
    requested = [embedded.requested_metric(name) for name in ("freight", "lazy-emd", "std")]

    def all_at_once(worker: Worker) -> list[Awaitable[Any]]:
        return [worker.score([one], [requested[k % 3]]) for k, one in enumerate(SEGMENTS)]

    together, metrics = run_worker(embedded, all_at_once)
    assert counter(metrics, "freight_batch_requests_count") < len(SEGMENTS) / 3

    async def one_by_one(worker: Worker) -> list[Any]:
        return [await worker.score([one], [requested[k % 3]]) for k, one in enumerate(SEGMENTS)]

    [alone], metrics = run_worker(embedded, lambda w: [one_by_one(w)])
    assert counter(metrics, "freight_batch_requests_count") == len(SEGMENTS)
    for segment, [one], [other] in zip(SEGMENTS, alone, together, strict=True):
        for name, values in one.segments.items():
            np.testing.assert_array_equal(values, other[name], err_msg=str(segment))
        assert one.flags == other.flags


def test_small_batches_agree_with_large_ones(embedded: ServedModels) -> None:
    requested = embedded.requested_metric("freight")
    [[result]], _ = run_worker(embedded, lambda w: [w.score(SEGMENTS, [requested])])
    local = freight.load("freight").score([h for h, _ in SEGMENTS], [r for _, r in SEGMENTS])
    np.testing.assert_allclose(result["score"], local["score"], atol=1e-5)
    assert result.flags == local.flags


def test_large_batches_have_the_bits_of_the_library(one_thread: None) -> None:
    models = ServedModels(load_encoders(["embedded"], 4096))
    models.metrics = {"emd": models.metrics["emd"]}
    segments = SEGMENTS[:8]
    requested = models.requested_metric("emd")
    [[result]], _ = run_worker(models, lambda w: [w.score(segments, [requested])])
    local = freight.load("emd").score([h for h, _ in segments], [r for _, r in segments])
    assert result["transport"].tolist() == local["transport"].tolist()


def test_metrics_over_one_encoder_share_one_encoding(
    few: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    kind: Any = Hashed
    encode = kind.encode

    def counting(self: Any, texts: Any, *rest: Any) -> Any:
        calls.append(list(texts))
        return encode(self, texts, *rest)

    requested = [few.requested_metric(name) for name in ("emd", "lazy-emd", "bert-score")]
    monkeypatch.setattr(kind, "encode", counting)
    segments: list[Segment] = [("what no test says", ["nor this one"])]
    run_worker(few, lambda w: [w.score(segments, requested)])
    assert len([texts for texts in calls if "nor this one" in texts]) == 1


def test_one_bad_request_fails_alone(few: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_on_poison(scorer: Any, pieces: Any) -> Any:
        if any("poison" in piece.texts for piece in pieces):
            raise RuntimeError("broken")
        return score_pieces(scorer, pieces)

    monkeypatch.setattr(worker_module, "score_pieces", fail_on_poison)
    requested = [few.requested_metric("emd")]
    hyps = ["good", "poison", "fine"]
    answers, _ = run_worker(few, lambda w: [w.score([(hyp, ["x"])], requested) for hyp in hyps])
    assert isinstance(answers[1], RuntimeError)
    for answer in (answers[0], answers[2]):
        assert np.isfinite(answer[0]["transport"]).all()


def test_an_invalid_setting_fails_the_request_that_has_it(few: ServedModels) -> None:
    segment: Segment = ("a b", ["a c"])
    bad = few.requested_metric("lazy-emd", settings={"hyp": 0, "ref": 0})
    good = few.requested_metric("emd")
    answers, _ = run_worker(few, lambda w: [w.score([segment], [bad]), w.score([segment], [good])])
    assert isinstance(answers[0], freight.InvalidInput)
    assert len(answers[1][0]) == 1


def test_a_large_request_does_not_keep_small_ones_waiting(few: ServedModels) -> None:
    order: list[str] = []
    requested = [few.requested_metric("emd")]

    async def ask(worker: Worker, name: str, segments: list[Segment]) -> None:
        await worker.score(segments, requested)
        order.append(name)

    large: list[Segment] = [(f"words number {k}", [f"word {k}"]) for k in range(600)]
    run_worker(
        few,
        lambda w: [ask(w, "large", large), *(ask(w, f"{k}", large[:1]) for k in range(4))],
        Limits(seconds=600, queue=5000),
    )
    assert order[-1] == "large"
    assert len(order) == 5


def test_large_requests_are_put_together_again(few: ServedModels) -> None:
    segments: list[Segment] = [
        (f"words number {k}", [f"word {k}", "number words"]) for k in range(300)
    ]
    names = {"bleu": {}, "emd": {"encoder": "hashed"}}
    requested = [few.requested_metric(name) for name in names]
    [results], metrics = run_worker(few, lambda w: [w.score(segments, requested)])
    assert counter(metrics, "freight_batch_pairs_count") > 1
    for result, (name, settings) in zip(results, names.items(), strict=True):
        local = freight.load(name, **settings).score(
            [h for h, _ in segments], [r for _, r in segments]
        )
        for column in local.columns:
            np.testing.assert_array_equal(result[column.name], local[column.name])
        assert result.system == local.system
        np.testing.assert_array_equal(result.winners, local.winners)


LONG = "".join(f"{letter * 300} " for letter in "abc")
MANY: list[Segment] = [
    (LONG, [LONG.replace("b", letter) for letter in "bcdefghijklmno"]),
    ("a b", ["a c"]),
]


@pytest.mark.parametrize("references", ["best", "each", "mean"])
def test_a_hypothesis_is_cut_between_its_references(few: ServedModels, references: str) -> None:
    names = {"emd": "hashed", "bert-score": "hashed", "std": "hashed", "bleu": None}
    rule = {"references": references}
    requested = [few.requested_metric(name, settings=rule) for name in names]
    [results], metrics = run_worker(few, lambda w: [w.score(MANY, requested)])
    assert counter(metrics, "freight_batch_pairs_count") > 2
    for result, (name, encoder) in zip(results, names.items(), strict=True):
        chosen = {"encoder": encoder} if encoder else {}
        local = freight.load(name, **chosen, **rule).score(*map(list, zip(*MANY, strict=True)))
        for column in local.columns:
            np.testing.assert_array_equal(result[column.name], local[column.name])
        assert result.system == local.system
        assert result.winners.tolist() == local.winners.tolist()
        assert result.flags == local.flags


def test_work_that_nobody_waits_for_is_not_done(
    few: ServedModels, scoring_gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[list[str]] = []

    def count(scorer: Any, pieces: Any) -> Any:
        texts.append([text for piece in pieces for text in piece.texts])
        return scoring_gate(scorer, pieces)

    monkeypatch.setattr(worker_module, "score_pieces", count)
    requested = [few.requested_metric("emd")]

    async def give_up_and_ask(worker: Worker) -> Any:
        asked = asyncio.ensure_future(worker.score(MANY, requested))
        await asyncio.to_thread(scoring_gate.entered.wait)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        scoring_gate.opened.set()
        return await worker.score([("c", ["d"])], requested)

    [[result]], metrics = run_worker(few, lambda w: [give_up_and_ask(w)])
    assert len(result) == 1
    assert [LONG in one for one in texts] == [True, False]
    assert counter(metrics, "freight_queue_pairs") == 0


def test_a_metric_that_takes_whole_segments_is_stopped(
    few: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = threading.Event()

    def score_for_ever(*_: Any) -> Any:
        while True:
            entered.set()

    requested = [few.requested_metric("bleu")]
    scorer = few.scorer(requested[0])

    async def give_up_and_ask(worker: Worker) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(type(scorer), "read", score_for_ever)
            asked = asyncio.ensure_future(worker.score([(LONG, [LONG] * 2)], requested))
            await asyncio.to_thread(entered.wait)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        return await worker.score([("c", ["d"])], requested)

    [[result]], _ = run_worker(few, lambda w: [give_up_and_ask(w)])
    assert len(result) == 1


def test_small_requests_pass_large_ones(few: ServedModels) -> None:
    requested = (few.requested_metric("emd"),)
    large: list[Segment] = [("x" * 2000, ["y" * 2000] * 5)]

    async def batches() -> list[list[str]]:
        worker = Worker(few, PATIENT, PrometheusMetrics())
        loop = asyncio.get_running_loop()
        small: list[Segment] = [("a", ["b"])]
        names = {
            Job(segments, requested, False, loop.create_future()): name
            for name, segments in (("first", large), ("second", large), ("small", small))
        }
        worker._queue.extend(names)
        return [[names[piece.job] for piece in worker._next_batch()] for _ in range(3)]

    assert asyncio.run(batches()) == [["first", "small"], ["second"], ["first"]]


def test_texts_of_too_many_units_are_refused_before_the_work_begins(
    few: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []

    def count(scorer: Any, pieces: Any) -> Any:
        scored.extend(text for piece in pieces for text in piece.texts)
        return score_pieces(scorer, pieces)

    monkeypatch.setattr(worker_module, "score_pieces", count)
    long: list[Segment] = [("few words", ["a b"]), ("a " * 10, ["b " * 11])]
    emd, bleu = few.requested_metric("emd"), few.requested_metric("bleu")
    answers, _ = run_worker(
        few,
        lambda w: [w.score(long, [emd]), w.score(long[:1], [emd]), w.score(long, [bleu])],
        Limits(seconds=600, units=10),
    )
    assert isinstance(answers[0], Refusal)
    assert answers[0].status == 413
    assert "has 11 units; a text has at most 10" in str(answers[0])
    assert len(answers[1][0]) == 1
    assert len(answers[2][0]) == 2
    assert scored.count("a b") == 2


def test_what_cannot_be_cut_is_limited(few: ServedModels) -> None:
    many: Segment = ("x" * 2000, ["y" * 2000] * 5)
    requested = [few.requested_metric(name) for name in ("emd", "bleu")]
    answers, _ = run_worker(
        few,
        lambda w: [*(w.score([many], [one]) for one in requested), w.explain(many, requested[0])],
    )
    assert len(answers[0][0]) == 1
    for answer in answers[1:]:
        assert isinstance(answer, Refusal)
        assert answer.status == 413
        assert "of 5 references is" in str(answer)


def test_a_request_of_too_much_work_is_refused() -> None:
    many: Segment = ("x" * 2000, ["y" * 2000] * 500)
    with pytest.raises(Refusal, match=r"2,512 million .* at most 128 at once") as refused:
        Limits().check([many])
    assert refused.value.status == 413
    few_pairs: list[Segment] = [("x" * 2000, ["y" * 2000])] * 10
    Limits().check(few_pairs)
    with pytest.raises(Refusal, match="for 3 metrics"):
        Limits().check(few_pairs, metrics=3)


def test_stopping_does_not_wait_for_ever(few: ServedModels, scoring_gate: Gate) -> None:
    requested = [few.requested_metric("emd")]

    async def stop_while_it_works(worker: Worker) -> tuple[bool, bool]:
        asked = asyncio.ensure_future(worker.score([("a", ["b"])], requested))
        await asyncio.to_thread(scoring_gate.entered.wait)
        worker.stop()
        before = await worker.join(0.01)
        scoring_gate.opened.set()
        await asked
        return before, await worker.join(600)

    [ended], _ = run_worker(few, lambda w: [stop_while_it_works(w)])
    assert ended == (False, True)


def test_a_full_queue_refuses_what_comes(few: ServedModels, warm_up_gate: Gate) -> None:
    requested = [few.requested_metric("emd")]

    async def open_gate() -> None:
        warm_up_gate.opened.set()

    (*answers, _), metrics = run_worker(
        few,
        lambda w: [*(w.score([("a", ["b"])], requested) for _ in range(20)), open_gate()],
        Limits(seconds=600, queue=5),
    )
    refused = [one for one in answers if isinstance(one, QueueFull)]
    assert refused == answers[5:]
    assert all(one.seconds >= 1 for one in refused)
    assert all(len(one[0]) == 1 for one in answers[:5])
    assert counter(metrics, "freight_queue_pairs") == 0


def test_an_empty_queue_takes_a_request_of_any_size(few: ServedModels) -> None:
    segments: list[Segment] = [("a", ["b"])] * 20
    requested = [few.requested_metric("emd")]
    limits = Limits(seconds=600, queue=5)
    [[result]], _ = run_worker(few, lambda w: [w.score(segments, requested)], limits)
    assert len(result) == 20


def test_requests_whose_time_has_passed_are_dropped(few: ServedModels, expiring: Gate) -> None:
    """The first is being worked on when its time is up, the second has not been started."""
    requested = [few.requested_metric("emd")]

    async def ask_second(worker: Worker) -> Any:
        await asyncio.to_thread(expiring.entered.wait)
        try:
            return await worker.score([("c", ["d"])], requested)
        finally:
            expiring.opened.set()

    (first, second), _ = run_worker(
        few, lambda w: [w.score([("a", ["b"])], requested), ask_second(w)]
    )
    assert isinstance(first, DeadlinePassed)
    assert first.started
    assert first.status == 504
    assert isinstance(second, DeadlinePassed)
    assert not second.started
    assert second.status == 503


def test_it_goes_on_when_the_time_of_all_that_waited_has_passed(
    few: ServedModels, warm_up_gate: Gate
) -> None:
    requested = [few.requested_metric("emd")]

    async def ask_twice(worker: Worker) -> Any:
        with pytest.raises(DeadlinePassed):
            await worker.score([("a", ["b"])], requested)
        warm_up_gate.opened.set()
        while worker._queue:
            await asyncio.sleep(0.001)
        assert worker.state == "ready"
        worker._limits = PATIENT
        return await worker.score([("c", ["d"])], requested)

    [[result]], _ = run_worker(few, lambda w: [ask_twice(w)], Limits(seconds=0.01))
    assert len(result) == 1


def test_it_tells_when_it_is_ready(
    few: ServedModels, warm_up_gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    app = create_app(few, threads=1, on_ready=lambda: told.append(app.state.worker.state))
    with TestClient(app, base_url=BASE) as client:
        assert warm_up_gate.entered.wait(600)
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["state"]) == (503, "starting")
        assert client.get("/health?check=live").status_code == 200
        assert told == []
        warm_up_gate.opened.set()
        client.post("/api/score", json={"hyp": "a", "ref": "b"})  # answered once it is ready
        assert told == ["ready"]
        assert client.get("/health").json() == {"live": True, "ready": True, "state": "ready"}
        app.state.worker.stop()
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["state"]) == (503, "stopping")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_cannot_load_is_not_starting_for_ever(
    few: ServedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "_warm_up", lambda self: sys.exit())
    app = create_app(few, threads=1)
    with TestClient(app, base_url=BASE) as client:
        app.state.worker._thread.join()
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["state"]) == (503, "failed")


def test_it_goes_on_after_an_error(few: ServedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    requested = [few.requested_metric("emd")]

    async def ask_twice(worker: Worker) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(worker, "_encode", lambda groups: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await worker.score([("a", ["b"])], requested)
        return await worker.score([("a", ["b"])], requested)

    [[result]], _ = run_worker(few, lambda w: [ask_twice(w)])
    assert len(result) == 1


def test_stopping_answers_what_waits_and_takes_nothing_new(
    few: ServedModels, scoring_gate: Gate
) -> None:
    requested = [few.requested_metric("emd")]

    async def stop_and_ask(worker: Worker) -> Any:
        await asyncio.to_thread(scoring_gate.entered.wait)
        worker.stop()
        try:
            return await worker.score([("c", ["d"])], requested)
        finally:
            scoring_gate.opened.set()

    (first, second), _ = run_worker(
        few, lambda w: [w.score([("a", ["b"])], requested), stop_and_ask(w)]
    )
    assert len(first[0]) == 1
    assert isinstance(second, ShuttingDown)


def test_words_without_end_do_not_fill_the_memory() -> None:
    metric: Any = freight.load("wmd", encoder=freight.encoder("distilled", max_words=50))
    texts = [" ".join(f"word{k}x{j}" for j in range(30)) for k in range(4)]
    kept = [metric.score([text], [texts[0]])["distance"][0] for text in texts]
    assert len(metric.encoder._vocabulary._place) <= 60
    again: Any = freight.load("wmd")
    fresh = again.score(texts, [texts[0]] * 4)["distance"]
    np.testing.assert_array_equal(kept, fresh)
