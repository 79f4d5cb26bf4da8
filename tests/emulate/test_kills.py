"""Whatever kills a run, nothing of it is left: no process, namespace, device, route, table or changed setting."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

#: Kills of each kind of user; `make nightly` sets more.
KILLS = int(os.environ.get("AIRLOOM_KILLS", "2"))
PATIENCE_S = 5.0

#: A service that forks a daemon out of its session, and a command that leaves children behind everywhere.
SCENARIO = """\
title = "to be killed"
path = ["mobile", "wire", "gateway", "cable", "origin"]
[hosts]
mobile = {{ real = true }}
gateway = {{ real = true, transport = {{ tcp = {{ congestion = "reno" }} }} }}
origin = {{ real = true, command = ["sh", "-c", "setsid sleep {mark} & exec python3 -m http.server 80"] }}
[links]
wire = {{ bearer = "wireline", delay = "1ms" }}
cable = {{ bearer = "wireline", delay = "1ms" }}
"""
COMMAND = "setsid sh -c 'sleep {mark} & sleep {mark}' & (sleep {mark} &) ; while :; do :; done"


def _marked(mark: int) -> list[str]:
    """Command lines of processes that belong to the run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(mark) in line:
                found.append(f"{entry.name}: {line}")
    return found


def _network() -> list[str]:
    """Devices, routes, addresses and settings of the machine."""
    state = sorted(os.listdir("/sys/class/net"))
    for table in ("route", "ipv6_route", "fib_trie", "if_inet6"):
        path = Path("/proc/net", table)
        # The counters of a route are not part of it.
        lines = path.read_text().splitlines() if path.exists() else []
        state += sorted(" ".join(w for i, w in enumerate(line.split()) if i not in (4, 5, 6)) for line in lines)
    for setting in ("ip_forward", "tcp_congestion_control", "tcp_rmem", "ping_group_range"):
        state.append(Path("/proc/sys/net/ipv4", setting).read_text())
    return state


def _left(mark: int, before: list[str]) -> list[str]:
    return _marked(mark) + [line for line in _network() if line not in before]


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_after_a_kill_at_a_random_moment(user: User, how: str) -> None:
    if user.name == "capable" and how != "SIGKILL":
        # It differs from the others in how namespaces are made, not in how they go.
        return
    rng = random.Random(f"{user.name} {how}")
    before = _network()
    for number in range(KILLS):
        mark = 8_640_000 + rng.randrange(100_000)
        scenario = user.folder / f"kill-{mark}.toml"
        scenario.write_text(SCENARIO.format(mark=mark))
        arguments: list[str | Path] = [
            "-m",
            "airloom",
            "emulate",
            scenario,
            "--",
            "sh",
            "-c",
            COMMAND.format(mark=mark),
        ]
        with user.popen(arguments) as process:
            # From before the first namespace is made to when the command is busy.
            time.sleep(rng.uniform(0.1, 2.5))
            process.send_signal(getattr(signal, how))
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        end = time.monotonic() + PATIENCE_S
        while (left := _left(mark, before)) and time.monotonic() < end:
            time.sleep(0.02)
        assert not left, f"kill {number} by {how}: {left}"
        # Nobody can clear its own half-written folder away after SIGKILL; it stays hidden.
        written = [p for p in user.folder.glob(f"runs/*{mark}*") if how != "SIGKILL" or not p.name.startswith(".")]
        assert not written, "a run that was killed has no result"


def test_a_killed_laboratory_of_a_python_thread_is_gone_too(user: User) -> None:
    mark = 8_750_000 + random.Random(user.name).randrange(100_000)
    before = _network()
    script = (
        "import airloom, threading, time, sys\n"
        "def work():\n"
        "    with airloom.lab('wireline', enter=False) as link:\n"
        f"        program = link.popen('setsid sleep {mark} & sleep {mark}')\n"
        "        print('running', flush=True)\n"
        "        time.sleep(1000)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(1000)\n"
    )
    with user.popen(["-c", script]) as process:
        assert process.stdout
        assert process.stdout.readline() == "running\n"
        process.kill()
        process.communicate()
    end = time.monotonic() + PATIENCE_S
    while (left := _left(mark, before)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left
