"""What left the server and what reached the mobile, from captures: segments of TCP, chunks of SCTP."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from airloom.capture import Captured, chunks, packets
from airloom.errors import UsageError
from airloom.run import Run

TCP, SCTP = 6, 132
#: DATA chunks, and their flags (RFC 9260, 3.3.1).
DATA, END, BEGIN = 0, 1, 2


class Unit(NamedTuple):
    """A segment with data, or a DATA chunk."""

    #: Sequence number of its first octet, or its TSN.
    number: int
    #: Its stream; TCP has one.
    stream: int
    #: Number of its message in the stream, and whether the message begins and ends with it; nothing of the kind in TCP.
    message: int = 0
    begins: bool = True
    ends: bool = True


def units(packet: Captured) -> Iterator[Unit]:
    """Those of an IPv4 datagram."""
    protocol, payload = packet.octets[9], packet.payload
    if protocol == TCP:
        if len(payload) > 4 * (payload[12] >> 4):
            yield Unit(int.from_bytes(payload[4:8]), 0)
    elif protocol == SCTP:
        for kind, flags, content in chunks(payload):
            if kind == DATA:
                tsn, stream, message = struct.unpack_from(">IHH", content)
                yield Unit(tsn, stream, message, bool(flags & BEGIN), bool(flags & END))


class Transfer(NamedTuple):
    """A run's units on their way to the mobile, by number: when each was first sent and when it first arrived."""

    sent: dict[int, float]
    arrived: dict[int, float]
    of: dict[int, Unit]

    def lower(self) -> list[int]:
        """Numbers in their order. A run has far fewer than would wrap, but may begin anywhere."""
        first = next(iter(self.sent))
        return sorted(self.sent, key=lambda n: (n - first) % 2**32)


def transfer(run: Run) -> Transfer:
    """Reads the capture of a run that has one at the server and at the mobile."""
    if run.capture is None:
        raise UsageError(f"{run.folder} has no capture")
    found = Transfer({}, {}, {})
    mobile: bytes | None = None
    for packet in packets(run.capture):
        # The mobile speaks first.
        mobile = mobile or packet.octets[12:16]
        if packet.octets[16:20] != mobile:
            continue
        for unit in units(packet):
            if packet.point.startswith("origin."):
                found.sent.setdefault(unit.number, packet.at_s)
                found.of.setdefault(unit.number, unit)
            else:
                found.arrived.setdefault(unit.number, packet.at_s)
    return found


def holes(of: Transfer) -> Iterator[tuple[float, float]]:
    """When the mobile first had something behind a missing unit, and when that came; if more was sent after that."""
    latest = max(of.sent.values())
    for number, came in of.arrived.items():
        later = [at for n, at in of.arrived.items() if of.sent[n] > of.sent[number] and at < came]
        if later and latest > min(later):
            yield min(later), came


def sent_on(of: Transfer) -> list[int]:
    """New units that the server sent during each hole."""
    return [sum(opened < at < came for at in of.sent.values()) for opened, came in holes(of)]


def waits(of: Transfer) -> list[float]:
    """How long each unit that had arrived waited for those before it in its stream, seconds."""
    ready: dict[int, float] = defaultdict(float)
    found = []
    for number in of.lower():
        if number in of.arrived:
            stream = of.of[number].stream
            ready[stream] = max(ready[stream], of.arrived[number])
            found.append(ready[stream] - of.arrived[number])
    return found


def done(of: Transfer) -> dict[int, float]:
    """When the last unit of each stream was there, seconds since the server first sent."""
    began = min(of.sent.values())
    last: dict[int, float] = defaultdict(float)
    for number, at in of.arrived.items():
        stream = of.of[number].stream
        last[stream] = max(last[stream], at - began)
    return last


def contradictions(of: Transfer) -> int:
    """Chunks whose TSN, number of message or bounds do not follow from those before."""
    wrong = 0
    before: int | None = None
    streams: dict[int, Unit] = {}
    for number in of.lower():
        unit = of.of[number]
        wrong += before is not None and number != (before + 1) % 2**32
        last = streams.get(unit.stream)
        if last is None:
            wrong += (unit.message, unit.begins) != (0, True)
        else:
            wrong += unit.message != (last.message + last.ends) % 2**16 or unit.begins != last.ends
        before, streams[unit.stream] = number, unit
    return wrong
