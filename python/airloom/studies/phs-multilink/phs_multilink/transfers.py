"""Rates of whole transfers: Table 1, Fig. 7 and the averages of Table 2."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.study import Data, Evidence, Setting, exact, pair, value

Numbers = NDArray[np.float64]

#: Octets of the file.
SIZE = 1_000_000
#: Metres and mean field strength of Table 1, dBuV.
POINTS = {10.0: 67.3, 20.0: 65.8, 26.4: 60.4, 31.6: 58.2}
#: Rates of Table 1, kbit/s, by direction.
TABLE_1 = {"get": (186.37, 296.67, 286.29, 268.21), "put": (295.17, 289.60, 296.43, 189.84)}
#: The runs with people in the path: distance by direction.
CROSSED = {"get": 10.0, "put": 31.6}
#: Numbers of circuits of Fig. 7.
CIRCUITS = (1, 2, 3, 4, 5, 6)


def seconds(data: Data, sweep: str, **where: Any) -> Numbers:
    """Time of the file, as an FTP client prints it, one number per seed."""
    return data.per_seed(sweep, "runs", "client.transfer_mean_s", **where)


def rate(times: Numbers) -> Numbers:
    """kbit/s of the file."""
    return np.asarray(8 * SIZE / 1000 / times, dtype=np.float64)


def table_1(way: str, distance: float) -> Callable[[Data], Evidence]:
    """A row of Table 1; where people crossed, two runs of three without them and one with them."""

    def evidence(data: Data) -> Evidence:
        times = seconds(data, "distances", way=way, distance=distance)
        if CROSSED[way] == distance:
            crossed = seconds(data, "people", way=way)
            count = min(len(times), len(crossed))
            times = (2 * times[:count] + crossed[:count]) / 3
        return value(rate(times), "kbit/s")

    return evidence


def field(data: Data) -> Evidence:
    """K01: the environment's mean field, from its own keys, against the four points."""
    data.at_default_only()
    room = data.run("shown").manifest["scenario"]["environments"]["room"]
    law = {d: room["field_at_10m"] - 10 * room["exponent"] * np.log10(d / 10) for d in POINTS}
    return exact(max(abs(law[d] - measured) for d, measured in POINTS.items()), "dB")


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
    """Rates over so many circuits."""
    return rate(seconds(data, "static", way=way, circuits=circuits))


def proportional(data: Data) -> Evidence:
    """K12: the rate of a connection, least over largest."""
    each = np.stack([static(data, "get", n) / n for n in CIRCUITS])
    return value(each.min(axis=0) / each.max(axis=0), "")


def growing(data: Data) -> Evidence:
    """K12: what one more connection brings a put, at least."""
    rates = np.asarray([static(data, "put", n).mean() for n in CIRCUITS])
    return exact(float((rates[1:] / rates[:-1]).min()), "")


def counted(column: str) -> Callable[[Data], Evidence]:
    """K23: the mean over the series of gets."""
    return lambda data: value(data.per_seed("static", "runs", column, way="get"), "")


def frames_in_error(data: Data) -> Evidence:
    """K23: on all circuits, the mean over the series of gets."""
    rows = data.table("static", "runs", way="get")
    columns = [name for name in rows.columns if re.fullmatch(r"bundle\.member\.\d\.piafs_crc_errors", name)]
    errors = rows.select("seed", errors=pl.sum_horizontal([pl.col(name).fill_null(0) for name in columns]))
    return value(errors.group_by("seed").agg(pl.col("errors").mean()).sort("seed")["errors"].to_numpy(), "")


def resent(data: Data) -> Evidence:
    """K10: segments that the client sent again in puts over six circuits."""
    sent = data.per_seed("static", "runs", "resent", way="put", circuits=6)
    return value(sent, "")


def varies(data: Data) -> Evidence:
    """K27: how far static puts are apart."""
    rates = static(data, "put", 6)
    return exact(float((rates.max() - rates.min()) / rates.mean()), "")


def units(data: Data) -> Evidence:
    """K19: circuits of each unit, as the run understood it."""
    bundle = data.run("shown").manifest["scenario"]["links"]["bundle"]
    of_members = [member["piafs"]["environment"]["unit"] for member in bundle["members"]] * bundle["copies"]
    return Setting([of_members.count(unit) for unit in range(3)])


def gross(data: Data) -> Evidence:
    """K17: the sum of the rates of all circuits, as the run understood them."""
    bundle = data.run("shown").manifest["scenario"]["links"]["bundle"]
    rates = [member["piafs"]["rate"] for member in bundle["members"]] * bundle["copies"]
    return exact(sum(float(text.removesuffix("kbit/s")) for text in rates), "kbit/s")


def size(data: Data) -> Evidence:
    """K18: octets that arrived, by the client's count."""
    return Setting(float(data.per_seed("static", "runs", "client.bytes", way="get", circuits=6).max()))


def complete(data: Data) -> Evidence:
    """C1: octets of data that the server sent, over those of the file."""
    return value(data.per_seed("static", "runs", "server.sent_bytes", way="get", circuits=6) / SIZE, "")


def average(way: str, circuits: int) -> Callable[[Data], Evidence]:
    """K13: so many circuits from the beginning."""
    return lambda data: value(static(data, way, circuits), "kbit/s")


def path(data: Data) -> Evidence:
    """K19: hosts and links in a row, from the ends of the links."""
    scenario = data.run("shown").manifest["scenario"]
    row = ["client"]
    links = dict(scenario["links"])
    while links:
        name, link = next((n, k) for n, k in links.items() if row[-1] in k["between"])
        row += [name, next(host for host in link["between"] if host != row[-1])]
        del links[name]
    return Setting(row)


def at_default(of: Callable[[Data], Evidence]) -> Callable[[Data], Evidence]:
    """For what no reading changes, or no reading makes."""

    def evidence(data: Data) -> Evidence:
        data.at_default_only()
        return of(data)

    return evidence


def _third(_: Data) -> Evidence:
    """K22: arithmetic on the paper's own numbers."""
    return exact(3 * 186.37 - 2 * 296.67, "kbit/s")


def _rates() -> dict[str, Callable[[Data], Evidence]]:
    """K01 and K02."""
    found: dict[str, Callable[[Data], Evidence]] = {}
    for claim, way in (("K01", "get"), ("K02", "put")):
        for distance in POINTS:
            found[f"{claim}.{round(distance)}m"] = table_1(way, distance)
    return found


COMPUTE: dict[str, Callable[[Data], Evidence]] = {
    **_rates(),
    "K01.field": field,
    "K03.disturbed": disturbed,
    "K03.others": others,
    "K10": at_default(resent),
    "K12.get": at_default(proportional),
    "K12.put": at_default(growing),
    "K12.order": lambda data: pair(static(data, "get", 6), static(data, "put", 6), "kbit/s"),
    **{f"K13.{way}-{n}": average(way, n) for way in ("get", "put") for n in (5, 6)},
    "K17.least": at_default(lambda data: Setting(float(data.per_seed("slowest", "runs", "client.transfers").min()))),
    "K17.most": at_default(gross),
    "K18.size": at_default(size),
    "K19.path": at_default(path),
    "K19.units": at_default(units),
    "K22.get": lambda data: value(seconds(data, "people", way="get"), "s"),
    "K22.put": lambda data: value(seconds(data, "people", way="put"), "s"),
    "K22.third": at_default(_third),
    "K23.errors": at_default(frames_in_error),
    "K23.resent": at_default(counted("resent")),
    "K27.varies": at_default(varies),
    "C1": at_default(complete),
}
