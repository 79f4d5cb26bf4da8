"""Captures side by side: the connections in their order, and the first segment that is not the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from airloom.analysis.capture import CaptureAnalysis, analyze
from airloom.comparison.result import Comparison, FirstDifference, letters, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is compared of the end that sent more: key, unit.
_COUNTS = {
    "unique_octets": "octets",
    "octets": "octets",
    "rate_bit_s": "bit/s",
    "retransmissions": "count",
    "fast_retransmissions": "count",
    "timer_retransmissions": "count",
    "needless_retransmissions": "count",
    "timeouts": "count",
    "out_of_order": "count",
    "duplicate_acks": "count",
    "most_in_flight": "octets",
    "stall_count": "count",
    "stalled_s": "s",
}

_ROUND_TRIPS = ("min_s", "median_s", "p95_s", "max_s")

#: What makes a segment the same: not when it came, nor where numbers began.
_SAME = ("side", "seq", "len", "ack")


def compare_captures(places: list[Path]) -> Comparison:
    """Holds captures against the first one: the connection in each that carried most."""
    found = dict(zip(letters(), map(analyze, places), strict=False))
    busiest = {letter: one.busiest() for letter, one in found.items()}
    numbers = {letter: _numbers(one, *busiest[letter]) for letter, one in found.items()}
    rows = [
        {"measure": key, "unit": unit, "group": "transport", "of": letter, "first": a, "value": b, "seeds": 1}
        | {"difference": None if a is None or b is None else b - a}
        for letter in list(found)[1:]
        for key, (a, unit) in numbers["A"].items()
        for b in (numbers[letter][key][0],)
    ]
    firsts = []
    traces = {letter: _segments(one, busiest[letter][0]) for letter, one in found.items()}
    for letter in list(found)[1:]:
        connection = found["A"].connections[busiest["A"][0]]
        where = f"{connection['client']} to {connection['server']}"
        if (first := _first(letter, traces["A"], traces[letter], where)) is not None:
            firsts.append(first)
    names = {letter: f"connection {busiest[letter][0]} of {one.path}" for letter, one in found.items()}
    sides = [connection["seen_from"] for connection in _sides(found, busiest)]
    notes = []
    if len(set(sides)) > 1:
        notes.append(f"captured at different places ({', '.join(sides)}): what does not show in one of them is -")
    return Comparison("captures", names, table(rows), firsts=firsts, notes=notes, draw=partial(_draw, traces, busiest))


def _sides(found: dict[str, CaptureAnalysis], busiest: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    return [one.connections[busiest[letter][0]]["sides"][busiest[letter][1]] for letter, one in found.items()]


def _numbers(found: CaptureAnalysis, number: int, which: int) -> dict[str, tuple[float | None, str]]:
    connection = found.connections[number]
    side = connection["sides"][which]
    times = {
        "duration_s": (connection["end_s"] - connection["begin_s"], "s"),
        "handshake_s": (connection["handshake_s"], "s"),
    }
    return {
        **times,
        **{key: (side[key], unit) for key, unit in _COUNTS.items()},
        **{f"rtt_{key}": (side["rtt"][key], "s") for key in _ROUND_TRIPS},
    }


def _segments(found: CaptureAnalysis, number: int) -> pl.DataFrame:
    return found.trace.filter(pl.col("connection") == number).with_columns(pl.col("kind").cast(pl.String))


def _first(letter: str, a: pl.DataFrame, b: pl.DataFrame, where: str) -> FirstDifference | None:
    for number, (one, other) in enumerate(zip(a.iter_rows(named=True), b.iter_rows(named=True), strict=False)):
        what = {key: (one[key], other[key]) for key in _SAME if one[key] != other[key]}
        if what:
            return FirstDifference(letter, one["t_ns"] / 1e9, None, f"{where} (segment {number})", what)
    if a.height == b.height:
        return None
    longer = a if a.height > b.height else b
    number = min(a.height, b.height)
    return FirstDifference(letter, longer["t_ns"][number] / 1e9, None, f"{where} (segment {number})", {})


def _draw(traces: dict[str, pl.DataFrame], busiest: dict[str, tuple[int, int]]) -> list[Figure]:
    """What was acknowledged, over time; in one direction alone, what was sent."""
    from airloom.plot.compared import arrived

    lines = {}
    for letter, trace in traces.items():
        side = busiest[letter][1]
        back = trace.filter((pl.col("side") != side) & pl.col("ack").is_not_null())
        rows = back if not back.is_empty() else trace.filter(pl.col("side") == side)
        octets = back["ack"] if not back.is_empty() else (rows["seq"] + rows["len"].cast(pl.Int64))
        start = trace["t_ns"].min()
        lines[letter] = ((rows["t_ns"].to_numpy() - start) / 1e9, octets.cum_max().to_numpy())
    return [arrived(lines, "Acknowledged octets", "time since the first segment (s)", "octets")]
