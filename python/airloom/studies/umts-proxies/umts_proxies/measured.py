"""The second clock: what was measured with real programs.

It is a file `real.json` in the study's results:

    {"rows": [["none", "keep-alive", 20, 0.0, 6, 1, 9.1], ...],
     "runs": [["none", "keep-alive", 20, 0.0, 1, 10.2, null], ...],
     "pings": [[1500, 1, 1.1, 0.45, 0.65], ...]}

A row is a page: `proxy`, `http`, `t`, `loss`, `page`, `seed`, `load_s`. A run is a list of pages: `requests` is what a
connection of the browser carried in the mean, `hits` the share that the HTTP proxy answered from its cache. A ping is
the size of a packet (octets), a seed, and the means of its round trips and of its ways to the gateway and back (s).
`proxy` is one of `EVERY`, `http` as in the sweeps, `t` the one-way delay of the internet (ms) and `loss` its loss,
`page` the number in the set. Without the file no claim of real time is covered.
What the machine could not keep in time is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from airloom.errors import UsageError
from airloom.study import Data, NotMade, Numbers

from .ways import EVERY, MODES, Way

_WAY: dict[str, type[pl.DataType]] = {"proxy": pl.String, "http": pl.String, "t": pl.Int64, "loss": pl.Float64}
#: Columns of the three tables. `hits` may be null, nothing else.
COLUMNS: dict[str, dict[str, type[pl.DataType]]] = {
    "rows": {**_WAY, "page": pl.Int64, "seed": pl.Int64, "load_s": pl.Float64},
    "runs": {**_WAY, "seed": pl.Int64, "requests": pl.Float64, "hits": pl.Float64},
    "pings": {
        **dict.fromkeys(("size", "seed"), pl.Int64),
        **dict.fromkeys(("mean_s", "uplink_s", "downlink_s"), pl.Float64),
    },
}


def measured(data: Data, name: str = "rows") -> pl.DataFrame:
    """One of the tables. Raises `UsageError`, one line, for a file that has none such.

    Raises `NotMade` without a file, and for pages where every list was late.
    """
    found = data.program("real")
    if name == "rows" and isinstance(found, dict) and found.get("rows") == [] and found.get("late"):
        raise NotMade("no list of pages was measured in time")
    return checked(found, name)


def checked(found: Any, name: str = "rows") -> pl.DataFrame:
    """One of the tables of a file, if that is what it is."""
    columns = COLUMNS[name]
    try:
        given = found["rows"] if name == "rows" else found.get(name, [])
        table = pl.DataFrame(given, schema=columns, orient="row")
    except (AttributeError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        said = " ".join(str(error).split())[:160]
        raise UsageError(f"real.json: {name} are {', '.join(columns)}: {said}") from None
    if name == "rows" and table.is_empty():
        raise UsageError("real.json: no rows")
    ways = [table[column].is_in(list(known)).all() for column, known in _KNOWN.items() if column in columns]
    # What is measured is above 0; the rest is not below.
    numbers = {column: table[column].to_list() for column, kind in columns.items() if kind != pl.String}
    is_measured = {"load_s", "size", "mean_s", "uplink_s", "downlink_s", "requests"}
    good = all(
        x is not None and math.isfinite(x) and (x > 0 if column in is_measured else x >= 0)
        for column, values in numbers.items()
        for x in values
        if not (column == "hits" and x is None)
    )
    if not (all(ways) and good):
        raise UsageError(
            f"real.json: {name}: proxies are {'; '.join(EVERY)}, http is {', '.join(MODES)}, times are above 0"
        )
    return table


_KNOWN = {"proxy": EVERY, "http": MODES}


def visited(data: Data) -> list[int]:
    """The pages of the list, by their number in the set."""
    scenario = data.run("whole", proxy="none").manifest["scenario"]
    found: list[int] = scenario["hosts"]["mobile"]["app"][0]["http-client"]["visit"]
    return found


def of_way(table: pl.DataFrame, way: Way) -> pl.DataFrame:
    """What was measured on one way. Raises `NotMade` if that is nothing."""
    found = table.filter([pl.col(column) == wanted for column, wanted in zip(Way._fields, way, strict=True)])
    if found.is_empty():
        raise NotMade(f"{way.proxy}, {way.http}, T = {way.t} ms, loss {way.loss:g}: not measured, or not in time")
    return found


def together(data: Data, ways: Sequence[Way]) -> list[Numbers]:
    """Page times of each way, seconds: a number for each page, the mean over its seeds that all of them have.

    Real time has up to three seeds, too few for an interval over them: what is sampled are pages.
    """
    return side_by_side(measured(data), ways, ("seed", "page"), "load_s", of="page")


def side_by_side(
    table: pl.DataFrame, ways: Sequence[Way], keys: Sequence[str], column: str, of: str = ""
) -> list[Numbers]:
    """A column of each way, where `keys` are the same; the means of each `of`, if that is named."""
    joined: pl.DataFrame | None = None
    for n, way in enumerate(ways):
        one = of_way(table, way).group_by(*keys).agg(pl.col(column).mean().alias(str(n)))
        joined = one if joined is None else joined.join(one, on=list(keys))
    if joined is None or joined.is_empty():
        raise NotMade("nothing that all of these ways have was measured in time")
    if of:
        joined = joined.group_by(of).agg(pl.col(str(n)).mean() for n in range(len(ways)))
    joined = joined.sort(of or keys)
    return [joined[str(n)].to_numpy() for n in range(len(ways))]


def whole_lists(data: Data, ways: Sequence[Way]) -> list[Numbers]:
    """The same, a row for each seed and a column for each page: of seeds that have every page on all of the ways."""
    pages = visited(data)
    table = measured(data).filter(pl.col("page").is_in(pages))
    seeds = set(table["seed"].to_list())
    for way in ways:
        counted = of_way(table, way).group_by("seed").agg(pl.col("page").n_unique())
        seeds &= set(counted.filter(pl.col("page") == len(pages))["seed"].to_list())
    if not seeds:
        raise NotMade("no seed has every page on all of these ways, in time")
    found = side_by_side(table.filter(pl.col("seed").is_in(sorted(seeds))), ways, ("seed", "page"), "load_s")
    return [values.reshape(len(seeds), len(pages)) for values in found]
