"""`assumptions.toml`: every open reading of a paper, with its default, its levels, its role and its source.

A level says which keys of the scenarios it sets. The default was chosen before the result was seen, and a default that
was not is marked so.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError

#: joint: in all combinations with the other joint ones; decisive: in pairs with these and each other; level: one at a
#: time; calibration: fitted to claims it names.
ROLES = ("joint", "decisive", "level", "calibration")

#: Where a reading comes from.
SOURCES = ("paper", "standard", "guess")

#: The reading that has every default.
DEFAULT = "default"

#: The same under another name: nothing may differ from the default, to the last digit.
NULL = "default, by another name"


class Level(NamedTuple):
    """One way to read it, and the keys of the scenarios that this sets; none if it cannot be run yet."""

    label: str
    settings: dict[str, Any] | None
    #: Further keys, by the scenario that alone has them.
    only: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - a tuple's default, never changed


class Assumption(NamedTuple):
    """Something the paper leaves open."""

    id: str
    says: str
    default: Level
    levels: tuple[Level, ...]
    role: str
    source: str
    why: str
    #: The claims that a calibration, or a default chosen with them in view, was fitted to.
    fitted_to: tuple[str, ...]
    #: Which commit brought the default in.
    introduced: str
    #: Was the default changed after results had been seen?
    is_after_result: bool


class Reading(NamedTuple):
    """A combination of levels: its name, the assumptions that are not at their default, and the keys it sets."""

    name: str
    changed: tuple[tuple[str, str], ...]
    settings: dict[str, Any]
    #: Further keys, by the scenario that alone has them.
    only: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - a tuple's default, never changed

    def at(self, scenario: str) -> dict[str, Any]:
        """The keys it sets in a scenario."""
        return {**self.settings, **self.only.get(scenario, {})}


def read(path: Path) -> tuple[Assumption, ...]:
    """The assumptions in a file. Raises `UsageError` with the file and the assumption that is wrong."""
    return parse(fields.read_toml(path), str(path))


def parse(table: Mapping[str, Any], file: str = "assumptions.toml") -> tuple[Assumption, ...]:
    """The assumptions of a table as TOML gives it."""
    fields.check(table, ("assumption",), file)
    found = tuple(_assumption(entry, file) for entry in fields.tables(table, "assumption", file))
    names = [a.id for a in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{file}: {name} is there twice")
    return found


_KEYS = (
    "id",
    "says",
    "default",
    "set",
    "only",
    "levels",
    "role",
    "source",
    "why",
    "fitted_to",
    "introduced",
    "after_result",
)


def _assumption(entry: Mapping[str, Any], file: str) -> Assumption:
    name = entry.get("id")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{file}: an assumption without an id")
    where = f"{file}: {name}"
    fields.check(entry, _KEYS, where)
    for key in ("says", "default", "why"):
        if key not in entry:
            raise UsageError(f"{where}: no {key!r}")
    role, source = entry.get("role"), entry.get("source")
    if role not in ROLES:
        raise UsageError(f"{where}: role {role!r}; valid: {', '.join(ROLES)}")
    if source not in SOURCES:
        raise UsageError(f"{where}: source {source!r}; valid: {', '.join(SOURCES)}")
    fitted = fields.texts(entry, "fitted_to", where)
    if role == "calibration" and not fitted:
        raise UsageError(f"{where}: a calibration names the claims that it was fitted to, in `fitted_to`")
    levels = []
    given = entry.get("levels", [])
    for level in given if isinstance(given, list) else [given]:
        if not isinstance(level, Mapping) or set(level) - {"label", "set", "only"} or "label" not in level:
            raise UsageError(f"{where}: a level is {{ label = .., set = {{ KEY = VALUE }} }}, not {level!r}")
        can_be_run = "set" in level or "only" in level
        settings = fields.table(level, "set", where) if can_be_run else None
        levels.append(Level(str(level["label"]), settings, _only(level, where)))
    default = Level(str(entry["default"]), fields.table(entry, "set", where), _only(entry, where))
    labels = [default.label, *(level.label for level in levels)]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"{where}: level {label!r} is there twice")
    return Assumption(
        id=name,
        says=str(entry["says"]),
        default=default,
        levels=tuple(levels),
        role=role,
        source=source,
        why=str(entry["why"]),
        fitted_to=fitted,
        introduced=str(entry.get("introduced", "")),
        is_after_result=bool(entry.get("after_result", False)),
    )


def _only(entry: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    given = entry.get("only", {})
    if not isinstance(given, Mapping) or not all(isinstance(keys, Mapping) for keys in given.values()):
        raise UsageError(f"{where}: `only` is {{ SCENARIO = {{ KEY = VALUE }} }}, not {given!r}")
    return {scenario: dict(keys) for scenario, keys in given.items()}


def readings(assumptions: Iterable[Assumption], *, joint: bool = True) -> list[Reading]:
    """The default; the same by another name; every level one at a time; with `joint` all pairs of decisive levels, and
    all combinations of those of assumptions whose role is `joint`.

    Levels without settings cannot be run and are left out: the report lists them as not run.
    """
    known = tuple(assumptions)
    base = Reading(DEFAULT, (), {}, {})
    for assumption in known:
        _add(base, assumption.default)
    found = [base, base._replace(name=NULL)]
    singles = [(a, lv) for a in known for lv in a.levels if lv.settings is not None]
    for assumption, level in singles:
        found.append(_reading(base, [(assumption, level)]))
    if joint:
        decisive = [s for s in singles if s[0].role in ("decisive", "joint")]
        for first, second in itertools.combinations(decisive, 2):
            if first[0].id != second[0].id:
                found.append(_reading(base, [first, second]))
        alternatives = [[s for s in singles if s[0] is a] for a in known if a.role == "joint"]
        for size in range(3, len(alternatives) + 1):
            for chosen in itertools.combinations(alternatives, size):
                found += [_reading(base, list(changes)) for changes in itertools.product(*chosen)]
    return found


def _reading(base: Reading, changes: list[tuple[Assumption, Level]]) -> Reading:
    changed = tuple((a.id, lv.label) for a, lv in changes)
    name = ", ".join(f"{name} = {label}" for name, label in changed)
    found = Reading(name, changed, dict(base.settings), {key: dict(of) for key, of in base.only.items()})
    for _, level in changes:
        _add(found, level)
    return found


def _add(reading: Reading, level: Level) -> None:
    reading.settings.update(level.settings or {})
    for scenario, keys in level.only.items():
        reading.only.setdefault(scenario, {}).update(keys)


def distinct(readings: Sequence[Reading], scenario: str) -> dict[str, Reading]:
    """For each reading, by name, the first one that sets the same in a scenario: there both give the same runs.

    The default by another name stands for itself: it is made to see whether that is so.
    """
    seen: dict[str, Reading] = {}
    found = {}
    for reading in readings:
        if reading.name == NULL:
            found[NULL] = reading
            continue
        keys = json.dumps(reading.at(scenario), sort_keys=True)
        found[reading.name] = seen.setdefault(keys, reading)
    return found
