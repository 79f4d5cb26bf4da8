"""Slices of a sweep as tasks of an executor that is not so good."""

import os
import re
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airloom import _core
from airloom._core import Part
from airloom.errors import RunError
from airloom.scenario import Scenario
from airloom.sweep import SweepResults, work
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


def until_its_end(session: Callable[[], SweepResults]) -> tuple[SweepResults, int]:
    """Begins a sweep again until no session of it breaks; how many did."""
    for broken in range(20):
        try:
            return session(), broken
        except RunError as error:
            if not str(error).startswith("the workers are gone: "):
                raise
    raise AssertionError("it does not come to its end")


def die_at(seeds: set[int]) -> None:
    """In a worker: these runs end the process, as one that needs too much memory would."""
    whole = work.OneByOne.__call__

    def some(self: work.OneByOne, thread: int, point: int, seed: int) -> tuple[Part, int]:
        if seed in seeds:
            os.abort()
        return whole(self, thread, point, seed)

    work.OneByOne.__call__ = some  # type: ignore[method-assign]


def test_runs_that_break_a_pool_of_processes_are_lost_in_the_end_and_the_others_are_made(fetch: Scenario) -> None:
    sweep = fetch.sweep(seeds="1..30", folders=True)

    def session() -> SweepResults:
        spawn = get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn, initializer=die_at, initargs=({5, 23},)) as pool:
            return sweep.run(out="s", executor=pool)

    results, broken = until_its_end(session)
    # Once with others and once alone, each; the first time may be the same.
    assert 3 <= broken <= 4
    assert results.failures.select("seed", "status").rows() == [(5, "lost"), (23, "lost")]
    assert results.runs.height == 28
    assert octets(sweep.run(out="s").folder) == octets(sweep.run(out="fresh").folder)


def cannot_read(text: str) -> None:
    """In a worker: a scenario with this setting is not read, but panics."""

    def some(given: bytes, file: str, settings: list[tuple[str, str]], real: list[str]) -> _core.Scenario:
        if text in dict(settings).values():
            Part(["axis"], 0, [], 1, "")  # without the label that its axis wants
        return _core.Scenario(given, file, settings, real)

    vars(work)["Scenario"] = some


def test_a_panic_in_a_worker_where_the_scenario_of_a_point_is_read_is_the_error_of_its_runs(fetch: Scenario) -> None:
    sweep = fetch.sweep({"links.wire.delay": ["20ms", "30ms"]}, seeds="1..5")
    spawn = get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn, initializer=cannot_read, initargs=("30ms",)) as pool:
        results = sweep.run(out="s", executor=pool)
        assert sweep.run(out="s", executor=pool).session is None, "nothing is left to be made"
    assert results.failures.select("point", "seed", "status").rows() == [(1, seed, "failed") for seed in range(1, 6)]
    said = r"a fault in airloom at test_elsewhere.py:\d+: PanicException: index out of bounds: .*"
    assert all(re.fullmatch(said, error) for error in results.failures["error"])
    # Whoever makes them here finds no reason: what failed is called as it would be.
    whole = sweep.run(out="fresh").runs
    assert sorted(results.failures["run_id"]) == sorted(whole.filter(pl.col("point") == 1)["run_id"])


def test_one_run_of_a_large_slice_is_found_in_few_sessions(fetch: Scenario) -> None:
    sweep = fetch.sweep(seeds="1..2000")
    bad = Bad({1500}, BrokenExecutor("all of them"))
    results, broken = until_its_end(lambda: sweep.run(out="s", executor=bad, workers=2))
    assert broken <= 4
    assert results.failures.select("seed", "status").rows() == [(1500, "lost")]
    assert octets(sweep.run(out="s").folder) == octets(sweep.run(out="fresh").folder)


def test_an_executor_that_was_broken_before_says_nothing_of_the_runs(fetch: Scenario) -> None:
    sweep = fetch.sweep(seeds="1..30")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(os.abort).result()
        for _ in range(3):
            with pytest.raises(RunError, match=r"^the workers are gone: "):
                sweep.run(out="s", executor=pool)
    assert list(Path("s/parts").iterdir()) == []
