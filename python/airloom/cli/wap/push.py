"""`airloom wap push`, `push-status`, `push-cancel`, `push-listen`."""

from __future__ import annotations

import math
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common, signals
from airloom.cli.terminal import emit, print_json, say
from airloom.cli.wap.requests import pairs_of
from airloom.errors import UsageError
from airloom.wap import PUSH_PORT, Push
from airloom.wap.pap import Answer, Initiator, Method
from airloom.wap.receiver import Receiver
from airloom.wap.service import (
    INDICATION_ACTIONS,
    INDICATION_TYPE,
    LOADING_ACTIONS,
    LOADING_TYPE,
    Indication,
    Loading,
    parse,
)

To = Annotated[
    str, typer.Option(metavar="URL", help="Where the gateway takes pushes: its --push, as http://HOST:PORT/.")
]
Name = Annotated[str, typer.Argument(metavar="ID", help="Name of the push, as `airloom wap push` said it.")]


class Delivery(StrEnum):
    """How a push is delivered."""

    UNCONFIRMED = "unconfirmed"
    CONFIRMED = "confirmed"
    PREFERCONFIRMED = "preferconfirmed"


def push(
    client: Annotated[str, typer.Argument(metavar="ADDRESS", help="The phone's address of IP.")],
    gateway: To,
    si: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A service indication that says this; see --href.")
    ] = None,
    sl: Annotated[bool, typer.Option("--sl", help="A service loading: the phone shall fetch --href.")] = False,
    href: Annotated[str, typer.Option(metavar="URL", help="What the indication or loading is about.")] = "",
    action: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="How urgent: signal-high, delete, execute-low, cache and the like."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Something else; see --type.")] = None,
    content_type: Annotated[str, typer.Option("--type", metavar="TYPE", help="What the file is.")] = "text/plain",
    method: Annotated[Delivery, typer.Option(help="Has the phone to confirm it?")] = Delivery.UNCONFIRMED,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="A header of the push; repeatable."),
    ] = None,
    push_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its name; one is made up without it.")
    ] = None,
    before: Annotated[datetime | None, typer.Option(metavar="TIME", help="No longer after that (local time).")] = None,
    after: Annotated[datetime | None, typer.Option(metavar="TIME", help="Not before that (local time).")] = None,
    notify: Annotated[
        str | None, typer.Option(metavar="URL", help="Tell this address by POST what became of it.")
    ] = None,
    as_json: common.Json = False,
) -> int:
    """Push something to a phone, through a gateway that takes pushes (PAP)."""
    if [si is not None, sl, file is not None].count(True) != 1:
        raise UsageError("one of --si, --sl and --file says what to push")
    if sl and not href:
        raise UsageError("--sl: say by --href what the phone shall fetch")
    actions = INDICATION_ACTIONS if si is not None else LOADING_ACTIONS if sl else ()
    if action is not None and action not in actions:
        raise UsageError(f"--action {action!r}: valid: {', '.join(actions) or 'none, without --si or --sl'}")
    content: str | bytes
    if si is not None:
        kind, content = INDICATION_TYPE, Indication(href, action or "signal-medium", si).document()
    elif file is None:
        kind, content = LOADING_TYPE, Loading(href, action or "execute-low").document()
    else:
        kind, content = content_type, common.read(file)
    chosen: Method = method.value
    try:
        answer = _initiator(gateway).push(
            client,
            content,
            kind,
            push_id=push_id,
            method=chosen,
            headers=pairs_of(header),
            after=after,
            before=before,
            notify=notify,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    return _say(answer, as_json)


def push_status(push_id: Name, gateway: To, as_json: common.Json = False) -> int:
    """What became of a push."""
    status = _initiator(gateway).status(push_id)
    if as_json:
        print_json(status._asdict())
    else:
        emit(f"{status.push_id}: {status.state}, {status.code} {status.words}")
    return 1 if status.state == "unknown" else 0


def push_cancel(push_id: Name, gateway: To, as_json: common.Json = False) -> int:
    """Take a push back that waits."""
    return _say(_initiator(gateway).cancel(push_id), as_json)


def _initiator(gateway: str) -> Initiator:
    try:
        return Initiator(gateway)
    except ValueError as error:
        raise UsageError(f"--gateway: {error}") from None


def _say(answer: Answer, as_json: bool) -> int:
    if as_json:
        print_json(answer._asdict())
    else:
        emit(f"{answer.push_id}: {answer.code} {answer.words}")
    return 0 if answer.is_taken else 1


def push_listen(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="UDP port; 0 for any.")] = PUSH_PORT,
    listen_on: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="Address to listen on: 0.0.0.0 and :: are all of them.")
    ] = "127.0.0.1",
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after so many.")] = None,
    time_s: Annotated[
        float, typer.Option("--time", metavar="SECONDS", min=0.0, help="End when none came for so long.")
    ] = math.inf,
    any_gateway: Annotated[
        bool, typer.Option("--any-gateway", help="Open sessions with gateways that another one names, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
) -> int:
    """Print what gateways push, a line each; service indications and loadings are read."""
    heard = 0
    with Receiver(listen_on, port, from_anywhere=any_gateway) as receiver:
        say(f"listening on {receiver.address}; Ctrl-C ends it")
        try:
            while heard != count and (push := receiver.next(time_s)) is not None:
                _print(push, as_json=as_json)
                heard += 1
        except KeyboardInterrupt:
            # Without a number to wait for that is how it ends.
            if count is not None:
                raise
            signals.obeyed()
        for complaint in receiver.complaints:
            say(complaint)
    return 1 if count is not None and heard < count else 0


def _print(push: Push, *, as_json: bool) -> None:
    if as_json:
        print_json(_fields(push), is_line=True)
    else:
        emit(_line(push))


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
