"""What captures say beyond the packets table: chunks of SCTP, segments of WWP, messages of WTP."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from airloom.capture import chunks, numbered

_UDP, _SCTP, _WWP = 17, 132, 253


class Datagram(NamedTuple):
    """A datagram at an observation point."""

    number: int
    point: str
    at_s: float
    source: bytes
    destination: bytes
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
            yield Datagram(number, packet.point, packet.at_s, source, destination, octets[begin:])


def sctp_chunks(capture: Path) -> pl.DataFrame:
    """The DATA, I-DATA and SACK chunks: `point`, `pkt_id`, `tsn`, `stream`, `sack` (RFC 9260, 3.3; RFC 8260, 2.1)."""
    rows = []
    for of in datagrams(capture, _SCTP):
        for kind, _, content in chunks(of.unit):
            if kind in (0, 64):
                rows.append((of.point, of.number, *struct.unpack_from(">IH", content), None))
            elif kind == 3:
                rows.append((of.point, of.number, None, None, *struct.unpack_from(">I", content)))
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
    """A PDU of WTP, or one of WSP without a session."""

    point: str
    at_s: float
    #: Of the transaction: address and port of its initiator, and its TID.
    transaction: tuple[bytes, int, int]
    #: Invoke, Result, Ack, Abort, .. by their numbers (WAP-224, table of PDU types).
    kind: int
    #: The retransmission indicator is set.
    is_again: bool
    #: What WSP says in it, where it begins something.
    says: str


INVOKE, RESULT, ACKNOWLEDGEMENT, ABORT, SEGMENTED_INVOKE, SEGMENTED_RESULT, NEGATIVE = range(1, 8)

_WSP = {0x01: "Connect", 0x05: "Disconnect", 0x06: "Push", 0x07: "ConfirmedPush", 0x08: "Suspend", 0x09: "Resume"}
_METHODS = {0x40: "GET", 0x41: "OPTIONS", 0x42: "HEAD", 0x43: "DELETE", 0x44: "TRACE", 0x60: "POST", 0x61: "PUT"}
_REPLY = 0x04


def messages(capture: Path, ports: Collection[int], *, has_sessions: bool) -> list[Message]:
    """What datagrams from or to one of these ports carry: PDUs of WTP, or without sessions those of WSP.

    Octets that are no PDU are left out.
    """
    found = []
    for of in datagrams(capture, _UDP):
        if len(of.unit) < 8:
            continue
        source, destination = struct.unpack_from(">HH", of.unit)
        if source not in ports and destination not in ports:
            continue
        try:
            found += [_wtp(of, pdu) for pdu in concatenated(of.unit[8:])] if has_sessions else [_datagram(of)]
        except (IndexError, struct.error):
            continue
    return found


def _transaction(of: Datagram, *, is_initiators: bool, tid: int) -> tuple[bytes, int, int]:
    source, destination = struct.unpack_from(">HH", of.unit)
    return (of.source, source, tid) if is_initiators else (of.destination, destination, tid)


def _wtp(of: Datagram, pdu: bytes) -> Message:
    kind, (tid,) = (pdu[0] >> 3) & 15, struct.unpack_from(">H", pdu, 1)
    # The responder sets the highest bit of the TID.
    transaction = _transaction(of, is_initiators=tid < 0x8000, tid=tid & 0x7FFF)
    says = _says(pdu[content_begins(pdu) :]) if kind == INVOKE else ""
    return Message(of.point, of.at_s, transaction, kind, bool(pdu[0] & 1), says)


def _datagram(of: Datagram) -> Message:
    """Without a session a number of one octet stands before the PDU (WAP-230, 8.1)."""
    tid, kind = of.unit[8], of.unit[9]
    is_reply = kind == _REPLY
    transaction = _transaction(of, is_initiators=not is_reply, tid=tid)
    says = "" if is_reply else _says(of.unit[9:])
    return Message(of.point, of.at_s, transaction, RESULT if is_reply else INVOKE, False, says)


def content_begins(pdu: bytes) -> int:
    """Where the content of an Invoke or a Result of WTP begins, behind the variable header (WAP-224, 8.4)."""
    at = 4 if (pdu[0] >> 3) & 15 == INVOKE else 3
    more = bool(pdu[0] & 0x80)
    while more:  # items of the variable header, long or short
        more = bool(pdu[at] & 0x80)
        at += 2 + pdu[at + 1] if pdu[at] & 4 else 1 + (pdu[at] & 3)
    return at


def concatenated(octets: bytes) -> Iterator[bytes]:
    """The PDUs of a datagram: one, or after an octet of 0 several, each behind its length (WAP-224, 7.5)."""
    if octets[0] != 0:
        yield octets
        return
    at = 1
    while at < len(octets):
        length = octets[at]
        at += 1
        if length & 0x80:
            length = (length & 0x7F) << 8 | octets[at]
            at += 1
        yield octets[at : at + length]
        at += length


def _says(pdu: bytes) -> str:
    """What a PDU of WSP asks for (WAP-230, 8.2)."""
    method = _METHODS.get(pdu[0]) if pdu else None
    if method is None:
        return _WSP.get(pdu[0], "") if pdu else ""
    length, at = _uintvar(pdu, 1)
    if method in ("POST", "PUT"):  # the length of the headers stands between
        _, at = _uintvar(pdu, at)
    return f"{method} {pdu[at : at + length].decode('latin-1')}"


def _uintvar(octets: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and where what follows it begins."""
    number = 0
    while True:
        number = number << 7 | (octets[at] & 0x7F)
        at += 1
        if not octets[at - 1] & 0x80:
            return number, at
