"""Sweep files: a scenario, what is varied and how it is run, in one TOML file.

```toml
scenario = "umts-page"             # a shipped scenario, or a path beside this file
seeds = "1..20"

[set]                              # keys of the scenario that all runs share
"links.radio.rate.downlink" = "384kbit/s"

[vary]
"links.radio.loss.downlink" = [0, 0.05, 0.2]
"hosts.mobile.transport" = [
    { label = "NewReno", tcp = { congestion = "newreno" } },
    { label = "Tahoe", tcp = { congestion = "tahoe" } },
]
```

The other keys are options of `airloom sweep`, with `_` for `-`: how it is run, not what is shown of it. `tables` is a
list of what `--table` names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError
from airloom.scenario import load as load_scenario
from airloom.sweep.axes import axes
from airloom.sweep.sweep import MOST_SEEDS, Sweep

#: Keys of a sweep file and their types.
_KEYS: dict[str, tuple[type, ...]] = {
    "scenario": (str,),
    "set": (dict,),
    "vary": (dict,),
    "seeds": (str, int, list),
    "tables": (list,),
    "folders": (bool,),
    "emulate": (bool,),
    "command": (list,),
    "workers": (int,),
    "on": (str,),
    "out": (str,),
    "force": (bool,),
    "max_failures": (int,),
    "until_ci": (str, float, int),
    "measure": (str,),
}

_TYPES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}

#: Octets of a file that are read to know what it is.
_MOST = 9 << 20

#: What `Sweep.run` is told.
_RUN = ("workers", "on", "out", "force", "max_failures", "measure")


class Plan(NamedTuple):
    """A sweep, and the arguments of its `run`."""

    sweep: Sweep
    options: dict[str, Any]


def is_sweep_file(name: str) -> bool:
    """Is this a file that names a scenario, rather than a scenario?"""
    path = Path(name)
    if not path.is_file():
        return False
    try:
        # It may be anything, a capture of gigabytes too.
        with path.open("rb") as opened:
            return isinstance(tomllib.loads(opened.read(_MOST).decode()).get("scenario"), str)
    except (OSError, ValueError, RecursionError):
        return False  # what is wrong with it is said when it is read as a scenario


def load(file: Path | str) -> Sweep:
    """The sweep that a sweep file describes, with the file's options left to the caller.

    >>> _ = Path("loss.toml").write_text('scenario = "umts-page"\\nvary."links.radio.loss.downlink" = [0, 0.1]\\n')
    >>> load("loss.toml")
    Sweep('umts-page', 2 points x 20 seeds)
    """
    return plan(str(file)).sweep


def plan(
    name: str,
    settings: Mapping[str, object] | None = None,
    vary: Mapping[str, Iterable[Any]] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """The sweep of a scenario or a sweep file, with what the command line says besides or instead.

    An axis given here replaces the file's of the same key; so does each of the `options` that is not `None`.
    """
    file: dict[str, Any] = {"scenario": name}
    if is_sweep_file(name):
        file = _read(Path(name))
        # Beside the sweep file first: a study's own scenario may be called as a shipped one.
        beside = Path(name).parent / file["scenario"]
        if beside.is_file():
            file["scenario"] = str(beside)
    said = {**file, **{key: value for key, value in (options or {}).items() if value is not None}}
    scenario = load_scenario(said["scenario"], {**said.get("set", {}), **(settings or {})})
    until_ci = said.get("until_ci")
    sweep = Sweep(
        scenario,
        {**said.get("vary", {}), **(vary or {})},
        said.get("seeds", "1..20" if until_ci is None else f"1..{MOST_SEEDS}"),
        tables=said.get("tables", ("pages", "flows")),
        folders=said.get("folders", False),
        real_time=said.get("emulate", False),
        command=said.get("command"),
    )
    run = {key: said[key] for key in _RUN if key in said}
    if until_ci is not None:
        run["until_ci"] = _share(until_ci)
    return Plan(sweep, run)


def _read(path: Path) -> dict[str, Any]:
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    fields.check(found, _KEYS, f"{path}, a sweep file")
    for key, value in found.items():
        if not isinstance(value, _KEYS[key]) or (isinstance(value, bool) and bool not in _KEYS[key]):
            wanted = " or ".join(_TYPES[kind] for kind in _KEYS[key])
            raise UsageError(f"{path}: `{key}` is {wanted}, not {value!r}")
    for key, values in found.get("vary", {}).items():
        if not isinstance(values, list):
            raise UsageError(f"{path}: `vary.{key}` is a list of values; a key with dots stands between quotes")
    try:
        axes(found.get("vary", {}))
    except UsageError as error:
        raise UsageError(f"{path}: vary: {error}") from None
    return found


def _share(given: str | float) -> float:
    """`2%` or `0.02`."""
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"until-ci {given}: expected a share of the mean such as 2% or 0.02")
    return share
