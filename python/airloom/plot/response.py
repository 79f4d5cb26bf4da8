"""A measure against what was varied, with its intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from airloom.analysis.units import key_title, titled
from airloom.errors import UsageError
from airloom.plot.figure import drawing, heading, look, style, wrapped

#: Columns of `analysis.summarise` besides the levels and the estimate.
_KNOWN = ("measure", "unit", "low", "high", "ci", "seeds", "method")


def response(table: pl.DataFrame, x: str, width_mm: float | None = None) -> Figure:
    """An estimate against the axis `x`, a line per combination of the other axes.

    `table` is that of `analysis.summarise` (`results.mean(..)`, `.median(..)`, `.quantile(..)`). `width_mm` is the
    width in print, such as 88 for a column of a paper.
    """
    # It stands behind the unit: an axis may have the name of a quantile.
    estimate = next((c for unit, c in pairwise(table.columns) if unit == "unit"), "")
    if not (estimate in ("mean", "median") or _is_quantile(estimate)) or x not in table.columns or table.is_empty():
        raise UsageError(f"no estimate by {x!r} in this table: it is that of results.mean(..) or the like")
    by = [c for c in table.columns if c not in (x, estimate, *_KNOWN)]
    levels = table[x].unique(maintain_order=True).to_list()
    with style(width_mm):
        figure = drawing(width_mm)
        axes = figure.subplots()
        is_numeric = table[x].dtype.is_numeric()
        groups = list(table.group_by(*by, maintain_order=True)) if by else [((), table)]
        for n, (names, rows) in enumerate(groups):
            rows = rows.sort(x) if is_numeric else rows
            places = _places(rows[x].to_list(), levels)
            if not is_numeric and len(groups) > 1:
                places = places + 0.06 * (n - (len(groups) - 1) / 2)  # intervals side by side
            label = ", ".join(map(_text, names)) or None
            line = _line(n, is_numeric)
            axes.errorbar(places, *_reach(rows, estimate), label=label, capsize=2.5, elinewidth=1.0, **line)
        _ticks(axes, is_numeric, levels)
        axes.set_xlabel(key_title(x))
        axes.set_ylabel(wrapped(f"{titled(table['measure'][0])}, {estimate}", figure.get_figheight()))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        heading(axes, _intervals(table, "seeds"), ", ".join(map(key_title, by)))
    return figure


def paired_difference(table: pl.DataFrame, x: str | None = None, width_mm: float | None = None) -> Figure:
    """Differences from a baseline under the same seed; `table` is that of `analysis.paired` (`results.paired(..)`).

    They stand against the axis `x`, a line per level; or, without `x`, one below the other. `width_mm` is its width in
    print.
    """
    if table.is_empty() or not {"difference", "level", "baseline"} <= set(table.columns):
        raise UsageError("no differences in this table: it is that of results.paired(..)")
    baseline, axis = table["baseline"][0], table["axis"][0]
    with style(width_mm):
        figure = drawing(width_mm)
        axes = figure.subplots()
        title = f"{titled(table['measure'][0])}:\ndifference from {key_title(axis)} = {baseline}"
        if x is None:
            known = set(_KNOWN) | {"axis", "level", "baseline", "difference", "ratio", "ratio_low", "ratio_high", "p"}
            by = [c for c in table.columns if c not in known]
            names = [", ".join(_text(row[c]) for c in (*by, "level")) for row in table.iter_rows(named=True)]
            places = np.arange(len(names), dtype=np.float64)[::-1]
            value, reach = _reach(table, "difference")
            axes.errorbar(value, places, xerr=reach, capsize=2.5, **_line(0, is_numeric=False))
            axes.set_yticks(places, names)
            axes.set_ylabel(wrapped(", ".join(map(key_title, (*by, axis))), figure.get_figheight()))
            axes.set_xlabel(wrapped(title, 0.7 * figure.get_figwidth()))
            axes.axvline(0.0, color="black", linewidth=0.8)
        else:
            levels, is_numeric = table[x].unique(maintain_order=True).to_list(), table[x].dtype.is_numeric()
            for n, ((level,), rows) in enumerate(table.group_by("level", maintain_order=True)):
                rows = rows.sort(x) if is_numeric else rows
                places, line = _places(rows[x].to_list(), levels), _line(n, is_numeric)
                axes.errorbar(places, *_reach(rows, "difference"), label=level, capsize=2.5, **line)
            _ticks(axes, is_numeric, levels)
            axes.set_xlabel(key_title(x))
            axes.set_ylabel(wrapped(title, figure.get_figheight()))
            axes.axhline(0.0, color="black", linewidth=0.8)
        heading(axes, _intervals(table, "pairs"), "" if x is None else key_title(axis))
    return figure


def _line(number: int, is_numeric: bool) -> dict[str, Any]:
    """The look of a series: names have no order that a line could follow."""
    return look(number) if is_numeric else {**look(number), "linestyle": "none"}


def _reach(rows: pl.DataFrame, estimate: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimates, and how far below and above them their intervals reach."""
    value, low, high = (rows[c].to_numpy().astype(np.float64) for c in (estimate, "low", "high"))
    return value, np.nan_to_num(np.vstack((value - low, high - value)))


def _intervals(table: pl.DataFrame, what: str) -> str:
    """How wide the intervals are, and of how many seeds or pairs."""
    seeds = table["seeds"].to_list()
    fewest, most = min(seeds), max(seeds)
    counted = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    if table["low"].fill_nan(None).null_count() == table.height:
        return f"{counted} {what}: no intervals"
    return f"{table['ci'][0] * 100:.0f} % intervals over {counted} {what}"


def _text(label: object) -> str:
    """A label as a person writes it: 0 and not 0.0."""
    return f"{label:g}" if isinstance(label, float) else str(label)


def _is_quantile(name: str) -> bool:
    return name.startswith("q") and name[1:].replace(".", "", 1).isdigit()


def _places(values: Sequence[object], levels: Sequence[object]) -> NDArray[np.float64]:
    """Numbers stand where they are, names one after the other."""
    if all(isinstance(level, int | float) for level in levels):
        return np.asarray(values, dtype=np.float64)
    return np.asarray([levels.index(value) for value in values], dtype=np.float64)


def _ticks(axes: Axes, is_numeric: bool, levels: Sequence[object]) -> None:
    if not is_numeric:
        axes.set_xticks(range(len(levels)), [str(level) for level in levels])
        axes.set_xlim(-0.4, len(levels) - 0.6)
