"""A PIAFS monitor: the frames of PHS circuits in the capture of a run, with what TCP did meanwhile.

The columns are those of the monitor in Kojima, Kamio and Fujise 2000, Fig. 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from airloom.capture import Captured, packets
from airloom.errors import UsageError

#: Points where frames of a circuit are seen as they leave.
_POINT = re.compile(r"(?P<circuit>.+)\.piafs\.(?P<direction>ul|dl)\.tx")
#: Octets of a frame.
_OCTETS = 80


class Frame(NamedTuple):
    """A frame as it left: a row of the monitor."""

    at_s: float
    circuit: str
    #: `ul` or `dl`.
    direction: str
    #: NUM; 0 is a frame without user data.
    number: int
    #: REQ: the lowest number that its sender misses.
    request: int
    #: ACK: flag and number of the frame that its sender received last.
    flag: int
    acknowledged: int
    #: It arrived with a wrong checksum.
    is_error: bool


class Segment(NamedTuple):
    """A segment of TCP beside them."""

    at_s: float
    point: str
    source: int
    destination: int
    sequence: int
    acknowledgement: int
    payload: int


def read(capture: Path) -> tuple[list[Frame], list[Segment]]:
    """The frames and the segments of a capture, each in the order of time.

    >>> import airloom
    >>> run = airloom.load("phs-circuit").run()
    >>> frames, _ = read(run.folder / "trace.pcapng")
    >>> max(frame.number for frame in frames) <= 127
    True
    """
    if not capture.is_file():
        raise UsageError(f"{capture} is not there: record = ['pcapng'] writes it")
    frames: list[Frame] = []
    segments: list[Segment] = []
    for packet in packets(capture):
        place = _POINT.fullmatch(packet.point)
        if place and len(packet.octets) == _OCTETS:
            frames.append(_frame(packet, place["circuit"], place["direction"]))
        elif packet.point.endswith(".ip"):
            segments.extend(_segment(packet))
    return sorted(frames, key=lambda f: f.at_s), sorted(segments, key=lambda s: s.at_s)


def _frame(packet: Captured, circuit: str, direction: str) -> Frame:
    """Its header of three octets: NUM, REQ and ACK of seven bits each, the flag, and the kind of two."""
    header = int.from_bytes(packet.octets[:3], "big")
    numbers = header >> 17, (header >> 10) & 0x7F, (header >> 2) & 1, (header >> 3) & 0x7F
    return Frame(packet.at_s, circuit, direction, *numbers, "CRC error" in packet.comment)


def _segment(packet: Captured) -> Iterator[Segment]:
    """The TCP segment in a datagram of IPv4, if there is one."""
    octets = packet.octets
    if len(octets) < 40 or octets[0] >> 4 != 4 or octets[9] != 6:
        return
    begin = (octets[0] & 15) * 4
    tcp = octets[begin:]
    if len(tcp) < 20:
        return
    ports = int.from_bytes(tcp[:2], "big"), int.from_bytes(tcp[2:4], "big")
    numbers = int.from_bytes(tcp[4:8], "big"), int.from_bytes(tcp[8:12], "big")
    payload = int.from_bytes(octets[2:4], "big") - begin - (tcp[12] >> 4) * 4
    yield Segment(packet.at_s, packet.point, *ports, *numbers, payload)
