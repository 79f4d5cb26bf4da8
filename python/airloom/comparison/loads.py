"""Loads of pages side by side: the same link and proxy, pairs of the same seed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airloom.analysis import quantile_interval
from airloom.analysis.statistics import difference_of_medians, known
from airloom.comparison.result import LETTERS, Comparison, difference, table
from airloom.errors import UsageError
from airloom.json_file import read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Moments that a browser tells, in milliseconds, and what they are called here.
_MOMENTS = {"load": "page_s", "paint": "first_paint_s", "largest": "largest_paint_s", "content": "content_s"}

CONFIDENCE = 0.95


def compare_loads(places: list[Path]) -> Comparison:
    """Holds folders of `airloom load` against the first one, load by load."""
    found = {letter: _loads(place) for letter, place in zip(LETTERS, places, strict=False)}
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for letter in list(found)[1:]:
        a, b = found["A"], found[letter]
        for name, one, other in (("A", a, b), (letter, b, a)):
            if alone := [key for key in one if key not in other]:
                notes.append(f"in {name} alone: {', '.join(alone)}")
        both = [key for key in a if key in b]
        if not both:
            raise UsageError(f"A and {letter} have no load in common: {'; '.join(notes)}")
        rows += [{"load": key, **row} for key in both for row in _rows(letter, a[key], b[key])]
    for letter, loads in found.items():
        for key, tries in loads.items():
            if failed := [seen["error"] for seen in tries if seen.get("error")]:
                notes.append(f"{letter}, {key}: {len(failed)} of {len(tries)} not loaded: {failed[0]}")
    names = {letter: str(place) for letter, place in zip(LETTERS, places, strict=False)}
    return Comparison("loads", names, table(rows, {"load": pl.String}), notes=notes, draw=partial(_draw, found))


def _loads(place: Path) -> dict[str, list[dict[str, Any]]]:
    """What the browser saw, by link, proxy and version of HTTP: one entry for each time that the page was loaded."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(place.glob("**/load.json")):
        seen = read_json(file)
        if not isinstance(seen, dict) or not {"link", "proxy"} <= seen.keys():
            raise UsageError(f"{file} is not what a load writes")
        version = f", HTTP/{seen['http']}" if seen.get("http") else ""
        found.setdefault(f"{seen['link']}, proxy {seen['proxy']}{version}", []).append(seen)
    return found


def _values(tries: list[dict[str, Any]], key: str) -> dict[Any, float]:
    """A moment in seconds, by seed."""
    return {seed: value / 1e3 for seed, value in _of(tries, key)}


def _of(tries: list[dict[str, Any]], key: str) -> list[tuple[Any, Any]]:
    """What those that were loaded say of something, with their seeds; with their turns where the files name no seed."""
    there = [(seen.get("seed", n), seen.get(key)) for n, seen in enumerate(tries) if not seen.get("error")]
    return [(seed, value) for seed, value in there if value is not None]


def _rows(letter: str, a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for key, measure in _MOMENTS.items():
        x, y = _values(a, key), _values(b, key)
        if x or y:
            rows.append(_row(letter, measure, "s", x, y))
    rows.append(_row(letter, "requests", "count", *({s: float(len(r)) for s, r in _of(t, "requests")} for t in (a, b))))
    return rows


def _row(letter: str, measure: str, unit: str, x: dict[Any, float], y: dict[Any, float]) -> dict[str, Any]:
    if both := [seed for seed in x if seed in y]:
        found = quantile_interval([y[seed] - x[seed] for seed in both], 0.5, CONFIDENCE)
    else:
        found = difference_of_medians(list(x.values()), list(y.values()), CONFIDENCE)
    first, value = (float(np.median(list(of.values()))) if of else None for of in (x, y))
    what = {"measure": measure, "unit": unit, "group": "page", "of": letter}
    return {**what, "first": first, "value": value, **difference(found)}


def _draw(found: dict[str, dict[str, list[dict[str, Any]]]]) -> list[Figure]:
    """The time of the page, of every load, one below the other."""
    from airloom.plot.compared import side_by_side

    rows = []
    for key in found["A"]:
        for letter, loads in found.items():
            values = list(_values(loads.get(key, []), "load").values())
            if values:
                one = quantile_interval(values, 0.5, CONFIDENCE)
                rows.append(
                    {"name": f"{letter}: {key}", "value": one.value, "low": known(one.low), "high": known(one.high)}
                )
    schema = {"name": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return [side_by_side(pl.DataFrame(rows, schema=schema), "page_s")] if rows else []
