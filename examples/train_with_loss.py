"""Train a small generator with cross-entropy alone, and with a transport loss added.

    python examples/train_with_loss.py [--vectors static:FILE] [--loss lazy-emd] [-o curve.svg]

The generator turns five facts (who, did, what, where, when) into a sentence, all words at once.
The same facts can be worded in several orders and with synonyms, and the corpus has one wording of
each. Cross-entropy compares position by position: if wordings differ in order it asks for a bit of
every word at a position, and the generator says one thing twice and omits another. Transport
compares measures over words: everything has to be said once, at any position, and a synonym costs
little. Both variants have the same data, initial weights, batches and steps; the test set has facts
that were never seen together in training, with six wordings of each as references.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

import freight
from freight.loss import Emd, Freight, LazyEmd, Loss, WrdScore

SLOTS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        ("the boy", "the lad"),
        ("the doctor", "the physician"),
        ("the teacher", "the tutor"),
        ("the thief", "the burglar"),
        ("the lawyer", "the attorney"),
        ("the girl", "the lass"),
    ),
    (
        ("bought", "purchased"),
        ("found", "discovered"),
        ("broke", "smashed"),
        ("hid", "concealed"),
        ("fixed", "repaired"),
        ("sold", "traded"),
    ),
    (
        ("a car", "an automobile"),
        ("a coat", "a jacket"),
        ("a boat", "a ship"),
        ("a present", "a gift"),
        ("a picture", "a photograph"),
        ("a stone", "a rock"),
    ),
    (
        ("in the garden", "in the yard"),
        ("at the shop", "at the store"),
        ("in the forest", "in the woods"),
        ("near the road", "near the street"),
        ("behind the house", "behind the home"),
    ),
    (
        ("yesterday",),
        ("last night", "last evening"),
        ("in autumn", "in fall"),
        ("this morning",),
        ("on sunday",),
    ),
)
"""For each slot its values, and the ways to word each value."""
ORDERS = ((0, 1, 2, 3, 4), (4, 0, 1, 2, 3), (3, 0, 1, 2, 4), (4, 3, 0, 1, 2))
POSITIONS, WIDTH, PAD = 12, 48, 0
RATE, ROWS, TESTS, SHARE = 2e-3, 32, 5, 3.0
ALONE, BOTH = "cross-entropy", "cross-entropy + transport"
MEASURES = {"distance": "↓", "chrf": "↑", "bleu": "↑"}
TITLES = {"distance": "lazy-emd objective", "chrf": "chrF", "bleu": "BLEU"}
LOSSES: dict[str, Callable[[], Loss]] = {
    "lazy-emd": LazyEmd,
    "emd": Emd,
    "wrd-score": WrdScore,
    "freight": lambda: Freight(epsilon=0.01),
}


class Corpus(NamedTuple):
    """Facts (row, slot), and the words of one wording of each (row, position)."""

    facts: Tensor
    words: Tensor


class Point(NamedTuple):
    """The scores of the test set after some steps."""

    step: int
    distance: float
    chrf: float
    bleu: float


class Generator(torch.nn.Module):
    """All words of a sentence at once: positions that attend to the facts, and to each other."""

    offsets: Tensor

    def __init__(self, words: int) -> None:
        super().__init__()
        offsets = np.cumsum([0, *(len(slot) for slot in SLOTS)])
        self.register_buffer("offsets", torch.as_tensor(offsets[:-1]))
        self.facts = torch.nn.Embedding(int(offsets[-1]), WIDTH)
        self.positions = torch.nn.Parameter(torch.randn(POSITIONS, WIDTH))
        layer = torch.nn.TransformerDecoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.body = torch.nn.TransformerDecoder(layer, 2)
        self.head = torch.nn.Linear(WIDTH, words)

    def forward(self, facts: Tensor) -> Tensor:
        """Logits (row, position, word)."""
        known = self.facts(facts + self.offsets)
        logits: Tensor = self.head(self.body(self.positions.expand(len(facts), -1, -1), known))
        return logits


def vocabulary() -> list[str]:
    """The padding, and every word of the wordings."""
    wordings = (wording for slot in SLOTS for value in slot for wording in value)
    return ["", *sorted({word for wording in wordings for word in wording.split()})]


def put_into_words(facts: Sequence[int], rng: np.random.Generator) -> str:
    """One wording of some facts: a random order and random synonyms."""
    wordings = [SLOTS[slot][fact] for slot, fact in enumerate(facts)]
    order = ORDERS[rng.integers(len(ORDERS))]
    return " ".join(str(rng.choice(wordings[slot])) for slot in order)


def make_corpora(train: int, test: int, seed: int) -> tuple[Corpus, Tensor, list[list[str]]]:
    """A training corpus; the facts of the test set, and six wordings of each."""
    rng = np.random.default_rng(seed)
    every = np.array(list(product(*(range(len(slot)) for slot in SLOTS))))
    drawn = every[rng.permutation(len(every))[: train + test]]
    number = {word: k for k, word in enumerate(vocabulary())}
    words = torch.full((train, POSITIONS), PAD)
    for row, facts in enumerate(drawn[:train]):
        numbers = [number[word] for word in put_into_words(facts, rng).split()]
        words[row, : len(numbers)] = torch.tensor(numbers)
    refs = [[put_into_words(facts, rng) for _ in range(6)] for facts in drawn[train:]]
    return Corpus(torch.as_tensor(drawn[:train]), words), torch.as_tensor(drawn[train:]), refs


def transport_loss(loss: Loss, logits: Tensor, words: Tensor, vectors: Tensor) -> Tensor:
    """The loss between expected word vectors and the reference's, and between pairs of words.

    The mass of a position is the probability that it holds a word at all. Pairs of neighbours keep
    phrases together, wherever in the sentence they are.
    """
    probabilities = logits.softmax(-1)
    mass = 1.0 - probabilities[..., PAD]
    hyp = normalize(probabilities[..., 1:] @ vectors[1:], dim=-1)
    ref, mask = vectors[words], words != PAD
    single: Tensor = loss(hyp, ref, None, mask, mass)
    bigrams = [torch.cat((side[:, :-1], side[:, 1:]), -1) for side in (hyp, ref)]
    double: Tensor = loss(*bigrams, None, mask[:, 1:], mass[:, :-1] * mass[:, 1:])
    return single + double


def train(task: "Task", loss: Loss, share: float, steps: int, seed: int) -> list[Point]:
    """Train a generator and test it five times; `share` is the weight of the transport loss."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    generator = Generator(len(task.vectors))
    optimiser = torch.optim.Adam(generator.parameters(), RATE)
    corpus, curve = task.corpus, []
    for step in range(1, steps + 1):
        rows = torch.as_tensor(rng.choice(len(corpus.words), ROWS))
        logits, words = generator(corpus.facts[rows]), corpus.words[rows]
        value = cross_entropy(logits.flatten(0, 1), words.flatten())
        if share:
            value = value + share * transport_loss(loss, logits, words, task.vectors)
        optimiser.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % max(steps // TESTS, 1) == 0:
            curve.append(task.test(generator, step))
    return curve


class Task:
    """A corpus to train on and a test set, with the metrics that score it."""

    def __init__(self, vectors: str, rows: int, seed: int) -> None:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        self.words = vocabulary()
        self.corpus, self.facts, self.refs = make_corpora(rows, 100, seed)
        self.vectors = unit_vectors(vectors, self.words)
        self.lazy_emd = freight.load("lazy-emd", encoder=vectors)
        self.lexical = CHRF(), BLEU()

    def test(self, generator: Generator, step: int) -> Point:
        """Score the likeliest word at every position of the test sentences."""
        with torch.no_grad():
            best = generator(self.facts).argmax(-1).tolist()
        hyps = [" ".join(self.words[k] for k in row if k != PAD) for row in best]
        transposed = [list(column) for column in zip(*self.refs, strict=True)]
        distance = self.lazy_emd.score(hyps, self.refs).system["objective"]
        chrf, bleu = (metric.corpus_score(hyps, transposed).score for metric in self.lexical)
        return Point(step, float(distance), chrf, bleu)


def unit_vectors(vectors: str, words: Sequence[str]) -> Tensor:
    """Unit vectors of the words; that of the padding is 0."""
    cloud = freight.encoder(vectors).encode(words, (0,))
    table = torch.zeros(len(words), cloud.layers.shape[2])
    table[torch.as_tensor(cloud.owner)] = normalize(cloud.layers[:, 0].float(), dim=-1)
    return table


def show(curves: dict[str, list[list[Point]]]) -> Table:
    """The scores of each variant at the last step: the mean over the seeds, and every seed."""
    table = Table("at the last step", *curves)
    for name, better in MEASURES.items():
        cells = []
        for variant in curves.values():
            ends = [getattr(curve[-1], name) for curve in variant]
            each = " ".join(f"{x:.{3 if better == '↓' else 1}f}" for x in ends)
            cells.append(f"{np.mean(ends):.{3 if better == '↓' else 1}f}  ({each})")
        table.add_row(f"{name} {better}", *cells)
    return table


def draw(curves: dict[str, list[list[Point]]], path: Path) -> None:
    """One panel per measure: every seed a thin line, their mean a thick one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (name, better) in zip(figure.subplots(1, 3), MEASURES.items(), strict=True):
        for (variant, several), colour in zip(curves.items(), ("#b2591b", "#1b6cb2"), strict=True):
            steps = [point.step for point in several[0]]
            values = np.array([[getattr(point, name) for point in curve] for curve in several])
            axes.plot(steps, values.T, color=colour, linewidth=0.7, alpha=0.5)
            axes.plot(steps, values.mean(axis=0), color=colour, linewidth=2, label=variant)
        axes.set_title(f"{TITLES[name]} {better}", fontsize=10)
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(given: Sequence[str] | None = None) -> dict[str, list[list[Point]]]:
    """Train both variants for every seed, print the table, draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vectors", default="distilled", help="distilled, or static:FILE")
    parser.add_argument("--loss", choices=LOSSES, default="lazy-emd")
    parser.add_argument("--share", type=float, default=SHARE, help="weight of the transport loss")
    parser.add_argument("--rows", type=int, default=600, help="sentences to train on")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="a picture of the curves, .svg or .png")
    arguments = parser.parse_args(given)
    curves: dict[str, list[list[Point]]] = {ALONE: [], BOTH: []}
    for seed in range(arguments.seeds):
        task = Task(arguments.vectors, arguments.rows, seed)
        loss = LOSSES[arguments.loss]()
        for variant, share in ((ALONE, 0.0), (BOTH, arguments.share)):
            curves[variant].append(train(task, loss, share, arguments.steps, seed))
    Console().print(show(curves))
    if arguments.output:
        draw(curves, arguments.output)
    return curves


if __name__ == "__main__":
    torch.set_num_threads(1)
    freight.set_threads(1)
    main()
