"""`SweepResults`: the tables of a finished (or stopped) sweep, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airloom import tables
from airloom.errors import UsageError
from airloom.json_file import read_json
from airloom.sweep.axes import cells, in_words, seeds
from airloom.sweep.layout import LEADING, MANIFEST

if TYPE_CHECKING:
    from airloom.plot.accessor import Plots


class SweepResults:
    """The results of a sweep, read from its folder when they are asked for."""

    def __init__(self, folder: Path | str) -> None:
        """Opens the folder of a sweep."""
        self.folder = Path(folder)
        self._place = self.folder / "runs.parquet"
        try:
            manifest = read_json(self.folder / MANIFEST)
        except UsageError as error:
            raise UsageError(f"{folder} is not the folder of a sweep: {error}") from None
        if not isinstance(manifest, dict) or "axes" not in manifest:
            raise UsageError(f"{folder} is not the folder of a sweep: its {MANIFEST} says nothing about axes")
        if not self._place.exists():
            raise UsageError(f"{folder}: this sweep is unfinished; the command that began it goes on with it")
        #: What `sweep.json` says: scenario, axes, seeds, version, command.
        self.manifest: dict[str, Any] = manifest

    @property
    def axes(self) -> dict[str, list[Any]]:
        """Labels of the levels of each axis, in order, as they stand in the tables."""
        return {axis["key"]: cells([level["label"] for level in axis["levels"]]) for axis in self.manifest["axes"]}

    @cached_property
    def seeds(self) -> Sequence[int]:
        """The seeds of every point."""
        return seeds(self.manifest["seeds"])

    @cached_property
    def all_runs(self) -> pl.DataFrame:
        """One row per run, failed ones too: `point`, axes, `seed`, `run_id`, `status`, `error`, and the summary."""
        return self.table("runs")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run that came to its end."""
        return self.all_runs if self.failed == 0 else self.all_runs.filter(pl.col("status") == "ok")

    @cached_property
    def failures(self) -> pl.DataFrame:
        """One row per run that did not: where, which seed, and why."""
        columns = ["point", *self.axes, "seed", *LEADING]
        return tables.read(self._place, columns, pl.col("status") != "ok")

    def some(self, *columns: str) -> pl.DataFrame:
        """These columns of `runs`: no others are read, and none is kept."""
        return tables.read(self._place, columns, pl.col("status") == "ok")

    def heads(self) -> pl.DataFrame:
        """One row per point: `point`, its axes, how many runs it has, and how many of them are good."""
        good = (pl.col("status") == "ok").sum().alias("good")
        with tables.scanned(self._place) as rows:
            points = rows.group_by("point").agg(*(pl.first(axis) for axis in self.axes), pl.len(), good)
            return points.sort("point").collect(engine="streaming")

    @cached_property
    def _counts(self) -> tuple[int, int]:
        counts = self.heads().select("len", "good").sum()
        return int(counts["len"][0]), int(counts["good"][0])

    @property
    def total(self) -> int:
        """How many runs there are."""
        return self._counts[0]

    @property
    def failed(self) -> int:
        """How many of them did not come to their end."""
        return self.total - self._counts[1]

    @cached_property
    def columns(self) -> list[str]:
        """What `runs` has."""
        return tables.columns_of(self._place)

    @cached_property
    def pages(self) -> pl.DataFrame:
        """One row per page load of every run."""
        return self.table("pages")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow of every run."""
        return self.table("flows")

    @cached_property
    def rate(self) -> pl.DataFrame:
        """Octets received in each of 24 spans of time, for the least seed of every point."""
        return self.table("rate")

    def table(self, name: str) -> pl.DataFrame:
        """A table of the sweep by its name."""
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise UsageError(f"{self.folder} has no table {name!r}: it was not asked for")
        return tables.read(path)

    @cached_property
    def session(self) -> dict[str, Any] | None:
        """What the last call of `Sweep.run` spent, if it made any runs: seconds, workers, share inside simulations."""
        path = self.folder / "sessions.json"
        if not path.exists():
            return None
        last: dict[str, Any] = read_json(path)[-1]
        return last if last["runs"] else None

    @property
    def measures(self) -> list[str]:
        """Everything that the runs' summaries measure."""
        head = {"point", *self.axes, "seed", *LEADING}
        return [name for name in self.columns if name not in head]

    def mean(self, measure: str, by: str | Sequence[str] | None = None, ci: float = 0.95) -> pl.DataFrame:
        """Mean with its interval over seeds, by the axes in `by` (default: all): see `analysis.summarise`.

        >>> import airloom as al
        >>> results = al.load("umts-page").sweep({"links.radio.loss.downlink": [0, 0.2]}, seeds="1..5").run()
        >>> results.mean("page_load_s", by="links.radio.loss.downlink").columns
        ['links.radio.loss.downlink', 'measure', 'unit', 'mean', 'low', 'high', 'ci', 'seeds', 'method']
        """
        return self._summary(measure, by, "mean", ci)

    def median(self, measure: str, by: str | Sequence[str] | None = None, ci: float = 0.95) -> pl.DataFrame:
        """Median with its bootstrap interval over seeds, by the axes in `by` (default: all)."""
        return self._summary(measure, by, "median", ci)

    def quantile(self, measure: str, q: float, by: str | Sequence[str] | None = None, ci: float = 0.95) -> pl.DataFrame:
        """Quantile `q` (0..1) with its bootstrap interval over seeds, by the axes in `by` (default: all)."""
        return self._summary(measure, by, q, ci)

    def cdf(self, measure: str, by: str | Sequence[str] | None = None) -> pl.DataFrame:
        """Empirical distribution over runs: the axes in `by`, `value`, `share` of runs with at most that value."""
        from airloom.analysis import cdf

        return cdf(self._measured(measure), measure, self._by(by))

    def paired(
        self, measure: str, axis: str, baseline: object = None, by: str | Sequence[str] | None = None, ci: float = 0.95
    ) -> pl.DataFrame:
        """Differences from the `baseline` level of `axis` (default: its first) under the same seed.

        One row per other level and combination of the axes in `by` (default: all others): see `analysis.paired`.
        """
        from airloom.analysis import paired

        runs = self._measured(measure)
        if axis not in self.axes:
            raise UsageError(f"{axis!r} is no axis of this sweep; valid: {', '.join(self.axes)}")
        known = self.axes[axis]
        first = known[0] if baseline is None else baseline if baseline in known else in_words(baseline)
        others = [a for a in self.axes if a != axis] if by is None else self._by(by)
        return paired(runs, measure, axis, first, others, ci)

    @property
    def plot(self) -> Plots:
        """Figures: `results.plot.response("page_load_s", x="links.radio.loss.downlink")` and others."""
        from airloom.plot.accessor import Plots

        return Plots(self)

    def _summary(self, measure: str, by: str | Sequence[str] | None, what: str | float, ci: float) -> pl.DataFrame:
        from airloom.analysis import summarise

        return summarise(self._measured(measure), measure, self._by(by), what, ci)

    def _by(self, by: str | Sequence[str] | None) -> list[str]:
        names = list(self.axes) if by is None else [by] if isinstance(by, str) else list(by)
        for name in names:
            if name not in self.axes:
                raise UsageError(f"{name!r} is no axis of this sweep; valid: {', '.join(self.axes) or 'none'}")
        return names

    def _measured(self, measure: str) -> pl.DataFrame:
        if measure not in self.columns:
            import difflib

            close = difflib.get_close_matches(measure, self.measures, n=5, cutoff=0.3)
            raise UsageError(f"no run of this sweep measures {measure!r}; close to it: {', '.join(close) or 'nothing'}")
        return self.some(*dict.fromkeys(("point", *self.axes, "seed", measure)))

    def __repr__(self) -> str:
        """The folder."""
        return f"SweepResults({str(self.folder)!r})"
