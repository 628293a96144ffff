"""BaryScore (Colombo et al., EMNLP 2021)."""

from collections.abc import Iterator

from asking import Store, differ_significantly
from layout import bullets, listed, mean, number, table, verdict
from published import WEBNLG, WMT15
from questions import CRITERIA, ENGLISH, column, panels, realsumm, scored, webnlg, wmt15

IDF = "bary-score(idf):distance"
BARY, BERT, MOVER = "bary-score:distance", "bert-score:f1", "mover-score:similarity"
METRICS = {
    "sentence-bleu:score": "`sentence-bleu`",
    "chrf:score": "`chrf`",
    "rouge-1:score": "`rouge-1`",
    "rouge-2:score": "`rouge-2`",
    "rouge-l:score": "`rouge-l`",
    "bert-score:precision": "`bert-score` P",
    "bert-score:recall": "`bert-score` R",
    BERT: "`bert-score` F",
    MOVER: "`mover-score`",
    BARY: "`bary-score`",
    IDF: "`bary-score`, IDF",
}
MORE = METRICS | {"yisi-1:f": "`yisi-1`", "lazy-emd:objective": "`lazy-emd`, objective"}
JOINS = {
    "emd:transport": "one layer (`emd`)",
    "emd(mean):transport": "mean of the last five",
    "emd(unit-mean):transport": "mean of unit vectors",
    "emd(power-means):transport": "power means",
    BARY: "barycentre (`bary-score`)",
}
SUMMARIES = {
    f"{part} {level} {sign}": realsumm(part, level, how)
    for part in ("abs", "ext")
    for level in ("text", "system")
    for how, sign in (("kendall", "τ"), ("pearson", "r"))
}
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


def section(store: Store) -> Iterator[str]:
    """WMT15, summaries, data-to-text, and how layers become one measure."""
    yield "## BaryScore"
    yield "### WMT15, segment level, Pearson (published: bert-base-uncased)"
    for encoder in store.encoders:
        yield f"**{encoder}**"
        yield from _wmt15(store, encoder)
    yield "### REALSumm: summaries, abstractive and extractive"
    for encoder in _having(store, "realsumm"):
        yield f"**{encoder}**"
        found = {name: store.ask(encoder, asked).values for name, asked in SUMMARIES.items()}
        yield table("metric", MORE, found)
    yield "### WebNLG 2020, system level, Pearson"
    for encoder in _having(store, "webnlg2020-en"):
        yield f"**{encoder}**"
        yield _webnlg(store, encoder)
    yield "### How layers become one measure"
    yield (
        "The first four move tokens at the cost of a cosine, special tokens left out; the "
        "barycentre keeps them and costs a squared distance, as its authors' code does."
    )
    for encoder in store.encoders:
        names = [name for name in JOINED if name in scored(store, encoder)]
        yield f"**{encoder}**"
        yield table("layers", JOINS, {name: column(store, encoder, name) for name in names})
    yield "### Verdict"
    yield bullets(_verdict(store))


def _having(store: Store, title: str) -> list[str]:
    return [encoder for encoder in store.encoders if store.holds(encoder, title)]


def _wmt15(store: Store, encoder: str) -> Iterator[str]:
    if not store.holds(encoder, "wmt15-da"):
        yield "Not computed."
        return
    ours = {pair: store.ask(encoder, wmt15(pair)).values for pair in ENGLISH}
    theirs = {f"published {pair}": WMT15[pair] for pair in ENGLISH}
    means = {"mean": mean(list(ours.values()))}
    yield table(
        "metric",
        METRICS,
        ours | means | theirs | {"published mean": mean([WMT15[p] for p in ENGLISH])},
    )


def _webnlg(store: Store, encoder: str) -> str:
    ours = {_short(name): store.ask(encoder, webnlg(name)).values for name in CRITERIA}
    theirs = {f"published {_short(name)}": WEBNLG[name] for name in CRITERIA}
    return table("metric", METRICS, ours | theirs)


def _short(criterion: str) -> str:
    return criterion.removeprefix("data_")


def _verdict(store: Store) -> Iterator[str]:
    for encoder in store.encoders:
        if store.holds(encoder, "wmt15-da"):
            yield f"{encoder}, WMT15: {_translations(store, encoder)}"
    for encoder in _having(store, "realsumm"):
        yield f"{encoder}, REALSumm: {_summaries(store, encoder)}"
    for encoder in _having(store, "webnlg2020-en"):
        yield f"{encoder}, WebNLG: {_data_to_text(store, encoder)}"
    for encoder in store.encoders:
        yield f"{encoder}, layers: {_layers(store, encoder)}"


def _translations(store: Store, encoder: str) -> str:
    asked = panels(store, encoder, "WMT15 r")
    values = mean([panel.values for panel in asked])
    found = []
    for label, name in ((BERT, "BERTScore-F"), (MOVER, "MoverScore")):
        significant = differ_significantly(asked, BARY, label)
        above = values[BARY] > values[label]
        claim = verdict(f"that BaryScore is above {name}", above, significant)
        found.append(f"{claim} ({number(values[BARY])} and {number(values[label])})")
    return "; ".join(found) + "."


def _summaries(store: Store, encoder: str) -> str:
    everything = [store.ask(encoder, question).values for question in SUMMARIES.values()]
    first = {max(METRICS, key=lambda label: values.get(label, -1.0)) for values in everything}
    extractive = store.ask(encoder, SUMMARIES["ext system r"]).values
    own = [label for label in ("bert-score:recall", MOVER, BARY) if label in extractive]
    figures = listed(f"{METRICS[label]} {number(extractive[label])}" for label in own)
    if BARY not in own:
        return f"system level r on extractive systems: {figures}; `bary-score` not computed."
    stands = extractive[BARY] > max(extractive[label] for label in own[:2])
    collapse = verdict("that recall and MoverScore collapse there and BaryScore does not", stands)
    mixed = verdict("that no metric wins everywhere", len(first) > 1)
    wins = f"{mixed} ({len(first)} are first in some column)"
    return f"{wins}. System level r on extractive systems: {figures}; {collapse}."


def _data_to_text(store: Store, encoder: str) -> str:
    values = mean([store.ask(encoder, webnlg(name)).values for name in CRITERIA])
    if BARY not in values:
        return "`bary-score` not computed."
    others = {k: v for k, v in values.items() if k in METRICS and not k.startswith("bary")}
    best = max(others, key=others.__getitem__)
    claim = verdict("that BaryScore is ahead of all others", values[BARY] > others[best])
    return (
        f"{claim} (mean of the three criteria {number(values[BARY])}, with IDF "
        f"{number(values[IDF])}; best other {METRICS[best]} {number(others[best])})."
    )


def _layers(store: Store, encoder: str) -> str:
    found = [column(store, encoder, name) for name in scored(store, encoder) if name in JOINED]
    found = [values for values in found if set(JOINS) <= set(values)]
    first = [max(JOINS, key=lambda label: values[label]) for values in found]
    wins = {label: first.count(label) for label in JOINS if label in first}
    if not wins:
        return "not computed."
    counts = listed(f"{JOINS[label]} in {count}" for label, count in wins.items())
    over = sum(values[BARY] > values["emd:transport"] for values in found)
    return f"of {len(found)} columns the best is {counts}; a barycentre beats one layer in {over}."
