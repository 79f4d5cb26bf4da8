"""What the daemons of `airloom serve` have in common: their addresses, settings, log, and how they end."""

from __future__ import annotations

import ipaddress
import re
import signal
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer

from airloom import fields
from airloom.cli import common
from airloom.cli.terminal import emit
from airloom.errors import RunError, UsageError

Metrics = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Serve numbers for Prometheus there (HTTP, /metrics).")
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="A name of this host by which its HTTP ports are asked, besides addresses and localhost. May be repeated.",
    ),
]
Clients = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS|CIDR",
        help="Serve this client. May be repeated; needed where --listen is no loopback address.",
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST|CIDR",
        help="Ask this server although its address is private, loopback or the like. May be repeated.",
    ),
]
Log = Annotated[bool, typer.Option(help="Write a line of JSON on stderr for each exchange.")]
Grace = Annotated[
    float, typer.Option(min=0, max=3600, help="Seconds to let requests and connections end when told to stop.")
]


def address(option: str, text: str | None) -> str | None:
    """An address and port as the daemon takes it; `localhost` is 127.0.0.1."""
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
            raise ValueError
        if ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).version == 6 and not host.startswith("["):
            raise ValueError
    except ValueError:
        meant = f"127.0.0.1:{port}" if port.isdecimal() and host in ("", "*") else "127.0.0.1:8080"
        raise UsageError(f"{option} {text}: expected ADDRESS:PORT, such as {meant}") from None
    return f"{host}:{port}"


def settings(given: Iterable[str]) -> list[tuple[str, str]]:
    """The `--set` of a daemon."""
    return [(key, str(value)) for key, value in common.overrides(given).items()]


def log_line(text: str) -> None:
    """A line of the log, JSON, with the time of day in front."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    emit(f'{{"time":"{now}",{text.removeprefix("{")}', error=True)


def ending() -> threading.Event:
    """What SIGINT and SIGTERM set from here on."""
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    return over


def run(serve: Callable[[], None], given: Iterable[tuple[str, str]]) -> None:
    """Serves until SIGINT or SIGTERM; what is wrong with a setting is said as of a scenario's."""
    # From here on the daemon hears of signals itself; Python's own handling would come on top of it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        serve()
    except ValueError as error:
        raise UsageError(explained(str(error), given)) from None
    except OSError as error:
        raise RunError((error.strerror or str(error)).partition(" (os error")[0]) from None


def explained(said: str, given: Iterable[tuple[str, str]]) -> str:
    """The complaint about a setting: the option as it was typed, what it may be, and what was probably meant.

    >>> explained("capcity: unknown field `capcity`, expected `capacity` or `mode`", [("capcity", "1MB")])
    '--set capcity=1MB: unknown key `capcity` (did you mean `capacity`?); valid: capacity, mode'
    """
    path, colon, why = said.partition(": ")
    for key, value in given:
        if not colon or (path != key and not path.startswith(f"{key}.") and not key.startswith(f"{path}.")):
            continue
        option = f"--set {key}={value}"
        unknown = re.fullmatch(r"unknown field `(.*?)`, expected (?:one of )?(.*)", why)
        if unknown is None:
            return f"{option}: {why}"
        valid = re.findall(r"`(.*?)`", unknown[2])
        above = f"{path.rpartition('.')[0]}: " if "." in path else ""
        return f"{option}: {above}{fields.unknown(unknown[1], valid)}"
    return said
