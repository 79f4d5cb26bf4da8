"""Slices of a sweep as tasks of an executor that is not so good."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import RunError
from airloom.scenario import Scenario
from airloom.sweep.work import Group
from tests.sweep.test_sweep import octets


class KilledWorker(Exception):
    """What Dask raises when several workers died of a task."""


class Bad(Executor):
    """Calls at once; some seeds end whoever makes them."""

    def __init__(self, seeds: set[int], error: Exception) -> None:
        self.seeds, self.error, self.tasks = seeds, error, 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        (group,) = args
        assert isinstance(group, Group)
        self.tasks += 1
        future: Future[Any] = Future()
        if self.seeds & {seed for _, seed in group.runs}:
            future.set_exception(self.error)
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_run_that_ends_its_workers_is_lost_and_the_others_of_its_slice_are_not(fetch: Scenario) -> None:
    sweep = fetch.sweep(seeds="1..400")
    bad = Bad({7, 300}, KilledWorker())
    results = sweep.run(out="s", executor=bad, workers=2)
    assert results.failures.select("seed", "status").rows() == [(7, "lost"), (300, "lost")]
    assert results.runs.height == 398
    assert bad.tasks < 100
    assert octets(sweep.run(out="s").folder) == octets(sweep.run(out="fresh").folder)


def test_where_the_workers_are_gone_what_was_made_is_kept(fetch: Scenario) -> None:
    sweep = fetch.sweep(seeds="1..400")
    with pytest.raises(RunError, match=r"^the workers are gone: all of them$"):
        sweep.run(out="s", executor=Bad({300}, BrokenExecutor("all of them")), workers=2)
    assert list(Path("s/parts").iterdir())
    assert octets(sweep.run(out="s").folder) == octets(sweep.run(out="fresh").folder)
