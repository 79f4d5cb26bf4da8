"""`airloom wap browse`."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from airloom.cli import signals
from airloom.cli.terminal import emit
from airloom.cli.wap.requests import Connectionless, Gateway, Header, Url, absolute, gateway_of, headers_of
from airloom.closing import Closing
from airloom.wap import Client, Headers, Reply, WapError
from airloom.wap.browser import Browser


class _Wap(Closing):
    """A client with a time limit for each request. It connects again where the gateway has ended the session."""

    def __init__(self, connect: Callable[[], Client], time_s: float) -> None:
        self._connect, self._time_s = connect, time_s
        self._wap = connect()

    def close(self) -> None:
        self._wap.close()

    def request(
        self, method: str, url: str, headers: Headers | None, body: bytes | None, content_type: str | None
    ) -> Reply:
        try:
            try:
                return self._wap.request(method, url, headers, body, content_type, self._time_s)
            except WapError as error:
                if error.reason != "disconnected":
                    raise
                self._wap = self._connect()
                if method == "POST":  # it may have been carried out
                    raise
                return self._wap.request(method, url, headers, body, content_type, self._time_s)
        except KeyboardInterrupt:
            # The request was aborted; who wants to leave says so when asked.
            signals.obeyed()
            raise ValueError("stopped") from None


def browse(
    url: Url,
    gateway: Gateway,
    connectionless: Connectionless = False,
    header: Header = None,
    time_s: Annotated[float, typer.Option("--time", metavar="SECONDS", min=0.001, help="Time for one request.")] = 60.0,
) -> int:
    """Read WML decks in the terminal: links, cards, variables, timers, inputs and selections."""
    host, port = gateway_of(gateway, connectionless)
    headers = headers_of(header)

    def connect() -> Client:
        return Client(host, port, connectionless=connectionless, headers=headers, time_s=time_s)

    with _Wap(connect, time_s) as wap:
        return Browser(wap, Lines().ask, emit).browse(absolute(url))


class Lines:
    """Standard input by lines, with a time limit: what a buffered file holds already, `select` would not see."""

    def __init__(self) -> None:
        self._held = b""
        self._is_over = False

    def ask(self, prompt: str, seconds: float | None) -> str | None:
        """The next line; None when the time is over before it has come. The end of the input and Ctrl-C are `q`."""
        try:
            return self._line(prompt, seconds)
        except KeyboardInterrupt:
            signals.obeyed()
            emit()
            return "q"

    def _line(self, prompt: str, seconds: float | None) -> str | None:
        emit(prompt, end="")
        while b"\n" not in self._held and not self._is_over:
            if seconds is not None and not select.select([0], [], [], seconds)[0]:
                emit()
                return None
            came = os.read(0, 4096)
            self._held += came
            self._is_over = not came
        line, _, self._held = self._held.partition(b"\n")
        if not sys.stdin.isatty():
            emit()
        return line.decode(errors="replace") if line or not self._is_over else "q"
