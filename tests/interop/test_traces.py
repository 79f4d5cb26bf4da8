"""What is read from captures."""

import socket
import struct
from pathlib import Path

import pytest

from airloom.interop.network import CLIENT, CLIENT6, SERVER, SERVER6
from airloom.interop.traces import INITIAL, Long, Trace
from tests.conftest import needs


def datagram(source: tuple[str, int], to: tuple[str, int]) -> bytes:
    """Of IP, with a packet of QUIC that nobody can read (a short header)."""
    udp = struct.pack(">HHHH", source[1], to[1], 8 + 32, 0) + bytes([0x40, *range(31)])
    if ":" in to[0]:
        ends = b"".join(socket.inet_pton(socket.AF_INET6, host) for host, _ in (source, to))
        return struct.pack(">IHBB", 6 << 28, len(udp), 17, 64) + ends + udp
    ends = b"".join(socket.inet_aton(host) for host, _ in (source, to))
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ends + udp


def capture(file: Path, *datagrams: bytes) -> Path:
    """As `split_capture` writes it."""
    records = (struct.pack("<IIII", n, 0, len(octets), len(octets)) + octets for n, octets in enumerate(datagrams))
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 0x40000, 101) + b"".join(records))
    return file


def test_a_path_has_the_ports_and_addresses_of_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("tshark")
    monkeypatch.setattr(Trace, "is_read", True)
    client = (CLIENT, 50_000)
    file = capture(
        tmp_path / "right.pcap",
        datagram(client, (SERVER, 443)),
        datagram((SERVER, 443), client),
        datagram((SERVER, 4443), client),
        datagram((SERVER6, 4443), (CLIENT6, 50_000)),
    )
    assert [path for path, _ in Trace(file, None).paths()] == [
        "193.167.0.100 50000 193.167.100.100 443",
        "193.167.0.100 50000 193.167.100.100 4443",
        "fd00:cafe:cafe::100 50000 fd00:cafe:cafe:100::100 4443",
    ]


def test_connection_ids_that_are_not_there_are_none(tmp_path: Path) -> None:
    needs("tshark")
    file = capture(tmp_path / "left.pcap", datagram((CLIENT, 50_000), (SERVER, 443)))
    assert Trace(file, None).client_ids() == [("193.167.0.100 50000 193.167.100.100 443", [])]


def test_an_initial_that_cannot_be_read_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[["0", "1"], []], [[], ["ab:cd"]], [["1"], ["ab:cd", "ab:cd"]]]
    monkeypatch.setattr(Trace, "fields", lambda *_: iter(rows))
    assert Trace(Path(), None).initials() == [(0, ""), (1, "ab:cd")]


def test_a_packet_of_a_client_whose_connection_id_has_no_octets_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trace, "fields", lambda *_: iter([[["0x00000001"], [], ["0"], []]]))
    trace = Trace(Path(), None)
    assert trace.longs("client") == [Long(INITIAL, 1, "")]
    assert trace.versions("client") == {1}
