"""Proxies by name, each with a link of its own."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import zlib
from collections.abc import Mapping
from typing import Any

from airloom._core import DriveError
from airloom.errors import AirloomError
from airloom.links import Link, link
from airloom.toxics.link import LinkToxics
from airloom.toxics.relay import Relay
from airloom.toxics.toxic import Refused

#: Proxies at a time.
_MOST = 64
_NAME = re.compile(r"[^\x00-\x1f/?#]{1,200}")


class Proxy:
    """TCP connections to `listen` go over a link to `upstream`."""

    def __init__(self, name: str, preset: str, seed: int, *, anywhere: bool) -> None:
        self.name = name
        self.listen = ""
        self.upstream = ""
        self._anywhere = anywhere
        # Another seed for each proxy, the same one every time.
        self._seed = seed + zlib.crc32(name.encode())
        self._relay: Relay | None = None
        self._link: Link = link(preset, seed=self._seed, enter=False)
        self._link.__enter__()
        understood = self._link.scenario.understood
        self.link = LinkToxics(self._link.control, next(iter(understood["links"])), understood, self._seed)

    @property
    def is_enabled(self) -> bool:
        """Does it listen?"""
        return self._relay is not None

    def is_at(self, listen: str, upstream: str) -> bool:
        """Are these its addresses? `localhost:80` is 127.0.0.1:80."""
        return upstream == self.upstream and (listen == self.listen or _numeric(listen) == self.listen)

    def set(self, listen: str, upstream: str, *, enabled: bool) -> None:
        """Listens there, or does not. Connections end where something changes. Raises `Refused`."""
        if ((listen, upstream) == ("", "") or self.is_at(listen, upstream)) and enabled == self.is_enabled:
            return
        there = _address(upstream, "upstream")
        self.disable()
        if enabled:
            listener = self._bound(listen)
            host, port = listener.getsockname()[:2]
            self.listen = _written(host, port)
            self._relay = Relay(self._link, listener, there, self.link.toxics, self._seed)
        else:
            self.listen = listen
        self.upstream = upstream

    def _bound(self, listen: str) -> socket.socket:
        host, port = _address(listen, "listen")
        try:
            family, kind, protocol, _, address = _resolved(host, port)
            if not self._anywhere and not ipaddress.ip_address(str(address[0])).is_loopback:
                raise Refused(400, f"listen {listen}: this is not loopback; --anywhere allows it")
            listener = socket.socket(family, kind, protocol)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(address)
                listener.listen(128)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise Refused(500, f"listen {listen}: {error.strerror or error}") from None
        return listener

    def disable(self) -> None:
        """Listens no more, and ends every connection."""
        if self._relay is not None:
            self._relay.close()
            self._relay = None

    def close(self) -> None:
        """Ends it, and its link."""
        self.disable()
        self.link.close()
        self._link.__exit__(None, None, None)

    def document(self) -> dict[str, Any]:
        """As clients know it."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.is_enabled,
            "toxics": [toxic.document() for toxic in self.link.toxics.all()],
        }


def _address(text: str, what: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    try:
        host.encode("idna")  # as whoever looks it up does
        if not colon or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
            raise ValueError
    except ValueError:
        raise Refused(400, f"{what} {text!r}: expected HOST:PORT") from None
    return host.removeprefix("[").removesuffix("]"), int(port)


def _resolved(host: str, port: int) -> tuple[Any, Any, int, str, Any]:
    """The first address of a name; without one it is that of loopback."""
    return socket.getaddrinfo(host or "127.0.0.1", port, type=socket.SOCK_STREAM)[0]


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _numeric(listen: str) -> str:
    """The same without a name, if that leads to an address.

    >>> [_numeric(text) for text in (":80", "127.0.0.1:80", "[::1]:80")]
    ['127.0.0.1:80', '127.0.0.1:80', '[::1]:80']
    """
    try:
        return _written(*_resolved(*_address(listen, "listen"))[4][:2])
    except OSError:
        return listen


class Proxies:
    """All proxies of a process. Threads may share it."""

    def __init__(self, preset: str = "wireline", seed: int = 1, *, anywhere: bool = False) -> None:
        """Links are of this preset, bearer or scenario; `anywhere`: proxies may listen beyond loopback."""
        self._preset, self._seed, self._anywhere = preset, seed, anywhere
        self._proxies: dict[str, Proxy] = {}
        self._lock = threading.RLock()

    def all(self) -> dict[str, Proxy]:
        """All of them, by name."""
        with self._lock:
            return dict(self._proxies)

    def get(self, name: str) -> Proxy:
        """The one of this name. Raises `Refused`."""
        with self._lock:
            if name not in self._proxies:
                raise Refused(404, "proxy not found")
            return self._proxies[name]

    def create(self, said: Any) -> Proxy:
        """A further proxy. Raises `Refused`."""
        name, listen, upstream, enabled = _read(said)
        with self._lock:
            if name in self._proxies:
                raise Refused(409, "proxy already exists")
            if len(self._proxies) >= _MOST:
                raise Refused(409, f"{_MOST} proxies are as many as there can be")
            try:
                proxy = Proxy(name, self._preset, self._seed, anywhere=self._anywhere)
            except (AirloomError, DriveError) as error:
                raise Refused(500, str(error)) from None
            try:
                proxy.set(listen, upstream, enabled=enabled)
            except BaseException:
                proxy.close()
                raise
            self._proxies[name] = proxy
            return proxy

    def update(self, name: str, said: Any) -> Proxy:
        """Changes one; what is left out stays. Raises `Refused`."""
        if not isinstance(said, Mapping):
            raise Refused(400, "bad request body: expected an object")
        with self._lock:
            proxy = self.get(name)
            before = proxy.document()
            _, listen, upstream, enabled = _read({**before, **{k: v for k, v in said.items() if v not in (None, "")}})
            proxy.set(listen, upstream, enabled=enabled)
            return proxy

    def populate(self, said: Any) -> list[Proxy]:
        """Proxies as in a list; what is there as it says stays. Raises `Refused`."""
        if not isinstance(said, list):
            raise Refused(400, "bad request body: expected a list of proxies")
        wanted = [_read(each) for each in said]
        made = []
        with self._lock:
            for each, (name, listen, upstream, _) in zip(said, wanted, strict=True):
                there = self._proxies.get(name)
                if there is None or not there.is_at(listen, upstream):
                    if there is not None:
                        self.delete(name)
                    there = self.create(each)
                made.append(there)
        return made

    def delete(self, name: str) -> None:
        """Ends one. Raises `Refused`."""
        with self._lock:
            proxy = self.get(name)
            del self._proxies[name]
            proxy.close()

    def reset(self) -> None:
        """All listen, and nothing is done to any."""
        with self._lock:
            for proxy in self._proxies.values():
                proxy.link.clear()
                proxy.set(proxy.listen, proxy.upstream, enabled=True)

    def close(self) -> None:
        """Ends all of them."""
        with self._lock:
            for name in list(self._proxies):
                self.delete(name)


def _read(said: Any) -> tuple[str, str, str, bool]:
    if not isinstance(said, Mapping):
        raise Refused(400, "bad request body: expected an object")
    for key in ("name", "upstream"):
        if not said.get(key):
            raise Refused(400, f"missing required field: {key}")
    name, listen, upstream = said["name"], said.get("listen") or "127.0.0.1:0", said["upstream"]
    enabled = said.get("enabled", True)
    if not all(isinstance(text, str) for text in (name, listen, upstream)) or not isinstance(enabled, bool):
        raise Refused(400, "bad request body: name, listen and upstream are texts, enabled is true or false")
    if not _NAME.fullmatch(name):
        raise Refused(400, "bad request body: a name has no slash and no control characters")
    return name, listen, upstream, enabled
