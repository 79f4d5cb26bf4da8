"""When enough seeds are enough: the relative precision of means."""

from __future__ import annotations

import polars as pl

from airloom.analysis.statistics import mean_interval
from airloom.errors import UsageError

#: What a sweep is about if nobody says: the first of these that its runs measure.
USUAL = ("page_load_s", "completion_s", "rtt_mean_s", "goodput_bit_s")


def usual_measure(runs: pl.DataFrame) -> str:
    """The measure that a sweep is most likely about."""
    for measure in USUAL:
        if measure in runs.columns and runs[measure].null_count() < runs.height:
            return measure
    raise UsageError(f"these runs measure none of {', '.join(USUAL)}: say which measure is meant (--measure NAME)")


def is_precise(runs: pl.DataFrame, measure: str | None, wanted: float, ci: float = 0.95, *, points: int = 0) -> bool:
    """Is the half width of the interval of the mean at most `wanted` of the mean at every point?

    `runs` has `point` and the measure (default: what the runs are most likely about). Of `points` those that are not
    there have no run that came to its end: nothing is known of them.

    >>> runs = pl.DataFrame({"point": [0] * 4, "page_load_s": [1.00, 1.01, 0.99, 1.00]})
    >>> is_precise(runs, None, 0.05), is_precise(runs, None, 0.005)
    (True, False)
    """
    measure = measure or usual_measure(runs)
    if measure not in runs.columns:
        raise UsageError(f"these runs measure no {measure!r}")
    if runs["point"].n_unique() < points:
        return False
    for _, rows in runs.group_by("point", maintain_order=True):
        found = mean_interval(rows[measure].drop_nulls().to_numpy(), ci)
        if not found.relative <= wanted:  # not-a-number is not precise
            return False
    return True
