"""Figure: what both protocols send around one on-phase."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from airloom.plot.figure import DATA, FAINT, LOST, RESENT
from airloom.run import Run
from airloom.study import Data

from .phases import PHASE_S, used
from .segments import seen

#: What is drawn: the last seconds before the second on-phase, that phase, and the off-phase after it.
_FROM_S, _TO_S = 28.0, 50.0


def around(data: Data) -> Figure:
    """Data against time, one panel for each protocol, with the shares of all phases that were used."""
    figure = Figure(figsize=(8.0, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    _tcp(above, data.run("phases-tcp"))
    _wwp(below, data.run("shown"))
    for axes, protocol, label in ((above, "tcp", "TCP Reno"), (below, "wwp", "WWP")):
        off, on = (used(protocol, off=is_off)(data).mean() for is_off in (True, False))
        axes.set_title(f"{label}: uses {off:.0%} of the off-phases, {on:.0%} of the on-phases", loc="left", fontsize=9)
        axes.axvspan(3 * PHASE_S, 4 * PHASE_S, color="#f0f0f0", zorder=0, label="on-phase, every third dropped")
        axes.set_xlim(_FROM_S, _TO_S)
        axes.set_ylabel("octets since the left edge (kB)")
        axes.legend(fontsize=8, loc="upper left")
    below.set_xlabel("time (s)")
    return figure


def _tcp(axes: Axes, run: Run) -> None:
    rows = run.packets.with_columns(pl.col("point", "dir", "event").cast(pl.String)).filter(
        (pl.col("point") == "sender.air.ip") & (pl.col("dir") == "ul") & pl.col("event").is_in(["tx", "retx"])
    )
    rows = rows.filter(pl.col("len") > rows["len"].min()).sort("t_ns", maintain_order=True)
    numbers = np.unwrap(rows["seq"].cast(pl.Float64).to_numpy(), period=2**32) / 1000
    _points(axes, rows["t_ns"].to_numpy() / 1e9, numbers)


def _wwp(axes: Axes, run: Run) -> None:
    forward = [segment for segment in seen(run, "sender") if segment.is_forward]
    data = [segment for segment in forward if segment.kind == "DATA"]
    _points(axes, np.asarray([s.at_s for s in data]), np.asarray([s.number * 1.024 for s in data]))
    probes = [s.at_s for s in forward if s.kind.startswith("PROBE") and _FROM_S <= s.at_s <= _TO_S]
    axes.plot(probes, np.zeros(len(probes)), "^", color=LOST, markersize=4, label="probe")


def _points(axes: Axes, at_s: NDArray[np.float64], numbers: NDArray[np.float64]) -> None:
    highest = np.maximum.accumulate(np.concatenate(([-1.0], numbers[:-1])))
    inside = (at_s >= _FROM_S) & (at_s <= _TO_S)
    # TCP's window may begin with what was sent before.
    left = highest[inside][0] if inside.any() else 0.0
    for again, marker, colour, what in ((False, "|", DATA, "data"), (True, "x", RESENT, "sent again")):
        shown = inside & ((numbers <= highest) == again)
        axes.plot(at_s[shown], numbers[shown] - left, marker, color=colour, markersize=5, label=what)
    axes.axhline(0, color=FAINT, linewidth=0.6)
