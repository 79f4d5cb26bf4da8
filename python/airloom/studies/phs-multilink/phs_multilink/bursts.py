"""Bursts of errors on one circuit, and one circuit worse than the others: K04, K26, K28."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import polars as pl

from airloom.study import Computation, Data, Evidence, Numbers, at_default, jackknifed, value

from .transfers import static

#: Lengths of a burst, ms.
LENGTHS = (50, 100, 200, 300, 370, 500, 700, 1000, 1500)
#: The normal round trip of the paper, ms.
ROUND_TRIP_MS = 150


def _more(data: Data, column: str, length: int, sweep: str = "bursts") -> Numbers:
    """Is it more than in the run without a burst? The share of a seed's runs, which differ by where the burst begins.

    With a timeout of 300 ms some transfers send their first segment again whatever follows.
    """
    rows, none = (data.table(sweep, "runs", length=n).sort("seed", "begin") for n in (length, 0))
    more = (rows[column] > none[column]).to_numpy().reshape(rows["seed"].n_unique(), -1)
    return np.asarray(more.mean(axis=1), dtype=np.float64)


def seen(data: Data, length: int) -> Numbers:
    """Did TCP send again because of the burst?"""
    return _more(data, "resent", length)


def expired(data: Data, length: int, sweep: str = "bursts") -> Numbers:
    """Did its timer expire because of it?"""
    return _more(data, "rto_count", length, sweep)


def over(lengths: tuple[int, ...], data: Data) -> Evidence:
    """The share of bursts of these lengths that TCP sees."""
    return value(np.stack([seen(data, n) for n in lengths]).mean(axis=0), "")


def half(data: Data) -> Evidence:
    """The length that half of the bursts of which are seen, by straight lines between lengths."""
    return jackknifed(_half, *(seen(data, n) for n in LENGTHS), unit="")


def _half(*seen: Numbers) -> float:
    """In round trips, by the seeds' shares at each length; infinite if it is not reached."""
    shares = np.asarray([each.mean() for each in seen])
    above = np.flatnonzero(shares >= 0.5)
    if not len(above):
        return math.inf
    n = int(above[0])
    if n == 0:
        return LENGTHS[0] / ROUND_TRIP_MS
    low, high = shares[n - 1], shares[n]
    length = LENGTHS[n - 1] + (0.5 - low) / (high - low) * (LENGTHS[n] - LENGTHS[n - 1])
    return float(length / ROUND_TRIP_MS)


def member(data: Data, errors: float) -> Numbers:
    """Rate with one member that has so many of its frames in error."""
    times = data.per_seed("member", "runs", "client.transfer_mean_s", errors=errors)
    return np.asarray(8 * 300 / times, dtype=np.float64)


def five(data: Data) -> Numbers:
    """Rate of the other five alone, the same file."""
    times = data.per_seed("member-none", "runs", "client.transfer_mean_s")
    return np.asarray(8 * 300 / times, dtype=np.float64)


def round_trip(data: Data) -> Evidence:
    """K04: TCP's smoothed round trip in a get without errors, at the server."""
    rows = data.table("static", "flows", way="get", circuits=6).filter(pl.col("app_bytes_down") > 500_000)
    return value(rows.group_by("seed").agg(pl.col("srtt_ms").mean()).sort("seed")["srtt_ms"].to_numpy(), "ms")


COMPUTE: dict[str, Computation] = {
    "K04.burst": lambda data: value(expired(data, 370, "burst"), ""),
    "K28.short": partial(over, (50, 100)),
    "K28.long": partial(over, (700, 1000, 1500)),
    "K28.half": half,
    "K26.half": at_default(lambda data: value(member(data, 0.5) / five(data), "")),
    "K26.few": at_default(lambda data: value(member(data, 0.02) / member(data, 0.0), "")),
}

__all__ = ["COMPUTE", "LENGTHS", "expired", "five", "member", "seen", "static"]
