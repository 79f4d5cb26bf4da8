"""What makes runs: for the threads of this machine, and for a task elsewhere, which is a slice of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from airloom._core import DriveError, Part, Results, Scenario, __version__, make_runs
from airloom.sweep.axes import Label
from airloom.sweep.layout import run_folder

if TYPE_CHECKING:
    from airloom.scenario import Scenario as Understood

#: (point, seed) of a run.
Key = tuple[int, int]


class Variant(NamedTuple):
    """A scenario as text, and what a point changes in it: all that another process needs to have it too."""

    text: bytes
    file: str
    settings: tuple[tuple[str, str], ...]
    real: tuple[str, ...]


class Job(NamedTuple):
    """A point."""

    point: int
    #: What the axes call it.
    labels: tuple[Label, ...]
    variant: Variant


class Group(NamedTuple):
    """Runs of some points."""

    version: str
    jobs: tuple[Job, ...]
    #: Index into `jobs`, and seed.
    runs: Iterable[Key]
    axes: tuple[str, ...]
    #: Tables that are kept besides the summaries.
    tables: tuple[str, ...]
    #: The seed whose rate over time is wanted.
    rate_seed: int | None
    #: Folder for whole run folders, if those are wanted.
    folders: str | None = None
    #: Run in real time, with this command in the first real host (or none).
    real_time: bool = False
    command: tuple[str, ...] | None = None


class Made(NamedTuple):
    """What a task gave: Parquet files by the names of their tables, and counts."""

    files: list[tuple[str, bytes]]
    runs: int
    failed: int
    simulating_ns: int
    task_ns: int


class Stale(Exception):
    """The worker has another version of airloom."""


class NameTaken(Exception):
    """Runs measure something that is called as an axis is."""


class Otherwise(Protocol):
    """Makes runs one by one, not all in the simulator's own loop."""

    def __call__(self, thread: int, point: int, seed: int) -> tuple[Part, int]:
        """What a run gave, and its nanoseconds."""
        ...

    def stop(self) -> None:
        """Runs that are under way end soon."""
        ...


@lru_cache(maxsize=64)
def scenario(variant: Variant) -> Scenario:
    """The scenario at a point: read once by each worker."""
    return Scenario(variant.text, variant.file, list(variant.settings), list(variant.real))


def names(tables: Sequence[str]) -> list[str]:
    """All tables of a sweep that keeps these."""
    return ["runs", *tables, "rate"]


def make(
    group: Group,
    workers: int = 1,
    parts: Path | None = None,
    look: Callable[[int, int, int], None] | None = None,
    read: Callable[[Variant], Scenario] = scenario,
) -> Part:
    """Makes the runs on threads of this process (`_core.make_runs`)."""
    otherwise: Otherwise | None = None
    if group.real_time:
        from airloom.sweep.emulated import Emulated

        otherwise = Emulated(group)
    elif group.folders is not None:
        otherwise = Whole(group)
    points = [(job.point, job.labels, read(job.variant)) for job in group.jobs]
    try:
        return make_runs(points, group.runs, group.axes, group.tables, group.rate_seed, workers, parts, look, otherwise)
    except KeyError as error:
        said = f"an axis cannot be called {error.args[0]!r}: runs measure something of that name; rename the axis"
        raise NameTaken(said) from None


def work(group: Group) -> Made:
    """The same as a task of an executor."""
    if group.version != __version__:
        raise Stale(f"a worker has airloom {__version__}, this is {group.version}: install the same version there")
    start = time.perf_counter_ns()
    part = make(group)
    files = part.octets(names(group.tables))
    return Made(files, part.runs, part.failed, part.simulating_ns, time.perf_counter_ns() - start)


class Whole:
    """Runs whose folders are kept: each is made once, for its folder and for the sweep's tables."""

    def __init__(self, group: Group) -> None:
        """For the runs of a group."""
        assert group.folders is not None, "asked for folders"
        self._group, self._place = group, Path(group.folders)
        self._jobs = {job.point: job for job in group.jobs}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """See `Otherwise`."""
        self._stopped.set()

    def __call__(self, thread: int, point: int, seed: int) -> tuple[Part, int]:
        """See `Otherwise`."""
        from airloom.scenario import Scenario as Understood

        del thread
        group, job = self._group, self._jobs[point]
        core, variant = scenario(job.variant), job.variant
        one = Understood(core, variant.text, variant.file, dict(variant.settings), variant.real).with_seed(seed)
        results, error, took_ns = self._into(run_folder(self._place, point, seed), one)
        if seed == group.rate_seed and results is not None:
            # The rate over time needs packets, which the folder need not keep: this one is made once more.
            only = group._replace(jobs=(job,), runs=[(0, seed)], folders=None)
            return make(only), took_ns
        summary, tables = (list(results.summary.items()), results.tables) if results else ([], {})
        kept = [(name, tables[name]) for name in group.tables if name in tables]
        run_id = one.run_id("virtual")
        return Part(group.axes, point, job.labels, seed, run_id, error, summary=summary, tables=kept), took_ns

    def _into(self, place: Path, one: Understood) -> tuple[Results | None, str | None, int]:
        """What a run gave, why it gave nothing, and its nanoseconds; it has a folder if it came to its end."""
        from airloom.folder import Folder
        from airloom.run import save

        with Folder(place, one.run_id("virtual"), force=True) as folder:
            start = time.perf_counter_ns()
            try:
                results = one._core.simulate(folder.path(""), self._go_on)
            except DriveError as error:
                return None, str(error), time.perf_counter_ns() - start
            took_ns = time.perf_counter_ns() - start
            if results.why is None:
                save(folder, one, results, "virtual")
        return results, results.why, took_ns

    def _go_on(self, _: int) -> None:
        if self._stopped.is_set():
            raise InterruptedError
