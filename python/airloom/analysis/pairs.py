"""Differences between variants: under the same seed both see the same radio, so that what they share cancels out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from airloom.analysis.statistics import Difference, paired_difference, ratio_interval, unpaired_difference
from airloom.analysis.units import unit_of
from airloom.errors import UsageError


def paired(
    runs: pl.DataFrame, measure: str, axis: str, baseline: Any, by: Sequence[str] = (), ci: float = 0.95
) -> pl.DataFrame:
    """One row per other level of `axis` and combination of `by`: its difference from the level `baseline`.

    Columns: `difference` (level minus baseline) with `low` and `high`; `ratio` of the means with `ratio_low` and
    `ratio_high`; `p`, of the two-sided t test of no difference (1 if all differences are 0); `seeds`, the number of
    pairs. They are those by which the claims of studies are judged.

    >>> runs = pl.DataFrame({"tcp": ["a", "b"] * 3, "seed": [1, 1, 2, 2, 3, 3], "x_s": [1.0, 2.0, 5.0, 6.0, 7.0, 8.5]})
    >>> paired(runs, "x_s", "tcp", "a")["difference"].to_list()
    [1.1666666666666667]
    """
    rows: list[dict[str, Any]] = []
    for levels, level, both in _pairs(runs, measure, axis, baseline, by):
        ours, theirs = both["ours"].to_numpy(), both["theirs"].to_numpy()
        found, ratio = paired_difference(ours, theirs, ci), ratio_interval(ours, theirs, ci)
        ratios = {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
        rows.append(_row(levels, axis, level, baseline, measure, found, ci, **ratios))
    return pl.DataFrame(rows, schema_overrides={name: runs.schema[name] for name in by})


def unpaired(
    runs: pl.DataFrame, measure: str, axis: str, baseline: Any, by: Sequence[str] = (), ci: float = 0.95
) -> pl.DataFrame:
    """The same differences as if the seeds had nothing to do with each other (Welch): a check of the pairing itself.

    The difference is the same; only the interval is wider if the pairing is worth something.
    """
    rows: list[dict[str, Any]] = []
    for levels, level, both in _pairs(runs, measure, axis, baseline, by):
        found = unpaired_difference(both["ours"].to_numpy(), both["theirs"].to_numpy(), ci)
        rows.append(_row(levels, axis, level, baseline, measure, found, ci))
    return pl.DataFrame(rows, schema_overrides={name: runs.schema[name] for name in by})


def _pairs(
    runs: pl.DataFrame, measure: str, axis: str, baseline: Any, by: Sequence[str]
) -> list[tuple[dict[str, Any], Any, pl.DataFrame]]:
    """For each combination of `by` and other level: a table with `ours` and `theirs` by seed."""
    known = runs[axis].unique(maintain_order=True).to_list()
    if baseline not in known:
        raise UsageError(f"{axis} has no level {baseline!r}; valid: {', '.join(map(str, known))}")
    each = runs.group_by(*by, axis, "seed", maintain_order=True).agg(pl.col(measure).cast(pl.Float64).mean())
    groups = each.group_by(*by, maintain_order=True) if by else [((), each)]
    found = []
    for values, rows in groups:
        levels = dict(zip(by, values, strict=True))
        theirs = rows.filter(pl.col(axis) == baseline).select("seed", pl.col(measure).alias("theirs"))
        for level in (k for k in known if k != baseline):
            ours = rows.filter(pl.col(axis) == level).select("seed", pl.col(measure).alias("ours"))
            both = ours.join(theirs, on="seed", how="full", coalesce=True, maintain_order="left")
            found.append((levels, level, both))
    return found


def _row(
    levels: dict[str, Any],
    axis: str,
    level: Any,
    baseline: Any,
    measure: str,
    found: Difference,
    ci: float,
    **more: float,
) -> dict[str, Any]:
    what = {"axis": axis, "level": str(level), "baseline": str(baseline), "measure": measure, "unit": unit_of(measure)}
    difference = {"difference": found.mean, "low": found.low, "high": found.high}
    about = {"p": found.p, "ci": ci, "seeds": found.pairs, "method": found.method}
    return {**levels, **what, **difference, **more, **about}
