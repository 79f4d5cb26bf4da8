"""The table of a sweep for reading: a row per point, medians with their intervals, the rate over time."""

from __future__ import annotations

import locale
import sys
from collections import defaultdict
from typing import Any, NamedTuple

import polars as pl

from airloom.analysis import Interval, quantile_interval
from airloom.analysis.statistics import known
from airloom.analysis.stop import USUAL, usual_measure
from airloom.analysis.units import titled
from airloom.errors import UsageError
from airloom.sweep.results import SweepResults

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-:=+*#"

#: Columns derived for the overview, besides those that the runs measure.
_GOODPUT = "goodput_bit_s"
_GOODPUT_OF = ("bytes", "completion_s")

_CI = 0.95


class Overview(NamedTuple):
    """Titles and cells; `right` are the columns of numbers."""

    columns: list[str]
    rows: list[list[str]]
    right: tuple[int, ...]


def measures(results: SweepResults, wanted: str | None) -> list[str]:
    """What the overview shows: the measure that the sweep is about, and goodput if that is another one; or nothing."""
    if results.failed == results.total:
        return []  # every run failed: there is nothing to measure
    if wanted is not None and wanted not in results.columns:
        results.mean(wanted)  # says which names are close
    try:
        first = wanted or usual_measure(results.some(*(name for name in USUAL if name in results.columns)))
    except UsageError:
        first = "simulated_s"
    has_goodput = _GOODPUT in results.columns or set(results.columns) >= {*_GOODPUT_OF}
    return [first, *([_GOODPUT] if has_goodput and first != _GOODPUT else [])]


def with_goodput(runs: pl.DataFrame) -> pl.DataFrame:
    """Pages do not measure goodput: then it is octets of content over the time from begin to end of all of it."""
    if _GOODPUT in runs.columns or not {*_GOODPUT_OF} <= set(runs.columns):
        return runs
    return runs.with_columns((8 * pl.col("bytes") / pl.col("completion_s")).alias(_GOODPUT))


def points(results: SweepResults, names: list[str]) -> list[dict[str, Any]]:
    """For `--json`: each point with its levels, seeds, and median and interval of each measure."""
    medians = {name: _medians(results, name) for name in names}
    return [
        {
            "point": number,
            "levels": dict(zip(results.axes, levels, strict=True)),
            "seeds": good,
            "failed": count - good,
            "medians": {name: of[number] for name, of in medians.items()},
        }
        for number, *levels, count, good in results.heads().iter_rows()
    ]


def _medians(results: SweepResults, name: str) -> dict[int, dict[str, Any]]:
    """The median of a measure with its interval at each point. One column is read at a time: many runs need no more."""
    of = (name,) if name in results.columns else _GOODPUT_OF
    runs = with_goodput(results.some("point", *of))
    found: dict[int, dict[str, Any]] = defaultdict(lambda: _plain(quantile_interval([], 0.5, _CI)))
    for (point,), rows in runs.group_by("point"):
        found[point] = _plain(quantile_interval(rows[name].to_numpy(), 0.5, _CI))
    return found


def _plain(found: Interval) -> dict[str, Any]:
    """An interval as JSON has it: what is not known is null; `seeds` are those whose runs have the measure."""
    bounds = {"value": known(found.value), "low": known(found.low), "high": known(found.high)}
    return {**bounds, "ci": found.ci, "seeds": found.seeds}


def overview(results: SweepResults, names: list[str]) -> Overview:
    """The table."""
    resent = [name for name in ("resent", "rlc_resent") if name in results.columns]
    short = _short(list(results.axes))
    rates = _rates(results)
    columns = [*short.values()]
    columns += [f"{titled(_scaled(name)[0])} (median, 95 % CI)" for name in names]
    if resent:
        layers = " / ".join({"resent": "by transport", "rlc_resent": "by RLC"}[name] for name in resent)
        columns.append(f"resent {layers} (count, median, 95 % CI)")
    columns.append("seeds")
    failed = results.failed > 0
    columns += ["failed"] if failed else []
    columns += ["rate over time"] if rates else []
    again = [_medians(results, name) for name in resent]
    rows = []
    for point in points(results, names):
        cells = [label(level) for level in point["levels"].values()]
        cells += [_interval(point["medians"][name], _scaled(name)[1], point["seeds"]) for name in names]
        if resent:
            cells.append(" / ".join(_interval(of[point["point"]], 1.0, point["seeds"]) for of in again))
        cells.append(str(point["seeds"]))
        cells += [str(point["failed"])] if failed else []
        cells += [rates.get(point["point"], "")] if rates else []
        rows.append(cells)
    last = len(columns) - (1 if rates else 0)
    return Overview(columns, rows, tuple(range(len(short), last)))


def _scaled(name: str) -> tuple[str, float]:
    """Rates are read in kbit/s (1000 bit/s)."""
    return (name.removesuffix("bit_s") + "kbit_s", 1e-3) if name.endswith("_bit_s") else (name, 1.0)


def _interval(median: dict[str, Any], scale: float, seeds: int) -> str:
    """A median as people read it; where not all seeds have the measure (a page may have failed), of how many."""
    value, low, high = (median[key] for key in ("value", "low", "high"))
    if value is None:
        return "-"
    some = f" of {median['seeds']}" if median["seeds"] < seeds else ""
    if low is None:
        why = "one seed" if median["seeds"] == 1 else "no interval"
        return f"{number(value * scale)} [{why}]{some}"
    return f"{number(value * scale)} [{number(low * scale)}, {number(high * scale)}]{some}"


def number(value: float) -> str:
    """Four digits that count."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def label(level: Any) -> str:
    """A level of an axis as people write it."""
    # Levels that differ are told apart.
    return f"{level:.15g}" if isinstance(level, float) else str(level)


def _short(axes: list[str]) -> dict[str, str]:
    """The last part of each key, or as many as tell it from the others."""
    names: dict[str, str] = {}
    for axis in axes:
        parts = axis.split(".")
        # `downlink` alone does not say what of it.
        fewest = 2 if parts[-1] in ("downlink", "uplink") else 1
        name = next(
            (
                ".".join(parts[-n:])
                for n in range(fewest, len(parts) + 1)
                if sum(f".{other}".endswith("." + ".".join(parts[-n:])) for other in axes) == 1
            ),
            axis,
        )
        names[axis] = name
    return names


def _rates(results: SweepResults) -> dict[int, str]:
    """A sparkline per point; all have the same scale."""
    try:
        table = results.rate
    except UsageError:
        return {}
    table = table.with_columns(pl.col("octets") / pl.col("span_ns"))
    top = float(table["octets"].max() or 0)  # type: ignore[arg-type]
    return {rows["point"][0]: sparkline(rows["octets"].to_list(), top) for rows in table.partition_by("point")}


def sparkline(values: list[float], top: float) -> str:
    """Heights of `values` against `top`; characters of a terminal that shows only ASCII are ASCII.

    >>> len(sparkline([0, 1, 2], 2))
    3
    """
    encoding = getattr(sys.stdout, "encoding", None) or locale.getpreferredencoding(False)
    signs = _BLOCKS if encoding.lower().replace("-", "") == "utf8" else _ASCII
    return "".join(signs[min(int(value / top * len(signs)), len(signs) - 1) if top else 0] for value in values)
