"""Sequence trace of a captured TCP connection: what one end sent, what was acknowledged, what the window allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from airloom.errors import UsageError
from airloom.plot.figure import ACK, DATA, FAINT, LOST, RESENT, STEPS, drawing, heading, style

#: Mark, colour and size for what a segment is, and how the legend calls it.
_MARKS = (
    (("data", "fin"), "|", DATA, 5, "data"),
    (("retransmission",), "x", RESENT, 4, "sent again"),
    (("fast-retransmission",), "x", RESENT, 4, "sent again after duplicate acknowledgements"),
    (("timer-retransmission",), "1", RESENT, 6, "sent again by a timer"),
    (("needless-retransmission",), "+", LOST, 6, "sent again needlessly"),
    (("out-of-order",), "d", DATA, 4, "out of order"),
    (("keep-alive", "window-probe"), ".", LOST, 5, "keep-alive or probe"),
)


#: Stalls that are marked; more would cover each other.
_MOST_STALLS = 5


def sequence_trace(
    trace: pl.DataFrame,
    connection: int = 0,
    side: int = 0,
    stalls: Sequence[dict[str, Any]] = (),
    width_mm: float | None = None,
) -> Figure:
    """Data of one end of a connection over time, the acknowledgements of it and the edge of the window.

    `trace` is that of `airloom.analyze`; `side` is 0 for what the client sent. The longest `stalls` are marked along
    the upper edge, each with its length. `width_mm` is the width in print, such as 88 for a column of a paper.
    """
    of_connection = trace.filter(pl.col("connection") == connection).with_columns(
        (pl.col("t_ns") / 1e9).alias("t_s"), pl.col("kind").cast(pl.String)
    )
    sent = of_connection.filter((pl.col("side") == side) & ((pl.col("len") > 0) | (pl.col("kind") == "fin")))
    if sent.is_empty():
        raise UsageError(f"connection {connection}: no data from this end: nothing to draw")
    back = of_connection.filter((pl.col("side") != side) & pl.col("ack").is_not_null())
    with style(width_mm):
        figure = drawing(width_mm, 9.0, 4.6)
        axes = figure.subplots()
        # Without the SYNs nobody knows how large windows are.
        offers = back.drop_nulls("window")
        edge = offers["ack"].cast(pl.Int64) + offers["window"].cast(pl.Int64)
        # A window far above what is ever sent would press everything else down.
        if not offers.is_empty() and edge.max() <= 1.5 * sent["seq"].max():  # type: ignore[operator]
            axes.plot(offers["t_s"], edge, color=FAINT, label="window", **{**STEPS, "linewidth": 0.8})
        axes.plot(back["t_s"], back["ack"], color=ACK, label="acknowledged", **STEPS)
        for kinds, marker, colour, size, label in _MARKS:
            rows = sent.filter(pl.col("kind").is_in(list(kinds)))
            if rows.is_empty():
                continue
            counted = label if kinds[0] == "data" else f"{label} ({rows.height})"
            axes.plot(rows["t_s"], rows["seq"], marker, color=colour, markersize=size, label=counted)
        axes.set_xlabel("time since the first frame (s)")
        axes.set_ylabel("sequence number (octets)")
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_ylim(bottom=0)
        _mark_stalls(axes, stalls)
        heading(axes, f"connection {connection}, {'client' if side == 0 else 'server'} sends")
    return figure


def _mark_stalls(axes: Axes, stalls: Sequence[dict[str, Any]]) -> None:
    """A line along the upper edge for each of the longest, its length below it."""
    longest = sorted(stalls, key=lambda stall: stall["begin_s"] - stall["end_s"])[:_MOST_STALLS]
    along = axes.get_xaxis_transform()
    for n, stall in enumerate(longest):
        begin, end = stall["begin_s"], stall["end_s"]
        label = f"stalled ({len(stalls)})" if n == 0 else None
        axes.plot([begin, end], [0.985, 0.985], "-", color=LOST, linewidth=2.5, transform=along, label=label)
        text = f"{end - begin:.3g} s"
        axes.text((begin + end) / 2, 0.965, text, transform=along, ha="center", va="top", fontsize="small")
    if stalls:
        # The marks need the upper edge for themselves.
        axes.set_ylim(top=1.12 * axes.get_ylim()[1])
