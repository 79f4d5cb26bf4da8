"""The finished tables of a sweep as parts again: how a sweep that gets more runs takes up those it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from airloom import tables
from airloom.sweep import parts
from airloom.sweep.parts import Part

#: The kinds of numbers that parts have.
_KINDS: dict[pl.DataType, str] = {
    pl.Int64(): "<i8",
    pl.UInt64(): "<u8",
    pl.UInt32(): "<u4",
    pl.UInt16(): "<u2",
    pl.UInt8(): "u1",
    pl.Float64(): "<f8",
}


def as_parts(place: Path, names: Sequence[str], axes: Sequence[str]) -> list[bytes]:
    """Parts with everything that the tables in a folder say; `names` are those besides `runs`."""
    runs = tables.read(place / "runs.parquet")
    paths = {name: place / f"{name}.parquet" for name in names}
    others = {name: tables.read(path) for name, path in paths.items() if path.exists()}
    is_lost = pl.col("status") == "lost"
    halves = [(runs.filter(~is_lost), False), (runs.filter(is_lost), True)]
    return [parts.encode(_part(rows, lost, others, axes)) for rows, lost in halves if rows.height]


def _part(runs: pl.DataFrame, is_lost: bool, others: dict[str, pl.DataFrame], axes: Sequence[str]) -> Part:
    head = ["point", *axes, "seed", "run_id"]
    keys = [name for name in runs.columns if name not in (*head, "status", "error")]
    # An error has its sentence already; which end of the run it says does not matter any more.
    done: dict[str, Any] = {
        "outcome": ["complete" if status == "ok" else None for status in runs["status"]],
        "error": runs["error"].to_list(),
        "run_id": runs["run_id"].to_list(),
        "rate": [None] * runs.height,
        "keys": keys,
        "values": [
            runs[key].cast(pl.Float64).fill_null(float("nan")).to_numpy().astype("<f8").tobytes() for key in keys
        ],
        "tables": {},
    }
    numbered = runs.select("point", "seed").with_row_index("run")
    for name, rows in others.items():
        own = numbered.join(rows, on=["point", "seed"], how="inner", maintain_order="right").drop(head)
        if name == "rate":
            for (run,), spans in own.group_by("run", maintain_order=True):
                done["rate"][run] = (spans["seen_at"][0], spans["span_ns"][0], spans["octets"].to_list())
        else:
            done["tables"][name] = [_column(series) for series in own]
    return Part(list(zip(runs["point"], runs["seed"], strict=True)), done, is_lost)


def _column(series: pl.Series) -> tuple[str, str, Any, None, bytes | None]:
    valid = series.is_not_null().cast(pl.UInt8).to_numpy().tobytes() if series.null_count() else None
    if series.dtype == pl.String:
        return series.name, "text", series.fill_null("").to_list(), None, valid
    kind = _KINDS[series.dtype]
    return series.name, kind, series.fill_null(0).to_numpy().astype(kind).tobytes(), None, valid
