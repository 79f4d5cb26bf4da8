"""WAP on real sockets: a client of gateways, and a listener for pushes.

with Client("127.0.0.1") as wap:
    reply = wap.get("http://example.org/index.wml")
    print(reply.status, reply.text())
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from airloom._core import WapClient, WapError, WapListener, wap_decompile
from airloom.closing import Closing

__all__ = ["PUSH_PORT", "Client", "Push", "Reply", "WapError", "listen", "parse_gateway"]

Headers = list[tuple[str, str]]

#: Ports of gateways (WAP-259): with a session, without one; of phones: push without a session.
SESSION_PORT, CONNECTIONLESS_PORT, PUSH_PORT = 9201, 9200, 2948

#: What a phone says it takes, unless told otherwise.
USUAL_HEADERS: Headers = [
    # Not text/vnd.wap.wml: some gateways (Kannel) compile only for those who do not take the text.
    ("Accept", "application/vnd.wap.wmlc, image/vnd.wap.wbmp, text/plain, */*"),
    ("Accept-Charset", "utf-8"),
    # Not the 1.5 that can be read here: Kannel takes it for the version of WBXML, too, of which 1.3 is the last.
    ("Encoding-Version", "1.3"),
    ("User-Agent", "airloom"),
]

#: Content types that are WBXML.
_ENCODED = ("application/vnd.wap.wmlc", "application/vnd.wap.sic", "application/vnd.wap.slc", "application/vnd.wap.coc")


class _Content:
    """Something with a type and a body."""

    content_type: str
    body: bytes

    @property
    def media(self) -> str:
        """The type without its parameters."""
        return self.content_type.split(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """What the type says of the character set."""
        for parameter in self.content_type.split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip('"') or None
        return None

    @property
    def is_encoded(self) -> bool:
        """Is it WBXML?"""
        return self.media in _ENCODED

    def text(self) -> str:
        """WBXML as the document it stands for, text in its character set. Raises ValueError if it is neither."""
        if self.is_encoded:
            return wap_decompile(self.body)
        charset = self.charset or "utf-8"
        try:
            return self.body.decode(charset)
        except LookupError:
            raise ValueError(f"the character set {charset!r} is not known") from None


@dataclass(frozen=True)
class Reply(_Content):
    """What a gateway answered."""

    status: int
    content_type: str
    headers: Headers
    body: bytes


@dataclass(frozen=True)
class Push(_Content):
    """What came unasked."""

    sender: str
    content_type: str
    headers: Headers
    body: bytes


def parse_gateway(text: str, connectionless: bool = False) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `[V6]:PORT` as host and port; without a port the one of the kind. Raises ValueError."""
    usual = CONNECTIONLESS_PORT if connectionless else SESSION_PORT
    host, port = text, ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536)):
        raise ValueError(f"{text!r} is not HOST or HOST:PORT")
    return host, int(port) if port else usual


class Client(Closing):
    """A client of a gateway, with a session until `close`, or `connectionless`. Failures are `WapError`s."""

    def __init__(
        self,
        host: str,
        port: int | None = None,
        *,
        connectionless: bool = False,
        headers: Headers | None = None,
        time_s: float = 30.0,
        maximum_group: int | None = None,
        group_packets: int | None = None,
        client_sdu: int = 256 * 1400,
        acknowledging: str = "user",
        local: str | None = None,
    ) -> None:
        """Opens the session; `time_s` is for that, requests have their own. `acknowledging`: user, at-once, delayed.

        `maximum_group` is how many octets we take before we acknowledge; `group_packets` is how many packets of a long
        request are sent before an acknowledgement is waited for: with 1, long requests arrive whole even at gateways
        that never ask for what is missing (Kannel). `local` is our own address, on a machine that has several.
        """
        if port is None:
            port = CONNECTIONLESS_PORT if connectionless else SESSION_PORT
        self.core = WapClient(
            host,
            port,
            connectionless=connectionless,
            headers=USUAL_HEADERS if headers is None else headers,
            time_s=time_s,
            # A gateway remembers the last number by address: beginning anew with the same one would be verified.
            first=secrets.randbelow(1 << 15),
            client_sdu=client_sdu,
            maximum_group=maximum_group,
            group_packets=group_packets,
            acknowledging=acknowledging,
            local=local,
        )

    def get(self, url: str, headers: Headers | None = None, time_s: float = 60.0) -> Reply:
        """Fetches `url`."""
        return self.request("GET", url, headers, time_s=time_s)

    def post(
        self,
        url: str,
        body: bytes,
        content_type: str = "application/x-www-form-urlencoded",
        headers: Headers | None = None,
        time_s: float = 60.0,
    ) -> Reply:
        """Sends `body` to `url`."""
        return self.request("POST", url, headers, body, content_type, time_s)

    def request(
        self,
        method: str,
        url: str,
        headers: Headers | None = None,
        body: bytes | None = None,
        content_type: str | None = None,
        time_s: float = 60.0,
    ) -> Reply:
        """Waits for the reply; when the time is over the request is aborted, and the session goes on."""
        return Reply(*self.core.request(method, url, headers or [], body, content_type, time_s))

    def push(self, time_s: float) -> Push | None:
        """The next push of the session, if one comes in time."""
        push = self.core.push(time_s)
        return push and Push(*push)

    def close(self) -> None:
        """Ends the session."""
        self.core.close()


def listen(listener: WapListener, time_s: float = math.inf) -> Iterator[Push]:
    """Pushes without a session, until none came for `time_s`."""
    while (push := listener.next(time_s)) is not None:
        yield Push(*push)
