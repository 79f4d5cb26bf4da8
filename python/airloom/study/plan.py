"""`sweep.toml` of a study: its sweeps, what they vary, and with which seeds they are made quick and full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError
from airloom.scenario import Scenario, load
from airloom.study import programs
from airloom.study.assumptions import Reading, distinct
from airloom.study.programs import DEPTHS
from airloom.sweep import Sweep

#: The axis of a sweep over readings.
READING = "reading"


class Plan(NamedTuple):
    """One sweep of a study."""

    name: str
    scenario: str
    #: Keys that this sweep sets in every run.
    settings: dict[str, Any]
    vary: dict[str, list[Any]]
    #: By depth; a sweep without seeds for `quick` belongs to the full study only.
    seeds: dict[str, str]
    #: Tables that are kept of every run.
    tables: tuple[str, ...]
    #: Keep whole run folders?
    folders: bool
    #: Seeds at every other reading of the assumptions; none if this sweep is made at the default only.
    reading_seeds: dict[str, str] | None
    #: What is varied there, where that is less.
    reading_vary: dict[str, list[Any]]
    #: For runs in real time: the hosts that are real, and the program in the first of them.
    real: tuple[str, ...]
    command: tuple[str, ...]

    @property
    def is_real_time(self) -> bool:
        """Is it made by the second clock, with real programs?"""
        return bool(self.command)

    def sweep(self, folder: Path, default: Reading, depth: str) -> Sweep:
        """The sweep at the default reading."""
        return self._scenario(folder, default).sweep(
            self.vary,
            self.seeds[depth],
            tables=self.tables,
            folders=self.folders,
            real_time=self.is_real_time,
            command=programs.filled(self.command, folder) or None,
        )

    def reading_sweep(self, folder: Path, readings: Sequence[Reading], depth: str) -> Sweep:
        """The sweep at all readings that differ in its scenario, the default among them: they share their seeds."""
        assert self.reading_seeds is not None
        # Readings that set the same in this scenario are made once.
        once = {reading.name: reading for reading in distinct(readings, self.scenario).values()}
        levels = [{"label": reading.name, "set": reading.at(self.scenario)} for reading in once.values()]
        # The readings come last: what they set, they set.
        vary = {**self.reading_vary, READING: levels}
        return self._scenario(folder, readings[0]).sweep(
            vary, self.reading_seeds[depth], tables=self.tables, folders=self.folders
        )

    def _scenario(self, folder: Path, default: Reading) -> Scenario:
        return load(
            folder / "scenarios" / f"{self.scenario}.toml", {**default.at(self.scenario), **self.settings}, self.real
        )


_KEYS = ("scenario", "set", "vary", "seeds", "tables", "folders", "reading_seeds", "reading_vary", "real", "command")


def read(path: Path) -> dict[str, Plan]:
    """The sweeps of a file, by name."""
    return {name: _plan(name, entry, f"{path}: [{name}]") for name, entry in fields.read_toml(path).items()}


def _plan(name: str, entry: Any, where: str) -> Plan:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: expected a table")
    fields.check(entry, _KEYS, where)
    if "scenario" not in entry:
        raise UsageError(f"{where}: no 'scenario'")
    vary = fields.table(entry, "vary", where)
    if "command" in entry and "reading_seeds" in entry:
        raise UsageError(f"{where}: what runs in real time is made at the default reading only")
    return Plan(
        name=name,
        scenario=str(entry["scenario"]),
        settings=fields.table(entry, "set", where),
        vary=vary,
        seeds=_seeds(entry.get("seeds"), where),
        tables=fields.texts(entry, "tables", where, ("pages",)),
        folders=bool(entry.get("folders", False)),
        reading_seeds=_seeds(entry["reading_seeds"], where) if "reading_seeds" in entry else None,
        reading_vary={**vary, **fields.table(entry, "reading_vary", where)},
        real=fields.texts(entry, "real", where),
        command=fields.texts(entry, "command", where),
    )


def _seeds(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping) or not {"full"} <= set(given) <= set(DEPTHS):
        raise UsageError(f'{where}: seeds are {{ quick = "1..5", full = "1..100" }}, not {given!r}')
    return {depth: str(seeds) for depth, seeds in given.items()}
