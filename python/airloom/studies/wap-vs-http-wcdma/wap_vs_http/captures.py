"""What stands in a capture: the messages between two hosts, named as their standards name them."""

from __future__ import annotations

from pathlib import Path

from airloom.capture import Captured, exchange
from airloom.plot.on_the_wire import concatenated, content_begins
from airloom.plot.sequence_chart import Arrow

_WTP = {1: "Invoke", 2: "Result", 3: "Ack", 4: "Abort", 5: "Segmented Invoke", 6: "Segmented Result", 7: "Negative Ack"}
_WSP = {0x01: "Connect", 0x02: "ConnectReply", 0x04: "Reply", 0x05: "Disconnect", 0x40: "Get", 0x60: "Post"}


def arrows(file: Path) -> list[Arrow]:
    """The datagrams of a capture without losses at client and server, in the order they were sent."""
    # The client, who is on the left, sends the first one.
    return [Arrow(seen.sent_s, seen.came_s, seen.is_up, label(seen.packet)) for seen in exchange(file)]


def label(datagram: Captured) -> str:
    """What a datagram of WAP or of TCP is, with its octets of content."""
    if datagram.octets[9] == 6:
        return _tcp(datagram.payload)
    return " + ".join(_wtp(pdu) for pdu in concatenated(datagram.payload[8:]))


def options(segment: bytes) -> set[int]:
    """Kinds of the options of a TCP segment (RFC 9293, 3.1)."""
    found, at, end = set(), 20, (segment[12] >> 4) * 4
    while at < end and segment[at]:
        found.add(segment[at])
        at += 1 if segment[at] == 1 else max(segment[at + 1], 2)
    return found


def _tcp(segment: bytes) -> str:
    flags = [name for bit, name in ((2, "SYN"), (1, "FIN"), (4, "RST")) if segment[13] & bit]
    if text := segment[(segment[12] >> 4) * 4 :]:
        what = "GET" if text.startswith(b"GET") else "response" if text.startswith(b"HTTP") else "data"
        flags.append(f"{what}, {len(text)} octets")
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
