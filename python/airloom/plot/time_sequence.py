"""Time-sequence plot: what a transport sent and what the link below made of it, on one time axis."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from airloom.analysis import sequences
from airloom.analysis.sequences import LINK_LAYERS, Attempts, Sequence
from airloom.errors import UsageError
from airloom.plot.figure import ACK, DATA, FAINT, LOST, RESENT, STEPS, heading
from airloom.plot.panels import Panel, stacked

#: What the numbers of a transport are.
NUMBERS = {"tcp": "TCP sequence number\n(octets)", "sctp": "TSN (chunks)", "wwp": "number (segments)"}


#: Event, mark, colour, size and name of an attempt.
_ATTEMPTS = (
    ("tx", "|", FAINT, 4, "first attempt"),
    ("retx", "x", RESENT, 4, "further attempt"),
    ("drop", ".", LOST, 2, "lost on the air"),
)

#: More attempts than these would be one bar: they are counted, in about so many spans of time.
_MOST_ATTEMPTS, _SPANS = 8000, 100


def time_sequence(packets: pl.DataFrame, flow: int | None = None) -> Figure:
    """Data, retransmissions and acknowledgements of a flow, and below them the attempts of the radio link.

    `packets` is the packets table of a run; without `flow` the flow that carries most is drawn. The lower plots are
    there if the run recorded PDUs or frames of the link. Raises `UsageError` if no such flow has numbers there.
    """
    rows = sequences.plain(packets)
    there = sequences.flows(rows)
    if not there or (flow is not None and flow not in there):
        what = "flow" if flow is None else f"flow {flow}"
        raise UsageError(f"no {what} of TCP, SCTP or WWP in the packets table: nothing to draw")
    drawn = sequences.sequence(rows, there[0] if flow is None else flow)
    return stacked([sequence_panel(drawn, len(there)), *link_panels(rows, drawn.direction, drawn.flow)])


def sequence_panel(drawn: Sequence, flows: int) -> Panel:
    """A flow by its numbers."""
    return Panel(3.4, partial(_draw_sequence, drawn=drawn, flows=flows))


def link_panels(packets: pl.DataFrame, direction: str, flow: int | None) -> list[Panel]:
    """The link layers below; `packets` is `sequences.plain`."""
    found = sequences.attempts(packets, direction, flow)
    return [Panel(2.2, partial(_draw_attempts, drawn=attempts)) for attempts in found]


def flow_title(drawn: Sequence, flows: int) -> str:
    """Which flow it is, of how many, and where it was seen."""
    which = f"flow {drawn.flow}" if flows == 1 else f"flow {drawn.flow} (one of {flows})"
    seen = "received at" if drawn.is_receiver else "at"
    return f"{drawn.proto.upper()}, {which}, {seen} {drawn.point}"


def seconds(rows: pl.DataFrame) -> pl.Series:
    """When, in seconds."""
    return rows["t_ns"] / 1e9


def draw_acknowledged(axes: Axes, drawn: Sequence, colour: str = ACK) -> None:
    """What the receiver has said that it has."""
    acks = drawn.acks
    axes.plot(seconds(acks), acks["y"], color=colour, label="acknowledged", **STEPS)


def draw_again(axes: Axes, drawn: Sequence, colour: str = RESENT) -> None:
    """What was there before, or is below what was."""
    again = drawn.data.filter("again")
    said = "came again, or late" if drawn.is_receiver else f"sent again by {drawn.proto.upper()}"
    axes.plot(seconds(again), again["y"], "x", color=colour, markersize=5, label=f"{said} ({again.height})")


def finish_numbers(axes: Axes, drawn: Sequence) -> None:
    """Units and limits of the axis of numbers."""
    axes.set_ylabel(NUMBERS[drawn.proto])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    from_zero(axes)


def from_zero(axes: Axes) -> None:
    """The axis begins at 0, with room for the marks there."""
    axes.set_ylim(bottom=-0.02 * axes.get_ylim()[1])


def _draw_sequence(axes: Axes, drawn: Sequence, flows: int) -> None:
    draw_acknowledged(axes, drawn)
    first = drawn.data.filter(~pl.col("again"))
    axes.plot(seconds(first), first["y"], "|", color=DATA, markersize=5, label="data")
    draw_again(axes, drawn)
    finish_numbers(axes, drawn)
    heading(axes, flow_title(drawn, flows))


def _draw_attempts(axes: Axes, drawn: Attempts) -> None:
    name = LINK_LAYERS[drawn.proto]
    what = "frames" if drawn.proto == "piafs" else "PDUs"
    more = f", one of {drawn.others + 1} recorded" if drawn.others else ""
    if drawn.rows.height > _MOST_ATTEMPTS:
        span = _draw_counts(axes, drawn)
        axes.set_ylabel(f"{name} {what}\nin {span:g} s")
        heading(axes, f"{name} at {drawn.point}{more}")
        return
    for event, marker, colour, size, label in _ATTEMPTS:
        rows = drawn.rows.filter(pl.col("event") == event)
        counted = label if event == "tx" else f"{label} ({rows.height})"
        axes.plot(seconds(rows), rows["y"], marker, color=colour, markersize=size, label=counted)
    axes.set_ylabel(f"{name} number\n({what}, counted on)")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    heading(axes, f"{name} at {drawn.point}{more}")


def _draw_counts(axes: Axes, drawn: Attempts) -> float:
    """How many attempts of each kind there were in spans of time; their length in seconds."""
    times = seconds(drawn.rows).to_numpy()
    least = float(times.max() - times.min()) / _SPANS
    power = 10.0 ** np.floor(np.log10(least))
    span = float(power * next(step for step in (1, 2, 5, 10) if power * step >= least))
    edges = span * np.arange(np.floor(times.min() / span), np.ceil(times.max() / span) + 1)
    for event, _, colour, _, label in _ATTEMPTS:
        rows = drawn.rows.filter(pl.col("event") == event)
        counts, _ = np.histogram(seconds(rows).to_numpy(), edges)
        axes.stairs(counts, edges, color=colour, linewidth=1.2, label=f"{label} ({rows.height})")
    axes.set_ylim(bottom=0.0)
    return span
