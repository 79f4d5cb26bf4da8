"""Gate files.

```toml
runs = 20                                    # for all gates that say nothing else

[gate.checkout]
links = ["wpt/3g", "umts-hsdpa"]
command = ["./checkout-test"]                # or a text, for a shell
rules = ["elapsed_s.p75 <= 8"]

[gate.page]
scenario = "umts-page"                       # virtual time
runs = 50
rules = [
    "page_load_s.median <= 8",
    { measure = "page_load_s.mean", vs = "baseline.json", max_regression = "10 %" },
]
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError
from airloom.gate.rules import Rule

#: What a gate measures; it has one of them.
KINDS = ("scenario", "command", "url")

#: Keys, the types of their values in words, and whether they may stand in front of all gates too.
_KEYS: dict[str, tuple[tuple[type, ...], str, bool]] = {
    "scenario": ((str,), "a text", False),
    "command": ((str, list), "a text or a list of texts", False),
    "url": ((str,), "a text", False),
    "http": ((str,), '"1.1", "2" or "3"', False),
    "links": ((list,), "a list of texts", True),
    "rules": ((list,), "a list of rules", False),
    "runs": ((int,), "a whole number above 0", True),
    "seed": ((int,), "a whole number", True),
    "set": ((dict,), "a table", True),
    "timeout_s": ((int, float), "a number of seconds", True),
    "retries": ((int,), "a whole number", True),
    "lateness_limit": ((str,), "a time such as 2ms", True),
    "loopback": ((list,), "a list of ports", True),
    "outside": ((bool,), "true or false", True),
}

#: A run that was not valid is made again so often.
_RETRIES = 2
_TIMEOUT_S = 600.0
_MOST_RUNS = 100_000


class Gate(NamedTuple):
    """What is measured, and what has to be true of it."""

    name: str
    #: One of `KINDS`.
    kind: str
    #: The scenario, the words of the command, or the address.
    what: str | tuple[str, ...]
    #: Bearers, presets or scenarios (of a page no scenarios); of a scenario its own name alone.
    links: tuple[str, ...]
    rules: tuple[Rule, ...]
    runs: int
    #: The seed of the first run; the others follow.
    seed: int
    #: Keys of the scenario, or of the link; of a page those of its load's scenario (`links.radio.delay`).
    settings: dict[str, object]
    timeout_s: float
    retries: int
    #: Above which 99th percentile of lateness a run is not valid, if not what the scenario says.
    lateness_limit: str | None
    loopback: tuple[int, ...]
    outside: bool
    #: The version of HTTP of a page, if not what browser and server agree on.
    http: str | None
    #: The folder of the file: where baselines are, and scenarios that are files. Commands run in the current one.
    folder: Path

    @property
    def is_virtual(self) -> bool:
        """Is it simulated? Then its figures are exact."""
        return self.kind == "scenario"

    @property
    def measures(self) -> list[str]:
        """What the rules speak of."""
        return list(dict.fromkeys(rule.measure for rule in self.rules))


def load(path: Path | str) -> list[Gate]:
    """The gates of a file. Raises `UsageError`: what is wrong, and what would be valid."""
    path = Path(path)
    found = fields.read_toml(path)
    shared = [key for key, (_, _, is_shared) in _KEYS.items() if is_shared]
    fields.check(found, ["gate", *shared], str(path))
    gates = fields.table(found, "gate", str(path))
    if not gates:
        raise UsageError(f"{path}: there is no gate; expected [gate.NAME] with {', '.join(KINDS)} and rules")
    common = {key: found[key] for key in shared if key in found}
    return [_gate(name, fields.table(gates, name, str(path)), common, path) for name in gates]


def _gate(name: str, own: dict[str, Any], common: dict[str, Any], path: Path) -> Gate:
    where = f"{path}: gate {name}"
    fields.check(own, _KEYS, where)
    kinds = [kind for kind in KINDS if kind in own]
    if len(kinds) != 1:
        raise UsageError(f"{where}: expected one of {', '.join(KINDS)}, not {' and '.join(kinds) or 'none'}")
    said = {**common, **own}
    for key, value in said.items():
        types, wanted, _ = _KEYS[key]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise UsageError(f"{where}: {key} is {wanted}, not {value!r}")
    (kind,) = kinds
    links = fields.texts(said, "links", where)
    if kind == "scenario":
        if "links" in own:
            raise UsageError(
                f"{where}: a scenario has its own links; `set` changes their keys, `command` runs behind one"
            )
        links = (said["scenario"],)
    elif not links:
        raise UsageError(f"{where}: {kind} needs links, such as links = ['wpt/3g']")
    elif twice := next((link for link in links if links.count(link) > 1), None):
        raise UsageError(f"{where}: links has {twice} twice")
    if "http" in own and kind != "url":
        raise UsageError(f"{where}: http is the version by which a page is loaded; a {kind} has none")
    what = said[kind] if kind != "command" or isinstance(said[kind], str) else fields.texts(said, kind, where)
    rules = tuple(Rule.read(each, where) for each in said.get("rules", []))
    if not rules or not what:
        raise UsageError(f"{where}: {'rules' if what else kind} is empty")
    runs = said.get("runs", 1 if kind == "scenario" else 10)
    seed, retries = said.get("seed", 1), said.get("retries", _RETRIES)
    if not 0 < runs <= _MOST_RUNS or not 0 <= seed < 2**63 or retries < 0 or not said.get("timeout_s", 1) > 0:
        raise UsageError(f"{where}: runs are 1 to {_MOST_RUNS}, seed and retries not below 0, timeout_s above 0")
    ports = said.get("loopback", [])
    if not all(isinstance(port, int) and 0 < port < 65536 for port in ports):
        raise UsageError(f"{where}: loopback is a list of ports from 1 to 65535, not {ports!r}")
    return Gate(
        name=name,
        kind=kind,
        what=what,
        links=links,
        rules=rules,
        runs=runs,
        seed=seed,
        settings=said.get("set", {}),
        timeout_s=float(said.get("timeout_s", _TIMEOUT_S)),
        retries=retries,
        lateness_limit=said.get("lateness_limit"),
        loopback=tuple(ports),
        outside=said.get("outside", False),
        http=said.get("http"),
        folder=path.parent,
    )
