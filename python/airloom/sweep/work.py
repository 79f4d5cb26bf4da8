"""What a worker does with a group of runs. Imported by every worker: nothing here may import numpy or polars."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

from airloom._core import Scenario, __version__, simulate_many


class Variant(NamedTuple):
    """A scenario as text, and what a point changes in it: all that another process needs to have it too."""

    text: bytes
    file: str
    settings: tuple[tuple[str, str], ...]
    real: tuple[str, ...]


class Job(NamedTuple):
    """Runs of one point."""

    point: int
    variant: Variant
    seeds: tuple[int, ...]


class Group(NamedTuple):
    """The runs of one task."""

    version: str
    jobs: tuple[Job, ...]
    #: Tables that come back besides the summaries.
    tables: tuple[str, ...]
    #: The seed whose rate over time is wanted.
    rate_seed: int | None
    #: Seconds after which no further run is begun.
    budget_s: float
    #: Folder for whole run folders, if those are wanted.
    folders: str | None = None
    #: Run in real time, with this command in the first real host (or none).
    real_time: bool = False
    command: tuple[str, ...] | None = None

    @property
    def runs(self) -> list[tuple[int, int]]:
        """(point, seed) of each run, in order."""
        return [(job.point, seed) for job in self.jobs for seed in job.seeds]


class Stale(Exception):
    """The worker has another version of airloom."""


@lru_cache(maxsize=64)
def scenario(variant: Variant) -> Scenario:
    """The scenario at a point: read once by each worker."""
    return Scenario(variant.text, variant.file, list(variant.settings), list(variant.real))


def work(group: Group) -> dict[str, Any]:
    """Makes the runs. What `simulate_many` returns, and `task_ns`: the nanoseconds that all of it took here."""
    if group.version != __version__:
        raise Stale(f"a worker has airloom {__version__}, this is {group.version}: install the same version there")
    start = time.perf_counter_ns()
    done: dict[str, Any]
    if group.real_time:
        from airloom.sweep.emulated import emulate_all

        done = emulate_all(group)
    elif group.folders is not None:
        from airloom.sweep.whole import simulate_whole

        done = simulate_whole(group)
    else:
        wanted = [(scenario(job.variant), list(job.seeds), group.rate_seed) for job in group.jobs]
        done = simulate_many(wanted, list(group.tables), group.budget_s)
    done["task_ns"] = time.perf_counter_ns() - start
    return done
