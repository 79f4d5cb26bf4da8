"""Workers that take runs themselves."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import airloom as al
from airloom.sweep.ledger import Ledger, Taker
from airloom.sweep.share import Share, Shared
from airloom.sweep.work import Group, Job, Variant

VARIANT = Variant(b"", "s.toml", (), ())


def group(seeds: list[int], shared: Shared | None = None, budget_s: float = 60.0) -> Group:
    """Runs of as many points as there are numbers; each number says with how many seeds."""
    jobs = tuple(Job(point, VARIANT, tuple(range(1, count + 1))) for point, count in enumerate(seeds))
    return Group(al.__version__, jobs, (), None, budget_s, shared)


class Clock:
    """Stands still but for what runs take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def test_processes_that_take_runs_at_once_take_each_run_once() -> None:
    shared = Ledger()
    code = (
        "import sys; from airloom.sweep.ledger import Taker\n"
        "taker = Taker(*map(int, sys.argv[1:]))\n"
        "for n in range(2000): print(taker.take(1 + n % 3), 1 + n % 3)"
    )

    def take(task: int) -> list[tuple[int, int]]:
        words = [sys.executable, "-c", code, str(shared.fd), str(task)]
        said = subprocess.run(words, pass_fds=[shared.fd], capture_output=True, text=True, check=True).stdout
        return [(int(first), int(count)) for first, count in map(str.split, said.splitlines())]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(take, range(4)))
    runs = sorted(run for of_task in found for first, count in of_task for run in range(first, first + count))
    assert runs == list(range(len(shared))) == list(range(4 * 3999))
    for task, of_task in enumerate(found):
        first, count = of_task[-1]
        assert shared.last_of(task, len(runs)) == list(range(first, first + count))
    assert shared.last_of(9, len(runs)) == []
    shared.clear()
    assert len(shared) == 0
    shared.close()


def test_a_group_of_its_own_is_made_from_first_to_last() -> None:
    alone = Share(group([2, 3]))
    assert [(job.point, seeds) for job, seeds in alone.jobs()] == [(0, (1, 2)), (1, (1, 2, 3))]
    assert alone.taken == [(0, 5)]
    assert alone.keys() == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]


def test_tasks_take_more_the_shorter_runs_are_and_less_towards_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, both = Clock(monkeypatch), Ledger()
    points = [300] * 10
    one, other = (Share(group(points, Shared(both.fd, task, 2))) for task in (0, 1))
    made: list[tuple[int, int]] = []
    sources = [one.jobs(), other.jobs()]
    while sources:
        for source in list(sources):
            piece = next(source, None)
            if piece is None:
                sources.remove(source)
                continue
            job, seeds = piece
            made += [(job.point, seed) for seed in seeds]
            clock.now += 0.001 * len(seeds)
    assert sorted(made) == [(point, seed) for point in range(10) for seed in range(1, 301)]
    counts = [count for _, count in one.taken]
    assert counts[0] == 1, "of the first one nobody knows how long it takes"
    assert 90 <= max(counts) <= 100, "for a tenth of a second"
    assert counts[-1] <= 2
    assert len(counts) < 40
    assert sorted(one.keys() + other.keys()) == sorted(made)
    both.close()


def test_runs_that_take_long_are_taken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, own = Clock(monkeypatch), Ledger()
    slow = Share(group([4], Shared(own.fd, 0, 2)))
    for _ in slow.runs():
        clock.now += 1.0
    assert slow.taken == [(0, 1), (1, 1), (2, 1), (3, 1)]
    own.close()


@pytest.mark.parametrize("is_shared", [False, True])
def test_after_its_time_a_task_begins_no_run_but_the_first(is_shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, own = Clock(monkeypatch), Ledger()
    shared = Shared(own.fd, 0, 1) if is_shared else None
    for budget_s, count in ((0.0, 1), (2.5, 3)):
        own.clear()
        made = 0
        for _ in Share(group([10], shared, budget_s)).runs():
            made += 1
            clock.now += 1.0
        assert made == count
        if is_shared:
            assert len(own) == count, "what is not made is left to others"
    own.close()


def test_what_a_task_took_stays_known_when_its_process_dies() -> None:
    own = Ledger()
    pid = os.fork()
    if pid == 0:
        taker = Taker(own.fd, 7)
        taker.take(3)
        taker.take(2)
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    with Taker(own.fd, 8) as taker:
        assert taker.left(10) == 5
        assert taker.take(1) == 5
        assert taker.left(5) == 0
    assert own.last_of(7, of=10) == [3, 4]
    assert own.last_of(8, of=10) == [5]
    # Two runs of the seven there are, then what is beyond the last one.
    with Taker(own.fd, 9) as taker:
        assert taker.take(1) == 6
        assert taker.take(1) == 7
    assert own.last_of(9, of=7) == [6]
    assert own.last_of(9, of=6) == []
    own.close()
