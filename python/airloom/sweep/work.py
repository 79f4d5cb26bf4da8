"""What makes runs: for the threads of this machine, and for a task elsewhere, which is a slice of them."""

from __future__ import annotations

import errno
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from airloom._core import Column, DriveError, NameTaken, Part, Results, Scenario, ScenarioError, __version__, make_runs
from airloom.errors import AirloomError
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


class Fault(Exception):
    """A slice came to nothing by a fault in airloom; the sentence says so."""


def fault(error: BaseException) -> str:
    """What is said of an exception that nobody foresaw, and of a panic."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"a fault in airloom at {Path(at.filename).name}:{at.lineno}: {type(error).__name__}: {error}"


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
    otherwise: OneByOne | None = None
    if group.real_time:
        from airloom.sweep.emulated import Emulated

        otherwise = Emulated(group)
    elif group.folders is not None:
        otherwise = Whole(group)
    points = [(job.point, job.labels, read(job.variant)) for job in group.jobs]
    return make_runs(points, group.runs, group.axes, group.tables, group.rate_seed, workers, parts, look, otherwise)


def work(group: Group) -> Made:
    """The same as a task of an executor."""
    if group.version != __version__:
        raise Stale(f"a worker has airloom {__version__}, this is {group.version}: install the same version there")
    start = time.perf_counter_ns()
    try:
        part = make(group)
        files = part.octets(names(group.tables))
    except _FORESEEN:
        raise
    except BaseException as error:
        # A panic could not go from one process to another.
        raise Fault(fault(error)) from None
    return Made(files, part.runs, part.failed, part.simulating_ns, time.perf_counter_ns() - start)


#: What is no fault of ours, and no run's alone.
_FORESEEN = (NameTaken, AirloomError, ScenarioError, OSError, KeyboardInterrupt, SystemExit)

#: What all other runs would meet too.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)


class OneByOne(ABC):
    """Makes runs one by one, not all in the simulator's own loop."""

    #: As identities of runs say it.
    clock: ClassVar[str]

    def __init__(self, group: Group) -> None:
        """For the runs of a group."""
        assert group.folders is not None, "such a run has a folder"
        self._group, self._place = group, Path(group.folders)
        self._jobs = {job.point: job for job in group.jobs}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Runs that are under way end soon."""
        self._stopped.set()

    def __call__(self, thread: int, point: int, seed: int) -> tuple[Part, int]:
        """What a run gave, and its nanoseconds. One that the system or other results stand in the way of is lost."""
        job = self._jobs[point]
        try:
            return self._make(thread, job, seed)
        except (NameTaken, KeyboardInterrupt, SystemExit):
            raise
        except (OSError, AirloomError, MemoryError) as error:
            if self._stopped.is_set() or getattr(error, "errno", None) in _FULL:
                raise
            why = getattr(error, "strerror", None) or str(error) or "no memory"
            return self._part(job, seed, why, is_lost=True), 0
        except BaseException as error:
            return self._part(job, seed, fault(error)), 0

    @abstractmethod
    def _make(self, thread: int, job: Job, seed: int) -> tuple[Part, int]:
        """The same, whatever it raises."""

    def _part(
        self,
        job: Job,
        seed: int,
        error: str | None,
        summary: dict[str, float] | None = None,
        tables: Sequence[tuple[str, Sequence[Column]]] = (),
        *,
        is_lost: bool = False,
    ) -> Part:
        run_id = scenario(job.variant).with_seed(seed).run_id(self.clock)
        values = list((summary or {}).items())
        return Part(self._group.axes, job.point, job.labels, seed, run_id, error, is_lost, values, tables)


class Whole(OneByOne):
    """Runs whose folders are kept: each is made once, for its folder and for the sweep's tables."""

    clock = "virtual"

    def _make(self, thread: int, job: Job, seed: int) -> tuple[Part, int]:
        from airloom.scenario import Scenario as Understood

        del thread
        group, variant = self._group, job.variant
        core = scenario(variant)
        one = Understood(core, variant.text, variant.file, dict(variant.settings), variant.real).with_seed(seed)
        results, error, took_ns = self._into(run_folder(self._place, job.point, seed), one)
        if seed == group.rate_seed and results is not None:
            # The rate over time needs packets, which the folder need not keep: this one is made once more.
            only = group._replace(jobs=(job,), runs=[(0, seed)], folders=None)
            return make(only), took_ns
        if results is None:
            return self._part(job, seed, error), took_ns
        kept = [(name, results.tables[name]) for name in group.tables if name in results.tables]
        return self._part(job, seed, error, results.summary, kept), took_ns

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
