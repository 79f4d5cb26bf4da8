"""Proxies and toxics over HTTP, with the paths and answers that toxiproxy's clients know."""

from __future__ import annotations

import json
import threading
from http.server import HTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from airloom._core import __version__
from airloom.bounded import Answering, Bounded
from airloom.browser_guard import comes_from_another_page, is_meant_for_us
from airloom.toxics.proxies import Proxies
from airloom.toxics.toxic import Refused

#: The version of toxiproxy whose calls are answered.
VERSION = "2.9.0"
#: Octets of the longest request.
_LONGEST = 1 << 20
_PATIENCE_S = 10
_MOST = 64


class Answer(NamedTuple):
    """Status and document of an answer."""

    status: int
    document: Any = None


def answer(proxies: Proxies, method: str, path: str, said: Any) -> Answer:
    """Does what a request asks for. Raises `Refused`."""
    words = [unquote(word) for word in urlsplit(path).path.strip("/").split("/")]
    change = "PATCH" if method == "POST" else method
    match (method, words):
        case ("GET", ["version"]):
            return Answer(200, {"version": f"{VERSION}+airloom-{__version__}"})
        case ("POST", ["reset"]):
            proxies.reset()
            return Answer(204)
        case ("POST", ["populate"]):
            return Answer(201, {"proxies": [proxy.document() for proxy in proxies.populate(said)]})
        case ("GET", ["proxies"]):
            return Answer(200, {name: proxy.document() for name, proxy in proxies.all().items()})
        case ("POST", ["proxies"]):
            return Answer(201, proxies.create(said).document())
        case ("GET", ["proxies", name]):
            return Answer(200, proxies.get(name).document())
        case ("DELETE", ["proxies", name]):
            proxies.delete(name)
            return Answer(204)
        case (_, ["proxies", name]) if change == "PATCH":
            return Answer(200, proxies.update(name, said).document())
        case ("GET", ["proxies", name, "toxics"]):
            return Answer(200, [toxic.document() for toxic in proxies.get(name).link.toxics.all()])
        case ("POST", ["proxies", name, "toxics"]):
            return Answer(200, proxies.get(name).link.add(said).document())
        case ("GET", ["proxies", name, "toxics", toxic]):
            return Answer(200, proxies.get(name).link.toxics.get(toxic).document())
        case ("DELETE", ["proxies", name, "toxics", toxic]):
            proxies.get(name).link.remove(toxic)
            return Answer(204)
        case (_, ["proxies", name, "toxics", toxic]) if change == "PATCH":
            return Answer(200, proxies.get(name).link.update(toxic, said).document())
    raise Refused(404, "there is no such path")


class HttpFace:
    """Answers on a port of loopback until it is closed."""

    def __init__(self, proxies: Proxies, host: str, port: int) -> None:
        """Begins; `OSError` where the port is taken."""
        self._server = _Server((host, port), _Handler)
        self._server.proxies = proxies
        self.address = f"{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends; the port is free again."""
        self._server.shutdown()
        self._server.server_close()


class _Server(Bounded, HTTPServer):
    proxies: Proxies
    places = threading.BoundedSemaphore(_MOST)


class _Handler(Answering):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S

    def _do(self) -> None:
        try:
            said = self._body()
            if not is_meant_for_us(self.headers) or comes_from_another_page(self.headers):
                raise Refused(403, "this request comes from a page of another place")
            done = answer(self.server.proxies, self.command, self.path, said)
        except Refused as error:
            done = Answer(error.status, {"error": str(error), "status": error.status})
        octets = b"" if done.document is None else json.dumps(done.document).encode()
        self.answer(done.status, "application/json", octets, {"X-Content-Type-Options": "nosniff"})

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isascii() or not length.isdecimal() or len(length) > 9:
            self.close_connection = True
            raise Refused(411, "a request says how long it is")
        if int(length) > _LONGEST:
            self.close_connection = True
            raise Refused(413, f"a request has at most {_LONGEST} octets")
        octets = self.rfile.read(int(length))
        if not octets.strip():
            return None
        try:
            return json.loads(octets)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"bad request body: {error}") from None

    do_GET = do_POST = do_PATCH = do_DELETE = _do
