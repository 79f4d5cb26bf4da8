"""Whom a page's address means: the server that is started, this machine, or the outside world."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from airloom.errors import UsageError
from airloom.local_ports import is_served

#: How a laboratory calls the host that leads to this machine's loopback.
MACHINE = "host.airloom"
#: What browsers and servers call this machine's loopback.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Hosts of the laboratory that serve nothing.
OTHERS = ("mobile", "gateway")


class Where(Enum):
    """On which side of the laboratory the page's server is."""

    ORIGIN = "a server that is started"
    MACHINE = "this machine's loopback"
    OUTSIDE = "the outside world"


class Address(NamedTuple):
    """A page's address, understood."""

    url: str
    where: Where
    #: As the browser says it, without brackets.
    host: str
    port: int
    #: Where this machine's `/etc/hosts` says another place than the laboratory's would.
    known_as: str | None = None

    @property
    def is_secure(self) -> bool:
        """Is it `https`?"""
        return self.url.partition(":")[0].lower() == "https"

    @property
    def server(self) -> str:
        """What the hosts of the laboratory call its server."""
        return MACHINE if self.where is Where.MACHINE else self.known_as or self.host


def understand(url: str, servers: Collection[str] = ("origin",)) -> Address:
    """The address of a page; `servers` are those that are started. Raises `UsageError` where it cannot be loaded.

    >>> understand("http://localhost:8000/a").where
    <Where.MACHINE: "this machine's loopback">
    >>> understand("https://staging.example/").server
    'staging.example'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url} is no address of a page: {error}") from None
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not host or not host.isprintable() or " " in host:
        raise UsageError(f"{url} is no address of a page: expected http://... or https://...")
    usual = 443 if scheme == "https" else 80
    if host in servers:
        if port not in (None, usual):
            raise UsageError(f"{url}: the server that is started has the ports 80 and 443")
        return Address(url, Where.ORIGIN, host, usual)
    if host in OTHERS:
        raise UsageError(f"{url}: {host} is a host of the laboratory that serves no pages; origin does")
    known_as = _in_hosts_file(host)
    if host == MACHINE or is_loopback(host) or (known_as is not None and is_loopback(known_as)):
        return Address(url, Where.MACHINE, host, port or usual)
    return Address(url, Where.OUTSIDE, host, port or usual, known_as)


def is_loopback(host: str) -> bool:
    """Is this what every machine calls itself?

    >>> is_loopback("app.localhost"), is_loopback("127.0.0.9"), is_loopback("example.org")
    (True, True, False)
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_hosts_file(host: str, file: Path = Path("/etc/hosts")) -> str | None:
    """The address that this machine's own table has for a name: hosts of a laboratory have another one."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        if host in (name.lower() for name in names):
            return address
    return None


def rules(address: Address, loopback: Iterable[int]) -> list[str]:
    """What the browser is told of names (`--host-resolver-rules`) that mean something else inside."""
    wanted = dict.fromkeys((name, port) for port in loopback for name in LOOPBACK)
    if address.where is Where.MACHINE and address.host != MACHINE:
        wanted[(_bracketed(address.host), address.port)] = None
    found = [f"MAP {name}:{port} {MACHINE}:{port}" for name, port in wanted]
    if address.where is Where.OUTSIDE and address.known_as is not None:
        found.append(f"MAP {_bracketed(address.host)} {_bracketed(address.known_as)}")
    return found


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def check_served(address: Address) -> None:
    """Raises `UsageError` where the page is on this machine and nobody serves it."""
    if address.where is Where.MACHINE and not is_served(address.port):
        raise UsageError(f"{address.url}: nothing listens on port {address.port} of this machine's loopback")
