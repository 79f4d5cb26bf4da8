"""What stands in the gateway: nothing, or a proxy; and how the browser is told."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from airloom import interpreter
from airloom.errors import UsageError
from airloom.page_load.squid import squid_config
from airloom.programs import needed

#: Where proxies listen in the gateway.
PORT = 3128
#: The addresses of a laboratory's hosts.
INSIDE = ("10.77.0.0/16", "fd00:77::/32")


class Server(NamedTuple):
    """A server that the browser asks."""

    #: As it stands in the page's address.
    name: str
    port: int
    #: What the gateway calls it.
    host: str
    #: Is it in the outside world?
    is_outside: bool = False

    @property
    def located(self) -> str:
        """Host and port for a program that starts before there is a link over which a name server could be asked.

        Raises `UsageError` if this machine does not know the host.
        """
        host = self.host
        if self.is_outside:
            try:
                found = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM)
            except OSError as error:
                raise UsageError(f"{host}: {error.strerror}") from None
            # A way to the outside world may have no IPv6.
            host = str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Asked(NamedTuple):
    """Who is asked in a load."""

    servers: list[Server]
    #: May the page ask others than these, in the outside world?
    outside: bool = False


class Way(NamedTuple):
    """A way from the browser to the server."""

    name: str
    about: str
    #: The program in the gateway, given a folder for its files and who is asked; `None`: the gateway is a router.
    command: Callable[[Path, Asked], list[str]] | None
    #: Names and ports that lead to a proxy instead, as the browser's rules for names.
    rules: Callable[[Asked], list[str]]
    #: Words for Chromium.
    flags: Callable[[Asked], list[str]]
    #: How many ports from `PORT` on are open in the gateway.
    ports: Callable[[Asked], int]
    #: Is it told the whole address, and looks the server's name up itself?
    is_forward: bool = False


def _squid(folder: Path, asked: Asked) -> list[str]:
    # A page is loaded once: what is kept would never be asked for again. Started as root it becomes the user that its
    # package made, who may not write here.
    more = ("cache_mem 64 MB", "maximum_object_size_in_memory 1 MB", "cache deny all")
    text = squid_config(str(PORT), *more, looks_up=asked.outside)
    (folder / "squid.conf").write_text(text)
    # It keeps tables in shared memory under names of its own choice, and takes those that another one left for its own:
    # in the laboratory's mount namespace that memory is nobody else's.
    start = f"mount -t tmpfs shm /dev/shm && exec {needed('squid')} -N -f {shlex.quote(str(folder / 'squid.conf'))}"
    return ["/bin/sh", "-c", start]


def _ours(asked: Asked, *words: str, number: int = 0) -> list[str]:
    listen = ["--listen", f"[::]:{PORT + number}"]
    # Clients are the laboratory's. Where the page is in the outside world it may be on anybody's private network.
    for network in INSIDE:
        listen += ["--allow-client", network]
    for network in ("0.0.0.0/0", "::/0") if asked.outside else INSIDE:
        listen += ["--allow-origin", network]
    return interpreter.airloom("-q", "serve", *words, *listen)


def _split_tcp(_folder: Path, asked: Asked) -> list[str]:
    """A pair of ports leads to one server: there is a proxy for each."""
    proxies = [_ours(asked, "split-tcp", "--to", server.located, number=n) for n, server in enumerate(asked.servers)]
    if len(proxies) == 1:
        return proxies[0]
    return ["/bin/sh", "-c", " & ".join(map(shlex.join, proxies)) + " & wait"]


def _mapped(asked: Asked) -> list[str]:
    return [f"MAP {server.name}:{server.port} gateway:{PORT + n}" for n, server in enumerate(asked.servers)]


def _by_proxy(asked: Asked) -> list[str]:
    # Only the page's own requests go to the proxy: what a browser asks the internet of its own accord finds no way,
    # where there is none.
    is_ours = "true" if asked.outside else " || ".join(f"host == '{server.name}'" for server in asked.servers)
    return [
        "--proxy-pac-url=data:application/x-ns-proxy-autoconfig,function FindProxyForURL(url, host) "
        f"{{ return {is_ours} ? 'PROXY gateway:{PORT}' : 'DIRECT'; }}"
    ]


def _none(_asked: Asked) -> list[str]:
    return []


#: The ways, by name.
WAYS = {
    way.name: way
    for way in (
        Way("none", "no proxy: the gateway passes datagrams on", None, _none, _none, lambda _: 0),
        Way(
            "split-tcp",
            "airloom serve split-tcp: TCP ends at the gateway, and begins anew",
            _split_tcp,
            _mapped,
            _none,
            lambda asked: len(asked.servers),
        ),
        Way(
            "http-cache",
            "airloom serve http-cache: a forwarding HTTP proxy",
            lambda _folder, asked: _ours(asked, "http-cache", "--no-log"),
            _none,
            _by_proxy,
            lambda _: 1,
            is_forward=True,
        ),
        Way("squid", "Squid as a forwarding HTTP proxy", _squid, _none, _by_proxy, lambda _: 1, is_forward=True),
    )
}
