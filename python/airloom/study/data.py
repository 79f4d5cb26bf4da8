"""What `study.py` asks for: the tables of the study's sweeps, at one reading of its assumptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.errors import UsageError
from airloom.run import Run
from airloom.study.assumptions import DEFAULT
from airloom.study.plan import READING
from airloom.sweep import SweepResults
from airloom.sweep.layout import run_folder

#: Why there is nothing by the second clock.
IN_REAL_TIME = "made in real time, on a machine that allows it: airloom study run NAME --real"


class NotSwept(Exception):
    """A claim needs a sweep that was not made at this reading."""


class NotMade(NotSwept):
    """A sweep in real time was not made: this depth, or this machine, has none; or its runs are not valid."""


class Data:
    """The tables of a study at one reading. At the default these are the large sweeps, elsewhere the smaller ones."""

    def __init__(
        self,
        place: Path,
        reading: str | None = None,
        real_time: frozenset[str] = frozenset(),
        same_as: Mapping[str, Mapping[str, str]] | None = None,
        read: dict[tuple[str, str], pl.DataFrame] | None = None,
    ) -> None:
        """`place` holds one folder per sweep; without `reading`, the sweeps that were made at the default only.

        `real_time` names the sweeps and programs by the second clock, which need not be there. `same_as` says, by sweep
        and reading, which reading's runs stand for it: those of a scenario in which both set the same. `read` holds
        tables that were read already, at any reading; give all readings the same one, and each table is read once.
        """
        self._place = place
        self._real_time = real_time
        self._reading = reading
        self._same_as = same_as or {}
        self._read = {} if read is None else read
        self._tables: dict[tuple[str, str], pl.DataFrame] = {}
        self._per_seed: dict[tuple[Any, ...], NDArray[np.float64]] = {}

    @property
    def reading(self) -> str:
        """Name of the reading."""
        return self._reading or DEFAULT

    @cached_property
    def default(self) -> Data:
        """The same study at the default, with the seeds that the large sweeps have."""
        return self if self._reading is None else Data(self._place, None, self._real_time)

    def at_default_only(self) -> None:
        """For what no reading changes. Raises `NotSwept` when a reading of the verdict map is asked for."""
        if self._reading is not None:
            raise NotSwept("no reading changes it")

    def program(self, name: str) -> Any:
        """What a program of the study wrote. Raises `NotMade` if it was not run at this depth."""
        self.at_default_only()
        file = self._place / f"{name}.json"
        if not file.is_file():
            raise NotMade(self._not_made(name))
        return json.loads(file.read_text(encoding="utf-8"))

    def _not_made(self, program: str) -> str:
        return IN_REAL_TIME if program in self._real_time else "measured by the full study"

    def results(self, sweep: str) -> SweepResults:
        """The sweep itself."""
        folder = self._place / (sweep if self._reading is None else f"{sweep}-readings")
        if not folder.is_dir():
            if sweep in self._real_time:
                raise NotMade(IN_REAL_TIME)
            raise NotSwept(f"{sweep} was not made at {self.reading}")
        return SweepResults(folder)

    def table(self, sweep: str, name: str, **where: Any) -> pl.DataFrame:
        """Rows of a table (`runs`, `pages`, `flows`, ..), those where the axes have these labels."""
        key = (sweep, name)
        if key not in self._tables:
            if key not in self._read:
                self._read[key] = self._whole(sweep, name)
            rows = self._read[key]
            if self._reading is not None:
                made_as = self._same_as.get(sweep, {}).get(self._reading, self._reading)
                rows = rows.filter(pl.col(READING) == made_as)
            self._tables[key] = rows
        rows = self._tables[key]
        for axis in where:
            if axis not in rows.columns:
                raise NotSwept(f"{sweep} has no axis {axis!r} at {self.reading}")
        if where:
            rows = rows.filter([pl.col(axis) == label for axis, label in where.items()])
        if rows.is_empty():
            raise NotSwept(f"{sweep} has no runs with {where} at {self.reading}")
        return rows

    def _whole(self, sweep: str, name: str) -> pl.DataFrame:
        """All rows of a table."""
        results = self.results(sweep)
        rows = results.runs if name == "runs" else results.table(name)
        failed = results.failures.height
        if failed and sweep in self._real_time:
            # A machine that was busy otherwise: what it made in time counts, if that is most of it.
            if 2 * failed > results.all_runs.height:
                said = results.failures["error"][0]
                raise NotMade(f"{failed} of {results.all_runs.height} runs in real time failed: {said}")
            return rows.join(results.runs.select("point", "seed"), on=["point", "seed"], how="semi")
        if failed:
            raise UsageError(f"{failed} runs of {results.folder} failed: see its report (airloom report DIR)")
        return rows

    def per_seed(self, sweep: str, name: str, column: str, **where: Any) -> NDArray[np.float64]:
        """The mean of a column over what is varied besides, one number per seed, in the order of seeds."""
        key = (sweep, name, column, *sorted(where.items()))
        if key not in self._per_seed:
            self._per_seed[key] = self._mean_per_seed(sweep, name, column, where)
        return self._per_seed[key]

    def _mean_per_seed(self, sweep: str, name: str, column: str, where: Mapping[str, Any]) -> NDArray[np.float64]:
        rows = self.table(sweep, name, **where)
        missing = rows[column].null_count()
        if missing:
            raise UsageError(
                f"{sweep}: {missing} of {rows.height} rows with {where} have no {column}: something failed"
            )
        found = rows.group_by("seed").agg(pl.col(column).cast(pl.Float64).mean()).sort("seed")[column].to_numpy()
        found.flags.writeable = False  # it is handed out again
        return found

    def runs(self, sweep: str, **where: Any) -> Iterator[tuple[int, Run]]:
        """Seed and run of each with these labels, whole; only of a sweep that keeps folders."""
        home = self.results(sweep).folder
        for row in self.table(sweep, "runs", **where).sort("point", "seed").iter_rows(named=True):
            yield row["seed"], Run(run_folder(home, row["point"], row["seed"]))

    def run(self, sweep: str, **where: Any) -> Run:
        """The first run with these labels, whole; only of a sweep that keeps folders."""
        return next(self.runs(sweep, **where))[1]

    @cached_property
    def seeds(self) -> Mapping[str, int]:
        """Number of seeds of each sweep."""
        found = {}
        for folder in sorted(self._place.glob("*/sweep.json")):
            name = folder.parent.name
            if not name.endswith("-readings"):
                found[name] = len(SweepResults(folder.parent).seeds)
        return found
