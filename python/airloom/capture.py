"""The packets of a capture that a run wrote, for whoever wants to look at their octets."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from airloom.errors import UsageError

#: Types of blocks (pcapng, sections 4.2 and 4.3), and options: an interface's name, a packet's comment and its number.
_INTERFACE, _PACKET, _NAME, _COMMENT, _NUMBER = 1, 6, 2, 1, 5

#: Octets of a block that has nothing in it.
_SHORTEST = {_INTERFACE: 20, _PACKET: 32}


class Captured(NamedTuple):
    """A packet where it was seen."""

    #: Name of the observation point.
    point: str
    at_s: float
    octets: bytes
    #: What became of it, where its point tells.
    comment: str = ""

    @property
    def payload(self) -> bytes:
        """What a datagram of IPv4 carries."""
        return self.octets[4 * (self.octets[0] & 15) : int.from_bytes(self.octets[2:4])]


def packets(file: Path) -> Iterator[Captured]:
    """The packets of a pcapng file with timestamps in nanoseconds, as ours are."""
    return (packet for _, packet in numbered(file))


def numbered(file: Path) -> Iterator[tuple[int, Captured]]:
    """The same, each with its `pkt_id` in the packets table; 0 where it has none. Raises `UsageError` on damage."""
    data = file.read_bytes()
    names: list[str] = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at) if at + 12 <= len(data) else (0, 0)
        if length < _SHORTEST.get(kind, 12) or length % 4 or at + length > len(data):
            raise UsageError(f"{file} is cut or corrupt")
        if kind == _INTERFACE:
            names.append(_option(data[at + 16 : at + length - 4], _NAME).decode(errors="replace"))
        elif kind == _PACKET:
            interface, high, low, captured = struct.unpack_from("<IIII", data, at + 8)
            begin = at + 28
            if interface >= len(names) or captured > length - _SHORTEST[_PACKET]:
                raise UsageError(f"{file} is cut or corrupt")
            options = data[begin + (captured + 3) // 4 * 4 : at + length - 4]
            comment = _option(options, _COMMENT).decode(errors="replace")
            packet = Captured(names[interface], ((high << 32) | low) / 1e9, data[begin : begin + captured], comment)
            yield int.from_bytes(_option(options, _NUMBER), "little"), packet
        at += length


class Seen(NamedTuple):
    """A datagram at one end of a capture without losses, and when it came to the other."""

    sent_s: float
    came_s: float
    #: It goes the way of the first one.
    is_up: bool
    packet: Captured


def exchange(file: Path) -> list[Seen]:
    """The datagrams of IPv4 of two hosts that lost none and were both captured, in the order they were sent."""
    at: dict[tuple[bool, bool], list[Captured]] = {}
    seen = list(packets(file))
    # The first point is that of the host that speaks first.
    host, near = seen[0].octets[12:16], seen[0].point
    for packet in seen:
        is_up = packet.octets[12:16] == host
        at.setdefault((is_up, is_up == (packet.point == near)), []).append(packet)
    ways = ((up, zip(at.get((up, True), []), at.get((up, False), []), strict=False)) for up in (True, False))
    return sorted(Seen(sent.at_s, came.at_s, up, sent) for up, both in ways for sent, came in both)


def chunks(packet: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, flags and content of the chunks behind SCTP's common header (RFC 9260, 3)."""
    at = 12
    while at + 4 <= len(packet):
        kind, flags, length = struct.unpack_from(">BBH", packet, at)
        yield kind, flags, packet[at + 4 : at + length]
        at += max(4, (length + 3) // 4 * 4)


def _option(octets: bytes, wanted: int) -> bytes:
    at = 0
    while at + 4 <= len(octets):
        code, length = struct.unpack_from("<HH", octets, at)
        if code == wanted:
            return octets[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return b""
