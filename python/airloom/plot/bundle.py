"""What each member of a bundle carried (PPP Multilink, RFC 1990)."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from airloom.plot.figure import LINES, heading
from airloom.plot.panels import Panel
from airloom.plot.time_sequence import from_zero, seconds

_POINT = r"^(.+)\.member\.(\d+)\.ppp\.(?:ul|dl)\.(tx|rx)$"

#: Spans in which the rate of a member is counted, and the shortest of them, s.
_SPANS, _SHORTEST_S = 60, 0.25


def bundle_panels(packets: pl.DataFrame, direction: str | None) -> list[Panel]:
    """Fragments by number and the rate of each member, one way; without `direction`, the way of most fragments.

    `packets` is `sequences.plain`. Where they arrive if that was recorded, else where they leave.
    """
    rows = packets.filter((pl.col("proto") == "mp") & pl.col("event").is_in(["tx", "rx"]) & pl.col("seq").is_not_null())
    if direction is not None:
        rows = rows.filter(pl.col("dir") == direction)
    parts = pl.col("point").str.extract_groups(_POINT).struct
    rows = rows.with_columns(link=parts.field("1"), member=parts.field("2").cast(pl.Int64), end=parts.field("3"))
    if rows.is_empty():
        return []
    most = (
        rows.group_by("link", "dir", "end")
        .len()
        .sort(["len", "end", "link", "dir"], descending=[True, False, False, False])
    )
    link, way, end = most.row(0)[:3]
    rows = rows.filter((pl.col("link") == link) & (pl.col("dir") == way))
    if end == "tx" and not rows.filter(pl.col("end") == "rx").is_empty():
        end = "rx"  # those that were lost on the way left, and carried nothing
    rows = rows.filter(pl.col("end") == end)
    named = "downlink" if way == "dl" else "uplink"
    title = f"{link}, {named}, fragments by member as they {'arrive' if end == 'rx' else 'leave'}"
    return [
        Panel(2.8, partial(_draw_fragments, rows=rows, title=title)),
        Panel(2.0, partial(_draw_rates, rows=rows)),
    ]


def _draw_fragments(axes: Axes, rows: pl.DataFrame, title: str) -> None:
    for (member,), of_member in sorted(rows.group_by("member"), key=lambda entry: entry[0]):
        look = {**LINES[int(member) % len(LINES)], "linestyle": "none", "markersize": 2.2, "markeredgewidth": 0}
        axes.plot(seconds(of_member), of_member["seq"], label=f"{member} ({of_member.height})", **look)
    axes.set_ylabel("Multilink number\n(fragments)")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    from_zero(axes)
    heading(axes, title)


def _draw_rates(axes: Axes, rows: pl.DataFrame) -> None:
    end = float(seconds(rows).max())  # type: ignore[arg-type]
    edges = np.linspace(0.0, end, max(2, min(_SPANS, int(end / _SHORTEST_S)) + 1))
    below = np.zeros(len(edges) - 1)
    for (member,), of_member in sorted(rows.group_by("member"), key=lambda entry: entry[0]):
        octets, _ = np.histogram(seconds(of_member).to_numpy(), edges, weights=of_member["len"].to_numpy())
        rate = below + 8 * octets / np.diff(edges)
        colour = LINES[int(member) % len(LINES)]["color"]
        axes.stairs(rate, edges, baseline=below, fill=True, color=colour, alpha=0.75, linewidth=0)
        below = rate
    axes.set_ylabel("rate of fragments\n(bit/s)")
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_ylim(bottom=0.0)
    heading(axes, f"What each member carries, one above the other, means over {edges[1]:.2g} s")
