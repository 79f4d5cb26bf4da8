"""Figures to compare with: a JSON file that says what made them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
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


def write(path: Path, measured: Iterable[Measured]) -> None:
    """Writes the figures that the rules speak of."""
    gates: dict[str, dict[str, Any]] = {}
    for each in measured:
        values = {name: each.values(name) for name in each.gate.measures}
        said = {"clock": "virtual" if each.gate.is_virtual else "real", "seeds": each.seeds, "values": values}
        gates.setdefault(each.gate.name, {})[each.link] = said
    made = datetime.now(UTC).isoformat(timespec="seconds")
    text = {"schema": _SCHEMA, "airloom": __version__, "made_utc": made, "machine": machine(), "gates": gates}
    write_whole(path, json.dumps(text, indent=1) + "\n")


class Baseline:
    """What such a file says."""

    def __init__(self, path: Path) -> None:
        """Reads it. Raises `UsageError`."""
        found = read_json(path)
        if not isinstance(found, Mapping) or found.get("schema") != _SCHEMA:
            raise UsageError(f"{path} is no baseline of this version; make one with --write-baseline")
        self._gates = found.get("gates", {})
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
