"""`airloom serve`: gateways and proxies of the simulated network, on real sockets."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from airloom.cli import common, daemons, h3, proxies, toxics, user_space
from airloom.cli.terminal import emit, say
from airloom.errors import RunError, UsageError

app = typer.Typer(no_args_is_help=True)

#: The registered ports of WSP: with sessions, and without.
_SESSION, _CONNECTIONLESS = 9201, 9200


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
    metrics: daemons.Metrics = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Take pushes there (PAP over HTTP). Whoever can connect there can push: see the guide.",
        ),
    ] = None,
    name: daemons.Names = None,
    allow_origin: daemons.Origins = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="Set a key of the gateway (airloom list proxies wap-gateway)."),
    ] = None,
    log: daemons.Log = True,
    grace: daemons.Grace = 5.0,
) -> None:
    """A WAP gateway: phones ask by WSP over UDP, origins are asked by HTTP. Ends by Ctrl-C or SIGTERM.

    It listens on loopback unless told otherwise, and asks origins of the public internet unless more is allowed.
    """
    from airloom._core import serve_wap_gateway

    given = daemons.settings(settings or [])
    session = daemons.address("--listen", listen) or ""
    host, _, port = session.rpartition(":")
    if connectionless is None and port == str(_SESSION):
        connectionless = f"{host}:{_CONNECTIONLESS}"
    elif connectionless == "off":
        connectionless = None
    places = (
        session,
        daemons.address("--connectionless", connectionless),
        daemons.address("--metrics", metrics),
        daemons.address("--push", push),
    )

    def ready(session: str, without: str | None, numbers: str | None, pushes: str | None) -> None:
        emit(f"listening on {session} for sessions", end="")
        emit(f", on {without} for single requests" if without else "", end="")
        emit(f", for pushes at http://{pushes}/" if pushes else "", end="")
        emit(f", numbers at http://{numbers}/metrics" if numbers else "")
        say("stop with Ctrl-C   next: airloom wap get URL --gateway " + session)

    def serve() -> None:
        write = daemons.log_line if log else None
        serve_wap_gateway(*places, name or [], allow_origin or [], given, grace, ready, write)

    daemons.run(serve, given)


app.command("h3")(h3.serve)
app.command("split-tcp")(proxies.split_tcp)
app.command("http-cache")(proxies.http_cache)
app.command("toxiproxy")(toxics.toxiproxy)
app.command("link")(user_space.link)


@app.command("wap-mail")
def wap_mail(
    maildir: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where mail is delivered to (a Maildir; made if it is not there).")
    ],
    smtp: Annotated[str, typer.Option(metavar="HOST:PORT", help="The mail server that takes letters.")],
    sender: Annotated[str, typer.Option("--from", metavar="ADDRESS", help="Who sends them.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where gateways come to (HTTP).")] = "127.0.0.1:8025",
    phone: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Tell this phone of new mail, by pushes; see --gateway.")
    ] = None,
    gateway: Annotated[
        str | None, typer.Option(metavar="URL", help="The gateway that pushes: its --push, as http://HOST:PORT/.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="How gateways find this server, in notices; http://LISTEN without it."),
    ] = None,
) -> None:
    """E-mail for phones of WAP: decks to read and write, letters out over SMTP, notice of new ones by push.

    It has one user and knows no password: whoever can connect to it reads and writes. Ends by Ctrl-C or SIGTERM.
    """
    from airloom.wap.mail import Letters, MailServer, Noticer, Post
    from airloom.wap.pap import Initiator, address

    if (phone is None) != (gateway is None):
        raise UsageError("--phone and --gateway belong together: who is told, and by whom")
    over = daemons.ending()
    with ExitStack() as stack:
        letters = Letters(maildir)
        try:
            initiator = Initiator(gateway) if gateway is not None else None
        except ValueError as error:
            raise UsageError(f"--gateway: {error}") from None
        try:
            if phone is not None:
                address(phone)
            names = [name for name in (urlsplit(url or "").hostname,) if name]
            post = Post(*common.place("--smtp", smtp), sender)
            server = stack.enter_context(MailServer(letters, post, *common.place("--listen", listen), names=names))
        except OSError as error:
            raise RunError(f"cannot listen on {listen}: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"--phone: {error}") from None
        host, port = server.address
        shown = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if phone is not None and initiator is not None:
            stack.enter_context(Noticer(letters, initiator, phone, url or shown))
        emit(f"listening on {shown}/")
        say(f"stop with Ctrl-C   next: airloom wap browse {shown}/ --gateway HOST")
        over.wait()
