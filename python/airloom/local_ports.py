"""This machine's own ports: who serves on loopback."""

from __future__ import annotations

import socket

#: Both loopback addresses: a server may have one of them alone, as many do that are told `localhost`.
ADDRESSES = ("127.0.0.1", "::1")


def is_served(port: int) -> bool:
    """Does anybody take TCP connections on this port of loopback?"""
    for address in ADDRESSES:
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError:
            continue
        return True
    return False
