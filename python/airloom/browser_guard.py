"""What every page and port of ours that a browser on this machine can reach asks of a request before it answers.

Any web page that is open in a browser here can send requests to a port on loopback: forms and simple requests with no
question asked first (CSRF), and under a name of its own that leads here (DNS rebinding) it can read the answers. So a
request has to be meant for us, and one that changes something must not come from another page.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from email.message import Message
from typing import TypeAlias

#: The headers of a request, as `http.server` gives them or as a plain mapping.
Headers: TypeAlias = "Mapping[str, str] | Message[str, str]"


def is_meant_for_us(headers: Headers, names: Collection[str] = ()) -> bool:
    """Was it sent to this machine by address, to `localhost`, or to one of our `names`? A rebound name is none of them.

    >>> [is_meant_for_us({"Host": h}) for h in ("127.0.0.1:80", "[::1]", "localhost:8025", "evil.example", "")]
    [True, True, True, False, False]
    """
    host = _host(headers.get("Host") or "")
    return _is_address(host) or host.lower() in {"localhost", *(name.lower() for name in names)}


def comes_from_another_page(headers: Headers) -> bool:
    """Does a browser say that a page sent it that is not from the very place it goes to?

    Programs that are no browsers say neither `Origin` nor `Sec-Fetch-Site` (Fetch Metadata Request Headers, W3C).

    >>> here = {"Host": "127.0.0.1:80"}
    >>> [comes_from_another_page({**here, "Origin": o}) for o in ("http://127.0.0.1:80", "http://evil.example", "null")]
    [False, True, True]
    """
    origin = headers.get("Origin")
    if origin is not None and origin != f"http://{headers.get('Host') or ''}":
        return True
    return headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")


def _host(said: str) -> str:
    """The host of a Host header, without its port."""
    return said[1:].partition("]")[0] if said.startswith("[") else said.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
