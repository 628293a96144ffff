"""Train a small writer by cross-entropy alone, and with a transport loss beside it.

    python examples/train_with_loss.py [--vectors static:FILE] [--loss lazy-emd] [-o curve.svg]

The writer turns five facts (who, did, what, where, when) into a sentence, all words at once. The
same facts may be told in several orders and by several words, and a corpus shows one telling of
each. Cross-entropy compares place by place: where tellings differ in order it asks for a bit of
every word at a place, and the writer says one thing twice and another not at all. Transport
compares heaps of words: it asks that everything be said once, wherever, and takes a synonym for
almost the same. The two arms have the same data, start, batches and steps; what is held out are
facts that were never seen together, with twelve tellings of each for references.
"""

import argparse
from collections.abc import Sequence
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
LOSSES = {"lazy-emd": LazyEmd, "emd": Emd, "wrd-score": WrdScore, "freight": Freight}


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

    def __init__(self, words: int) -> None:
        super().__init__()
        offsets = np.cumsum([0, *(len(slot) for slot in SLOTS)])
        self.register_buffer("offsets", torch.as_tensor(offsets[:-1]))
        self.facts = torch.nn.Embedding(int(offsets[-1]), WIDTH)
        self.places = torch.nn.Parameter(torch.randn(PLACES, WIDTH))
        layer = torch.nn.TransformerDecoderLayer(
            WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True
        )
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
    """A training corpus; held-out facts, and twelve tellings of each."""
    rng = np.random.default_rng(seed)
    every = np.array(list(product(*(range(len(slot)) for slot in SLOTS))))
    drawn = every[rng.permutation(len(every))[: train + test]]
    place = {word: k for k, word in enumerate(vocabulary())}
    words = torch.full((train, PLACES), PAD)
    for row, facts in enumerate(drawn[:train]):
        numbers = [place[word] for word in tell(facts, rng).split()]
        words[row, : len(numbers)] = torch.tensor(numbers)
    refs = [[tell(facts, rng) for _ in range(12)] for facts in drawn[train:]]
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


def train(
    share: float, loss: Loss, vectors: Tensor, steps: int, seed: int, judge: "Judge"
) -> list[Point]:
    """Train one writer; `share` is the weight of the transport loss, 0 for cross-entropy alone."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    writer = Writer(len(vectors))
    optimiser = torch.optim.Adam(writer.parameters(), 2e-3)
    curve = []
    for step in range(1, steps + 1):
        rows = torch.as_tensor(rng.choice(len(judge.corpus.words), 32))
        logits, words = writer(judge.corpus.facts[rows]), judge.corpus.words[rows]
        value = cross_entropy(logits.flatten(0, 1), words.flatten())
        if share:
            value = value + share * transport(loss, logits, words, vectors)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        if step % judge.every == 0 or step == steps:
            curve.append(judge(writer, step))
    return curve


class Judge:
    """Writes the held-out sentences and scores them: one metric of ours, two of others."""

    def __init__(self, encoder: str, corpus: Corpus, facts: Tensor, refs: list[list[str]]) -> None:
        from sacrebleu.metrics import BLEU, CHRF

        self.corpus, self.facts, self.refs = corpus, facts, refs
        self.every = 100
        self.ours = freight.load("lazy-emd", encoder=encoder, readout="objective")
        self.theirs = CHRF(), BLEU()
        self.words = vocabulary()

    def write(self, writer: Writer) -> list[str]:
        """The likeliest word at every place."""
        with torch.no_grad():
            best = writer(self.facts).argmax(-1).tolist()
        return [" ".join(self.words[k] for k in row if k != PAD) for row in best]

    def __call__(self, writer: Writer, step: int) -> Point:
        """Score what a writer writes after some steps."""
        hyps = self.write(writer)
        turned = [list(column) for column in zip(*self.refs, strict=True)]
        ours = self.ours.score(hyps, self.refs).system["objective"]
        chrf, bleu = (metric.corpus_score(hyps, turned).score for metric in self.theirs)
        return Point(step, float(ours), chrf, bleu)


if __name__ == "__main__":
    import time
    torch.set_num_threads(1); freight.set_threads(1)
    import sys
    name, share, n, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    enc = freight.encoder("distilled")
    cloud = enc.encode([w or "the" for w in vocabulary()], (0,))
    vectors = cloud.layers[:, 0].clone(); vectors[0] = 0; vectors = normalize(vectors, dim=-1)
    assert len(vectors) == len(vocabulary())
    for seed in map(int, sys.argv[5].split(",")):
        corpus, facts, refs = corpora(n, 100, seed)
        judge = Judge("distilled", corpus, facts, refs)
        judge.every = int(sys.argv[6])
        for s in (0.0, share):
            t = time.process_time()
            curve = train(s, LOSSES[name](), vectors, steps, seed, judge)
            print(seed, s, *(f"{p.step}:{p.distance:.4f}/{p.chrf:.1f}/{p.bleu:.1f}" for p in curve), f"{time.process_time()-t:.1f}s cpu", flush=True)
