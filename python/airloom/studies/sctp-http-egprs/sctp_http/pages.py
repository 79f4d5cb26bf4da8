"""Page times, and what the runs say of themselves: from tables to evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.run import Run
from airloom.study import Data, Evidence, Setting, exact, pair, value

from .units import contradictions, sent_on, transfer, waits

ERRORS = (0, 0.001, 0.01, 0.02, 0.05, 0.08, 0.11, 0.14, 0.2)
#: Those of Fig. 5.
SHOWN = tuple(e for e in ERRORS if 0.001 <= e <= 0.14)
#: At which readings are compared.
THREE = (0.001, 0.05, 0.14)
#: "As the block error rate grows."
HIGH = (0.08, 0.11, 0.14)

#: Octets of an RLC data block; reports about the uplink are shorter.
MCS_4 = 44

Numbers = NDArray[np.float64]


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


def client(run: Run) -> dict[str, Any]:
    """The mobile's browser as the run understood it."""
    (app,) = run.manifest["scenario"]["hosts"]["mobile"]["app"]
    found: dict[str, Any] = app["http-client"]
    return found


def any_run(data: Data, protocol: str) -> Run:
    """A run that was kept whole."""
    data.at_default_only()
    return data.run(f"blocks-{protocol}")


# ---- 4.1: one mobile -----------------------------------------------------------------------------------------------


def same_at(error: float) -> Any:
    """A01: TCP and SCTP on one stream."""
    return lambda data: pair(tcp(data, error), sctp(data, error, 1), "s")


def better_at_high(data: Data) -> Evidence:
    """A02."""
    at = high(data)
    return pair(mean_over([tcp(data, e) for e in at]), mean_over([sctp(data, e, 1) for e in at]), "s")


def gap(data: Data, error: float) -> Numbers:
    """TCP less SCTP on three streams."""
    return tcp(data, error) - sctp(data, error, 3)


def three_against_one(data: Data) -> Evidence:
    """A05."""
    at = errors(data, ERRORS)
    return pair(mean_over([sctp(data, e, 1) for e in at]), mean_over([sctp(data, e, 3) for e in at]), "s")


def slope_of_gap(data: Data) -> Evidence:
    """A14: least squares, seed by seed."""
    at = np.asarray(errors(data, SHOWN))
    gaps = np.stack([gap(data, e) for e in at])
    centred = at - at.mean()
    return value(centred @ gaps / (centred @ centred), "s")


# ---- 4.2: a loaded cell --------------------------------------------------------------------------------------------


def cell_at(error: float) -> Any:
    """A06."""
    return lambda data: pair(page_time(data, "cell-tcp", bler=error), page_time(data, "cell-sctp", bler=error), "s")


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
        each = data.table("mixed", "pages", rival=rival).group_by("seed", "client").agg(rate.alias("rate"))
        squares = pl.col("rate").sum() ** 2 / (pl.len() * (pl.col("rate") ** 2).sum())
        return each.group_by("seed").agg(squares.alias("index")).sort("seed")["index"].to_numpy()

    return value(index("SCTP") / index("TCP"), "")


def remains(data: Data) -> Evidence:
    """A09: a cell that is not congested."""
    of = [page_time(data, f"load-{protocol}", load="two mobiles") for protocol in ("tcp", "sctp")]
    return pair(of[0], of[1], "s")


def gain(data: Data, sweep: str, **where: Any) -> Numbers:
    """What SCTP saves, as a part of TCP's page time."""
    slow, fast = (page_time(data, f"{sweep}-{protocol}", **where) for protocol in ("tcp", "sctp"))
    return np.asarray(1 - fast / slow, dtype=np.float64)


def disappears(data: Data) -> Evidence:
    """A09: the gain in a congested cell over that in an empty one."""
    alone = float(gain(data, "load", load="one mobile").mean())
    return value(gain(data, "load", load="eight mobiles that do not read") / alone, "")


def block_rates(data: Data, protocol: str) -> Numbers:
    """A08: new downlink blocks per second from the first to the last of them, one number per seed."""
    found = []
    for _, run in data.runs(f"blocks-{protocol}"):
        times = new_blocks(run)["t_ns"].to_numpy()
        found.append((len(times) - 1) * 1e9 / (times[-1] - times[0]))
    return np.asarray(found)


def new_blocks(run: Run) -> pl.DataFrame:
    """Downlink RLC data blocks at their first transmission, in order."""
    return downlink(run).filter(pl.col("event") == "tx").sort("t_ns", maintain_order=True)


def downlink(run: Run) -> pl.DataFrame:
    """What the network sends on the air: a row per transmission of a data block, and one when it is lost."""
    packets = run.packets.with_columns(pl.col("point", "event", "proto").cast(pl.String))
    sent = packets.filter(pl.col("point").str.ends_with("rlc.dl.tx") & pl.col("event").is_in(["tx", "retx", "drop"]))
    return sent.filter(pl.col("seq").is_not_null() & (pl.col("len") == MCS_4))


def rlc_throughput(data: Data) -> Evidence:
    """A08."""
    data.at_default_only()
    return pair(block_rates(data, "sctp"), block_rates(data, "tcp"), "blocks/s")


def in_error(data: Data) -> Evidence:
    """A13: blocks lost over blocks sent, one number per run."""
    data.at_default_only()
    shares = []
    for _, run in data.runs("blocks-tcp"):
        rows = downlink(run)
        sent = rows.filter(pl.col("event").is_in(["tx", "retx"])).height
        shares.append(rows.filter(pl.col("event") == "drop").height / sent)
    return value(shares, "blocks")


# ---- 2.1, 4.2: who stops for a hole ----------------------------------------------------------------------------------


def while_missing(protocol: str) -> Any:
    """A15: new units per hole, one number per run that had any."""

    def sent(data: Data) -> Evidence:
        data.at_default_only()
        each = [sent_on(transfer(run)) for _, run in data.runs(f"holes-{protocol}")]
        return value([float(np.mean(counts)) for counts in each if counts], "units")

    return sent


def waiting(data: Data) -> Evidence:
    """A15: what has arrived waits for what is missing before it, mean over all units of a run."""
    data.at_default_only()
    of = [
        np.asarray([float(np.mean(waits(transfer(run)))) for _, run in data.runs(f"holes-{protocol}")])
        for protocol in ("tcp", "sctp")
    ]
    return pair(of[0], of[1], "s")


def bounds(data: Data) -> Evidence:
    """A16: over all runs."""
    data.at_default_only()
    return exact(sum(contradictions(transfer(run)) for _, run in data.runs("holes-sctp")), "chunks")


def shared_numbers(data: Data) -> Evidence:
    """A16: streams whose chunks are in one sequence of TSNs."""
    data.at_default_only()
    found = transfer(data.run("holes-sctp"))
    return Setting(len({unit.stream for unit in found.of.values()}))


# ---- 3: what was simulated -----------------------------------------------------------------------------------------


def law(name: str) -> Any:
    """A10: the mean of a law of the traffic model, as the run understood it."""

    def mean(data: Data) -> Evidence:
        found = client(any_run(data, "tcp"))["traffic"][name]["law"]["pareto"]["mean"]
        return exact(found if name == "count" else found / 1e3, "objects" if name == "count" else "kB")

    return mean


def fewest(data: Data) -> Evidence:
    """A10: embedded objects of the smallest page."""
    data.at_default_only()
    objects = data.table("page-tcp", "pages")["objects"].min()
    assert isinstance(objects, int)
    return exact(objects - 1, "objects")


def longest_packet(protocol: str) -> Any:
    """A11: octets of the longest packet on its way to the mobile."""

    def longest(data: Data) -> Evidence:
        run = any_run(data, protocol)
        packets = run.packets.with_columns(pl.col("point", "event").cast(pl.String))
        queued = packets.filter(pl.col("point").str.ends_with("rlc.dl.tx") & (pl.col("event") == "enq"))
        most = queued["len"].max()
        assert isinstance(most, int)
        return Setting(most, "octets")

    return longest


def settings(key: dict[str, str]) -> Any:
    """A11: a setting of both transports."""

    def read(data: Data) -> Evidence:
        found = [any_run(data, p).manifest["scenario"]["hosts"]["origin"]["transport"][p][key[p]] for p in key]
        return Setting(", ".join(found))

    return read


def radio(data: Data) -> dict[str, Any]:
    """The radio link as the run understood it."""
    found: dict[str, Any] = any_run(data, "tcp").manifest["scenario"]["links"]["radio"]
    return found


def both(setting: Any, way: str) -> Any:
    """A setting of one direction, of a link that may have said one for both."""
    return setting[way] if isinstance(setting, dict) else setting


def slots(data: Data) -> Evidence:
    """A12."""
    of = radio(data)["slots"]
    return Setting(f"{both(of, 'downlink')}+{both(of, 'uplink')}")


def wires(data: Data) -> Evidence:
    """A13."""
    links = any_run(data, "tcp").manifest["scenario"]["links"]
    each = [
        f"{both(links[n]['rate'], 'downlink')} {both(links[n]['delay'], 'downlink')}" for n in ("gb", "gi", "internet")
    ]
    return Setting(", ".join(each))


# ---- ours ----------------------------------------------------------------------------------------------------------


def as_many_requests(use: str) -> Any:
    """A17: TCP with as many requests at a time, at 0.14."""

    def compare(data: Data) -> Evidence:
        data.at_default_only()
        return pair(page_time(data, "concurrency", bler=0.14, use=use), sctp(data, 0.14, 3), "s")

    return compare


def first_object(data: Data) -> Evidence:
    """A17: time to the first object of a page, at 0.14."""
    data.at_default_only()
    of = [page_time(data, "page-tcp", "first_object_ns", bler=0.14)]
    of.append(page_time(data, "page-sctp", "first_object_ns", bler=0.14, lanes=3))
    return pair(of[0], of[1], "s")


def small_pages(data: Data) -> Evidence:
    """A18: pages of the size that telephones had, at 0.14."""
    data.at_default_only()
    of = [page_time(data, f"small-{protocol}") for protocol in ("tcp", "sctp")]
    return pair(of[0], of[1], "s")


# ---- controls ------------------------------------------------------------------------------------------------------


def difference(sweep: str, axis: str, a: Any, b: Any) -> Any:
    """Two levels of a sweep, seed by seed."""

    def compare(data: Data) -> Evidence:
        data.at_default_only()
        return value(page_time(data, sweep, **{axis: a}) - page_time(data, sweep, **{axis: b}), "s")

    return compare


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
    "A01.none": same_at(0),
    "A01.0.001": same_at(0.001),
    "A01.0.01": same_at(0.01),
    "A02": better_at_high,
    "A03": lambda data: value(gap(data, 0.001), "s"),
    "A04": lambda data: value(gap(data, 0.14), "s"),
    "A05": three_against_one,
    "A06.0.001": cell_at(0.001),
    "A06.0.05": cell_at(0.05),
    "A06.0.14": cell_at(0.14),
    "A07.tcp": rivals,
    "A07.jain": jain,
    "A08": rlc_throughput,
    "A09.remains": remains,
    "A09.disappears": disappears,
    "A10.page": law("main"),
    "A10.object": law("inline"),
    "A10.count": law("count"),
    "A10.least": fewest,
    "A11.tcp-packet": longest_packet("tcp"),
    "A11.sctp-packet": longest_packet("sctp"),
    "A11.streams": lambda data: Setting(client(any_run(data, "sctp"))["streams"]),
    "A11.window": settings({"tcp": "receive_buffer", "sctp": "receive_buffer"}),
    "A11.rto": settings({"tcp": "initial_rto", "sctp": "rto_initial"}),
    "A12.mcs": lambda data: Setting(both(radio(data)["mcs"], "downlink")),
    "A12.window": lambda data: Setting(both(radio(data)["window"], "downlink")),
    "A12.slots": slots,
    "A13.wires": wires,
    "A13.blocks": in_error,
    "A14": slope_of_gap,
    "A15.tcp-stops": while_missing("tcp"),
    "A15.sctp-goes-on": while_missing("sctp"),
    "A15.waits": waiting,
    "A16.bounds": bounds,
    "A16.streams": shared_numbers,
    "A17.three": as_many_requests("three connections"),
    "A17.pipelined": as_many_requests("pipelined"),
    "A17.first": first_object,
    "A18.small": small_pages,
    "same": difference("same", "called", "TCP", "tcp"),
    "closed-form": closed_form,
    "one-object": difference("one-object", "lanes", 1, 3),
    "errors-cost": errors_cost,
}
