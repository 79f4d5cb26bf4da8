"""What stands in a capture: the messages between two hosts, named as their standards name them."""

from __future__ import annotations

import struct
from pathlib import Path

from airloom.capture import packets
from airloom.plot.on_the_wire import concatenated, content_begins
from airloom.plot.sequence_chart import Arrow

_WTP = {1: "Invoke", 2: "Result", 3: "Ack", 4: "Abort", 5: "Segmented Invoke", 6: "Segmented Result", 7: "Negative Ack"}
_WSP = {0x01: "Connect", 0x02: "ConnectReply", 0x04: "Reply", 0x05: "Disconnect", 0x40: "Get", 0x60: "Post"}


def arrows(file: Path, left: str, right: str) -> list[Arrow]:
    """The datagrams between the points `left` and `right` of a capture without losses, in the order they were sent."""
    seen: dict[tuple[str, bool], list[tuple[float, bytes]]] = {}
    home = None
    for point, time, octets, _ in packets(file):
        home = home or octets[12:16]  # the first datagram is the client's, who is on the left
        seen.setdefault((point, octets[12:16] == home), []).append((time, octets))
    found = []
    for is_right in (True, False):
        sender, receiver = (left, right) if is_right else (right, left)
        came = seen.get((receiver, is_right), [])
        for (begin, octets), (end, _) in zip(seen.get((sender, is_right), []), came, strict=False):
            found.append(Arrow(begin, end, is_right, label(octets)))
    return sorted(found)


def label(datagram: bytes) -> str:
    """What a datagram of WAP or of TCP is, with its octets of content."""
    header = (datagram[0] & 15) * 4
    if datagram[9] == 6:
        return _tcp(datagram[header:], struct.unpack_from(">H", datagram, 2)[0] - header)
    return " + ".join(_wtp(pdu) for pdu in concatenated(datagram[header + 8 :]))


def options(segment: bytes) -> set[int]:
    """Kinds of the options of a TCP segment (RFC 9293, 3.1)."""
    found, at, end = set(), 20, (segment[12] >> 4) * 4
    while at < end and segment[at]:
        found.add(segment[at])
        at += 1 if segment[at] == 1 else max(segment[at + 1], 2)
    return found


def _tcp(segment: bytes, length: int) -> str:
    flags = [name for bit, name in ((2, "SYN"), (1, "FIN"), (4, "RST")) if segment[13] & bit]
    content = length - (segment[12] >> 4) * 4
    if content:
        text = segment[(segment[12] >> 4) * 4 :]
        what = "GET" if text.startswith(b"GET") else "response" if text.startswith(b"HTTP") else "data"
        flags.append(f"{what}, {content} octets")
    elif segment[13] & 16:
        flags.append("ACK")
    return " ".join(flags)


def _wtp(pdu: bytes) -> str:
    kind = (pdu[0] >> 3) & 15
    name = _WTP.get(kind, f"WTP {kind}")
    if kind not in (1, 2):
        return name
    at = content_begins(pdu)
    return f"{name}: {_WSP.get(pdu[at], hex(pdu[at]))}, {len(pdu) - at} octets"
