"""Our gateway as people start it, and an origin that lies in every way there is."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from airloom.closing import Closing
from tests.cli.shell import serves

#: A web page, for the conversion.
PAGE = b"<html><head><title>T</title></head><body><h1>Head</h1><p>One <a href='/x'>link</a>.</p></body></html>"

#: Fifty kilobytes that want to be fifty megabytes.
BOMB = gzip.compress(bytes(50_000_000))


class Gateway(NamedTuple):
    """Where it listens."""

    session: str
    connectionless: str
    metrics: str
    push: str
    process: subprocess.Popen[str]

    def number(self, name: str) -> float:
        """One of its numbers for Prometheus."""
        import urllib.request

        page = urllib.request.urlopen(f"{self.metrics}", timeout=30).read().decode()
        (line,) = [line for line in page.splitlines() if line.startswith(f"airloom_wap_{name} ")]
        return float(line.split()[-1])


@contextmanager
def serving(*words: str) -> Iterator[Gateway]:
    """`airloom serve wap-gateway` on ports of its own, with origins on loopback allowed; ended by Ctrl-C."""
    any_port = "127.0.0.1:0"
    options = ["--listen", any_port, "--connectionless", any_port, "--metrics", any_port, "--no-log"]
    places = r"listening on (\S+) for sessions, on (\S+) for single requests"
    places += r"(?:, for pushes at (\S+))?, numbers at (\S+)\n"
    with serves(places, "wap-gateway", *options, *words) as (found, process):
        yield Gateway(found[1], found[2], found[4], found[3] or "", process)


def text_of(size: int) -> bytes:
    """What `/size/N` has."""
    return bytes(ord("a") + n % 26 for n in range(size))


def _head(status: str, *fields: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode()


def _whole(body: bytes, kind: str, *fields: str) -> bytes:
    return _head("200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close", *fields) + body


class Liar(Closing):
    """An origin: `/short`, `/endless` and the like are lies, `/page` and `/size/N` are not."""

    def __init__(self) -> None:
        """Serves at once, in threads of its own."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.asked: list[str] = []
        self.posted: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Takes no further request."""
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            said = b""
            while b"\r\n\r\n" not in said:
                got = connection.recv(65_536)
                if not got:
                    return
                said += got
            path = said.split()[1].decode()
            self.asked.append(path)
            head, _, body = said.partition(b"\r\n\r\n")
            if length := re.search(rb"(?i)content-length: *(\d+)", head):
                while len(body) < int(length[1]):
                    body += connection.recv(65_536)
                self.posted.append(body)
            with suppress(OSError):  # the gateway may have had enough
                self._answer(connection, path)

    def _answer(self, connection: socket.socket, path: str) -> None:
        what, _, argument = path.lstrip("/").partition("/")
        if what == "endless":
            connection.sendall(_head("200 OK", "Content-Type: text/plain", "Connection: close"))
            while True:
                connection.sendall(bytes(65_536))
        if what == "silent":
            connection.recv(1)  # until the other side leaves
            return
        answers = {
            "short": _head("200 OK", "Content-Type: text/plain", "Content-Length: 500") + b"only this",
            "bomb": _whole(BOMB, "text/plain", "Content-Encoding: gzip"),
            "broken-gzip": _whole(b"this is no gzip", "text/plain", "Content-Encoding: gzip"),
            "no-http": b"220 this is a mail server\r\n",
            "no-wml": _whole(b"<wml><card><p>never closed", "text/vnd.wap.wml"),
            "page": _whole(PAGE, "text/html"),
            "sum": _whole(b"thanks", "text/plain"),
            "loop": _head("302 Found", f"Location: {self.url}/loop", "Content-Length: 0"),
            "away": _head("302 Found", "Location: http://169.254.169.254/latest/meta-data", "Content-Length: 0"),
        }
        if what == "size":
            answers["size"] = _whole(text_of(int(argument)), "text/plain")
        connection.sendall(answers.get(what, _head("404 Not Found", "Content-Length: 0")))
