"""What is varied: axes with levels, from Python values, from `[vary]` of a sweep file and from the command line."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from airloom.errors import UsageError
from airloom.scenario import toml_value

#: Columns that every table of a sweep has besides the axes.
COLUMNS = ("point", "seed", "run_id", "run", "status", "error")
#: Columns that some table of a sweep, or one that is computed from it, has beside the axes.
COMPUTED = (
    # Of the table `rate`, and of what is counted at each point.
    *("t_ns", "span_ns", "octets", "seen_at", "len", "good"),
    # Of `analysis`.
    *("measure", "unit", "mean", "median", "low", "high", "ci", "seeds", "method", "value", "share"),
    *("axis", "level", "baseline", "difference", "ratio", "ratio_low", "ratio_high", "p", "ours", "theirs"),
)

#: What a level is called in tables: a number where the level is one, else a text.
Label = str | int | float | bool


class Level(NamedTuple):
    """One value of an axis: what it is called, and the keys of the scenario that it sets."""

    label: Label
    settings: tuple[tuple[str, Any], ...]


class Axis(NamedTuple):
    """A key of the scenario, or a name for several keys that change together, and its levels."""

    key: str
    levels: tuple[Level, ...]

    @property
    def is_numeric(self) -> bool:
        """Are all levels numbers?"""
        return _are_numbers(level.label for level in self.levels)


class Point(NamedTuple):
    """One combination of levels; `number` counts points in the order of the axes, the last axis fastest."""

    number: int
    levels: tuple[Level, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The keys it sets."""
        return {key: value for level in self.levels for key, value in level.settings}


def cells(labels: Sequence[Label]) -> list[Label]:
    """The labels of an axis as they stand in tables: all whole numbers, all numbers, or all texts.

    >>> cells([0, 0.5]), cells([True, "none"])
    ([0.0, 0.5], ['true', 'none'])
    """
    if not _are_numbers(labels):
        return [in_words(label) for label in labels]
    is_whole = all(isinstance(label, int) and abs(label) < 2**63 for label in labels)
    return list(labels) if is_whole else [float(label) for label in labels]


def in_words(label: object) -> str:
    """A label as a text, as TOML writes it."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _are_numbers(labels: Iterable[Label]) -> bool:
    return all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)


def axis(key: str, values: Iterable[Any]) -> Axis:
    """The axis of a key with these values.

    A value is what may stand in a scenario file: a number, a text, a list or a table. A table may have a `label`, its
    name in tables and figures. `{label = .., value = ..}` gives a name to a value that is no table; `{label = .., set =
    {KEY = VALUE, ..}}` sets several keys, and the axis may then have any name that is no column of a sweep's tables.

    >>> axis("links.radio.loss.downlink", [0, 0.1]).is_numeric
    True
    >>> axis("hosts.mobile.transport", [{"label": "NewReno", "tcp": {"congestion": "newreno"}}]).levels[0].label
    'NewReno'
    """
    if key in (*COLUMNS, *COMPUTED):
        raise UsageError(f"an axis cannot be called {key!r}: tables of a sweep have a column of that name")
    levels = tuple(_level(key, value) for value in values)
    if not levels:
        raise UsageError(f"{key} has no values to vary over: give at least one")
    seen: set[Label] = set()
    for level, cell in zip(levels, cells([level.label for level in levels]), strict=True):
        if cell in seen:
            raise UsageError(f"{key} has the value {level.label!r} twice; give tables different labels")
        seen.add(cell)
    return Axis(key, levels)


def _level(key: str, value: Any) -> Level:
    if isinstance(value, Mapping):
        table = dict(value)
        label = table.pop("label", None)
        if label is not None and not isinstance(label, str | int | float):
            raise UsageError(f"{key}: a label is a text or a number, not {label!r}")
        if label is not None and set(table) == {"value"}:
            return Level(label, ((key, table["value"]),))
        if label is not None and set(table) == {"set"} and isinstance(table["set"], Mapping):
            return Level(label, tuple(table["set"].items()))
        name = label if label is not None else next(iter(table)) if len(table) == 1 else toml_value(table)
        return Level(name, ((key, table),))
    if isinstance(value, str):
        return Level(_number(value), ((key, value),))
    if isinstance(value, int | float):
        return Level(value, ((key, value),))
    if isinstance(value, Sequence):
        return Level(toml_value(list(value)), ((key, list(value)),))
    raise UsageError(f"{key}: {value!r} is nothing that can stand in a scenario")


def _number(text: str) -> Label:
    """A text that is a number, as one; any other text as it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def axes(vary: Mapping[str, Iterable[Any]]) -> tuple[Axis, ...]:
    """The axes of a mapping from key to values."""
    return tuple(axis(key, values) for key, values in vary.items())


def from_option(option: str) -> tuple[str, list[str]]:
    """Key and values of `--vary KEY=a,b,c`; commas within brackets, braces and quotes do not separate.

    >>> from_option("links.radio.rate={downlink=1,uplink=2},3")
    ('links.radio.rate', ['{downlink=1,uplink=2}', '3'])
    """
    key, equals, text = option.partition("=")
    key = key.strip()
    values = [value.strip() for value in _split(text)]
    if not equals or not key or not all(values):
        raise UsageError(f"--vary {option}: expected KEY=A,B,C")
    return key, values


def _split(text: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def points(axes: Sequence[Axis]) -> tuple[Point, ...]:
    """All combinations of the levels; one point without settings if nothing is varied."""
    combined = itertools.product(*(axis.levels for axis in axes))
    return tuple(Point(number, levels) for number, levels in enumerate(combined))


def seeds(given: str | int | Iterable[int]) -> Sequence[int]:
    """Seeds: a number, some numbers, or a text such as `1..20` or `1,2,7..9`. Each counts once; their order is kept.

    >>> seeds("1..3,7"), seeds("1..100000")
    ((1, 2, 3, 7), range(1, 100001))
    """
    found: list[int] = []
    if isinstance(given, str):
        parts = given.split(",")
        for part in parts:
            first, dots, last = part.strip().partition("..")
            if not first.isdecimal() or (dots and not last.isdecimal()):
                raise UsageError(f"{given!r} are no seeds: expected such as 1..20 or 1,2,5")
            begin, end = int(first), int(last if dots else first)
            if end < begin:
                raise UsageError(f"seeds {part.strip()} run backwards: expected {end}..{begin}")
            if end - begin >= 10_000_000:
                raise UsageError(f"seeds {part.strip()} are more than ten million")
            if len(parts) == 1 and end < 2**64:
                # As many as there are take no more room than one.
                return range(begin, end + 1)
            found.extend(range(begin, end + 1))
    elif isinstance(given, int):
        found.append(given)
    else:
        for seed in given:
            try:
                found.append(operator.index(seed))
            except TypeError:
                raise UsageError(f"a seed is a whole number, not {seed!r}") from None
    once = tuple(dict.fromkeys(found))
    if not once:
        raise UsageError("no seeds: give at least one")
    if min(once) < 0 or max(once) >= 2**64:
        raise UsageError("a seed is a whole number from 0 to 2^64 - 1")
    return once


def seeds_text(given: Sequence[int]) -> str:
    """Seeds as a text that `seeds` reads: `1..20`, or each of them.

    >>> seeds_text(range(1, 4)), seeds_text((1, 2, 3)), seeds_text((1, 3))
    ('1..3', '1..3', '1,3')
    """
    whole = range(given[0], given[0] + len(given))
    is_whole = len(given) > 1 and (given == whole or all(map(operator.eq, given, whole)))
    return f"{given[0]}..{given[-1]}" if is_whole else ",".join(map(str, given))
