"""One observation point of a capture as a file of its own: what the runner's simulator records on each of its sides."""

from __future__ import annotations

import struct
from pathlib import Path

from airloom.capture import packets

#: Of libpcap: times in nanoseconds, and datagrams of IP without a header of the link.
_MAGIC, _RAW_IP = 0xA1B23C4D, 101


def split_capture(capture: Path, point: str, file: Path) -> None:
    """Writes the packets that were seen at `point` as a pcap file."""
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", _MAGIC, 2, 4, 0, 0, 0x40000, _RAW_IP))
        for packet in packets(capture):
            if packet.point == point:
                seconds, nanoseconds = divmod(round(packet.at_s * 1e9), 10**9)
                size = len(packet.octets)
                out.write(struct.pack("<IIII", seconds, nanoseconds, size, size) + packet.octets)
