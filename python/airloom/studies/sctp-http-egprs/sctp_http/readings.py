"""Which of the open readings makes the published gaps appear."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from airloom.analysis import mean_interval
from airloom.study import Data
from airloom.study.assumptions import DEFAULT, NULL

from .pages import Numbers

#: The gaps that the paper has a number for: at most 0.4 s, at least 5 s.
LOW, HIGH = 0.001, 0.14
SMALL, LARGE = 0.4, 5.0


def _names(reading: str) -> Iterator[str]:
    """Its name, then those with one change less: what one protocol's runs may be called, as none is made twice."""
    yield reading
    changes = reading.split(", ")
    for n in range(len(changes)):
        yield ", ".join(changes[:n] + changes[n + 1 :]) or DEFAULT
    yield DEFAULT


def _times(rows: pl.DataFrame, reading: str, error: float) -> Numbers:
    """Page times, one number per seed."""
    at = next(name for name in _names(reading) if (rows["reading"] == name).any())
    found = rows.filter((pl.col("reading") == at) & (pl.col("bler") == error))
    times = found.group_by("seed").agg(pl.col("load_ns").cast(pl.Float64).mean()).sort("seed")
    return times["load_ns"].to_numpy() / 1e9


def gaps(data: Data) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Of each reading: TCP less SCTP on three streams at the low and the high block error rate."""
    data.at_default_only()
    tcp = data.table("page-tcp-readings", "pages")
    sctp = data.table("page-sctp-readings", "pages", lanes=3)
    readings = pl.concat([tcp["reading"].cast(str), sctp["reading"].cast(str)]).unique(maintain_order=True)
    for reading in readings:
        if reading != NULL:
            low, high = (_times(tcp, reading, e) - _times(sctp, reading, e) for e in (LOW, HIGH))
            yield reading, low, high


def gaps_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """The gaps, largest at the high rate first."""
    rows = []
    for reading, low, high in sorted(gaps(data), key=lambda found: -found[2].mean()):
        small, large = mean_interval(low), mean_interval(high)
        is_published = "small" if small.value < SMALL else ""
        is_published += " and large" if large.value > LARGE else ""
        rows.append(
            [
                reading,
                f"{small.value:+.2f} ± {small.half_width:.2f}",
                f"{large.value:+.2f} ± {large.half_width:.2f}",
                f"{np.median(high):+.2f}",
                is_published.removeprefix(" and ") or "neither",
            ]
        )
    columns = ["reading", "mean gap at 0.001, s", "mean gap at 0.14, s", "median at 0.14", "as published"]
    return columns, rows


TABLES = {"The published gaps at every reading: TCP less SCTP on three streams": gaps_table}
