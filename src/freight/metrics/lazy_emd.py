"""Lazy-EMD: Chen et al., "Evaluating Natural Language Generation via Unbalanced Optimal Transport",
IJCAI 2020; with `emd`, its balanced form, and `doc-lazy-emd`, a form of ours for documents.

`doc-lazy-emd` also follows sentence mover's similarity (Clark et al., ACL 2019): the cost of moving
a sentence is itself a transport problem between the words of two sentences. Departures from the
authors' code are described at each factory.
"""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from freight.metrics.declaration import LOWER, ByLanguage, Slider, declare
from freight.metrics.parameter_types import (
    EncoderName,
    Entropy,
    Epsilon,
    HypPenalty,
    Idf,
    Language,
    LayerChoice,
    MassName,
    OrderShare,
    Penalty,
    PoolingName,
    Punctuation,
    Readout,
    ReadoutName,
    ReferencesRule,
    RefPenalty,
    TagKind,
    TagPipeline,
    TagShare,
    UnitName,
)

if TYPE_CHECKING:
    from freight.core.metric import Metric
    from freight.core.result import Column
    from freight.transport.types import Problem

_PAPER = (
    'Chen et al., "Evaluating Natural Language Generation via Unbalanced Optimal Transport",'
    " IJCAI 2020."
)
HYP_PENALTY = ByLanguage({"en": 0.23, "zh": 0.018}, other=0.009)
REF_PENALTY = ByLanguage({"en": 0.31, "zh": 0.97}, other=0.95)


@declare(
    "lazy-emd",
    columns={"objective": LOWER, "transport": LOWER},
    presets={
        "paper": {"epsilon": 0.009, "readout": "transport"},
        "authors": {"epsilon": 0.009, "readout": "transport", "cut": 0.999},
        "exact": {"epsilon": 0.0},
    },
    former_presets={
        "paper-en": {"preset": "paper", "lang": "en"},
        "paper-zh": {"preset": "paper", "lang": "zh"},
        "paper-other": {"preset": "paper", "lang": "other"},
    },
    paper=_PAPER,
    choose_when="extra or missing words should cost something, rather than be forced to match",
)
def lazy_emd(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    hyp: Annotated[HypPenalty | None, HYP_PENALTY] = None,
    ref: Annotated[RefPenalty | None, REF_PENALTY] = None,
    epsilon: Epsilon = 0.009,
    lang: Language = None,
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    readout: Readout = "objective",
    cut: Annotated[
        Annotated[float, Field(gt=0.0, allow_inf_nan=False), Slider(0.001, 2.0)] | None,
        Field(description="Leave flow at this cost or more out of the transport cost."),
    ] = None,
    tags: TagPipeline = None,
    tag: TagKind = "pos",
    tag_share: TagShare = 0.1,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Unbalanced transport between contextual tokens: KL-relaxed marginals leave mass unmatched.

    The paper scores by the transport cost, `preset="paper"` here. It is no monotone distance: what
    is expensive to move is not moved, and costs nothing. So the objective comes first, which adds
    the penalties on unmatched mass. The authors' code leaves flow at cost 0.999 and more out of the
    sum; ours does so only with `cut=0.999`. The entropy is relative to the counting measure, as in
    their code.
    """
    from freight.metrics.parts import Metric, Problem, add_tags, costs, readouts, source

    hyp = HYP_PENALTY.choose(lang) if hyp is None else hyp
    ref = REF_PENALTY.choose(lang) if ref is None else ref
    plain = source(encoder, layer, unit, pooling, mass, idf, punctuation=punctuation)
    text = add_tags(plain, tags, tag, tag_share)
    problem = Problem(hyp, ref, epsilon)
    return Metric(
        name="lazy-emd",
        **text.fields(),
        cost=costs.cosine,
        problems=(problem,),
        readout=readouts.Transport(cut),
        columns=_columns(_unrelated(problem), readout),
        references=references,
    )


@declare(
    "emd",
    columns={"transport": LOWER, "objective": LOWER},
    paper=_PAPER,
    choose_when="every word has to be matched",
)
def emd(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Earth mover's distance between contextual tokens: all mass is moved, at the least cost."""
    from freight.metrics.parts import Column, Metric, Problem, costs, readouts, source

    return Metric(
        name="emd",
        **source(encoder, layer, unit, pooling, mass, idf, punctuation=punctuation).fields(),
        cost=costs.cosine,
        problems=(Problem(),),
        readout=readouts.Transport(),
        columns=tuple(
            Column(name, False, 0.0, 1.0, (0.0, 2.0)) for name in ("transport", "objective")
        ),
        references=references,
    )


@declare(
    "doc-lazy-emd",
    columns={"objective": LOWER, "transport": LOWER},
    presets={
        "hard": {
            **dict.fromkeys(("hyp", "ref", "inner_hyp", "inner_ref"), math.inf),
            **dict.fromkeys(("epsilon", "inner_epsilon"), 0.0),
        },
        "coverage": {
            **dict.fromkeys(("hyp", "epsilon", "inner_hyp", "inner_epsilon"), 0.0),
            **dict.fromkeys(("ref", "inner_ref"), math.inf),
        },
    },
    former_presets={"held": {"preset": "hard"}},
    paper="Ours, after Lazy-EMD (Chen et al., IJCAI 2020) and sentence mover's similarity (Clark et"
    " al., ACL 2019).",
    choose_when="you want to see which sentences were added or omitted",
)
def doc_lazy_emd(
    encoder: EncoderName = "embedded",
    layer: LayerChoice = None,
    hyp: HypPenalty = 0.23,
    ref: RefPenalty = 0.31,
    epsilon: Epsilon = 0.009,
    inner_hyp: Annotated[
        Penalty, Field(description="Penalty of the hypothesis' marginal between two sentences.")
    ] = 0.23,
    inner_ref: Annotated[
        Penalty, Field(description="Penalty of the reference's marginal between two sentences.")
    ] = 0.31,
    inner_epsilon: Annotated[
        Entropy, Field(description="Entropic regularisation between two sentences.")
    ] = 0.009,
    inner_readout: Annotated[
        ReadoutName, Field(description="What of the plan between two sentences is their cost.")
    ] = "objective",
    mass: MassName = "uniform",
    idf: Idf = None,
    unit: UnitName = "tokens",
    pooling: PoolingName = "mean",
    readout: Readout = "objective",
    order: OrderShare = 0.0,
    punctuation: Punctuation = True,
    references: ReferencesRule = "best",
) -> "Metric":
    """Lazy-EMD between sentences, each pair at the Lazy-EMD between the words of the two.

    Both levels are read by their objective: where expensive sentences stay unmatched, the transport
    cost alone looks cheap.
    """
    from freight.metrics.parts import (
        Metric,
        Problem,
        costs,
        gather_sentences,
        readouts,
        source,
    )

    plain = source(encoder, layer, unit, pooling, mass, idf, punctuation=punctuation)
    text = gather_sentences(plain)
    inner, problem = Problem(inner_hyp, inner_ref, inner_epsilon), Problem(hyp, ref, epsilon)
    return Metric(
        name="doc-lazy-emd",
        **text.fields(),
        cost=costs.with_order(costs.Inner(costs.cosine, inner, inner_readout), order),
        problems=(problem,),
        readout=readouts.Transport(),
        columns=_columns(_unrelated(problem, _unrelated(inner)[inner_readout]), readout),
        references=references,
    )


def _unrelated(problem: "Problem", cost: float = 1.0) -> dict[str, float]:
    """Both read-outs where moving anything anywhere has this cost, without entropy.

    The mass that moves is s = exp(-cost / (hyp + ref)), and all of it where a marginal is hard.
    """
    penalties = problem.hyp + problem.ref
    if math.isinf(penalties):
        return {"transport": cost, "objective": cost}
    moved = math.exp(-cost / penalties)
    return {"transport": cost * moved, "objective": penalties * (1.0 - moved)}


def _columns(unrelated: dict[str, float], primary: str) -> "tuple[Column, ...]":
    """Both columns, the primary one first."""
    from freight.metrics.parts import Column

    columns = (Column(name, False, 0.0, x, (0.0, math.inf)) for name, x in unrelated.items())
    return tuple(sorted(columns, key=lambda column: column.name != primary))
