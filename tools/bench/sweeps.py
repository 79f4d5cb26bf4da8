"""Measures sweeps: how much of a session is simulation, what a cluster adds to a task, what a report costs.

`python -m tools.bench.sweeps` prints the numbers; `make bench` puts them on the page. The module has to be a
release build.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tools.bench.measure import Failed

#: A short run: what a sweep of thousands is made of.
FETCH = """\
title = "20 kB over a radio link"
path = ["mobile", "radio", "origin"]

[hosts]
mobile = { app = { http-client = { pages = [["/20kB"]] } } }
origin = { app = "http-server" }

[links]
radio = { bearer = "umts-dch", loss = { downlink = 0.05, uplink = 0.05 } }
"""

#: One session in a process of its own, whose results nobody opens: a table library is no part of the session. CPU
#: seconds of it all, workers included, and of the same runs in one call, which says how much of it is simulation.
SESSION = """\
import json, os, sys, time, types
from pathlib import Path
sys.modules["airloom.sweep.results"] = types.SimpleNamespace(SweepResults=Path)
import airloom as al
from airloom._core import simulate_many
scenario = al.load("fetch.toml")
sweep = scenario.sweep(seeds=f"1..{sys.argv[1]}")
before = os.times()
place = sweep.run(workers=2, out=sys.argv[2])
after = os.times()
session = json.loads((place / "sessions.json").read_text())[-1]
spent, start = time.process_time(), time.perf_counter()
done = simulate_many([(scenario._core, list(sweep.seeds), None)], [], float("inf"))
spent, took = time.process_time() - spent, time.perf_counter() - start
simulation = spent * sum(done["took_ns"]) / 1e9 / took
print(json.dumps({**session, "cpu_s": sum(after[:4]) - sum(before[:4]), "simulation_cpu_s": simulation}))
"""

#: Seconds of a task whose way through the cluster is measured.
_TASK_S = 0.5


def measure(quick: bool = False) -> dict[str, float]:
    """All numbers, by name."""
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="airloom-bench-") as folder:
        place = Path(folder)
        (place / "fetch.toml").write_text(FETCH)
        for runs, count in ((2_000, 3 if quick else 9), (20_000, 1 if quick else 3)):
            numbers |= session(place, runs, count)
        numbers |= report(place, 1 if quick else 5)
        numbers |= cluster(place, 10 if quick else 60)
    for name, value in numbers.items():
        print(f"  {name:<36} {value:.4g}", flush=True)
    return numbers


def session(place: Path, runs: int, count: int) -> dict[str, float]:
    """Shares of a session of `runs` runs on two workers: the medians of `count` of them."""
    found = []
    for number in range(count):
        words = [sys.executable, "-c", SESSION, str(runs), f"{runs}-{number}"]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"a sweep of {runs} runs: {done.stderr}")
        found.append(json.loads(done.stdout))
    of = f"sweep.{runs}"
    return {
        f"{of}.wall_s": median(s["wall_s"] for s in found),
        f"{of}.cpu_s": median(s["cpu_s"] for s in found),
        f"{of}.share_of_cpu": median(s["simulation_cpu_s"] / s["cpu_s"] for s in found),
        f"{of}.share_of_workers": median(s["share_of_workers"] for s in found),
        f"{of}.share_of_tasks": median(s["share_of_tasks"] for s in found),
    }


def report(place: Path, count: int) -> dict[str, float]:
    """`airloom report` of the sweep of 2,000 runs: seconds of the whole command, and the size of the file."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        words = [sys.executable, "-m", "airloom", "report", "2000-0"]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
        seconds.append(time.perf_counter() - start)
        if done.returncode != 0:
            raise Failed(f"airloom report: {done.stderr}")
    octets = (place / "2000-0" / "report.html").stat().st_size
    return {"report.2000.wall_s": median(seconds), "report.2000.octets": float(octets)}


def cluster(place: Path, tasks: int) -> dict[str, float]:
    """What Dask adds to a task of half a second: a scheduler and two workers from the command line, tasks that sleep.

    A task that sleeps takes as long on a busy machine as on an idle one: what is over is the way through the cluster.
    """
    from airloom.sweep.executors import on

    with _cluster(place) as (scheduler_file, pids), on(f"scheduler-file:{scheduler_file}") as there:
        deadline = time.monotonic() + 60
        while there.slots() < 2:
            if time.monotonic() > deadline:
                raise Failed("the workers did not come up")
            time.sleep(0.1)
        for warm in [there.executor.submit(time.sleep, 0.01) for _ in range(8)]:
            warm.result()
        start, spent = time.perf_counter(), _cpu_s(pids)
        # As a sweep does it: each worker has a task waiting beside it.
        flying = {there.executor.submit(time.sleep, _TASK_S) for _ in range(4)}
        left = tasks - len(flying)
        while flying:
            finished, flying = wait(flying, return_when=FIRST_COMPLETED)
            for _ in range(min(len(finished), left)):
                flying.add(there.executor.submit(time.sleep, _TASK_S))
                left -= 1
        each = 2 * (time.perf_counter() - start) / tasks
        cpu = (_cpu_s(pids) - spent) / tasks
    return {
        "dask.task_ms": 1e3 * (each - _TASK_S),
        "dask.overhead": each / _TASK_S - 1,
        "dask.task_cpu_ms": 1e3 * cpu,
        "dask.cpu_overhead": cpu / _TASK_S,
    }


def _cpu_s(pids: list[int]) -> float:
    """CPU seconds of this process and those so far."""
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _cluster(place: Path) -> Iterator[tuple[Path, list[int]]]:
    """A scheduler file and process numbers: the scheduler, and two workers with a thread each."""
    found = place / "scheduler.json"
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = ["-m", "distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(found), *here]
    worker = ["-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *here]
    worker += ["--local-directory", str(place), "--scheduler-file", str(found)]
    with (place / "log").open("wb") as log:
        processes = [
            subprocess.Popen([sys.executable, *words], stdout=log, stderr=log, cwd=place)
            for words in (scheduler, worker, worker)
        ]
        try:
            while not found.exists():
                if processes[0].poll() is not None:
                    raise Failed("the scheduler did not come up")
                time.sleep(0.05)
            yield found, [process.pid for process in processes]
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)


if __name__ == "__main__":
    measure("--quick" in sys.argv)
