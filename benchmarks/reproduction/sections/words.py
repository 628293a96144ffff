"""STD (Li et al., TASLP 2019) and WRDScore (Mussabayev, 2024): metrics of word vectors."""

from collections.abc import Iterator

import freight
from asking import WORDS, Store
from freight.data.judgement_files import read_judgements
from freight.judge.error import mae, mse, paired_test, rescale
from freight.transport.types import Array
from layout import Values, bullets, listed, mean, number, p_value, table, verdict
from published import STD, WRD
from questions import ENGLISH, wmt15

COLUMNS = {"std:distance": "`std`", "wrd-score:f1": "`wrd-score`", "wmd:distance": "`wmd`"}
NAMES = {WORDS: "distilled (the default)"}


def std(store: Store) -> Iterator[str]:
    """WMT15 with the vectors at hand, in place of its tables IX to XI."""
    yield "## STD"
    yield "WMT15, segment level, Pearson; what word vectors do to the score (its tables IX to XI)."
    if not store.vectors:
        yield "Not computed."
        return
    rows = {"published": "`std`, published (fastText crawl 300d)"}
    found: dict[str, dict[str, float]] = {pair: {"published": STD[pair]} for pair in ENGLISH}
    for vectors in store.vectors:
        for label, name in COLUMNS.items():
            rows[f"{vectors} {label}"] = f"{name}, {NAMES.get(vectors, vectors)}"
            for pair in ENGLISH:
                found[pair][f"{vectors} {label}"] = store.ask(vectors, wmt15(pair)).values[label]
    if WORDS in store.vectors:
        rows["bleu"] = "`sentence-bleu`"
        for pair in ENGLISH:
            found[pair]["bleu"] = store.ask(WORDS, wmt15(pair)).values["sentence-bleu:score"]
    means = mean(list(found.values()))
    yield table("metric, vectors", rows, {**found, "mean": means})
    yield "### Verdict"
    yield bullets(_std_verdict(store, means))


def _std_verdict(store: Store, means: Values) -> Iterator[str]:
    own = {v: means[f"{v} std:distance"] for v in store.vectors}
    ranking = sorted(own, key=own.__getitem__, reverse=True)
    gap = own[ranking[0]] - own[ranking[-1]]
    order = listed(f"{NAMES.get(v, v)} ({number(own[v])})" for v in ranking)
    yield f"The vectors matter, as the paper says: {order}, {number(gap)} from first to last."
    reached = [v for v in ranking if own[v] >= means["published"]]
    yield (
        f"The published mean is {number(means['published'])}; "
        + (
            f"reached with {listed(NAMES.get(v, v) for v in reached)}."
            if reached
            else "none reaches it."
        )
    )
    if "bleu" in means:
        above = [v for v in ranking if own[v] > means["bleu"]]
        yield (
            f"STD above sentence BLEU ({number(means['bleu'])}): "
            f"**holds** with {len(above)} of {len(ranking)} vectors."
        )
    ahead = [
        NAMES.get(v, v)
        for v in ranking
        if own[v] > max(means[f"{v} {label}"] for label in list(COLUMNS)[1:])
    ]
    with_these = listed(ahead) if ahead else "none"
    yield f"It is ahead of `wmd` and `wrd-score` on the same vectors with {with_these}."


def wrd(store: Store) -> Iterator[str]:
    """Table 1, computed here: it takes a second."""
    yield "## WRDScore"
    yield (
        "150 pairs of method names against people's mean score / 10 (its table 1; errors, lower is "
        "better). Its corpus is not at hand; [training](training.md#wrdscores-experiment) says "
        "what vectors trained on other Java sources give."
    )
    pairs = read_judgements(store.data / "data/wrdscore.jsonl.gz")
    human = rescale(pairs.human["score"], 0, 10)
    scores = dict(_wrd_scores(store, pairs.hyps, pairs.refs))
    rows = {name: name for name in (*WRD, *scores)}
    squared = {name: figures[0] for name, figures in WRD.items()}
    absolute = {name: figures[1] for name, figures in WRD.items()}
    squared |= {name: mse(values, human) for name, values in scores.items()}
    absolute |= {name: mae(values, human) for name, values in scores.items()}
    yield table("metric", rows, {"MSE": squared, "MAE": absolute}, digits=4, lower=True)
    yield "### Verdict"
    yield bullets(_wrd_verdict(scores, human, squared, absolute))


def _wrd_scores(
    store: Store, hyps: tuple[str, ...], refs: tuple[tuple[str, ...], ...]
) -> Iterator[tuple[str, Array]]:
    yield "`rouge-1`", freight.load("rouge-1").score(hyps, refs)["score"]
    vectors = {"distilled": "distilled"}
    glove = store.data / "vectors/glove.100d.60k.bin"
    vectors |= {"GloVe 100d": f"static:{glove}"} if glove.is_file() else {}
    for name, source in vectors.items():
        encoder = freight.encoder(source, lang="code")
        for metric in ("wrd-score", "wrd-score-code"):
            yield (
                f"`{metric}`, {name}",
                freight.load(metric, encoder=encoder).score(hyps, refs)["f1"],
            )


def _wrd_verdict(
    scores: dict[str, Array], human: Array, squared: Values, absolute: Values
) -> Iterator[str]:
    own, rouge = "`wrd-score`, distilled", "`rouge-1`"
    gains = [1 - errors[own] / errors[rouge] for errors in (squared, absolute)]
    theirs = [1 - WRD["WRDScore, published"][k] / WRD["ROUGE-1, published"][k] for k in (0, 1)]
    p = paired_test(scores[own], scores[rouge], human, "mse").permutation_p
    closer = verdict("That WRDScore is nearer to people than ROUGE-1", min(gains) > 0, p < 0.05)
    yield (
        f"{closer}, with the distilled vectors: MSE {gains[0]:.0%} lower, MAE {gains[1]:.0%} "
        f"(published {theirs[0]:.0%} and {theirs[1]:.0%}); two-sided p of the squared errors, by "
        f"a paired permutation test, {p_value(p)}."
    )
    worse = [name for name in scores if name != rouge and squared[name] > squared[rouge]]
    if worse:
        yield f"It **does not hold** with {listed(worse)}: it takes the right vectors."
