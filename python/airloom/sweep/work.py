"""What a worker does with a group of runs. Imported by every worker: nothing here may import numpy or polars."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from airloom._core import Scenario, Series, __version__
from airloom.sweep import parts
from airloom.sweep.share import Key, Share, Shared


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
    """Runs for a task, or for several that share them."""

    version: str
    jobs: tuple[Job, ...]
    #: Tables that come back besides the summaries.
    tables: tuple[str, ...]
    #: The seed whose rate over time is wanted.
    rate_seed: int | None
    #: Seconds after which a task begins no further run.
    budget_s: float
    #: How several tasks share these runs; `None`: they are one task's.
    shared: Shared | None = None
    #: What the axes are called: nothing that runs measure may be called so.
    axes: tuple[str, ...] = ()
    #: Where the worker keeps the part itself, should it share our files; else, and with folders, it sends its octets.
    keep_in: str | None = None
    #: Folder for whole run folders, if those are wanted.
    folders: str | None = None
    #: Run in real time, with this command in the first real host (or none).
    real_time: bool = False
    command: tuple[str, ...] | None = None

    @property
    def runs(self) -> list[Key]:
        """(point, seed) of each run, in order."""
        return [(job.point, seed) for job in self.jobs for seed in job.seeds]


#: No runs.
NOTHING = Group(__version__, (), (), None, 0)


class Made(NamedTuple):
    """What the runs of a task gave."""

    #: The part as it is kept (`parts`); `None` if the worker kept it itself.
    octets: bytes | None
    #: First run and number of those of the group that are the task's, in its order.
    taken: list[tuple[int, int]]
    #: How many of them were made: the first ones.
    runs: int
    #: How many of them did not come to their end.
    failed: int
    #: Nanoseconds inside simulations, and of the whole task.
    simulating_ns: int
    task_ns: int


class Stale(Exception):
    """The worker has another version of airloom."""


class NameTaken(Exception):
    """Runs measure something that is called as an axis is."""


@lru_cache(maxsize=64)
def scenario(variant: Variant) -> Scenario:
    """The scenario at a point: read once by each worker."""
    return Scenario(variant.text, variant.file, list(variant.settings), list(variant.real))


def work(group: Group) -> Made:
    """Makes the runs."""
    if group.version != __version__:
        raise Stale(f"a worker has airloom {__version__}, this is {group.version}: install the same version there")
    start = time.perf_counter_ns()
    share = Share(group)
    if group.real_time:
        from airloom.sweep.emulated import emulate_all

        made = made_of(group, share, emulate_all(group, share))
    elif group.folders is not None:
        from airloom.sweep.whole import simulate_whole

        made = made_of(group, share, simulate_whole(group, share))
    else:
        made = _simulate(group, share)
    return made._replace(task_ns=time.perf_counter_ns() - start)


def _simulate(group: Group, share: Share) -> Made:
    series = Series(group.tables, group.budget_s)
    for job, seeds in share.jobs():
        if not series.simulate(job.point, scenario(job.variant), seeds, group.rate_seed):
            break
    part = series.part()
    if group.axes:
        _refuse_names(group, part.names())
    if group.keep_in is not None and part.runs:
        parts.keep(group.keep_in, part.write)
    octets = part.octets() if group.keep_in is None else None
    return Made(octets, share.taken, part.runs, part.failed, part.simulating_ns, 0)


def made_of(group: Group, share: Share, done: dict[str, Any]) -> Made:
    """What runs gave that were made one by one: the plain data of a part, and their `took_ns`."""
    part = parts.part(share.keys(), done)
    _refuse_names(group, part.names)
    failed = part.statuses.count("failed")
    octets = parts.encode(part) if part.runs else None
    return Made(octets, share.taken, len(part.runs), failed, sum(done["took_ns"]), 0)


def _refuse_names(group: Group, measured: Iterable[str]) -> None:
    if taken := set(group.axes).intersection(measured):
        name = min(taken)
        raise NameTaken(f"an axis cannot be called {name!r}: runs measure something of that name; rename the axis")
