"""`airloom serve toxiproxy`: toxiproxy's calls, answered by modelled links."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import daemons, names
from airloom.cli.terminal import emit, say
from airloom.errors import RunError

#: toxiproxy's own port.
_PORT = 8474


def toxiproxy(
    link: Annotated[
        str,
        typer.Option(metavar="NAME", help="The link of each proxy: a bearer or a preset.", autocompletion=names.links),
    ] = "wireline",
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where toxiproxy's clients come to (HTTP).")
    ] = f"127.0.0.1:{_PORT}",
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Take lines of JSON as well, on a Unix socket of yours alone.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**63, help="Seed of all links.")] = 1,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Let proxies listen on other addresses than loopback.")
    ] = False,
) -> None:
    """TCP proxies over links of their own, made and changed by toxiproxy's clients. Ends by Ctrl-C or SIGTERM.

    Latency, bandwidth, packet_loss and outage change the link, packet by packet; timeout, slicer, limit_data,
    slow_close and reset_peer are done to connections.
    """
    from airloom.emulation import find
    from airloom.toxics.http_face import HttpFace
    from airloom.toxics.proxies import Proxies
    from airloom.toxics.socket_face import SocketFace

    find(link)
    address = daemons.address("--listen", listen) or ""
    host, _, port = address.rpartition(":")
    over = daemons.ending()
    with ExitStack() as stack:
        proxies = Proxies(link, seed, anywhere=anywhere)
        stack.callback(proxies.close)
        if socket is not None:
            stack.callback(SocketFace(proxies, socket).close)
        try:
            face = HttpFace(proxies, host.strip("[]"), int(port))
        except OSError as error:
            raise RunError(f"cannot listen on {listen}: {error.strerror or error}") from None
        stack.callback(face.close)
        emit(f"listening on http://{face.address}/")
        say("stop with Ctrl-C   next: toxiproxy-cli list, or any client of toxiproxy")
        over.wait()
