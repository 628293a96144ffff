"""A metric as a check of answers: the same verdict in pytest, DeepEval, Inspect and promptfoo."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freight
from freight.interop import harnesses
from freight.interop.harnesses import AnswerCheck, assert_similar, get_assert

HYP, REF = "Take 10 mg of it daily.", "Take 100 mg of it daily."


def test_a_verdict_has_the_native_score() -> None:
    check = AnswerCheck("emd", at_least=0.5, encoder="hashed")
    verdict = check(HYP, REF)
    native = freight.load("emd", encoder="hashed").score([HYP], [REF])["transport"][0]
    assert verdict.score == native
    assert verdict.passed
    assert verdict.reason.startswith(f"emd:transport is {native:.4f}, at most 0.5 is wanted; ")
    assert "number differs: '10' / '100'" in verdict.reason
    assert not AnswerCheck("emd", 0.01, encoder="hashed")(HYP, REF).passed
    assert not AnswerCheck("emd", 0.5, allow_critical=False, encoder="hashed")(HYP, REF).passed


def test_the_best_of_several_references_counts() -> None:
    assert AnswerCheck("chrf", 99)(HYP, [REF, HYP]) == (
        100.0,
        True,
        "chrf:score is 100.0000, at least 99 is wanted",
    )


def test_a_loaded_metric_takes_no_settings() -> None:
    loaded = freight.load("chrf")
    assert AnswerCheck(loaded, 50)(HYP, HYP).passed
    with pytest.raises(freight.InvalidInput, match="is loaded already; encoder cannot be set"):
        AnswerCheck(loaded, 50, encoder="hashed")


def test_an_assertion_says_why() -> None:
    assert assert_similar(HYP, HYP, 90, "chrf") == 100
    with pytest.raises(AssertionError) as failed:
        assert_similar(HYP, "Something else.", 90, "chrf")
    assert "at least 90 is wanted" in str(failed.value)
    assert f"text:      {HYP}" in str(failed.value)


def test_promptfoo_gets_what_it_wants() -> None:
    config = {"metric": "chrf", "threshold": 90}
    told = get_assert(HYP, {"vars": {"reference": HYP}, "config": config})
    assert told["pass"] is True
    assert told["score"] == 100
    other = {"vars": {"gold": REF}, "config": {**config, "reference": "gold"}}
    assert get_assert("Nothing", other)["pass"] is False
    with pytest.raises(freight.InvalidInput, match="no variable 'reference'; there is gold"):
        get_assert(HYP, {"vars": {"gold": REF}})


@pytest.mark.parametrize("make", [harnesses.deepeval_metric, harnesses.inspect_scorer])
def test_what_is_not_installed_is_named(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deepeval.metrics", "inspect_ai.scorer"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(freight.MissingPart, match="is not installed; pip install"):
        make()


def test_pytest_has_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_good(assert_similar):\n"
        "    assert_similar('a cat', 'a cat', 90, 'chrf')\n"
        "def test_bad(assert_similar):\n"
        "    assert_similar('a cat', 'two dogs', 90, 'chrf')\n"
    )
    plugin = ["-p", "freight.interop.harnesses", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "at least 90 is wanted" in done.stdout


def test_deepeval() -> None:
    pytest.importorskip("deepeval", reason="deepeval is not installed: it pins older libraries")
    from deepeval.test_case import LLMTestCase

    metric = harnesses.deepeval_metric("emd", 0.5, encoder="hashed")
    case = LLMTestCase(input="How much?", actual_output=HYP, expected_output=REF)
    native = freight.load("emd", encoder="hashed").score([HYP], [REF])["transport"][0]
    assert metric.measure(case) == native
    assert metric.is_successful()
    assert "at most 0.5" in metric.reason
    assert metric.__name__ == "emd"
    with pytest.raises(freight.InvalidInput, match="no expected_output"):
        metric.measure(LLMTestCase(input="How much?", actual_output=HYP))


def test_deepeval_runs_it() -> None:
    pytest.importorskip("deepeval", reason="deepeval is not installed: it pins older libraries")
    from deepeval import assert_test
    from deepeval.test_case import LLMTestCase

    case = LLMTestCase(input="How much?", actual_output=HYP, expected_output=REF)
    assert_test(case, [harnesses.deepeval_metric("chrf", 50)], run_async=False)
    with pytest.raises(AssertionError, match="chrf"):
        assert_test(case, [harnesses.deepeval_metric("chrf", 99)], run_async=False)


def test_inspect(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: 100 packages")
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import solver

    @solver  # type: ignore[untyped-decorator, unused-ignore]
    def known_answer() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("none", HYP)
            return state

        return solve

    task = Task(
        dataset=[Sample(input="How much?", target=[REF, "Nothing"])],
        solver=known_answer(),
        scorer=harnesses.inspect_scorer("chrf", 50),
    )
    [log] = run(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    native = freight.load("chrf").score([HYP], [[REF, "Nothing"]])["score"][0]
    [score] = log.samples[0].scores.values()
    assert score.value == native
    assert score.metadata == {"passed": True}
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(native)


def test_promptfoo(tmp_path: Path) -> None:
    program = os.environ.get("PROMPTFOO") or shutil.which("promptfoo")
    if program is None:
        pytest.skip("promptfoo is not installed; npm install promptfoo, or set $PROMPTFOO")
    (tmp_path / "check.py").write_text("from freight.interop.harnesses import get_assert\n")
    check = {"type": "python", "value": "file://check.py"}
    settings = {"metric": "chrf", "reference": "gold"}
    suite = {
        "prompts": ["{{answer}}"],
        "providers": ["echo"],
        "tests": [
            {
                "vars": {"answer": HYP, "gold": REF},
                "assert": [{**check, "config": {**settings, "threshold": bound}}],
            }
            for bound in (50, 99)
        ],
    }
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    subprocess.run(
        [program, "eval", "-c", "suite.json", "-o", "out.json", "--no-cache", "--no-progress-bar"],
        cwd=tmp_path,
        env={
            **os.environ,
            **quiet,
            "PROMPTFOO_PYTHON": sys.executable,
            "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config"),
            "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
        },
        capture_output=True,
        check=False,
        timeout=300,
    )
    results = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    native = freight.load("chrf").score([HYP], [REF])["score"][0]
    assert [one["success"] for one in results] == [True, False]
    assert [one["gradingResult"]["componentResults"][0]["score"] for one in results] == [
        pytest.approx(native)
    ] * 2
