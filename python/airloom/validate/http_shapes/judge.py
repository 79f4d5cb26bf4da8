"""Sends the shapes through a proxy and judges what comes out on either side."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatch
from itertools import groupby
from typing import NamedTuple

from airloom.closing import Closing
from airloom.errors import UsageError
from airloom.validate.http_shapes.shapes import REQUESTS, RESPONSES, Shape
from airloom.validate.http_shapes.strict import Ambiguous, Incomplete, Message, requests, responses

#: Seconds without an octet after which nothing more is waited for.
_QUIET_S = 1.5

#: What `_ask` puts before its own words where a client heard no octet.
_SILENT = b"\0"

#: Shapes that are judged at the same time.
_AT_ONCE = 24

#: Seconds after which a client gives up.
_PATIENCE_S = 8.0


class Seen(NamedTuple):
    """What a proxy did with a shape."""

    #: Statuses that the client heard; `reset` or `closed` if it heard none.
    heard: str
    #: What the origin got of a request, or how the client's answer ended.
    passed: str
    #: Why it is not safe; empty if it is.
    fault: str

    @property
    def words(self) -> tuple[str, str]:
        """For a table."""
        return self.heard, f"UNSAFE: {self.fault}" if self.fault else self.passed


class Found(NamedTuple):
    """A shape and what each proxy did."""

    #: `request` or `response`.
    kind: str
    name: str
    #: Where the standard says what to do with it.
    source: str
    seen: dict[str, Seen]


def chosen(only: str = "*") -> list[tuple[str, Shape]]:
    """Shapes of this name (`*` for any text), each with its kind. Raises `UsageError` if there is none."""
    kinds = (("request", REQUESTS), ("response", RESPONSES))
    found = [(kind, shape) for kind, shapes in kinds for shape in shapes if fnmatch(shape.name, only)]
    if not found:
        raise UsageError(f"no shape is called {only!r}")
    return found


def judge_all(
    shapes: list[tuple[str, Shape]], proxies: dict[str, int], done: Callable[[int], object] = lambda _: None
) -> list[Found]:
    """Each shape with each proxy, by its name and the port of 127.0.0.1 where it listens."""
    # Most of the time goes into waiting whether anything more comes.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = []
        for one in pool.map(lambda one: judge(one, proxies), shapes):
            found.append(one)
            done(len(found))
    return found


def judge(one: tuple[str, Shape], proxies: dict[str, int]) -> Found:
    """A shape with each proxy."""
    kind, shape = one
    through = request if kind == "request" else response
    return Found(kind, shape.name, shape.source, {name: through(shape, port) for name, port in proxies.items()})


def request(shape: Shape, proxy: int) -> Seen:
    """A client sends it."""
    with _Origin(_OK) as origin:
        host = f"127.0.0.1:{origin.port}"
        octets = shape.octets.replace("{url}", f"http://{host}/").replace("{host}", host).encode("latin-1")
        heard = _ask(proxy, octets)
        # What the proxy sends on may come after its answer.
        got = origin.settled()
    statuses = _statuses(heard)
    passed: list[Message] = []
    fault = ""
    for connection in got:
        try:
            for message in requests(connection):
                passed.append(message)
                if message.host != host:
                    fault = f"a request for {host} reaches it as one for {message.host}"
        except Incomplete:  # it broke off: a server answers no such request
            continue
        except Ambiguous as why:
            fault = f"passes on {why}"
    answered = statuses.count("200")
    if not fault and answered != len(passed):
        fault = f"{len(passed)} requests reach the origin, {answered} are answered"
    return Seen(_line(statuses, heard), " + ".join(map(_shown, passed)) or "-", fault)


def response(shape: Shape, proxy: int) -> Seen:
    """An origin answers with it."""
    with _Origin(shape.octets.encode("latin-1")) as origin:
        ask = f"GET http://127.0.0.1:{origin.port}/{{}} HTTP/1.1\r\nHost: 127.0.0.1:{origin.port}\r\n\r\n"
        heard = _ask(proxy, ask.format("first").encode())
        another = _ask(proxy, ask.format("second").encode())
    parts: list[Message] = []
    ending, fault = "whole", ""
    try:
        parts.extend(responses(heard.removeprefix(_SILENT)))
    except Incomplete:
        ending = "broken off"
    except Ambiguous as why:
        ending, fault = "ambiguous", f"passes on {why}"
    if len(parts) > 1:
        fault = f"{len(parts)} answers to one request"
    if any(b"HTTP/1.1" in part.body and not part.to_the_end and part.what == "200" for part in parts):
        fault = "an answer within the answer"
    if any(b"\r\nhello\r\n" in part.body for part in parts):
        fault = "passes chunks on as content"
    if b"hidden" in another:
        fault = "the next client hears what was hidden"
    return Seen(_line(_statuses(heard), heard), ending if parts or ending != "whole" else "-", fault)


#: The origin's answer to what it understands.
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok"


class _Origin(Closing):
    """Notes every octet of each connection, and answers each request: the first one with `first`."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.got: list[bytearray] = []
        self._last = time.monotonic()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def settled(self) -> list[bytes]:
        """What came, once nothing has come for a while."""
        while time.monotonic() - self._last < _QUIET_S:
            time.sleep(0.05)
        return [bytes(each) for each in self.got]

    def close(self) -> None:
        for each in (self._socket, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            noted = bytearray()
            self.got.append(noted)
            threading.Thread(target=self._serve, args=(connection, noted), daemon=True).start()

    def _serve(self, connection: socket.socket, noted: bytearray) -> None:
        answered = 0
        with suppress(OSError):
            while octets := connection.recv(65_536):
                self._last = time.monotonic()
                noted += octets
                for _ in range(_whole(bytes(noted)) - answered):
                    answered += 1
                    connection.sendall(self._first)
                    self._first = _OK


def _whole(octets: bytes) -> int:
    """How many requests are whole by now; where something is ambiguous, one more."""
    count = 0
    try:
        for _ in requests(octets):
            count += 1
    except Incomplete:
        pass
    except Ambiguous:
        count += 1
    return count


def _ask(proxy: int, octets: bytes) -> bytes:
    """What a client hears that sends this and waits until nothing more comes."""
    heard = b""
    end = time.monotonic() + _PATIENCE_S
    with socket.create_connection(("127.0.0.1", proxy), timeout=_PATIENCE_S) as client:
        try:
            client.sendall(octets)
            while time.monotonic() < end:
                client.settimeout(max(_QUIET_S if heard else end - time.monotonic(), 0.01))
                part = client.recv(65_536)
                if not part:
                    break
                heard += part
        except TimeoutError:
            pass
        except OSError:
            return heard or _SILENT + b"reset"
    return heard or _SILENT + (b"closed" if time.monotonic() < end else b"nothing")


def _statuses(heard: bytes) -> list[str]:
    # Not line by line: an answer follows the body of the one before at once.
    return [status.decode() for status in re.findall(rb"HTTP/1\.[01] +([0-9]+)", heard)]


def _line(statuses: list[str], heard: bytes) -> str:
    """`103 103 200`; longer repetitions as `103 x1000`."""
    if not statuses:
        return heard.removeprefix(_SILENT).decode("latin-1") if heard.startswith(_SILENT) else "no status"
    groups = [(status, len(list(same))) for status, same in groupby(statuses)]
    return " ".join(f"{status} x{count}" if count > 3 else " ".join([status] * count) for status, count in groups)


def _shown(message: Message) -> str:
    target = message.target.split("/", 3)[-1] if "://" in message.target else message.target.removeprefix("/")
    path = "/" + (target if len(target) < 20 else target[:17] + "...")
    return f"{message.what} {path}" + (f" ({len(message.body)})" if message.body else "")
