"""Which of the open readings makes the published gaps appear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from airloom.analysis import mean_interval
from airloom.study import Data, Numbers, StudyTable
from airloom.study.assumptions import NULL, distinct, read, readings

ASSUMPTIONS = Path(__file__).parents[1] / "assumptions.toml"

#: The gaps that the paper has a number for: at most 0.4 s either way, at least 5 s.
LOW, HIGH = 0.001, 0.14
SMALL, LARGE = 0.4, 5.0


def _times(rows: pl.DataFrame, reading: str, error: float) -> Numbers:
    """Page times, one number per seed."""
    found = rows.filter((pl.col("reading") == reading) & (pl.col("bler") == error))
    times = found.group_by("seed").agg(pl.col("load_ns").cast(pl.Float64).mean()).sort("seed")
    return times["load_ns"].to_numpy() / 1e9


def gaps(data: Data) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Of each reading: TCP less SCTP on three streams at the low and the high block error rate."""
    data.at_default_only()
    rows = {"tcp": data.table("page-tcp-readings", "pages"), "sctp": data.table("page-sctp-readings", "pages", lanes=3)}
    # A quick run has no pairs.
    has_pairs = any(name.count(" = ") > 1 for name in rows["tcp"]["reading"].cast(str).unique())
    known = readings(read(ASSUMPTIONS), joint=has_pairs)
    # What sets the same for one protocol was run once.
    made_as = {protocol: distinct(known, protocol) for protocol in rows}
    for reading in known:
        if reading.name != NULL:
            low, high = (
                _times(rows["tcp"], made_as["tcp"][reading.name].name, error)
                - _times(rows["sctp"], made_as["sctp"][reading.name].name, error)
                for error in (LOW, HIGH)
            )
            yield reading.name, low, high


def as_published(low: Numbers, high: Numbers) -> str:
    """Which of the published gaps a reading has; an interval that reaches over the edge does not tell."""
    small, large = mean_interval(low), mean_interval(high)
    found = []
    if small.low >= -SMALL and small.high <= SMALL:
        found.append("small")
    elif small.low <= SMALL and small.high >= -SMALL:
        found.append("small: unclear")
    if large.low >= LARGE:
        found.append("large")
    elif large.high >= LARGE:
        found.append("large: unclear")
    return ", ".join(found) or "neither"


def gaps_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """The gaps, largest at the high rate first."""
    rows = []
    for reading, low, high in sorted(gaps(data), key=lambda found: -found[2].mean()):
        means = [f"{gap.value:+.2f} ± {gap.half_width:.2f}" for gap in (mean_interval(low), mean_interval(high))]
        rows.append([reading, *means, f"{np.median(high):+.2f}", as_published(low, high)])
    columns = ["reading", "mean gap at 0.001, s", "mean gap at 0.14, s", "median at 0.14", "as published"]
    return columns, rows


TABLES = {
    "gaps": StudyTable(
        "The published gaps at every reading: TCP less SCTP on three streams",
        gaps_table,
        f"Published are less than {SMALL} s at {LOW} (small) and more than {LARGE:.0f} s at {HIGH} (large). A reading "
        "has a gap if the whole 95 % interval of its mean lies there; if only a part does, it is unclear.",
    )
}
