"""`airloom serve link`: ports of this machine that lead over a link, where there can be no namespaces."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

import typer

from airloom.cli import common, names
from airloom.cli.daemons import address, ending
from airloom.cli.terminal import emit, print_json, say
from airloom.errors import UsageError
from airloom.user_space import Forward, Forwarding

_TARGET_HELP = "Lead this {} port to that target; port 0: any free one. May be repeated."


def link(
    name: Annotated[
        str,
        typer.Argument(help="A preset, a bearer or a scenario.", autocompletion=names.what_to_emulate),
    ],
    tcp: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT=HOST:PORT", help=_TARGET_HELP.format("TCP"))
    ] = None,
    udp: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT=HOST:PORT", help=_TARGET_HELP.format("UDP"))
    ] = None,
    settings: names.LinkSettings = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers.")] = None,
    control_page: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="A page that changes the link, on this port of loopback."),
    ] = None,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Let ports be on other addresses than loopback.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures at the end as one JSON document.")] = False,
) -> None:
    """Lead TCP and UDP ports of this machine over a link in user space, without namespaces or root.

    Real clients and servers are at both ends. Their octets go over the link, their packets do not: it is airloom's own
    TCP that meets the link's losses, and no kernel's. For that, `airloom emulate`. Ends by Ctrl-C or SIGTERM.
    """
    from airloom.control.desk import Desk
    from airloom.control.page import Page

    forwards = [_forward(kind, text, anywhere) for kind, given in (("tcp", tcp), ("udp", udp)) for text in given or []]
    with Forwarding(name, forwards, overrides=common.overrides(settings or []), seed=seed) as made:
        over = ending()
        page = None if control_page is None else Page(control_page)
        try:
            for one, address in zip(forwards, made.addresses, strict=True):
                emit(f"{one.kind} {address} leads to {one.target} over {name}", error=as_json)
            if page is not None:
                page.start(Desk(made.control))
                say(f"control page: {page.address}")
            say("stop with Ctrl-C")
            while not over.wait(0.2):
                # Raises if the run has broken.
                made.control.look()
        finally:
            if page is not None:
                page.close()
    summary = made.summary
    if as_json:
        print_json(summary)
        return
    valid = "valid" if summary.get("valid") else "NOT valid"
    numbers = f"{summary.get('packets', 0):.0f} packets, {summary.get('lost', 0):.0f} lost"
    emit(f"{name}: {summary.get('simulated_s', 0):.1f} s, {numbers}: {valid}")


def _forward(kind: str, text: str, anywhere: bool) -> Forward:
    listen, _, target = text.partition("=")
    at = address(f"--{kind}", listen) or ""
    if not anywhere and not ip_address(at.rpartition(":")[0].strip("[]")).is_loopback:
        raise UsageError(f"--{kind} {listen}: not a loopback address; everybody may come with --anywhere")
    return Forward(kind, at, target)
