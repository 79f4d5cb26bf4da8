"""Distributions as steps."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from airloom.analysis.units import key_title, titled
from airloom.plot.figure import drawing, heading, look, style


def cdf(table: pl.DataFrame, measure: str, width_mm: float | None = None) -> Figure:
    """The share of runs with at most each value; `table` is that of `analysis.cdf`, other columns tell lines apart.

    `width_mm` is the width in print, such as 88 for a column of a paper.
    """
    by = [c for c in table.columns if c not in ("value", "share", "unit", "seeds")]
    with style(width_mm):
        figure = drawing(width_mm)
        axes = figure.subplots()
        groups = table.group_by(*by, maintain_order=True) if by else [((), table)]
        for n, (levels, rows) in enumerate(groups):
            value, share = rows["value"].to_list(), rows["share"].to_list()
            name = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in levels)
            label = f"{name} (n = {rows.height})".strip()
            line = {key: look(n)[key] for key in ("color", "linestyle", "linewidth")}
            axes.step([value[0], *value], [0.0, *share], where="post", label=label, **line)
        axes.set_xlabel(titled(measure))
        axes.set_ylabel("share of runs")
        axes.set_ylim(0.0, 1.0)
        heading(axes, "distribution over runs", ", ".join(map(key_title, by)))
    return figure
