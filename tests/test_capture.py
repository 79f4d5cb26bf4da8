"""The packets of a capture: what is damaged is said, and read no further."""

import struct
from pathlib import Path

import pytest

from airloom.capture import packets
from airloom.errors import UsageError


def block(kind: int, body: bytes, length: int | None = None) -> bytes:
    whole = struct.pack("<I", len(body) + 12 if length is None else length)
    return struct.pack("<I", kind) + whole + body + whole


def described(name: bytes) -> bytes:
    return block(1, struct.pack("<HHIHH", 101, 0, 0, 2, len(name)) + name.ljust(8, b"\0") + b"\0\0\0\0")


def packet(interface: int, captured: int, octets: bytes) -> bytes:
    return block(6, struct.pack("<IIIII", interface, 0, 5, captured, captured) + octets)


def test_packets_are_read_to_the_end_or_to_a_message(tmp_path: Path) -> None:
    file = tmp_path / "trace.pcapng"
    head = described(b"radio") + packet(0, 4, b"abcd")
    file.write_bytes(head)
    assert [(p.point, p.octets) for p in packets(file)] == [("radio", b"abcd")]
    damaged = {
        "cut": packet(0, 4, b"abcd")[:-3],
        "shorter than a head": b"\6\0\0\0\x24",
        "of no length": block(6, b"", 0),
        "too short": packet(0, 4, b"abcd")[:4] + b"\x10\0\0\0" + bytes(20),
        "of an odd length": block(9, b"abcd", 15),
        "of no interface": packet(1, 4, b"abcd"),
        "longer than its block": packet(0, 400, b"abcd"),
    }
    for what, octets in damaged.items():
        file.write_bytes(head + octets)
        with pytest.raises(UsageError, match="cut or corrupt"):
            pytest.fail(f"{what}: {list(packets(file))}")
