"""The plain data of parts becomes polars tables, that of all parts at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.ma  # polars looks for it at the first array: not when everything else is done
import polars as pl

from airloom.sweep.axes import Axis, Label
from airloom.sweep.parts import Part

#: Counts the parts; a column only until each run is there once.
SOURCE = "_source"


def tables(parts: Sequence[Part], axes: Sequence[Axis], points: Sequence[Sequence[Label]]) -> dict[str, pl.DataFrame]:
    """The tables of all runs of some parts: `runs`, `rate` and those that were asked for.

    `points` are the labels of each point. Each row says in the column `SOURCE` which part it is from.
    """
    runs = [run for part in parts for run in part.runs]
    sources = [number for number, part in enumerate(parts) for _ in part.runs]
    head = pl.DataFrame(
        {"point": [p for p, _ in runs], "seed": [s for _, s in runs]}, schema={"point": pl.Int64, "seed": pl.UInt64}
    )
    labels = [_labels(axis, [points[p][number] for p, _ in runs]) for number, axis in enumerate(axes)]
    ids = [name for part in parts for name in part.done["run_id"]]
    head = head.with_columns(*labels, pl.Series("run_id", ids, dtype=pl.String), pl.Series(SOURCE, sources))

    keys, values = _summaries(parts)
    found = head.with_columns(
        pl.Series("status", [status for part in parts for status in part.statuses], dtype=pl.String),
        pl.Series("error", [error for part in parts for error in _errors(part)], dtype=pl.String),
    )
    if keys:
        found = found.hstack(pl.from_numpy(values, schema=keys).fill_nan(None))
    all_tables = {"runs": found}
    numbered = head.with_columns(pl.int_range(len(runs), dtype=pl.UInt32).alias("run"))
    for name in sorted({name for part in parts for name in part.done["tables"]}):
        rows = pl.DataFrame(_piled(parts, name))
        all_tables[name] = numbered.join(rows, on="run", how="inner", maintain_order="right").drop("run")
    rates = [rate for part in parts for rate in part.done["rate"]]
    if there := [(n, rate) for n, rate in enumerate(rates) if rate is not None]:
        all_tables["rate"] = pl.concat([_rate(head[n], *rate) for n, rate in there])
    return all_tables


def _labels(axis: Axis, labels: list[Any]) -> pl.Series:
    if axis.is_numeric:
        whole = all(isinstance(level.label, int) for level in axis.levels)
        return pl.Series(axis.key, labels, dtype=pl.Int64 if whole else pl.Float64, strict=False)
    return pl.Series(axis.key, [_text(label) for label in labels], dtype=pl.String)


def _text(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _errors(part: Part) -> list[str | None]:
    return [_error(error, end) for error, end in zip(part.done["error"], part.done["outcome"], strict=True)]


def _error(error: str | None, outcome: str | None) -> str | None:
    """Why a run has no result; `None` if it has."""
    if error is not None:
        return str(error)
    match outcome:
        case "complete":
            return None
        case "limit-reached":
            return "not done within run.limit"
        case "stuck":
            return "nothing more could happen, and not everything was done"
        case other:
            return f"ended as {other}"


def _summaries(parts: Sequence[Part]) -> tuple[list[str], Any]:
    """The names that any summary has, and a row of numbers per run; not-a-number where a run has none."""
    keys = sorted({key for part in parts for key in part.done["keys"]})
    place = {key: n for n, key in enumerate(keys)}
    values = np.full((sum(len(part.runs) for part in parts), len(keys)), np.nan)
    row = 0
    for part in parts:
        own = part.done["keys"]
        numbers = np.frombuffer(part.done["values"], "<f8").reshape(len(part.runs), len(own))
        values[row : row + len(part.runs), [place[key] for key in own]] = numbers
        row += len(part.runs)
    return keys, values


def _piled(parts: Sequence[Part], table: str) -> list[pl.Series]:
    """The columns of one table of all parts; the column `run` counts the runs of all of them."""
    pieces: dict[str, list[Any]] = {}
    before = 0
    for part in parts:
        for column in part.done["tables"].get(table, ()):
            pieces.setdefault(column[0], []).append((before, *column[1:]))
        before += len(part.runs)
    return [_series(name, column) for name, column in pieces.items()]


def _series(name: str, pieces: list[Any]) -> pl.Series:
    """One column from the pieces of all parts: (runs before, kind, values, names, valid)."""
    if any(names is not None or kind == "text" for _, kind, _, names, _ in pieces):
        series = _texts(pieces)
    else:
        arrays = [np.frombuffer(values, kind) for _, kind, values, _, _ in pieces]
        if name == "run":
            arrays = [a + np.uint32(before) for a, (before, *_) in zip(arrays, pieces, strict=True)]
        series = pl.Series(np.concatenate(arrays))
    if any(valid is not None for *_, valid in pieces):
        heights = [len(v) if kind == "text" else len(v) // np.dtype(kind).itemsize for _, kind, v, _, _ in pieces]
        there = [
            np.ones(height, "u1") if valid is None else np.frombuffer(valid, "u1")
            for height, (*_, valid) in zip(heights, pieces, strict=True)
        ]
        is_there = pl.Series(np.concatenate(there)).cast(pl.Boolean)
        series = series.zip_with(is_there, pl.Series([None], dtype=series.dtype).new_from_index(0, len(series)))
    return series.alias(name)


def _texts(pieces: list[Any]) -> pl.Series:
    """Texts, or numbers of texts out of a small set, which each piece has its own of."""
    texts: list[str] = []
    numbers = []
    for _, kind, values, names, _ in pieces:
        if kind == "text":
            numbers.append(np.arange(len(texts), len(texts) + len(values), dtype="u4"))
            texts.extend(values)
        else:
            codes = np.frombuffer(values, kind).astype("u4")
            # Where nothing is there, the number need not be that of a name.
            known = np.minimum(codes, max(len(names) - 1, 0)) + len(texts)
            numbers.append(known.astype("u4"))
            texts.extend(names or [""])
    return pl.Series(texts, dtype=pl.String).gather(pl.Series(np.concatenate(numbers)))


def _rate(head: pl.DataFrame, point_name: str, span_ns: int, octets: list[int]) -> pl.DataFrame:
    """Rows of the rate table: a span each."""
    rows = pl.DataFrame(
        {"t_ns": [n * span_ns for n in range(len(octets))], "span_ns": span_ns, "octets": octets},
        schema={"t_ns": pl.Int64, "span_ns": pl.Int64, "octets": pl.UInt64},
    ).with_columns(pl.lit(point_name).alias("seen_at"))
    return head.join(rows, how="cross")
