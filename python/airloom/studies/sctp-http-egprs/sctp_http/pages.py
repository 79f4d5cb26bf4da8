"""Page times, and who waits for what: from tables to evidence."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from airloom.run import Run
from airloom.study import Data, Evidence, Numbers, Setting, exact, pair, value

from .units import contradictions, sent_on, transfer, waits

ERRORS = (0, 0.001, 0.01, 0.02, 0.05, 0.08, 0.11, 0.14, 0.2)
#: At which readings are compared.
THREE = (0.001, 0.05, 0.14)
#: "As the block error rate grows."
HIGH = (0.08, 0.11, 0.14)

#: Octets of an RLC data block.
MCS_4 = 44


# ---- tables -> numbers ---------------------------------------------------------------------------------------------


def page_time(data: Data, sweep: str, column: str = "load_ns", **where: Any) -> Numbers:
    """Seconds, one number per seed: the mean over the pages of a seed."""
    return data.per_seed(sweep, "pages", column, **where) / 1e9


def tcp(data: Data, error: float) -> Numbers:
    """Page times of TCP with one mobile."""
    return page_time(data, "page-tcp", bler=error)


def sctp(data: Data, error: float, streams: int) -> Numbers:
    """Page times of SCTP with one mobile."""
    return page_time(data, "page-sctp", bler=error, lanes=streams)


def mean_over(times: list[Numbers]) -> Numbers:
    """The mean of several conditions, seed by seed."""
    return np.asarray(np.mean(np.stack(times), axis=0), dtype=np.float64)


def high(data: Data) -> tuple[float, ...]:
    """High block error rates that were swept at this reading."""
    return HIGH if data.reading == data.default.reading else (0.14,)


def errors(data: Data, wanted: tuple[float, ...]) -> tuple[float, ...]:
    """Block error rates of `wanted` that were swept at this reading."""
    return wanted if data.reading == data.default.reading else tuple(e for e in wanted if e in THREE)


# ---- 4.1: one mobile -----------------------------------------------------------------------------------------------


def same_at(error: float, data: Data) -> Evidence:
    """A01: TCP and SCTP on one stream."""
    return pair(tcp(data, error), sctp(data, error, 1), "s")


def lead(data: Data, at: tuple[float, ...]) -> list[Numbers]:
    """Page times of TCP and of SCTP on one stream, means over block error rates."""
    return [mean_over([tcp(data, e) for e in at]), mean_over([sctp(data, e, 1) for e in at])]


def better_at_high(data: Data) -> Evidence:
    """A02."""
    slow, fast = lead(data, high(data))
    return pair(slow, fast, "s")


def lead_grows(data: Data) -> Evidence:
    """A02: SCTP's lead at high block error rates, and at 0.001."""
    (slow, fast), (slow_low, fast_low) = lead(data, high(data)), lead(data, (0.001,))
    return pair(slow - fast, slow_low - fast_low, "s")


def gap(data: Data, error: float) -> Numbers:
    """TCP less SCTP on three streams."""
    return tcp(data, error) - sctp(data, error, 3)


def three_against_one(data: Data) -> Evidence:
    """A05."""
    at = errors(data, ERRORS)
    return pair(mean_over([sctp(data, e, 1) for e in at]), mean_over([sctp(data, e, 3) for e in at]), "s")


def growth(data: Data) -> Evidence:
    """A14: the gap at 0.14 less that at 0.001."""
    return value(gap(data, 0.14) - gap(data, 0.001), "s")


# ---- 4.2: a loaded cell --------------------------------------------------------------------------------------------


def of_protocols(sweep: str, data: Data, **where: Any) -> Evidence:
    """A06, and A09, A18: page times over TCP and over SCTP."""
    over_tcp, over_sctp = (page_time(data, f"{sweep}-{protocol}", **where) for protocol in ("tcp", "sctp"))
    return pair(over_tcp, over_sctp, "s")


def rivals(data: Data) -> Evidence:
    """A07: the TCP mobiles beside SCTP and beside TCP."""

    def ours(rival: str) -> Numbers:
        rows = data.table("mixed", "pages", rival=rival).filter(pl.col("client").cast(pl.String).str.starts_with("tcp"))
        times = rows.group_by("seed").agg(pl.col("load_ns").cast(pl.Float64).mean()).sort("seed")
        return times["load_ns"].to_numpy() / 1e9

    return pair(ours("SCTP"), ours("TCP"), "s")


def jain(data: Data) -> Evidence:
    """A07: Jain's index of octets per second of loading, mixed over all TCP."""

    def index(rival: str) -> Numbers:
        rate = pl.col("bytes").sum() * 1e9 / pl.col("load_ns").sum()
        pages = data.table("mixed", "pages", rival=rival)
        each = pages.group_by("seed", "client", maintain_order=True).agg(rate.alias("rate"))
        squares = pl.col("rate").sum() ** 2 / (pl.len() * (pl.col("rate") ** 2).sum())
        return each.group_by("seed").agg(squares.alias("index")).sort("seed")["index"].to_numpy()

    return value(index("SCTP") / index("TCP"), "")


def gain(data: Data, sweep: str, **where: Any) -> Numbers:
    """What SCTP saves, as a part of TCP's page time."""
    slow, fast = (page_time(data, f"{sweep}-{protocol}", **where) for protocol in ("tcp", "sctp"))
    return np.asarray(1 - fast / slow, dtype=np.float64)


def disappears(data: Data) -> Evidence:
    """A09: the gain in a congested cell over that in an empty one."""
    alone = float(gain(data, "load", load="one mobile").mean())
    return value(gain(data, "load", load="eight mobiles that do not read") / alone, "")


def blocks(run: Run, way: str, station: str = "") -> pl.DataFrame:
    """RLC data blocks of a mobile on the air, `dl` or `ul`: a row per transmission, and one when it is lost."""
    packets = run.packets.with_columns(pl.col("point", "event", "proto").cast(pl.String))
    point = f"radio.{station}.rlc.{way}.tx" if station else f"rlc.{way}.tx"
    sent = packets.filter(pl.col("point").str.ends_with(point) & pl.col("event").is_in(["tx", "retx", "drop"]))
    return sent.filter(pl.col("seq").is_not_null())


def new_blocks(run: Run, station: str = "") -> pl.DataFrame:
    """Downlink RLC data blocks at their first transmission, in order. Reports about the uplink are shorter."""
    of = blocks(run, "dl", station).filter(pl.col("len") == MCS_4)
    return of.filter(pl.col("event") == "tx").sort("t_ns", maintain_order=True)


def block_rates(data: Data, sweep: str, stations: tuple[str, ...] = ("",)) -> Numbers:
    """A08: new downlink blocks per second from the first to the last, mean over mobiles, one number per seed."""
    found = []
    for _, run in data.runs(sweep):
        times = [new_blocks(run, station)["t_ns"].to_numpy() for station in stations]
        found.append(np.mean([(len(t) - 1) * 1e9 / (t[-1] - t[0]) for t in times]))
    return np.asarray(found, dtype=np.float64)


def rlc_throughput(data: Data, cell: str = "", stations: tuple[str, ...] = ("",)) -> Evidence:
    """A08: of one mobile, or of those of a cell."""
    data.at_default_only()
    sctp, tcp = (block_rates(data, f"blocks-{cell}{protocol}", stations) for protocol in ("sctp", "tcp"))
    return pair(sctp, tcp, "blocks/s")


# ---- 2.1, 4.2: who stops for a hole ----------------------------------------------------------------------------------


def while_missing(protocol: str, data: Data) -> Evidence:
    """A15: new units per hole, one number per run that had any."""
    data.at_default_only()
    each = [sent_on(transfer(run)) for _, run in data.runs(f"holes-{protocol}")]
    return value([float(np.mean(counts)) for counts in each if counts], "units")


def waiting(data: Data) -> Evidence:
    """A15: what has arrived waits for what is missing before it, mean over all units of a run."""
    data.at_default_only()
    holes = (data.runs(f"holes-{protocol}") for protocol in ("tcp", "sctp"))
    over_tcp, over_sctp = ([float(np.mean(waits(transfer(run)))) for _, run in runs] for runs in holes)
    return pair(over_tcp, over_sctp, "s")


def bounds(data: Data) -> Evidence:
    """A16: over all runs."""
    data.at_default_only()
    return exact(sum(contradictions(transfer(run)) for _, run in data.runs("holes-sctp")), "chunks")


def shared_numbers(data: Data) -> Evidence:
    """A16: streams whose chunks are in one sequence of TSNs."""
    data.at_default_only()
    found = transfer(data.run("holes-sctp"))
    return Setting(len({unit.stream for unit in found.of.values()}))


# ---- ours ----------------------------------------------------------------------------------------------------------


def as_many_requests(use: str, data: Data) -> Evidence:
    """A17: TCP with as many requests at a time, at 0.14."""
    data.at_default_only()
    return pair(page_time(data, "concurrency", bler=0.14, use=use), sctp(data, 0.14, 3), "s")


def first_object(data: Data) -> Evidence:
    """A17: time to the first object of a page, at 0.14."""
    data.at_default_only()
    where: dict[str, Any] = {"column": "first_object_ns", "bler": 0.14}
    return pair(page_time(data, "page-tcp", **where), page_time(data, "page-sctp", **where, lanes=3), "s")


# ---- controls ------------------------------------------------------------------------------------------------------


def difference(sweep: str, axis: str, a: Any, b: Any, data: Data) -> Evidence:
    """Two levels of a sweep, seed by seed."""
    data.at_default_only()
    return value(page_time(data, sweep, **{axis: a}) - page_time(data, sweep, **{axis: b}), "s")


def closed_form(data: Data) -> Evidence:
    """Without losses: the time of 500 kB more, over what Gb takes for their packets of 1,500 octets."""
    data.at_default_only()
    took = page_time(data, "clean", size=600) - page_time(data, "clean", size=100)
    wanted = 500_000 / 1460 * 1500 * 8 / 64_000
    return exact(float(took.mean()) / wanted, "")


def errors_cost(data: Data) -> Evidence:
    """TCP with and without block errors."""
    data.at_default_only()
    return pair(tcp(data, 0.2), tcp(data, 0), "s")


COMPUTE = {
    **{f"A01.{error or 'none'}": partial(same_at, error) for error in (0, 0.001, 0.01)},
    "A02.better": better_at_high,
    "A02.grows": lead_grows,
    "A03": lambda data: value(gap(data, 0.001), "s"),
    "A04": lambda data: value(gap(data, 0.14), "s"),
    "A05": three_against_one,
    **{f"A06.{error}": partial(of_protocols, "cell", bler=error) for error in THREE},
    "A07.tcp": rivals,
    "A07.jain": jain,
    "A08.one": rlc_throughput,
    "A08.cell": partial(rlc_throughput, cell="cell-", stations=("0", "1", "2", "3")),
    # A cell that is not congested.
    "A09.remains": partial(of_protocols, "load", load="two mobiles"),
    "A09.disappears": disappears,
    "A14": growth,
    "A15.tcp-stops": partial(while_missing, "tcp"),
    "A15.sctp-goes-on": partial(while_missing, "sctp"),
    "A15.waits": waiting,
    "A16.bounds": bounds,
    "A16.streams": shared_numbers,
    "A17.three": partial(as_many_requests, "three connections"),
    "A17.pipelined": partial(as_many_requests, "pipelined"),
    "A17.first": first_object,
    # Pages of the size that telephones had, at 0.14.
    "A18.small": partial(of_protocols, "small"),
    "same": partial(difference, "same", "called", "TCP", "tcp"),
    "closed-form": closed_form,
    "one-object": partial(difference, "one-object", "lanes", 1, 3),
    "errors-cost": errors_cost,
}
