"""kill -9 of the process that runs a sweep, or of one of its workers, at any moment."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from airloom.errors import RunError
from airloom.scenario import Scenario
from airloom.sweep.parts import decode
from tests.conftest import needs
from tests.sweep.conftest import FETCH, is_running
from tests.sweep.test_sweep import octets

#: How many times something is killed in the middle of one sweep.
KILLS = 20

SEEDS = "1..700"

#: How long the whole sweep that is killed should take at least, seconds: what is finished is kept every half second.
LONG_S = 2
LOSSES = "0,0.02,0.05,0.1"


def start(out: Path, seeds: str = SEEDS) -> subprocess.Popen[bytes]:
    words = ["sweep", "fetch.toml", "--vary", f"links.wire.loss={LOSSES}", "--seeds", seeds, "--out", str(out)]
    words += ["--set", "hosts.mobile.app.http-client.pages=[['/100kB']]"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "airloom", *words], stdout=quiet, stderr=quiet)


def workers(pid: int) -> list[int]:
    """The processes whose parent is `pid` and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def parts(out: Path) -> set[str]:
    return {p.name for p in out.glob("parts/*") if p.suffix != ".partial"}


@pytest.mark.parametrize("seed", [1])
def test_twenty_random_kills_lose_nothing_and_change_no_octet(seed: int) -> None:
    Path("fetch.toml").write_text(FETCH)
    count, took = 700, 0.0
    while took < LONG_S:
        shutil.rmtree("undisturbed", ignore_errors=True)
        seeds, began = f"1..{count}", time.monotonic()
        assert start(Path("undisturbed"), seeds).wait() == 0
        # How long it takes here and now: kills that come later meet nobody.
        took = time.monotonic() - began
        assert pl.read_parquet("undisturbed/runs.parquet").height == 4 * count
        count = int(count * max(LONG_S / took, 1.2))
    expected = octets(Path("undisturbed"))

    chance = random.Random(seed)
    out = Path("killed")
    whom = {"runner": 0, "worker": 0}
    most = 0
    process = start(out, seeds)
    # More of them until one has found something finished: how soon that is depends on the machine.
    while sum(whom.values()) < KILLS or (most == 0 and sum(whom.values()) < 3 * KILLS):
        # Some kills hit it while it starts, most while its workers are at work.
        hits_worker = whom["worker"] < KILLS / 2 and (whom["runner"] >= KILLS / 2 or chance.random() < 0.5)
        if hits_worker or chance.random() < 0.8:
            while process.poll() is None and not workers(process.pid):
                time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.6 * took))
        if process.poll() is not None:
            # Finished between two kills: begin again, so that each kill hits a sweep at work.
            assert process.returncode == 0
            assert octets(out) == expected
            shutil.rmtree(out)
            process = start(out, seeds)
            continue
        victims = workers(process.pid)
        finished = parts(out)
        if hits_worker:
            # Between looking and killing the sweep may have come to its end.
            with suppress(IndexError, ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
                whom["worker"] += 1
            continue
        process.kill()
        process.wait()
        whom["runner"] += 1
        gone(victims)
        if not list(out.glob("*.parquet")):  # while tables are put together parts go
            assert finished <= parts(out)
        most = max(most, len(parts(out)))
        process = start(out, seeds)
    assert process.wait() == 0
    assert whom["worker"] == KILLS / 2 <= whom["runner"]
    assert octets(out) == expected
    assert not (out / "parts").exists()
    assert most > 0, "no kill found anything finished: all hit too early"


def gone(pids: list[int]) -> None:
    """No worker outlives the process it worked for."""
    for pid in pids:
        for _ in range(1000):
            if not is_running(pid):
                break
            time.sleep(0.01)
        else:
            raise AssertionError(f"worker {pid} is still there")


def patched(text: str) -> str:
    """A folder for PYTHONPATH: every interpreter begins with this."""
    package = Path("site/sitecustomize.py")
    package.parent.mkdir()
    package.write_text(text)
    return str(package.parent.resolve())


#: A worker that kills itself, as one that runs out of memory would be killed: when it has a run, or makes its part, and
#: some condition is true of the seeds so far.
DYING = """
import airloom._core as c, os, signal
class Some:
    def __init__(self, *how, whole=c.Series):
        self.whole, self.seeds = whole(*how), []
    def simulate(self, point, scenario, seeds, rate):
        self.seeds += seeds
        self.perhaps("simulate")
        return self.whole.simulate(point, scenario, seeds, rate)
    def part(self):
        self.perhaps("part")
        return self.whole.part()
    def perhaps(self, where):
        seeds = self.seeds
        if where == WHERE and (CONDITION):
            os.kill(os.getpid(), signal.SIGKILL)
c.Series = Some
"""


def dying(where: str, condition: str) -> str:
    """A folder for PYTHONPATH with such workers."""
    return patched(DYING.replace("WHERE", repr(where)).replace("CONDITION", condition))


@pytest.mark.parametrize("where", ["simulate", "part"])
def test_a_run_that_ends_its_worker_each_time_is_lost_and_the_others_are_not(
    where: str, fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", dying(where, "13 in seeds"))
    results = fetch.sweep({"links.wire.loss": [0, 0.1]}, seeds="1..20").run(out="s", workers=2)
    assert results.runs.height == 38
    assert (
        results.failures.select("seed", "status", "error").rows()
        == [(13, "lost", "worker process ended: by signal 9")] * 2
    )
    # When the reason is gone, the same call makes what was lost.
    monkeypatch.delenv("PYTHONPATH")
    fetch.sweep({"links.wire.loss": [0, 0.1]}, seeds="1..20").run(out="s", workers=2)
    fetch.sweep({"links.wire.loss": [0, 0.1]}, seeds="1..20").run(out="fresh", workers=2)
    assert octets(Path("s")) == octets(Path("fresh"))


def test_many_runs_that_end_their_workers_are_lost_and_no_other_is(
    fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", dying("simulate", "any(seed % 7 == 0 for seed in seeds)"))
    results = fetch.sweep(seeds="1..210").run(out="s", workers=2)
    assert set(results.failures["status"]) == {"lost"}
    assert results.failures["seed"].to_list() == list(range(7, 211, 7))
    assert results.runs.height == 180


@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_that_die_of_their_size_get_smaller(
    workers: int, fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", dying("part", "len(seeds) > 20"))
    results = fetch.sweep(seeds="1..600").run(out="s", workers=workers)
    assert results.failures.is_empty()
    monkeypatch.delenv("PYTHONPATH")
    fetch.sweep(seeds="1..600").run(out="fresh", workers=2)
    assert octets(Path("s")) == octets(Path("fresh"))


@pytest.mark.parametrize("where", ["simulate", "part"])
def test_where_every_worker_dies_a_sweep_gives_up(where: str, fetch: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", dying(where, "True"))
    with pytest.raises(RunError, match=r"task after task failed, .* by signal 9; 0 runs are kept"):
        fetch.sweep(seeds="1..600").run(out="s", workers=2)


def test_a_full_disk_is_one_line_and_what_was_finished_stays(tmp_path: Path) -> None:
    unshare = needs("unshare")
    Path("fetch.toml").write_text(FETCH)
    words = [sys.executable, "-m", "airloom", "sweep", "fetch.toml", "--seeds", "1..1000", "--out", "disk/s"]
    # A disk of our own, too small for the parts; then it grows, and the same command goes on.
    script = (
        "mkdir disk && mount -t tmpfs -o size=300k none disk && "
        f"{{ {shlex.join(words)} >/dev/null 2>first; echo $? >code; cp disk/s/sweep.json kept.json; "
        "ls disk/s/parts >parts; mount -o remount,size=100m disk && "
        f"{shlex.join(words)} >/dev/null 2>second; echo $? >>code; cp -r disk/s whole; }}"
    )
    done = subprocess.run([unshare, "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path("code").read_text().split() == ["4", "0"]
    (line,) = Path("first").read_text().splitlines()
    assert re.fullmatch(r"airloom: disk/s: .*\b[Nn]o space left on device.*; \d+ of 1000 runs are kept: .*", line), line
    assert not list(Path("parts").read_text().split("partial"))[1:]
    assert start_plain(words, "fresh") == 0
    assert octets(Path("whole")) == octets(Path("fresh"))


def start_plain(words: list[str], out: str) -> int:
    quiet = subprocess.DEVNULL
    return subprocess.run([*words[:-1], out], stdout=quiet, stderr=quiet, check=False).returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_sweep_that_is_interrupted_keeps_what_it_has_and_leaves_no_worker(number: int, code: int) -> None:
    Path("fetch.toml").write_text(FETCH)
    assert start(Path("undisturbed")).wait() == 0
    out = Path("stopped")
    words = ["sweep", "fetch.toml", "--vary", f"links.wire.loss={LOSSES}", "--seeds", SEEDS, "--out", str(out)]
    words += ["--set", "hosts.mobile.app.http-client.pages=[['/100kB']]"]
    # A task is over its time with its first run, and then each worker comes to a run that does not end: else the sweep
    # may be over before the signal is there.
    package = patched(
        "import airloom._core as c, time\n"
        "class Some:\n"
        "    is_first = True\n"
        "    def __init__(self, *how, whole=c.Series): self.whole, self.runs = whole(*how), 0\n"
        "    def part(self):\n"
        "        Some.is_first = Some.is_first and self.runs == 0\n"
        "        return self.whole.part()\n"
        "    def simulate(self, *what):\n"
        "        self.runs += 1\n"
        "        time.sleep(0.6 if Some.is_first else 1000)\n"
        "        return self.whole.simulate(*what)\n"
        "c.Series = Some\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "airloom", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    while not parts(out):
        assert process.poll() is None
        time.sleep(0.005)
    at_work = workers(process.pid)
    assert at_work
    process.send_signal(number)
    said, why = process.communicate(timeout=60)
    assert process.returncode == code
    assert said == ""
    if number == signal.SIGINT:
        (line,) = why.splitlines()
        found = re.fullmatch(r"airloom: interrupted: (\d+) of 2800 runs are kept, the same command goes on .*", line)
        assert found, line
        assert 0 < int(found[1]) < 2800
        assert sum(len(decode((out / "parts" / name).read_bytes()).runs) for name in parts(out)) == int(found[1])
    gone(at_work)
    assert start(out).wait() == 0
    assert octets(out) == octets(Path("undisturbed"))


def test_a_second_process_is_refused_while_one_is_at_the_sweep(fetch: Scenario) -> None:
    import fcntl

    from airloom.errors import UsageError

    fetch.sweep(seeds=[1]).run(out="s")
    with Path("s/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match=r"^s: another process is at work there; .*$"):
            fetch.sweep(seeds=[1]).run(out="s")
