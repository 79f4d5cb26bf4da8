"""The messages. Each has one place where parsers are known to differ, and hides another message behind it."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """A message that is not as it should be."""

    name: str
    #: Where the standard says what to do with it.
    source: str
    #: Its octets; `{url}` is the origin's address, `{host}` its name and port.
    octets: str


#: What a parser that sees the end of the body elsewhere takes for a request.
_HIDDEN = "GET {url}hidden HTTP/1.1\r\nHost: {host}\r\n\r\n"
#: As the content of one chunk, and after its end.
_CHUNKED = "5\r\nhello\r\n0\r\n\r\n"


def _post(fields: str, body: str) -> str:
    return f"POST {{url}}form HTTP/1.1\r\nHost: {{host}}\r\n{fields}\r\n\r\n{body}"


def _chunked(body: str) -> str:
    return _post("Transfer-Encoding: chunked", body)


def _get(fields: str) -> str:
    return f"GET {{url}}page HTTP/1.1\r\nHost: {{host}}\r\n{fields}\r\n\r\n"


#: Requests that a client sends to a proxy.
REQUESTS = tuple(
    Shape(name, source, octets)
    for name, source, octets in (
        (
            "length and chunked",
            "9112 6.3",
            _post("Content-Length: 5\r\nTransfer-Encoding: chunked", _CHUNKED + _HIDDEN),
        ),
        ("chunked and length 0", "9112 6.3", _post("Transfer-Encoding: chunked\r\nContent-Length: 0", _CHUNKED)),
        ("two lengths", "9112 6.3", _post("Content-Length: 5\r\nContent-Length: 60", "hello" + _HIDDEN)),
        ("the same length twice", "9112 6.3", _post("Content-Length: 5\r\nContent-Length: 5", "hello")),
        ("a list of lengths", "9112 6.3", _post("Content-Length: 5, 60", "hello" + _HIDDEN)),
        ("length with a sign", "9110 8.6", _post("Content-Length: +5", "hello" + _HIDDEN)),
        ("negative length", "9110 8.6", _post("Content-Length: -5", "hello")),
        ("hexadecimal length", "9110 8.6", _post("Content-Length: 0x5", "hello" + _HIDDEN)),
        ("length beyond 64 bits", "9110 8.6", _post("Content-Length: 18446744073709551621", "hello" + _HIDDEN)),
        ("empty length", "9110 8.6", _post("Content-Length:", "hello" + _HIDDEN)),
        ("body of a GET", "9110 9.3.1", _get("Content-Length: 60").removesuffix("\r\n") + "\r\n" + "x" * 60),
        ("unknown transfer coding", "9112 6.1", _post("Transfer-Encoding: xchunked", _CHUNKED + _HIDDEN)),
        ("chunked is not the last", "9112 6.3", _post("Transfer-Encoding: chunked, identity", _CHUNKED + _HIDDEN)),
        ("chunked twice", "9112 7", _post("Transfer-Encoding: chunked, chunked", _CHUNKED)),
        ("chunked in quotes", "9112 6.1", _post('Transfer-Encoding: "chunked"', _CHUNKED + _HIDDEN)),
        ("vertical tab before chunked", "9112 6.1", _post("Transfer-Encoding: \x0bchunked", _CHUNKED + _HIDDEN)),
        ("space before the colon", "9112 5.1", _post("Transfer-Encoding : chunked\r\nContent-Length: 5", _CHUNKED)),
        (
            "chunked in HTTP/1.0",
            "9112 6.1",
            _post("Transfer-Encoding: chunked\r\nContent-Length: 5", _CHUNKED).replace("HTTP/1.1", "HTTP/1.0", 1),
        ),
        ("folded transfer coding", "9112 5.2", _post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5", _CHUNKED)),
        ("folded field", "9112 5.2", _get("X: a\r\n Content-Length: 5")),
        ("space before the first field", "9112 2.2", "GET {url}page HTTP/1.1\r\n X: y\r\nHost: {host}\r\n\r\n"),
        ("bare LF between fields", "9112 2.2", _get("X: a\nContent-Length: 5")),
        ("bare CR in a value", "9112 2.2", _get("X: a\rContent-Length: 5")),
        ("NUL in a value", "9110 5.5", _get("X: a\0b")),
        ("no name before the colon", "9110 5.1", _get(": a")),
        ("space in a name", "9110 5.1", _get("X Y: a")),
        ("line without a colon", "9112 5", _get("no colon")),
        ("chunk size with 0x", "9112 7.1", _chunked("0x5\r\nhello\r\n0\r\n\r\n" + _HIDDEN)),
        ("chunk size beyond 64 bits", "9112 7.1", _chunked("10000000000000005\r\nhello\r\n0\r\n\r\n" + _HIDDEN)),
        ("chunk that ends too late", "9112 7.1", _chunked("3\r\nhello\r\n0\r\n\r\n" + _HIDDEN)),
        ("bare LF after a chunk size", "9112 7.1", _chunked("5\nhello\r\n0\r\n\r\n" + _HIDDEN)),
        ("bare LF in a chunk extension", "9112 7.1.1", _chunked("5;a\nb\r\nhello\r\n0\r\n\r\n" + _HIDDEN)),
        ("trailer with a length", "9110 6.5.1", _chunked("5\r\nhello\r\n0\r\nContent-Length: 60\r\n\r\n")),
        (
            "Connection names the length",
            "9110 7.6.1",
            _post("Connection: content-length\r\nContent-Length: 5", "hello"),
        ),
        ("Connection names the host", "9110 7.6.1", _get("Connection: host")),
        ("two hosts", "9112 3.2", _get("Host: other")),
        ("no host", "9112 3.2", "GET {url}page HTTP/1.1\r\n\r\n"),
        ("another host than the target", "9112 3.2.2", "GET {url}page HTTP/1.1\r\nHost: other\r\n\r\n"),
        ("host with a space", "9112 3.2", "GET {url}page HTTP/1.1\r\nHost: a b\r\n\r\n"),
        ("space in the target", "9112 3.2", "GET {url}pa ge HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("fragment in the target", "9112 3.2", "GET {url}page#a HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("person in the target", "9110 4.2.4", "GET http://me:secret@{host}/page HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("two spaces before the version", "9112 3", "GET {url}page  HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("version in small letters", "9112 2.3", "GET {url}page http/1.1\r\nHost: {host}\r\n\r\n"),
        ("version 2.0", "9110 2.5", "GET {url}page HTTP/2.0\r\nHost: {host}\r\n\r\n"),
        ("version 1.9", "9110 2.5", "GET {url}page HTTP/1.9\r\nHost: {host}\r\n\r\n"),
        ("HTTP/0.9", "1945 4.1", "GET {url}page\r\n"),
        ("empty lines first", "9112 2.2", "\r\n\r\n" + _get("X: y")),
        ("method with a colon", "9110 9.1", "GET: {url}page HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ("unknown expectation", "9110 10.1.1", _get("Expect: 200-maybe")),
        (
            "upgrade to h2c",
            "9113 3.1",
            _get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"),
        ),
        ("200 kB of fields", "9110 5.4", _get("X: " + "y" * 200_000)),
        ("10,000 fields", "9110 5.4", _get("\r\n".join(f"X{n}: y" for n in range(10_000)))),
        ("target of 100 kB", "9112 3", "GET {url}" + "y" * 100_000 + " HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
)

_OK = "HTTP/1.1 200 OK\r\n"
#: What a parser that sees the end of the body elsewhere takes for the answer to somebody else's request.
_ANOTHER = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhidden"

#: Answers that an origin gives to one GET and then waits.
RESPONSES = tuple(
    Shape(name, source, octets)
    for name, source, octets in (
        (
            "length and chunked",
            "9112 6.3",
            _OK + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNKED + _ANOTHER,
        ),
        ("two lengths", "9112 6.3", _OK + "Content-Length: 5\r\nContent-Length: 60\r\n\r\nhello" + _ANOTHER),
        ("length with a sign", "9110 8.6", _OK + "Content-Length: +5\r\n\r\nhello" + _ANOTHER),
        ("more than the length says", "9112 9.2", _OK + "Content-Length: 5\r\n\r\nhello" + _ANOTHER),
        ("less than the length says", "9112 8", _OK + "Content-Length: 50\r\n\r\nhello"),
        ("unknown transfer coding", "9112 6.3", _OK + "Transfer-Encoding: xchunked\r\n\r\n" + _CHUNKED),
        ("space before the colon", "9112 5.1", _OK + "Content-Length : 5\r\n\r\nhello" + _ANOTHER),
        ("folded field", "9112 5.2", _OK + "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"),
        ("bare LF between fields", "9112 2.2", _OK + "X: a\nContent-Length: 5\r\n\r\nhello"),
        ("NUL in a value", "9110 5.5", _OK + "X: a\0b\r\nContent-Length: 5\r\n\r\nhello"),
        ("bad chunk size", "9112 7.1", _OK + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n"),
        (
            "chunk that ends too late",
            "9112 7.1",
            _OK + "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n" + _ANOTHER,
        ),
        ("chunks without an end", "9112 8", _OK + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        ("204 with a body", "9112 6.3", "HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n" + _ANOTHER),
        ("304 that nobody asked for", "9110 15.4.5", "HTTP/1.1 304 Not Modified\r\n\r\n" + _ANOTHER),
        (
            "101 that nobody asked for",
            "9110 15.2.2",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + _ANOTHER,
        ),
        (
            "1,000 interim answers",
            "9110 15.2",
            "HTTP/1.1 103 Early Hints\r\n\r\n" * 1000 + _OK + "Content-Length: 0\r\n\r\n",
        ),
        ("no status line", "9112 4", "hello\r\n\r\n"),
        ("status of two digits", "9112 4", "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("status of four digits", "9112 4", "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("two spaces before the status", "9112 4", "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("version 2.0", "9110 2.5", "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("200 kB of fields", "9110 5.4", _OK + "X: " + "y" * 200_000 + "\r\nContent-Length: 5\r\n\r\nhello"),
        ("nothing at all", "9112 8", ""),
    )
)
