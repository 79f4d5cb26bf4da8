"""What this machine allows, and what to install."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from airloom import _core, interpreter
from airloom.programs import PROGRAMS, how_to_install, path_of

#: A run is valid if departures are late by less than one in so many parts of the delay, and than a millisecond.
_SHARE_OF_DELAY = 20
_LATEST_US = 1000.0


#: What some need, and what for; laboratories do without.
OPTIONAL = {"tun": "nothing needs it", "nf_tables": "without it: no `airloom gateway`"}

#: How many times it is measured.
MEASUREMENTS = 3


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    #: Emulation needs it; without it `airloom emulate` ends with exit code 3.
    needed: bool
    #: What was found, and where it is not good: the fix.
    says: str


def examine() -> list[Finding]:
    """Looks at rights, devices and programs."""
    return [_system(), *_interpreter(), *_rights(), *_programs()]


def _system() -> Finding:
    return Finding("system", True, True, " ".join(os.uname()[::2]))


def _interpreter() -> list[Finding]:
    """Does the file of this interpreter give rights to everybody who starts it? Only Linux tells."""
    program = os.path.realpath("/proc/self/exe")
    given = []
    with contextlib.suppress(OSError, AttributeError):
        if os.getxattr(program, "security.capability"):
            given.append(("file capabilities", f"setcap -r {program}"))
    with contextlib.suppress(OSError):
        if (mode := os.stat(program).st_mode) & (stat.S_ISUID | stat.S_ISGID):
            letter = "u" if mode & stat.S_ISUID else "g"
            given.append((f"the set-{letter}id bit", f"chmod {letter}-s {program}"))
    whose = "every script of everybody who may start it has these rights"
    found = [Finding("interpreter", False, False, f"{program} has {what}: {whose}; {fix}") for what, fix in given]
    return found or [Finding("interpreter", True, False, f"{program}, with no rights of its own")]


def _rights() -> list[Finding]:
    """Tries out what emulation needs, in namespaces that are gone afterwards."""
    findings = []
    for what, missing in _core.capabilities():
        needed = what not in OPTIONAL
        good = _core.rights()[0] if what == "namespaces" else "may be made"
        says = good if missing is None else missing if needed else f"{missing}; {OPTIONAL[what]}"
        findings.append(Finding(what, missing is None, needed, says))
    return findings


def _programs() -> list[Finding]:
    findings = []
    for program in PROGRAMS:
        path = path_of(program.name)
        says = path or f"without it: no {program.without}; {how_to_install(program.name)}"
        findings.append(Finding(program.name, path is not None, False, says))
    return [*findings, _playwright()]


def _playwright() -> Finding:
    from importlib.util import find_spec

    found = find_spec("playwright")
    says = "without it: no `airloom load`; pip install 'airloom[browser]'"
    return Finding("playwright", found is not None, False, (found.origin if found else None) or says)


def measure(progress: Callable[[int], None] = lambda _: None) -> list[Finding]:
    """What this machine can emulate validly just now, measured in a laboratory in a few seconds.

    Delays: 1500 datagrams through a wire of 10 ms, at random moments 2 ms apart on average; the 99th percentile of how
    late they left says from which delay on runs are valid. The same with processors that may fall asleep. Rates: a
    transfer over a wire without limits, two seconds. `progress` is told after each of the three.
    """
    from airloom.emulation import find
    from airloom.laboratory import lab

    wire = find("wireline", {"delay": "10ms"})
    summaries = []
    progress(0)
    for number, scenario in enumerate((wire, wire.with_keys({"run.keep_awake": False})), 1):
        with lab(scenario, enter=False, seed=1) as link:
            link.run(interpreter.python("-I", "-S", "-c", _PROBES))
        summaries.append(link.summary)
        progress(number)
    findings = [_delays(*summaries)]
    with lab("wireline", enter=False, seed=1) as link:
        done = link.run(interpreter.python("-I", "-S", "-c", _TRANSFER), capture_output=True, text=True)
    if done.returncode == 0:
        gbit = float(done.stdout) / 1e9
        share = link.summary["engine_cpu_share"]
        says = f"one TCP flow from the simulated server: {gbit:.2f} Gbit/s, at {share:.0%} of a core"
        findings.append(Finding("rate", True, False, says))
    return findings


def _delays(summary: dict[str, float], asleep: dict[str, float]) -> Finding:
    p50, p99 = summary.get("lateness_p50_us", 0.0), summary.get("lateness_p99_us", 0.0)
    measured = f"departures late by {p50:.0f} us (median), {p99:.0f} us (99th percentile)"
    if kept := summary.get("engine_kept_awake", 0):
        without = asleep.get("lateness_p99_us", 0.0)
        measured += f" with {kept:.0f} processors kept awake, {without:.0f} us without"
    if p99 > _LATEST_US:
        return Finding("timing", False, False, f"{measured}: too busy for any delay to be valid at the moment")
    least_ms = p99 * _SHARE_OF_DELAY / 1000
    return Finding("timing", True, False, f"{measured}: valid for delays above {least_ms:.2g} ms")


_PROBES = """
import random, socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
draw = random.Random(1)
for _ in range(1500):
    out.sendto(bytes(64), ("10.77.0.1", 9))
    time.sleep(draw.expovariate(500))
"""

_TRANSFER = """
import socket, time
s = socket.create_connection(("10.77.0.1", 80))
s.sendall(b"GET /100GB HTTP/1.1\\r\\nHost: origin\\r\\n\\r\\n")
buffer = bytearray(1 << 20)
octets, start = 0, time.monotonic()
while (elapsed := time.monotonic() - start) < 2:
    octets += s.recv_into(buffer)
print(octets * 8 / elapsed)
"""
