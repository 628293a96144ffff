"""torchmetrics sees the scores of the metrics: batch by batch, process by process."""

import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torchmetrics import MetricCollection
from torchmetrics.wrappers import MetricTracker

import freight
from freight.interop.torchmetrics import FreightScore, FreightScores

HYPS = ["a cat sat on the mat", "the dog", "rain fell all day", "", "it was late"]
REFS = [["a cat sat"], ["the old dog", "a dog"], ["it rained all day"], ["none"], ["it was late"]]
SETTINGS: dict[str, dict[str, Any]] = {
    "freight": {"encoder": "hashed"},
    "lazy-emd": {"encoder": "hashed", "hyp": 0.5},
    "wrd-score": {"encoder": "hashed"},
    "std": {"encoder": "hashed"},
    "bleu": {},
    "ter": {},
    "rouge-l": {},
}
SHARED = ("lazy-emd", "std", "bleu")
ONE_OF_TWO = """
import sys
import torch
import torch.distributed as dist
sys.path.insert(0, {tests!r})
from interop.test_torchmetrics import HYPS, REFS, SETTINGS, SHARED
from freight.interop.torchmetrics import FreightScores

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://{meeting}", rank=rank, world_size=2)
computed = {{}}
for name in SHARED:
    metric = FreightScores(name, segments=True, **SETTINGS[name])
    for k in (0, 1, 3) if rank == 0 else (2, 4):
        metric.update(HYPS[k : k + 1], REFS[k : k + 1])
    computed[name] = metric.compute()
    metric.reset()
    if rank == 1:
        metric.update(HYPS, REFS)  # and the other process has nothing
    computed[name, "late"] = metric.compute()
torch.save(computed, sys.argv[2])
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("name", SETTINGS)
def test_batches_add_up(name: str) -> None:
    metric = FreightScores(name, **SETTINGS[name])
    for k in range(0, len(HYPS), 2):
        metric.update(HYPS[k : k + 2], REFS[k : k + 2])
    expected = freight.load(name, **SETTINGS[name]).score(HYPS, REFS)
    assert_equal(metric.compute(), expected.system)
    assert metric.higher_is_better is expected.columns[0].higher


def test_forward_gives_the_batch_and_keeps_the_rest() -> None:
    metric = FreightScores("emd", encoder="hashed", segments=True)
    score = freight.load("emd", encoder="hashed").score
    for k in (0, 2):
        batch = HYPS[k : k + 2], REFS[k : k + 2]
        batch_scores = metric(*batch)
        assert_equal(
            {"transport": batch_scores["transport"]},
            {"transport": score(*batch)["transport"].mean()},
        )
    expected = score(HYPS[:4], REFS[:4])
    all_scores = metric.compute()
    assert_equal(
        {"transport": all_scores["transport"]}, {"transport": expected.system["transport"]}
    )
    assert all_scores["transport_segments"].tolist() == pytest.approx(expected["transport"])
    metric.reset()
    metric.update(HYPS[:2], REFS[:2])
    assert metric.compute()["transport_segments"].tolist() == pytest.approx(
        expected["transport"][:2]
    )


def test_one_number() -> None:
    metric = FreightScore("wrd-score", column="wrd", encoder="hashed")
    metric.update("the dog", ["the old dog", "a dog"])  # one text, two references
    expected = freight.load("wrd-score", column="wrd", encoder="hashed")
    result = expected.score(["the dog"], [["the old dog", "a dog"]])
    assert metric.compute().item() == pytest.approx(result["wrd"][0])
    assert metric.higher_is_better is False
    assert metric.signature == expected.signature
    tracker = MetricTracker(FreightScore("freight", encoder="hashed"))
    for hyp in ("a dog", "a cat", "a cow"):
        tracker.increment()
        tracker.update([hyp], ["a cat"])
    best: Any = tracker.best_metric(return_step=True)
    assert best[1] == 1


def test_pickles() -> None:
    metric = FreightScores("lazy-emd", encoder="hashed")
    metric.update(HYPS[:2], REFS[:2])
    again = pickle.loads(pickle.dumps(metric))
    for one in (metric, again):
        one.update(HYPS[2:], REFS[2:])
    assert_equal(again.compute(), {name: x.item() for name, x in metric.compute().items()})


def test_a_collection_never_mixes_metrics_up() -> None:
    """The first batch scores alike by both, so that their states are equal by chance."""
    metrics = MetricCollection(
        {
            "lazy": FreightScore("lazy-emd", encoder="hashed"),
            "emd": FreightScore("emd", encoder="hashed"),
            "all": FreightScores("emd", encoder="hashed"),
        }
    )
    metrics.update(["a cat sat"], ["a cat sat"])
    metrics.update(HYPS, REFS)
    hyps, refs = ["a cat sat", *HYPS], [["a cat sat"], *REFS]
    lazy, emd = (
        freight.load(n, encoder="hashed").score(hyps, refs).system for n in ("lazy-emd", "emd")
    )
    assert_equal(metrics.compute(), {"lazy": lazy["objective"], "emd": emd["transport"], **emd})


def test_two_processes(tmp_path: Path) -> None:
    code = ONE_OF_TWO.format(tests=str(Path(__file__).parents[1]), meeting=tmp_path / "meeting")
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen([*command, str(r), str(tmp_path / f"{r}.pt")]) for r in (0, 1)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    for rank, name in product((0, 1), SHARED):
        saved = torch.load(tmp_path / f"{rank}.pt")
        expected = freight.load(name, **SETTINGS[name]).score(HYPS, REFS)
        column = expected.columns[0].name
        for key, order in ((name, [0, 1, 3, 2, 4]), ((name, "late"), [0, 1, 2, 3, 4])):
            assert_equal({c: saved[key][c] for c in expected.system}, expected.system)
            rows = saved[key][f"{column}_segments"].tolist()
            assert rows == pytest.approx(expected[column][order])


def test_plot() -> None:
    pytest.importorskip("matplotlib").use("agg")
    metric = FreightScore("emd", encoder="hashed")
    values = [metric([hyp], [ref]) for hyp, ref in zip(HYPS, REFS, strict=True)]
    _, axes = metric.plot(values)
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([x.item() for x in values])


def test_mistakes_are_named() -> None:
    metric = FreightScore("emd", encoder="hashed", sync_on_compute=False)
    for call, message in (
        (lambda: metric.update(["a"], "b"), "target is one text; give a list of texts"),
        (
            lambda: metric.update(["a", 3], ["b", "c"]),  # type: ignore[list-item]
            r"preds\[1\] is 3, not a text",
        ),
        (lambda: metric.update(["a"], [[]]), r"target\[0\] is an empty list"),
        (lambda: metric.update(["a"], ["b", "c"]), "1 hypotheses but 2 references"),
        (lambda: FreightScore("emd", penalty=1), "emd has no parameter 'penalty'; there is"),
        (lambda: FreightScore("yisi-1", encoder="hashed"), "needs IDF before the first batch"),
        (lambda: FreightScore(freight.load("bleu"), stem=True), "stem is set when a metric"),
    ):
        with pytest.raises(freight.InvalidInput, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_fitted_metrics_are_taken() -> None:
    fitted = freight.load("yisi-1", encoder="hashed").fit(
        [ref for several in REFS for ref in several]
    )
    metric = FreightScore(fitted)
    metric.update(HYPS[:2], REFS[:2])
    metric.update(HYPS[2:], REFS[2:])
    assert metric.compute().item() == pytest.approx(fitted.score(HYPS, REFS).system["f"])


def assert_equal(tensors: dict[str, torch.Tensor], expected: dict[str, float]) -> None:
    values = {name: x.item() for name, x in tensors.items()}
    assert values == pytest.approx(expected, rel=1e-6, nan_ok=True)
