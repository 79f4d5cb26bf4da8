"""`results.plot`: the figures of a sweep, each a call of the function of the same name with its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from airloom.plot.distribution import cdf
from airloom.plot.response import paired_difference, response

if TYPE_CHECKING:
    from airloom.sweep.results import SweepResults


class Plots:
    """Figures of a sweep."""

    def __init__(self, results: SweepResults) -> None:
        self._results = results

    def response(
        self,
        measure: str,
        x: str,
        by: str | Sequence[str] | None = None,
        *,
        statistic: str | float = "mean",
        ci: float = 0.95,
        width_mm: float | None = None,
    ) -> Figure:
        """A measure against the axis `x` with intervals, a line per combination of `by` (default: all other axes).

        `statistic` is `mean`, `median` or a quantile such as 0.95; `width_mm` is the width in print, such as 88 for a
        column of a paper.
        """
        table = self._results._summary(measure, [*self._others(x, by), x], statistic, ci)
        return response(table, x, width_mm)

    def cdf(self, measure: str, by: str | Sequence[str] | None = None, width_mm: float | None = None) -> Figure:
        """The distribution of a measure over runs, a line per combination of the axes in `by` (default: all)."""
        return cdf(self._results.cdf(measure, by), measure, width_mm)

    def paired_difference(
        self,
        measure: str,
        axis: str,
        baseline: object = None,
        x: str | None = None,
        ci: float = 0.95,
        width_mm: float | None = None,
    ) -> Figure:
        """Differences from the `baseline` level of `axis` (default: its first) under the same seed.

        Against the axis `x` if it is given; else one below the other for all combinations of the other axes.
        """
        by = None if x is None else [x]
        return paired_difference(self._results.paired(measure, axis, baseline, by, ci), x, width_mm)

    def _others(self, x: str, by: str | Sequence[str] | None) -> list[str]:
        if by is None:
            return [axis for axis in self._results.axes if axis != x]
        return [by] if isinstance(by, str) else list(by)
