"""Figures of plots one below the other, on one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.plot.figure import Drawing, style

#: Marks that are drawn one by one; more of them are pixels, else a picture of a long run would have megabytes.
_MOST_VECTORS = 5000

#: What stands below the lowest plot.
TIME = "time since the start of the run (s)"


class Panel(NamedTuple):
    """One plot of a figure: its height beside the others, in inches, and what draws it."""

    height: float
    draw: Callable[[Axes], None]


def stacked(panels: Sequence[Panel], span_s: tuple[float, float] | None = None) -> Figure:
    """The panels one below the other; `span_s` is the time they show, by default all of it from 0 on."""
    with style():
        heights = [panel.height for panel in panels]
        figure = Drawing(figsize=(9.0, sum(heights) + 0.5), layout="constrained")
        grid = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            panel.draw(axes)
            for line in axes.lines:
                line.set_rasterized(len(line.get_xdata()) > _MOST_VECTORS)
        grid[-1, 0].set_xlabel(TIME)
        if span_s is None:
            grid[0, 0].set_xlim(left=0.0)
        else:
            grid[0, 0].set_xlim(*span_s)
    return figure
