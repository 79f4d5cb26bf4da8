"""What stands in the gateway: nothing, or a proxy; and how the browser is told."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from airloom import interpreter
from airloom.errors import Unsupported
from airloom.page_load.squid import squid_config

#: Where proxies listen in the gateway.
PORT = 3128


class Way(NamedTuple):
    """A way from the browser to the server."""

    name: str
    about: str
    #: The program in the gateway, given a folder for its files, the servers' names and their port; `None`: the gateway
    #: is a simulated router.
    command: Callable[[Path, list[str], str], list[str]] | None
    #: Words for Chromium, for the same names and port.
    flags: Callable[[list[str], str], list[str]]
    #: How many ports from `PORT` on are open in the gateway, for so many servers.
    ports: Callable[[int], int]


def _squid(folder: Path, _servers: list[str], _port: str) -> list[str]:
    # A page is loaded once: what is kept would never be asked for again. Started as root it becomes the user that its
    # package made, who may not write here.
    more = ("cache_mem 64 MB", "maximum_object_size_in_memory 1 MB", "cache deny all")
    (folder / "squid.conf").write_text(squid_config(str(PORT), *more))
    # It keeps tables in shared memory under names of its own choice, and takes those that another one left for its own:
    # in the laboratory's mount namespace that memory is nobody else's.
    start = f"mount -t tmpfs shm /dev/shm && exec {program('squid')} -N -f {shlex.quote(str(folder / 'squid.conf'))}"
    return ["/bin/sh", "-c", start]


def _ours(*words: str, number: int = 0) -> list[str]:
    listen = ["--listen", f"[::]:{PORT + number}"]
    # The laboratory's own addresses.
    for network in ("10.77.0.0/16", "fd00:77::/32"):
        listen += ["--allow-client", network, "--allow-origin", network]
    return interpreter.airloom("serve", *words, *listen)


def _split_tcp(_folder: Path, servers: list[str], port: str) -> list[str]:
    """A pair of ports leads to one server: there is a proxy for each."""
    proxies = [_ours("split-tcp", "--to", f"{name}:{port}", number=n) for n, name in enumerate(servers)]
    if len(proxies) == 1:
        return proxies[0]
    return ["/bin/sh", "-c", " & ".join(map(shlex.join, proxies)) + " & wait"]


def _mapped(servers: list[str], port: str) -> list[str]:
    rules = [f"MAP {name}:{port} gateway:{PORT + n}" for n, name in enumerate(servers)]
    return [f"--host-resolver-rules={','.join(rules)}"]


def _by_proxy(servers: list[str], _port: str) -> list[str]:
    # Only the page's own requests go to the proxy: what a browser asks the internet of its own accord finds no way.
    is_ours = " || ".join(f"host == '{name}'" for name in servers)
    return [
        "--proxy-pac-url=data:application/x-ns-proxy-autoconfig,function FindProxyForURL(url, host) "
        f"{{ return {is_ours} ? 'PROXY gateway:{PORT}' : 'DIRECT'; }}"
    ]


#: The ways, by name.
WAYS = {
    way.name: way
    for way in (
        Way("none", "no proxy: the gateway passes datagrams on", None, lambda _servers, _port: [], lambda _: 0),
        Way(
            "split-tcp",
            "airloom serve split-tcp: TCP ends at the gateway, and begins anew",
            _split_tcp,
            _mapped,
            lambda servers: servers,
        ),
        Way(
            "http-cache",
            "airloom serve http-cache: a forwarding HTTP proxy",
            lambda _folder, _servers, _port: _ours("http-cache", "--no-log"),
            _by_proxy,
            lambda _: 1,
        ),
        Way("squid", "Squid as a forwarding HTTP proxy", _squid, _by_proxy, lambda _: 1),
    )
}


def program(name: str) -> str:
    """The path of a program of the system. Raises `Unsupported` (exit code 3) where it is missing."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Unsupported(f"{name} is not installed")
    return path
