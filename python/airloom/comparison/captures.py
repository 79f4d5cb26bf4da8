"""Captures side by side: all connections, each with the one that goes with it, and the first segment that differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from airloom.analysis.capture import MOST_ROWS, CaptureAnalysis, analyze
from airloom.comparison.result import LETTERS, Comparison, FirstDifference, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Numbers by their names; what a capture does not show is `None`.
_Numbers = dict[str, float | None]

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

#: What of it may be added up.
_SUMMED = tuple(key for key in _COUNTS if key not in ("rate_bit_s", "most_in_flight"))

_ROUND_TRIPS = ("min_s", "median_s", "p95_s", "max_s")

#: What makes a segment the same: not when it came, nor where numbers began.
_SAME = ("side", "seq", "len", "ack")


def _host(end: str) -> str:
    return end.rpartition(":")[0]


#: What two connections may have in common, the most first. Clients take another port each time.
_ALIKE: tuple[Callable[[dict[str, Any]], Any], ...] = (
    lambda one: (one["interface"], one["client"], one["server"]),
    lambda one: (one["interface"], _host(one["client"]), one["server"]),
    lambda one: (_host(one["client"]), one["server"]),
    lambda one: one["server"].rpartition(":")[2],
)


class _Pair(NamedTuple):
    """Two connections that go together; `None` where one of the captures has no such one."""

    one: dict[str, Any] | None
    other: dict[str, Any] | None

    @property
    def known(self) -> dict[str, Any]:
        """That of A, or of the other capture where A has none."""
        known = self.one or self.other
        assert known is not None
        return known

    @property
    def side(self) -> int:
        """Which end's data is compared: of the end that sent more."""
        return max((0, 1), key=lambda side: self.known["sides"][side]["unique_octets"])

    @property
    def octets(self) -> int:
        """How much data that is."""
        octets: int = self.known["sides"][self.side]["unique_octets"]
        return octets

    def name(self, letter: str) -> str:
        """The connection, in the direction of its data; `letter` is the other capture."""
        ends = (self.known["client"], self.known["server"])
        of = f" of {letter}" if self.one is None else ""
        return f"connection {self.known['number']}{of}, {ends[self.side]} to {ends[1 - self.side]}"


def compare_captures(places: list[Path]) -> Comparison:
    """Holds captures against the first one: all connections together, then each, those with most data first."""
    found = {letter: analyze(place, rows=MOST_ROWS) for letter, place in zip(LETTERS, places, strict=False)}
    busiest = {letter: one.busiest() for letter, one in found.items()}
    segments = {letter: _segments(one) for letter, one in found.items()}
    number, side = busiest["A"]
    # Of long captures not all segments are kept.
    cut = {letter for letter, one in found.items() if one.trace.height >= MOST_ROWS}
    traces = {"A": segments["A"].get(number)}
    rows: list[dict[str, Any]] = []
    firsts, notes = [], []
    for letter, other in list(found.items())[1:]:
        for name, totals in _totals(found["A"], other):
            rows += _rows(name, letter, *totals)
        pairs = sorted(_pairs(found["A"].connections, other.connections), key=lambda pair: pair.octets, reverse=True)
        parts = []
        for pair in pairs:
            rows += _rows(pair.name(letter), letter, *(_numbers(one, pair.side) if one else {} for one in pair))
            a, b = (segments[of].get(one["number"] if one else -1) for of, one in zip(("A", letter), pair, strict=True))
            where = f"{pair.known['client']} to {pair.known['server']}"
            parts += _first(letter, a, b, where, cut=("A" in cut, letter in cut))
        firsts += sorted(parts, key=lambda part: part.t_s)[:1]
        notes += _notes(letter, pairs)
        # What goes with A's busiest connection is drawn beside it.
        same = next((pair.other for pair in pairs if pair.one and pair.one["number"] == number), None)
        traces[letter] = segments[letter].get(same["number"] if same else busiest[letter][0])
    notes += [
        f"{letter} is long: of its segments the first {MOST_ROWS} are looked at one by one"
        for letter in found
        if letter in cut
    ]
    names = {letter: f"{one.path}, connections: {len(one.connections)}" for letter, one in found.items()}
    numbers = table(rows, {"connection": pl.String})
    shown = {letter: trace for letter, trace in traces.items() if trace is not None}
    draw = partial(_draw, shown, side) if shown else None
    return Comparison("captures", names, numbers, firsts=firsts, notes=notes, draw=draw)


def _pairs(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[_Pair]:
    """Connections that go together, the more they are alike the sooner; and those that are alone."""
    left, right = (dict(enumerate(connections)) for connections in (a, b))
    found = []
    for alike in _ALIKE:
        waiting: dict[Any, list[int]] = {}
        for number, connection in right.items():
            waiting.setdefault(alike(connection), []).append(number)
        for number, connection in list(left.items()):
            if numbers := waiting.get(alike(connection)):
                found.append(_Pair(left.pop(number), right.pop(numbers.pop(0))))
    if len(left) == len(right) == 1:
        return [*found, _Pair(*left.values(), *right.values())]
    return [*found, *(_Pair(one, None) for one in left.values()), *(_Pair(None, one) for one in right.values())]


def _numbers(connection: dict[str, Any], which: int) -> _Numbers:
    side = connection["sides"][which]
    return {
        "duration_s": connection["end_s"] - connection["begin_s"],
        "handshake_s": connection["handshake_s"],
        **{key: side[key] for key in _COUNTS},
        **{f"rtt_{key}": side["rtt"][key] for key in _ROUND_TRIPS},
    }


def _totals(a: CaptureAnalysis, b: CaptureAnalysis) -> list[tuple[str, list[_Numbers]]]:
    """All connections of both together; by interface, where a connection may have been seen at several."""
    seen = [{connection["interface"] for connection in one.connections} for one in (a, b)]
    if max(map(len, seen)) <= 1:
        return [("all connections", [_total(one.connections) for one in (a, b)])]
    return [
        (
            f"all connections at {name}",
            [_total([each for each in one.connections if each["interface"] == name]) for one in (a, b)],
        )
        for name in sorted(set.union(*seen))
    ]


def _total(connections: list[dict[str, Any]]) -> _Numbers:
    if not connections:
        return {}
    sides = [connection["sides"][_Pair(connection, None).side] for connection in connections]
    lasted = max(c["end_s"] for c in connections) - min(c["begin_s"] for c in connections)
    found: _Numbers = {"connections": len(connections), "duration_s": lasted}
    for key in _SUMMED:
        values = [side[key] for side in sides]
        # What one of them does not show is not known of all.
        found[key] = None if None in values else sum(values)
    octets = found["unique_octets"]
    found["rate_bit_s"] = 8 * octets / lasted if octets is not None and lasted > 0 else None
    return found


def _rows(name: str, letter: str, one: _Numbers, other: _Numbers) -> list[dict[str, Any]]:
    found = []
    for key in one or other:
        first, value = one.get(key), other.get(key)
        difference = None if first is None or value is None else value - first
        values = {"of": letter, "first": first, "value": value, "difference": difference, "seeds": 1}
        found.append({"connection": name, "measure": key, "unit": _unit(key), "group": "transport", **values})
    return found


def _unit(key: str) -> str:
    return _COUNTS.get(key, "count" if key == "connections" else "s")


def _notes(letter: str, pairs: list[_Pair]) -> list[str]:
    notes = []
    for of, count in (("A", sum(not pair.other for pair in pairs)), (letter, sum(not pair.one for pair in pairs))):
        if count:
            notes.append(f"{count} {'connection is' if count == 1 else 'connections are'} in {of} alone")
    places = {tuple(one["sides"][pair.side]["seen_from"] for one in pair if one) for pair in pairs}
    for place in sorted(place for place in places if len(set(place)) > 1):
        notes.append(f"captured at different places ({', '.join(place)}): what does not show in one of them is -")
    return notes


def _segments(found: CaptureAnalysis) -> dict[int, pl.DataFrame]:
    """The segments of each connection."""
    parts = found.trace.partition_by("connection", as_dict=True, maintain_order=True)
    return {int(number): part for (number,), part in parts.items()}


def _first(
    letter: str, a: pl.DataFrame | None, b: pl.DataFrame | None, where: str, *, cut: tuple[bool, bool]
) -> list[FirstDifference]:
    """The first segment of a connection that differs, if one does; all do where a capture has no such connection.

    Nothing is known of what comes after the last segment in the trace of a capture that is `cut`.
    """
    a, b = (pl.DataFrame() if rows is None else rows for rows in (a, b))
    for number, (one, other) in enumerate(zip(a.iter_rows(named=True), b.iter_rows(named=True), strict=False)):
        what = {key: (one[key], other[key]) for key in _SAME if one[key] != other[key]}
        if what:
            return [FirstDifference(letter, one["t_ns"] / 1e9, None, f"{where} (segment {number})", what)]
    if a.height == b.height or cut[a.height > b.height]:
        return []
    longer = a if a.height > b.height else b
    number = min(a.height, b.height)
    return [FirstDifference(letter, longer["t_ns"][number] / 1e9, None, f"{where} (segment {number})", {})]


def _draw(traces: dict[str, pl.DataFrame], side: int) -> list[Figure]:
    """What was acknowledged of the connection with most data, over time; in one direction alone, what was sent."""
    from airloom.plot.compared import arrived

    lines = {}
    for letter, trace in traces.items():
        back = trace.filter((pl.col("side") != side) & pl.col("ack").is_not_null())
        rows = back if not back.is_empty() else trace.filter(pl.col("side") == side)
        octets = back["ack"] if not back.is_empty() else (rows["seq"] + rows["len"].cast(pl.Int64))
        start = trace["t_ns"].min()
        lines[letter] = ((rows["t_ns"].to_numpy() - start) / 1e9, octets.cum_max().to_numpy())
    return [arrived(lines, "Acknowledged octets", "time since the first segment (s)", "octets")]
