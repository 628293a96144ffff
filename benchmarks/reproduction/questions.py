"""What is asked of the sets, by how the page's columns are called."""

from asking import Panel, Question, Store
from layout import mean

ENGLISH = ("cs-en", "de-en", "fi-en", "ru-en")
"""The pairs of WMT15 with an English side that is scored."""

SEVENTEEN = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
DARR = ("et-en", "cs-en", "tr-en", "en-cs")
RECALL = "litepyramid_recall"
CRITERIA = ("correctness", "data_coverage", "relevance")
STATISTICS = {"r": "pearson", "rho": "spearman", "tau": "kendall"}


def wmt15(pair: str, how: str = "pearson") -> Question:
    return Question("wmt15-da", pair, "segment", how, "da_z")


def wmt17(pair: str, how: str = "pearson") -> Question:
    return Question("wmt17-da", pair, "segment", how, "da_z")


def darr(pair: str) -> Question:
    return Question(f"wmt18-darr.{pair}", "", "darr", "tau")


def realsumm(part: str, level: str, how: str) -> Question:
    return Question("realsumm", part, level, how, RECALL)


def webnlg(criterion: str, how: str = "pearson") -> Question:
    return Question("webnlg2020-en", "", "system", how, criterion)


CAPTIONS = Question("flickr8k-expert", "", "segment", "kendall", "expert_mean")

COLUMNS: dict[str, tuple[Question, ...]] = {
    "WMT15 r": tuple(map(wmt15, ENGLISH)),
    "WMT15 τ": tuple(wmt15(pair, "kendall") for pair in ENGLISH),
    "WMT17 r": tuple(map(wmt17, SEVENTEEN)),
    "WMT17 τ": tuple(wmt17(pair, "kendall") for pair in SEVENTEEN),
    **{f"DARR {pair}": (darr(pair),) for pair in DARR},
    **{
        f"RS {part} {level} τ": (realsumm(part, level, "kendall"),)
        for part in ("abs", "ext")
        for level in ("text", "system")
    },
    **{f"WebNLG {name.removeprefix('data_')} r": (webnlg(name),) for name in CRITERIA},
    "Flickr τ": (CAPTIONS,),
}
"""Every set once; several questions are averaged."""


def panels(store: Store, encoder: str, column: str) -> list[Panel]:
    """The questions of a column, answered."""
    return [store.ask(encoder, question) for question in COLUMNS[column]]


def column(store: Store, encoder: str, name: str) -> dict[str, float]:
    """A number by metric: the mean over the column's questions."""
    return mean([panel.values for panel in panels(store, encoder, name)])


def scored(store: Store, encoder: str) -> list[str]:
    """The columns whose set was scored with this encoder."""
    return [name for name, asked in COLUMNS.items() if store.holds(encoder, asked[0].set)]
