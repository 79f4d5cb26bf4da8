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
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from contextlib import contextmanager
from itertools import pairwise
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
#: seconds of it all, workers included, and of the same runs in two processes at once, which says how much of it is
#: simulation: two cores that are at work are slower than one.
SESSION = """\
import json, os, sys, time, types
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
sys.modules["airloom.sweep.results"] = types.SimpleNamespace(SweepResults=Path)
import airloom as al
from airloom._core import make_runs

def spent():
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))

def simulate(seeds):
    begin, start = time.process_time(), time.perf_counter()
    runs = [(0, seed) for seed in seeds]
    made = make_runs([(0, [], scenario._core)], runs, [], [], None, 1)
    return made.simulating_ns / 1e9 / (time.perf_counter() - start) * (time.process_time() - begin)

scenario = al.load("fetch.toml")
sweep = scenario.sweep(seeds=f"1..{sys.argv[1]}")
before = spent()
place = sweep.run(workers=2, out=sys.argv[2])
cpu_s = spent() - before
session = json.loads((place / "sessions.json").read_text())[-1]
answers, answer = os.pipe()
is_ours = os.fork()
simulation = simulate(sweep.seeds[bool(is_ours)::2])
if not is_ours:
    os.write(answer, repr(simulation).encode())
    os._exit(0)
simulation += float(os.read(answers, 100))
print(json.dumps({**session, "cpu_s": cpu_s, "simulation_cpu_s": simulation}))
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

    A task that sleeps takes as long on a busy machine as on an idle one. What Dask adds is the gap between the end of a
    task and the begin of the next one at the same worker, and the CPU seconds beyond those of a cluster that waits.
    """
    from airloom.sweep.executors import on

    with _cluster(place) as (scheduler_file, pids), on(f"scheduler-file:{scheduler_file}") as there:
        deadline = time.monotonic() + 60
        while there.slots() < 2:
            if time.monotonic() > deadline:
                raise Failed("the workers did not come up")
            time.sleep(0.1)
        assert there.executor is not None
        _tasks(there.executor, 8, 0.01)
        start, spent = time.perf_counter(), _cpu_s(pids)
        made = _tasks(there.executor, tasks, _TASK_S)
        took, spent = time.perf_counter() - start, _cpu_s(pids) - spent
        idle = _cpu_s(pids)
        time.sleep(took)
        idle = _cpu_s(pids) - idle
    gaps: list[float] = []
    for worker in {pid for pid, _, _ in made}:
        spans = sorted((begin, end) for pid, begin, end in made if pid == worker)
        gaps += [after[0] - before[1] for before, after in pairwise(spans)]
    return {
        "dask.gap_ms": 1e3 * median(gaps),
        "dask.overhead": median(gaps) / _TASK_S,
        "dask.task_cpu_ms": 1e3 * (spent - idle) / tasks,
        "dask.idle_core": idle / took,
    }


#: A task: its process, and when it began and ended, on the clock that the processes of a machine share. As an
#: expression, since workers have airloom and not these tools.
_TASK = "(__import__('os').getpid(), (t := __import__('time')).monotonic(), t.sleep({}), t.monotonic())"


def _tasks(executor: Executor, count: int, seconds: float) -> list[tuple[int, float, float]]:
    """Tasks that sleep, each worker with one waiting beside it, as a sweep deals them out: process, begin and end."""
    made = []
    flying = {executor.submit(eval, _TASK.format(seconds)) for _ in range(4)}
    left = count - len(flying)
    while flying:
        finished, flying = wait(flying, return_when=FIRST_COMPLETED)
        for future in finished:
            pid, begin, _, end = future.result()
            made.append((pid, begin, end))
        for _ in range(min(len(finished), left)):
            flying.add(executor.submit(eval, _TASK.format(seconds)))
            left -= 1
    return made


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
            # Nothing is to be saved, and a worker whose scheduler goes waits for it to come back.
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    measure("--quick" in sys.argv)
