"""Import paths that were documented before modules moved still work, and warn."""

import importlib
import sys

import pytest

import freight
from freight import moved

DOCUMENTED = """
catalogue.default_encoder catalogue.load catalogue.parameters catalogue.presets clouds.Cloud
clouds.Encoder comparing.Change comparing.Comparison comparing.compare costs.cosine costs.Mix
costs.LogCosine costs.euclidean costs.squared_euclidean costs.order data.places.Places
decoding.Choice decoding.mbr encoding.encoder encoding.encoders encoding.with_cache
encoding.words.tokeniser explanations.Explanation explanations.Matching explanations.Plan
explanations.Side explanations.View interop.cards.write_module judge.cache.ScoreCache
judge.grid.Choice judge.grid.Range judge.paired.against_first judge.raters.rater_agreement
judge.sample.draw judge.standings.standings judge.tune.tune languages.detect metric.Metric
pairings.Pairs pairings.side_by_side pictures.Pictured readouts.Transport readouts.PrecisionRecall
readouts.Similarity readouts.FlowAverages rehearsal.Rehearsal report.leaderboard.leaderboard
data.candidates.Candidates interop.lm_eval.Answers report.export.leaderboard
results.Column results.Result run.local.local run.on_ray.on_ray run.summary.Outcome
run.summary.Run scoring.score_stream scoring.score_together solvers.barycenter solvers.solve
train.cooccurrence train.word2vec types.Array types.Barycenters types.Plans types.Problem
units.words units.tokens units.Ngrams units.Without units.sentences weightings.Mass
weightings.Barycenter weightings.Windows
"""
RENAMED_IN_PLACE = """
data.judgements.read_judgements judge.error.scaled judge.significance.bootstrap
judge.significance.permutation judge.significance.williams_matrix
"""
STILL_THERE = """
data.corpus.Corpus data.judgements.Judgements interop.rewards.reward
interop.torchmetrics.FreightScore judge.correlation.CORRELATIONS judge.correlation.Correlation
judge.correlation.pearson judge.correlation.segment_level judge.correlation.system_level
judge.correlation.text_level judge.error.bootstrap_errors judge.error.bootstrap_t_test
judge.error.mae judge.error.mse judge.error.paired_test judge.pairwise.darr_tau
judge.pairwise.pairwise_accuracy judge.pairwise.soft_pairwise_accuracy judge.study.Agreement
judge.study.Study judge.study.judge kernels.set_threads loss.LazyEmd report.corpus.page
report.explanation.fragment report.explanation.fragment_style report.judge.write_judge_report
"""


@pytest.mark.parametrize("path", DOCUMENTED.split())
def test_an_old_path_leads_to_the_new_one(path: str) -> None:
    module, _, name = path.rpartition(".")
    sys.modules.pop(f"freight.{module}", None)
    with pytest.warns(FutureWarning, match=rf"freight\.{module} has moved to freight"):
        old = importlib.import_module(f"freight.{module}")
    home, _, renamed = moved.RENAMED.get(path, f"{moved.MOVED[module]}.{name}").rpartition(".")
    assert getattr(old, name) is getattr(importlib.import_module(f"freight.{home}"), renamed)


@pytest.mark.parametrize("path", RENAMED_IN_PLACE.split())
def test_an_old_name_leads_to_the_new_one(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.warns(FutureWarning, match=f"freight.{path} is called freight"):
        old = getattr(importlib.import_module(f"freight.{module}"), name)
    home, _, renamed = moved.RENAMED[path].rpartition(".")
    assert old is getattr(importlib.import_module(f"freight.{home}"), renamed)


@pytest.mark.parametrize("path", STILL_THERE.split())
def test_other_documented_names_are_where_they_were(path: str) -> None:
    module, _, name = path.rpartition(".")
    assert hasattr(importlib.import_module(f"freight.{module}"), name)


def test_the_warning_names_the_line_that_imports() -> None:
    sys.modules.pop("freight.costs", None)
    vars(freight).pop("costs", None)
    with pytest.warns(FutureWarning) as caught:
        from freight import costs
    assert caught[0].filename == __file__
    assert costs.cosine is freight.core.costs.cosine


def test_what_never_was_is_still_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("freight.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        importlib.import_module("freight.judge.error").nothing  # noqa: B018
