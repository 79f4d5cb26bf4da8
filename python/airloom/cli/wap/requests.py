"""`airloom wap get` and `airloom wap post`."""

from __future__ import annotations

import base64
import time
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import busy, emit, emit_octets, interruptible, print_json, say
from airloom.errors import UsageError
from airloom.wap import USUAL_HEADERS, Client, Headers, Reply, parse_gateway

Url = Annotated[str, typer.Argument(metavar="URL", help="What to ask for; without a scheme it is http.")]
Gateway = Annotated[
    str, typer.Option(metavar="HOST[:PORT]", help="Where the gateway is; port 9201, or 9200 without session.")
]
Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to; without it, standard output.")]
Connectionless = Annotated[bool, typer.Option("--connectionless", help="Without a session, in single datagrams.")]
Header = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="A header; repeatable.")
]
Raw = Annotated[bool, typer.Option("--raw", help="The body as it came, WBXML too.")]
Time = Annotated[float, typer.Option("--time", metavar="SECONDS", min=0.001, help="How long to wait for an answer.")]


def get(
    url: Url,
    gateway: Gateway,
    out: Out = None,
    connectionless: Connectionless = False,
    header: Header = None,
    head: Annotated[bool, typer.Option("--head", help="Ask for the headers only, and print them.")] = False,
    raw: Raw = False,
    time_s: Time = 60.0,
    as_json: common.Json = False,
) -> int:
    """Fetch something through a WAP gateway; WBXML is shown as the document it stands for."""
    asked = ("HEAD" if head else "GET", absolute(url), None, None)
    return _exchange(gateway, connectionless, header, asked, out, raw, time_s, as_json)


def post(
    url: Url,
    gateway: Gateway,
    data: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What to send: text, or a file; @- is standard input.")
    ],
    content_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="What it is.")
    ] = "application/x-www-form-urlencoded",
    out: Out = None,
    connectionless: Connectionless = False,
    header: Header = None,
    raw: Raw = False,
    group_packets: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=255, help="Packets to send before one is acknowledged; 1 for bad links."),
    ] = None,
    time_s: Time = 60.0,
    as_json: common.Json = False,
) -> int:
    """Send something through a WAP gateway."""
    asked = ("POST", absolute(url), _data(data), content_type)
    return _exchange(gateway, connectionless, header, asked, out, raw, time_s, as_json, group_packets)


def absolute(url: str) -> str:
    """With a scheme: gateways are asked for absolute addresses."""
    if not url or any(c.isspace() for c in url):
        raise UsageError(f"{url!r} is not an address")
    return url if "://" in url else f"http://{url}"


def gateway_of(text: str, connectionless: bool) -> tuple[str, int]:
    """Host and port of `--gateway`."""
    try:
        return parse_gateway(text, connectionless)
    except ValueError as error:
        raise UsageError(f"--gateway: {error}") from None


def headers_of(given: list[str] | None) -> Headers:
    """The usual headers, in place of which those stand that were given; one without a value is left out."""
    own = pairs_of(given)
    names = {name.lower() for name, _ in own}
    usual = [(name, value) for name, value in USUAL_HEADERS if name.lower() not in names]
    return usual + [(name, value) for name, value in own if value]


def pairs_of(given: list[str] | None) -> Headers:
    """Names and values as they were given."""
    found: Headers = []
    for line in given or []:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"--header {line!r}: not NAME: VALUE")
        found.append((name.strip(), value.strip()))
    return found


def _data(text: str) -> bytes:
    return common.read(Path(text[1:])) if text.startswith("@") else text.encode()


def _exchange(
    gateway: str,
    connectionless: bool,
    header: list[str] | None,
    asked: tuple[str, str, bytes | None, str | None],
    out: Path | None,
    raw: bool,
    time_s: float,
    as_json: bool,
    group_packets: int | None = None,
) -> int:
    host, port = gateway_of(gateway, connectionless)
    headers = headers_of(header)
    method, url, body, content_type = asked
    with interruptible(), busy("asking"):
        began = time.monotonic()
        with Client(
            host,
            port,
            connectionless=connectionless,
            headers=headers,
            time_s=time_s,
            group_packets=group_packets,
        ) as wap:
            opened = time.monotonic()
            reply = wap.request(method, url, None, body, content_type, time_s)
            answered = time.monotonic()
            counters = wap.core.counters
    shown = _shown(reply, raw)
    if out is not None:
        out.write_bytes(shown)
    if as_json:
        said = {
            "url": url,
            "status": reply.status,
            "content_type": reply.content_type,
            "headers": [list(pair) for pair in reply.headers],
            "octets": len(reply.body),
            "connect_s": opened - began,
            "answer_s": answered - opened,
            "retransmissions": counters["resent"],
            "group_waits": counters["groups_sent"] + counters["groups_received"],
        }
        if out is None:
            said |= _body(shown)
        print_json(said)
    elif method == "HEAD":
        lines = [f"Content-Type: {reply.content_type}", *(f"{name}: {value}" for name, value in reply.headers)]
        emit("\n".join(lines))
    elif out is None:
        emit_octets(shown)
    what = f"{reply.status} {_phrase(reply.status)}, {reply.content_type}, {len(reply.body)} octets"
    say(f"{what} in {answered - opened:.3f} s")
    return 1 if reply.status >= 400 else 0


def _shown(reply: Reply, raw: bool) -> bytes:
    """The body as it is shown: WBXML as text, unless it is to be raw or is none after all."""
    if raw or not reply.is_encoded or not reply.body:
        return reply.body
    try:
        return reply.text().encode()
    except ValueError as error:
        say(f"shown as it came: {error}")
        return reply.body


def _body(octets: bytes) -> dict[str, str]:
    try:
        return {"body": octets.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(octets).decode()}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "?"
