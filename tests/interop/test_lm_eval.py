"""A task of lm-evaluation-harness scores its answers as the metrics do, all at once."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import freight
from freight.core import pipeline
from freight.core.pipeline import score_together
from freight.interop.harnesses import Answers

EXAMPLE = Path(__file__).parents[2] / "examples" / "lm_eval"
DOCS: list[dict[str, Any]] = [
    {"paraphrases": ["a cat sat", "a cat was sitting"]},
    {"paraphrases": "the dog ran"},
]
ABSENT = "lm_eval is not installed: 15,000 files, and it asks for an older python-dateutil"
ANSWERS = ["a cat sits", "the dog ran"]


def answers() -> Answers:
    metrics = {
        "lazy": freight.load("lazy-emd", encoder="hashed"),
        "recall": freight.load("bert-score", encoder="hashed", column="recall"),
        "bleu": freight.load("bleu"),
    }
    return Answers(metrics, refs="paraphrases")


def test_aggregations_score_the_corpus() -> None:
    task = answers()
    processed = [task.process_results(doc, [a]) for doc, a in zip(DOCS, ANSWERS, strict=True)]
    refs = [["a cat sat", "a cat was sitting"], ["the dog ran"]]
    for name, metric, column, settings in (
        ("lazy", "lazy-emd", "objective", {"encoder": "hashed"}),
        ("recall", "bert-score", "recall", {"encoder": "hashed"}),
        ("bleu", "bleu", "score", {}),
    ):
        expected = freight.load(metric, **settings).score(ANSWERS, refs).system[column]
        assert task.aggregation(name)([one[name] for one in processed]) == expected


def test_all_metrics_are_scored_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def counted(*given: Any) -> Any:
        passes.append(given)
        return score_together(*given)

    monkeypatch.setattr(pipeline, "score_together", counted)
    task = answers()
    processed = [task.process_results(doc, [a]) for doc, a in zip(DOCS, ANSWERS, strict=True)]
    for name in ("lazy", "recall", "bleu"):
        task.aggregation(name)([one[name] for one in processed])
    assert len(passes) == 1
    task.aggregation("lazy")([one["lazy"] for one in processed[:1]])
    assert len(passes) == 2


def test_references_by_a_function() -> None:
    task = Answers({"bleu": freight.load("bleu")}, refs=lambda doc: doc["paraphrases"][0])
    assert task.process_results(DOCS[0], ["a cat"]) == {"bleu": ("a cat", ("a cat sat",))}


def test_mistakes_are_named() -> None:
    with pytest.raises(freight.InvalidInput, match="metrics is empty"):
        Answers({}, refs="refs")
    with pytest.raises(freight.InvalidInput, match="no field 'paraphrases'; it has sentence"):
        answers().process_results({"sentence": "a"}, ["b"])
    with pytest.raises(freight.InvalidInput, match="take_first"):
        answers().process_results(DOCS[0], [["b", "c"]])
    with pytest.raises(freight.InvalidInput, match="no metric 'f1'; there is lazy"):
        answers().aggregation("f1")


@pytest.mark.skipif(find_spec("lm_eval") is None, reason=ABSENT)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:lm_eval")
def test_the_example_runs() -> None:
    import datasets
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    # The folder of the example has the name of the library, so that an import statement is
    # taken for that of the folder by the type checker.
    simple_evaluate: Any = import_module("lm_eval").simple_evaluate

    class Echo(LM):  # type: ignore[misc]
        """Says the sentence once more."""

        def generate_until(self, requests: Sequence[Any], **_: Any) -> list[str]:
            return [request.doc["sentence"] for request in requests]

        def loglikelihood(self, requests: Sequence[Any], **_: Any) -> Any:
            raise AssertionError("the task generates")

        loglikelihood_rolling = loglikelihood

    tasks = TaskManager(include_path=str(EXAMPLE), include_defaults=False)
    evaluation = simple_evaluate(
        model=Echo(), tasks=["freight_paraphrase"], task_manager=tasks, bootstrap_iters=0
    )
    scores = evaluation["results"]["freight_paraphrase"]
    table = datasets.Dataset.from_json(str(EXAMPLE / "sentences.jsonl"))
    for key, metric, column in (
        ("freight", "freight", "score"),
        ("lazy_emd", "lazy-emd", "objective"),
        ("bleu", "bleu", "score"),
    ):
        result = freight.load(metric, column=column).score(table["sentence"], table["paraphrases"])
        assert scores[f"{key},none"] == pytest.approx(result.system[column])
