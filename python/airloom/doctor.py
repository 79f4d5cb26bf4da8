"""What this machine allows, and what to install."""

from __future__ import annotations

import os
import shutil
import time
from typing import NamedTuple

from airloom import _core

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
    return [_system(), *_rights(), _timing(), *_programs()]


def _system() -> Finding:
    return Finding("system", True, True, " ".join(os.uname()[::2]))


def _rights() -> list[Finding]:
    """Tries out what emulation needs, in namespaces that are gone afterwards."""
    findings = []
    for what, missing in _core.capabilities():
        needed = what != "tun"
        says = "ok" if missing is None else f"{missing}{': run with sudo' if needed and os.geteuid() else ''}"
        findings.append(Finding(what, missing is None, needed, says if needed else f"{says} (not needed)"))
    return findings


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
        ("curl", "curl", "the real client of the demo"),
        ("nginx", "nginx-light", "the real server of the demo"),
        ("tshark", "tshark", "reads captures"),
        ("ethtool", "ethtool", "switches offloads"),
    ]
    findings = []
    for program, package, use in wanted:
        path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        says = path or f"not found ({use}): apt-get install {package}"
        findings.append(Finding(program, path is not None, False, says))
    return findings
