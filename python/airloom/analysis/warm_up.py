"""Leaving out the beginning of a series, where it still shows how it was started."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from airloom.errors import UsageError


def cut_warm_up(table: pl.DataFrame, seconds: float, column: str = "start_ns") -> pl.DataFrame:
    """The rows that begin `seconds` of model time or more after the start of their run.

    >>> pages = pl.DataFrame({"start_ns": [0, 5_000_000_000, 9_000_000_000]})
    >>> cut_warm_up(pages, 5).height
    2
    """
    if column not in table.columns:
        raise UsageError(f"the table has no column {column!r} to tell when a row begins")
    return table.filter(pl.col(column) >= round(seconds * 1e9))


def warm_up_length(values: ArrayLike) -> int:
    """How many values to leave out at the beginning of a series, by the marginal standard error rule (MSER-5).

    White, K. P. (1997): the cut, in batches of five, that gives the rest the smallest standard error; at most half.

    >>> warm_up_length([9.0] * 10 + [1.0, 2.0] * 50)
    10
    """
    x = np.asarray(values, dtype=np.float64)
    batches = x[: len(x) // 5 * 5].reshape(-1, 5).mean(axis=1)
    count = len(batches)
    if count < 4:
        return 0
    errors = [batches[cut:].var() / (count - cut) for cut in range(count // 2 + 1)]
    return int(np.argmin(errors)) * 5
