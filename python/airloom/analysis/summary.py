"""A measure by axes: one estimate with its interval per combination of levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.analysis.statistics import Interval, mean_interval, quantile_interval
from airloom.analysis.units import unit_of
from airloom.errors import UsageError
from airloom.measures import describe


def summarise(
    runs: pl.DataFrame, measure: str, by: Sequence[str], statistic: str | float = "mean", ci: float = 0.95
) -> pl.DataFrame:
    """One row per combination of `by`: the statistic of `measure` over seeds with its interval.

    `runs` has a row per run with `seed`; `statistic` is `mean`, `median` or a quantile (0..1). What differs between the
    runs of one seed besides `by` is averaged first.

    >>> runs = pl.DataFrame({"loss": [0, 0, 1, 1], "seed": [1, 2, 1, 2], "page_load_s": [1.0, 3.0, 5.0, 5.0]})
    >>> summarise(runs, "page_load_s", ["loss"])["mean"].to_list()
    [2.0, 5.0]
    """
    name = statistic if isinstance(statistic, str) else f"q{statistic:g}"
    rows: list[dict[str, Any]] = []
    for levels, values in samples(runs, measure, by):
        found = estimate(values, statistic, ci)
        if found.low < 0 and statistic == "mean" and describe(measure).is_count:
            # No sample of counts has a mean below 0: neither has a bootstrap's.
            found = mean_interval(values, ci, "bca")
        what, about = {"measure": measure, "unit": unit_of(measure)}, {"seeds": found.seeds, "method": found.method}
        rows.append({**levels, **what, name: found.value, "low": found.low, "high": found.high, "ci": ci, **about})
    kinds = {column: runs.schema[column] for column in by}
    numbers = {name: pl.Float64, "low": pl.Float64, "high": pl.Float64, "ci": pl.Float64, "seeds": pl.Int64}
    texts = {"measure": pl.String, "unit": pl.String, "method": pl.String}
    table = pl.DataFrame(rows, schema_overrides={**kinds, **numbers, **texts})
    return table.select(*by, "measure", "unit", name, "low", "high", "ci", "seeds", "method") if rows else table


def estimate(values: NDArray[np.float64], statistic: str | float, ci: float) -> Interval:
    """The statistic of one sample."""
    if statistic == "mean":
        return mean_interval(values, ci)
    if statistic == "median":
        return quantile_interval(values, 0.5, ci)
    if isinstance(statistic, str):
        raise UsageError(f"no statistic {statistic!r}; valid: mean, median, or a quantile such as 0.95")
    return quantile_interval(values, statistic, ci)


def samples(
    runs: pl.DataFrame, measure: str, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    """Levels and one value per seed of each combination of `by`, in the order of the table."""
    there = runs.filter(pl.col(measure).is_not_null())
    each = there.group_by(*by, "seed", maintain_order=True).agg(pl.col(measure).cast(pl.Float64).mean())
    if not by:
        yield {}, each[measure].to_numpy()
        return
    for levels, rows in each.group_by(*by, maintain_order=True):
        yield dict(zip(by, levels, strict=True)), rows[measure].to_numpy()
