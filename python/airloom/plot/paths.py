"""What came to a host over each of its links, where a connection changes from one to another."""

from __future__ import annotations

from functools import partial

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from airloom.plot.figure import LINES, heading
from airloom.plot.panels import Panel
from airloom.plot.time_sequence import from_zero, seconds


def path_panel(packets: pl.DataFrame) -> Panel | None:
    """The connection of QUIC that brought most to one host over several of its links; `None` if there is none.

    `packets` is `sequences.plain`.
    """
    at = pl.col("point").str.strip_suffix(".ip").str.splitn(".", 2)
    seen = packets.filter((pl.col("proto") == "quic") & pl.col("point").str.ends_with(".ip")).with_columns(
        at.struct[0].alias("host"), at.struct[1].alias("link")
    )
    # What a router passes on leaves it again.
    passed_on = seen.filter(pl.col("event") == "tx").select("host", "pkt_id")
    received = seen.filter(pl.col("event") == "rx").join(passed_on, on=["host", "pkt_id"], how="anti")
    ends = received.group_by("host", "flow").agg(pl.col("link").n_unique().alias("links"), pl.col("len").sum())
    order = ends.filter(pl.col("links") > 1).sort(["len", "host", "flow"], descending=[True, False, False])
    if order.is_empty():
        return None
    host, flow = order.row(0)[:2]
    rows = received.filter((pl.col("host") == host) & (pl.col("flow") == flow)).sort("t_ns", maintain_order=True)
    return Panel(3.4, partial(_draw, rows=rows.with_columns(pl.col("len").cast(pl.Int64).cum_sum().alias("octets"))))


def _draw(axes: Axes, rows: pl.DataFrame) -> None:
    for n, ((link,), over) in enumerate(rows.group_by("link", maintain_order=True)):
        line = LINES[n % len(LINES)]
        label = f"over {link} ({over.height})"
        axes.plot(seconds(over), over["octets"], line["marker"], color=line["color"], markersize=2.5, label=label)
    axes.set_ylabel("datagrams that arrived\n(octets)")
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    from_zero(axes)
    heading(axes, f"QUIC, flow {rows['flow'][0]}, received at {rows['host'][0]}")
