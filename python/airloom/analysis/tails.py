"""Heavy tails: what a mean does not say when a few runs carry most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.analysis.statistics import bootstrap_interval, mean_interval, quantile_interval
from airloom.analysis.summary import samples
from airloom.analysis.units import unit_of

#: What a trimmed mean leaves out at each end.
TRIMMED = 0.05

#: The share of largest values whose part of the whole is told.
LARGEST = 0.01


def tails(runs: pl.DataFrame, measure: str, by: Sequence[str] = (), ci: float = 0.95) -> pl.DataFrame:
    """Mean, median, trimmed mean, and the part of the sum that the largest 1 % of values carry, by `by`.

    A row per combination and statistic: `statistic`, `value` with `low` and `high`, `unit`, `ci`, `seeds`, `method`.
    The trimmed mean leaves out 5 % at each end. Without a heavy tail the largest 1 % carry little more than 1 %.

    >>> runs = pl.DataFrame({"seed": range(200), "page_load_s": [1.0] * 199 + [1001.0]})
    >>> tails(runs, "page_load_s")["value"].round(2).to_list()
    [6.0, 1.0, 1.0, 0.84]
    """
    from scipy import stats

    def trimmed(x: NDArray[np.float64], axis: int) -> Any:
        return stats.trim_mean(x, TRIMMED, axis=axis)

    rows: list[dict[str, Any]] = []
    for levels, values in samples(runs, measure, by):
        for name, unit, found in (
            ("mean", unit_of(measure), mean_interval(values, ci)),
            ("median", unit_of(measure), quantile_interval(values, 0.5, ci)),
            ("trimmed mean", unit_of(measure), bootstrap_interval(values, trimmed, ci)),
            ("largest 1 %", "share", bootstrap_interval(values, largest_share, ci)),
        ):
            estimate = {"value": found.value, "low": found.low, "high": found.high}
            about = {"ci": ci, "seeds": found.seeds, "method": found.method}
            rows.append({**levels, "measure": measure, "statistic": name, "unit": unit, **estimate, **about})
    numbers = {name: pl.Float64 for name in ("value", "low", "high", "ci")}
    return pl.DataFrame(rows, schema_overrides={**{name: runs.schema[name] for name in by}, **numbers})


def largest_share(x: NDArray[np.float64], axis: int = -1) -> Any:
    """The part of the sum that the largest 1 % of the values carry: at least one value.

    >>> float(largest_share(np.array([1.0, 1.0, 2.0])))
    0.5
    """
    count = max(round(LARGEST * x.shape[axis]), 1)
    return np.sort(x, axis=axis).take(range(-count, 0), axis=axis).sum(axis=axis) / x.sum(axis=axis)
