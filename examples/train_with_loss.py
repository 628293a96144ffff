"""Train a small writer by cross-entropy alone, and with a transport loss beside it.

    python examples/train_with_loss.py [--vectors static:FILE] [--loss lazy-emd] [-o curve.svg]

The writer turns five facts (who, did, what, where, when) into a sentence, all words at once. The
same facts may be told in several orders and by several words, and a corpus shows one telling of
each. Cross-entropy compares place by place: where tellings differ in order it asks for a bit of
every word at a place, and the writer says one thing twice and another not at all. Transport
compares heaps of words: it asks that everything be said once, wherever, and takes a synonym for
almost the same. The two arms have the same data, start, batches and steps; what is held out are
facts that were never seen together, with six tellings of each for references.
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
"""For each slot what it may hold, and the ways of saying that."""
ORDERS = ((0, 1, 2, 3, 4), (4, 0, 1, 2, 3), (3, 0, 1, 2, 4), (4, 3, 0, 1, 2))
PLACES, WIDTH, PAD = 12, 48, 0
RATE, ROWS, LOOKS, SHARE = 2e-3, 32, 5, 3.0
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
    """Facts (row, slot), and the words of one telling each (row, place)."""

    facts: Tensor
    words: Tensor


class Point(NamedTuple):
    """What the held-out sentences score after some steps."""

    step: int
    distance: float
    chrf: float
    bleu: float


class Writer(torch.nn.Module):
    """All words of a sentence at once: places that attend to the facts, and to each other."""

    offsets: Tensor

    def __init__(self, words: int) -> None:
        super().__init__()
        offsets = np.cumsum([0, *(len(slot) for slot in SLOTS)])
        self.register_buffer("offsets", torch.as_tensor(offsets[:-1]))
        self.facts = torch.nn.Embedding(int(offsets[-1]), WIDTH)
        self.places = torch.nn.Parameter(torch.randn(PLACES, WIDTH))
        layer = torch.nn.TransformerDecoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.body = torch.nn.TransformerDecoder(layer, 2)
        self.head = torch.nn.Linear(WIDTH, words)

    def forward(self, facts: Tensor) -> Tensor:
        """Logits (row, place, word)."""
        known = self.facts(facts + self.offsets)
        logits: Tensor = self.head(self.body(self.places.expand(len(facts), -1, -1), known))
        return logits


def vocabulary() -> list[str]:
    """The padding, and every word of the grammar."""
    ways = (way for slot in SLOTS for said in slot for way in said)
    return ["", *sorted({word for way in ways for word in way.split()})]


def tell(facts: Sequence[int], rng: np.random.Generator) -> str:
    """One telling of some facts: an order and words at random."""
    said = [SLOTS[slot][fact] for slot, fact in enumerate(facts)]
    return " ".join(str(rng.choice(said[slot])) for slot in ORDERS[rng.integers(len(ORDERS))])


def corpora(train: int, test: int, seed: int) -> tuple[Corpus, Tensor, list[list[str]]]:
    """A training corpus; held-out facts, and six tellings of each."""
    rng = np.random.default_rng(seed)
    every = np.array(list(product(*(range(len(slot)) for slot in SLOTS))))
    drawn = every[rng.permutation(len(every))[: train + test]]
    place = {word: k for k, word in enumerate(vocabulary())}
    words = torch.full((train, PLACES), PAD)
    for row, facts in enumerate(drawn[:train]):
        numbers = [place[word] for word in tell(facts, rng).split()]
        words[row, : len(numbers)] = torch.tensor(numbers)
    refs = [[tell(facts, rng) for _ in range(6)] for facts in drawn[train:]]
    return Corpus(torch.as_tensor(drawn[:train]), words), torch.as_tensor(drawn[train:]), refs


def transport(loss: Loss, logits: Tensor, words: Tensor, vectors: Tensor) -> Tensor:
    """The loss between expected word vectors and the reference's, and between pairs of words.

    A place weighs as much as it is likely to hold a word at all. Pairs of neighbours keep together
    what belongs together, wherever in the sentence it stands.
    """
    odds = logits.softmax(-1)
    there = 1.0 - odds[..., PAD]
    hyp = normalize(odds[..., 1:] @ vectors[1:], dim=-1)
    ref, real = vectors[words], words != PAD
    single: Tensor = loss(hyp, ref, None, real, there)
    couples = [torch.cat((side[:, :-1], side[:, 1:]), -1) for side in (hyp, ref)]
    double: Tensor = loss(*couples, None, real[:, 1:], there[:, :-1] * there[:, 1:])
    return single + double


def train(writing: "Held", loss: Loss, share: float, steps: int, seed: int) -> list[Point]:
    """Train a writer, looking five times; `share` is the weight of the transport loss, or 0."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    writer = Writer(len(writing.vectors))
    optimiser = torch.optim.Adam(writer.parameters(), RATE)
    corpus, curve = writing.corpus, []
    for step in range(1, steps + 1):
        rows = torch.as_tensor(rng.choice(len(corpus.words), ROWS))
        logits, words = writer(corpus.facts[rows]), corpus.words[rows]
        value = cross_entropy(logits.flatten(0, 1), words.flatten())
        if share:
            value = value + share * transport(loss, logits, words, writing.vectors)
        optimiser.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step % max(steps // LOOKS, 1) == 0:
            curve.append(writing.look(writer, step))
    return curve


class Held:
    """A corpus to train on, and what is held out of it, with the metrics that look at that."""

    def __init__(self, vectors: str, rows: int, seed: int) -> None:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        self.words = vocabulary()
        self.corpus, self.facts, self.refs = corpora(rows, 100, seed)
        self.vectors = embedded(vectors, self.words)
        self.ours = freight.load("lazy-emd", encoder=vectors, readout="objective")
        self.theirs = CHRF(), BLEU()

    def look(self, writer: Writer, step: int) -> Point:
        """Score the likeliest word at every place of the held-out sentences."""
        with torch.no_grad():
            best = writer(self.facts).argmax(-1).tolist()
        hyps = [" ".join(self.words[k] for k in row if k != PAD) for row in best]
        turned = [list(column) for column in zip(*self.refs, strict=True)]
        ours = self.ours.score(hyps, self.refs).system["objective"]
        chrf, bleu = (metric.corpus_score(hyps, turned).score for metric in self.theirs)
        return Point(step, float(ours), chrf, bleu)


def embedded(vectors: str, words: Sequence[str]) -> Tensor:
    """Unit vectors of the words; the padding's is 0."""
    found = freight.encoder(vectors).encode(words, (0,))
    table = torch.zeros(len(words), found.layers.shape[2])
    table[torch.as_tensor(found.owner)] = normalize(found.layers[:, 0].float(), dim=-1)
    return table


def show(curves: dict[str, list[list[Point]]]) -> Table:
    """What each arm comes to at the last step: the mean over the seeds, and every seed."""
    table = Table("at the last step", *curves)
    for name, better in MEASURES.items():
        cells = []
        for arm in curves.values():
            ends = [getattr(curve[-1], name) for curve in arm]
            each = " ".join(f"{x:.{3 if better == '↓' else 1}f}" for x in ends)
            cells.append(f"{np.mean(ends):.{3 if better == '↓' else 1}f}  ({each})")
        table.add_row(f"{name} {better}", *cells)
    return table


def draw(curves: dict[str, list[list[Point]]], path: Path) -> None:
    """A panel a measure: every seed a thin line, their mean a thick one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (name, better) in zip(figure.subplots(1, 3), MEASURES.items(), strict=True):
        for (arm, several), colour in zip(curves.items(), ("#b2591b", "#1b6cb2"), strict=True):
            steps = [point.step for point in several[0]]
            values = np.array([[getattr(point, name) for point in curve] for curve in several])
            axes.plot(steps, values.T, color=colour, linewidth=0.7, alpha=0.5)
            axes.plot(steps, values.mean(axis=0), color=colour, linewidth=2, label=arm)
        axes.set_title(f"{TITLES[name]} {better}", fontsize=10)
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(given: Sequence[str] | None = None) -> dict[str, list[list[Point]]]:
    """Train both arms for every seed, print the table, draw the curves."""
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
        held = Held(arguments.vectors, arguments.rows, seed)
        loss = LOSSES[arguments.loss]()
        for arm, share in ((ALONE, 0.0), (BOTH, arguments.share)):
            curves[arm].append(train(held, loss, share, arguments.steps, seed))
    Console().print(show(curves))
    if arguments.output:
        draw(curves, arguments.output)
    return curves


if __name__ == "__main__":
    torch.set_num_threads(1)
    freight.set_threads(1)
    main()
