"""Processors that do not fall asleep while a laboratory runs: who keeps them awake, what is said of it, and its end."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import airloom as al
from tests.cli.shell import airloom
from tests.conftest import needs_laboratory
from tests.emulate.conftest import PATIENCE_S
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

#: `SCHED_IDLE`, in the 41st field of a thread's `stat`.
IDLE = "5"


def _keepers(pid: int | str) -> list[str]:
    """The scheduling classes of the threads of a process that keep processors awake."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == "airloom-awake":
            found.append(rest.split()[38])
    return found


def _wait_for_some(pid: int) -> None:
    """Waits for threads that keep processors awake: where others fill these, for ten seconds, there may be none."""
    began, idle = time.monotonic(), _idle_s()
    while set(_keepers(pid)) != {IDLE}:
        if (waited := time.monotonic() - began) > 10:
            assert (_idle_s() - idle) / waited / (os.cpu_count() or 1) < 0.5
            return
        time.sleep(0.01)


def _idle_s() -> float:
    """For how long the processors were idle since the machine started (proc_stat (5)), in seconds."""
    return int(Path("/proc/stat").read_text().split(maxsplit=5)[4]) / os.sysconf("SC_CLK_TCK")


def _wait_for_none(pid: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while (left := _keepers(pid)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def _limited() -> bool:
    """Is nothing kept awake here, since processor time is limited?"""
    return "is limited" in airloom("emulate", "wireline", "--", "true").err


def test_they_are_below_all_others_and_end_with_the_laboratory() -> None:
    needs_laboratory()
    if _limited():
        return
    script = (
        "import airloom, sys\n"
        "with airloom.lab('wireline', enter=False):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.readline()\n"
        "print('out', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "in\n"
        _wait_for_some(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "out\n"
        _wait_for_none(process.pid)
        process.communicate("\n")


def test_they_end_with_a_process_that_is_killed(user: User) -> None:
    if _limited():
        return
    command = ["-m", "airloom", "emulate", "wireline", "--", "sleep", "1000"]
    with user.popen(command) as process:
        try:
            _wait_for_some(process.pid)
        finally:
            process.kill()
        # A process ends after each of its threads.
        process.communicate(timeout=60)


def test_there_are_none_where_others_fill_the_processors(user: User) -> None:
    if _limited():
        return
    # A thread below all others ends late there, and its process with it.
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    command = ["-m", "airloom", "emulate", "wireline", "--", "sh", "-c", "echo in; sleep 1000"]
    try:
        with user.begun(command, "in") as process:
            time.sleep(1)
            with_keepers = 0
            try:
                for _ in range(20):
                    time.sleep(0.05)
                    with_keepers += bool(_keepers(process.pid))
            finally:
                process.kill()
            process.communicate()
            assert with_keepers <= 4
    finally:
        for program in busy:
            program.kill()
            program.wait()


def test_what_was_done_is_said_and_can_be_refused() -> None:
    needs_laboratory()
    for options in ([], ["--no-keep-awake"]):
        out = f"result{len(options)}"
        done = airloom("emulate", "wireline", *options, "--out", out, "--", "true")
        assert done.code == 0, done.err
        run = al.Run(out)
        processors = run.manifest["engine"]["processors"]
        assert processors in done.err
        kept = run.summary["engine_kept_awake"]
        assert processors.startswith(f"{kept:.0f} processor" if kept else "no processor kept awake (")
        if options:
            assert processors == "no processor kept awake (switched off)"
