"""What may be the devices' side of a gateway, and what its way out."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path

from airloom import _core
from airloom.errors import Unsupported, UsageError
from airloom.fields import did_you_mean

_SIOCGIFFLAGS, _SIOCGIFHWADDR = 0x8913, 0x8927
_IFF_UP, _IFF_LOOPBACK = 1, 8
_ARPHRD_ETHER = 1


def check(inside: str, outside: str, *, even_if_it_leads_out: bool = False) -> None:
    """Raises `UsageError` where devices of `inside` cannot be led out by `outside`; `Unsupported` without rights."""
    leading = leads_out()
    for option, name in (("--in", inside), ("--out", outside)):
        _exists(option, name)
    if inside == outside:
        raise UsageError(f"--in and --out are both {inside}: the devices' side and the way out are two interfaces")
    if not leading:
        raise UsageError(f"--out {outside}: this machine has no way out itself (no default route)")
    if leading[0] != outside:
        raise UsageError(f"--out {outside}: what leaves this machine leaves by {leading[0]}, and so does the gateway's")
    if inside in leading and not even_if_it_leads_out:
        raise UsageError(
            f"--in {inside}: a default route of this machine leads there, and meanwhile the machine hears nothing from "
            "it; if that is meant, add --force"
        )
    if not _flags(inside) & _IFF_UP:
        raise UsageError(f"--in {inside}: it is down; ip link set {inside} up")
    if not _core.rights()[1]:
        raise Unsupported(
            "a gateway needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN together: "
            'sudo "$(command -v airloom)" gateway ..'
        )


def _exists(option: str, name: str) -> None:
    valid = [known for _, known in socket.if_nameindex() if _is_ethernet(known)]
    if name not in valid:
        why = "no Ethernet or Wi-Fi" if name in (known for _, known in socket.if_nameindex()) else "no such interface"
        guess = did_you_mean(name, valid)
        raise UsageError(f"{option} {name}: {why}{guess}; valid: {', '.join(valid) or 'none here'}")


def _asked(name: str, request: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket, request, struct.pack("256s", name.encode()[:15]))


def _flags(name: str) -> int:
    return int(struct.unpack_from("@H", _asked(name, _SIOCGIFFLAGS), 16)[0])


def _is_ethernet(name: str) -> bool:
    try:
        kind = struct.unpack_from("@H", _asked(name, _SIOCGIFHWADDR), 16)[0]
        return kind == _ARPHRD_ETHER and not _flags(name) & _IFF_LOOPBACK
    except OSError:
        return False


def leads_out() -> list[str]:
    """The interfaces of this machine's default routes of IPv4, the one that is taken first."""
    rows = [line.split() for line in _table("route")[1:]]
    # Interface, destination, gateway, flags, two counts, metric, mask.
    routes = [(int(row[6]), row[0]) for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"]
    return [name for _, name in sorted(routes, key=lambda route: route[0])]


def leads_out_by_ipv6() -> bool:
    """Has this machine a default route of IPv6?"""
    rows = [line.split() for line in _table("ipv6_route")]
    return any(len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo" for row in rows)


def _table(name: str) -> list[str]:
    try:
        return Path("/proc/net", name).read_text().splitlines()
    except OSError:
        return []
