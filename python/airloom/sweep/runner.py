"""Carries out the runs of a sweep that are still missing, then the tables are made.

On this machine threads of this process take one run after the other (`work.make`). What ends the process ends the
session; which runs were under way then was written down (`suspects`).

Elsewhere a task has a slice of the runs (`work.work`), so large by the measured time of those before it that it takes
some seconds, and less towards the end, so that all workers end together. Where a worker's death is that of its task
alone (Dask), its slice goes out again in halves, and a run that ends its worker alone is lost. Where it breaks the
executor, or is that of this process, it ends the session as here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from itertools import filterfalse, islice
from typing import TYPE_CHECKING

from airloom._core import NameTaken, Part, __version__
from airloom.errors import AirloomError, RunError, UsageError
from airloom.sweep.executors import Place
from airloom.sweep.layout import SweepFolder, lines
from airloom.sweep.suspects import Suspects
from airloom.sweep.times import Progress, State, Times
from airloom.sweep.work import Fault, Group, Job, Key, Made, Stale, make, names, work

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from airloom.sweep.sweep import Sweep

#: How long a slice takes: a share of the session so far, between these seconds; towards the end at least.
_SHARE, _LONG_S, _SHORT_S = 0.02, (2.0, 30.0), 0.25

#: The most runs that a slice has, and of how many it is known in advance which come next: they are in memory.
_MOST, _AHEAD = 10_000, 100_000

#: By what a slice is smaller than a worker's share of all that is left (guided self-scheduling, Polychronopoulos and
#: Kuck 1987): no two cores are equally fast for long.
_GUIDED = 1.5

#: How often it is looked around while no task ends: who waits without an end may not hear of a signal.
_LOOK_S = 0.5

#: Why a run is lost.
_LOST = "the process ended while this run was under way, each time it was tried"


class Runner:
    """One session of a sweep: from opening the folder to finished tables, or to where it was stopped."""

    def __init__(
        self, sweep: Sweep, folder: SweepFolder, place: Place, max_failures: int | None, progress: Progress | None
    ) -> None:
        """`max_failures`: give up when more runs than this failed; `None`: never."""
        self._sweep, self._folder, self._place = sweep, folder, place
        self._max_failures, self._progress = max_failures, progress
        self._suspects = Suspects(folder.ends())
        #: What was made and is only in memory.
        self._rest: list[Part] = []
        #: Seconds of a run in the last task elsewhere.
        self._one_s: float | None = None
        self.total = self.done = self.failed = 0
        self.times = Times(place.slots())

    def run(self, seeds: Sequence[int]) -> None:
        """Makes the runs of all points with these seeds that are not there yet, and the tables."""
        found = self._folder.done()
        self.done = len(found)
        self.failed = found.failed
        points = range(len(self._sweep.points))
        self.total = max(self.total, len(points) * len(seeds))

        def todo() -> Iterator[Key]:
            every = ((point, seed) for point in points for seed in seeds)
            return filterfalse(found.__contains__, every) if found else every

        self._look()
        self.times.begun = self.times.begun or time.perf_counter()
        try:
            if self._suspects:
                self._with_suspects(todo)
            else:
                self._make(todo(), self._place.slots())
        except NameTaken as error:
            raise UsageError(str(error)) from None
        self._folder.finish(names(self._sweep.tables), self._rest)
        self._rest = []

    def finished(self, seeds: Sequence[int], measures: Sequence[str]) -> pl.DataFrame:
        """The runs with these seeds that came to their end: `point`, and which of the measures there are."""
        import polars as pl

        from airloom import tables

        place = self._folder.place / "runs.parquet"
        there = tables.columns_of(place)
        columns = ["point", *(name for name in measures if name in there)]
        return tables.read(place, columns, (pl.col("status") == "ok") & pl.col("seed").is_in(list(seeds)))

    def seeds_made(self) -> NDArray[np.uint64]:
        """The seeds of all runs in the folder, whatever became of them, in order."""
        from airloom import tables

        with tables.scanned(self._folder.place / "runs.parquet") as rows:
            return rows.select("seed").unique().collect(engine="streaming")["seed"].sort().to_numpy()

    def _with_suspects(self, todo: Callable[[], Iterator[Key]]) -> None:
        """What `todo` gives, each time, with those last that may end the session."""
        self._make((run for run in todo() if run not in self._suspects), self._place.slots())
        for run in todo():
            if self._suspects.is_reason(run):
                self._give_up(run)
        for part in self._suspects.parts(todo()):
            self._make(part, 1)

    def _make(self, todo: Iterable[Key], workers: int) -> None:
        if self._place.executor is None:
            self._here(todo, workers)
        else:
            self._elsewhere(self._place.executor, todo)

    def _here(self, todo: Iterable[Key], workers: int) -> None:
        # What comes now may end the process.
        self._folder.keep([file for part in self._rest for file in part.octets(names(self._sweep.tables))])
        self._rest = []
        done, failed_before, runs, simulating = self.done, self.failed, self.times.runs, self.times.simulating

        def look(made: int, failed: int, simulating_ns: int) -> None:
            self.done, self.failed, self.times.runs = done + made, failed_before + failed, runs + made
            self.times.simulating = simulating + simulating_ns / 1e9
            self._look()

        group = self._group(range(len(self._sweep.points)), todo)
        made = make(group, workers, self._folder.parts, look, self._sweep.scenarios.__getitem__)
        look(made.runs, made.failed, made.simulating_ns)
        self._rest = [made]

    def _elsewhere(self, executor: Executor, todo: Iterable[Key]) -> None:
        rest = iter(todo)
        ahead: deque[Key] = deque()
        # Runs of the slices that are out, and how they are written down.
        flying: dict[Future[Made], tuple[list[Key], str]] = {}
        again: deque[list[Key]] = deque()
        is_broken = False
        try:
            while True:
                slots = max(self._place.slots(), 1)
                self.times.slots = max(self.times.slots, slots)
                # More slices than there are workers: nobody waits for us.
                while len(flying) < 2 * slots:
                    ahead.extend(islice(rest, _AHEAD - len(ahead)))
                    if not (ahead or again):
                        break
                    runs = again.popleft() if again else self._next(ahead, slots)
                    # Before it goes out: it may end this process.
                    said = lines(runs)
                    self._folder.under_way([*(said for _, said in flying.values()), said])
                    numbers = sorted({point for point, _ in runs})
                    group = self._group(numbers, [(numbers.index(point), seed) for point, seed in runs])
                    flying[executor.submit(work, group)] = runs, said
                if not flying:
                    return
                finished, _ = wait(flying, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    again.extend(self._take(future, flying[future][0]))
                    del flying[future]
                self._look()
        except (BrokenExecutor, CancelledError) as error:
            is_broken = isinstance(error, BrokenExecutor)
            raise RunError(f"the workers are gone: {str(error) or type(error).__name__}") from None
        finally:
            for future in flying:
                future.cancel()
            self._folder.under_way([said for _, said in flying.values()] if is_broken else [])

    def _next(self, ahead: deque[Key], slots: int) -> list[Key]:
        """Takes out as many runs as a slice has now."""
        size = 1.0
        if self._one_s is not None and not self._sweep.real_time:
            spent_s = time.perf_counter() - self.times.start
            longest_s = min(max(spent_s * _SHARE, _LONG_S[0]), _LONG_S[1])
            size = min(longest_s / self._one_s, max(len(ahead) / (_GUIDED * slots), _SHORT_S / self._one_s), _MOST)
        return [ahead.popleft() for _ in range(min(max(int(size), 1), len(ahead)))]

    def _take(self, future: Future[Made], runs: list[Key]) -> list[list[Key]]:
        """Keeps what a task gave. Slices that are to go out instead of it, if its worker died or met a fault."""
        try:
            made = future.result()
        except (Stale, AirloomError) as error:
            raise RunError(str(error)) from None
        except Exception as error:
            is_fault = isinstance(error, Fault)
            if not is_fault and type(error).__name__ != "KilledWorker":  # Dask's, which may not be installed
                raise
            half = len(runs) // 2
            if half == 0:
                self._give_up(runs[0], str(error) if is_fault else None)
            return [runs[:half], runs[half:]] if half else []
        self._folder.keep(made.files)
        self.done += made.runs
        self.failed += made.failed
        self.times.runs += made.runs
        self.times.simulating += made.simulating_ns / 1e9
        self._one_s = max(made.task_ns / 1e9 / made.runs, 1e-6)
        return []

    def _give_up(self, run: Key, fault: str | None = None) -> None:
        """A run that ends whatever makes it, or has nothing but this fault."""
        point, seed = run
        core = self._sweep.scenarios[self._sweep.variant(point)]
        run_id = core.with_seed(seed).run_id("virtual") if fault else ""
        labels, why = self._sweep.labels[point], fault or _LOST
        part = Part(self._sweep.axis_names, point, labels, seed, run_id, why, is_lost=fault is None)
        self._folder.keep(part.octets(["runs"]))
        self.done += 1
        self.failed += 1

    def _group(self, points: Sequence[int], runs: Iterable[Key]) -> Group:
        sweep = self._sweep
        return Group(
            __version__,
            tuple(Job(point, sweep.labels[point], sweep.variant(point)) for point in points),
            runs,
            sweep.axis_names,
            sweep.tables,
            sweep.seeds[0] if isinstance(sweep.seeds, range) else min(sweep.seeds),
            folders=str(self._folder.place.resolve()) if sweep.folders or sweep.real_time else None,
            real_time=sweep.real_time,
            command=sweep.command,
        )

    def _look(self) -> None:
        if self._max_failures is not None and self.failed > self._max_failures:
            raise TooManyFailures(
                f"{self.failed} of {self.done} runs failed, more than --max-failures {self._max_failures}: stopped"
            )
        if self._progress is not None:
            rate, left = self.times.rate(), self.total - self.done
            self._progress(State(self.done, self.total, self.failed, rate, left / rate if rate else 0.0))


class TooManyFailures(RunError):
    """More runs failed than the person allows; what was made is kept."""
