"""The plain data that a worker sends becomes polars tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from airloom.sweep.axes import Axis, Point
from airloom.sweep.work import Group


def part(
    done: dict[str, Any], group: Group, axes: tuple[Axis, ...], points: tuple[Point, ...]
) -> dict[str, pl.DataFrame]:
    """The tables of a group of runs: `runs`, `rate` and those that were asked for."""
    count = len(done["took_ns"])
    made = group.runs[:count]
    head = pl.DataFrame(
        {"point": [p for p, _ in made], "seed": [s for _, s in made]}, schema={"point": pl.Int64, "seed": pl.UInt64}
    )
    for number, axis in enumerate(axes):
        head = head.with_columns(_labels(axis, [points[p].levels[number].label for p, _ in made]))
    head = head.with_columns(pl.Series("run_id", done["run_id"][:count], dtype=pl.String))

    errors = [_error(done, n) for n in range(count)]
    status = ["ok" if error is None else "failed" for error in errors]
    values = np.frombuffer(done["values"], "<f8").reshape(count, len(done["keys"]))
    runs = head.with_columns(
        pl.Series("status", status, dtype=pl.String),
        pl.Series("error", errors, dtype=pl.String),
        *(pl.Series(key, values[:, n]).fill_nan(None) for n, key in enumerate(done["keys"])),
    )
    tables = {"runs": runs}
    numbered = head.with_columns(pl.int_range(count, dtype=pl.UInt32).alias("run"))
    for name, columns in done["tables"].items():
        rows = pl.DataFrame([_series(*column) for column in columns])
        tables[name] = numbered.join(rows, on="run", how="inner", maintain_order="right").drop("run")
    rates = [(n, rate) for n, rate in enumerate(done["rate"][:count]) if rate is not None]
    if rates:
        tables["rate"] = pl.concat([_rate(head[n], *rate) for n, rate in rates])
    return tables


def lost(group: Group, why: str, axes: tuple[Axis, ...], points: tuple[Point, ...]) -> dict[str, pl.DataFrame]:
    """The row of a run that took its worker with it; the same command tries it again."""
    nothing: dict[str, Any] = {"keys": [], "values": b"", "tables": {}, "rate": []}
    count = len(group.runs)
    done = {
        **nothing,
        "took_ns": [0] * count,
        "run_id": [""] * count,
        "outcome": [None] * count,
        "error": [why] * count,
    }
    runs = part(done, group, axes, points)["runs"]
    return {"runs": runs.with_columns(pl.lit("lost").alias("status"))}


def _labels(axis: Axis, labels: list[Any]) -> pl.Series:
    if axis.is_numeric:
        whole = all(isinstance(level.label, int) for level in axis.levels)
        return pl.Series(axis.key, labels, dtype=pl.Int64 if whole else pl.Float64, strict=False)
    return pl.Series(axis.key, [_text(label) for label in labels], dtype=pl.String)


def _text(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _error(done: dict[str, Any], number: int) -> str | None:
    """Why a run has no result; `None` if it has."""
    if (error := done["error"][number]) is not None:
        return str(error)
    match done["outcome"][number]:
        case "complete":
            return None
        case "limit-reached":
            return "not done within run.limit"
        case "stuck":
            return "nothing more could happen, and not everything was done"
        case other:
            return f"ended as {other}"


def _series(name: str, kind: str, values: Any, names: list[str] | None, valid: bytes | None) -> pl.Series:
    series = (
        pl.Series(name, values, dtype=pl.String) if kind == "text" else pl.Series(name, np.frombuffer(values, kind))
    )
    if names is not None:
        texts = pl.Series(names, dtype=pl.String)
        series = texts.gather(series) if names else pl.Series([None], dtype=pl.String).new_from_index(0, len(series))
    if valid is not None:
        there = pl.Series(np.frombuffer(valid, "u1")).cast(pl.Boolean)
        series = series.zip_with(there, pl.Series([None], dtype=series.dtype).new_from_index(0, len(series)))
    return series.alias(name)


def _rate(head: pl.DataFrame, point_name: str, span_ns: int, octets: list[int]) -> pl.DataFrame:
    """Rows of the rate table: a span each."""
    rows = pl.DataFrame(
        {"t_ns": [n * span_ns for n in range(len(octets))], "span_ns": span_ns, "octets": octets},
        schema={"t_ns": pl.Int64, "span_ns": pl.Int64, "octets": pl.UInt64},
    ).with_columns(pl.lit(point_name).alias("seen_at"))
    return head.join(rows, how="cross")
