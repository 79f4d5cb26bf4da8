"""Figures of plots one below the other, on one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.analysis.happenings import Happening
from airloom.plot.figure import FAINT, Drawing, inches, style

#: Marks that are drawn one by one; more of them are pixels, else a picture of a long run would have megabytes.
_MOST_VECTORS = 5000

#: Letters of a name in an inch of a figure.
_LETTERS_PER_INCH = 15.0

#: What stands below the lowest plot.
TIME = "time since the start of the run (s)"


class Panel(NamedTuple):
    """One plot of a figure: its height beside the others, in inches, and what draws it."""

    height: float
    draw: Callable[[Axes], None]


def stacked(
    panels: Sequence[Panel],
    span_s: tuple[float, float] | None = None,
    marked: Sequence[Happening] = (),
    width_mm: float | None = None,
) -> Figure:
    """The panels one below the other; `span_s` is the time they show, by default all of it from 0 on.

    `marked` are named on top and shaded in all of them. `width_mm` is the width of the figure, such as 88 for a column
    of a paper; letters are those of print then.
    """
    with style(width_mm):
        width = 9.0 if width_mm is None else inches(width_mm)
        # Narrow ones are lower too, but for their titles.
        scale = min(1.0, 0.55 + 0.05 * width)
        heights = [panel.height * scale for panel in panels]
        figure = Drawing(figsize=(width, sum(heights) + 0.5), layout="constrained")
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
        mark(list(grid[:, 0]), marked)
    return figure


def mark(panels: Sequence[Axes], marked: Sequence[Happening]) -> None:
    """Shades what lasted, draws a dashed line where something happened, and names both in the first panel.

    Names stand in rows below each other where they would cover each other.
    """
    first, last = panels[0].get_xlim()
    figure = panels[0].get_figure(root=True)
    assert figure
    letter = (last - first) / (_LETTERS_PER_INCH * figure.get_figwidth() * 9.0 / matplotlib.rcParams["font.size"])
    free: list[float] = []
    for one in (one for one in marked if first <= (one.end_s or one.begin_s) and one.begin_s <= last):
        for axes in panels:
            if one.end_s is not None:
                axes.axvspan(one.begin_s, one.end_s, color=FAINT, alpha=0.25, linewidth=0, zorder=0)
            else:
                along = axes.get_xaxis_transform()
                axes.vlines(one.begin_s, 0, 1, color=FAINT, linestyle="--", linewidth=0.9, zorder=0, transform=along)
        width = letter * len(one.name)
        at = max(first, min(one.begin_s, last - width))
        row = next((n for n, end in enumerate(free) if end <= at), len(free))
        free[row:] = [at + width + 2 * letter, *free[row + 1 :]]
        panels[0].annotate(
            one.name,
            (at, 1.0),
            (2, -2 - 10 * row),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize="small",
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
        )
