"""What one run did over time: congestion window, queue, throughput."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from airloom.errors import UsageError
from airloom.plot.figure import FAINT, LINES, LOST, Drawing, heading, style
from airloom.plot.panels import TIME


def congestion_window(congestion: pl.DataFrame, flow: int | None = None, host: str | None = None) -> Figure:
    """Congestion window, threshold and octets in flight of a sender, with its retransmission time-outs marked.

    Time-outs are seen by the timer, which each of them doubles: not those behind which it is as long as it may be.
    `congestion` is the table of a run that recorded it. Without `flow` and `host`, the sender with most samples.
    """
    rows = congestion.with_columns(pl.col("host", "state").cast(pl.String))
    if flow is not None:
        rows = rows.filter(pl.col("flow") == flow)
    if host is not None:
        rows = rows.filter(pl.col("host") == host)
    if rows.is_empty():
        raise UsageError("no such sender in the congestion table: nothing to draw")
    most = rows.group_by("host", "flow").len().sort(["len", "flow", "host"], descending=[True, False, False])
    name, number = most.row(0)[:2]
    rows = rows.filter((pl.col("host") == name) & (pl.col("flow") == number)).sort("t_ns", maintain_order=True)
    times = rows["t_ns"].to_numpy() / 1e9
    with style():
        figure, axes = _one()
        # The threshold is infinite, that is larger than anything, until the first loss.
        threshold = rows["ssthresh"].cast(pl.Float64).to_numpy()
        top = float(rows["cwnd"].max())  # type: ignore[arg-type]
        threshold = np.where(threshold > 4 * top, np.nan, threshold)
        axes.step(times, rows["in_flight"].to_numpy(), where="post", color=FAINT, linewidth=0.8, label="in flight")
        axes.step(times, rows["cwnd"].to_numpy(), where="post", color=LINES[0]["color"], label="congestion window")
        if not np.all(np.isnan(threshold)):
            axes.step(times, threshold, where="post", color=LINES[1]["color"], linestyle="--", label="threshold")
        # A timer that expires is doubled (RFC 6298, 5.5; RFC 9260, 6.3.3), and no round trip was measured.
        doubled = pl.col("rto_ns") > 1.5 * pl.col("rto_ns").shift(1)
        lost = rows.filter(doubled & pl.col("srtt_ns").eq_missing(pl.col("srtt_ns").shift(1)))
        if not lost.is_empty():
            at = lost["t_ns"].to_numpy() / 1e9
            axes.plot(at, lost["cwnd"].to_numpy(), "x", color=LOST, label=f"time-out ({len(at)})")
        axes.set_ylabel("octets")
        _finish(axes, f"flow {number}, sender {name}")
    return figure


def backlog(packets: pl.DataFrame, link: str, direction: str = "downlink") -> Figure:
    """Octets that a link was given and had not delivered yet: its queue, and what is on the way.

    `packets` is the table of a run that recorded packets at both ends of `link` (`points = ["*.ip"]`). If it recorded
    the link's own points too, what waits in the queue is drawn apart, as each packet finds it with itself (`q_bytes`).
    """
    rows = _at(packets, link, direction)
    sent = rows.filter(pl.col("event").is_in(["tx", "retx"])).unique("pkt_id", keep="first", maintain_order=True)
    out = pl.concat((rows.filter(pl.col("event").is_in(["rx", "drop"])), _inside(packets, link, direction, "drop")))
    left = out.sort("t_ns", maintain_order=True).unique("pkt_id", keep="first", maintain_order=True)
    if sent.is_empty() or left.is_empty():
        raise UsageError(
            f'packets are not recorded at both ends of {link}: `points = ["*.ip"]` in [run], and run again'
        )
    left = left.join(sent.select("pkt_id"), on="pkt_id", how="semi")
    change = pl.concat(
        (
            sent.select("t_ns", pl.col("len").cast(pl.Int64).alias("change")),
            left.select("t_ns", -pl.col("len").cast(pl.Int64).alias("change")),
        )
    ).sort("t_ns", maintain_order=True)
    level = change.with_columns(pl.col("change").cum_sum().alias("level")).group_by("t_ns", maintain_order=True).last()
    with style():
        figure, axes = _one()
        times, octets = level["t_ns"].to_numpy() / 1e9, level["level"]
        axes.step(times, octets, where="post", color=LINES[0]["color"], label="waiting and on the way")
        queue = _inside(packets, link, direction, "enq")
        if not queue.is_empty():
            times, octets = queue["t_ns"].to_numpy() / 1e9, queue["q_bytes"]
            axes.plot(times, octets, ".", color=LINES[1]["color"], markersize=3, label="in the queue, packet by packet")
        dropped = left.filter(pl.col("event") == "drop")
        if not dropped.is_empty():
            at = dropped["t_ns"].to_numpy() / 1e9
            axes.plot(at, np.zeros(len(at)), "x", color=LOST, clip_on=False, label=f"dropped ({len(at)})")
        axes.set_ylabel("octets in the link")
        _finish(axes, f"{link}, {direction}")
    return figure


def throughput(packets: pl.DataFrame, link: str, direction: str = "downlink", span_s: float = 0.5) -> Figure:
    """Rate of datagrams at the end of a link, averaged over spans of `span_s` seconds.

    `packets` is the table of a run that recorded packets at the receiving end of `link` (`points = ["*.ip"]`).
    """
    if span_s <= 0:
        raise UsageError(f"a span of time is more than 0 s, not {span_s}")
    received = _at(packets, link, direction).filter(pl.col("event") == "rx")
    if received.is_empty():
        raise UsageError(f'nothing is recorded where {link} ends: `points = ["*.ip"]` in [run], and run again')
    times = received["t_ns"].to_numpy() / 1e9
    edges = np.arange(0.0, times.max() + 2 * span_s, span_s)
    octets, _ = np.histogram(times, edges, weights=received["len"].to_numpy())
    with style():
        figure, axes = _one()
        axes.stairs(8 * octets / span_s, edges, color=LINES[0]["color"], linewidth=1.2)
        axes.set_ylabel("rate of datagrams (bit/s)")
        _finish(axes, f"{link}, {direction}, averages over {span_s:g} s")
    return figure


def _inside(packets: pl.DataFrame, link: str, direction: str, event: str) -> pl.DataFrame:
    """Where a packet entered the link's queue (`enq`), or was dropped: rows that say what waited there."""
    rows = packets.with_columns(pl.col("point", "dir", "event").cast(pl.String))
    short = {"uplink": "ul", "downlink": "dl"}[direction]
    inside = pl.col("point").str.starts_with(f"{link}.") & pl.col("dir").is_in([direction, short])
    return rows.filter(inside & (pl.col("event") == event) & pl.col("q_bytes").is_not_null())


def _at(packets: pl.DataFrame, link: str, direction: str) -> pl.DataFrame:
    """What is seen where hosts meet the link, going this way."""
    if direction not in ("uplink", "downlink"):
        raise UsageError(f"a direction is uplink or downlink, not {direction!r}")
    rows = packets.with_columns(pl.col("point", "dir", "event").cast(pl.String))
    short = {"uplink": "ul", "downlink": "dl"}[direction]
    there = pl.col("point").str.ends_with(f".{link}.ip")
    return rows.filter(there & pl.col("dir").is_in([direction, short])).sort("t_ns", maintain_order=True)


def _one() -> tuple[Figure, Axes]:
    figure = Drawing(figsize=(6.5, 3.0), layout="constrained")
    return figure, figure.subplots()


def _finish(axes: Axes, title: str) -> None:
    axes.set_xlabel(TIME)
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    heading(axes, title)
