"""A QUIC connection by its own account: packets by number, and what its recovery allowed."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from airloom.errors import UsageError
from airloom.plot.figure import ACK, DATA, FAINT, LOST, STEPS, drawing, heading, style

#: The spaces of packet numbers; those of the handshake hold a few packets each.
_SPACE = "application"


def quic_trace(trace: pl.DataFrame, connection: int = 0, width_mm: float | None = None) -> Figure:
    """Packets that one end sent over time, those acknowledged and lost; below, window and octets in flight.

    `trace` is that of `airloom.analysis.qlog.analyze`. Drawn are packets with application data, whose numbers are a
    space of their own; where a connection has several paths, each with its own numbers, those of the path that most of
    them took, and its window. `width_mm` is the width in print, such as 88 for a column of a paper.
    """
    rows = trace.filter(pl.col("connection") == connection).with_columns((pl.col("t_ns") / 1e9).alias("t_s"))
    packets = rows.filter((pl.col("space") == _SPACE) & pl.col("number").is_not_null())
    sent = packets.filter(pl.col("kind") == "sent").group_by("path").len().sort("len", "path", descending=[True, False])
    if sent.is_empty():
        raise UsageError(f"connection {connection}: no application data from this end: nothing to draw")
    busiest = pl.col("path") == sent["path"][0]
    packets, recovery = packets.filter(busiest), rows.filter((pl.col("kind") == "recovery") & busiest)
    named = f"connection {connection}" + (f", path {sent['path'][0]}" if sent.height > 1 else "")
    has_window = recovery["cwnd"].is_not_null().any()
    with style(width_mm):
        figure = drawing(width_mm, 9.0, 6.4 if has_window else 4.6)
        if has_window:
            numbers, window = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
            _draw_window(window, recovery)
        else:
            numbers = figure.subplots()
        _draw_packets(numbers, packets)
        heading(numbers, f"{named}, packets sent")
        figure.axes[-1].set_xlabel("time since the first event (s)")
    return figure


def _draw_packets(axes: Axes, packets: pl.DataFrame) -> None:
    acknowledged = packets.filter(pl.col("kind") == "acknowledged")
    largest = acknowledged.with_columns(pl.col("number").cum_max())
    axes.plot(largest["t_s"], largest["number"], color=ACK, label="acknowledged", **STEPS)
    for kind, marker, colour in (("sent", "|", DATA), ("lost", "x", LOST)):
        of_kind = packets.filter(pl.col("kind") == kind)
        if not of_kind.is_empty():
            label = f"{kind} ({of_kind.height})"
            axes.plot(of_kind["t_s"], of_kind["number"], marker, color=colour, markersize=5, label=label)
    axes.set_ylabel("packet number")
    axes.set_ylim(bottom=0)


def _draw_window(axes: Axes, recovery: pl.DataFrame) -> None:
    for column, colour, label in (("in_flight", FAINT, "in flight"), ("cwnd", DATA, "congestion window")):
        # Told where it changes: it stays what it was until the end.
        rows = recovery.select("t_s", pl.col(column).forward_fill()).drop_nulls()
        axes.plot(rows["t_s"], rows[column], color=colour, label=label, **STEPS)
    axes.set_ylabel("octets")
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_ylim(bottom=0)
    heading(axes, "congestion window")
