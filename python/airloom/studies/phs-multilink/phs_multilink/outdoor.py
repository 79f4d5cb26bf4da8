"""Field strength, errors and rates: Figs. 3 and 4, and calls that do not come about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from airloom.study import Data, Evidence, exact, value
from airloom.study.data import NotMade

from .transfers import SIZE, Numbers, at_default

#: dBuV from which on the paper sees no errors, and above which every unit has to be.
CLEAN, NEEDED = 40.0, 35.0
#: The circuit that the PIAFS monitor is connected to; units follow from the number modulo 3.
MONITORED = 0
MEMBERS = range(6)


def gets(data: Data, way: str = "get") -> pl.DataFrame:
    """A row for each run: mean field and the weakest unit's, rate, retransmissions, errors on one and all circuits."""
    rows = data.table("outdoor" if way == "get" else "outdoor-put", "runs", way=way)
    fields = [pl.col(f"bundle.member.{n}.field_dbuv") for n in range(3)]
    errors = [pl.col(f"bundle.member.{n}.piafs_crc_errors") for n in MEMBERS]
    # A file that has not come within the limit of its client has the rate of what came.
    bits = pl.col("client.bytes") * 8 / 1000
    return rows.select(
        "seed",
        "field",
        mean=pl.mean_horizontal(fields),
        weakest=pl.min_horizontal(fields),
        rate=(bits / pl.col("client.transfer_mean_s")).fill_null(0.0).fill_nan(0.0),
        resent=pl.col("resent"),
        seen=errors[MONITORED],
        errors=pl.sum_horizontal(errors),
    )


def mean_of(rows: pl.DataFrame, column: str, unit: str) -> Evidence:
    """One number per seed."""
    each = rows.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column]
    return value(each.to_numpy(), unit)


def strong(column: str) -> Callable[[Data], Evidence]:
    """K05: at means of 44 dBuV and more."""
    return lambda data: mean_of(gets(data).filter(pl.col("field") >= 44), column, "")


def slow(data: Data) -> Evidence:
    """K06: the share of slow gets below 40 dBuV."""
    weak = gets(data).filter(pl.col("mean").is_between(31, 38))
    return mean_of(weak.with_columns(slow=(pl.col("rate") < 250).cast(pl.Float64)), "slow", "")


def correlation(column: str) -> Callable[[Data], Evidence]:
    """K06: rank correlation with the mean field."""

    def evidence(data: Data) -> Evidence:
        near = gets(data).filter(pl.col("mean").is_between(31, 46))
        found = near.select(pl.corr("mean", column, method="spearman")).item()
        return exact(float(found), "")

    return evidence


def quiet(data: Data) -> Evidence:
    """K07: most errors on the monitored circuit of a run without a retransmission."""
    return exact(float(gets(data).filter(pl.col("resent") == 0)["seen"].max() or 0.0), "")  # type: ignore[arg-type]


def against_clean(is_good: bool) -> Callable[[Data], Evidence]:
    """K08: rates below a mean of 40 dBuV, in those above."""

    def evidence(data: Data) -> Evidence:
        rows = gets(data)
        above = rows.filter(pl.col("field") >= 44)["rate"].mean()
        low = rows.filter(pl.col("mean") < CLEAN)
        low = low.filter(pl.col("weakest") >= NEEDED if is_good else pl.col("weakest") < NEEDED)
        assert isinstance(above, float)
        return mean_of(low.with_columns(share=pl.col("rate") / above), "share", "")

    return evidence


def good_below(data: Data) -> Evidence:
    """K25: the best get at a mean below 40 dBuV with every unit above 35."""
    low = gets(data).filter((pl.col("mean") < CLEAN) & (pl.col("weakest") >= NEEDED))
    return exact(float(low["rate"].max() or 0.0), "kbit/s")  # type: ignore[arg-type]


def unseen(data: Data) -> pl.DataFrame:
    """K24: gets with retransmissions and without an error on the monitored circuit."""
    near = gets(data).filter(pl.col("mean").is_between(31, 46))
    return near.filter((pl.col("resent") > 0) & (pl.col("seen") == 0))


def elsewhere(data: Data) -> Evidence:
    """K24: which of these have errors on other circuits."""
    found = unseen(data)
    if found.is_empty():
        raise NotMade("there is none among the runs of this depth")
    return exact(float((found["errors"] > 0).mean() or 0.0), "")  # type: ignore[arg-type]


def connected(data: Data, field: float) -> Numbers:
    """K09: did all six calls come about? One number per seed."""
    failed = [data.per_seed("calls", "runs", f"bundle.member.{n}.calls_failed", field=field) for n in MEMBERS]
    return np.asarray(np.stack(failed).sum(axis=0) == 0, dtype=np.float64)


def calls(field: float) -> Callable[[Data], Evidence]:
    """K09: the share of attempts with six connections."""
    return lambda data: value(connected(data, field), "")


def figure_rows(data: Data, way: str) -> list[tuple[Any, ...]]:
    """Mean field, rate, errors and retransmissions of each run, for the figures."""
    return gets(data, way).select("mean", "rate", "seen", "resent", "weakest").rows()


COMPUTE: dict[str, Callable[[Data], Evidence]] = {
    "K05.rate": strong("rate"),
    "K05.errors": strong("seen"),
    "K06.slow": at_default(slow),
    "K06.errors": at_default(correlation("errors")),
    "K06.resent": at_default(correlation("resent")),
    "K07": at_default(quiet),
    "K08.above": at_default(against_clean(True)),
    "K08.below": at_default(against_clean(False)),
    "K09.below": at_default(calls(27)),
    "K09.near": at_default(calls(30)),
    "K09.above": at_default(calls(36)),
    "K24.occurs": at_default(lambda data: exact(unseen(data).height, "")),
    "K24.elsewhere": at_default(elsewhere),
    "K25.good": at_default(good_below),
}

__all__ = ["COMPUTE", "SIZE", "figure_rows", "gets"]
