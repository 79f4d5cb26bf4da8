"""Field strength, errors and rates: Figs. 3 and 4, and calls that do not come about."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from airloom.study import Computation, Data, Evidence, Numbers, at_default, exact, jackknifed, value
from airloom.study.data import NotMade

from .transfers import ranges

#: dBuV from which on the paper sees no errors, and above which every unit has to be.
CLEAN, NEEDED = 40.0, 35.0
#: dBuV of the law from which on units are above 40 too, though they differ.
STRONG = 44.0
#: kbit/s below which the paper calls a file slow, and from which on good.
SLOW, GOOD = 250.0, 280.0
#: Retransmissions that are many: the least of what the paper counts in puts.
MANY = 10
#: The circuit that the PIAFS monitor is connected to; units follow from the number modulo 3.
MONITORED = 0
MEMBERS = range(6)


def runs(data: Data, way: str = "get") -> pl.DataFrame:
    """A row for each run: mean field and the weakest unit's, rate, longest pause, retransmissions, errors.

    `seen` are those of the monitored circuit, `errors` those of all.
    """
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
        pause=pl.col("longest_pause_s"),
        resent=pl.col("resent"),
        seen=errors[MONITORED],
        errors=pl.sum_horizontal(errors),
    )


def mean_of(rows: pl.DataFrame, column: str, unit: str) -> Evidence:
    """One number per seed."""
    each = rows.group_by("seed").agg(pl.col(column).mean()).sort("seed")[column]
    return value(each.to_numpy(), unit)


def strong(data: Data, way: str = "get") -> pl.DataFrame:
    """Runs at means of 44 dBuV and more."""
    return runs(data, way).filter(pl.col("field") >= STRONG)


def at_strong(column: str, data: Data, unit: str = "") -> Evidence:
    """K05, K11: gets there."""
    return mean_of(strong(data), column, unit)


def weak(data: Data) -> pl.DataFrame:
    """Gets at means of 31 to 38 dBuV."""
    return runs(data).filter(pl.col("mean").is_between(31, 38))


def is_slow(rows: pl.DataFrame) -> pl.DataFrame:
    """With a column that says whether a file came at less than 250 kbit/s."""
    return rows.with_columns(slow=(pl.col("rate") < SLOW).cast(pl.Float64))


def stalls(data: Data) -> Evidence:
    """K11: the longest pause of slow gets in which much was sent again; without those that never began to arrive."""
    rows = weak(data).filter((pl.col("rate") < SLOW) & (pl.col("resent") >= MANY) & pl.col("pause").is_not_null())
    return mean_of(rows, "pause", "s")


def resent_unprovoked(data: Data) -> Evidence:
    """K10: what puts send again above 40 dBuV, where the monitor saw no error."""
    return mean_of(strong(data, "put").filter(pl.col("seen") == 0), "resent", "")


def spread(way: str, data: Data) -> Evidence:
    """K30: how far ten rates above 40 dBuV are apart, in the mean; how many the figures have cannot be read."""
    rates = strong(data, way).sort("seed", "field")["rate"].to_numpy()
    return value(ranges(rates, 10) / rates.mean(), "")


def correlation(column: str, data: Data) -> Evidence:
    """K06: rank correlation with the mean field."""
    near = runs(data).filter(pl.col("mean").is_between(31, 46))

    def of(seeds: Numbers) -> float:
        kept = near.filter(pl.col("seed").is_in(seeds.astype(np.int64).tolist()))
        return float(kept.select(pl.corr("mean", column, method="spearman")).item())

    return jackknifed(of, near["seed"].unique(maintain_order=True).to_numpy(), unit="")


def quiet(data: Data) -> Evidence:
    """K07: most errors on the monitored circuit of a run without a retransmission."""
    return exact(float(runs(data).filter(pl.col("resent") == 0)["seen"].max() or 0.0), "")  # type: ignore[arg-type]


def against_clean(is_good: bool, data: Data) -> Evidence:
    """K08: rates below a mean of 40 dBuV, in those above."""
    rows = runs(data)
    above = rows.filter(pl.col("field") >= STRONG)["rate"].mean()
    low = rows.filter(pl.col("mean") < CLEAN)
    low = low.filter(pl.col("weakest") >= NEEDED if is_good else pl.col("weakest") < NEEDED)
    assert isinstance(above, float)
    return mean_of(low.with_columns(share=pl.col("rate") / above), "share", "")


def good_below(data: Data) -> Evidence:
    """K25: the share of good gets at means below 40 dBuV."""
    low = runs(data).filter(pl.col("mean").is_between(NEEDED, CLEAN))
    return mean_of(low.with_columns(good=(pl.col("rate") >= GOOD).cast(pl.Float64)), "good", "")


def unseen(data: Data) -> pl.DataFrame:
    """K24: gets with retransmissions and without an error on the monitored circuit."""
    near = runs(data).filter(pl.col("mean").is_between(31, 46))
    return near.filter((pl.col("resent") > 0) & (pl.col("seen") == 0))


def elsewhere(data: Data) -> Evidence:
    """K24: which of these have errors on other circuits."""
    found = unseen(data)
    if found.is_empty():
        raise NotMade("there is none among the runs of this depth")
    return mean_of(found.with_columns(elsewhere=(pl.col("errors") > 0).cast(pl.Float64)), "elsewhere", "")


def connected(data: Data, field: float) -> Numbers:
    """K09: did all six calls come about? One number per seed."""
    failed = [data.per_seed("calls", "runs", f"bundle.member.{n}.calls_failed", field=field) for n in MEMBERS]
    return np.asarray(np.stack(failed).sum(axis=0) == 0, dtype=np.float64)


def calls(field: float, data: Data) -> Evidence:
    """K09: the share of attempts with six connections."""
    return value(connected(data, field), "")


COMPUTE: dict[str, Computation] = {
    "K05.rate": partial(at_strong, "rate", unit="kbit/s"),
    "K05.errors": partial(at_strong, "seen"),
    "K06.slow": at_default(lambda data: mean_of(is_slow(weak(data)), "slow", "")),
    "K06.errors": at_default(partial(correlation, "errors")),
    "K06.resent": at_default(partial(correlation, "resent")),
    "K07": at_default(quiet),
    "K08.above": at_default(partial(against_clean, True)),
    "K08.below": at_default(partial(against_clean, False)),
    "K09.below": at_default(partial(calls, 27)),
    "K09.near": at_default(partial(calls, 30)),
    "K09.above": at_default(partial(calls, 36)),
    "K10": resent_unprovoked,
    "K11.linear": partial(at_strong, "pause", unit="s"),
    "K11.stalls": stalls,
    "K24.occurs": at_default(lambda data: exact(unseen(data).height, "")),
    "K24.elsewhere": at_default(elsewhere),
    "K25.good": good_below,
    "K30.stable": at_default(partial(spread, "get")),
    "K30.varies": at_default(partial(spread, "put")),
    "K30.below": lambda data: mean_of(is_slow(strong(data, "put")), "slow", ""),
}
