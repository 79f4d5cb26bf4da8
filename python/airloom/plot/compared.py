"""Several results on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from airloom.analysis.units import titled
from airloom.plot.figure import Drawing, heading, look, style
from airloom.plot.panels import TIME


def arrived(
    lines: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], title: str, x: str = TIME, y: str = "octets"
) -> Figure:
    """Octets until each moment, a line for each result: `lines` has times and sums by name."""
    with style():
        figure = Drawing(figsize=(5.0, 3.4), layout="constrained")
        axes = figure.subplots()
        for n, (name, (times, sums)) in enumerate(lines.items()):
            line = {key: look(n)[key] for key in ("color", "linestyle", "linewidth")}
            axes.step(times, sums, where="post", label=name, **line)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.set_xlim(left=0.0)
        axes.set_ylim(bottom=0.0)
        heading(axes, title)
    return figure


def side_by_side(rows: pl.DataFrame, measure: str) -> Figure:
    """A measure of several results one below the other: `rows` has `name`, `value`, and `low` and `high` if known."""
    with style():
        figure = Drawing(figsize=(5.0, 0.9 + 0.32 * rows.height), layout="constrained")
        axes = figure.subplots()
        for n, row in enumerate(rows.iter_rows(named=True)):
            mark = {key: look(n)[key] for key in ("color", "marker", "markersize")}
            reach = None
            if row["low"] is not None and row["high"] is not None:
                reach = [[row["value"] - row["low"]], [row["high"] - row["value"]]]
            axes.errorbar([row["value"]], [-n], xerr=reach, linestyle="none", capsize=2.5, **mark)
        axes.set_yticks([-n for n in range(rows.height)], rows["name"].to_list())
        axes.set_ylim(-rows.height + 0.4, 0.6)
        axes.set_xlim(left=0.0)
        axes.set_xlabel(titled(measure))
    return figure
