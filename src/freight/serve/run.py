"""Starting a service, where its address may be served; stopping it, once all is answered."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

import uvicorn

from freight.errors import InvalidInput
from freight.serve.app import create_app
from freight.serve.guard import LOOPBACK, Access, is_loopback
from freight.serve.limits import Limits
from freight.serve.offer import Offer

TOKEN = "FREIGHT_TOKEN"
_SHORTEST = 16


def access(host: str, token: str | None, hosts: Sequence[str] = ()) -> Access:
    """Who may ask a service at this address; other machines only with a token."""
    token = token if token is not None else os.environ.get(TOKEN) or None
    if token is not None and (len(token) < _SHORTEST or not token.isascii()):
        raise InvalidInput(
            f"the token is shorter than {_SHORTEST} characters or not ASCII; make one with"
            "  python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if is_loopback(host):
        return Access((*LOOPBACK, host.lower(), *map(str.lower, hosts)), token)
    if token is None:
        raise InvalidInput(
            f"{host} can be reached from other machines, which takes a token: --token, or"
            f" {TOKEN} in the environment; or leave --host out"
        )
    return Access(tuple(map(str.lower, hosts)), token)


def serve(
    offer: Offer,
    who: Access,
    limits: Limits,
    host: str = "127.0.0.1",
    port: int = 8000,
    threads: int | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; what is in flight by then is finished."""
    listening = _bound(host, port)
    config = uvicorn.Config(
        create_app(offer, who, limits, threads),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(limits.seconds) + 5,
        limit_concurrency=4 * limits.concurrency,
        backlog=2 * limits.concurrency,
    )
    shown = f"[{host}]" if ":" in host else host
    print(f"Freight serves http://{shown}:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """The socket, before anything is loaded: a port that is taken is one line.

    It listens at once, so that whoever reads the address and asks is answered, if not yet.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"cannot listen on {host} port {port}: {reason}; give another --host or --port"
        ) from None
    found.set_inheritable(True)
    return found
