"""kill -9 of the process that runs a sweep, at any moment; signals; a full disk."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from airloom._core import Done
from airloom.scenario import Scenario
from tests.conftest import needs
from tests.sweep.conftest import FETCH
from tests.sweep.test_sweep import octets

#: How many times something is killed in the middle of one sweep.
KILLS = 20

#: How long the whole sweep that is killed should take at least, seconds: what is finished is kept every half second.
LONG_S = 2
LOSSES = "0,0.02,0.05,0.1"


def start(out: Path, seeds: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    words = ["sweep", "fetch.toml", "--vary", f"links.wire.loss={LOSSES}", "--seeds", seeds, "--out", str(out)]
    words += ["--set", "hosts.mobile.app.http-client.pages=[['/100kB']]"]
    return subprocess.Popen([sys.executable, "-m", "airloom", *words], stdout=subprocess.DEVNULL, stderr=stderr)


def parts(out: Path) -> set[str]:
    return {p.name for p in out.glob("parts/*") if p.is_dir() and p.suffix != ".partial"}


def undisturbed() -> tuple[str, float, dict[str, bytes]]:
    """Seeds that take long enough here and now, in `undisturbed`; how long, and what they give."""
    Path("fetch.toml").write_text(FETCH)
    count, took = 700, 0.0
    while took < LONG_S:
        shutil.rmtree("undisturbed", ignore_errors=True)
        seeds, began = f"1..{count}", time.monotonic()
        assert start(Path("undisturbed"), seeds).wait() == 0
        took = time.monotonic() - began
        assert pl.read_parquet("undisturbed/runs.parquet").height == 4 * count
        count = int(count * max(LONG_S / took, 1.2))
    return seeds, took, octets(Path("undisturbed"))


@pytest.mark.parametrize("seed", [1])
def test_twenty_random_kills_lose_nothing_and_change_no_octet(seed: int) -> None:
    seeds, took, expected = undisturbed()
    chance = random.Random(seed)
    out = Path("killed")
    kills = most = 0
    process = start(out, seeds)
    # More of them until one has found something finished: how soon that is depends on the machine.
    while kills < KILLS or (most == 0 and kills < 3 * KILLS):
        # Some kills hit it while it starts, most while it is at work.
        if chance.random() < 0.8:
            while process.poll() is None and not (out / "parts" / "under-way").exists():
                time.sleep(0.02)
        # Later ones where a machine that has become slower lets none find anything.
        time.sleep(chance.uniform(0, 0.6 * took) * max(1, kills / KILLS))
        finished = parts(out)
        if process.poll() is not None:
            # Finished between two kills: begin again, so that each kill hits a sweep at work.
            assert process.returncode in (0, 4)
            shutil.rmtree(out)
            process = start(out, seeds)
            continue
        process.kill()
        process.wait()
        kills += 1
        if not list(out.glob("*.parquet")):  # while tables are put together parts go
            assert finished <= parts(out)
        most = max(most, len(parts(out)))
        process = start(out, seeds)
    # A run that was under way at two kills is lost, for who knows that it is not the reason; the same command tries it
    # again.
    if process.wait() == 4:
        lost = pl.read_parquet("killed/runs.parquet").filter(pl.col("status") != "ok")
        assert set(lost["status"]) == {"lost"}
        assert lost.height <= kills
        process = start(out, seeds)
    assert process.wait() == 0
    assert octets(out) == expected
    assert not (out / "parts").exists()
    assert most > 0, "no kill found anything finished: all hit too early"


def patched(text: str) -> str:
    """A folder for PYTHONPATH: every interpreter begins with this."""
    package = Path("site/sitecustomize.py")
    package.parent.mkdir()
    package.write_text(text)
    return str(package.parent.resolve())


#: A run that ends the process, as one that needs too much memory would.
DYING = """
import os, signal
from airloom.sweep import work
whole = work.Whole.__call__
def some(self, thread, point, seed):
    if seed in SEEDS:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(self, thread, point, seed)
work.Whole.__call__ = some
"""


def session(**environment: str) -> int:
    words = [sys.executable, "-m", "airloom", "sweep", "fetch.toml", "--seeds", "1..20", "--out", "s", "--folders"]
    quiet = subprocess.DEVNULL
    return subprocess.run(words, stdout=quiet, stderr=quiet, check=False, env={**os.environ, **environment}).returncode


def test_a_run_that_ends_the_process_is_lost_at_the_second_time_and_the_others_are_not(fetch: Scenario) -> None:
    Path("fetch.toml").write_bytes(fetch.text)
    package = patched(DYING.replace("SEEDS", "(5, 13)"))
    codes: list[int] = []
    while not codes or codes[-1] < 0:
        codes.append(session(PYTHONPATH=package))
    # The first end may leave both as suspects.
    assert codes[-1] == 4
    assert 3 <= len(codes) - 1 <= 4
    runs = pl.read_parquet("s/runs.parquet")
    assert runs.height == 20
    lost = runs.filter(pl.col("status") == "lost")
    said = "the process ended while this run was under way, each time it was tried"
    assert lost.select("seed", "error").rows() == [(5, said), (13, said)]
    assert (runs["status"] == "ok").sum() == 18
    # When the reason is gone, the same command makes what was lost.
    assert session() == 0
    fetch.sweep(seeds="1..20", folders=True).run(out="fresh")
    assert octets(Path("s")) == octets(Path("fresh"))


def test_a_full_disk_is_one_line_and_what_was_finished_stays(tmp_path: Path) -> None:
    unshare = needs("unshare")
    Path("fetch.toml").write_text(FETCH)
    words = [sys.executable, "-m", "airloom", "sweep", "fetch.toml", "--seeds", "1..20000", "--out", "disk/s"]
    # A disk of our own, too small for the parts; then it grows, and the same command goes on.
    script = (
        "mkdir disk && mount -t tmpfs -o size=2m none disk && "
        f"{{ {shlex.join(words)} >/dev/null 2>first; echo $? >code; cp disk/s/sweep.json kept.json; "
        "ls disk/s/parts >parts; mount -o remount,size=100m disk && "
        f"{shlex.join(words)} >/dev/null 2>second; echo $? >>code; cp -r disk/s whole; }}"
    )
    done = subprocess.run([unshare, "--map-root-user", "--mount", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path("code").read_text().split() == ["4", "0"]
    # After ten seconds a sweep says how far it is.
    *progress, line = Path("first").read_text().splitlines()
    assert all(each.startswith("airloom: fetch: ") for each in progress), progress
    assert re.fullmatch(r"airloom: disk/s: .*\b[Nn]o space left on .*; \d+ of 20000 runs are kept: .*", line), line
    assert not list(Path("parts").read_text().split("partial"))[1:]
    assert start_plain(words, "fresh") == 0
    assert octets(Path("whole")) == octets(Path("fresh"))


def start_plain(words: list[str], out: str) -> int:
    quiet = subprocess.DEVNULL
    return subprocess.run([*words[:-1], out], stdout=quiet, stderr=quiet, check=False).returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_sweep_that_is_interrupted_keeps_what_it_has(number: int, code: int) -> None:
    seeds, _, expected = undisturbed()
    out = Path("stopped")
    for _ in range(10):
        process = start(out, seeds, stderr=subprocess.PIPE)
        while process.poll() is None and not parts(out):
            time.sleep(0.005)
        if process.poll() is None:
            break
        # The machine has become faster since: it ended before anything of it was seen.
        process.communicate()
        shutil.rmtree(out)
    process.send_signal(number)
    began = time.monotonic()
    _, why = process.communicate(timeout=60)
    assert process.returncode == code
    assert time.monotonic() - began < 10
    if number == signal.SIGINT:
        (line,) = why.decode().splitlines()
        found = re.fullmatch(r"airloom: interrupted: (\d+) of \d+ runs are kept, the same command goes on .*", line)
        assert found, line
        kept = [out, *(out / "parts" / name for name in parts(out))]
        assert 0 < int(found[1]) == len(Done(kept))
    assert not (out / "parts" / "under-way").exists(), "it ended as it should"
    assert start(out, seeds).wait() == 0
    assert octets(out) == expected


def test_a_second_process_is_refused_while_one_is_at_the_sweep(fetch: Scenario) -> None:
    import fcntl

    from airloom.errors import UsageError

    fetch.sweep(seeds=[1]).run(out="s")
    with Path("s/.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match=r"^s: another process is at work there; .*$"):
            fetch.sweep(seeds=[1]).run(out="s")
