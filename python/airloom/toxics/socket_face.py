"""The same as lines of JSON on a Unix socket that only its owner may open.

A request is an object with `verb`: `list`, `create`, `update`, `delete`, `reset` or `switch`. `proxy` names a proxy,
or a link of an emulation; `toxic` is a toxic of it, or its name. What is created or updated is given as in HTTP.
`switch` is ours: `faults` that the link has in its scenario go off and on.

    {"verb": "create", "proxy": {"name": "db", "upstream": "127.0.0.1:5432"}}
    {"verb": "create", "proxy": "db", "toxic": {"type": "latency", "attributes": {"latency": 200}}}
    {"verb": "delete", "proxy": "db", "toxic": "latency_downstream"}
    {"verb": "switch", "proxy": "db", "faults": {"corrupt": "off"}}

Each has one line as its answer: `{"result": ..}`, or `{"error": .., "status": ..}` with the status as of HTTP.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airloom.bounded import Bounded
from airloom.errors import UsageError
from airloom.toxics.link import LinkToxics
from airloom.toxics.proxies import Proxies
from airloom.toxics.toxic import Refused

#: Octets of the longest line.
_LONGEST = 1 << 20
_MOST = 32


def speak(of: Proxies | Mapping[str, LinkToxics], said: Any) -> Any:
    """Does what a request asks for, of proxies or of the links of an emulation. Raises `Refused`."""
    if not isinstance(said, Mapping):
        raise Refused(400, "bad request: expected an object")
    verb, proxy, toxic = said.get("verb"), said.get("proxy"), said.get("toxic")
    if verb == "list" and proxy is None:
        return _all(of)
    if verb == "reset":
        for link in _links(of).values():
            link.clear()
        if isinstance(of, Proxies):
            of.reset()
        return _all(of)
    if isinstance(of, Proxies) and toxic is None and verb in ("create", "update", "delete"):
        return _of_proxies(of, verb, proxy)
    links = _links(of)
    if not isinstance(proxy, str) or proxy not in links:
        raise Refused(404, f"proxy not found; valid: {', '.join(links)}")
    link = links[proxy]
    match verb:
        case "list":
            return [each.document() for each in link.toxics.all()]
        case "create":
            return link.add(toxic).document()
        case "update" if isinstance(toxic, Mapping):
            return link.update(str(toxic.get("name")), toxic).document()
        case "delete" if isinstance(toxic, str):
            link.remove(toxic)
            return None
        case "switch":
            return link.switch(said.get("faults"))
    raise Refused(400, "bad request: valid verbs: list, create, update, delete, reset, switch")


def _all(of: Proxies | Mapping[str, LinkToxics]) -> Any:
    if isinstance(of, Proxies):
        return {name: proxy.document() for name, proxy in of.all().items()}
    return {name: {"name": name, "toxics": [t.document() for t in link.toxics.all()]} for name, link in of.items()}


def _links(of: Proxies | Mapping[str, LinkToxics]) -> Mapping[str, LinkToxics]:
    return {name: proxy.link for name, proxy in of.all().items()} if isinstance(of, Proxies) else of


def _of_proxies(of: Proxies, verb: str, proxy: Any) -> Any:
    if verb == "create":
        return of.create(proxy).document()
    if verb == "delete":
        of.delete(str(proxy))
        return None
    if not isinstance(proxy, Mapping):
        raise Refused(400, "bad request: expected an object with name, and what is to change")
    return of.update(str(proxy.get("name")), proxy).document()


class SocketFace:
    """Answers on a Unix socket until it is closed."""

    def __init__(self, of: Proxies | Mapping[str, LinkToxics], path: Path) -> None:
        """Begins. Raises `UsageError` where there can be no such socket."""
        self.path = path
        if os.path.lexists(path) and not _is_dead(path):
            raise UsageError(f"{path} is there already")
        try:
            # It has its name once nobody else may open it.
            with tempfile.TemporaryDirectory(prefix=".airloom-", dir=path.parent) as private:
                made = os.path.join(private, "s")
                self._server = _Server(made, _Handler)
                os.chmod(made, 0o600)
                os.rename(made, path)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        self._server.of = of
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends, and takes the socket away."""
        self._server.shutdown()
        self._server.server_close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def _is_dead(path: Path) -> bool:
    """Is it a socket that somebody who was killed has left?"""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return path.is_socket()
        except OSError:
            return False
        return False


class _Server(Bounded, socketserver.UnixStreamServer):
    of: Proxies | Mapping[str, LinkToxics]
    places = threading.BoundedSemaphore(_MOST)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while line := self.rfile.readline(_LONGEST):
            try:
                said = _read(line)
                done: dict[str, Any] = {"result": speak(self.server.of, said)}
            except Refused as error:
                done = {"error": str(error), "status": error.status}
            self.wfile.write(json.dumps(done).encode() + b"\n")
            if not line.endswith(b"\n"):
                return


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"bad request: {error}") from None
