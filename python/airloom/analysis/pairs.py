"""Differences between variants: under the same seed both see the same radio, so that what they share cancels out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from airloom.analysis.intervals import is_constant, mean_interval, ratio_interval
from airloom.analysis.units import unit_of
from airloom.errors import UsageError


def paired(
    runs: pl.DataFrame, measure: str, axis: str, baseline: Any, by: Sequence[str] = (), ci: float = 0.95
) -> pl.DataFrame:
    """One row per other level of `axis` and combination of `by`: its difference from the level `baseline`.

    Columns: `difference` (level minus baseline) with `low` and `high`; `ratio` of the means with `ratio_low` and
    `ratio_high`; `p`, of the two-sided t test of no difference (1 if all differences are 0); `seeds`, the number of
    pairs.

    >>> runs = pl.DataFrame({"tcp": ["a", "b"] * 3, "seed": [1, 1, 2, 2, 3, 3], "x_s": [1.0, 2.0, 5.0, 6.0, 7.0, 8.5]})
    >>> paired(runs, "x_s", "tcp", "a")["difference"].to_list()
    [1.1666666666666667]
    """
    rows: list[dict[str, Any]] = []
    for levels, level, both in _pairs(runs, measure, axis, baseline, by):
        both = both.drop_nulls()
        ours, theirs = both["ours"].to_numpy(), both["theirs"].to_numpy()
        difference = mean_interval(ours - theirs, ci)
        ratio = ratio_interval(ours, theirs, ci)
        rows.append(
            _row(levels, axis, level, baseline, measure)
            | {"difference": difference.value, "low": difference.low, "high": difference.high}
            | {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
            | {"p": _paired_p(ours, theirs), "ci": ci, "seeds": difference.seeds, "method": difference.method}
        )
    return pl.DataFrame(rows, schema_overrides={name: runs.schema[name] for name in by})


def unpaired(
    runs: pl.DataFrame, measure: str, axis: str, baseline: Any, by: Sequence[str] = (), ci: float = 0.95
) -> pl.DataFrame:
    """The same differences as if the seeds had nothing to do with each other (Welch): a check of the pairing itself.

    The difference is the same; only the interval is wider if the pairing is worth something.
    """
    from scipy import stats

    rows: list[dict[str, Any]] = []
    for levels, level, both in _pairs(runs, measure, axis, baseline, by):
        ours, theirs = (both[side].drop_nulls().to_numpy() for side in ("ours", "theirs"))
        found = _row(levels, axis, level, baseline, measure)
        found["difference"] = float(ours.mean() - theirs.mean()) if len(ours) and len(theirs) else float("nan")
        low = high = found["difference"]
        p = 1.0
        if min(len(ours), len(theirs)) < 2:
            low = high = p = float("nan")
        elif ours.std() > 0 or theirs.std() > 0:
            test = stats.ttest_ind(ours, theirs, equal_var=False)
            low, high = (float(v) for v in test.confidence_interval(ci))
            p = float(test.pvalue)
        found |= {"low": low, "high": high, "p": p, "ci": ci, "seeds": min(len(ours), len(theirs)), "method": "welch"}
        rows.append(found)
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


def _row(levels: dict[str, Any], axis: str, level: Any, baseline: Any, measure: str) -> dict[str, Any]:
    return {**levels, "axis": axis, "level": str(level), "baseline": str(baseline), "measure": measure} | {
        "unit": unit_of(measure)
    }


def _paired_p(ours: Any, theirs: Any) -> float:
    from scipy import stats

    differences = ours - theirs
    if len(differences) < 2:
        return float("nan")
    if is_constant(differences):
        return 1.0 if differences[0] == 0 else 0.0
    return float(stats.ttest_rel(ours, theirs).pvalue)
