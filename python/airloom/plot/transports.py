"""Flows as their own protocols see them: SCTP by stream, WWP by wave, WTP by transaction."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from airloom.analysis.sequences import Sequence, unwrapped
from airloom.plot import on_the_wire
from airloom.plot.figure import ACK, DATA, FAINT, LINES, LOST, RESENT, STEPS, heading
from airloom.plot.on_the_wire import Message
from airloom.plot.panels import Panel
from airloom.plot.time_sequence import draw_acknowledged, draw_again, finish_numbers, flow_title, seconds

#: Streams, levels or members that are told apart by colour; the others share the last one.
MOST = len(LINES)

#: Transactions whose names stand beside them.
_MOST_NAMES = 24


def stream_panel(drawn: Sequence, flows: int, packets: pl.DataFrame, chunks: pl.DataFrame) -> Panel:
    """An association of SCTP by TSN, coloured by stream.

    `chunks` are those of the capture (`on_the_wire.sctp_chunks`): the packets table has the first of each packet only.
    """
    of_flow = packets.filter((pl.col("flow") == drawn.flow) & (pl.col("point") == drawn.point))
    rows = of_flow.join(chunks, on=("point", "pkt_id"), maintain_order="left_right")
    data = rows.filter((pl.col("dir") == drawn.direction) & pl.col("tsn").is_not_null())
    start = float(data["tsn"][0])
    data = data.with_columns(y=pl.Series(unwrapped(data["tsn"], 2**32) - start))
    data = data.with_columns(again=pl.col("y") <= pl.col("y").cum_max().shift(1, fill_value=-1.0))
    acks = rows.filter((pl.col("dir") != drawn.direction) & pl.col("sack").is_not_null())
    acks = acks.with_columns(y=pl.Series(unwrapped(acks["sack"], 2**32) - start))
    drawn = drawn._replace(data=data, acks=acks)
    return Panel(3.4, partial(_draw_streams, drawn=drawn, flows=flows))


def _draw_streams(axes: Axes, drawn: Sequence, flows: int) -> None:
    draw_acknowledged(axes, drawn, FAINT)
    first = drawn.data.filter(~pl.col("again"))
    for number, look in _looks(first["stream"].unique().sort().to_list()):
        rows = first.filter(pl.col("stream") == number)
        label = f"stream {number} ({rows.height})"
        axes.plot(seconds(rows), rows["y"], linestyle="none", markersize=4, label=label, **look)
    draw_again(axes, drawn, LOST)
    finish_numbers(axes, drawn)
    heading(axes, flow_title(drawn, flows))


def _looks(numbers: list[int]) -> list[tuple[int, dict[str, Any]]]:
    return [(n, {k: LINES[min(i, MOST - 1)][k] for k in ("color", "marker")}) for i, n in enumerate(numbers)]


def wave_panels(
    drawn: Sequence, flows: int, packets: pl.DataFrame, segments: pl.DataFrame, waves: list[int]
) -> list[Panel]:
    """A connection of WWP by the number of the segment, coloured by the level of its wave, and the decisions on levels.

    `segments` are those of the capture (`on_the_wire.wwp_segments`), `waves` how many segments a wave of level 1, 2, ..
    has. Nothing where no segment was captured at a point.
    """
    of_flow = packets.filter((pl.col("flow") == drawn.flow) & (pl.col("point") == drawn.point))
    rows = of_flow.join(segments, on=("point", "pkt_id"), maintain_order="left")
    if rows.is_empty():
        return []
    data = drawn.data.join(segments, on=("point", "pkt_id"), maintain_order="left")
    return [
        Panel(3.4, partial(_draw_waves, drawn=drawn, flows=flows, data=data, waves=waves)),
        Panel(1.9, partial(_draw_decisions, drawn=drawn, rows=rows, data=data, waves=waves)),
    ]


def _draw_waves(axes: Axes, drawn: Sequence, flows: int, data: pl.DataFrame, waves: list[int]) -> None:
    draw_acknowledged(axes, drawn, FAINT)
    for level, look in _looks(list(range(1, len(waves) + 1))):
        rows = data.filter((pl.col("level") == level) & ~pl.col("again"))
        if not rows.is_empty():
            label = f"in waves of level {level} ({rows.height})"
            axes.plot(seconds(rows), rows["y"], "|", color=look["color"], markersize=5, label=label)
    draw_again(axes, drawn, LOST)
    finish_numbers(axes, drawn)
    heading(axes, flow_title(drawn, flows))


def _draw_decisions(axes: Axes, drawn: Sequence, rows: pl.DataFrame, data: pl.DataFrame, waves: list[int]) -> None:
    told = rows.filter((pl.col("kind") == on_the_wire.NSACK) & (pl.col("dir") != drawn.direction))
    axes.plot(seconds(told), told["level"], color=ACK, label="level that the receiver told", **STEPS)
    each = data.filter(pl.col("wave") != pl.col("wave").shift(1, fill_value=-1))
    axes.plot(seconds(each), each["level"], "o", color=DATA, markersize=3.5, label=f"wave sent ({each.height})")
    probes = rows.filter(pl.col("kind").is_in(on_the_wire.PROBES) & (pl.col("dir") == drawn.direction))
    label = f"probe sent ({probes.height})"
    axes.plot(seconds(probes), [0.0] * probes.height, "|", color=RESENT, markersize=9, label=label)
    axes.set_yticks(range(len(waves) + 1), ["0: probes", *(f"{n}: waves of {size}" for n, size in enumerate(waves, 1))])
    axes.set_ylim(-0.5, len(waves) + 0.5)
    axes.set_ylabel("level")
    heading(axes, "Waves and decisions")


def transaction_panel(capture: Path, ports: Collection[int], *, has_sessions: bool) -> Panel | None:
    """Transactions of WAP, one below the other, at the point that saw most of their messages; nothing without any."""
    messages = on_the_wire.messages(capture, ports, has_sessions=has_sessions)
    if not messages:
        return None
    points = [message.point for message in messages]
    # Of several that saw the same the first by name, so that a run is drawn the same each time.
    point = min(set(points), key=lambda name: (-points.count(name), name))
    there = [message for message in messages if message.point == point]
    order = list(dict.fromkeys(message.transaction for message in there))
    height = min(1.2 + 0.19 * len(order), 5.0)
    title = f"{'WTP transactions' if has_sessions else 'WSP requests without a session'} at {point}"
    return Panel(height, partial(_draw_transactions, there=there, order=order, title=title))


def _draw_transactions(axes: Axes, there: list[Message], order: list[tuple[bytes, int, int]], title: str) -> None:
    places = {transaction: n for n, transaction in enumerate(order, 1)}
    names = dict.fromkeys(order, "")
    spans: dict[int, tuple[float, float]] = {}
    for message in there:
        place = places[message.transaction]
        names[message.transaction] = names[message.transaction] or message.says
        spans[place] = (spans.get(place, (message.at_s, 0.0))[0], message.at_s)
    axes.hlines(list(spans), *zip(*spans.values(), strict=True), color=FAINT, linewidth=1.0, zorder=1)
    wire = on_the_wire
    for kinds, label, marker, colour in (
        ((wire.INVOKE, wire.SEGMENTED_INVOKE), "Invoke", ">", DATA),
        ((wire.RESULT, wire.SEGMENTED_RESULT), "Result", "<", ACK),
        ((wire.ACKNOWLEDGEMENT,), "Ack", "|", LOST),
        ((wire.NEGATIVE,), "Negative Ack", "d", RESENT),
        ((wire.ABORT,), "Abort", "X", RESENT),
    ):
        marks = [message for message in there if message.kind in kinds]
        if marks:
            times, at = [m.at_s for m in marks], [places[m.transaction] for m in marks]
            axes.plot(times, at, marker, color=colour, markersize=5, label=f"{label} ({len(marks)})")
    again = [message for message in there if message.is_again and message.kind != wire.ABORT]
    if again:
        times, at = [m.at_s for m in again], [places[m.transaction] for m in again]
        axes.plot(times, at, "x", color=RESENT, markersize=7, label=f"marked as sent again ({len(again)})")
    if len(order) <= _MOST_NAMES:
        axes.set_yticks(range(1, len(order) + 1), [_short(names[t]) or f"TID {t[2]}" for t in order], fontsize=7.5)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel("transaction")
    axes.set_ylim(len(order) + 0.6, 0.4)
    heading(axes, title)


def _short(name: str, most: int = 30) -> str:
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"
