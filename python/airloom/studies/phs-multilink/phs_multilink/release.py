"""One of six circuits released while the file is on its way: Table 2, Fig. 8, and what would have helped."""

from __future__ import annotations

from functools import partial

import numpy as np

from airloom.study import Computation, Data, Evidence, Numbers, at_default, pair, value

from .transfers import ranges, rate, seconds, static

#: The paper's three runs, kbit/s.
PAPER = {"get": (239.52, 178.08, 198.16), "put": (188.48, 159.20, 206.96)}
#: Its averages over five and six connections from the beginning, kbit/s.
PAPER_STATIC = {("get", 5): 245.65, ("get", 6): 291.09, ("put", 5): 176.77, ("put", 6): 186.64}
#: The normal round trip of the paper, s.
ROUND_TRIP = 0.15


def rates(data: Data, way: str) -> Numbers:
    """Rate of each run: a row for each seed, a column for each time of the release."""
    rows = data.table("release", "runs", way=way).sort("seed", "at")
    return rate(rows["client.transfer_mean_s"].to_numpy()).reshape(rows["seed"].n_unique(), -1)


def mean_rates(data: Data, way: str) -> Numbers:
    """Mean of the rates over the times of the release, one number per seed."""
    return np.asarray(rates(data, way).mean(axis=1), dtype=np.float64)


def spread(data: Data) -> Evidence:
    """K14: the range of three of ours, each of another time of the release, in that of the paper's three gets."""
    found = rates(data, "get")
    one_each = found[np.arange(len(found)), np.arange(len(found)) % found.shape[1]]
    return value(ranges(one_each) / (max(PAPER["get"]) - min(PAPER["get"])), "")


def below_five(way: str, data: Data) -> Evidence:
    """K15: with a release, and over five from the beginning; the same seeds."""
    released, five = mean_rates(data, way), static(data, way, 5)
    count = min(len(released), len(five))
    return pair(released[:count], five[:count], "kbit/s")


def above_six(data: Data) -> Evidence:
    """K27: puts with a release above the mean of static puts over six."""
    return value((rates(data, "put") > static(data, "put", 6).mean()).mean(axis=1), "")


#: How the runs without a remedy are called.
AS_IT_WAS = "as it was"


#: What happens, and the sweeps with remedies in the bundle and above the links.
BAD = {
    "release": ("one of six released", ("remedies-release", "subflows-release")),
    "people": ("people in the path", ("remedies-people", "subflows-people")),
}


def with_remedies(data: Data, bad: str) -> dict[str, Numbers]:
    """Times by remedy, one number per seed; without a remedy first."""
    found = {}
    for sweep in BAD[bad][1]:
        table = data.table(sweep, "runs")
        for label in table.unique(subset=["point"]).sort("point")["remedy"].to_list():
            found[label] = seconds(data, sweep, remedy=label)
    return found


def remedy(bad: str, data: Data) -> Evidence:
    """K29: the time as it is, over that with the remedy whose mean time is the shortest."""
    data.at_default_only()
    times = with_remedies(data, bad)
    best = min(times.values(), key=lambda numbers: float(numbers.mean()))
    return value(times[AS_IT_WAS] / best, "")


COMPUTE: dict[str, Computation] = {
    "K14.get": lambda data: value(mean_rates(data, "get"), "kbit/s"),
    "K14.put": lambda data: value(mean_rates(data, "put"), "kbit/s"),
    "K14.spread": at_default(spread),
    "K15.get": partial(below_five, "get"),
    "K15.put": partial(below_five, "put"),
    "K16.stall": lambda data: value(
        data.per_seed("release", "runs", "client.longest_pause_s", way="get") / ROUND_TRIP, ""
    ),
    "K16.timer": lambda data: value(data.per_seed("release", "runs", "rto_count", way="get"), ""),
    "K27.above": at_default(above_six),
    "K29.release": partial(remedy, "release"),
    "K29.people": partial(remedy, "people"),
}
