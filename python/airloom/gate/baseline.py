"""Figures to compare with: a JSON file that says what made them."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airloom._core import __version__
from airloom.errors import UsageError
from airloom.gate.measure import Measured
from airloom.json_file import read_json
from airloom.places import write_whole

_SCHEMA = 1


def machine() -> dict[str, Any]:
    """What figures of real time may depend on."""
    return {"system": " ".join(os.uname()[::2]), "cpus": os.cpu_count(), "machine": platform.machine()}


def write(path: Path, measured: Sequence[Measured], *, is_part: bool = False, skips: bool = False) -> str | None:
    """Writes the figures that the rules speak of, or says why not: there are none, or not all.

    In a file that is there already a `is_part` of the gates leaves the others as they are, and what this machine
    cannot do, if it `skips` that, keeps the figures that it had.
    """
    skipped = [each for each in measured if skips and each.is_unsupported]
    done = [each for each in measured if not (skips and each.is_unsupported)]
    if not done:
        return "nothing was measured"
    for each in done:
        if (lack := _lack(each)) is not None:
            return lack
    gates: dict[str, dict[str, Any]] = {}
    if (is_part or skipped) and path.exists():
        try:
            before = Baseline(path)
        except UsageError as error:
            return str(error)
        if is_part:
            gates = before.gates_without({each.gate.name for each in measured})
        for each in skipped:
            if (said := before.figures(each.gate.name, each.link)) is not None:
                gates.setdefault(each.gate.name, {})[each.link] = said
        if gates and before.notes:
            return f"it has figures that were not measured anew, and {before.notes[0]}"
    for each in done:
        values = {name: each.values(name) for name in each.gate.measures}
        said = {"clock": "virtual" if each.gate.is_virtual else "real", "seeds": each.seeds, "values": values}
        gates.setdefault(each.gate.name, {})[each.link] = said
    made = datetime.now(UTC).isoformat(timespec="seconds")
    text = {"schema": _SCHEMA, "airloom": __version__, "made_utc": made, "machine": machine(), "gates": gates}
    write_whole(path, json.dumps(text, indent=1) + "\n")
    return None


def _lack(of: Measured) -> str | None:
    """Why there are not all figures of a link."""
    where = f"{of.gate.name}, {of.link}"
    if of.error is not None:
        return f"{where}: {of.error}"
    for name in of.gate.measures:
        if all(value is None or math.isnan(value) for value in of.values(name)):
            return f"{where}: no run has {name}"
    return None


class Baseline:
    """What such a file says."""

    def __init__(self, path: Path) -> None:
        """Reads it. Raises `UsageError`."""
        found = read_json(path)
        gates = found.get("gates") if isinstance(found, Mapping) and found.get("schema") == _SCHEMA else None
        if not isinstance(gates, dict):
            raise UsageError(f"{path} is no baseline of this version; make one with --write-baseline")
        self._gates = gates
        #: Why its figures of real time may be others.
        self.notes = []
        if found.get("machine") != machine():
            self.notes.append(f"{path} was made on another machine: {found.get('machine')}")
        if found.get("airloom") != __version__:
            self.notes.append(f"{path} was made by airloom {found.get('airloom')}")

    def values(self, gate: str, link: str, measure: str) -> list[float]:
        """Its figures; none if it has none."""
        try:
            found = self._gates[gate][link]["values"][measure]
            return [float(value) for value in found if value is not None]
        except (KeyError, TypeError, ValueError):
            return []

    def figures(self, gate: str, link: str) -> Any:
        """All that it says of a gate over a link; `None` if that is nothing."""
        try:
            return self._gates[gate][link]
        except (KeyError, TypeError):
            return None

    def gates_without(self, names: set[str]) -> dict[str, Any]:
        """What it says of all gates but these."""
        return {name: said for name, said in self._gates.items() if name not in names}
