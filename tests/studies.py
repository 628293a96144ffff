"""Studies made up by seed: metrics are what people said with noise of known strength."""

from dataclasses import replace

import numpy as np

from freight.data.judgements import Judgements
from freight.judge.study import Agreement, Study
from freight.transport.types import Array

NOISE = {
    "lazy-emd:objective": 0.7,
    "bert-score:f1": 0.72,
    "bary-score": 1.0,
    "sentence-bleu": 2.5,
    "chrf": 1.8,
}
WORDS = ("the", "freight", "train", "left", "quietly", "before", "dawn", "with", "coal", "salt")


def rated(name: str, segments: int, systems: int, criteria: tuple[str, ...]) -> Judgements:
    """Random sentences, rated by criteria that have something in common."""
    rng = np.random.default_rng([*name.encode(), segments, systems])
    rows = segments * systems
    segment, system = np.divmod(np.arange(rows), systems)
    hyps = tuple(" ".join(words) for words in rng.choice(WORDS, (rows, 12)))
    refs = [" ".join(words) for words in rng.choice(WORDS, (segments, 12))]
    common = rng.normal(size=rows) + 0.2 * system
    return Judgements(
        name,
        hyps,
        tuple((refs[k],) for k in segment),
        segment,
        system,
        tuple(f"system-{k}" for k in range(systems)),
        {one: common + 0.6 * rng.normal(size=rows) for one in criteria},
    )


def preferred(name: str, segments: int, systems: int, pairs: int) -> Judgements:
    """The same with preferences alone, and the hidden rating that they come from."""
    judged = rated(name, segments, systems, ("hidden",))
    rng = np.random.default_rng(pairs)
    first = rng.integers(0, len(judged.hyps), pairs)
    second = first - first % systems + (first + rng.integers(1, systems, pairs)) % systems
    hidden = judged.human["hidden"]
    swap = hidden[first] < hidden[second]
    chosen = np.stack([np.where(swap, second, first), np.where(swap, first, second)], axis=1)
    return replace(judged, preferences=chosen)


def study(*sets: Judgements, level: str = "segment", **changes: object) -> Study:
    """Pearson by rows, or the tau of preferences, with intervals and p of the right size."""
    criteria = tuple(sets[0].human)
    scores, agreements, significance, metrics, humans = {}, [], {}, {}, {}
    for k, one in enumerate(sets):
        rng = np.random.default_rng(k)
        people = np.mean(list(one.human.values()), axis=0)
        predictions = {m: people + s * rng.normal(size=len(people)) for m, s in NOISE.items()}
        scores.update({(m, one.name): x for m, x in predictions.items()})
        metrics[one.name] = np.corrcoef(list(predictions.values()))
        humans[one.name] = np.atleast_2d(np.corrcoef(list(one.human.values())))
        for criterion in ("",) if one.preferences is not None else criteria:
            values = [_agreement(one, criterion, x) for x in predictions.values()]
            agreements += [
                Agreement(m, one.name, criterion, v, v - 0.03, v + 0.03, len(people), 0)
                for m, v in zip(predictions, values, strict=True)
            ]
            gaps = np.subtract.outer(values, values)
            significance[one.name, criterion] = 1 / (1 + np.exp(np.clip(60 * gaps, -50, 50)))
    shown = tuple(replace(one, human={}) if one.preferences is not None else one for one in sets)
    ratings = sets[0].preferences is None
    made = Study(
        level=level,
        statistic="pearson" if ratings else "tau",
        metrics=tuple(NOISE),
        sets=shown,
        humans=criteria if ratings else (),
        scores=scores,
        agreements=tuple(agreements),
        significance=significance,
        between_metrics=metrics,
        between_humans=humans if ratings and len(criteria) > 1 else {},
        signatures=tuple(f"{name}|encoder:embedded|layer:4|version:0.1.0" for name in NOISE),
        notes=(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def _agreement(judged: Judgements, criterion: str, scores: Array) -> float:
    if judged.preferences is None:
        return float(np.corrcoef(judged.human[criterion], scores)[0, 1])
    better, worse = judged.preferences.T
    return float(np.sign(scores[better] - scores[worse]).mean())
