"""What captures say beyond the packets table: chunks of SCTP, segments of WWP, messages of WTP."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from airloom.capture import numbered

_UDP, _SCTP, _WWP = 17, 132, 253


class Datagram(NamedTuple):
    """A datagram at an observation point."""

    number: int
    point: str
    at_s: float
    source: bytes
    destination: bytes
    protocol: int
    #: What follows the IP header.
    unit: bytes


def datagrams(capture: Path, protocol: int) -> Iterator[Datagram]:
    """Those of IPv4 and IPv6 that carry this protocol, whole or as the first fragment."""
    for number, packet in numbered(capture):
        octets = packet.octets
        if not packet.point.endswith(".ip") or len(octets) < 20:
            continue
        if octets[0] >> 4 == 4:
            carried, source, destination, begin = octets[9], octets[12:16], octets[16:20], 4 * (octets[0] & 15)
        else:
            carried, source, destination, begin = octets[6], octets[8:24], octets[24:40], 40
        if carried == protocol:
            yield Datagram(number, packet.point, packet.at_s, source, destination, protocol, octets[begin:])


def sctp_chunks(capture: Path) -> pl.DataFrame:
    """The DATA, I-DATA and SACK chunks: `point`, `pkt_id`, `tsn`, `stream`, `sack` (RFC 9260, 3.3; RFC 8260, 2.1)."""
    rows = []
    for of in datagrams(capture, _SCTP):
        at = 12
        while at + 4 <= len(of.unit):
            kind, _, length = struct.unpack_from(">BBH", of.unit, at)
            if kind in (0, 64):
                rows.append((of.point, of.number, *struct.unpack_from(">IH", of.unit, at + 4), None))
            elif kind == 3:
                rows.append((of.point, of.number, None, None, *struct.unpack_from(">I", of.unit, at + 4)))
            at += max(4, (length + 3) // 4 * 4)
    schema = {"point": pl.String, "pkt_id": pl.UInt64, "tsn": pl.UInt64, "stream": pl.Int64, "sack": pl.UInt64}
    return pl.DataFrame(rows, schema=schema, orient="row")


#: Kinds of segments of WWP.
DATA, NSACK, PROBES, LAST = 2, 3, (4, 6, 8), 13


def wwp_segments(capture: Path, has_ports: bool) -> pl.DataFrame:
    """The segments of WWP: `point`, `pkt_id`, `kind`, `level`, `wave`; ports are four octets before the header."""
    at = 4 if has_ports else 0
    rows = [
        (of.point, of.number, of.unit[at] >> 4, of.unit[at] & 15, of.unit[at + 1])
        for of in datagrams(capture, _WWP)
        if len(of.unit) > at + 1
    ]
    schema = {"point": pl.String, "pkt_id": pl.UInt64, "kind": pl.Int64, "level": pl.Int64, "wave": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


class Message(NamedTuple):
    """A PDU of WTP."""

    point: str
    at_s: float
    #: Of the transaction: address and port of its initiator, and its TID.
    transaction: tuple[bytes, int, int]
    is_initiators: bool
    #: Invoke, Result, Ack, Abort, .. by their numbers (WAP-224, table of PDU types).
    kind: int
    #: The retransmission indicator is set.
    is_again: bool
    #: What WSP says in it, where it begins something.
    says: str


INVOKE, RESULT, ACKNOWLEDGEMENT, ABORT, SEGMENTED_INVOKE, SEGMENTED_RESULT, NEGATIVE = range(1, 8)

_WSP = {0x01: "Connect", 0x05: "Disconnect", 0x06: "Push", 0x07: "ConfirmedPush", 0x08: "Suspend", 0x09: "Resume"}
_METHODS = {0x40: "GET", 0x41: "OPTIONS", 0x42: "HEAD", 0x43: "DELETE", 0x44: "TRACE", 0x60: "POST", 0x61: "PUT"}


def wtp_messages(capture: Path, ports: Collection[int]) -> list[Message]:
    """The PDUs of WTP in datagrams from or to one of these ports."""
    found = []
    for of in datagrams(capture, _UDP):
        if len(of.unit) < 8:
            continue
        source, destination = struct.unpack_from(">HH", of.unit)
        if source not in ports and destination not in ports:
            continue
        for pdu in _concatenated(of.unit[8:]):
            kind, tid = (pdu[0] >> 3) & 15, int.from_bytes(pdu[1:3], "big")
            # The responder sets the highest bit of the TID.
            is_initiators = tid < 0x8000
            initiator = (of.source, source) if is_initiators else (of.destination, destination)
            transaction = (*initiator, tid & 0x7FFF)
            says = _wsp(pdu) if kind == INVOKE else ""
            found.append(Message(of.point, of.at_s, transaction, is_initiators, kind, bool(pdu[0] & 1), says))
    return found


def _concatenated(octets: bytes) -> Iterator[bytes]:
    """The PDUs of a datagram: one, or after an octet of 0 several, each behind its length (WAP-224, 7.5)."""
    if octets[:1] != b"\0":
        yield from (octets,) if len(octets) >= 3 else ()
        return
    at = 1
    while at < len(octets):
        length = octets[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) << 8 | octets[at]
            at += 1
        if length >= 3:
            yield octets[at : at + length]
        at += length


def _wsp(invoke: bytes) -> str:
    """What an Invoke asks for (WAP-230, 8.2)."""
    at, more = 4, bool(invoke[0] & 0x80)
    while more and at + 1 < len(invoke):  # items of the variable header, long or short
        more = bool(invoke[at] & 0x80)
        at += 2 + invoke[at + 1] if invoke[at] & 4 else 1 + (invoke[at] & 3)
    if at + 1 >= len(invoke):
        return ""
    method = _METHODS.get(invoke[at])
    if method is None:
        return _WSP.get(invoke[at], "")
    at += 1
    length = 0
    while True:
        length = length << 7 | (invoke[at] & 0x7F)
        at += 1
        if not invoke[at - 1] & 0x80:
            break
    if method in ("POST", "PUT"):  # the length of the headers stands between
        while invoke[at] & 0x80:
            at += 1
        at += 1
    return f"{method} {invoke[at : at + length].decode('latin-1')}"
