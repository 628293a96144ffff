"""WRDScore (Mussabayev, 2024): 150 pairs of method names, and eleven worked examples."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import freight
from asking import Store
from claims import Claim, Outcome, cases_of, decide, decide_cases, untested
from freight.data.judgement_files import read_judgements
from freight.judge.error import bootstrap_t_test, mae, mse, paired_test, rescale
from freight.transport.types import Array
from layout import Line, listed, number, p_value, plain_table, printed_lines, side_by_side, table
from published import NAMES, printed
from questions import column
from scores import WORDS

OWN, ROUGE, GREEDY = (
    "`wrd-score`, distilled",
    "`rouge-1`",
    "`bert-score` on the same vectors, distilled",
)
RECALL = "`rouge-1`, recall"


class Study(NamedTuple):
    """The pairs of method names: what people gave them, from 0 to 1, and every metric's scores."""

    human: Array
    scores: dict[str, Array]

    def error(self, name: str, kind: str = "mse") -> float:
        """MSE or MAE of a metric over the pairs that it could score."""
        known = np.isfinite(self.scores[name])
        measure = {"mse": mse, "mae": mae}[kind]
        return measure(np.where(known, self.scores[name], 0), np.where(known, self.human, np.nan))


def section(store: Store) -> Iterator[str]:
    """Table 1, computed here, and the examples."""
    yield "## WRDScore"
    yield "### Table 1: 150 method names"
    yield (
        "Errors against people's mean score / 10, lower is better, and the p-value of the paper's "
        "t-test over 100 bootstrap means, which is no test: it shrinks as one resamples more. Its "
        "corpus is not at hand; [training](training.md#wrdscores-experiment) says what vectors "
        "trained on other Java sources give."
    )
    paper, study = printed("wrd-score", "Table 1"), _study(store)
    lines = []
    for row, line in printed_lines(paper).items():
        error = row.lower()
        ours = {
            "ROUGE-1": study.error(ROUGE, error),
            "WRDScore": study.error(OWN, error),
            "p-value": _three_digits(_t_test(study, error)),
        }
        lines += [line._replace(ranked=False), Line(row, "ours, distilled vectors", ours, False)]
    yield side_by_side(lines, paper.columns, digits=4, paper=paper)
    paired = [
        paired_test(study.scores[OWN], study.scores[ROUGE], study.human, error).permutation_p
        for error in ("mse", "mae")
    ]
    yield (
        "A paired permutation test of the same differences has p "
        f"{p_value(paired[0])} (MSE) and {p_value(paired[1])} (MAE)."
    )
    columns = {
        kind.upper(): {name: study.error(name, kind) for name in study.scores}
        for kind in ("mse", "mae")
    }
    yield "All metrics and vectors:"
    rows = {name: name + _unscored(values) for name, values in study.scores.items()}
    yield table("metric", rows, columns, digits=4, lower=True)
    yield "### Its eleven examples"
    yield (
        "Pairs without a common word: ROUGE-1 is 0 for all. Published with vectors of method names "
        "(co-occurrence, 50 dimensions); ours with vectors of everyday English, which give less."
    )
    yield _examples(store)


def _unscored(values: Array) -> str:
    missing = int((~np.isfinite(values)).sum())
    return f" ({missing} pairs without known words left out)" if missing else ""


def _t_test(study: Study, error: str) -> float:
    """The p-value of the paper's t-test."""
    return bootstrap_t_test(study.scores[OWN], study.scores[ROUGE], study.human, error).p


def _three_digits(p: float) -> float:
    return float(f"{p:.2e}")


@cache
def _study(store: Store) -> Study:
    pairs = read_judgements(store.data / "data/wrdscore.jsonl.gz")
    scores: dict[str, Array] = {
        ROUGE: freight.load("rouge-1").score(pairs.hyps, pairs.refs)["score"],
        RECALL: freight.load("rouge-1", readout="recall").score(pairs.hyps, pairs.refs)["score"],
    }
    for name, encoder in _encoders(store).items():
        for metric in ("wrd-score", "wrd-score-code"):
            result = freight.load(metric, encoder=encoder).score(pairs.hyps, pairs.refs)
            scores[f"`{metric}`, {name}"] = result["f1"]
        greedy = freight.load("bert-score", encoder=encoder).score(pairs.hyps, pairs.refs)
        scores[f"`bert-score` on the same vectors, {name}"] = greedy["f1"]
    contextual = freight.load("bert-score").score(pairs.hyps, pairs.refs)
    scores["`bert-score`, embedded encoder"] = contextual["f1"]
    return Study(rescale(pairs.human["score"], 0, 10), scores)


def _sources(store: Store) -> dict[str, str]:
    glove = store.data / "vectors/glove.100d.60k.bin"
    return {"distilled": "distilled"} | (
        {"GloVe 100d": f"static:{glove}"} if glove.is_file() else {}
    )


@cache
def _encoders(store: Store) -> dict[str, Any]:
    return {name: freight.encoder(source, lang="code") for name, source in _sources(store).items()}


@cache
def _example_scores(store: Store) -> dict[str, dict[str, Array]]:
    """By vectors precision, recall and F1 of the examples."""
    refs, hyps = [[ref] for ref, *_ in NAMES], [hyp for _, hyp, *_ in NAMES]
    return {
        name: {
            c: freight.load("wrd-score", encoder=encoder).score(hyps, refs)[c]
            for c in ("precision", "recall", "f1")
        }
        for name, encoder in _encoders(store).items()
    }


def _examples(store: Store) -> str:
    ours = _example_scores(store)
    header = [
        "reference",
        "prediction",
        "P",
        "R",
        "F1",
        *(f"F1, {name}" for name in ours),
        "ROUGE-1",
    ]
    rouge = freight.load("rouge-1").score(
        [hyp for _, hyp, *_ in NAMES], [[ref] for ref, *_ in NAMES]
    )["score"]
    body = [
        [
            ref,
            hyp,
            *(number(x, 4) for x in theirs),
            *(number(float(v["f1"][k]), 4) for v in ours.values()),
            number(float(rouge[k]), 0),
        ]
        for k, (ref, hyp, *theirs) in enumerate(NAMES)
    ]
    return plain_table(header, body)


def claims(store: Store) -> Iterator[Claim]:
    """Its claims, in the paper's order."""
    study = _study(store)
    human, scores = study
    gains = [1 - study.error(OWN, kind) / study.error(ROUGE, kind) for kind in ("mse", "mae")]
    yield decide(
        "Section 4, Table 1",
        "WRDScore is nearer to people than ROUGE-1, by 17.01 % in MSE and 14.55 % in MAE",
        min(gains) > 0,
        f"with distilled vectors {gains[0]:.0%} and {gains[1]:.0%}; " + _worse(study),
    )
    ps = [
        paired_test(scores[OWN], scores[ROUGE], human, error).permutation_p
        for error in ("mse", "mae")
    ]
    theirs = [_t_test(study, error) for error in ("mse", "mae")]
    yield decide(
        "Section 4, Table 1",
        "Both differences are significant (p 1.42e−18 and 5.07e−37 over 100 bootstraps)",
        max(ps) < 0.05,
        f"distilled vectors: paired p {p_value(ps[0])} and {p_value(ps[1])}; the paper's t-test, "
        f"whose p shrinks with the bootstraps, {theirs[0]:.0e} and {theirs[1]:.0e}".replace(
            "e-", "e−"
        ),
    )
    examples = _example_scores(store)

    def in_range(name: str) -> Outcome:
        f1 = examples[name]["f1"]
        return Outcome(
            bool(((f1 > 0.5) & (f1 < 0.8)).all()),
            f"{number(float(np.nanmin(f1)), 2)} to {number(float(np.nanmax(f1)), 2)}",
        )

    yield decide_cases(
        "Section 4, examples 1-11",
        "Related names without a common word score .5 to .8",
        cases_of(examples, in_range),
        "F1 of the eleven; the paper's vectors are not at hand",
    )
    lowest = {
        name: float(np.nanmin(values))
        for name, values in scores.items()
        if name.startswith("`wrd-score")
    }
    low = min(lowest, key=lowest.__getitem__)
    yield decide(
        "Sections 1 and 3",
        "Precision, recall and F1 lie between 0 and 1",
        lowest[low] >= 0,
        f"F1 of {low} falls to {number(lowest[low], 2)} on the 150 names: cosines can be negative "
        f"(`clip=True` cuts them at 0)",
    )
    one_hot = freight.load("bert-score", encoder="one-hot").score(
        ["get item count now"], [["get the count"]]
    )
    figures = float(one_hot["precision"][0]), float(one_hot["recall"][0])
    yield decide(
        "Section 3, eqs. 1-2",
        "With one-hot vectors greedy matching is precision and recall of sets",
        abs(figures[0] - 1 / 2) < 1e-6 and abs(figures[1] - 2 / 3) < 1e-6,
        f"“get item count now” for “get the count”: {number(figures[0])} and {number(figures[1])} "
        f"(2/4 and 2/3)",
    )
    errors = {name: study.error(name) for name in scores}
    p = paired_test(scores[OWN], scores[GREEDY], human, "mse").permutation_p
    yield decide(
        "Sections 1 and 6",
        "Matching one word with several is better than BERTScore's matching, even on word vectors",
        errors[OWN] < errors[GREEDY],
        f"MSE {number(errors[OWN], 4)}, greedy matching of the same vectors "
        f"{number(errors[GREEDY], 4)} (paired p {p_value(p)}), BERTScore with the embedded "
        f"encoder {number(errors['`bert-score`, embedded encoder'], 4)}",
    )
    yield untested(
        "Section 3",
        "Word2Vec with the smallest window (2) is the best of the vectors tried",
        "the corpus is not at hand; trained on other Java sources, word2vec is ahead of "
        "co-occurrence ([training](training.md#wrdscores-experiment))",
    )
    yield _norms(store)
    encoders = store.holding("wmt15-da")
    both = [f"{e} {number(column(store, e, 'WMT15 r')['wrd-score:f1'])}" for e in encoders]
    words = column(store, WORDS, "WMT15 r").get("wrd-score:f1")
    yield decide(
        "Section 1",
        "It takes any vectors, contextual or not",
        bool(both) and words is not None,
        f"r of WMT15: {', '.join(both)}, word vectors "
        f"{number(words if words is not None else float('nan'))}",
    )

    def mover(encoder: str) -> Outcome:
        values = column(store, encoder, "WMT15 r")
        over = values["mover-score:similarity"] - values["bert-score:f1"]
        return Outcome(
            0 < over < 0.02,
            f"{number(values['mover-score:similarity'])} and {number(values['bert-score:f1'])}",
        )

    yield decide_cases(
        "Section 2.3",
        "MoverScore is slightly better than BERTScore, and equal once both directions count",
        cases_of(encoders, mover),
        "MoverScore and BERTScore-F, r of WMT15",
    )
    hyps, refs = ["clone", "get count"], [["copy"], ["size"]]
    near = freight.load("wrd-score", encoder=_encoders(store)["distilled"]).score(hyps, refs)["f1"]
    unlike = float(np.nanmean(scores[OWN][human <= 0.2]))
    yield decide(
        "Section 1",
        "copy/clone and size/get count are seen as similar, which ROUGE-1 cannot do",
        bool((near > unlike).all()),
        f"F1 {number(float(near[0]), 2)} and {number(float(near[1]), 2)}; pairs that people gave "
        f"at most .2 have {number(unlike, 2)} on average",
    )


def _worse(study: Study) -> str:
    own = [name for name in study.scores if name.startswith("`wrd-score")]
    worse = [name for name in own if study.error(name) > study.error(ROUGE)]
    return f"farther with {listed(worse)}" if worse else "nearer with all vectors"


def _norms(store: Store) -> Claim:
    place, claim = (
        "Section 3",
        "The norm of a word's vector grows with its importance, so that norms make good masses",
    )
    judged = read_judgements(store.data / "data/wmt15-da.jsonl.gz")
    texts = [
        refs[0].lower().split()
        for refs, pair in zip(judged.refs, judged.lang_pairs, strict=True)
        if pair.endswith("-en")
    ]
    frequency: dict[str, int] = {}
    for words in texts:
        for word in set(words):
            frequency[word] = frequency.get(word, 0) + 1
    chosen = sorted(word for word, count in frequency.items() if count > 4 and word.isalpha())
    idf = np.array([np.log(len(texts) / frequency[word]) for word in chosen])
    figures = {}
    for name, source in _sources(store).items():
        cloud = freight.encoder(source).encode(chosen, [0])
        norms = np.linalg.norm(cloud.layers[:, 0].numpy(), axis=1)[cloud.offsets[:-1]]
        known = (norms > 0) & (np.diff(cloud.offsets) == 1)
        figures[name] = float(stats.spearmanr(norms[known], idf[known]).statistic)
    cases = {name: Outcome(rho > 0.1, number(rho, 2)) for name, rho in figures.items()}
    return decide_cases(
        place,
        claim,
        cases,
        f"Spearman's ρ of norm and IDF over {len(chosen)} words of WMT15's references",
    )
