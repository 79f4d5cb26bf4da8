"""When all octets of each object had arrived at the mobile, from a capture there, whatever was missing of others.

HTTP/2 in clear over TCP, SCTP, and QUIC's packets without protection (`session = "model"`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from airloom.capture import Captured, chunks, packets
from airloom.errors import UsageError
from airloom.run import Run

TCP, UDP, SCTP = 6, 17, 132

#: Octets of the frame header of HTTP/2 (RFC 9113, 4.1).
_FRAME = 9
#: A DATA chunk of SCTP (RFC 9260, 3.3.1).
_DATA = 0
#: Of QUIC: octets of connection ids and of tags.
_ID, _TAG = 8, 16
#: The target of a request.
_TARGET = re.compile(rb"GET (\S+) HTTP/1")


def complete(run: Run) -> dict[str, float]:
    """Seconds, by the object's path: when its last octet came."""
    if run.capture is None:
        raise UsageError(f"{run.folder} has no capture")
    seen = list(packets(run.capture))
    protocol = seen[0].octets[9]
    if protocol == SCTP:
        return _of_chunks(seen)
    by_stream = _of_segments(seen) if protocol == TCP else _of_frames(seen)
    # A stream for each request: 1, 3, 5 .. in HTTP/2 (RFC 9113, 5.1.1), 0, 4, 8 .. in QUIC (RFC 9000, 2.1).
    each, first = (2, 1) if protocol == TCP else (4, 0)
    rows = run.objects.iter_rows(named=True)
    return {path(row["url"]): by_stream[each * (row["request"] - 1) + first] for row in rows}


def path(url: str) -> str:
    """The path of an address."""
    return "/" + url.split("/", 3)[3]


class _Datagram(NamedTuple):
    """What is behind an IPv4 header."""

    at_s: float
    is_down: bool
    payload: bytes


def _datagrams(seen: list[Captured]) -> Iterator[_Datagram]:
    # The mobile speaks first.
    mobile = seen[0].octets[12:16]
    for packet in seen:
        yield _Datagram(packet.at_s, packet.octets[16:20] == mobile, packet.payload)


# ---- HTTP/2 over TCP -----------------------------------------------------------------------------------------------


def _of_segments(seen: list[Captured]) -> dict[int, float]:
    """By stream of HTTP/2."""
    pieces: list[tuple[int, bytes, float]] = []
    first = 0
    for datagram in _datagrams(seen):
        number = int.from_bytes(datagram.payload[4:8])
        if datagram.is_down and datagram.payload[13] & 2:  # SYN
            first = number + 1
        elif datagram.is_down:
            data = datagram.payload[4 * (datagram.payload[12] >> 4) :]
            pieces.append(((number - first) % 2**32, data, datagram.at_s))
    total = max(at + len(data) for at, data, _ in pieces)
    octets, came = bytearray(total), np.full(total, np.inf)
    for at, data, when in pieces:
        octets[at : at + len(data)] = data
        np.minimum(came[at : at + len(data)], when, out=came[at : at + len(data)])
    found: dict[int, float] = {}
    at = 0
    while at + _FRAME <= total:
        length, stream = int.from_bytes(octets[at : at + 3]), int.from_bytes(octets[at + 5 : at + 9])
        end = at + _FRAME + length
        found[stream] = max(found.get(stream, 0.0), float(came[at:end].max()))
        at = end
    return found


# ---- SCTP ----------------------------------------------------------------------------------------------------------


def _of_chunks(seen: list[Captured]) -> dict[str, float]:
    """By path: a stream has one request at a time, so that what comes by it is of the last one."""
    asked: dict[int, str] = {}
    known: set[int] = set()
    found: dict[str, float] = {}
    for datagram in _datagrams(seen):
        for number, stream, data in _data(datagram.payload):
            if not datagram.is_down:
                target = _TARGET.match(data)
                if target and target[1].decode() not in found:
                    asked[stream] = target[1].decode()
            elif number not in known:
                known.add(number)
                found[asked[stream]] = datagram.at_s
    return found


def _data(packet: bytes) -> Iterator[tuple[int, int, bytes]]:
    """TSN, stream and user data of the DATA chunks of a packet."""
    for kind, _, content in chunks(packet):
        if kind == _DATA:
            yield *struct.unpack_from(">IH", content), content[12:]


# ---- QUIC ----------------------------------------------------------------------------------------------------------


def _of_frames(seen: list[Captured]) -> dict[int, float]:
    """By stream of QUIC."""
    found: dict[int, float] = {}
    known: dict[int, np.ndarray] = {}
    for datagram in _datagrams(seen):
        if not datagram.is_down:
            continue
        for stream, at, length in stream_frames(datagram.payload[8:]):
            have = known.setdefault(stream, np.zeros(0, dtype=bool))
            if len(have) < at + length:
                have = known[stream] = np.concatenate([have, np.zeros(at + length - len(have), dtype=bool)])
            # A frame without data may be the end; one with nothing new is a repetition.
            if not length or not have[at : at + length].all():
                have[at : at + length] = True
                found[stream] = datagram.at_s
    return found


def _varint(octets: bytes, at: int) -> tuple[int, int]:
    """A number (RFC 9000, 16), and where it ends."""
    length = 1 << (octets[at] >> 6)
    return int.from_bytes(octets[at : at + length]) & ((1 << (8 * length - 2)) - 1), at + length


#: How many numbers follow the type of a frame that has nothing else (RFC 9000, 19; IMMEDIATE_ACK and ACK_FREQUENCY of
#: draft-ietf-quic-ack-frequency).
_NUMBERS = {
    **dict.fromkeys((0, 1, 30, 0x1F), 0),
    **dict.fromkeys((16, 18, 19, 20, 22, 23, 25), 1),
    **dict.fromkeys((5, 17, 21), 2),
    **{4: 3, 0xAF: 4},
}
_ACK, _ACK_ECN, _CRYPTO, _TOKEN, _NEW_ID, _CHALLENGE, _RESPONSE = 2, 3, 6, 7, 24, 26, 27


def stream_frames(datagram: bytes) -> Iterator[tuple[int, int, int]]:
    """Stream, offset and length of a datagram's STREAM frames, which 1-RTT packets alone have here (RFC 9000, 17)."""
    at = 0
    while at < len(datagram) and datagram[at] & 0x80:
        is_initial = (datagram[at] >> 4) & 3 == 0
        at += 5
        for _ in range(2):
            at += 1 + datagram[at]
        if is_initial:
            token, at = _varint(datagram, at)
            at += token
        length, at = _varint(datagram, at)
        at += length
    if at >= len(datagram) or not datagram[at] & 0x40:
        return
    octets = datagram[at + 1 + _ID + 1 + (datagram[at] & 3) : -_TAG]
    at = 0
    while at < len(octets):
        kind, at = _varint(octets, at)
        if 8 <= kind <= 15:
            stream, at = _varint(octets, at)
            offset, at = _varint(octets, at) if kind & 4 else (0, at)
            length, at = _varint(octets, at) if kind & 2 else (len(octets) - at, at)
            yield stream, offset, length
            at += length
        elif kind in (_ACK, _ACK_ECN):
            for _ in range(2):
                _, at = _varint(octets, at)
            ranges, at = _varint(octets, at)
            for _ in range(1 + 2 * ranges + (3 if kind == _ACK_ECN else 0)):
                _, at = _varint(octets, at)
        elif kind in (_CRYPTO, _TOKEN):
            if kind == _CRYPTO:
                _, at = _varint(octets, at)
            length, at = _varint(octets, at)
            at += length
        elif kind == _NEW_ID:
            for _ in range(2):
                _, at = _varint(octets, at)
            at += 1 + octets[at] + 16
        elif kind in (_CHALLENGE, _RESPONSE):
            at += 8
        elif kind in (0x1C, 0x1D):
            return  # CONNECTION_CLOSE: nothing follows that is of a stream
        elif kind in _NUMBERS:
            for _ in range(_NUMBERS[kind]):
                _, at = _varint(octets, at)
        else:
            raise UsageError(f"a frame of type {kind:#x} in a packet of QUIC")
