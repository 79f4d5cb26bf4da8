"""`airloom gateway`: devices on an interface of this machine behind a link."""

from __future__ import annotations

import signal
import socket
from contextlib import ExitStack
from typing import Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import emit, print_json, say


def gateway(
    preset: Annotated[
        str,
        typer.Argument(
            help="What devices are behind: a preset, a bearer or a scenario.", autocompletion=names.what_to_emulate
        ),
    ],
    inside: Annotated[
        str,
        typer.Option("--in", metavar="IFACE", help="The interface that the devices are on: a hotspot, a second port."),
    ],
    outside: Annotated[
        str, typer.Option("--out", metavar="IFACE", help="The interface by which this machine reaches the world.")
    ],
    settings: names.LinkSettings = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1, help="Seed of all random numbers.")] = None,
    control_page: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="The page is on this port of loopback; 0: any free port."),
    ] = 0,
    page_for_devices: Annotated[
        bool, typer.Option("--page-for-devices", help="Show the page to devices too, at an address that is printed.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take --in although a default route of this machine leads there.")
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Gives devices addresses (DHCP, IPv6 router advertisements) and leads them through the link to the world.

    Their packets go through the model or nowhere; a page changes the link and switches presets. Needs root. Ends by
    Ctrl-C or SIGTERM, and however it ends nothing is left of it.
    """
    from airloom.control.page import Page, Presets, new_token
    from airloom.gateway import Device, Gateway, interfaces
    from airloom.presets import presets

    served = Gateway(inside, preset, overrides=common.overrides(settings or []), seed=seed)
    interfaces.check(inside, outside, even_if_it_leads_out=force)
    choice = Presets(list(dict.fromkeys([preset, *presets()])), lambda: served.preset, served.switch)

    token = new_token(is_typed=True)

    def for_devices(listening: socket.socket, address: str) -> Page:
        return Page(0, choice, at=(listening, address), token=token)

    def began(now: str, address: str | None) -> None:
        say(f"devices on {inside} are behind {now}")
        if address is not None:
            say(f"control page for devices: {address}")

    def told(device: Device) -> None:
        say(f"device {device.name or device.hardware}: {device.address}")

    with ExitStack() as stack:
        page = Page(control_page, choice)
        stack.callback(page.close)
        say(f"control page: {page.address}   stop with Ctrl-C")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: served.end())
        served.serve(page, for_devices if page_for_devices else None, told, began)
    if as_json:
        print_json([{"preset": name, "summary": summary} for name, summary in served.stretches])
        return
    for name, summary in served.stretches:
        valid = "valid" if summary.get("valid") else "NOT valid"
        numbers = f"{summary.get('packets', 0):.0f} packets, {summary.get('lost', 0):.0f} lost"
        emit(f"{name}: {summary.get('simulated_s', 0):.1f} s, {numbers}: {valid}")
