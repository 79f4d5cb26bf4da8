"""`results.plot`: the figures of a sweep, each a call of the function of the same name with its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from airloom.plot.distribution import cdf

if TYPE_CHECKING:
    from airloom.sweep.results import SweepResults


class Plots:
    """Figures of a sweep."""

    def __init__(self, results: SweepResults) -> None:
        """Those of `results`."""
        self._results = results

    def cdf(self, measure: str, by: str | Sequence[str] | None = None) -> Figure:
        """The distribution of a measure over runs, a line per combination of the axes in `by` (default: all)."""
        return cdf(self._results.cdf(measure, by), measure)
