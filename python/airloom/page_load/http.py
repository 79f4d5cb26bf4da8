"""Which HTTP a page is loaded by: what browser and server agree on, or the one that is asked for."""

from __future__ import annotations

from airloom.errors import UsageError
from airloom.page_load.address import Address, Where
from airloom.page_load.ways import Asked, Way

#: The versions that can be asked for.
VERSIONS = ("1.1", "2", "3")


def check(version: str | None, address: Address, way: Way) -> None:
    """Raises `UsageError` where a page cannot be loaded by this version."""
    if version is None:
        return
    if version not in VERSIONS:
        raise UsageError(f"no HTTP/{version}; valid: {', '.join(VERSIONS)}")
    if version != "1.1" and not address.is_secure:
        raise UsageError(
            f"browsers speak HTTP/{version} by TLS alone: ask for {address.url.replace('http:', 'https:', 1)}"
        )
    if version == "3" and way.command is not None:
        raise UsageError(f"HTTP/3 is UDP, which no proxy here passes: not with {way.name}")
    if version == "3" and address.where is Where.MACHINE:
        raise UsageError("HTTP/3 is UDP, and this machine's loopback is reached by TCP alone")


def flags(version: str | None, asked: Asked) -> list[str]:
    """Words for Chromium."""
    if version == "3":
        # Told so, it asks these servers by QUIC at once, without having heard of it from them (Alt-Svc, RFC 7838).
        return [f"--origin-to-force-quic-on={','.join(f'{server.name}:{server.port}' for server in asked.servers)}"]
    return {"1.1": ["--disable-quic", "--disable-http2"], "2": ["--disable-quic"]}.get(version or "", [])
