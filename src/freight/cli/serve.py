"""`freight serve`: scores, explanations and a page to try them on, over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from freight.cli import options
from freight.cli.completion import encoders
from freight.cli.groups import grouped
from freight.cli.options import given
from freight.errors import MissingPart


@dataclass(frozen=True)
class AccessOptions:
    """The address of the service, and who may use it."""

    panel: ClassVar = "Address and access"

    host: Annotated[
        str, typer.Option(help="An address that other machines can reach needs a token.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000
    token: Annotated[
        str | None,
        typer.Option(help="The token that requests have to send; better in FREIGHT_TOKEN."),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name used by a proxy; may be repeated."),
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """The encoders and frequencies that requests may use."""

    panel: ClassVar = "Models"

    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]ENCODER",
            help="An encoder that requests may name; may be repeated."
            " Default: embedded, distilled.",
            autocompletion=encoders,
        ),
    ] = None
    adapter: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="Fitted by `freight train metric`; may be repeated."),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--metric",
            metavar="FILE.py:NAME",
            help="Offer a metric of your own; may be repeated.",
        ),
    ] = None
    idf: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts, one per line, to fit IDF on.")
    ] = None
    memory: Annotated[
        int, typer.Option(min=1, help="MiB of vectors that are kept for each encoder.")
    ] = 256
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens per encoder batch: 256 on a CPU; 512 gives the bits of `freight score`.",
        ),
    ] = None
    device: options.Device = None
    dtype: options.Dtype = None
    threads: options.Threads = None


@dataclass(frozen=True)
class LimitOptions:
    """The most that is accepted."""

    panel: ClassVar = "Limits"

    body: Annotated[int, typer.Option(min=1, help="Bytes per request.")] = 2**20
    file: Annotated[int, typer.Option(min=1, help="Bytes of a file.")] = 2**23
    rows: Annotated[int, typer.Option(min=1, help="Rows of a file.")] = 5000
    texts: Annotated[int, typer.Option(min=2, help="Texts per request.")] = 512
    characters: Annotated[int, typer.Option(min=1, help="Characters per text.")] = 2000
    units: Annotated[int, typer.Option(min=1, help="Units (tokens or words) per text.")] = 512
    work: Annotated[
        int,
        typer.Option(
            min=1, help="Work per request: characters times characters, by pair and metric."
        ),
    ] = 128_000_000
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds per request.")] = 30.0
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in progress.")] = 256
    queue: Annotated[int, typer.Option(min=1, help="Pairs that may wait.")] = 512


@grouped
def serve_command(access: AccessOptions, models: ModelOptions, limits: LimitOptions) -> None:
    """Answer requests for scores and explanations, and show a page to try them on.

    By default only this machine can reach the service. It stops on Ctrl-C or SIGTERM, once the
    requests in progress are answered or their time has passed.
    """
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingPart.extra(str(error.name), "serve") from error
    from freight.data.files import lines
    from freight.serve.access import access_for
    from freight.serve.app import run_service
    from freight.serve.models import ServedModels, load_encoders
    from freight.serve.refusals import Limits

    allowed = access_for(access.host, access.token, access.allow_host or ())
    placement = given(device=models.device, dtype=models.dtype)
    loaded = load_encoders(models.encoder or (), models.budget, **placement)
    texts = [line.rstrip("\r\n") for line in lines(models.idf)] if models.idf else []
    memory = models.memory * 2**20
    served = ServedModels(loaded, texts, memory, models.metric or (), models.adapter or ())
    bounds = Limits(**vars(limits))
    run_service(served, allowed, bounds, access.host, access.port, models.threads)
