"""Runs side by side: numbers, and the first packet that is not the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airloom.comparison.result import LETTERS, Comparison, FirstDifference, settings, table
from airloom.measures import describe
from airloom.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is not the same twice in real time: not compared there.
_OF_REAL_TIME = ("t_ns", "q_bytes", "seq", "ack", "flow", "pkt_id")


def compare_runs(places: list[Path]) -> Comparison:
    """Holds runs against the first one."""
    runs = dict(zip(LETTERS, map(Run, places), strict=False))
    first, *others = runs.items()
    rows = [row for letter, run in others for row in _rows(letter, first[1], run)]
    firsts, notes = [], []
    for letter, run in others:
        found, said = _first(letter, first[1], run)
        firsts += [found] if found else []
        notes += said
    changed = settings([{"seed": run.manifest["seed"], **run.manifest["scenario"]} for run in runs.values()])
    changed.pop("run.seed", None)
    changed |= settings([{key: run.manifest[key] for key in ("clock", "version")} for run in runs.values()])
    names = {
        letter: f"{run.manifest['name']}, seed {run.manifest['seed']}: {run.folder}" for letter, run in runs.items()
    }
    return Comparison(
        "runs", names, table(rows), settings=changed, firsts=firsts, notes=notes, draw=partial(_draw, runs)
    )


def _rows(letter: str, one: Run, other: Run) -> list[dict[str, Any]]:
    rows = []
    for key in sorted(one.summary.keys() | other.summary.keys()):
        known = describe(key)
        a, b = one.summary.get(key), other.summary.get(key)
        row = {"measure": key, "unit": known.unit, "group": known.group, "of": letter, "first": a, "value": b}
        rows.append({**row, "difference": None if a is None or b is None else b - a, "seeds": 1})
    return rows


def _first(letter: str, one: Run, other: Run) -> tuple[FirstDifference | None, list[str]]:
    """The first packet that differs, and what is to be said about that."""
    missing = [run.folder for run in (one, other) if not (run.folder / "packets.parquet").is_file()]
    if missing:
        hint = '`record = ["packets"]` in [run]'
        return None, [f"{missing[0]} recorded no packets, so nothing says which one differs first: {hint}"]
    a, b = (_plain(run.packets) for run in (one, other))
    notes = []
    points = [set(rows["point"].unique()) for rows in (a, b)]
    if points[0] != points[1]:
        both = sorted(points[0] & points[1])
        if not both:
            return None, [f"A and {letter} recorded no point in common: no packets are compared"]
        notes.append(f"packets of A and {letter} are compared where both recorded them: {', '.join(both)}")
        a, b = (rows.filter(pl.col("point").is_in(both)) for rows in (a, b))
    columns = [name for name in a.columns if name in b.columns]
    if "real" in (one.manifest["clock"], other.manifest["clock"]):
        columns = [name for name in columns if name not in _OF_REAL_TIME]
        notes.append("in real time no moment and no number comes twice: packets are compared by order, kind and length")
    number = _first_row(a, b, columns)
    if number is None:
        return None, notes
    rows = [table.row(number, named=True) if number < table.height else None for table in (a, b)]
    there = rows[0] or rows[1]
    assert there is not None
    what: dict[str, tuple[Any, Any]] = {}
    if rows[0] is not None and rows[1] is not None:
        differing = [name for name in columns if rows[0][name] != rows[1][name]]
        what = {_word(name): (_value(name, rows[0][name]), _value(name, rows[1][name])) for name in differing}
        if {"pkt_id", "point", "event"} & set(differing):
            # Not the same packet in other circumstances, but another one.
            what = {"": (_described(rows[0]), _described(rows[1]))}
    return FirstDifference(letter, there["t_ns"] / 1e9, there["pkt_id"], there["point"], what), notes


def _plain(packets: pl.DataFrame) -> pl.DataFrame:
    texts = [name for name, kind in packets.schema.items() if kind.base_type() in (pl.Enum, pl.Categorical)]
    return packets.with_columns(pl.col(texts).cast(pl.String)).sort("t_ns", maintain_order=True)


def _first_row(a: pl.DataFrame, b: pl.DataFrame, columns: list[str]) -> int | None:
    """The first row in which any of these columns differs, or which only one table has; `None` if there is none."""
    height = min(a.height, b.height)
    differs = pl.repeat(False, height, eager=True)
    for name in columns:
        differs |= a[name].head(height).ne_missing(b[name].head(height))
    if differs.any():
        return differs.arg_max()
    return None if a.height == b.height else height


def _described(row: dict[str, Any]) -> str:
    happened = {"tx": "sent", "rx": "received", "retx": "sent again", "enq": "queued", "drop": "dropped"}
    what = f"packet {row['pkt_id']} ({row['proto']}, {row['len']} octets)"
    return f"{what} {happened.get(row['event'], row['event'])} at {row['point']} at {row['t_ns'] / 1e9:.6f} s"


_WORDS = {"t_ns": "time (s)", "dir": "direction", "len": "octets", "q_bytes": "octets in the queue", "pkt_id": "packet"}


def _word(column: str) -> str:
    return _WORDS.get(column, column)


def _value(column: str, value: Any) -> Any:
    return value / 1e9 if column == "t_ns" and value is not None else value


def _draw(runs: dict[str, Run]) -> list[Figure]:
    """What arrived, over time: the datagrams at the point of A where most octets arrive, at the same one in all."""
    from airloom.plot.compared import arrived

    recorded = {letter: run for letter, run in runs.items() if (run.folder / "packets.parquet").is_file()}
    tables = {letter: _plain(run.packets) for letter, run in recorded.items()}
    points = [set(rows["point"].unique()) for rows in tables.values()]
    for rows in tables.values():
        common = set.intersection(*points)
        at = rows.filter(
            pl.col("point").str.ends_with(".ip") & (pl.col("event") == "rx") & pl.col("point").is_in(common)
        )
        order = at.group_by("point").agg(pl.col("len").sum()).sort(["len", "point"], descending=[True, False])
        if order.is_empty():
            return []
        point = str(order["point"][0])
        lines = {}
        for letter, packets in tables.items():
            own = packets.filter((pl.col("point") == point) & (pl.col("event") == "rx"))
            lines[letter] = (own["t_ns"].to_numpy() / 1e9, own["len"].cast(pl.Int64).cum_sum().to_numpy())
        return [arrived(lines, f"Datagrams that arrived at {point}")]
    return []
