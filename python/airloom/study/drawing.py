"""What a study shows: its figures and tables, and the marks that all studies share.

The paper's numbers are hollow, ours solid with their 95 % intervals. An interval of a handful of seeds says more about
the t distribution than about the network, so that fewer seeds than `LEAST` are drawn one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airloom.analysis import mean_interval
from airloom.study.data import Data

# What draws takes longer to import than a quick run takes to judge.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Seeds from which on a mean has an interval.
LEAST = 5


class StudyFigure(NamedTuple):
    """A figure of a study. Those of the paper have its number as key (`fig-7`), in the paper's order, before ours."""

    #: With the paper's own number and caption, if it is the paper's.
    title: str
    draw: Callable[[Data], Figure]
    #: What is drawn from what; whether the paper's points are there, or lost.
    caption: str = ""


class StudyTable(NamedTuple):
    """A table of a study. Those of the paper have its number as key (`table-1`)."""

    title: str
    #: Columns, and rows of texts and numbers.
    make: Callable[[Data], tuple[Sequence[str], Sequence[Sequence[Any]]]]
    caption: str = ""


def canvas(rows: int = 1, columns: int = 1, height: float = 4.2, **subplots: Any) -> tuple[Figure, Any]:
    """A figure as wide as a report's text, and its axes: one, or an array where there are several.

    `height` is that of the whole, in inches at a width of 8; `subplots` goes to `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **subplots)


def labelled(figure: Figure, axes: Axes, x: str, y: str, *, from_zero: bool = True, **legend: Any) -> Figure:
    """The figure, once axes of it say what is drawn: `y` over `x`, from zero or not; `legend` goes to `Axes.legend`."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if from_zero:
        axes.set_ylim(bottom=0)
    axes.legend(**{"fontsize": 8, **legend})
    return figure


def means(axes: Axes, x: ArrayLike, samples: Sequence[ArrayLike], n: int = 0, label: str = "", **marks: Any) -> None:
    """Ours: solid marks with 95 % intervals over seeds, joined; of fewer than `LEAST` seeds each seed is a dot.

    `samples` has one array of seeds for each place in `x`; `n` chooses colour, mark and dashes (`plot.figure.LINES`).
    """
    from airloom.plot.figure import LINES

    at = np.asarray(x, dtype=np.float64)
    found = [np.asarray(sample, dtype=np.float64).ravel() for sample in samples]
    style = {**LINES[n % len(LINES)], **marks}
    if any(len(sample) < LEAST for sample in found):
        axes.plot(at, [sample.mean() for sample in found], label=label, **{**style, "marker": ""})
        dots = {"color": style["color"], "marker": style["marker"], "markersize": 3.0, "linestyle": "none"}
        for place, sample in zip(at, found, strict=True):
            axes.plot(np.full(len(sample), place), sample, **dots)
        return
    intervals = [mean_interval(sample) for sample in found]
    reach = [[i.value - i.low for i in intervals], [i.high - i.value for i in intervals]]
    axes.errorbar(at, [i.value for i in intervals], yerr=np.nan_to_num(reach), capsize=3, label=label, **style)


def hollow(axes: Axes, x: ArrayLike, y: ArrayLike, n: int = 0, label: str = "paper", **marks: Any) -> None:
    """The paper's numbers: hollow marks of the same colour and form as ours, not joined."""
    from airloom.plot.figure import LINES

    style = {**LINES[n % len(LINES)], "linestyle": "none", "fillstyle": "none", "markersize": 7.0, **marks}
    axes.plot(np.atleast_1d(x), np.atleast_1d(y), label=label, **style)


def interval(samples: ArrayLike, digits: int = 3) -> str:
    """A mean with its 95 % interval for a table's cell; of few seeds their range.

    >>> interval([1.0, 1.1, 1.2, 1.1, 1.0, 1.1]), interval([2.0, 3.0])
    ('1.08 [1, 1.16]', '2.5 (2 seeds: 2 to 3)')
    """
    found: NDArray[np.float64] = np.asarray(samples, dtype=np.float64).ravel()
    mean = f"{found.mean():.{digits}g}"
    if np.all(found == found[0]):
        return mean
    if len(found) < LEAST:
        return f"{mean} ({len(found)} seeds: {found.min():.{digits}g} to {found.max():.{digits}g})"
    i = mean_interval(found)
    return f"{mean} [{i.low:.{digits}g}, {i.high:.{digits}g}]"
