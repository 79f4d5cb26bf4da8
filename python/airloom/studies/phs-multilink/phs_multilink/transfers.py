"""Rates of whole transfers: Table 1, Fig. 7 and the averages of Table 2."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from airloom.study import Computation, Data, Evidence, Numbers, Setting, at_default, exact, jackknifed, pair, value

from .configuration import path, rate_of_each, unit_of_each

#: Octets of the file.
SIZE = 1_000_000
#: Metres and mean field strength of Table 1, dBuV.
POINTS = {10.0: 67.3, 20.0: 65.8, 26.4: 60.4, 31.6: 58.2}
#: Rates of Table 1, kbit/s, by direction.
TABLE_1 = {"get": (186.37, 296.67, 286.29, 268.21), "put": (295.17, 289.60, 296.43, 189.84)}
#: And its times, s.
TIMES_1 = {"get": (40.75, 26.97, 27.96, 29.60), "put": (27.11, 27.68, 26.99, 42.59)}
#: The runs with people in the path: distance by direction.
CROSSED = {"get": 10.0, "put": 31.6}
#: Numbers of circuits of Fig. 7.
CIRCUITS = (1, 2, 3, 4, 5, 6)


def seconds(data: Data, sweep: str, **where: Any) -> Numbers:
    """Time of the file, as an FTP client prints it, one number per seed."""
    return data.per_seed(sweep, "runs", "client.transfer_mean_s", **where)


def rate(times: Numbers) -> Numbers:
    """kbit/s of the file, run by run."""
    return np.asarray(8 * SIZE / 1000 / times, dtype=np.float64)


def rate_of_all(times: Numbers) -> Numbers:
    """Octets of all runs over the sum of their times, in kbit/s, as samples with that mean.

    Each run's number is its linear part (the delta method): what a little more time of it does to the whole.
    """
    whole = 8 * SIZE / 1000 / times.mean()
    return np.asarray(whole * (2 - times / times.mean()), dtype=np.float64)


def times_of_table_1(data: Data, way: str, distance: float) -> Numbers:
    """Times of a cell of Table 1: where people crossed, the mean of two runs without them and one with them."""
    times = seconds(data, "distances", way=way, distance=distance)
    if CROSSED[way] != distance:
        return times
    crossed = seconds(data, "people", way=way)
    count = min(len(times), len(crossed))
    return np.asarray((2 * times[:count] + crossed[:count]) / 3, dtype=np.float64)


def table_1(way: str, distance: float, data: Data) -> Evidence:
    """A rate of Table 1."""
    return value(rate_of_all(times_of_table_1(data, way, distance)), "kbit/s")


def fields(data: Data, distance: float) -> Numbers:
    """Mean field of the three units in dBuV, as the circuits recorded it; one number per seed."""
    units = [data.per_seed("distances", "runs", f"bundle.member.{n}.field_dbuv", distance=distance) for n in range(3)]
    return np.asarray(np.mean(units, axis=0), dtype=np.float64)


def field(data: Data) -> Evidence:
    """K01: the recorded field, the mean over seeds, against the four points."""
    return jackknifed(
        lambda *found: max(abs(each.mean() - measured) for each, measured in zip(found, POINTS.values(), strict=True)),
        *(fields(data, distance) for distance in POINTS),
        unit="dB",
    )


def disturbed(data: Data) -> Evidence:
    """K03: with people, over without."""
    crossed = seconds(data, "people", way="get")
    clear = seconds(data, "distances", way="get", distance=10.0)
    count = min(len(crossed), len(clear))
    return value(crossed[:count] / clear[:count], "")


def others(data: Data) -> Evidence:
    """K03: without people it does not matter where."""
    near, far = (seconds(data, "distances", way="get", distance=d) for d in (10.0, 26.4))
    return value(near / far, "")


def static(data: Data, way: str, circuits: int) -> Numbers:
    """Rates over so many circuits, kbit/s."""
    return rate(seconds(data, "static", way=way, circuits=circuits))


def static_of_all(data: Data, way: str, circuits: int) -> Numbers:
    """The rate of all of these runs together."""
    return rate_of_all(seconds(data, "static", way=way, circuits=circuits))


def proportional(way: str, data: Data) -> Evidence:
    """K12: the rate of a connection, least over largest."""
    each = np.stack([static(data, way, n) / n for n in CIRCUITS])
    return value(each.min(axis=0) / each.max(axis=0), "")


def resent(way: str, data: Data) -> Evidence:
    """K23: the mean over the series."""
    return value(data.per_seed("static", "runs", "resent", way=way), "")


def frames_in_error(data: Data) -> Evidence:
    """K23: on all circuits, the mean over the series, both ways."""
    rows = data.table("static", "runs")
    columns = [name for name in rows.columns if re.fullmatch(r"bundle\.member\.\d\.piafs_crc_errors", name)]
    errors = rows.select("seed", errors=pl.sum_horizontal([pl.col(name).fill_null(0) for name in columns]))
    return value(errors.group_by("seed").agg(pl.col("errors").mean()).sort("seed")["errors"].to_numpy(), "")


def ranges(samples: Numbers, of: int = 3) -> Numbers:
    """Of each so many runs: a range grows with their number, and in its tables the paper has three of a kind."""
    groups = samples[: len(samples) // of * of].reshape(-1, of)
    return np.asarray(np.ptp(groups, axis=1), dtype=np.float64)


def varies(data: Data) -> Evidence:
    """K27: how far static puts are apart."""
    rates = static(data, "put", 6)
    return value(ranges(rates) / rates.mean(), "")


def size(data: Data) -> Evidence:
    """K18: octets that arrived, by the client's count."""
    return Setting(float(data.per_seed("static", "runs", "client.bytes", way="get", circuits=6).max()))


def complete(data: Data) -> Evidence:
    """C1: octets of data that the server sent, over those of the file."""
    return value(data.per_seed("static", "runs", "server.sent_bytes", way="get", circuits=6) / SIZE, "")


def average(way: str, circuits: int, data: Data) -> Evidence:
    """K13: so many circuits from the beginning."""
    return value(static_of_all(data, way, circuits), "kbit/s")


def _shown(data: Data) -> dict[str, Any]:
    """The scenario as a run understood it."""
    scenario: dict[str, Any] = data.run("shown").manifest["scenario"]
    return scenario


def _kbit(text: str) -> float:
    return float(text.removesuffix("kbit/s"))


def _third(_: Data) -> Evidence:
    """K22: arithmetic on the paper's own numbers."""
    return exact(3 * 186.37 - 2 * 296.67, "kbit/s")


COMPUTE: dict[str, Computation] = {
    **{
        f"{claim}.{round(distance)}m": partial(table_1, way, distance)
        for claim, way in (("K01", "get"), ("K02", "put"))
        for distance in POINTS
    },
    "K01.field": field,
    "K03.disturbed": disturbed,
    "K03.others": others,
    "K12.get": at_default(partial(proportional, "get")),
    "K12.put": at_default(partial(proportional, "put")),
    "K12.order": lambda data: pair(static(data, "get", 6), static(data, "put", 6), "kbit/s"),
    **{f"K13.{way}-{n}": partial(average, way, n) for way in ("get", "put") for n in (5, 6)},
    "K17.least": at_default(lambda data: Setting(float(data.per_seed("slowest", "runs", "client.transfers").min()))),
    "K17.most": at_default(lambda data: exact(sum(_kbit(text) for text in rate_of_each(_shown(data))), "kbit/s")),
    "K18.size": at_default(size),
    "K19.path": at_default(lambda data: Setting(path(_shown(data)))),
    "K19.units": at_default(lambda data: Setting([unit_of_each(_shown(data)).count(unit) for unit in range(3)])),
    "K22.get": lambda data: value(seconds(data, "people", way="get"), "s"),
    "K22.put": lambda data: value(seconds(data, "people", way="put"), "s"),
    "K22.third": at_default(_third),
    "K23.errors": at_default(frames_in_error),
    "K23.get": at_default(partial(resent, "get")),
    "K23.put": at_default(partial(resent, "put")),
    "K27.varies": at_default(varies),
    "C1": at_default(complete),
}
