"""The catalogue of measures: what each number of a summary and each column of a table means.

>>> describe("radio.downlink.rlc_resent").group
'radio'
>>> describe("page_load_s").unit
's'
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from airloom.errors import UsageError
from airloom.fields import did_you_mean

__all__ = ["Column", "Measure", "catalogue", "columns", "describe", "groups", "measures", "tables"]

#: Endings of names that say the unit, longer ones first: `goodput_bit_s` is not in seconds.
ENDINGS = (
    ("_gbit_s", "Gbit/s"),
    ("_mbit_s", "Mbit/s"),
    ("_kbit_s", "kbit/s"),
    ("_bit_s", "bit/s"),
    ("_per_s", "1/s"),
    ("_bytes", "octets"),
    ("_share", "share"),
    ("_ratio", "ratio"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_j", "J"),
)

#: The unit of what is so or not.
_YES_OR_NO = "true or false"

_WHOLE = {"bytes": "octets", "octets": "octets"}

#: What gives a measure, where that has no name in scenarios.
COMPONENTS = {
    "run": "every run",
    "real time": "every run in real time",
    "tls": "an application with TLS",
    "wtls": "an application with WTLS",
    "faults": "a link with `faults`",
    "work": "a link beside a host with `work`",
}

#: Stands in the catalogue for `uplink` or `downlink`.
_DIRECTION = "DIRECTION"


class Measure(NamedTuple):
    """What a number of a summary means."""

    #: As in the catalogue: without host, link and member, and with `DIRECTION` where that makes a difference.
    name: str
    #: In words; empty for a name that the catalogue does not have.
    meaning: str
    #: `s`, `bit/s`, `octets`, ...; `count` for a number of things.
    unit: str
    #: What it is about: a key of `groups()`, or empty.
    group: str
    #: Is it always a whole number, of things or octets?
    is_count: bool
    #: Which applications, proxies, bearers and layers give it; `run`: every run.
    components: tuple[str, ...]


class Column(NamedTuple):
    """A column of a table."""

    name: str
    meaning: str
    #: Empty where the column holds names or numbers of things.
    unit: str


def describe(key: str) -> Measure:
    """What a key of a summary means: `page_load_s`, `mobile.app[1].bytes`, `bundle.member.2.downlink.lost`.

    >>> describe("wan.downlink.packets").meaning
    'Datagrams that came to the link, lost ones too.'
    >>> describe("wan.packets").is_count
    True
    """
    parts = [_DIRECTION if part in ("uplink", "downlink") else part for part in key.split(".")]
    known = measures()
    for first in range(len(parts)):
        if (found := known.get(".".join(parts[first:]))) is not None:
            return found
    unit = unit_by_name(parts[-1])
    return Measure(parts[-1], "", unit, "", unit in ("count", "octets"), ())


def typed(summary: Mapping[str, float]) -> dict[str, float]:
    """The same numbers as what they are: counts are whole numbers, and answers to yes or no are `True` or `False`.

    >>> typed({"connections": 4.0, "valid": 1.0, "page_load_s": 4.0})
    {'connections': 4, 'valid': True, 'page_load_s': 4.0}
    """
    found: dict[str, float] = {}
    for key, value in summary.items():
        measure = describe(key)
        if measure.unit == _YES_OR_NO:
            found[key] = bool(value)
        else:
            found[key] = int(value) if measure.meaning and measure.is_count and value == int(value) else value
    return found


@cache
def groups() -> dict[str, str]:
    """The titles of the groups, the most telling ones first."""
    return {name: group["title"] for name, group in _read("measures").items()}


@cache
def measures() -> dict[str, Measure]:
    """The whole catalogue by name, in its order."""
    found = {}
    for group, entries in _read("measures").items():
        for name, entry in entries.items():
            if name != "title":
                unit = entry.get("unit") or unit_by_name(name.rsplit(".", 1)[-1])
                is_count = unit in ("count", "octets")
                found[name] = Measure(name, entry["is"], unit, group, is_count, tuple(entry["of"]))
    return found


@cache
def tables() -> dict[str, str]:
    """What the rows of each table are, by its name."""
    return {name: table["about"] for name, table in _read("columns").items()}


def columns(table: str) -> list[Column]:
    """The columns of a table, in their order.

    >>> [column.name for column in columns("pages")][:3]
    ['page', 'url', 'client']
    """
    found = []
    for name, entry in _read("columns")[table].items():
        if name != "about":
            meaning, unit = (entry, _by_ending(name)) if isinstance(entry, str) else (entry["is"], entry["unit"])
            found.append(Column(name, meaning, unit))
    return found


def catalogue(name: str | None = None) -> dict[str, dict[str, dict[str, Any]]]:
    """The catalogue as plain data, or what of it is called `name`: a measure or key of a summary, a table, a column.

    `measures` has `unit`, `meaning`, `group` and `of`; `tables` has `about` and `columns`, with `unit` and `meaning`.
    Raises `UsageError` if nothing is called so.

    >>> found = catalogue("start_ns")
    >>> found["measures"], list(found["tables"])
    ({}, ['pages'])
    """
    wanted = None if name is None else describe(name).name
    numbers = {
        one.name: {"unit": one.unit, "meaning": one.meaning, "group": one.group, "of": list(one.components)}
        for one in measures().values()
        if wanted in (None, one.name, one.name.removeprefix(f"{_DIRECTION}."))
    }
    rows = {}
    for table, about in tables().items():
        shown = [column for column in columns(table) if name in (None, table, column.name)]
        if shown:
            meanings = {column.name: {"unit": column.unit, "meaning": column.meaning} for column in shown}
            rows[table] = {"about": about, "columns": meanings}
    if not numbers and not rows:
        guess = did_you_mean(str(name), names())
        raise UsageError(f"no measure, table or column is called {name!r}{guess}; airloom list measures has all")
    return {"measures": numbers, "tables": rows}


def names() -> list[str]:
    """Every name that `catalogue` knows."""
    inner = [column.name for table in tables() for column in columns(table)]
    return list(dict.fromkeys([*measures(), *tables(), *inner]))


def unit_by_name(name: str) -> str:
    """The unit that a name ends in; what has no such ending is a count.

    >>> unit_by_name("goodput_bit_s"), unit_by_name("requests_per_s"), unit_by_name("rlc_resent")
    ('bit/s', '1/s', 'count')
    """
    return _by_ending(name) or "count"


def _by_ending(name: str) -> str:
    return _WHOLE.get(name) or next((unit for ending, unit in ENDINGS if name.endswith(ending)), "")


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("airloom") / f"{name}.toml").read_text(encoding="utf-8"))
