"""Sequence numbers over time, from the packets table: what a transport sent, and what the link below made of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

#: Transports whose rows say `seq` and `ack`, and what their numbers count modulo.
#: Those of WWP have 24 bits, or 16 in the shortest header: no flight is long enough for the difference to matter.
_MODULI = {"tcp": 2**32, "sctp": 2**32, "wwp": 2**16}

#: Link layers that number what they send: `proto` in the packets table, and how people call it.
LINK_LAYERS = {"rlc": "RLC", "mac-hs": "MAC-hs", "piafs": "PIAFS"}


class Sequence(NamedTuple):
    """What a flow sent, as one point saw it; heights `y` count from the first number that was seen."""

    flow: int
    proto: str
    point: str
    direction: str
    #: It is a point where data arrives: what was lost on the way was never there.
    is_receiver: bool
    #: Rows with data, with `y`, and `again` where the number is not above all before it.
    data: pl.DataFrame
    #: Rows with acknowledgements, with `y`.
    acks: pl.DataFrame


class Attempts(NamedTuple):
    """What a link layer sent at a point, with heights `y`: how many PDUs were sent for the first time until then."""

    proto: str
    point: str
    #: Points of the same kind that were recorded too.
    others: int
    rows: pl.DataFrame


def plain(packets: pl.DataFrame) -> pl.DataFrame:
    """The table with texts instead of dictionaries, sorted by time."""
    texts = pl.col("point", "dir", "event", "proto").cast(pl.String)
    return packets.with_columns(texts).sort("t_ns", maintain_order=True)


def flows(packets: pl.DataFrame) -> list[int]:
    """Flows with sequence numbers, those over a radio link or a bundle first, and of these those that carried most.

    `packets` is `plain`.
    """
    numbered = _at_hosts(packets).filter(pl.col("seq").is_not_null() & (pl.col("flow") > 0))
    # At as many points as there are: the flow that is seen most often is not the one that carries most.
    totals = numbered.group_by("flow", "dir", "point").agg(pl.col("len").sum())
    most = totals.group_by("flow").agg(pl.col("len").max())
    below = packets.filter(pl.col("proto").is_in(["rlc", "mp"]))["flow"].unique()
    most = most.with_columns(below=pl.col("flow").is_in(below.implode()))
    most = most.sort(["below", "len", "flow"], descending=[True, True, False])
    return [int(number) for number in most["flow"]]


def _at_hosts(packets: pl.DataFrame) -> pl.DataFrame:
    """Datagrams of transports with numbers, where hosts send and receive them."""
    return packets.filter(pl.col("proto").is_in(list(_MODULI)) & pl.col("event").is_in(["tx", "retx", "rx"]))


def sequence(packets: pl.DataFrame, flow: int) -> Sequence:
    """The data of a flow in the direction that carries most, where it was seen first; `packets` is `plain`."""
    rows = _at_hosts(packets).filter(pl.col("flow") == flow)
    totals = rows.group_by("dir", "point").agg(pl.col("len").sum()).sort(["len", "dir"], descending=[True, False])
    direction = str(totals["dir"][0])
    there = rows.filter((pl.col("dir") == direction) & pl.col("seq").is_not_null())
    point, event, proto = there.select("point", "event", "proto").row(0)
    sent = there.filter(pl.col("point") == point)
    heights = unwrapped(sent["seq"], _MODULI[proto])
    start = float(heights[0])
    carries = np.full(sent.height, fill_value=True)
    if proto == "tcp":
        more = (sent["len"].cast(pl.Int64) - sent["len"].min()).to_numpy()
        carries = _carries(heights, more) if more.any() else carries
    heights = heights[carries] - start
    # Sent again is judged by the numbers, as any observer would: data below what was there before.
    highest = np.maximum.accumulate(np.concatenate(([-1.0], heights[:-1]))) if len(heights) else heights
    data = sent.filter(pl.Series(carries)).with_columns(pl.Series("y", heights), again=pl.Series(heights <= highest))
    back = rows.filter((pl.col("dir") != direction) & (pl.col("point") == point) & pl.col("ack").is_not_null())
    acks = back.with_columns(pl.Series("y", unwrapped(back["ack"], _MODULI[proto]) - start))
    return Sequence(flow, proto, point, direction, event == "rx", data, acks)


#: By so many octets options make a header of TCP longer at most (RFC 9293, 3.1: fifteen words with the fixed five).
_OPTIONS = 40


def _carries(numbers: NDArray[np.float64], more: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which segments of TCP have data? Every one has a number, and the table does not say how much is behind it.

    `more` are their octets beyond the shortest, which is a header. What has more than options fill has data. What has
    less is data up to the next number, or options: those of a SYN, or reports of what has arrived.
    """
    places = np.unique(numbers)
    after = np.searchsorted(places, numbers, side="right")
    gap = np.append(places, np.inf)[after] - numbers
    opens = (numbers == numbers[0]) & (gap == 1)
    carries: NDArray[np.bool_] = (more > _OPTIONS) | ((more > 0) & (gap <= more) & ~opens)
    return carries


def unwrapped(numbers: pl.Series, modulus: int) -> NDArray[np.float64]:
    """Numbers that count modulo `modulus`, as they would be without it."""
    return np.unwrap(numbers.cast(pl.Float64).to_numpy(), period=modulus)


def attempts(packets: pl.DataFrame, direction: str, flow: int | None = None) -> list[Attempts]:
    """For each numbered link layer, what it sent this way at the point that carried most of the flow.

    Where nothing says whose a PDU is, as with frames of PIAFS, that is the point where most was sent again, on a link
    that the flow passes if there is one.
    """
    found = []
    numbered = packets.filter((pl.col("dir") == direction) & pl.col("seq").is_not_null())
    of_flow = packets.filter((pl.col("flow") == (flow or 0)) & pl.col("point").str.ends_with(".ip"))
    links = of_flow["point"].str.split(".").list.get(1).unique()
    ids = packets.filter((pl.col("flow") == (flow or 0)) & (pl.col("pkt_id") > 0))["pkt_id"].unique()
    for proto in LINK_LAYERS:
        rows = numbered.filter((pl.col("proto") == proto) & pl.col("event").is_in(["tx", "retx", "drop"]))
        if rows.is_empty():
            continue
        own = (pl.col("event") != "drop") & pl.col("pkt_id").is_in(ids.implode())
        order = rows.group_by("point").agg(
            own.sum().alias("own"), (pl.col("event") == "retx").sum().alias("again"), pl.len().alias("all")
        )
        order = order.with_columns(passed=pl.col("point").str.split(".").list.get(0).is_in(links.implode()))
        order = order.sort(["own", "passed", "again", "all", "point"], descending=[True, True, True, True, False])
        # A radio link that the flow does not use has nothing to do with it.
        if flow is not None and proto == "rlc" and order["own"][0] == 0:
            continue
        point = str(order["point"][0])
        found.append(Attempts(proto, point, order.height - 1, _counted(rows.filter(pl.col("point") == point))))
    return found


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    """With heights that go on where numbers begin again: by a modulus, a new TBF, a reset.

    What is sent again, or lost, has the height of the last PDU that was sent for the first time with its number.
    """
    is_first = pl.col("event") == "tx"
    start = rows.filter(is_first)["seq"].head(1).sum() if rows.filter(is_first).height else 0
    counted = rows.with_columns(y=pl.when(is_first).then(is_first.cum_sum() - 1 + start))
    counted = counted.with_columns(pl.col("y").forward_fill().over("seq"))
    return counted.with_columns(pl.col("y").fill_null(pl.col("seq")).cast(pl.Float64))
