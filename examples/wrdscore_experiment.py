"""WRDScore's experiment: do scores of method names agree with human ratings?

    python examples/wrdscore_experiment.py --java src.zip [FOLDER ...] [--files] [--clip]

Trains the paper's two embeddings on the names of the methods in Java sources (src.zip comes with a
JDK; Debian has it in openjdk-17-source), and with --files the one of its released code, on whole
files. Scores the 150 pairs in $FREIGHT_DATA/data/wrdscore.jsonl.gz, and compares with the mean
human rating / 10. Without --java only vectors that need no training are compared.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import freight
from freight import learn
from freight.core.types import Encoder
from freight.data.judgement_files import read_judgements
from freight.judge.correlation import CORRELATIONS
from freight.judge.error import mae, mse, rescale
from freight.transport.types import Array
from java_methods import method_names

DATA = Path(os.environ.get("FREIGHT_DATA", Path(__file__).parents[2] / "shared"))
PUBLISHED = {"ROUGE-1, published": (0.0817, 0.2213), "WRDScore, published": (0.0678, 0.1891)}
HYPS = ["get count", "next char", "set artwork entry"]
REFS = ["size", "advance", "update image"]
F1 = [0.7632, 0.7132, 0.5158]
"""Pairs of the paper that have no word in common."""

STAND_IN = "default"
"""The word whose vector unknown words take in the released code."""


def main() -> None:
    """Train, score, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--java", nargs="+", default=[], help="src.zip, folders, files")
    parser.add_argument("--files", action="store_true", help="train on whole files too: slow")
    parser.add_argument("--clip", action="store_true", help="cut cosines at 0")
    parser.add_argument("--encoding", default="utf-8", help="of the sources; try latin-1")
    parser.add_argument(
        "--threads", type=int, default=1, help="more are faster, but not deterministic"
    )
    parser.add_argument("-o", "--output", type=Path, help="a folder to keep the vectors in")
    arguments = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as spare:
        folder = arguments.output or Path(spare)
        folder.mkdir(parents=True, exist_ok=True)
        encoders = dict(embeddings(arguments, folder, console))
        console.print(agreement(encoders, arguments.clip))
        console.print(examples(encoders))


def embeddings(
    arguments: argparse.Namespace, folder: Path, console: Console
) -> Iterator[tuple[str, Encoder]]:
    """Encoders by name: those that need no training, and those that are trained here."""
    yield "distilled (the default)", freight.encoder("distilled", lang="code")
    glove = DATA / "vectors/glove.100d.60k.bin"
    files = {"GloVe": glove} if glove.is_file() else {}
    if arguments.java:
        files |= dict(train_embeddings(arguments, folder, console))
    for name, path in files.items():
        yield name, freight.encoder(f"static:{path}", lang="code")
        try:
            standing = freight.encoder(f"static:{path}", lang="code", unknown=STAND_IN)
            standing.encode(["a"], [0])
        except freight.InvalidInput:
            continue
        yield f"{name}, unknown = {STAND_IN!r}", standing


def train_embeddings(
    arguments: argparse.Namespace, folder: Path, console: Console
) -> Iterator[tuple[str, Path]]:
    """The paper's embeddings (a) and (b), and (b) as the released code trains it."""
    read_java = partial(learn.read_corpus, lang="code", glob="*.java", encoding=arguments.encoding)
    names = read_java(arguments.java, method_names)
    console.print(f"{names.texts:,} method names, {names.tokens:,} words")
    learn.cooccurrence(names).save(folder / "names-cooccurrence.kv")
    yield "(a) co-occurrence, names", folder / "names-cooccurrence.kv"
    learn.word2vec(names, threads=arguments.threads).save(folder / "names-word2vec.kv")
    yield "(b) Word2Vec, names", folder / "names-word2vec.kv"
    if arguments.files:
        whole = read_java(arguments.java, "files")
        console.print(f"{whole.texts:,} whole files, {whole.tokens:,} words")
        learn.word2vec(whole, threads=arguments.threads).save(folder / "files-word2vec.kv")
        yield "(b) Word2Vec, whole files", folder / "files-word2vec.kv"


def agreement(encoders: dict[str, Encoder], clip: bool) -> Table:
    """Errors of each variant against the human ratings, and correlations with them."""
    pairs = read_judgements(DATA / "data/wrdscore.jsonl.gz")
    human = rescale(pairs.human["score"], 0, 10)
    table = Table(
        "vectors", "metric", title=f"{len(pairs.hyps)} pairs of names against human ratings"
    )
    for name in ("MSE", "MAE", "Pearson", "Spearman", "Kendall"):
        table.add_column(name, justify="right")
    for name, errors in PUBLISHED.items():
        table.add_row("", name, *(f"{error:.4f}" for error in errors))
    rouge = freight.load("rouge-1").score(pairs.hyps, pairs.refs)["score"]
    table.add_row("", "rouge-1", *figures(rouge, human))
    for vectors, encoder in encoders.items():
        table.add_section()
        for metric in ("wrd-score", "wrd-score-code"):
            scorer = freight.load(metric, encoder=encoder, clip=clip)
            scores = scorer.score(pairs.hyps, pairs.refs)["f1"]
            table.add_row(vectors, metric, *figures(scores, human))
    return table


def figures(scores: Array, human: Array) -> Iterator[str]:
    """Mean squared and absolute error, and three correlations."""
    for error in (mse, mae):
        yield f"{error(scores, human):.4f}"
    for correlation in CORRELATIONS.values():
        yield f"{correlation(scores, human):.3f}"


def examples(encoders: dict[str, Encoder]) -> Table:
    """Scores of `wrd-score` for pairs whose ROUGE-1 is 0."""
    pairs = (f"{ref} / {hyp}" for hyp, ref in zip(HYPS, REFS, strict=True))
    table = Table("vectors", *pairs, title="f1 of wrd-score where ROUGE-1 is 0")
    table.add_row("published", *(f"{score:.4f}" for score in F1))
    for name, encoder in encoders.items():
        scores = freight.load("wrd-score", encoder=encoder).score(HYPS, REFS)["f1"]
        table.add_row(name, *(f"{score:.4f}" for score in scores))
    return table


if __name__ == "__main__":
    main()
