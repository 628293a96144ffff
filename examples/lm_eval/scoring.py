"""The functions of paraphrase.yaml: three metrics that score all answers in one pass."""

from pathlib import Path
from typing import Any

import datasets

import freight
from freight.interop.harnesses import Answers

answers = Answers(
    {
        "freight": freight.load("freight"),
        "lazy_emd": freight.load("lazy-emd"),
        "bleu": freight.load("bleu"),
    },
    refs="paraphrases",
)
process_results = answers.process_results
freight_score = answers.aggregation("freight")
lazy_emd_objective = answers.aggregation("lazy_emd")
corpus_bleu = answers.aggregation("bleu")


def sentences(**_: Any) -> datasets.DatasetDict:
    """The documents, from the file beside this one."""
    path = Path(__file__).with_name("sentences.jsonl")
    return datasets.DatasetDict(test=datasets.Dataset.from_json(str(path)))
