"""Sweeps side by side: the same points, pairs of the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.analysis import Interval, quantile_interval, summarise
from airloom.analysis.statistics import difference_of_medians, known
from airloom.comparison.result import COLUMNS, LETTERS, Comparison, difference, settings, table
from airloom.errors import UsageError
from airloom.measures import describe
from airloom.sweep import SweepResults, overview

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is looked at besides the measure that a sweep is about.
_MORE = ("resent", "rlc_resent", "rto_count", "lost")

#: Confidence of every interval here.
CONFIDENCE = 0.95

#: The column by which a picture tells sweeps apart.
_SWEEP = "sweep"


def compare_sweeps(places: list[Path], wanted: Sequence[str]) -> Comparison:
    """Holds sweeps against the first one, at the points that both have."""
    sweeps = dict(zip(LETTERS, map(SweepResults, places), strict=False))
    first, *others = sweeps.items()
    varied = list(first[1].axes)
    # An axis may be called as a column of comparisons is.
    called = {axis: f"axis.{axis}" if axis in (*COLUMNS, _SWEEP) else axis for axis in varied}
    axes = list(called.values())
    for _, results in others:
        if set(results.axes) != set(varied):
            differ = f"{results.folder} varies {_listed(results.axes)}, {first[1].folder} {_listed(varied)}"
            raise UsageError(f"{differ}: only sweeps of the same axes are compared")
        if results.runs.is_empty() or first[1].runs.is_empty():
            raise UsageError(f"{results.folder} or {first[1].folder} has no run that came to its end")
    measures = list(wanted) or _usual(first[1], [results for _, results in others])
    runs = {letter: overview.with_goodput(results.runs).rename(called) for letter, results in sweeps.items()}
    for measure in measures:
        for letter, of_sweep in runs.items():
            if measure not in of_sweep.columns:
                sweeps[letter].mean(measure)  # says which names are close
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for letter, _ in others:
        found, said = _rows(letter, runs["A"], runs[letter], axes, measures)
        rows += found
        notes += said
    names = {letter: f"{results.manifest['name']}: {results.folder}" for letter, results in sweeps.items()}
    kinds = {axis: runs["A"].schema[axis] for axis in axes}
    changed = settings([results.manifest["scenario"] for results in sweeps.values()])
    changed |= settings([{key: results.manifest[key] for key in ("clock", "version")} for results in sweeps.values()])
    return Comparison(
        "sweeps", names, table(rows, kinds), settings=changed, notes=notes, draw=partial(_draw, runs, axes, measures[0])
    )


def _listed(axes: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(axes) or "nothing"


def _usual(first: SweepResults, others: list[SweepResults]) -> list[str]:
    """What their overviews show, and what was sent again and lost, where all of them measure it."""
    there = [set(overview.with_goodput(results.runs).columns) for results in (first, *others)]
    return [name for name in (*overview.measures(first, None), *_MORE) if all(name in columns for columns in there)]


def _rows(
    letter: str, one: pl.DataFrame, other: pl.DataFrame, axes: list[str], measures: list[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    ours, theirs = (_by_point(runs, axes) for runs in (one, other))
    rows = []
    for point, a in ours.items():
        if (b := theirs.get(point)) is None:
            continue
        for measure in measures:
            levels = a.select(axes).row(0) if axes else ()
            rows.append({**dict(zip(axes, levels, strict=True)), **_row(letter, measure, a, b)})
    notes = []
    for name, there, missing in (("A", ours, theirs), (letter, theirs, ours)):
        alone = [point for point in there if point not in missing]
        if alone:
            example = ", ".join(map(overview.label, alone[0]))
            notes.append(f"{len(alone)} points are in {name} alone, such as {example}")
    if not rows:
        raise UsageError(f"A and {letter} have no point in common: {'; '.join(notes)}")
    return rows, notes


def _by_point(runs: pl.DataFrame, axes: list[str]) -> dict[tuple[Any, ...], pl.DataFrame]:
    """The runs of each point, by its levels: equal numbers are equal, whole in one sweep and fractions in the other."""
    groups = runs.group_by(axes, maintain_order=True) if axes else [((), runs)]
    return dict(groups)


def _row(letter: str, measure: str, a: pl.DataFrame, b: pl.DataFrame) -> dict[str, Any]:
    """Medians, and the median of the differences of pairs; without common seeds the difference of the medians."""
    entry = describe(measure)
    every = [rows.select("seed", pl.col(measure).cast(pl.Float64)) for rows in (a, b)]
    values = [rows.drop_nulls() for rows in every]
    both = every[0].join(every[1], on="seed", suffix="_b")
    pairs = both.drop_nulls()
    x, y = (rows[measure].to_numpy() for rows in values)
    found = quantile_interval((pairs[f"{measure}_b"] - pairs[measure]).to_numpy(), 0.5, CONFIDENCE)
    if pairs.is_empty():
        found = difference_of_medians(x, y, CONFIDENCE)
    # Medians may be equal where runs are not.
    same = both[measure].eq_missing(both[f"{measure}_b"]).all() if not both.is_empty() else sorted(x) == sorted(y)
    what = {"measure": measure, "unit": entry.unit, "group": entry.group, "of": letter}
    return {**what, "first": _median(x), "value": _median(y), **difference(found), "same": same}


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _draw(runs: dict[str, pl.DataFrame], axes: list[str], measure: str) -> list[Figure]:
    """The measure against each axis with several levels, a line for each sweep; without any, one below the other."""
    from airloom.plot import response
    from airloom.plot.compared import side_by_side

    tables = [of.select(*axes, "seed", measure).with_columns(pl.lit(name).alias(_SWEEP)) for name, of in runs.items()]
    # Levels may be whole numbers in one of them and fractions in the other.
    both = pl.concat(tables, how="vertical_relaxed")
    varied = [axis for axis in axes if both[axis].n_unique() > 1]
    if varied:
        others = {axis: [other for other in varied if other != axis] for axis in varied}
        return [response(summarise(both, measure, [_SWEEP, *others[axis], axis], "median"), axis) for axis in varied]
    found: list[Interval] = [
        quantile_interval(of[measure].drop_nulls().to_numpy(), 0.5, CONFIDENCE) for of in runs.values()
    ]
    rows = [
        {"name": n, "value": one.value, "low": known(one.low), "high": known(one.high)}
        for n, one in zip(runs, found, strict=True)
    ]
    return [side_by_side(pl.DataFrame(rows), measure)]
