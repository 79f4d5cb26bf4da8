"""What a test case asks of the packets: the captures on both sides, as tshark reads them.

The questions are those of quic-interop/quic-interop-runner (`testcases_quic.py`). They are asked of any tshark that
knows QUIC, not of the runner's newest one; what needs keys reads those that the endpoints left.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

from airloom.interop.network import CLIENT, CLIENT6, SERVER, SERVER6
from airloom.programs import needed

V1, V2 = 0x1, 0x6B3343CF
INITIAL, ZERO_RTT, HANDSHAKE, RETRY = range(4)
#: RFC 9369 (3.2): the types have other numbers in version 2.
_TYPES_V2 = {1: INITIAL, 2: ZERO_RTT, 3: HANDSHAKE, 0: RETRY}
_FROM = {
    "client": f"(ip.src=={CLIENT} || ipv6.src=={CLIENT6})",
    "server": f"(ip.src=={SERVER} || ipv6.src=={SERVER6})",
}
CHACHA20 = 0x1303


class Unreadable(Exception):
    """The packets cannot be judged: there are no keys, or tshark does nothing with them."""


class Long(NamedTuple):
    """A packet with a long header (RFC 9000, 17.2)."""

    kind: int
    version: int
    scid: str


#: Of pcap: octets of the file's header, and of a packet's.
_FILE, _PACKET = 24, 16


def one_client(capture: bytes) -> bytes:
    """A capture of ours in which whoever talks to the server is the client at one port, and the server at 443.

    Checksums stay.
    """
    octets = bytearray(capture)
    at = _FILE
    while at + _PACKET <= len(octets):
        (size,) = struct.unpack_from("<I", octets, at + 8)
        ip, at = at + _PACKET, at + _PACKET + size
        six = octets[ip] >> 4 == 6
        udp = ip + (40 if six else (octets[ip] & 15) * 4)
        if octets[ip + (6 if six else 9)] != 17 or udp + 8 > at:
            continue
        family = socket.AF_INET6 if six else socket.AF_INET
        client, server = (socket.inet_pton(family, host) for host in ((CLIENT6, SERVER6) if six else (CLIENT, SERVER)))
        size, first = len(client), ip + (8 if six else 12)
        ends = [bytes(octets[first + place * size : first + (place + 1) * size]) for place in (0, 1)]
        if server in ends:
            place = ends.index(server)
            struct.pack_into(">H", octets, udp + 2 * place, 443)
            place = 1 - place
            octets[first + place * size : first + (place + 1) * size] = client
            struct.pack_into(">H", octets, udp + 2 * place, 40_000)
    return bytes(octets)


class Trace:
    """A capture, and the keys to read it with."""

    def __init__(self, file: Path, keys: Path | None) -> None:
        """`keys` is an SSLKEYLOGFILE, if an endpoint wrote one."""
        self._file = file
        self.has_keys = keys is not None
        self._keys = ["-o", f"tls.keylog_file:{keys}"] if keys else []
        self._said: dict[tuple[str, ...], str] = {}

    def fields(self, wanted: str, *names: str) -> Iterator[list[list[str]]]:
        """Of each datagram that `wanted` selects: all values of these fields."""
        # A capture that is judged is whole, and several checks ask the same: tshark reads all of it each time.
        if (wanted, *names) not in self._said:
            self._said[wanted, *names] = self._ask(wanted, names)
        for line in self._said[wanted, *names].splitlines():
            yield [column.split("|") if column else [] for column in line.split("\t")]

    def _ask(self, wanted: str, names: tuple[str, ...]) -> str:
        words = [needed("tshark"), "-n", "-r", str(self._file), "-d", "udp.port==443,quic"]
        words += ["--disable-protocol", "http3", *self._keys]
        words += ["-Y", wanted, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", "-E", "separator=/t"]
        for name in names:
            words += ["-e", name]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout

    def longs(self, sender: str) -> list[Long]:
        """The packets with long headers that `client` or `server` sent."""
        found = []
        names = ("quic.version", "quic.scid", "quic.long.packet_type", "quic.long.packet_type_v2")
        for versions, scids, v1, v2 in self.fields(f"quic && !icmp && {_FROM[sender]} && quic.version", *names):
            # A connection ID without octets is not said.
            for text, scid in zip(versions, chain(scids, repeat("")), strict=False):
                version = int(text, 0)
                if version == V2 and v2:
                    found.append(Long(_TYPES_V2[int(v2.pop(0), 0)], version, scid))
                elif version not in (0, V2) and v1:
                    found.append(Long(int(v1.pop(0), 0), version, scid))
        return found

    @property
    def is_read(self) -> bool:
        """Can the frames of more than a few datagrams be seen?"""
        return 10 * self.counts("quic.frame_type") > self.counts("udp.port==443 && !icmp")

    def handshakes(self) -> int:
        """How many: each has a connection ID of the server's own."""
        return len({packet.scid for packet in self.longs("server") if packet.kind == INITIAL})

    def versions(self, sender: str, kind: int = INITIAL) -> set[int]:
        """Of packets of a kind."""
        return {packet.version for packet in self.longs(sender) if packet.kind == kind}

    def suites(self) -> set[int]:
        """What the client offers."""
        found = self.fields(f"quic && {_FROM['client']} && tls.handshake.type==1", "tls.handshake.ciphersuite")
        return {int(suite, 0) for (suites,) in found for suite in suites}

    def client_hellos(self) -> int:
        """How often the client sent the beginning of its ClientHello."""
        rows = self.fields(f"quic.long.packet_type==0 && {_FROM['client']} && quic.frame_type==6", "quic.crypto.offset")
        return sum(offset == "0" for (offsets,) in rows for offset in offsets)

    def tokens(self) -> tuple[set[str], set[str]]:
        """Those that Retry packets brought, and those in the client's Initials."""
        given = self.fields(f"quic && {_FROM['server']} && quic.retry_token", "quic.retry_token")
        used = self.fields(f"quic && {_FROM['client']} && quic.token", "quic.token")
        both = [{token.replace(":", "") for (tokens,) in rows for token in tokens} for rows in (given, used)]
        return both[0], both[1]

    def initials(self) -> list[tuple[int, str]]:
        """Number and token of the client's Initials, in order, as far as they can be read."""
        wanted = f"quic.long.packet_type==0 && !icmp && {_FROM['client']}"
        rows = self.fields(wanted, "quic.packet_number", "quic.token")
        return [(int(numbers[0]), tokens[0] if tokens else "") for numbers, tokens in rows if numbers]

    def certificates(self) -> set[str]:
        """The server's connection IDs of handshakes with a certificate."""
        rows = self.fields(f"quic && {_FROM['server']} && tls.handshake.type==11", "quic.scid")
        return {scid for (scids,) in rows for scid in scids}

    def octets(self, sender: str, wanted: str) -> int:
        """Octets of UDP in datagrams that `wanted` selects."""
        rows = self.fields(f"quic && !icmp && {_FROM[sender]} && {wanted}", "udp.length")
        return sum(int(length) - 8 for (lengths,) in rows for length in lengths)

    def key_phases(self, sender: str) -> set[str]:
        """Of packets with short headers: `0` and `1`."""
        rows = self.fields(f"quic.header_form==0 && {_FROM[sender]}", "quic.key_phase")
        return {{"True": "1", "False": "0"}.get(phase, phase) for (phases,) in rows for phase in phases}

    def stream_limits(self) -> list[int]:
        """How many streams the server lets the client begin with."""
        name = "tls.quic.parameter.initial_max_streams_bidi"
        return [
            int(limit) for (limits,) in self.fields(f"quic && {_FROM['server']} && {name}", name) for limit in limits
        ]

    def paths(self) -> list[tuple[str, list[str]]]:
        """Between which ends the server sent, in order, the client's first, and the challenges in each datagram.

        Where connection IDs have no octets a connection is known by its ends alone, and what comes after these have
        changed cannot be read: so the octets are read from a copy in which each end has one address and port.
        """
        names = ("frame.number", "ip.dst", "ipv6.dst", "udp.dstport", "ip.src", "ipv6.src", "udp.srcport")
        # A server may prefer an address with another port than 443.
        wanted = f"udp && !icmp && !icmpv6 && {_FROM['server']}"
        ends = {row[0][0]: _path(row[1:]) for row in self.fields(wanted, *names)}
        with tempfile.TemporaryDirectory(prefix="airloom-trace-") as temporary:
            copy = Trace(Path(temporary) / "one.pcap", None)
            copy._keys = self._keys
            copy._file.write_bytes(one_client(self._file.read_bytes()))
            if not copy.is_read:
                raise Unreadable("this tshark cannot read the packets behind the translator")
            rows = copy.fields(f"quic && {wanted}", "frame.number", "quic.path_challenge.data")
            return [(ends[numbers[0]], challenges) for numbers, challenges in rows if numbers[0] in ends]

    def client_ids(self) -> list[tuple[str, list[str]]]:
        """Between which ends the client sent, in order, and the connection IDs to which each datagram went."""
        names = ("ip.src", "ipv6.src", "udp.srcport", "ip.dst", "ipv6.dst", "udp.dstport", "quic.dcid")
        rows = self.fields(f"quic && !icmp && !icmpv6 && {_FROM['client']}", *names)
        return [(_path(ends), ids) for *ends, ids in rows]

    def responses(self) -> set[str]:
        """To challenges."""
        rows = self.fields(f"quic && !icmp && {_FROM['client']}", "quic.path_response.data")
        return {response for (responses,) in rows for response in responses}

    def ecn(self, sender: str) -> tuple[set[str], bool]:
        """The codepoints of a sender's datagrams of IPv4, and whether it reported ECN counts."""
        rows = list(self.fields(f"quic && !icmp && ip && {_FROM[sender]}", "ip.dsfield.ecn", "quic.ack.ect0_count"))
        return {ecn for codepoints, _ in rows for ecn in codepoints}, any(counts for _, counts in rows)

    def counts(self, wanted: str) -> int:
        """Datagrams that `wanted` selects."""
        return sum(1 for _ in self.fields(wanted, "frame.number"))

    def amplification(self) -> list[tuple[str, int, list[str]]]:
        """Sender, octets of UDP and types of long packets of each datagram, in order."""
        names = ("ip.src", "ipv6.src", "udp.length", "quic.long.packet_type")
        rows = self.fields("quic && !icmp", *names)
        return [
            ("client" if (four or six)[0] in (CLIENT, CLIENT6) else "server", int(lengths[0]) - 8, kinds)
            for four, six, lengths, kinds in rows
        ]

    def crypto_end(self) -> int:
        """How far the server's handshake goes: the end of its last CRYPTO frame."""
        rows = self.fields(f"quic.long.packet_type==2 && {_FROM['server']}", "quic.crypto.offset", "quic.crypto.length")
        return max((int(o) + int(n) for offs, lens in rows for o, n in zip(offs, lens, strict=False)), default=0)

    def times(self, wanted: str) -> list[float]:
        """When the datagrams that `wanted` selects were seen, in seconds."""
        return [float(times[0]) for (times,) in self.fields(wanted, "frame.time_epoch")]


def _path(ends: list[list[str]]) -> str:
    """Two ends in a line, of each its address of IPv4, that of IPv6, and its port."""
    four, six, port, other_four, other_six, other_port = ends
    return f"{(four or six)[0]} {port[0]} {(other_four or other_six)[0]} {other_port[0]}"
