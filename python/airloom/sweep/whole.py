"""Runs of a sweep whose whole folders are kept: each is made once, for its folder and for the sweep's tables."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from airloom._core import Column, DriveError, Results, Series
from airloom.folder import Folder
from airloom.run import save
from airloom.scenario import Scenario
from airloom.sweep import parts
from airloom.sweep.layout import run_folder
from airloom.sweep.share import Share
from airloom.sweep.work import Group, Variant, scenario


def simulate_whole(group: Group, share: Share) -> dict[str, Any]:
    """Makes runs of a group, each with its folder. The plain data of a part, and `took_ns`."""
    assert group.folders is not None, "asked for folders"
    done: dict[str, Any] = {name: [] for name in ("outcome", "error", "took_ns", "run_id", "rate")}
    summaries: list[dict[str, float]] = []
    piles: dict[str, list[tuple[int, list[Column]]]] = {name: [] for name in group.tables}
    for job, seed in share.runs():
        one = _whole(job.variant).with_seed(seed)
        results, error, took_ns = _into(run_folder(Path(group.folders), job.point, seed), one)
        done["took_ns"].append(took_ns)
        done["outcome"].append(results.outcome if results else None)
        done["error"].append(error)
        done["run_id"].append(one.run_id("virtual"))
        done["rate"].append(_rate(job.variant, seed) if results and seed == group.rate_seed else None)
        for name, pile in piles.items():
            if results and name in results.tables:
                pile.append((len(summaries), results.tables[name]))
        summaries.append(results.summary if results else {})
    tables = {name: _piled(pile) for name, pile in piles.items() if pile}
    return {**done, **parts.summaries(summaries), "tables": tables}


def _into(place: Path, one: Scenario) -> tuple[Results | None, str | None, int]:
    """One run: what it gave, or why it gave nothing, and its nanoseconds; its folder is there if it came to its end."""
    with Folder(place, one.run_id("virtual"), force=True) as folder:
        start = time.perf_counter_ns()
        try:
            results = one._core.simulate(folder.path("trace.pcapng"), None)
        except DriveError as error:
            return None, str(error), time.perf_counter_ns() - start
        took_ns = time.perf_counter_ns() - start
        if results.outcome == "complete":
            save(folder, one, results, "virtual")
    return results, None, took_ns


def _rate(variant: Variant, seed: int) -> Any:
    """The rate over time needs packets, which the folder need not keep: the first seed of a point is made once more."""
    series = Series([], 0)
    series.simulate(0, scenario(variant), [seed], seed)
    return parts.decode(series.part().octets()).done["rate"][0]


def _whole(variant: Variant) -> Scenario:
    return Scenario(scenario(variant), variant.text, variant.file, dict(variant.settings), variant.real)


def _piled(pile: list[tuple[int, list[Column]]]) -> list[tuple[str, str, Any, None, bytes | None]]:
    """The tables of several runs below each other, with the number of the run in the first column `run`."""
    heights = [len(columns[0].values) for _, columns in pile]
    runs = np.repeat(np.array([number for number, _ in pile], dtype="<u4"), heights)
    found: list[tuple[str, str, Any, None, bytes | None]] = [("run", "<u4", runs.tobytes(), None, None)]
    for same in zip(*(columns for _, columns in pile), strict=True):
        valid = None
        if any(column.valid is not None for column in same):
            there = [np.ones(h) if c.valid is None else np.asarray(c.valid) for c, h in zip(same, heights, strict=True)]
            valid = np.concatenate(there).astype("u1").tobytes()
        if same[0].names is not None or isinstance(same[0].values, list):
            found.append((same[0].name, "text", [text for column in same for text in _texts(column)], None, valid))
        else:
            values = np.concatenate([np.asarray(column.values) for column in same])
            found.append((same[0].name, values.dtype.str, values.tobytes(), None, valid))
    return found


def _texts(column: Column) -> list[str]:
    if column.names is None:
        return list(column.values)
    # Where nothing is there, the number of a name need not be one.
    return [column.names[n] if n < len(column.names) else "" for n in column.values]
