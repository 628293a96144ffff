"""`freight train cooccurrence` and `freight train word2vec`: word vectors from one's own texts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from freight.cli.completion import among
from freight.cli.results import progress_bar

if TYPE_CHECKING:
    from freight.learn import Packed, WordVectors


app = typer.Typer(help="Train word vectors on texts of your own.", no_args_is_help=True)

_SHOWN, _NEAREST = 5, 4
_Corpus = Annotated[
    list[str],
    typer.Argument(
        metavar="CORPUS", help="Files, gzipped or not, folders, zip archives; - is standard input."
    ),
]
_Output = Annotated[
    Path, typer.Option("-o", "--output", help=".kv (gensim) .npz .bin .vec or .txt (word2vec)")
]
_Take = Annotated[
    str,
    typer.Option(
        help="What a text is: lines, files, java-names (of methods) or java-files.",
        autocompletion=among("lines", "files", "java-names", "java-files"),
    ),
]
_Lang = Annotated[
    str | None,
    typer.Option(help="How texts become words: en, zh, code, ...; default: en, Java's code."),
]
_Glob = Annotated[
    str | None, typer.Option(help="Which files of folders and archives; default: all, or *.java.")
]
_MinCount = Annotated[int, typer.Option(min=1, help="Leave out words that are rarer.")]
_Cased = Annotated[bool, typer.Option("--cased", help="Keep capitals.")]
_Encoding = Annotated[str, typer.Option(help="Encoding of the files.")]
_Dim = Annotated[int, typer.Option(min=1, help="Dimensions.")]


@app.command()
def cooccurrence(
    paths: _Corpus,
    output: _Output,
    dim: _Dim = 50,
    window: Annotated[
        int | None, typer.Option(min=1, help="How far apart two words may be; default: any.")
    ] = None,
    take: _Take = "lines",
    lang: _Lang = None,
    glob: _Glob = None,
    min_count: _MinCount = 1,
    cased: _Cased = False,
    encoding: _Encoding = "utf-8",
) -> None:
    """Count which words stand in one text, and take the truncated SVD of the counts."""
    from freight import learn

    options = {"lang": lang, "glob": glob, "min_count": min_count, "encoding": encoding}
    corpus = _read(output, paths, take=take, lower=not cased, **options)
    with progress_bar(corpus.tokens, "counting") as progress:
        found = learn.cooccurrence(corpus, dim, window, progress)
    _finish(corpus, found, output)


@app.command()
def word2vec(
    paths: _Corpus,
    output: _Output,
    dim: _Dim = 100,
    window: Annotated[int, typer.Option(min=1, help="How far a word looks.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the corpus.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the random start.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="With one, the same vectors every time.")] = 1,
    skip_gram: Annotated[
        bool, typer.Option("--skip-gram", help="In place of the bag of words (CBOW).")
    ] = False,
    take: _Take = "lines",
    lang: _Lang = None,
    glob: _Glob = None,
    min_count: _MinCount = 1,
    cased: _Cased = False,
    encoding: _Encoding = "utf-8",
) -> None:
    """Train Word2Vec, through gensim."""
    from freight import learn
    from freight.learn.embeddings import gensim_models

    gensim_models()
    options = {"lang": lang, "glob": glob, "min_count": min_count, "encoding": encoding}
    corpus = _read(output, paths, take=take, lower=not cased, **options)
    with progress_bar(corpus.tokens * epochs, "training") as progress:
        found = learn.word2vec(corpus, dim, window, epochs, seed, threads, skip_gram, progress)
    _finish(corpus, found, output)


def _read(output: Path, paths: list[str], **options: Any) -> "Packed":
    from freight.learn import read_corpus
    from freight.learn.embeddings import check_ending

    check_ending(output)
    with progress_bar(None, "reading") as progress:
        return read_corpus(paths, progress=progress, **options)


def _finish(corpus: "Packed", found: "WordVectors", output: Path) -> None:
    """Save, then show what came out, and the neighbours of the most frequent words."""
    found.save(output)
    table = Table(
        "what", "how much", title=f"{found.provenance['method']} vectors", show_header=False
    )
    table.add_row("texts", f"{corpus.texts:,}")
    table.add_row("tokens", f"{corpus.tokens:,}")
    table.add_row("words", f"{len(found.words):,} with a vector, of {len(corpus.words):,}")
    table.add_row("dimensions", str(found.vectors.shape[1]))
    table.add_section()
    for word in found.words[:_SHOWN]:
        near = (f"{other} {cosine:.2f}" for other, cosine in found.nearest(word, _NEAREST))
        table.add_row(f"near {word}", "  ".join(near))
    console = Console()
    console.print(table)
    console.print(f"wrote {output}", soft_wrap=True)
