"""What a comparison found, for people, programs and pages."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from airloom.analysis.statistics import known

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from airloom.analysis import Interval

#: What results are called.
LETTERS = string.ascii_uppercase

#: Columns of a comparison's table behind the levels of a sweep.
COLUMNS = ("measure", "unit", "group", "of", "first", "value", "difference", "low", "high", "seeds", "same")


class FirstDifference(NamedTuple):
    """Where two runs or captures part: the first packet that is not the same."""

    #: Which result it is of, beside the first one.
    of: str
    #: When, in the first of them; where one has no more packets, when the other's next one is.
    t_s: float
    #: Number of the packet; `None` in a capture.
    packet: int | None
    #: Where it was seen: an observation point, or a connection.
    where: str
    #: What differs: each column with both values; empty where one has no more packets. Where two different packets are
    #: next both are described, under an empty name.
    what: dict[str, tuple[Any, Any]]

    def in_words(self) -> str:
        """One line."""
        packet = "a segment" if self.packet is None else f"packet {self.packet}"
        if not self.what:
            return f"{self.of} parts from A at {self.t_s:.6f} s: {packet} at {self.where} is in one of them alone"
        if "" in self.what:
            a, b = self.what[""]
            return f"{self.of} parts from A at {self.t_s:.6f} s: next is {a} in A, {b} in {self.of}"
        values = "; ".join(f"{name} {_text(a)} in A, {_text(b)} in {self.of}" for name, (a, b) in self.what.items())
        return f"{self.of} parts from A at {self.t_s:.6f} s: {packet} at {self.where}: {values}"


def _text(value: Any) -> str:
    return "nothing" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)


class Comparison:
    """Results of one kind, held against the first of them."""

    def __init__(
        self,
        kind: str,
        names: Mapping[str, str],
        table: pl.DataFrame,
        *,
        settings: Mapping[str, list[Any]] | None = None,
        firsts: list[FirstDifference] | None = None,
        notes: list[str] | None = None,
        draw: Callable[[], list[Figure]] | None = None,
    ) -> None:
        """`draw` makes the pictures when they are asked for."""
        #: `runs`, `sweeps`, `loads` or `captures`.
        self.kind = kind
        #: What each letter stands for: A is what the others are held against.
        self.names = dict(names)
        #: A row for each measure and other result (and point of a sweep): `measure`, `unit`, `group`, `of` (the other's
        #: letter), `first` and `value` (A's and the other's), `difference` with its interval from `low` to `high` where
        #: there are several `seeds`; is it the `same` in all runs? Equal ones are there too.
        self.table = table
        #: Keys of the scenario that are not the same everywhere, each with its values.
        self.settings = dict(settings or {})
        #: Where each of the others parts from A, if packets were recorded.
        self.firsts = firsts or []
        #: What could not be compared, and why.
        self.notes = notes or []
        self._draw = draw

    @property
    def first(self) -> FirstDifference | None:
        """The first packet that differs between A and B."""
        return self.firsts[0] if self.firsts else None

    @property
    def differences(self) -> pl.DataFrame:
        """The rows of `table` whose values are not the same."""
        return self.table.filter(~pl.col("same"))

    @property
    def is_equal(self) -> bool:
        """Is nothing different, but for settings?"""
        return self.differences.is_empty() and not self.firsts

    @property
    def levels(self) -> list[str]:
        """The axes of the sweeps."""
        return [name for name in self.table.columns if name not in COLUMNS]

    def figures(self) -> list[Figure]:
        """The pictures: all results on one axis."""
        return self._draw() if self._draw else []

    def document(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "kind": self.kind,
            "results": self.names,
            "equal": self.is_equal,
            "settings": self.settings,
            "first_differences": [{**first._asdict(), "says": first.in_words()} for first in self.firsts],
            "differences": self.differences.to_dicts(),
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        return f"Comparison({self.kind}, {', '.join(self.names.values())})"


def table(rows: list[dict[str, Any]], levels: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """The rows as a table with every column. What does not say whether it is the `same` is judged by its numbers."""
    texts = dict.fromkeys(("measure", "unit", "group", "of"), pl.String)
    numbers = dict.fromkeys(("first", "value", "difference", "low", "high"), pl.Float64)
    found = pl.DataFrame(rows, schema={**(levels or {}), **texts, **numbers, "seeds": pl.Int64, "same": pl.Boolean})
    equal = pl.col("first").eq_missing(pl.col("value")) & (pl.col("difference").fill_null(0) == 0)
    return found.with_columns(pl.coalesce("same", equal))


def difference(found: Interval) -> dict[str, float | None]:
    """The columns of a difference with its interval."""
    numbers = {"difference": known(found.value), "low": known(found.low), "high": known(found.high)}
    return {**numbers, "seeds": found.seeds}


def settings(scenarios: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Keys with dots whose values are not the same in all scenarios; what one has not is `None`.

    >>> settings([{"links": {"radio": {"rate": "64kbit/s"}}}, {"links": {"radio": {"rate": "384kbit/s"}}}])
    {'links.radio.rate': ['64kbit/s', '384kbit/s']}
    """
    flat = [dict(_flat("", scenario)) for scenario in scenarios]
    keys = dict.fromkeys(key for one in flat for key in one)
    found = {key: [one.get(key) for one in flat] for key in keys}
    return {key: values for key, values in found.items() if any(value != values[0] for value in values)}


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        return [
            pair for key, inner in value.items() for pair in _flat(f"{prefix}.{key}" if prefix else str(key), inner)
        ]
    if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        return [pair for n, inner in enumerate(value) for pair in _flat(f"{prefix}.{n}", inner)]
    return [(prefix, value)]
