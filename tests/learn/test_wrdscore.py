"""WRDScore's experiment on its 150 pairs of method names, with vectors that need no training."""

from pathlib import Path

import pytest

import freight
from freight.data.judgement_files import read_judgements
from freight.judge.error import mae, mse, rescale

PUBLISHED = {"rouge-1": (0.0817, 0.2213), "wrd-score": (0.0678, 0.1891)}


def errors(name: str, column: str, data: Path, **options: str) -> tuple[float, float]:
    pairs = read_judgements(data / "data/wrdscore.jsonl.gz")
    scores = freight.load(name, **options).score(pairs.hyps, pairs.refs)[column]
    human = rescale(pairs.human["score"], 0, 10)
    return mse(scores, human), mae(scores, human)


def test_rouge_is_as_far_from_people_as_published(data: Path) -> None:
    distances = errors("rouge-1", "score", data)
    assert distances == pytest.approx(PUBLISHED["rouge-1"], abs=0.005)
    assert distances == pytest.approx((0.0809, 0.2181), abs=1e-4)


@pytest.mark.parametrize("name", ["wrd-score", "wrd-score-code"])
def test_wrd_score_is_no_further_from_people_than_published(name: str, data: Path) -> None:
    distances = errors(name, "f1", data, lang="code")
    assert distances[0] <= PUBLISHED["wrd-score"][0]
    assert distances[1] <= PUBLISHED["wrd-score"][1]
