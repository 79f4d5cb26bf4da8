"""What a run's packets table has to show over time: segments, link-layer attempts, queues and rates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.analysis import sequences
from airloom.analysis.sequences import Attempts, Sequence
from airloom.report.page import floats, packed

#: Flows that a report offers; those that carry most.
MOST_FLOWS = 12

#: Spans of time in which rates are counted, at most; and how long one may be: the shortest that is not longer is taken.
#: Links deliver in bursts: shorter ones would show these, and not a rate.
_SPANS = 120
_SPANS_NS = tuple(int(s * 1e9) for s in (0.5, 1, 2, 5, 10, 20, 60, 300, 3600))


class Kind(NamedTuple):
    """One kind of mark in a plot: its name, its colour (by role) and shape, and the columns of its marks."""

    name: str
    role: str
    shape: str
    rows: pl.DataFrame

    def encoded(self) -> dict[str, Any]:
        """For the script: times in seconds, heights, packet ids and what a person reads when one is chosen."""
        rows = self.rows
        return {
            "name": self.name,
            "role": self.role,
            "shape": self.shape,
            "t": floats(rows["t_ns"].to_numpy() / 1e9),
            # Sequence numbers, counted on: whole numbers.
            "y": packed(rows["y"].cast(pl.Int64).to_numpy()),
            "id": packed(rows["pkt_id"].to_numpy()),
            "len": packed(rows["len"].to_numpy()),
            "attempt": packed(rows["attempt"].to_numpy()),
        }


class FlowEvents(NamedTuple):
    """A flow as one point saw it, and the link-layer attempts that carried it."""

    sequence: Sequence
    segments: list[Kind]
    attempts: list[Kind]
    #: What the attempts are of, and where.
    below: Attempts | None


def flows(packets: pl.DataFrame) -> list[FlowEvents]:
    """The flows with sequence numbers that carry most, each with the attempts of the link below if there are any."""
    found = []
    for number in sequences.flows(packets)[:MOST_FLOWS]:
        of = sequences.sequence(packets, number)
        again = "came again, or late" if of.is_receiver else f"sent again by {of.proto.upper()}"
        segments = [
            Kind("acknowledged", "ack", "step", of.acks),
            Kind("data", "data", "bar", of.data.filter(~pl.col("again"))),
            Kind(again, "resent", "cross", of.data.filter("again")),
        ]
        below = next(iter(sequences.attempts(packets, of.direction, number)), None)
        found.append(FlowEvents(of, segments, [] if below is None else _attempts(below, number), below))
    return found


def _attempts(below: Attempts, flow: int) -> list[Kind]:
    # Frames of PIAFS say nothing of flows: all of the circuit then.
    own = below.rows.filter(pl.col("flow") == flow)
    rows = below.rows if own.is_empty() else own
    return [
        Kind("first attempt", "faint", "bar", rows.filter(pl.col("event") == "tx")),
        Kind("further attempt", "resent", "cross", rows.filter(pl.col("event") == "retx")),
        Kind("lost on the air", "lost", "dot", rows.filter(pl.col("event") == "drop")),
    ]


class Line(NamedTuple):
    """A quantity over time, for one direction of one link."""

    name: str
    t: NDArray[np.floating[Any]]
    y: NDArray[np.floating[Any]]

    def encoded(self) -> dict[str, Any]:
        """For the script."""
        return {"name": self.name, "t": floats(self.t), "y": floats(self.y)}


def queues(packets: pl.DataFrame) -> list[Line]:
    """Octets that entered a link and did not come out yet; where its ends were not recorded, what the link says.

    A link tells its queue when a packet enters it, not when one leaves: a line of that never comes down.
    """
    found = []
    drawn: set[tuple[str, str]] = set()
    for link, direction, entered, left in _ways(packets):
        if entered.is_empty():
            continue
        drawn.add((link, direction))
        # What the link dropped is in it no more. Such a row says the queue; one of a PDU that was lost does not.
        inside = pl.col("point").str.starts_with(f"{link}.") & (pl.col("dir") == direction)
        dropped = packets.filter(inside & (pl.col("event") == "drop") & pl.col("q_bytes").is_not_null())
        dropped = dropped.join(entered.select("pkt_id"), on="pkt_id", how="semi")
        left = pl.concat((left.select("t_ns", "pkt_id", "len"), dropped.select("t_ns", "pkt_id", "len")))
        # A copy takes nothing out that its datagram has not.
        left = left.sort("t_ns", maintain_order=True).unique("pkt_id", keep="first", maintain_order=True)
        moves = pl.concat(
            [entered.select("t_ns", pl.col("len").cast(pl.Int64)), left.select("t_ns", -pl.col("len").cast(pl.Int64))]
        )
        moves = moves.group_by("t_ns").agg(pl.col("len").sum()).sort("t_ns")
        name = f"{link} {_ARROW[direction]}, waiting or under way"
        found.append(Line(name, _seconds(moves), moves["len"].cum_sum().to_numpy() * 1.0))
    filled = packets.filter(pl.col("q_bytes").is_not_null())
    for (point, direction), rows in sorted(filled.group_by("point", "dir"), key=lambda entry: str(entry[0])):
        link = str(point).split(".")[0]
        if (link, str(direction)) not in drawn:
            name = f"{link} {_ARROW[str(direction)]}, queue as packets enter it"
            found.append(Line(name, _seconds(rows), rows["q_bytes"].to_numpy() * 1.0))
    return found


def rates(packets: pl.DataFrame) -> list[Line]:
    """Rate at which datagrams come out of each link, in bit/s, counted in equal spans of time."""
    if packets.is_empty():
        return []
    end, span = int(packets["t_ns"].max()), rate_span_ns(packets)  # type: ignore[arg-type]
    found = []
    for link, direction, _, left in _ways(packets):
        counts = np.bincount(
            (left["t_ns"].to_numpy() // span).astype(np.int64),
            weights=left["len"].to_numpy().astype(np.float64),
            minlength=end // span + 1,
        )
        times = (np.arange(len(counts)) + 0.5) * (span / 1e9)
        found.append(Line(f"{link} {_ARROW[direction]}", times, counts * 8 / (span / 1e9)))
    return found


def rate_span_ns(packets: pl.DataFrame) -> int:
    """The span of time in which rates are counted."""
    end = int(packets["t_ns"].max() or 0)  # type: ignore[arg-type]
    return next((span for span in _SPANS_NS if end <= span * _SPANS), _SPANS_NS[-1])


_ARROW = {"ul": "uplink", "dl": "downlink"}


def _ways(packets: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame, pl.DataFrame]]:
    """Each link and direction with the datagrams that entered it and those that came out.

    Where the run did not record the far end, a datagram has come out when the last of its PDUs was received.
    """
    ip = packets.filter(pl.col("point").str.ends_with(".ip")).with_columns(
        pl.col("point").str.split(".").list.get(1).alias("link")
    )
    pdus = packets.filter(pl.col("point").str.ends_with(".rx") & (pl.col("event") == "rx") & (pl.col("pkt_id") != 0))
    pdus = pdus.with_columns(pl.col("point").str.split(".").list.get(0).alias("link"))
    found = []
    for link in sorted(ip["link"].unique()):
        for direction in ("dl", "ul"):
            here = ip.filter((pl.col("link") == link) & (pl.col("dir") == direction))
            entered = here.filter(pl.col("event").is_in(["tx", "retx"]))
            left = here.filter(pl.col("event") == "rx")
            if left.is_empty() and not entered.is_empty():
                last = pdus.filter((pl.col("link") == link) & (pl.col("dir") == direction))
                last = last.group_by("pkt_id").agg(pl.col("t_ns").max())
                left = last.join(entered.select("pkt_id", "len").unique("pkt_id"), on="pkt_id").sort("t_ns")
            if entered.is_empty() and not left.is_empty():
                # Seen only where it comes out: rates can be shown, the queue cannot.
                entered = left.clear()
            if left.is_empty():
                continue
            found.append((link, direction, entered, left))
    return found


def _seconds(rows: pl.DataFrame) -> NDArray[np.float64]:
    return rows["t_ns"].to_numpy() / 1e9
