"""DHCP for the devices behind a gateway: messages (RFC 2131, RFC 2132), and who has which address.

A server for one network of a few devices, without relays: no library of Python's is kept up that has the format alone.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Interface
from typing import NamedTuple

SERVER_PORT, CLIENT_PORT = 67, 68

#: Types of messages (RFC 2132, 9.6).
DISCOVER, OFFER, REQUEST, DECLINE, ACK, NAK, RELEASE, INFORM = range(1, 9)

#: Options (RFC 2132, by section): 3.3, 3.5, 3.8, 3.14, 5.1, 5.3, 9.1, 9.2, 9.6, 9.7, 9.14.
_MASK, _ROUTER, _SERVERS, _HOST_NAME, _MTU, _BROADCAST = 1, 3, 6, 12, 26, 28
_REQUESTED, _LEASE, _TYPE, _SERVER, _CLIENT = 50, 51, 53, 54, 61
_PAD, _END = 0, 255

_COOKIE = bytes((99, 130, 83, 99))
_FIXED = 236
#: Clients may expect as many octets as BOOTP has (RFC 2131, 2: a message of 576 can always be taken).
_SHORTEST = 300

#: Seconds: of a lease, and how long an address that was offered, or that somebody else was found to use, is kept.
LEASE_S = 3600
_OFFER_S, _DECLINED_S = 60, 600

#: Octets by which a client is known, at most. An option in several parts may be as long as a datagram.
_LONGEST_CLIENT = 64


class Request(NamedTuple):
    """What a client says."""

    kind: int
    #: As they are sent back: transaction, flags, hardware address.
    transaction: bytes
    flags: bytes
    hardware: bytes
    #: The address that it uses already, if it does (`ciaddr`).
    address: IPv4Address
    options: dict[int, bytes]

    @property
    def client(self) -> bytes:
        """By what it is known: the name that it gives itself, else its hardware address (RFC 2131, 4.2)."""
        client = self.options.get(_CLIENT) or self.hardware
        return client if len(client) <= _LONGEST_CLIENT else hashlib.sha256(client).digest()

    @property
    def requested(self) -> IPv4Address | None:
        """The address that it would like."""
        return _address(self.options.get(_REQUESTED, b""))

    @property
    def server(self) -> IPv4Address | None:
        """The server whose offer it takes."""
        return _address(self.options.get(_SERVER, b""))

    @property
    def host_name(self) -> str:
        """What it calls itself: anything, or nothing."""
        return self.options.get(_HOST_NAME, b"").rstrip(b"\0").decode("utf-8", "replace")


def _address(octets: bytes) -> IPv4Address | None:
    return IPv4Address(octets) if len(octets) == 4 else None


def parse(octets: bytes) -> Request | None:
    """The message of a client on this link, over Ethernet; `None` if it is none."""
    # BOOTREQUEST, Ethernet, six octets of address; through a relay (`giaddr`) it would be of another network.
    if len(octets) < _FIXED + 4 or octets[:3] != bytes((1, 1, 6)) or octets[_FIXED : _FIXED + 4] != _COOKIE:
        return None
    if any(octets[24:28]):
        return None
    options: dict[int, bytes] = {}
    for code, value in _options(octets[_FIXED + 4 :]):
        # RFC 3396 (7): what comes in several parts is put together.
        options[code] = options.get(code, b"") + value
    kind = options.get(_TYPE, b"")
    if len(kind) != 1:
        return None
    return Request(kind[0], octets[4:8], octets[10:12], octets[28:34], IPv4Address(octets[12:16]), options)


def _options(octets: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(octets) and octets[at] != _END:
        if octets[at] == _PAD:
            at += 1
            continue
        length = octets[at + 1] if at + 1 < len(octets) else 0
        yield octets[at], octets[at + 2 : at + 2 + length]
        at += 2 + length


class Answer(NamedTuple):
    """What a client is told."""

    kind: int
    #: None in a refusal.
    address: IPv4Address | None


def emit(request: Request, answer: Answer, router: IPv4Interface, servers: Iterable[IPv4Address] = ()) -> bytes:
    """The message to the client."""
    options = [(_TYPE, bytes((answer.kind,))), (_SERVER, router.ip.packed)]
    if answer.kind != NAK:
        if request.kind != INFORM:
            options.append((_LEASE, LEASE_S.to_bytes(4)))
        options += [(_MASK, router.netmask.packed), (_BROADCAST, router.network.broadcast_address.packed)]
        options += [(_ROUTER, router.ip.packed), (_MTU, (1500).to_bytes(2))]
        if asked := b"".join(server.packed for server in servers)[:252]:
            options.append((_SERVERS, asked))
    given = answer.address.packed if answer.address else bytes(4)
    # A refusal has neither address (RFC 2131, table 3).
    kept = request.address.packed if answer.kind == ACK else bytes(4)
    head = bytes((2, 1, 6, 0)) + request.transaction + bytes(2) + request.flags + kept + given + bytes(8)
    body = head + request.hardware.ljust(16 + 64 + 128, b"\0") + _COOKIE
    body += b"".join(bytes((code, len(value))) + value for code, value in options)
    return (body + bytes((_END,))).ljust(_SHORTEST, b"\0")


class _Lease(NamedTuple):
    client: bytes
    until: float


class Leases:
    """Who has which address of a network; bounded by the addresses that it has to give."""

    def __init__(self, router: IPv4Interface) -> None:
        """All but the router's own address and those beside it are free."""
        self.router = router
        self._pool = [address for address in router.network.hosts() if address > router.ip + 8]
        self._leases: dict[IPv4Address, _Lease] = {}

    def keep(self, client: bytes, address: IPv4Address, now: float) -> None:
        """Somebody has this address, as is known from before."""
        if address in self._pool:
            self._leases[address] = _Lease(client, now + LEASE_S)

    def answer(self, request: Request, now: float) -> Answer | None:
        """What this client is told at second `now`, if anything (RFC 2131, 4.3)."""
        mine = self._mine(request.client, now)
        if request.kind == DISCOVER:
            wanted = request.requested
            offered = mine or (wanted if wanted and self._is_free(wanted, now) else self._free(request.client, now))
            if offered is None:
                return None
            if mine is None:
                self._leases[offered] = _Lease(request.client, now + _OFFER_S)
            return Answer(OFFER, offered)
        if request.kind == REQUEST:
            if request.server not in (None, self.router.ip):
                # It has taken another server's offer.
                return None
            wanted = request.requested or request.address
            if wanted != mine and not self._is_free(wanted, now):
                return Answer(NAK, None)
            if mine is not None and mine != wanted:
                del self._leases[mine]
            self._leases[wanted] = _Lease(request.client, now + LEASE_S)
            return Answer(ACK, wanted)
        if request.kind == DECLINE and mine is not None and request.requested == mine:
            # Somebody uses it who was not given it.
            self._leases[mine] = _Lease(b"", now + _DECLINED_S)
        if request.kind == RELEASE and mine is not None and request.address == mine:
            del self._leases[mine]
        return Answer(ACK, None) if request.kind == INFORM else None

    def _mine(self, client: bytes, now: float) -> IPv4Address | None:
        had = (address for address, lease in self._leases.items() if lease.client == client and lease.until > now)
        return next(had, None)

    def _is_free(self, address: IPv4Address, now: float) -> bool:
        lease = self._leases.get(address)
        return address in self._pool and (lease is None or lease.until <= now)

    def _free(self, client: bytes, now: float) -> IPv4Address | None:
        """The same for the same client where that is possible: a server that has forgotten gives it again."""
        first = zlib.crc32(client) % len(self._pool)
        places = self._pool[first:] + self._pool[:first]
        return next((address for address in places if self._is_free(address, now)), None)
