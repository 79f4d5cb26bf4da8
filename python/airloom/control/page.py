"""The view in a browser: one small page on loopback, for whoever was told its address.

Everything on the machine can reach a loopback port, and any web page that is open in a browser here can send requests
to it. So what reads or changes the run needs a token, which stands behind the `#` of the address and goes in a header
that other pages cannot set; and requests that were meant for another name, or come from another page, are refused.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from http.server import HTTPServer
from importlib import resources
from typing import Any, NamedTuple, NoReturn

from airloom._core import ScenarioError
from airloom.bounded import Answering, Bounded
from airloom.browser_guard import comes_from_another_page
from airloom.control.desk import Desk
from airloom.errors import AirloomError, UsageError

#: The header that carries the token.
TOKEN = "X-Airloom-Token"
#: Octets of the longest change.
_LONGEST = 4096
#: Seconds for a request to come in, and requests at a time.
_PATIENCE_S = 10
_MOST = 32


class Presets(NamedTuple):
    """Links of which the page offers a choice."""

    all: list[str]
    #: The one that is there.
    now: Callable[[], str]
    #: Puts another one in its place; raises an error of ours that says why not.
    switch: Callable[[str], None]


def new_token(*, is_typed: bool = False) -> str:
    """A token that nobody guesses; short if somebody has to type it who reads it on another screen."""
    return secrets.token_urlsafe(9 if is_typed else 24)


class Page:
    """Serves the page until it is closed."""

    def __init__(
        self, port: int, presets: Presets | None = None, *, at: tuple[socket.socket, str] | None = None, token: str = ""
    ) -> None:
        """Takes the port, or any free one if it is 0; answers once there is a desk.

        `at` is a listening socket on port 80 and its address, in the place of a port of loopback; `token` is one from
        before, so that an address goes on to hold.
        """
        self._token = token or new_token()
        try:
            self._server = _Server(port, self._token, presets, at)
        except OSError as error:
            raise UsageError(f"--control-page {port}: {error.strerror or error}") from None
        self._host = f"127.0.0.1:{self._server.server_port}" if at is None else at[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    @property
    def address(self) -> str:
        """Where to point a browser; whoever has it controls the run."""
        return f"http://{self._host}/#{self._token}"

    def start(self, desk: Desk) -> None:
        """Begins, or goes on with another run."""
        self._server.desk = desk
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """Ends; the port is free again."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(Bounded, HTTPServer):
    # An address in use is one in use: nobody shall share the port with us.
    allow_reuse_address = True
    desk: Desk

    def __init__(self, port: int, token: str, presets: Presets | None, at: tuple[socket.socket, str] | None) -> None:
        self.token = token
        self.presets = presets
        self.places = threading.BoundedSemaphore(_MOST)
        if at is not None:
            super().__init__((at[1], 80), _Handler, bind_and_activate=False)
            self.socket.close()
            self.socket = at[0]
            self.names = _names(at[1], 80)
            return
        super().__init__(("127.0.0.1", port), _Handler)
        self.names = _names("127.0.0.1", self.server_port) | _names("localhost", self.server_port)


class _Handler(Answering):
    server: _Server
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        if not self._is_for_us():
            self._answer(403, {"error": "this is not the name of this page"})
        elif self.path == "/":
            self._page()
        elif self.path != "/state":
            self._answer(404, {"error": "there is no such page"})
        elif self._may():
            self._answer(200, _state(self.server))

    def do_POST(self) -> None:
        if not self._is_for_us() or comes_from_another_page(self.headers):
            self._answer(403, {"error": "this request comes from another page"})
        elif self.path not in ("/change", *(["/preset"] if self.server.presets else [])):
            self._answer(404, {"error": "there is no such page"})
        elif self._may() and (change := self._read()) is not None:
            self._change(change) if self.path == "/change" else self._switch(change)

    def _is_for_us(self) -> bool:
        """Was it meant for this name? Only these two are ever printed."""
        return self.headers.get("Host", "") in self.server.names

    def _may(self) -> bool:
        given = self.headers.get(TOKEN, "").encode("latin-1", "replace")
        if secrets.compare_digest(given, self.server.token.encode()):
            return True
        self._answer(403, {"error": "the token is missing or wrong: use the whole address that airloom printed"})
        return False

    def _read(self) -> Any:
        """The change, as JSON that can be passed on; `None` if it was too long, which is said."""
        if (length := self.length(_LONGEST)) is None:
            self._answer(413, {"error": f"a change has at most {_LONGEST} octets"})
            return None
        try:
            change = json.loads(self.rfile.read(length), parse_constant=_no_number)
            # What JSON can say and UTF-8 or TOML cannot: half a surrogate pair, a number without end.
            json.dumps(change, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return ()
        return () if change is None else change

    def _change(self, change: Any) -> None:
        if not isinstance(change, dict) or not isinstance(change.get("target"), str):
            self._answer(400, {"error": "expected an object with target and set"})
            return
        said = self.server.desk.change(change["target"], change.get("set"))
        self._answer(200, {"said": said, **_state(self.server)})

    def _switch(self, change: Any) -> None:
        presets = self.server.presets
        if not isinstance(change, dict) or not isinstance(change.get("preset"), str) or presets is None:
            self._answer(400, {"error": "expected an object with preset"})
            return
        try:
            presets.switch(change["preset"])
        except (AirloomError, ScenarioError) as error:
            self._answer(200, {**_state(self.server), "said": str(error)})
        else:
            self._answer(200, {**_state(self.server), "said": f"switching to {change['preset']}"})

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        text = (resources.files("airloom.control") / "page.html").read_text(encoding="utf-8")
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._send(200, "text/html; charset=utf-8", text.replace("NONCE", nonce).encode(), policy)

    def _answer(self, status: int, said: dict[str, Any]) -> None:
        octets = json.dumps(said).encode()
        self._send(status, "application/json", octets, "default-src 'none'; frame-ancestors 'none'")

    def _send(self, status: int, kind: str, octets: bytes, policy: str) -> None:
        more = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        self.answer(status, kind, octets, more)


def _names(host: str, port: int) -> set[str]:
    """What a browser may say in Host: it leaves port 80 out.

    >>> sorted(_names("localhost", 80))
    ['localhost', 'localhost:80']
    """
    return {f"{host}:{port}"} | ({host} if port == 80 else set())


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _state(server: _Server) -> dict[str, Any]:
    desk, presets = server.desk, server.presets
    at, rows = desk.look()
    return {
        **({} if presets is None else {"presets": {"now": presets.now(), "all": presets.all}}),
        "at_s": at,
        "over": desk.is_over,
        "said": desk.said,
        "rows": [{**row._asdict(), "verb": row.verb, "press": row.press} for row in rows],
    }
