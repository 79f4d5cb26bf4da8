"""Further than the paper: a mobile with two radios, the first of which is gone for a while."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from airloom.study import Data, Numbers, StudyFigure, StudyTable
from airloom.study.drawing import canvas, labelled, means

from .pages import page_time

#: Seconds that the first radio is gone.
GONE = (0, 2, 10, 60)
#: The ways of the association, as the sweep calls them.
WAYS = (
    "one radio",
    "two cells, Path.Max.Retrans 5",
    "two cells, Path.Max.Retrans 1",
    "a cell and UMTS, Path.Max.Retrans 1",
)


def _lines() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, sweep, labels in it."""
    return [("TCP, one radio", "gone-tcp", {}), *((f"SCTP, {way}", "gone-sctp", {"way": way}) for way in WAYS)]


def times(data: Data, sweep: str, gone: int, **where: Any) -> Numbers:
    """Page times, one number per seed."""
    data.at_default_only()
    return page_time(data, sweep, gone=gone, **where)


def radios_figure(data: Data) -> Figure:
    """Page time by how long the first radio is gone."""
    figure, axes = canvas()
    for n, (name, sweep, where) in enumerate(_lines()):
        means(axes, GONE, [times(data, sweep, gone, **where) for gone in GONE], n, name)
    axes.set_xscale("symlog", linthresh=2)
    axes.set_xticks(GONE, [str(gone) for gone in GONE])
    axes.set_yscale("log")
    axes.set_yticks((5, 10, 20, 50, 100), ("5", "10", "20", "50", "100"))
    axes.minorticks_off()
    x, y = "the first radio is gone for (s)", "page there after (s)"
    return labelled(figure, axes, x, y, from_zero=False, fontsize=7)


def radios_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Mean and largest page times."""
    rows = []
    for name, sweep, where in _lines():
        cells = [name]
        for gone in GONE:
            found = times(data, sweep, gone, **where)
            cells.append(f"{found.mean():.1f} (at most {found.max():.1f})")
        rows.append(cells)
    return ["page time, s; gone for", *(f"{gone} s" for gone in GONE)], rows


FIGURES = {
    "radios": StudyFigure("Ours: two radios", radios_figure, "The first radio fails 1.5 s after the page began.")
}
TABLES = {"radios": StudyTable("The first radio is gone 1.5 s after the page began", radios_table)}
