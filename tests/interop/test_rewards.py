"""A metric as a reward, called as TRL calls one, and by TRL itself."""

import importlib.util
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import freight
from freight.core.scorers import Refs
from freight.interop.rewards import reward

HYPS = ["the cat sat", "", "a dog barks"]
REFS = ["a cat sat down", "the dog", "a dog barks"]
EXAMPLE = Path(__file__).parents[2] / "examples/grpo_reward.py"


def as_trl_calls(function: Any, completions: Sequence[Any], **columns: Any) -> Any:
    """With everything that its trainers pass beside the columns of the dataset."""
    return function(
        prompts=["say it"] * len(completions),
        completions=completions,
        completion_ids=[[1, 2]] * len(completions),
        trainer_state=object(),
        log_extra=print,
        log_metric=print,
        **columns,
    )


def test_it_is_the_score() -> None:
    metric = freight.load("bert-score", encoder="hashed")
    rewards = as_trl_calls(reward(metric), HYPS, reference=REFS)
    assert rewards == metric.score(HYPS, REFS)["f1"].tolist()
    assert all(isinstance(value, float) for value in rewards)
    assert as_trl_calls(reward(metric), HYPS, reference=REFS) == rewards


def test_a_distance_is_negated() -> None:
    metric = freight.load("lazy-emd", encoder="hashed")
    rewards = as_trl_calls(reward(metric), HYPS, reference=REFS)
    assert rewards == (-metric.score(HYPS, REFS)["objective"]).tolist()
    assert rewards[2] > rewards[0] > rewards[1]


def test_scores_worth_nothing_and_one() -> None:
    chrf = freight.load("chrf").score(HYPS, REFS)["score"]
    assert as_trl_calls(reward("chrf", scale=(0, 100)), HYPS, reference=REFS) == pytest.approx(
        (chrf / 100).tolist()
    )
    metric = freight.load("lazy-emd", encoder="hashed")
    lazy = reward(metric, scale=(metric.columns[0].worst, 0))
    assert as_trl_calls(lazy, HYPS, reference=REFS)[1] == 0.0
    assert as_trl_calls(lazy, HYPS, reference=REFS)[2] == pytest.approx(1.0, abs=0.05)


def test_columns_of_the_metric_and_of_the_dataset() -> None:
    metric = freight.load("bert-score", encoder="hashed")
    recall = reward(metric, column="recall", reference="english")
    rewards = as_trl_calls(recall, HYPS, english=REFS, reference=["nothing"] * 3)
    assert rewards == metric.score(HYPS, REFS)["recall"].tolist()
    assert recall.__name__ == "bert-score-recall"
    assert reward(metric).__name__ == "bert-score"


def test_conversations_are_their_last_word() -> None:
    said = reward("chrf")
    completions = [
        [{"role": "assistant", "content": "the cat sat"}],
        [
            {"role": "assistant", "content": "let me look"},
            {"role": "tool", "content": "found"},
            {"role": "assistant", "content": [{"type": "text", "text": "a cat"}]},
            {"role": "tool", "content": "the cat sat"},
        ],
        [{"role": "assistant", "content": None, "tool_calls": []}],
        [],
    ]
    plain = ["the cat sat", "a cat", "", ""]
    refs = [["the cat sat", "a cat"], "a cat", "a cat", [{"role": "assistant", "content": "no"}]]
    assert as_trl_calls(said, completions, reference=refs) == as_trl_calls(
        said, plain, reference=[["the cat sat", "a cat"], "a cat", "a cat", "no"]
    )
    assert as_trl_calls(said, completions[:2], reference=refs[:2])[0] == 100.0


def test_what_cannot_be_scored() -> None:
    metric = freight.load("wmd", encoder="hashed")  # an empty side has no worst distance
    assert as_trl_calls(reward(metric), HYPS, reference=REFS)[1] is None
    rewards = as_trl_calls(reward(metric, unscored=-9.0), HYPS, reference=REFS)
    assert rewards[1] == -9.0
    assert not any(math.isnan(value) for value in rewards)


def test_a_row_without_a_reference_is_left_to_other_rewards() -> None:
    rewards = as_trl_calls(reward("chrf"), HYPS, reference=[None, REFS[1], []])
    assert rewards == [None, 0.0, None]
    assert as_trl_calls(reward("chrf"), HYPS, reference=[None] * 3) == [None] * 3


def test_a_batch_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    metric: Any = freight.load("chrf")
    calls = []
    plain = type(metric).score

    def counting(self: Any, hyps: Sequence[str], refs: Refs) -> Any:
        calls.append(len(hyps))
        return plain(self, hyps, refs)

    monkeypatch.setattr(type(metric), "score", counting)
    as_trl_calls(reward(metric), HYPS, reference=REFS)
    assert calls == [3]


def test_it_pickles() -> None:
    plain = reward(freight.load("lazy-emd", encoder="hashed"), scale=(2, 0))
    again = pickle.loads(pickle.dumps(plain))
    assert again.__name__ == plain.__name__ == "lazy-emd"
    assert as_trl_calls(again, HYPS, reference=REFS) == as_trl_calls(plain, HYPS, reference=REFS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "mover-score"}, "weights units by IDF"),
        ({"metric": "chrf", "column": "f1"}, "no column 'f1'"),
        ({"metric": "chrf", "scale": (100, 0)}, r"rewards bad texts.*write scale=\(0, 100\)"),
        ({"metric": "ter", "scale": (0, 100)}, "lower is better"),
        ({"metric": "chrf", "scale": (1, 1)}, "not two different numbers"),
    ],
)
def test_mistakes_before_training(arguments: Any, message: str) -> None:
    with pytest.raises(freight.InvalidInput, match=message):
        reward(**arguments)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"english": REFS}, "no column 'reference'.*there is .*english"),
        ({"reference": REFS[:2]}, "3 completions but 2 references"),
        ({"reference": [1, 2, 3]}, r"reference\[0\] is 1"),
    ],
)
def test_mistakes_in_the_dataset(columns: Any, message: str) -> None:
    with pytest.raises(freight.InvalidInput, match=message):
        as_trl_calls(reward("chrf"), HYPS, **columns)
    with pytest.raises(freight.InvalidInput, match=r"completions\[0\] is 5"):
        as_trl_calls(reward("chrf"), [5], reference=["a"])


@pytest.mark.skipif(
    importlib.util.find_spec("trl") is None or not EXAMPLE.exists(),
    reason="trl is not installed (pip install 'freight[trl]'), or the examples are not here",
)
@pytest.mark.parametrize(("trainer", "steps", "rise"), [("grpo", 20, 0.1), ("rloo", 2, -1.0)])
def test_a_tiny_model_learns_by_it(trainer: str, steps: int, rise: float) -> None:
    said = ("--encoder", "hashed", "--trainer", trainer, "--steps", str(steps))
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *said],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    means = [float(x) for x in re.findall(r"mean reward (\S+)", done.stdout)]
    assert len(means) >= 2
    assert means[-1] > means[0] + rise
