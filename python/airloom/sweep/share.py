"""The runs that a task makes: all of its group, or what it takes from a group that several workers share."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from airloom.sweep.ledger import Taker

if TYPE_CHECKING:
    from airloom.sweep.work import Group, Job

#: (point, seed) of a run.
Key = tuple[int, int]

#: Seconds that what is taken at once should take at most and at least: to take it costs less than a tenth of a
#: millisecond.
_LONGEST_S = 0.1
_SHORTEST_S = 0.001

#: What is taken towards the end is smaller than a worker's share of what is left by this factor: so all end together,
#: though no two cores are equally fast for long (guided self-scheduling, Polychronopoulos and Kuck 1987).
_GUIDED = 2


class Shared(NamedTuple):
    """How the workers share a group."""

    #: The descriptor of the entries (`ledger`).
    ledger: int
    #: The number of the task.
    task: int
    #: How many workers there are.
    workers: int


class Share:
    """What one task makes. After the group's `budget_s` no further run is begun, though the first one always is."""

    def __init__(self, group: Group) -> None:
        """Begins now."""
        self._group = group
        self._begin = time.perf_counter()
        #: Where the runs of each job end, counted through.
        self._ends = list(accumulate(len(job.seeds) for job in group.jobs))
        #: First run and number of those that are this task's, in the order in which they are made.
        self.taken: list[tuple[int, int]] = []

    def jobs(self) -> Iterator[tuple[Job, Sequence[int]]]:
        """Runs of a point that are to be made next, by their seeds. The caller keeps to `budget_s` among them."""
        for first, count in self._pieces():
            self.taken.append((first, count))
            at, end = first, first + count
            while at < end:
                number = bisect_right(self._ends, at)
                job = self._group.jobs[number]
                begin = self._ends[number] - len(job.seeds)
                yield job, job.seeds[at - begin : end - begin]
                at = self._ends[number]

    def runs(self) -> Iterator[tuple[Job, int]]:
        """Each run that is to be made next."""
        is_first = True
        for job, seeds in self.jobs():
            for seed in seeds:
                if not is_first and self._left_s() <= 0:
                    return
                yield job, seed
                is_first = False

    def keys(self) -> list[Key]:
        """Each run that is this task's."""
        return taken(self._group.runs, self.taken)

    def _left_s(self) -> float:
        return self._group.budget_s - (time.perf_counter() - self._begin)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        total = self._ends[-1] if self._ends else 0
        if self._group.shared is None:
            yield 0, total
            return
        fd, task, workers = self._group.shared
        with Taker(fd, task) as taker:
            count, left_s = 1, self._left_s()  # nobody knows yet how long a run takes
            while count > 0:
                first = taker.take(count)
                if first >= total:
                    return
                count = min(count, total - first)
                yield first, count
                before, left_s = left_s, self._left_s()
                count = _count((before - left_s) / count, left_s, taker.left(total) / (_GUIDED * workers))


def _count(one_s: float, left_s: float, share: float) -> int:
    """How many runs to take next, if one takes `one_s`: for as long as there is time, and no more than `share`."""
    if left_s <= 0:
        return 0
    longest_s = min(_LONGEST_S, left_s, share * one_s)
    return max(int(max(longest_s, _SHORTEST_S) / max(one_s, 1e-9)), 1)


def taken(runs: Sequence[Key], pieces: Sequence[tuple[int, int]]) -> list[Key]:
    """The runs in some pieces."""
    return [run for first, count in pieces for run in runs[first : first + count]]
