"""`freight serve`: scores, explanations and a page to try them on, over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from freight.cli import completion, options
from freight.cli.options import given
from freight.errors import MissingPart


def serve(
    host: Annotated[
        str, typer.Option(help="Other addresses than this machine's own take a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(help="What requests have to send; better in FREIGHT_TOKEN."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that a proxy calls it by; may be repeated."),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]ENCODER",
            help="What requests may name; may be repeated. Default: embedded, distilled.",
            autocompletion=completion.encoders,
        ),
    ] = None,
    idf: Annotated[
        Path | None, typer.Option(help="Texts, one a line, that IDF is learnt from.")
    ] = None,
    body: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 2**20,
    texts: Annotated[int, typer.Option(min=2, help="Texts of a request.")] = 512,
    characters: Annotated[int, typer.Option(min=1, help="Of a text.")] = 2000,
    seconds: Annotated[float, typer.Option(min=0.1, help="That a request may take.")] = 30.0,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in progress.")] = 256,
    queue: Annotated[int, typer.Option(min=1, help="Pairs that may wait.")] = 512,
    memory: Annotated[
        int, typer.Option(min=1, help="MiB of vectors that each encoder remembers.")
    ] = 256,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens of an encoder batch: on a CPU 256, and 512 for `freight score`'s bits.",
        ),
    ] = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    threads: options.Threads = None,
) -> None:
    """Answer requests for scores and explanations, and show a page to try them on.

    Only this machine can reach it unless told otherwise. It stops on Ctrl-C or SIGTERM, once
    what is in flight is answered.
    """
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingPart.extra(str(error.name), "serve") from error
    from freight.data.files import lines
    from freight.serve.app import access
    from freight.serve.app import serve as run
    from freight.serve.jobs import Limits
    from freight.serve.models import ServedModels, load_encoders

    who = access(host, token, allow_host or ())
    limits = Limits(body, texts, characters, seconds, concurrency, queue)
    encoders = load_encoders(encoder or (), budget, **given(device=device, dtype=dtype))
    learnt = [line.rstrip("\r\n") for line in lines(idf)] if idf else []
    run(ServedModels(encoders, learnt, memory * 2**20), who, limits, host, port, threads)
