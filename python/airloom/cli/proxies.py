"""`airloom serve split-tcp` and `http-cache`: proxies of the simulated network, between real programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from airloom.cli import daemons
from airloom.cli.terminal import emit, say
from airloom.errors import UsageError

_Nagle = Annotated[bool, typer.Option(help="Nagle's rule on all connections: short segments wait for company.")]
_Connect = Annotated[float, typer.Option(min=0.001, max=3600, help="Seconds a connection may take to open.")]


def split_tcp(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients come to (TCP).")] = "127.0.0.1:8080",
    to: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Whom it connects to.")] = None,
    transparent: Annotated[
        bool,
        typer.Option(
            "--transparent", help="Connect to whom clients meant before the kernel turned them aside (REDIRECT)."
        ),
    ] = False,
    metrics: daemons.Metrics = None,
    name: daemons.Names = None,
    allow_client: daemons.Clients = None,
    allow_origin: daemons.Origins = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="Set a key of the proxy (airloom list proxies split-tcp)."),
    ] = None,
    nagle: _Nagle = False,
    connect_timeout: _Connect = 10.0,
    grace: daemons.Grace = 5.0,
) -> None:
    """A proxy that ends its clients' TCP connections and opens others onward. Ends by Ctrl-C or SIGTERM.

    It listens on loopback unless told otherwise. A pair on which nothing moves for five minutes is reset; `--set
    idle=1h` makes it an hour.
    """
    if (to is None) == (not transparent):
        raise UsageError("say --to HOST:PORT, or --transparent if connections are turned aside to here")
    _serve(
        "split-tcp",
        f"for {to}" if to else "for whom clients mean",
        None,
        listen=daemons.address("--listen", listen),
        to=to,
        transparent=transparent,
        metrics=daemons.address("--metrics", metrics),
        names=name or [],
        clients=allow_client or [],
        allowed=allow_origin or [],
        settings=daemons.settings(["idle=5min", *(settings or [])]),
        nagle=nagle,
        connect_s=connect_timeout,
        grace_s=grace,
    )


def http_cache(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients come to (HTTP).")] = "127.0.0.1:3128",
    transparent: Annotated[
        bool,
        typer.Option(
            "--transparent", help="Clients know nothing of it: the kernel turns their connections aside (REDIRECT)."
        ),
    ] = False,
    metrics: daemons.Metrics = None,
    name: daemons.Names = None,
    allow_client: daemons.Clients = None,
    allow_origin: daemons.Origins = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="Set a key of the proxy (airloom list proxies http-cache)."),
    ] = None,
    connect_timeout: _Connect = 10.0,
    log: daemons.Log = True,
    grace: daemons.Grace = 5.0,
) -> None:
    """A forwarding HTTP/1.1 proxy with a cache. Ends by Ctrl-C or SIGTERM.

    It listens on loopback unless told otherwise, and asks servers of the public internet unless more is allowed.
    """
    _serve(
        "http-cache",
        "for HTTP",
        daemons.log_line if log else None,
        listen=daemons.address("--listen", listen),
        to=None,
        transparent=transparent,
        metrics=daemons.address("--metrics", metrics),
        names=name or [],
        clients=allow_client or [],
        allowed=allow_origin or [],
        settings=daemons.settings(settings or []),
        nagle=False,
        connect_s=connect_timeout,
        grace_s=grace,
    )


def _serve(proxy: str, whom: str, log: Callable[[str], None] | None, **asked: Any) -> None:
    """Runs a daemon for streams; says where it listens once it does."""
    from airloom._core import serve_proxy

    def ready(clients: str, numbers: str | None) -> None:
        emit(f"listening on {clients} {whom}", end="")
        emit(f", numbers at http://{numbers}/metrics" if numbers else "")
        say("stop with Ctrl-C")

    _many_files()
    daemons.run(lambda: serve_proxy(proxy, asked, ready, log), asked["settings"])


def _many_files() -> None:
    """A connection is a file, and the usual limit of those is for programs that have few."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
