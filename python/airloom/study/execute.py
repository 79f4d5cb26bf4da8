"""Makes the sweeps of a study. Running it again makes only what is missing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airloom import places
from airloom._core import capabilities
from airloom.doctor import OPTIONAL
from airloom.errors import UsageError
from airloom.study import programs
from airloom.study.folder import Study
from airloom.study.programs import Program
from airloom.sweep import Sweep
from airloom.sweep.layout import MANIFEST
from airloom.sweep.times import State

#: Says whose results are in a folder.
_MANIFEST = "study.json"

#: Told now and then how many runs of all are done.
Progress = Callable[[int], None]


def default_place(name: str) -> Path:
    """Where the sweeps of a study are kept: `runs/studies/<name>` in the current folder."""
    return Path("runs") / "studies" / name


def home(study: Study, out: Path | None, *, force: bool = False) -> Path:
    """Where a study's results are kept: `out`, if they may be (`airloom.places`), or the default."""
    if out is None:
        return default_place(study.name)
    # Those that were begun before studies had a manifest have sweeps all the same.
    if not any(out.glob(f"*/*/{MANIFEST}")) or (out / _MANIFEST).exists():
        places.take(out, study.name, force=force)
        with places.creating(out):
            (out / _MANIFEST).write_text(json.dumps({"study": study.name}) + "\n", encoding="utf-8")
    return out


def planned(study: Study, depth: str, *, real: bool = False) -> dict[str, Sweep]:
    """All sweeps of a study, by the name of the folder that each has: those in virtual time, or those in real time."""
    readings = study.readings(depth)
    found = {}
    for plan in study.plans.values():
        if depth not in plan.seeds or plan.is_real_time != real:
            continue
        found[plan.name] = plan.sweep(study.folder, readings[0], depth)
        if plan.reading_seeds is not None and depth in plan.reading_seeds:
            found[f"{plan.name}-readings"] = plan.reading_sweep(study.folder, readings, depth)
    return found


def size(sweeps: Mapping[str, Sweep]) -> int:
    """Number of runs of all of them."""
    return sum(len(sweep.points) * len(sweep.seeds) for sweep in sweeps.values())


def run(
    sweeps: Mapping[str, Sweep],
    place: Path,
    *,
    workers: int | None = None,
    on: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Makes the runs that are not there yet, in `place`, one folder per sweep. Real time does not go to a cluster."""
    before = 0
    for name, sweep in sweeps.items():
        cores = len(os.sched_getaffinity(0))
        few, there = (min(workers or cores, cores), None) if sweep.real_time else (workers, on)
        sweep.run(out=place / name, force=force, workers=few, on=there, progress=_after(before, progress))
        before += size({name: sweep})


def run_programs(study: Study, place: Path, depth: str, *, real: bool = False) -> None:
    """Runs the study's own programs whose results are not there yet. Not beside the sweeps: some measure time."""
    for program in programs_of(study, depth, real=real):
        programs.run(program, study.folder, place, depth)


def programs_of(study: Study, depth: str, *, real: bool = False) -> list[Program]:
    """The study's own programs at this depth: those that make laboratories, or the others."""
    return [p for p in study.programs.values() if depth in p.depths and p.is_real_time == real]


def expected(shipped: Mapping[str, Any] | None, total: int, workers: int | None) -> str:
    """How long `total` runs may take here, from what those of the full run that ships took; nothing if none ships."""
    if not shipped or not shipped["cost"]["runs"]:
        return ""
    seconds = shipped["cost"]["core_s"] / shipped["cost"]["runs"] * total
    cores = workers or len(os.sched_getaffinity(0))
    return f", about {_span(seconds / cores)} on {cores} core{'s' if cores > 1 else ''}"


def _span(seconds: float) -> str:
    """A length of time in one unit.

    >>> _span(34), _span(100), _span(600)
    ('34 s', '2 min', '10 min')
    """
    return f"{max(seconds, 1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def check_real_time(study: Study) -> None:
    """Raises `UsageError` where `study` has nothing in real time, or this machine allows no laboratories."""
    if not study.real_time:
        raise UsageError(f"{study.name} has nothing in real time")
    if not can_emulate():
        raise UsageError("this machine allows no laboratories: airloom doctor says why")


def can_emulate() -> bool:
    """May this process make laboratories?"""
    return not any(missing and name not in OPTIONAL for name, missing in capabilities())


def _after(before: int, progress: Progress | None) -> Callable[[State], None] | None:
    return None if progress is None else lambda state: progress(before + state.done)
