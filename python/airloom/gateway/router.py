"""What devices are told of their IPv6 router: advertisements (RFC 4861, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, IPv6Interface

_SOLICITATION, _ADVERTISEMENT = 133, 134
_SOURCE, _PREFIX, _MTU, _SERVERS = 1, 3, 5, 25
#: On-link, and for addresses that a device makes itself.
_FLAGS = 0xC0

#: Seconds: how long the router is one without another word, and how often there is one.
LIFETIME_S, EVERY_S = 600, 60


def is_solicitation(octets: bytes, hop_limit: int) -> bool:
    """Does somebody on this link ask for a router? What came from further away has another hop limit (6.1.1)."""
    return len(octets) >= 8 and octets[:2] == bytes((_SOLICITATION, 0)) and hop_limit == 255


def advertisement(
    router: IPv6Interface, hardware: bytes, servers: Sequence[IPv6Address] = (), lifetime_s: int = LIFETIME_S
) -> bytes:
    """The router on this link, its network and name servers (RFC 8106); lifetime 0: it is one no more.

    The checksum is for the kernel to fill in.
    """
    head = bytes((_ADVERTISEMENT, 0, 0, 0, 64, 0)) + lifetime_s.to_bytes(2) + bytes(8)
    life = lifetime_s.to_bytes(4)
    parts = [bytes((_SOURCE, 1)) + hardware, bytes((_MTU, 1, 0, 0)) + (1500).to_bytes(4)]
    network = router.network
    parts.append(bytes((_PREFIX, 4, network.prefixlen, _FLAGS)) + 2 * life + bytes(4) + network.network_address.packed)
    if servers:
        some = b"".join(server.packed for server in servers[:8])
        parts.append(bytes((_SERVERS, 1 + len(some) // 8, 0, 0)) + life + some)
    return head + b"".join(parts)
