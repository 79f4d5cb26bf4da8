"""`airloom serve`: gateways and proxies of the simulated network, on real sockets."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import say
from airloom.errors import RunError, UsageError

HELP = "Serve real clients: the gateways of the simulated network on real sockets."

app = typer.Typer(no_args_is_help=True)

#: The registered ports of WSP: with sessions, and without.
_SESSION, _CONNECTIONLESS = 9201, 9200


@app.callback()
def serve() -> None:
    """Serve real clients: the gateways of the simulated network on real sockets."""


@app.command("wap-gateway")
def wap_gateway(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients with a session come to (UDP).")
    ] = f"127.0.0.1:{_SESSION}",
    connectionless: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|off",
            help=f"Where clients without a session come to (UDP). Default: port {_CONNECTIONLESS} beside {_SESSION}.",
        ),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve numbers for Prometheus there (HTTP, /metrics).")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST|CIDR",
            help="Ask this origin although its address is private, loopback or the like. May be repeated.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="Set a key of the gateway (airloom list proxies wap-gateway)."),
    ] = None,
    log: Annotated[bool, typer.Option(help="Write a line of JSON on stderr for each exchange.")] = True,
    grace: Annotated[float, typer.Option(min=0, max=3600, help="Seconds to let requests end when told to stop.")] = 5.0,
) -> None:
    """A WAP gateway: phones ask by WSP over UDP, origins are asked by HTTP. Ends by Ctrl-C or SIGTERM.

    It listens on loopback unless told otherwise, and asks origins of the public internet unless more is allowed.
    """
    from airloom._core import serve_wap_gateway

    given = [(key, str(value)) for key, value in common.overrides(settings or []).items()]
    host, _, port = listen.rpartition(":")
    if connectionless is None and port == str(_SESSION):
        connectionless = f"{host}:{_CONNECTIONLESS}"
    elif connectionless == "off":
        connectionless = None

    def ready(session: str, without: str | None, numbers: str | None) -> None:
        print(f"listening on {session} for sessions", end="")
        print(f", on {without} for single requests" if without else "", end="")
        print(f", numbers at http://{numbers}/metrics" if numbers else "", flush=True)
        say("stop with Ctrl-C   next: airloom wap get URL --gateway " + session)

    def line(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    # From here on the daemon hears of signals itself; Python's own handling would come on top of it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        serve_wap_gateway(
            listen, connectionless, metrics, allow_origin or [], given, grace, ready, line if log else None
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise RunError(error.strerror or str(error)) from None
