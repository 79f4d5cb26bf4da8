"""Files over HTTP/3 from real servers: what `airloom h3 get` does.

QUIC is the library that simulated hosts have, HTTP/3 the machine that they have.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from airloom._core import h3_get
from airloom.errors import RunError, UsageError


@dataclass(frozen=True)
class Fetched:
    """One answer."""

    url: str
    #: Status code.
    status: int
    #: Octets of the body.
    octets: int
    #: Seconds from the beginning of the connection to the first octets of the answer.
    first_s: float
    #: Seconds from there to its end.
    rest_s: float
    #: Where the body is.
    file: Path | None


def get(
    urls: Sequence[str],
    files: Sequence[Path | None],
    *,
    trust: Path | None = None,
    insecure: bool = False,
    patience_s: float = 30.0,
) -> list[Fetched]:
    """Fetches URLs of one server side by side over one connection, each into its file.

    The server has to show a certificate of a public authority, or one that `trust` (a file, PEM) vouches for; on
    loopback, or if it is `insecure`, any will do. Raises `UsageError` for what cannot be asked for, `RunError` if
    an answer did not come whole.

    >>> get(["http://localhost/"], [None])
    Traceback (most recent call last):
    airloom.errors.UsageError: http://localhost/: HTTP/3 has addresses that begin with https://
    """
    parts = [_split(url) for url in urls]
    if not parts or len({part.netloc for part in parts}) != 1:
        raise UsageError("one connection leads to one server: the addresses name none, or several")
    host = parts[0].hostname or ""
    port = parts[0].port or 443
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise RunError(f"{host} has no address: {error.strerror}") from None
    # Of this machine's own addresses `serve h3` listens on that of IPv4, unless told otherwise.
    if all(ipaddress.ip_address(one[4][0]).is_loopback for one in found):
        found.sort(key=lambda one: one[0] == socket.AF_INET6)
    ip, at = str(found[0][4][0]), int(found[0][4][1])
    to = f"[{ip}]:{at}" if found[0][0] == socket.AF_INET6 else f"{ip}:{at}"
    wanted = [(_target(part), file) for part, file in zip(parts, files, strict=True)]
    try:
        got = h3_get(to, host, parts[0].netloc.rpartition("@")[2], wanted, trust, insecure, patience_s)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except ConnectionError as error:
        raise RunError(f"{parts[0].netloc}: {error}") from None
    except OSError as error:
        raise RunError((error.strerror or str(error)).partition(" (os error")[0]) from None
    return [Fetched(url, *answer, file) for url, answer, file in zip(urls, got, files, strict=True)]


def _split(url: str) -> SplitResult:
    try:
        part = urlsplit(url)
        _ = part.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None
    if part.scheme != "https":
        raise UsageError(f"{url}: HTTP/3 has addresses that begin with https://")
    if not part.hostname or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{url}: is no address of a file")
    return part


def _target(part: SplitResult) -> str:
    return (part.path or "/") + (f"?{part.query}" if part.query else "")
