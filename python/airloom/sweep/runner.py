"""Carries out the runs of a sweep that are still missing: groups go out, parts come in, then the tables are made.

The first groups end after `first_s` of their place (`executors.Place`), however many runs that are. From then on a
group is so large that it takes about `longest_s`, by the measured time of the runs before it, and a worker begins no
run long after that; towards the end groups are equal shares of what is left, of `shortest_s` or more, and the last ones
get smaller and smaller, down to `last_s`, so that all workers end together. What a group left over goes out again.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from airloom._core import __version__
from airloom.errors import AirloomError, RunError, UsageError
from airloom.sweep import parts
from airloom.sweep.executors import Place
from airloom.sweep.layout import SweepFolder
from airloom.sweep.processes import WorkerDied
from airloom.sweep.work import Group, Job, Made, NameTaken, Stale, work

if TYPE_CHECKING:
    import polars as pl

    from airloom.sweep.sweep import Sweep

#: Runs of the first groups at most, and their points.
_MOST_FIRST = 1000
_MOST_FIRST_POINTS = 8

#: By what a group is smaller than a worker's share of all that is left, towards the end: 1 is a whole share, which a
#: slow core makes too large; with 2 there are half as many groups again.
_GUIDED = 1.5

#: How often a run may take its worker with it before it counts as lost.
_TRIES = 2

#: After so many tasks without a result one after the other, nothing is to be hoped for any more.
_PATIENCE = 20

#: (point, seed)
Key = tuple[int, int]


class State(NamedTuple):
    """How far a sweep is."""

    done: int
    total: int
    failed: int
    #: Runs per second of this session so far, and seconds until all are done at this rate; 0 if not known.
    rate: float
    left_s: float


#: Called after every group.
Progress = Callable[[State], None]


class Times:
    """What a session spent, in seconds; `share` is how much of the workers' time was inside simulations."""

    def __init__(self) -> None:
        """Starts the clock."""
        self.start = time.perf_counter()
        self.begun: float | None = None
        self.runs = 0
        self.groups = 0
        self.simulating = 0.0
        self.in_tasks = 0.0
        self.slots = 1

    def take(self, made: Made) -> None:
        """Counts what a group took."""
        self.runs += made.runs
        self.groups += 1
        self.simulating += made.simulating_ns / 1e9
        self.in_tasks += made.task_ns / 1e9

    def entry(self) -> dict[str, Any]:
        """For `sessions.json`."""
        wall = time.perf_counter() - self.start
        return {
            "runs": self.runs,
            "groups": self.groups,
            "workers": self.slots,
            "wall_s": round(wall, 3),
            "in_tasks_s": round(self.in_tasks, 3),
            "simulating_s": round(self.simulating, 3),
            "share_of_tasks": round(self.simulating / self.in_tasks, 4) if self.in_tasks else None,
            "share_of_workers": round(self.simulating / (wall * self.slots), 4) if self.runs else None,
        }


class Runner:
    """One session of a sweep: from opening the folder to finished tables, or to where it was stopped."""

    def __init__(
        self, sweep: Sweep, folder: SweepFolder, place: Place, max_failures: int | None, progress: Progress | None
    ) -> None:
        """`max_failures`: give up when more runs than this failed; `None`: never."""
        self._sweep = sweep
        self._folder = folder
        self._place = place
        self._keep_in = str(folder.parts.resolve()) if place.shares_files else None
        self._max_failures = max_failures
        self._progress = progress
        self._tries: dict[Key, int] = {}
        #: First runs of groups whose worker died once. That says nothing of the run itself.
        self._blamed: set[Key] = set()
        self._in_vain = 0
        self.total = 0
        self.done: set[Key] = set()
        self.failed = 0
        self.times = Times()
        found = folder.done()
        self.done.update(run for run, status in found.items() if status != "lost")
        self.failed = sum(status == "failed" for status in found.values())

    def run(self, seeds: Sequence[int]) -> None:
        """Makes the runs of all points with these seeds that are not there yet."""
        keys = [(point.number, seed) for point in self._sweep.points for seed in seeds]
        todo = deque(key for key in keys if key not in self.done)
        self.total = max(self.total, len(self.done) + len(todo))
        alone: deque[Key] = deque()  # runs that ended their worker: they go out one by one
        flying: dict[Future[Made], Group] = {}
        self._say()
        try:
            while todo or alone or flying:
                self._refill(todo, alone, flying)
                finished, _ = wait(flying, timeout=5, return_when=FIRST_COMPLETED)
                for future in finished:
                    group = flying.pop(future)
                    todo.extendleft(reversed(self._take(future, group, alone)))
                self._say()
                self._give_up_if_too_many_failed()
        finally:
            for future in flying:
                future.cancel()

    def finished(self, seeds: Sequence[int]) -> pl.DataFrame:
        """The runs with these seeds that came to their end."""
        import polars as pl

        found = self._folder.runs(self._sweep.axes, self._sweep.labels)
        return found.filter((pl.col("status") == "ok") & pl.col("seed").is_in(list(seeds)))

    def _refill(self, todo: deque[Key], alone: deque[Key], flying: dict[Future[Made], Group]) -> None:
        slots = max(self._place.slots(), 1)
        self.times.slots = max(self.times.slots, slots)
        while alone and len(flying) < slots:
            self._submit([alone.popleft()], flying)
        # More groups than there are workers: nobody waits for us. But for the first ones: of those nobody knows how
        # large they should be.
        waiting = slots if self._place.queues else min(self.times.groups, 1)
        while todo and len(flying) < slots + waiting:
            size = min(self._size(len(todo), slots, len(flying)), len(todo))
            self._submit(self._taken(todo, size), flying)

    def _taken(self, todo: deque[Key], size: int) -> list[Key]:
        """The next runs. The first groups are of few points: reading a scenario may take as long as many runs."""
        if self.times.runs:
            return [todo.popleft() for _ in range(size)]
        points = list(dict.fromkeys(point for point, _ in islice(todo, size)))[:_MOST_FIRST_POINTS]
        return [todo.popleft() for _ in range(sum(point in points for point, _ in islice(todo, size)))]

    def _size(self, left: int, slots: int, flying: int) -> int:
        """How many runs the next group has, with `flying` groups under way."""
        if self._sweep.real_time:
            return 1
        if self.times.runs == 0:  # as many as there may be time for
            return min(math.ceil(left / (2 * slots)), _MOST_FIRST)
        one = max(self.times.in_tasks / self.times.runs, 1e-6)
        if left * one > 2 * slots * self._place.longest_s:
            return max(round(self._place.longest_s / one), 1)
        # Towards the end: as many equal groups as are long enough, together with those under way some for each worker.
        groups = int(left * one / self._place.shortest_s)
        if groups > 2 * slots:
            return max(math.ceil(left / (groups - (groups + flying) % slots)), 1)
        # The last ones: equal groups would not end together, since no two cores are equally fast for long. Each is
        # somewhat smaller than its share of what is left (guided self-scheduling, Polychronopoulos and Kuck 1987).
        return max(math.ceil(left / (_GUIDED * slots)), math.ceil(self._place.last_s / one), 1)

    def _submit(self, keys: list[Key], flying: dict[Future[Made], Group]) -> None:
        seeds: dict[int, list[int]] = {}
        for point, seed in keys:
            seeds.setdefault(point, []).append(seed)
        sweep = self._sweep
        jobs = tuple(Job(point, sweep.variant(point), tuple(of_point)) for point, of_point in seeds.items())
        group = Group(
            __version__,
            jobs,
            sweep.tables,
            sweep.seeds[0],
            # Half as much again as is aimed at: a guess that is far off costs no more than that.
            budget_s=1.5 * self._place.longest_s if self.times.runs else self._place.first_s,
            axes=tuple(axis.key for axis in sweep.axes),
            keep_in=self._keep_in,
            folders=str(self._folder.place.resolve()) if sweep.folders or sweep.real_time else None,
            real_time=sweep.real_time,
            command=sweep.command,
        )
        if self.times.begun is None:
            self.times.begun = time.perf_counter()
        flying[self._place.executor.submit(work, group)] = group

    def _take(self, future: Future[Made], group: Group, alone: deque[Key]) -> list[Key]:
        """Keeps what a group gave; the runs that are still to be made."""
        try:
            made = future.result()
        except NameTaken as error:
            raise UsageError(str(error)) from None
        except (Stale, AirloomError) as error:
            raise RunError(str(error)) from None
        except OSError:
            raise
        except Exception as error:
            if not _worker_ended(error):
                raise
            return self._blame(group, str(error) or type(error).__name__, alone)
        if made.octets is not None:
            self._folder.write_part(made.octets)
        self._in_vain = 0
        self.times.take(made)
        runs = group.runs
        self.done.update(runs[: made.runs])
        self.failed += made.failed
        return runs[made.runs :]

    def _blame(self, group: Group, why: str, alone: deque[Key]) -> list[Key]:
        """A group whose worker died: its runs go out again one by one, and one that does it again is lost."""
        self._in_vain += 1
        if self._in_vain > _PATIENCE + self.times.slots:
            raise RunError(f"task after task failed, the last one so: {why}; {len(self.done)} runs are kept")
        if len(group.runs) > 1:
            if group.runs[0] not in self._blamed:  # killed from outside, most likely
                self._blamed.add(group.runs[0])
                return group.runs
            alone.extend(group.runs)
            return []
        key = group.runs[0]
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] <= _TRIES:
            alone.append(key)
            return []
        self._folder.write_part(parts.encode(parts.lost(group.runs, why)))
        self.done.add(key)
        self.failed += 1
        return []

    def _give_up_if_too_many_failed(self) -> None:
        if self._max_failures is not None and self.failed > self._max_failures:
            raise TooManyFailures(
                f"{self.failed} of {len(self.done)} runs failed, more than --max-failures {self._max_failures}: stopped"
            )

    def _say(self) -> None:
        if self._progress is None:
            return
        spent = time.perf_counter() - (self.times.begun or time.perf_counter())
        rate = self.times.runs / spent if spent > 0 else 0.0
        left = self.total - len(self.done)
        self._progress(State(len(self.done), self.total, self.failed, rate, left / rate if rate else 0.0))


def _worker_ended(error: Exception) -> bool:
    """Did the task fail because its worker went away, which is not the task's fault (or only by being too large)?"""
    if isinstance(error, WorkerDied | BrokenExecutor | CancelledError):
        return True
    return type(error).__name__ in ("KilledWorker", "FutureCancelledError")  # Dask's, which may not be installed


class TooManyFailures(RunError):
    """More runs failed than the person allows; what was made is kept."""
