"""Whatever kills a run, nothing of it is left: no process, namespace, device, route, table or changed setting."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.emulate.conftest import PATIENCE_S
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

#: Kills of each kind of user; `make nightly` sets more.
KILLS = int(os.environ.get("AIRLOOM_KILLS", "2"))

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


def marked(mark: int) -> list[str]:
    """Processes that belong to the run: the mark is in their command line or their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
                known = line + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(mark).encode() in known:
                found.append(f"{entry.name}: {line.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


def pids_of(mark: int) -> list[int]:
    """The same by their numbers."""
    return [int(line.split(":", 1)[0]) for line in marked(mark)]


def kill_at_one_blow(process: subprocess.Popen[str], pids: list[int], mark: int) -> None:
    """Kills processes so that none of them can see the others die; nothing of the run may be left soon."""
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, how)
    process.communicate(timeout=60)
    end = time.monotonic() + PATIENCE_S
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert marked(mark) == []


def _network() -> list[str]:
    """Devices, routes, addresses, rules and settings of the machine."""
    state = sorted(os.listdir("/sys/class/net"))
    for table in ("route", "ipv6_route", "fib_trie", "if_inet6"):
        path = Path("/proc/net", table)
        # The counters of a route are not part of it.
        lines = path.read_text().splitlines() if path.exists() else []
        state += sorted(" ".join(w for i, w in enumerate(line.split()) if i not in (4, 5, 6)) for line in lines)
    if shutil.which("nft"):
        said = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False)
        state += said.stdout.splitlines()
    for setting in ("ip_forward", "tcp_congestion_control", "tcp_rmem", "ping_group_range"):
        state.append(Path("/proc/sys/net/ipv4", setting).read_text())
    return state


def _namespaces(pid: int | str) -> set[str]:
    """Those of a process, as far as they can be looked at."""
    found = set()
    for kind in ("net", "pid", "mnt", "user"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    return found


def _inside(mark: int) -> set[str]:
    """The namespaces that only processes of the run are in."""
    return set().union(*map(_namespaces, pids_of(mark))) - _namespaces("self")


def _left(mark: int, before: list[str], inside: set[str]) -> list[str]:
    processes = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()] if inside else []
    still_there = [f"{pid} in {ns}" for pid in processes for ns in _namespaces(pid) & inside]
    return marked(mark) + still_there + [line for line in _network() if line not in before]


def _wait_until_nothing_is_left(mark: int, before: list[str], inside: set[str], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while (left := _left(mark, before, inside)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left, f"{what}: {left}"


def _wait_for_the_package(pid: int) -> None:
    """Until then SIGINT is Python's own affair, which may lose it in a callback while its own modules are imported."""
    end = time.monotonic() + 60
    while "airloom/_core" not in Path(f"/proc/{pid}/maps").read_text() and time.monotonic() < end:
        time.sleep(0.005)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "panic"])
def test_nothing_is_left_after_a_kill_at_a_random_moment(user: User, how: str) -> None:
    if user.name == "capable" and how not in ("SIGKILL", "panic"):
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
        # From before the first namespace is made to when the command is busy.
        after_s = rng.uniform(0.1, 2.5)
        panic = {"AIRLOOM_DEBUG_PANIC_AFTER_MS": str(round(after_s * 500))} if how == "panic" else {}
        inside: set[str] = set()
        with user._replace(environment={**user.environment, **panic}).popen(arguments) as process:
            if how != "panic":
                if how == "SIGINT":
                    _wait_for_the_package(process.pid)
                time.sleep(after_s)
                inside = _inside(mark) - _namespaces(process.pid)
                process.send_signal(getattr(signal, how))
            try:
                _, err = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        _wait_until_nothing_is_left(mark, before, inside, f"kill {number} by {how} after {after_s:.3f} s")
        if how == "panic":
            assert process.returncode == 125, err
            assert "the engine panicked" in err
        # Nobody can clear its own half-written folder away after SIGKILL; it stays hidden, and looks unfinished.
        written = list(user.folder.glob(f"runs/*{mark}*")) + list(user.folder.glob(f"runs/.*{mark}*"))
        if how == "SIGKILL":
            assert all(p.name.startswith(".") and not (p / "run.json").exists() for p in written)
        else:
            assert not written, "a run that was killed has no result"


def own_processes(pid: int) -> dict[str, int]:
    """The two processes of the laboratory of the run in process `pid`: its child, and that one's."""

    def child(of: int) -> int:
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                # The name, which may have anything in it, is in parentheses; its state and its parent follow.
                if entry.name.isdecimal() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == of:
                    return int(entry.name)
        raise AssertionError(f"{of} has no child")

    return {"warden": (warden := child(pid)), "keeper": child(warden)}


@pytest.mark.parametrize("victim", ["warden", "keeper"])
def test_a_run_whose_laboratory_is_killed_has_no_result(user: User, victim: str) -> None:
    mark = 8_770_000 + random.Random(f"{user.name} {victim}").randrange(100_000)
    before = _network()
    scenario = user.folder / f"under-{mark}.toml"
    scenario.write_text(SCENARIO.format(mark=mark))
    command = f"echo up; setsid sleep {mark} & sleep {mark}"
    with user.begun(["-m", "airloom", "emulate", scenario, "--", "sh", "-c", command]) as process:
        inside = _inside(mark)
        os.kill(own_processes(process.pid)[victim], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 125, err
    # The service has something to say as well.
    (said,) = (line for line in err.splitlines() if line.startswith("airloom: "))
    assert "own processes was killed" in said
    assert not [*user.folder.glob(f"runs/*{mark}*"), *user.folder.glob(f"runs/.*{mark}*")]
    assert inside
    _wait_until_nothing_is_left(mark, before, inside, victim)


@pytest.mark.parametrize("victim", ["warden", "keeper"])
def test_a_laboratory_that_is_killed_under_a_script_has_no_result_and_says_so(user: User, victim: str) -> None:
    if user.name == "capable":
        return
    script = (
        "import os, airloom\n"
        "from airloom._core import DriveError\n"
        "try:\n"
        "    with airloom.lab('wireline', enter=False, out='killed') as link:\n"
        "        program = link.popen(['sleep', '1000'])\n"
        "        print('running', flush=True)\n"
        "        print(program.wait(), flush=True)\n"
        "except DriveError as error:\n"
        "    print(error.exit_code, error)\n"
        "print(*os.listdir())\n"
    )
    place = user.folder / f"empty-{victim}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    with user._replace(folder=place).begun(["-c", script], "running") as process:
        os.kill(own_processes(process.pid)[victim], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert out.count("\n") == 3, err
    ended, said, left = out.splitlines()
    assert (ended, left) == ("-9", "")
    assert said.startswith("4 one of the laboratory's own processes was killed")


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
    with user.begun(["-c", script], "running") as process:
        inside = _inside(mark) - _namespaces(process.pid)
        process.kill()
        process.communicate()
    assert inside
    _wait_until_nothing_is_left(mark, before, inside, "a thread's laboratory")
