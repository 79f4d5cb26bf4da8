"""The second clock: the study's surf list between real programs, through its links in real time.

    measure_surf.py [--depth quick] [--keep DIR]
    measure_surf.py surf PROXY HTTP T LOSS SEED [--pages N,N,..]
    measure_surf.py ping SIZE SEED COUNT
    measure_surf.py chromium PROXY PAGE SEED

All of it, some fifty minutes (at depth `quick` a few pages on four ways, a good minute), or one list, say
`surf TCP keep-alive 400 0 1`: the forwarder at T = 400 ms without loss under seed 1. Each list (`umts_proxies/ways.py`)
is a laboratory of its own (`umts_proxies/laboratories.py`); nine of them go on beside each other. With `--keep` each
result is a file in that folder, and what is there already is not measured again.

Prints JSON: `rows`, `runs` and `pings` as `umts_proxies/measured.py` reads them; `chromium`, rows of a browser of today
(six connections to a server, each page from an empty cache), where Chromium and Playwright are installed; and `late`:
what has no rows because the machine could not keep its times, twice. Nothing where no laboratories are allowed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airloom import interpreter
from airloom.places import write_whole
from airloom.study.execute import can_emulate
from airloom.study.programs import DEPTHS

# Nothing beside this file is found by itself: it is started so that nothing is imported by chance.
sys.path.insert(0, str(Path(__file__).parent))
from umts_proxies import laboratories
from umts_proxies.ways import FEW_WAYS, PROXIES, WAYS, Way

SEEDS = (1, 2, 3)
#: Round trips are measured with packets of these sizes, this often (quick: this often).
SIZES = (52, 402, 1000, 1500)
PINGS, FEW_PINGS = 100, 12
#: What a quick measurement loads: three of the fifteen pages.
FEW_PAGES = "9,35,45"
#: A laboratory is hardly any work: most of the time all of them wait for the radio. A Chromium is.
BESIDE = 9
BROWSERS = 2

#: The words of one measurement.
Job = tuple[str, ...]


def one(kind: str, *words: str, pages: str = "") -> dict[str, Any]:
    """One measurement."""
    if kind == "surf":
        proxy, http, t, loss, seed = words
        visit = [int(number) for number in pages.split(",") if number]
        return laboratories.surf(Way(proxy, http, int(t), float(loss)), int(seed), visit)
    if kind == "ping":
        return laboratories.ping(*map(int, words))
    proxy, number, seed = words
    return laboratories.chromium(proxy, int(number), int(seed))


def lists(*, quick: bool) -> list[Job]:
    """Round trips, and the lists of pages."""
    seeds, ways, count = (SEEDS[:1], FEW_WAYS, FEW_PINGS) if quick else (SEEDS, WAYS, PINGS)
    few = ("--pages", FEW_PAGES) if quick else ()
    jobs = [("ping", str(size), str(seed), str(count)) for size in SIZES for seed in seeds]
    return jobs + [("surf", *map(str, way), str(seed), *few) for seed in seeds for way in ways]


def pages_of_today() -> list[Job]:
    """The pages in Chromium, if there is one."""
    if not (find_spec("playwright") and shutil.which("chromium")):
        return []
    return [("chromium", proxy, str(page), str(SEEDS[0])) for proxy in PROXIES for page in laboratories.visited()]


def apart(job: Job, keep: Path | None) -> dict[str, Any]:
    """One of them in a process of its own: a laboratory is entered by a thread. Raises what `subprocess.run` does."""
    kept = keep and keep / f"{' '.join(job)}.json"
    if kept and kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    words = interpreter.python(__file__, *job)
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=laboratories.LIMIT_S + 300)
    found = json.loads(done.stdout)
    if kept and found["valid"]:
        write_whole(kept, done.stdout)
    return found


def all_of(jobs: list[Job], beside: int, keep: Path | None, late: list[Job]) -> list[dict[str, Any]]:
    """What all jobs found; those that failed or were too late are tried once more, fewer beside each other.

    Raises `CalledProcessError` for one that fails again.
    """

    def or_late(job: Job) -> dict[str, Any]:
        try:
            return apart(job, keep)
        except subprocess.CalledProcessError:
            return {"valid": False}

    found: list[dict[str, Any]] = []
    for run, at_once in ((or_late, beside), (lambda job: apart(job, keep), (beside + 1) // 2)):
        with ThreadPoolExecutor(at_once) as pool:
            results = list(pool.map(run, jobs))
        found += [result for result in results if result["valid"]]
        jobs = [job for job, result in zip(jobs, results, strict=True) if not result["valid"]]
    late += jobs
    return found


def everything(*, quick: bool, keep: Path | None) -> dict[str, list[Any]]:
    """All that is measured."""
    found: dict[str, list[Any]] = {"rows": [], "runs": [], "pings": [], "chromium": [], "late": []}
    if not can_emulate():
        return found
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    results = all_of(lists(quick=quick), BESIDE, keep, found["late"])
    if not quick:
        results += all_of(pages_of_today(), BROWSERS, keep, found["late"])
    for result in results:
        for kind in ("rows", "runs", "pings", "chromium"):
            found[kind] += result.get(kind, [])
    return found


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="The surf list between real programs.")
    parser.add_argument("job", nargs="*", help="surf PROXY HTTP T LOSS SEED, ping SIZE SEED COUNT, or all")
    parser.add_argument("--pages", default="", help="of a surf list: these pages, such as 9,35")
    parser.add_argument("--depth", choices=DEPTHS, default="full", help="quick: a few pages on four ways")
    parser.add_argument("--keep", type=Path, help="a folder for what is measured, one file each")
    said = parser.parse_args()
    found = one(*said.job, pages=said.pages) if said.job else everything(quick=said.depth == "quick", keep=said.keep)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
