"""Arguments that several verbs share."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli.terminal import quoted, say
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.scenario import Scenario

SCENARIO_HELP = "A scenario file, or a name: of a shipped scenario, or STUDY/SCENARIO (airloom list scenarios)."
SET_HELP = "Set a key of the scenario, such as links.radio.loss.downlink=0.1. May be repeated."
ALL_HELP = "Show every number: zeros, repetitions, and those of single hosts, links and directions too."

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]

#: Of every verb that writes a result folder (`airloom.places`).
Force = Annotated[bool, typer.Option("--force", help="Replace other results in --out.")]

#: Of verbs whose results are called after what is simulated.
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The result folder. Default: one under runs/, the same for the same run."),
]

#: Of every verb that draws a picture.
Width = Annotated[
    float | None,
    typer.Option(
        "--width-mm", metavar="MM", min=40, max=2000, help="Width of the picture in print, such as 88 for a column."
    ),
]


def check_width(width_mm: float | None, option: str, *, is_drawn: bool) -> None:
    """Raises `UsageError` for the width of a picture that nobody asked for."""
    if width_mm is not None and not is_drawn:
        raise UsageError(f"--width-mm {width_mm:g}: there is a picture with {option} only")


def place(option: str, text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; IPv6 addresses stand in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise UsageError(f"{option} {text}: expected HOST:PORT, such as 127.0.0.1:9900")
    return host.removeprefix("[").removesuffix("]"), int(port)


def overrides(settings: Iterable[str]) -> dict[str, object]:
    """`KEY=V` texts as a mapping; a value is read as in a scenario file, and is text if it is nothing else."""
    found: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {setting}: expected KEY=VALUE")
        found[key] = value
    return found


def ports(words: Iterable[str]) -> list[int]:
    """The TCP ports of `--loopback PORT,..`, each once.

    >>> ports(["8000,3000", "8000"])
    [8000, 3000]
    """
    found: dict[int, None] = {}
    for word in words:
        for text in word.split(","):
            if not re.fullmatch(r" *[0-9]{1,5} *", text) or not 0 < int(text) < 65536:
                raise UsageError(f"--loopback {word}: {text!r} is no port; expected numbers from 1 to 65535")
            found[int(text)] = None
    return list(found)


def note_closed_ports(wanted: Iterable[int]) -> None:
    """Says which of these ports of this machine's loopback nobody serves: that may be meant to come later."""
    from airloom.local_ports import is_served

    for port in wanted:
        if not is_served(port):
            say(f"nothing listens on port {port} of this machine's loopback so far")


def strict(scenario: Scenario, bound: str) -> Scenario:
    """The scenario, its runs valid by the bound of `--strict` and by no other."""
    return scenario.with_keys({"run.lateness_limit": check_bound(bound)})


def check_bound(bound: str) -> str:
    """The bound of `--strict`, if it is a time."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?(ns|us|ms|s)", bound) or not bound.strip("0.nums"):
        raise UsageError(f"--strict {bound}: expected a time such as 500us or 2ms")
    return bound


def load(name: str, settings: Iterable[str]) -> Scenario:
    """The scenario `name` with `--set` applied."""
    from airloom.scenario import load

    return load(name, overrides(settings))


def say_if_idle(read: Scenario, name: str) -> None:
    """Warns of a scenario in which nothing happens in virtual time."""
    hosts = read.understood["hosts"].values()
    if any(host.get("app") for host in hosts):
        return
    real = any(host.get("real") for host in hosts)
    what = f"for its real hosts there is airloom emulate {quoted(name)}" if real else "airloom list apps says which"
    say(f"warning: no host of {read.name} has an application (`app`), so nothing happens in virtual time; {what}")


def read(source: Path) -> bytes:
    """What a file holds that the user named, a pipe's too; `-` is standard input."""
    if str(source) == "-":
        return sys.stdin.buffer.read()
    try:
        return source.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{quoted(source)} is not there") from None
    except OSError as error:
        raise UsageError(f"{quoted(source)}: {error.strerror}") from None
