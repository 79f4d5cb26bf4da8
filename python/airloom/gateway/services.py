"""The program in a gateway's host that gives devices their addresses: `python -m airloom.gateway.services WHAT`.

WHAT is JSON: the addresses of the host on the devices' side (`v4`, and `v6` if there is to be IPv6), and the leases
from before. It says on standard output, a line of JSON each, that it is ready and who has got which address.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import select
import signal
import socket
import struct
import sys
import time
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address
from pathlib import Path
from typing import Any

from airloom.gateway import dhcp, router

#: The host's device on that side.
LAN = b"lan"
_SIOCGIFHWADDR = 0x8927
_IPV6_RECVHOPLIMIT, _IPV6_HOPLIMIT = 51, 52
_ALL_NODES, _ALL_ROUTERS = "ff02::1", "ff02::2"
#: The least between two words to everybody (RFC 4861, MIN_DELAY_BETWEEN_RAS).
_LEAST_S = 3.0


def main(words: list[str]) -> None:
    """Serves until it is told to end."""
    what = json.loads(words[0])
    servers = _name_servers()
    leases = _Addresses(IPv4Interface(what["v4"]), [s for s in servers if isinstance(s, IPv4Address)])
    for client, address in what["leases"]:
        leases.leases.keep(bytes.fromhex(client), IPv4Address(address), time.monotonic())
    parts: list[_Addresses | _Router] = [leases]
    if what["v6"] and _has_ipv6():
        parts.append(_Router(IPv6Interface(what["v6"]), [s for s in servers if isinstance(s, IPv6Address)]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _tell(ready=True)
    try:
        while True:
            left_s = min(part.due for part in parts) - time.monotonic()
            ready, _, _ = select.select(parts, [], [], max(0.0, min(left_s, router.EVERY_S)))
            for part in parts:
                # What cannot be sent now (the link is down, say) will be asked for again.
                with contextlib.suppress(OSError):
                    part.work(part in ready)
    finally:
        for part in parts:
            with contextlib.suppress(OSError):
                part.end()


def _has_ipv6() -> bool:
    """Has the link, and with it this side of it?"""
    return any(line.split()[-1] == LAN.decode() for line in Path("/proc/net/if_inet6").read_text().splitlines())


def _tell(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def _name_servers() -> list[IPv4Address | IPv6Address]:
    """Those of this host."""
    found = []
    for line in Path("/etc/resolv.conf").read_text(errors="replace").splitlines():
        word, _, address = line.partition(" ")
        with contextlib.suppress(ValueError):
            if word == "nameserver":
                found.append(ip_address(address.strip()))
    return found


class _Addresses:
    """DHCP."""

    #: It has nothing to say by itself.
    due = float("inf")

    def __init__(self, own: IPv4Interface, servers: list[IPv4Address]) -> None:
        self.leases = dhcp.Leases(own)
        self._servers = servers
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LAN)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self._socket.bind(("", dhcp.SERVER_PORT))
        self._told: set[tuple[bytes, IPv4Address]] = set()

    def fileno(self) -> int:
        return self._socket.fileno()

    def work(self, has_come: bool) -> None:
        if not has_come:
            return
        octets, _ = self._socket.recvfrom(65_536)
        request = dhcp.parse(octets)
        answer = request and self.leases.answer(request, time.monotonic())
        if request is None or answer is None:
            return
        if answer.kind == dhcp.ACK and answer.address is not None:
            known = (request.client, answer.address)
            if known not in self._told:
                # What was told is bounded as the addresses are; names come from devices, which may say anything.
                self._told = {one for one in self._told if one[1] != answer.address} | {known}
                name, hardware = request.host_name[:64], request.hardware.hex(":")
                _tell(client=request.client.hex(), address=str(answer.address), name=name, hardware=hardware)
        # One that has its address is asked there; another one hears what is for everybody.
        there = "255.255.255.255" if answer.kind == dhcp.NAK or not int(request.address) else str(request.address)
        self._socket.sendto(dhcp.emit(request, answer, self.leases.router, self._servers), (there, dhcp.CLIENT_PORT))

    def end(self) -> None:
        """Leases stay as they are: devices ask again by themselves."""


class _Router:
    """Router advertisements."""

    def __init__(self, own: IPv6Interface, servers: list[IPv6Address]) -> None:
        self._own, self._servers = own, servers
        self._socket = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self._index = socket.if_nametoindex(LAN.decode())
        for option, value in ((_IPV6_RECVHOPLIMIT, 1), (socket.IPV6_MULTICAST_IF, self._index)):
            self._socket.setsockopt(socket.IPPROTO_IPV6, option, value)
        # RFC 4861 (6.1.2): others are not believed.
        for option in (socket.IPV6_MULTICAST_HOPS, socket.IPV6_UNICAST_HOPS):
            self._socket.setsockopt(socket.IPPROTO_IPV6, option, 255)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LAN)
        group = socket.inet_pton(socket.AF_INET6, _ALL_ROUTERS) + struct.pack("@I", self._index)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        asked = fcntl.ioctl(self._socket, _SIOCGIFHWADDR, struct.pack("256s", LAN))
        self._hardware = asked[18:24]
        self.due = time.monotonic()
        self._last = float("-inf")

    def fileno(self) -> int:
        return self._socket.fileno()

    def work(self, has_come: bool) -> None:
        if has_come:
            octets, extra, _, source = self._socket.recvmsg(65_536, 256)
            limits = [int.from_bytes(value, sys.byteorder) for _, kind, value in extra if kind == _IPV6_HOPLIMIT]
            if router.is_solicitation(octets, limits[0] if limits else 0):
                if source[0] == "::":
                    self.due = max(time.monotonic(), self._last + _LEAST_S)
                else:
                    self._say(source[0].partition("%")[0])
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + router.EVERY_S
            self._last = time.monotonic()
            self._say(_ALL_NODES)

    def _say(self, to: str, lifetime_s: int = router.LIFETIME_S) -> None:
        said = router.advertisement(self._own, self._hardware, self._servers, lifetime_s)
        self._socket.sendto(said, (to, 0, 0, self._index))

    def end(self) -> None:
        """It is a router no more (RFC 4861, 6.2.5)."""
        self._say(_ALL_NODES, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
