"""Carries out the runs of a sweep that are still missing: groups go out, parts come in, then the tables are made.

Where the workers are of this machine, they share all runs and take them themselves (`share`, `ledger`); a task ends
after about `longest_s` of its place (`executors.Place`), so that what it made is kept.

Elsewhere each task has a group of its own. The first ones end after half a second, however many runs that are. From
then on a group is so large that it takes about `longest_s`, by the measured time of the runs before it, and a worker
begins no run long after that; towards the end groups get smaller, down to `shortest_s`, so that all workers end
together.

What a task left over goes out again. A task whose worker dies may have become too large: each makes the next ones
shorter, down to one run, until some end well. What was under way goes out again, alone if a worker died of it twice.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from itertools import groupby, islice, product, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from airloom._core import __version__
from airloom.errors import AirloomError, RunError, UsageError
from airloom.sweep import parts
from airloom.sweep.executors import Place
from airloom.sweep.layout import SweepFolder
from airloom.sweep.ledger import Ledger
from airloom.sweep.processes import WorkerDied
from airloom.sweep.share import Key, Shared, taken
from airloom.sweep.times import Progress, State, Times
from airloom.sweep.work import Group, Job, Made, NameTaken, Stale, work

if TYPE_CHECKING:
    import polars as pl

    from airloom.sweep.sweep import Sweep

#: Runs and points that workers share at once, at most: each task is told of all of them.
_MOST_SHARED = 100_000
_MOST_SHARED_POINTS = 1000

#: Runs of the first groups at most, and their points: reading a scenario may take as long as many runs.
_MOST_FIRST = 1000
_MOST_FIRST_POINTS = 8

#: After how many seconds the first tasks end: what they made is kept, and one knows how long a run takes.
_FIRST_S = 0.5

#: By what a group is smaller than a worker's share of all that is left, towards the end: 1 is a whole share, which a
#: slow core makes too large; with 2 there are half as many groups again.
_GUIDED = 1.5

#: How often a run may be under way when its worker dies, before it goes out alone, and before it counts as lost.
_DEATHS_TOGETHER = 1
_DEATHS = 4

#: After so many deaths one after the other that tell nothing more of a suspect, nothing is to be hoped for any more.
_PATIENCE = 20

#: How often it is looked around while no task ends: who waits without an end may not hear of a signal.
_LOOK_S = 0.5

#: How short tasks get when workers die, seconds: less than any run.
_LEAST_S = 1e-6

#: By what tasks get longer again with each that ends well, after workers died.
_REGAIN = 1.1


class _Pool:
    """Runs that went out together, to one task or to several that share them."""

    def __init__(self, group: Group, runs: list[Key]) -> None:
        self.group = group
        self.runs = runs
        #: How many of them are not made yet.
        self.left = len(runs)
        #: Tasks that are at them now.
        self.tasks = 0


class _Task(NamedTuple):
    pool: _Pool
    shared: Shared | None


class Runner:
    """One session of a sweep: from opening the folder to finished tables, or to where it was stopped."""

    def __init__(
        self, sweep: Sweep, folder: SweepFolder, place: Place, max_failures: int | None, progress: Progress | None
    ) -> None:
        """`max_failures`: give up when more runs than this failed; `None`: never."""
        self._sweep = sweep
        self._folder = folder
        self._place = place
        self._keep_in = str(folder.parts.resolve()) if place.ledger is not None else None
        self._max_failures = max_failures
        self._progress = progress
        #: How often a run was under way when its worker died: killed from outside, most likely, if it was once.
        self._deaths: Counter[Key] = Counter()
        self._in_vain = 0
        #: How long a task may take now.
        self._longest_s = place.longest_s
        #: Runs that go out one by one, and all that did.
        self._alone: deque[Key] = deque()
        self._were_alone: set[Key] = set()
        #: What the workers share now.
        self._shared: _Pool | None = None
        self.total = 0
        self.done: set[Key] = set()
        self.failed = 0
        #: Of the failed ones those that ended with their workers, in this session: they are made again in the next.
        self._lost = 0
        self.times = Times()
        found = folder.done()
        self.done.update(run for run, status in found.items() if status != "lost")
        self.failed = sum(status == "failed" for status in found.values())

    @property
    def kept(self) -> int:
        """How many runs need not be made again."""
        return len(self.done) - self._lost

    def run(self, seeds: Sequence[int]) -> None:
        """Makes the runs of all points with these seeds that are not there yet."""
        todo = deque(product([point.number for point in self._sweep.points], seeds))
        if self.done:
            todo = deque(key for key in todo if key not in self.done)
        self.total = max(self.total, len(self.done) + len(todo))
        flying: dict[Future[Made], _Task] = {}
        self._say()
        try:
            while todo or self._alone or self._shared or flying:
                self._refill(todo, flying)
                finished, _ = wait(flying, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    task = flying.pop(future)
                    self._take(future, task)
                    todo.extendleft(reversed(self._left_over(task.pool)))
                self._say()
                self._give_up_if_too_many_failed()
        finally:
            for future in flying:
                future.cancel()
        assert len(self.done) == self.total, "no run is forgotten"

    def finished(self, seeds: Sequence[int]) -> pl.DataFrame:
        """The runs with these seeds that came to their end."""
        import polars as pl

        found = self._folder.runs(self._sweep.axes, self._sweep.labels)
        return found.filter((pl.col("status") == "ok") & pl.col("seed").is_in(list(seeds)))

    def _refill(self, todo: deque[Key], flying: dict[Future[Made], _Task]) -> None:
        slots = max(self._place.slots(), 1)
        self.times.slots = max(self.times.slots, slots)
        while self._alone and len(flying) < slots:
            self._submit(self._pool([self._alone.popleft()]), flying)
        if self._place.ledger is not None:
            self._share(self._place.ledger, todo, slots, flying)
            return
        # More groups than there are workers: nobody waits for us. But for the first ones: of those nobody knows how
        # large they should be.
        waiting = slots if self._place.queues else min(self.times.groups, 1)
        while todo and len(flying) < slots + waiting:
            size = min(self._size(len(todo), slots, len(flying)), len(todo))
            most_points = size if self.times.runs else _MOST_FIRST_POINTS
            self._submit(self._pool(_next(todo, size, most_points)), flying)

    def _share(self, ledger: Ledger, todo: deque[Key], slots: int, flying: dict[Future[Made], _Task]) -> None:
        if self._shared is None and todo:
            ledger.clear()
            self._shared = self._pool(_next(todo, _MOST_SHARED, _MOST_SHARED_POINTS))
        while self._shared is not None and len(ledger) < len(self._shared.runs) and len(flying) < slots:
            number = self.times.tasks
            self._submit(self._shared, flying, Shared(ledger.fd, number, slots))

    def _size(self, left: int, slots: int, flying: int) -> int:
        """How many runs the next group has, with `flying` groups under way."""
        if self._sweep.real_time:
            return 1
        if self.times.runs == 0:  # as many as there may be time for
            return min(math.ceil(left / (2 * slots)), _MOST_FIRST)
        one = max(self.times.in_tasks / self.times.runs, 1e-6)
        if left * one > 2 * slots * self._longest_s:
            return max(round(self._longest_s / one), 1)
        # Towards the end: as many equal groups as are long enough, together with those under way some for each worker.
        shortest_s = min(self._place.shortest_s, self._longest_s)
        groups = int(left * one / shortest_s)
        if groups > 2 * slots:
            return max(math.ceil(left / (groups - (groups + flying) % slots)), 1)
        # The last ones: equal groups would not end together, since no two cores are equally fast for long. Each is
        # somewhat smaller than its share of what is left (guided self-scheduling, Polychronopoulos and Kuck 1987).
        return max(math.ceil(left / (_GUIDED * slots)), math.ceil(shortest_s / one), 1)

    def _pool(self, runs: list[Key]) -> _Pool:
        runs.sort(key=itemgetter(0))
        seeds = [(point, [seed for _, seed in of_point]) for point, of_point in groupby(runs, key=itemgetter(0))]
        sweep = self._sweep
        group = Group(
            __version__,
            tuple(Job(point, sweep.variant(point), tuple(of_point)) for point, of_point in seeds),
            sweep.tables,
            sweep.seeds[0],
            budget_s=0,
            axes=tuple(axis.key for axis in sweep.axes),
            keep_in=self._keep_in,
            folders=str(self._folder.place.resolve()) if sweep.folders or sweep.real_time else None,
            real_time=sweep.real_time,
            command=sweep.command,
        )
        return _Pool(group, runs)

    def _submit(self, pool: _Pool, flying: dict[Future[Made], _Task], shared: Shared | None = None) -> None:
        group = pool.group._replace(budget_s=self._budget_s(shared is not None), shared=shared)
        if self.times.begun is None:
            self.times.begun = time.perf_counter()
        flying[self._place.executor.submit(work, group)] = _Task(pool, shared)
        self.times.tasks += 1
        pool.tasks += 1

    def _budget_s(self, is_shared: bool) -> float:
        if self._sweep.real_time:
            return 0
        if self.times.tasks < self.times.slots if is_shared else self.times.runs == 0:
            return min(_FIRST_S, self._longest_s)
        # A group of its own: half as much again as is aimed at. A guess that is far off costs no more than that.
        return self._longest_s * (1 if is_shared else 1.5)

    def _take(self, future: Future[Made], task: _Task) -> None:
        """Keeps what a task gave."""
        task.pool.tasks -= 1
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
            self._blame(task, str(error) or type(error).__name__)
            return
        if made.octets is not None:
            self._folder.write_part(made.octets)
        if made.runs > 0:  # else others had taken the last ones already, which says nothing
            self._in_vain = 0
            self._longest_s = min(self._longest_s * _REGAIN, self._place.longest_s)
        self.times.take(made)
        task.pool.left -= made.runs
        self.done.update(taken(task.pool.runs, made.taken)[: made.runs])
        self.failed += made.failed

    def _left_over(self, pool: _Pool) -> list[Key]:
        """The runs of a pool that are to go out again, once nobody is at them any more."""
        if pool.tasks > 0:
            return []
        if pool is self._shared:
            assert self._place.ledger is not None
            if len(self._place.ledger) < len(pool.runs):
                return []
            self._shared = None
        if pool.left == 0:
            return []
        return [run for run in pool.runs if run not in self.done and run not in self._were_alone]

    def _blame(self, task: _Task, why: str) -> None:
        """A task whose worker died: the runs that may be the reason go out one by one if it happens again."""
        runs = task.pool.runs
        if len(runs) > 1:
            self._longest_s = max(self._longest_s / 2, _LEAST_S)
        if task.shared is not None:
            assert self._place.ledger is not None
            runs = [runs[n] for n in self._place.ledger.last_of(task.shared.task, len(runs))]
        self._deaths.update(runs)
        suspects = [run for run in runs if self._deaths[run] > _DEATHS_TOGETHER]
        # A few more deaths settle what becomes of a suspect; but where no run was ever made, it is not the runs.
        if not suspects or self.times.runs == 0:
            self._in_vain += 1
        if self._in_vain > _PATIENCE + self.times.slots:
            raise RunError(f"task after task failed, the last one so: {why}; {self.kept} runs are kept")
        for run in suspects:
            if self._deaths[run] > _DEATHS and runs == [run]:
                self._folder.write_part(parts.encode(parts.lost(runs, why)))
                self.done.add(run)
                self.failed += 1
                self._lost += 1
            elif run in self._were_alone:
                self._alone.appendleft(run)  # settled before the next one
            else:
                self._alone.append(run)
                self._were_alone.add(run)

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


def _next(todo: deque[Key], most: int, most_points: int) -> list[Key]:
    """Takes out the next runs, and no more than `most`, of no more than so many points."""
    found = list(islice(todo, most))
    points = list(dict.fromkeys(map(itemgetter(0), found)))
    if len(points) > most_points:
        others = set(points[most_points:])
        found = list(takewhile(lambda run: run[0] not in others, found))
    for _ in found:
        todo.popleft()
    return found


class TooManyFailures(RunError):
    """More runs failed than the person allows; what was made is kept."""
