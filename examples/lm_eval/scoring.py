"""What paraphrase.yaml does with answers: three metrics, scored in one pass when all are in."""

from pathlib import Path
from typing import Any

import datasets

import freight
from freight.interop.lm_eval import Answers

answers = Answers(
    {
        "freight": freight.load("freight"),
        "unmoved": freight.load("lazy-emd", column="objective"),
        "bleu": freight.load("bleu"),
    },
    refs="paraphrases",
)
process_results = answers.process_results
house_score = answers.aggregation("freight")
unmoved_price = answers.aggregation("unmoved")
corpus_bleu = answers.aggregation("bleu")


def sentences(**_: Any) -> datasets.DatasetDict:
    """The documents, from the file beside this one."""
    path = Path(__file__).with_name("sentences.jsonl")
    return datasets.DatasetDict(test=datasets.Dataset.from_json(str(path)))
