"""`freight train cooccurrence` and `freight train word2vec`: word vectors of your own texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer
from rich.console import Console
from rich.table import Table

from freight.cli import options
from freight.cli.completion import among
from freight.cli.groups import grouped
from freight.cli.results import progress_bar
from freight.data.output import check_inputs

if TYPE_CHECKING:
    from freight.learn import PackedCorpus, WordVectors


train_app = typer.Typer(help="Train word vectors on texts of your own.", no_args_is_help=True)

_SHOWN_WORDS, _SHOWN_NEAREST = 5, 4


@dataclass(frozen=True)
class CorpusOptions:
    """The texts, and how they become words."""

    panel: ClassVar = "Corpus"

    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Files, gzipped or not, folders, zip archives; - is standard input.",
        ),
    ]
    take: Annotated[
        str,
        typer.Option(
            help="What one text is: lines, files, or FILE.py:FUNCTION, a function that returns the"
            " texts in the content of a file.",
            autocompletion=among("lines", "files"),
        ),
    ] = "lines"
    lang: Annotated[str, typer.Option(help="How texts become words: en, zh, code, ...")] = "en"
    glob: Annotated[str, typer.Option(help="Which files of folders and archives.")] = "*"
    min_count: Annotated[int, typer.Option(min=1, help="Leave out rarer words.")] = 1
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case.")] = False
    encoding: options.Encoding = "utf-8"


@dataclass(frozen=True)
class VectorOutput:
    """Where the vectors go."""

    panel: ClassVar = "Output"

    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help=".kv (gensim) .npz .bin .vec or .txt (word2vec)"
        ),
    ]


@dataclass(frozen=True)
class CooccurrenceOptions:
    """The settings of co-occurrence vectors."""

    panel: ClassVar = "Vectors"

    dim: Annotated[int, typer.Option(min=1, help="Dimensions.")] = 50
    window: Annotated[
        int | None, typer.Option(min=1, help="Largest distance of two words. Default: any.")
    ] = None


@dataclass(frozen=True)
class Word2VecOptions:
    """The settings of Word2Vec."""

    panel: ClassVar = "Vectors"

    dim: Annotated[int, typer.Option(min=1, help="Dimensions.")] = 100
    window: Annotated[int, typer.Option(min=1, help="Words of context on each side.")] = 2
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the corpus.")] = 5
    seed: options.Seed = 0
    threads: Annotated[int, typer.Option(min=1, help="With one, the same vectors every time.")] = 1
    skip_gram: Annotated[bool, typer.Option("--skip-gram", help="Skip-gram instead of CBOW.")] = (
        False
    )


@train_app.command()
@grouped
def cooccurrence(texts: CorpusOptions, vectors: CooccurrenceOptions, output: VectorOutput) -> None:
    """Count which words occur in the same text, and take the truncated SVD of the counts."""
    from freight import learn

    corpus = _read_corpus(texts, output.output)
    with progress_bar(corpus.tokens, "counting") as progress:
        trained = learn.cooccurrence(corpus, vectors.dim, vectors.window, progress)
    _save_vectors(corpus, trained, output.output)


@train_app.command()
@grouped
def word2vec(texts: CorpusOptions, vectors: Word2VecOptions, output: VectorOutput) -> None:
    """Train Word2Vec, through gensim."""
    from freight import learn
    from freight.learn.word_vectors import gensim_models

    gensim_models()
    corpus = _read_corpus(texts, output.output)
    with progress_bar(corpus.tokens * vectors.epochs, "training") as progress:
        trained = learn.word2vec(corpus, **vars(vectors), progress=progress)
    _save_vectors(corpus, trained, output.output)


def _read_corpus(texts: CorpusOptions, output: Path) -> "PackedCorpus":
    from freight.learn import read_corpus
    from freight.learn.word_vectors import check_ending

    check_ending(output)
    provenance = output.with_name(f"{output.name}.json")
    check_inputs([output, provenance], _named_files(texts.paths, texts.glob))
    with progress_bar(None, "reading") as progress:
        return read_corpus(
            texts.paths,
            take=texts.take,
            lang=texts.lang,
            lower=not texts.cased,
            glob=texts.glob,
            min_count=texts.min_count,
            encoding=texts.encoding,
            progress=progress,
        )


def _named_files(paths: list[str], glob: str) -> Iterator[Path]:
    """The files that are named, and those of a folder that are read."""
    for path in (Path(name).expanduser() for name in paths):
        yield from path.rglob(glob) if path.is_dir() else [path]


def _save_vectors(corpus: "PackedCorpus", vectors: "WordVectors", output: Path) -> None:
    """Save the vectors, and show their size and the neighbours of the most frequent words."""
    vectors.save(output)
    table = Table(
        "what", "how much", title=f"{vectors.provenance['method']} vectors", show_header=False
    )
    table.add_row("texts", f"{corpus.texts:,}")
    table.add_row("tokens", f"{corpus.tokens:,}")
    table.add_row("words", f"{len(vectors.words):,} with a vector, of {len(corpus.words):,}")
    table.add_row("dimensions", str(vectors.vectors.shape[1]))
    table.add_section()
    for word in vectors.words[:_SHOWN_WORDS]:
        near = (f"{other} {cosine:.2f}" for other, cosine in vectors.nearest(word, _SHOWN_NEAREST))
        table.add_row(f"near {word}", "  ".join(near))
    console = Console()
    console.print(table)
    console.print(f"wrote {output}", soft_wrap=True)
