"""What this machine allows, and what to install."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
import time
from typing import NamedTuple

_CLONE_NEWNET = 0x4000_0000
_WAKE_UPS = 200


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    #: Emulation needs it; without it `airloom emulate` ends with exit code 3.
    needed: bool
    #: What was found, and where it is not good: the fix.
    says: str


def examine() -> list[Finding]:
    """Looks at rights, devices, clock and programs."""
    return [_system(), _namespaces(), _packet_sockets(), _tun(), _timing(), *_programs()]


def _system() -> Finding:
    linux = sys.platform == "linux"
    return Finding("system", linux, True, " ".join(os.uname()[::2]) if linux else "emulation needs Linux")


def _in_child(test: str) -> bool:
    """Does this piece of Python succeed in a process of its own?"""
    done = subprocess.run([sys.executable, "-c", test], capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def _namespaces() -> Finding:
    unshare = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({_CLONE_NEWNET}) != 0)"
    if not hasattr(ctypes.CDLL(None), "unshare"):
        return Finding("namespaces", False, True, "this C library has no unshare()")
    if _in_child(unshare):
        return Finding("namespaces", True, True, "ok" + (" (root)" if os.geteuid() == 0 else ""))
    return Finding("namespaces", False, True, "not allowed for this user: run with sudo")


def _packet_sockets() -> Finding:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (AttributeError, OSError) as error:
        return Finding("ports", False, True, f"no AF_PACKET sockets ({error}): run with sudo")
    return Finding("ports", True, True, "veth + AF_PACKET ok")


def _tun() -> Finding:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return Finding("tun", False, False, f"/dev/net/tun: {error.strerror} (not needed)")
    return Finding("tun", True, False, "/dev/net/tun ok (not needed)")


def _timing() -> Finding:
    late = []
    for _ in range(_WAKE_UPS):
        wanted = time.monotonic_ns() + 1_000_000
        time.sleep(0.001)
        late.append(time.monotonic_ns() - wanted)
    late.sort()
    p99_us = late[len(late) * 99 // 100] / 1000
    return Finding("timing", p99_us < 5000, False, f"wake-up p99 {p99_us:.0f} us over {_WAKE_UPS} sleeps of 1 ms")


def _programs() -> list[Finding]:
    wanted = [
        ("ip", "iproute2", "makes the namespaces and their interfaces", True),
        ("curl", "curl", "the real client of the demo", False),
        ("nginx", "nginx-light", "the real server of the demo", False),
        ("tshark", "tshark", "reads captures", False),
        ("ethtool", "ethtool", "switches offloads", False),
    ]
    findings = []
    for program, package, use, needed in wanted:
        path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        says = path or f"not found ({use}): apt-get install {package}"
        findings.append(Finding(program, path is not None, needed, says))
    return findings
