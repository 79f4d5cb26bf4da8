"""Sequence trace of a captured TCP connection: what one end sent, what was acknowledged, what the window allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from airloom.errors import UsageError
from airloom.plot.figure import ACK, DATA, FAINT, LOST, RESENT, Drawing, heading, style

#: Mark, colour and size for what a segment is, and how the legend calls it.
_MARKS = (
    (("data", "fin"), "|", DATA, 5, "data"),
    (("fast-retransmission",), "x", RESENT, 5, "sent again after duplicate acknowledgements"),
    (("timer-retransmission",), "o", RESENT, 5, "sent again by a timer"),
    (("needless-retransmission",), "+", LOST, 6, "sent again needlessly"),
    (("out-of-order",), "d", DATA, 4, "out of order"),
    (("keep-alive", "window-probe"), ".", LOST, 5, "keep-alive or probe"),
)


def sequence_trace(
    trace: pl.DataFrame, connection: int = 0, side: int = 0, stalls: Sequence[dict[str, Any]] = ()
) -> Figure:
    """Data of one end of a connection over time, the acknowledgements of it and the edge of the window.

    `trace` is that of `airloom.analyze`; `side` is 0 for what the client sent. `stalls` are shaded.
    """
    of_connection = trace.filter(pl.col("connection") == connection).with_columns(
        (pl.col("t_ns") / 1e9).alias("t_s"), pl.col("kind").cast(pl.String)
    )
    sent = of_connection.filter((pl.col("side") == side) & ((pl.col("len") > 0) | (pl.col("kind") == "fin")))
    if sent.is_empty():
        raise UsageError(f"connection {connection}: no data from this end: nothing to draw")
    back = of_connection.filter((pl.col("side") != side) & pl.col("ack").is_not_null())
    with style():
        figure = Drawing(figsize=(9.0, 4.6), layout="constrained")
        axes = figure.subplots()
        for stall in stalls:
            axes.axvspan(stall["begin_s"], stall["end_s"], color="#f3e3c3", linewidth=0, zorder=0)
        edge = back["ack"].cast(pl.Int64) + back["window"].cast(pl.Int64)
        times = back["t_s"].to_numpy()
        # A window far above what is ever sent would press everything else down.
        if not back.is_empty() and edge.max() <= 3 * sent["seq"].max():  # type: ignore[operator]
            axes.plot(times, edge.to_numpy(), drawstyle="steps-post", color=FAINT, linewidth=0.8, label="window")
        axes.plot(times, back["ack"].to_numpy(), drawstyle="steps-post", color=ACK, linewidth=1.0, label="acknowledged")
        for kinds, marker, colour, size, label in _MARKS:
            rows = sent.filter(pl.col("kind").is_in(list(kinds)))
            if rows.is_empty():
                continue
            counted = label if kinds[0] == "data" else f"{label} ({rows.height})"
            axes.plot(
                rows["t_s"].to_numpy(), rows["seq"].to_numpy(), marker, color=colour, markersize=size, label=counted
            )
        axes.set_xlabel("time since the first frame (s)")
        axes.set_ylabel("sequence number (octets)")
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_ylim(bottom=0)
        heading(axes, f"connection {connection}, {'client' if side == 0 else 'server'} sends")
    return figure
