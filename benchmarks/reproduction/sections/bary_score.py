"""BaryScore (Colombo et al., EMNLP 2021)."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from asking import Question, Store, differ_significantly
from claims import Claim, Outcome, cases_of, decide, decide_cases, untested
from freight.data.judgement_files import read_judgements
from freight.judge.correlation import correlate, correlation_matrix
from freight.report.plots import correlations, significances
from freight.transport.types import Array
from layout import (
    Line,
    listed,
    mean,
    number,
    p_value,
    plain_table,
    printed_lines,
    side_by_side,
    table,
)
from published import SPEED, printed
from questions import (
    CAPTIONS,
    CRITERIA,
    STATISTICS,
    column,
    panels,
    realsumm,
    scored,
    webnlg,
    wmt15,
    wmt17,
)
from writing import standing_alone

BARY, IDF, ALL = "bary-score:distance", "bary-score(idf):distance", "bary-score(all):distance"
BERT, MOVER, MOVER_1 = "bert-score:f1", "mover-score:similarity", "mover-score(v1):similarity"
PRECISION, RECALL = "bert-score:precision", "bert-score:recall"
POWER, ONE_LAYER = "emd(power-means):transport", "emd:transport"
ROUGES = {"rouge-1:score": "`rouge-1`", "rouge-2:score": "`rouge-2`", "rouge-l:score": "`rouge-l`"}
STRINGS = {
    "sentence-bleu:score": "`sentence-bleu`",
    "bleu:score": "`bleu` by segment",
    "chrf:score": "`chrf`",
    **ROUGES,
    "ter:score": "`ter`",
}
OWN = {
    BARY: "`bary-score`",
    IDF: "`bary-score`, IDF",
    BERT: "`bert-score` F",
    PRECISION: "`bert-score` P",
    RECALL: "`bert-score` R",
    MOVER: "`mover-score`",
    MOVER_1: "`mover-score`, version 1",
}
METRICS = OWN | STRINGS
RIVALS = (BERT, PRECISION, RECALL, MOVER, MOVER_1)
"""The other metrics of contextual vectors that the paper compares with."""

BESIDE = {
    "BaryS": (BARY, IDF),
    "BertS-F": (BERT, PRECISION, RECALL),
    "BertS": (BERT, PRECISION, RECALL),
    "MoverS": (MOVER, MOVER_1),
    "BLEU": ("sentence-bleu:score", "bleu:score"),
    "CHRF": ("chrf:score",),
    "R-1": ("rouge-1:score",),
    "R-2": ("rouge-2:score",),
    "TER": ("ter:score",),
}
"""What of ours stands below a row of the paper."""

NOT_THEIRS = (
    "Its BLEU and CHRF are not ours: `sentence-bleu` smooths by adding one, `bleu` by segment as "
    "sacrebleu does, and neither gives its figures; its CHRF is half of what every other source "
    "has for WMT15 (STD's Table IV below: .551 on cs-en). MET is METEOR, which needs WordNet's "
    "data and was not computed; a + is an encoder tuned on entailment, which is not at hand."
)
JOINS = {
    ONE_LAYER: "one layer (`emd`)",
    "emd(mean):transport": "mean of the last five",
    "emd(unit-mean):transport": "mean of unit vectors",
    POWER: "power means",
    BARY: "barycenter of the last five (`bary-score`)",
    ALL: "barycenter of all (`bary-score`)",
}
SUMMARIES = {
    f"{part} {level} {sign}": realsumm(part, level, how)
    for part in ("abs", "ext")
    for level in ("text", "system")
    for how, sign in (("pearson", "r"), ("spearman", "ρ"), ("kendall", "τ"))
}
SETTINGS = ("abs text", "abs system", "ext text", "ext system")
JOINED = (
    "WMT15 r",
    "WMT17 r",
    "DARR et-en",
    "DARR cs-en",
    "DARR tr-en",
    "RS abs text τ",
    "RS ext text τ",
    "WebNLG correctness r",
    "Flickr τ",
)
PICTURED = "de-en"
HUMAN = {"Correct": "correctness", "DataC": "data_coverage", "Relev": "relevance"}
SPEEDS = Path(__file__).parents[2] / "results/gpu.json"


def section(store: Store) -> Iterator[str]:
    """Tables 1 and 2, its figures, how layers become one measure, and speed."""
    yield "## BaryScore"
    yield "### BaryScore's Table 1: WMT15, segment level"
    yield f"×100; published: bert-base-uncased. {NOT_THEIRS}"
    yield from _beside_ours(store, "Table 1", "wmt15-da", _wmt15)
    yield "### BaryScore's Table 2: WMT16, segment level"
    yield "×100, published figures alone: WMT16 is not at hand."
    yield _quoted("Table 2")
    yield "### Figures 3, 4 and 8 to 15: metrics among themselves, and Williams' test"
    yield from _pictures(store)
    yield "### Figure 5: summaries"
    yield (
        "REALSumm (CNN/DailyMail), abstractive and extractive systems, against the recall that "
        "people counted. The paper draws its figures and prints none."
    )
    for encoder in store.holding("realsumm"):
        yield f"**{encoder}**"
        rows = METRICS | {"yisi-1:f": "`yisi-1`", "lazy-emd:objective": "`lazy-emd`, objective"}
        values = {name: store.ask(encoder, asked).values for name, asked in SUMMARIES.items()}
        yield table("metric", rows, values)
    yield "### Figure 6: captions, system level"
    yield (
        "×100, MSCOCO, published figures alone: these captions are not at hand. Single captions "
        "are [below](#captions)."
    )
    yield _quoted("Figure 6")
    yield "### Figure 7: WebNLG 2020, system level"
    yield (
        "×100; the first three rows are people's criteria among themselves. The paper has 15 "
        f"systems, the data 16. {NOT_THEIRS} R-WE is not built."
    )
    yield from _beside_ours(store, "Figure 7", "webnlg2020-en", _webnlg, frozenset(HUMAN))
    yield "### How layers become one measure"
    yield (
        "The first four move tokens at the cost of a cosine, special tokens left out; the "
        "barycenter keeps them and costs a squared distance, as its authors' code does."
    )
    for encoder in store.encoders:
        names = [name for name in JOINED if name in scored(store, encoder)]
        yield f"**{encoder}**"
        yield table("layers", JOINS, {name: column(store, encoder, name) for name in names})
    yield "### Pairs a second"
    yield _speeds()


def _quoted(name: str) -> str:
    paper = printed("bary-score", name)
    return side_by_side(printed_lines(paper).values(), paper.columns, digits=1, paper=paper)


def _wmt15(name: str) -> Question:
    pair, statistic = name.split()
    return wmt15(pair, STATISTICS[statistic])


def _webnlg(name: str) -> Question:
    criterion, statistic = name.split()
    names = {
        "Correctness": "correctness",
        "DataCoverage": "data_coverage",
        "Relevance": "relevance",
    }
    return webnlg(names[criterion], STATISTICS[statistic])


def _beside_ours(
    store: Store,
    name: str,
    title: str,
    ask: Callable[[str], Question],
    human: frozenset[str] = frozenset(),
) -> Iterator[str]:
    paper = printed("bary-score", name)
    encoders = store.holding(title)
    values = {
        encoder: {c: store.ask(encoder, ask(c)).values for c in paper.columns}
        for encoder in encoders
    }
    lines = []
    for row, line in printed_lines(paper, set(paper.rows) - human).items():
        lines.append(line)
        if row in human:
            own = {c: 100 * x for c, x in _between_people(store, HUMAN[row], paper.columns).items()}
            lines.append(Line(f"people's {HUMAN[row]}", "ours", own, False))
        for label in BESIDE.get(row, ()):
            sources = {"ours": encoders[:1]} if label in STRINGS else {e: [e] for e in encoders}
            for source, of in sources.items():
                cells = {c: 100 * v[label] for e in of for c, v in values[e].items() if label in v}
                if cells:
                    lines.append(Line(METRICS[label], source, cells))
    yield side_by_side(lines, paper.columns, digits=1, paper=paper)


def _between_people(store: Store, criterion: str, columns: tuple[str, ...]) -> dict[str, float]:
    """How one criterion of WebNLG's systems agrees with those of the columns."""
    means = _system_ratings(store)
    return {
        c: correlate(means[criterion], means[_webnlg(c).criterion], STATISTICS[c.split()[1]])
        for c in columns
    }


def _system_ratings(store: Store) -> dict[str, Array]:
    judged = read_judgements(store.data / "data/webnlg2020-en.jsonl.gz")
    rows = [judged.systems == k for k in range(len(judged.system_names))]
    return {name: np.array([judged.human[name][one].mean() for one in rows]) for name in CRITERIA}


def _pictures(store: Store) -> Iterator[str]:
    yield (
        f"The paper's are of WMT16 {PICTURED}, as pictures without figures; these are of WMT17 "
        f"{PICTURED} ({_pictured_encoder(store)} encoder) and, for the criteria of WebNLG, in "
        "[the claims](#all-claims)."
    )
    if not _pictured_encoder(store):
        return
    yield ("![Kendall's τ between the metrics, and with people](figures/metric-correlations.svg)")
    yield (
        "![One-sided p-values of Williams' test that the row's metric agrees better with people "
        "than the column's](figures/metric-significance.svg)"
    )


def _pictured_encoder(store: Store) -> str:
    return next(iter(store.holding("wmt17-da")), "")


def pictures(store: Store) -> dict[str, str]:
    """Metric by metric: Kendall's τ, and Williams' test. SVG by file name."""
    encoder = _pictured_encoder(store)
    if not encoder:
        return {}
    panel = store.ask(encoder, wmt17(PICTURED))
    shown = {
        label: name.replace("`", "") for label, name in METRICS.items() if label in panel.values
    }
    shown |= {"freight:score": "freight", "lazy-emd:objective": "lazy-emd"}
    shown = {label: name for label, name in shown.items() if label in panel.values}
    metrics, human = panel.points(tuple(shown))
    taus = correlation_matrix(np.vstack((metrics, human)), "kendall")
    names = [*shown.values()]
    title = f"WMT17 {PICTURED}, {encoder} encoder"
    drawn = {
        "metric-correlations.svg": correlations(
            taus, [*names, "people"], f"Kendall's τ between metrics, {title}"
        ),
        "metric-significance.svg": significances(
            panel.williams(tuple(shown)), names, f"Williams' test, {title}"
        ),
    }
    return {name: standing_alone(picture) for name, picture in drawn.items()}


def _speeds() -> str:
    body = [[f"`{name}`", f"{theirs:,}", f"{_speed(name):,}"] for name, theirs in SPEED.items()]
    rows = plain_table(["metric", "published, V100", "ours, H200"], body)
    return (
        f"{rows}\n\nText to score, encoders of BERT-base's shape; ours in bfloat16, from "
        "[GPUs](gpu.md#how-fast). The machines differ, so only the ratio compares: "
        f"BaryScore has {number(SPEED['bary-score'] / SPEED['mover-score'], 2)} of MoverScore's "
        f"speed in print, {number(_speed('bary-score') / _speed('mover-score'), 2)} here."
    )


def _speed(metric: str) -> int:
    """Pairs a second on a GPU, BERT-base's shape and the shortest texts."""
    rows = json.loads(SPEEDS.read_text("utf-8"))["rows"]
    return int(next(row["pairs_per_second"] for row in rows if row["metric"] == metric))


def claims(store: Store) -> Iterator[Claim]:
    """Its claims, in the paper's order."""
    no_nli = "an encoder tuned on entailment is not at hand"
    yield untested(
        "Section 6.1, Tables 1 and 2",
        "BaryScore+ is the best on every pair of WMT15 and WMT16",
        no_nli,
    )
    yield untested(
        "Section 6.1, Figure 3",
        "On WMT16 de-en the improvements are significant by Williams' test",
        f"WMT16 is not at hand; WMT17 de-en, that BaryScore is ahead of BERTScore-F: "
        f"{_williams(store)}",
    )
    yield untested(
        "Section 6.1", "An encoder tuned on entailment is better on translations", no_nli
    )
    yield from _translation_claims(store)
    yield from _summary_claims(store)
    yield from _webnlg_claims(store)
    captions = [
        f"{e} `bary-score` {number(v[BARY])}, `bert-score` F {number(v[BERT])}, `mover-score` "
        f"{number(v[MOVER])}"
        for e in store.holding(CAPTIONS.set)
        for v in [store.ask(e, CAPTIONS).values]
    ]
    yield untested(
        "Section 6.4, Figure 6",
        "On MSCOCO captions BaryScore is above every metric but LEIC, at system level",
        "MSCOCO's ratings are not at hand; τ over single captions of Flickr8k: "
        + "; ".join(captions),
    )
    yield decide_cases(
        "Sections 1 and 4",
        "All layers with equal weights need no choice of a layer, and make the metric more robust",
        cases_of(store.encoders, lambda encoder: _robust(store, encoder)),
        "columns of the table of layers in which a barycenter beats one layer",
    )
    yield untested(
        "Section 4", "Stop words need not be removed", "there is no option that removes them"
    )


def _williams(store: Store) -> str:
    figures = []
    for encoder in store.holding("wmt17-da"):
        panel = store.ask(encoder, wmt17(PICTURED))
        figures.append(
            f"{encoder} p {p_value(float(panel.williams((BARY, BERT))[0, 1]))} "
            f"({number(panel.values[BARY])} and {number(panel.values[BERT])})"
        )
    return "; ".join(figures) or "not computed"


def _translation_claims(store: Store) -> Iterator[Claim]:
    encoders = store.holding("wmt15-da")

    def aggregates(encoder: str) -> Outcome:
        values = column(store, encoder, "WMT15 r")
        return Outcome(
            values[BARY] > max(values[MOVER_1], values[POWER]),
            f"{number(values[BARY])}, MoverScore with power means {number(values[MOVER_1])}, EMD "
            f"with power means {number(values[POWER])}",
        )

    def outperforms(encoder: str) -> Outcome:
        asked = panels(store, encoder, "WMT15 r")
        values = mean([panel.values for panel in asked])
        best = max(RIVALS, key=values.__getitem__)
        sure = "significant" if differ_significantly(asked, BARY, best) else "not significant"
        return Outcome(
            values[BARY] > values[best],
            f"{number(values[BARY])} and {number(values[best])} of {METRICS[best]} ({sure})",
        )

    def related(encoder: str) -> Outcome:
        panel = store.ask(encoder, wmt17(PICTURED))
        several = [BARY, BERT, PRECISION, RECALL, MOVER, MOVER_1]
        taus = correlation_matrix(panel.points(several)[0], "kendall")[np.triu_indices(6, 1)]
        return Outcome(
            0.3 < taus.min() < 0.9, f"{number(taus.min(), 2)} to {number(taus.max(), 2)}"
        )

    yield decide_cases(
        "Section 6.1, Tables 1 and 2",
        "Barycenters aggregate layers better than MoverScore's power means",
        cases_of(encoders, aggregates),
        "mean r of WMT15",
    )
    yield decide_cases(
        "Abstract, Section 6.1",
        "BaryScore outperforms the other metrics of BERT in machine translation",
        cases_of(encoders, outperforms),
        "mean r of WMT15, beside the best of the others",
    )
    yield decide_cases(
        "Section 6.1, Figure 4",
        "Metrics of BERT correlate moderately to strongly, not fully, with each other",
        cases_of(store.holding("wmt17-da"), related),
        f"τ between BaryScore, BERTScore and MoverScore on WMT17 {PICTURED}",
    )
    ratios = (
        SPEED["bary-score"] / SPEED["mover-score"],
        _speed("bary-score") / _speed("mover-score"),
    )
    yield decide(
        "Section 6.1",
        "BaryScore's speed is close to MoverScore's",
        ratios[1] > 0.75,
        f"180 and 195 pairs a second in print, a ratio of {number(ratios[0], 2)}; here "
        f"{_speed('bary-score'):,} and {_speed('mover-score'):,}, {number(ratios[1], 2)} (close: "
        f"above .75)",
    )


def _summary_claims(store: Store) -> Iterator[Claim]:
    encoders = store.holding("realsumm")
    asked = {e: {name: store.ask(e, q).values for name, q in SUMMARIES.items()} for e in encoders}

    def no_winner(encoder: str) -> Outcome:
        firsts = {
            max((x for x in METRICS if x in values), key=values.__getitem__)
            for values in asked[encoder].values()
        }
        return Outcome(len(firsts) > 1, f"{len(firsts)} metrics are first in some column")

    def collapse(encoder: str) -> Outcome:
        system, text = asked[encoder]["ext system r"], asked[encoder]["ext text r"]
        figures = [
            f"{METRICS[x]} {number(text[x])} and {number(system[x])}"
            for x in (RECALL, MOVER, MOVER_1)
        ]
        fell = [system[x] < 0.2 and text[x] >= text[BERT] for x in (RECALL, MOVER, MOVER_1)]
        return Outcome(all(fell), ", ".join(figures))

    def weak_f(encoder: str) -> Outcome:
        text, system = asked[encoder]["ext text r"], asked[encoder]["ext system r"]
        best = max(RIVALS, key=text.__getitem__)
        rouge = max(ROUGES, key=system.__getitem__)
        holds = text[BERT] < text[best] - 0.02 and abs(system[BERT] - system[rouge]) < 0.1
        return Outcome(
            holds,
            f"text {number(text[BERT])} ({METRICS[best]} {number(text[best])}), system "
            f"{number(system[BERT])} ({METRICS[rouge]} {number(system[rouge])})",
        )

    def competitive(encoder: str) -> Outcome:
        places = [
            1 + sum(values[x] > values[BARY] for x in RIVALS)
            for values in (asked[encoder]["ext text r"], asked[encoder]["ext system r"])
        ]
        return Outcome(max(places) <= 2, f"place {places[0]} and {places[1]} of {len(RIVALS) + 1}")

    def beats(encoder: str) -> Outcome:
        won = [s for s in SETTINGS if _wins(asked[encoder], s)]
        return Outcome(len(won) >= 3, f"{len(won)} of 4" + (f" ({listed(won)})" if won else ""))

    def light(encoder: str) -> Outcome:
        good = [s for s in SETTINGS if _near(asked[encoder], s)]
        return Outcome(len(good) >= 3, f"{len(good)} of 4" + (f" ({listed(good)})" if good else ""))

    yield decide_cases(
        "Section 6.2, Figure 5",
        "On summaries no metric is best in every setting",
        cases_of(encoders, no_winner),
    )
    yield untested(
        "Section 6.2, Figure 5",
        "On summaries the encoder tuned on entailment brings no gain",
        "an encoder tuned on entailment is not at hand",
    )
    yield decide_cases(
        "Section 6.2, Figure 5",
        "On extractive systems BERTScore-R and MoverScore do well on texts and collapse (below "
        ".2) on systems",
        cases_of(encoders, collapse),
        "r on texts and on systems; well: at least as BERTScore-F",
    )
    yield decide_cases(
        "Section 6.2, Figure 5",
        "On extractive systems BERTScore-F is weak on texts and level with ROUGE on systems",
        cases_of(encoders, weak_f),
        "r; weak: .02 below the best of its kind, level: within .1",
    )
    yield decide_cases(
        "Section 6.2, Figure 5",
        "On extractive systems BaryScore is competitive on texts and on systems",
        cases_of(encoders, competitive),
        "by r among metrics of BERT; competitive: first or second on both",
    )
    yield decide_cases(
        "Section 6.2",
        "The two BaryScores beat the other metrics of BERT in three of four settings of summaries",
        cases_of(encoders, beats),
        "without the tuned encoder, with and without IDF, by most of r, ρ and τ",
    )
    yield decide_cases(
        "Section 6.2",
        "ROUGE is a good light alternative in three of four settings of summaries",
        cases_of(encoders, light),
        "good: the best ROUGE at most .05 of r below the best metric of BERT",
    )


def _wins(values: dict[str, dict[str, float]], setting: str) -> bool:
    won = [
        max(v[BARY], v[IDF]) > max(v[x] for x in RIVALS)
        for v in (values[f"{setting} {sign}"] for sign in "rρτ")
    ]
    return sum(won) >= 2


def _near(values: dict[str, dict[str, float]], setting: str) -> bool:
    v = values[f"{setting} r"]
    return max(v[x] for x in ROUGES) > max(v[x] for x in (*RIVALS, BARY, IDF)) - 0.05


def _webnlg_claims(store: Store) -> Iterator[Claim]:
    means = _system_ratings(store)
    pairs = [(one, other) for k, one in enumerate(CRITERIA) for other in CRITERIA[k + 1 :]]
    cells = [
        correlate(means[one], means[other], how)
        for one, other in pairs
        for how in ("pearson", "spearman")
    ]
    yield decide(
        "Section 6.3, Figure 7",
        "On WebNLG people's three criteria correlate above .90 in r and ρ",
        min(cells) > 0.9,
        f"{number(min(cells))} to {number(max(cells))}; in print .852 to .991",
    )
    encoders = store.holding("webnlg2020-en")

    def best(encoder: str) -> Outcome:
        asked = [
            store.ask(encoder, webnlg(criterion, how)).values
            for criterion in CRITERIA
            for how in STATISTICS.values()
        ]
        over = [v[BARY] > max(v[x] for x in RIVALS) for v in asked]
        first = [v[BARY] >= max(v[x] for x in METRICS if x in v) for v in asked]
        return Outcome(
            all(over),
            f"above the others of BERT in {sum(over)} of 9 cells, best of all in {sum(first)}",
        )

    def borne_out(encoder: str) -> Outcome:
        several = [store.ask(encoder, webnlg(criterion)) for criterion in CRITERIA]
        ps = [float(panel.williams((BARY, x))[0, 1]) for panel in several for x in (BERT, MOVER)]
        return Outcome(max(ps) < 0.05, f"p {p_value(min(ps))} to {p_value(max(ps))}")

    yield decide_cases(
        "Section 6.3, Figure 7",
        "On WebNLG BaryScore is above every other metric of BERT, and best in 6 of 9 cells",
        cases_of(encoders, best),
    )
    yield decide_cases(
        "Appendix 9.2, Figure 15",
        "Williams' tests on WebNLG bear the differences out",
        cases_of(encoders, borne_out),
        "that BaryScore is ahead of BERTScore-F and MoverScore, three criteria, 16 systems",
    )


def _robust(store: Store, encoder: str) -> Outcome | None:
    columns = [column(store, encoder, name) for name in scored(store, encoder) if name in JOINED]
    label = ALL if columns and ALL in columns[0] else BARY
    over = [values[label] > values[ONE_LAYER] for values in columns if label in values]
    what = "all layers" if label == ALL else "the last five"
    return Outcome(all(over), f"{sum(over)} of {len(over)} ({what})") if over else None
