"""`airloom wap push-listen`."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from airloom._core import WapListener
from airloom.cli.terminal import say
from airloom.wap import PUSH_PORT, Push, listen
from airloom.wap.service import parse

HELP = "Print what gateways push, a line each; service indications and loadings are read."


def push_listen(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="UDP port; 0 for any.")] = PUSH_PORT,
    listen_on: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="Address to listen on: 0.0.0.0 and :: are all of them.")
    ] = "127.0.0.1",
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after so many.")] = None,
    time_s: Annotated[
        float, typer.Option("--time", metavar="SECONDS", min=0.0, help="End when none came for so long.")
    ] = math.inf,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
) -> int:
    """Listens."""
    listener = WapListener(listen_on, port)
    say(f"listening on {listener.address}; Ctrl-C ends it")
    heard = 0
    for push in listen(listener, time_s):
        print(json.dumps(_fields(push), ensure_ascii=False) if as_json else _line(push), flush=True)
        heard += 1
        if heard == count:
            break
    return 1 if count is not None and heard < count else 0


def _text(push: Push) -> str | None:
    try:
        return push.text()
    except ValueError:
        return None


def _line(push: Push) -> str:
    text = _text(push)
    what = text and parse(text)
    if what:
        return f"{push.sender}  {what}"
    shown = f"{len(push.body)} octets" if text is None else " ".join(text.split())
    return f"{push.sender}  {push.content_type}: {shown}"


def _fields(push: Push) -> dict[str, object]:
    text = _text(push)
    what = text and parse(text)
    said: dict[str, object] = {
        "from": push.sender,
        "content_type": push.content_type,
        "headers": [list(pair) for pair in push.headers],
        "octets": len(push.body),
        "text": text,
    }
    if what:
        said["kind"] = type(what).__name__.lower()
        said |= what._asdict()
    return said
