"""A parser that takes nothing for granted: octets have one meaning, or it says why they have not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_REQUEST = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21\x22\x24-\x7e]+) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])( [\t\x20-\x7e\x80-\xff]*)?")


class Ambiguous(Exception):
    """Another parser may see something else in it."""


class Incomplete(Ambiguous):
    """It has one meaning so far, and is not whole."""


class Message(NamedTuple):
    """A message with one meaning."""

    #: Method or status.
    what: str
    #: Target of a request.
    target: str
    #: The Host field of a request.
    host: str
    body: bytes
    #: Does it end where the sender closed?
    to_the_end: bool


def requests(octets: bytes) -> Iterator[Message]:
    """The requests in what a client sent, one after another. Raises `Ambiguous` where it can go no further."""
    while octets:
        line, fields, rest = _head(octets)
        match = _REQUEST.fullmatch(line)
        if match is None:
            raise Ambiguous(f"request line {_shown(line)}")
        hosts = [value.decode("latin-1") for name, value in fields if name == b"host"]
        if len(hosts) != 1 and match[3] == b"1":
            raise Ambiguous("not one Host field")
        body, octets = _body(fields, rest, match[3] == b"1", without=0)
        yield Message(match[1].decode(), match[2].decode(), "".join(hosts), body, False)


def responses(octets: bytes) -> Iterator[Message]:
    """The answers to GETs in what a server sent until it closed, interim ones left out. Raises `Ambiguous`."""
    while octets:
        line, fields, rest = _head(octets)
        match = _STATUS.fullmatch(line)
        if match is None:
            raise Ambiguous(f"status line {_shown(line)}")
        status = match[2].decode()
        if status[0] == "1" or status in ("204", "304"):
            octets = rest
            if status[0] != "1":
                yield Message(status, "", "", b"", False)
            continue
        has_length = any(name in (b"content-length", b"transfer-encoding") for name, _ in fields)
        body, octets = _body(fields, rest, match[1] == b"1", without=None)
        yield Message(status, "", "", body, not has_length)


def _head(octets: bytes) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    head, end, rest = octets.partition(b"\r\n\r\n")
    if not end:
        raise Incomplete(f"no end of a head: {_shown(octets)}")
    line, *lines = head.split(b"\r\n")
    fields = []
    for each in lines:
        name, colon, value = each.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Ambiguous(f"field {_shown(each)}")
        fields.append((name.lower(), value.strip(b" \t")))
    return line, fields, rest


def _body(fields: list[tuple[bytes, bytes]], rest: bytes, is_11: bool, without: int | None) -> tuple[bytes, bytes]:
    """The body and what follows; `without` is its length if nothing says it: to the end if `None`."""
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if codings:
        if lengths or not is_11 or [coding.lower() for coding in codings] != [b"chunked"]:
            raise Ambiguous("transfer coding " + ", ".join(_shown(v) for v in codings + lengths))
        return _chunks(rest)
    if not lengths:
        return (rest, b"") if without is None else (rest[:without], rest[without:])
    if len(lengths) > 1 or not re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
        raise Ambiguous("length " + ", ".join(_shown(v) for v in lengths))
    length = int(lengths[0])
    if length > len(rest):
        raise Incomplete(f"{length - len(rest)} octets of a body are missing")
    return rest[:length], rest[length:]


def _chunks(rest: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        line, end, rest = rest.partition(b"\r\n")
        if not end and re.fullmatch(rb"[0-9A-Fa-f]{,15}\r?", line):
            raise Incomplete("no further chunk")
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", line):
            raise Ambiguous(f"chunk size {_shown(line)}")
        size = int(line, 16)
        if size == 0:
            break
        if len(rest) < size + 2:
            raise Incomplete("the end of a chunk is missing")
        if rest[size : size + 2] != b"\r\n":
            raise Ambiguous("chunk does not end where it should")
        body, rest = body + rest[:size], rest[size + 2 :]
    if not rest.startswith(b"\r\n"):
        trailer, end, rest = rest.partition(b"\r\n\r\n")
        if not end:
            raise Incomplete(f"trailer {_shown(trailer)}")
        return body, rest
    return body, rest[2:]


def _shown(octets: bytes) -> str:
    return repr(octets[:40])[1:]
