"""What happened to the links of a run: outages and other changes, the radio's set-ups and releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from airloom.analysis.units import duration_s

if TYPE_CHECKING:
    from airloom.run import Run

#: More stays in radio states than this are a pattern that names would hide.
_MOST_STAYS = 12

#: What a stay in a radio state is called that people ask for by name (TS 25.331: promotions; idle: released).
_STAYS = {"idle-dch": "radio set up", "fach-dch": "back to DCH", "fach": "FACH", "idle": "radio released"}


class Happening(NamedTuple):
    """Something at a moment, or from one moment to another, in seconds since the start of the run."""

    begin_s: float
    #: `None`: a moment.
    end_s: float | None
    name: str


def happenings(run: Run) -> list[Happening]:
    """The timeline of the scenario, what was changed by hand, and stays in radio states if they are few; by time.

    >>> import airloom as al
    >>> happenings(al.load("phs-384k").run())
    [Happening(begin_s=5.0, end_s=None, name='bundle.member.5 down')]
    """
    manifest = run.manifest
    entries = [*(manifest["scenario"].get("timeline") or []), *manifest.get("changes", [])]
    end_s = run.summary.get("simulated_s", float("inf"))
    found = [one for one in of_timeline(entries) if one.begin_s <= end_s]
    if (run.folder / "states.parquet").is_file():
        found += _stays(run.states)
    return sorted(found, key=lambda one: (one.begin_s, one.name))


def of_timeline(entries: Iterable[Mapping[str, Any]]) -> list[Happening]:
    """Entries of a timeline; what goes down and comes up again is one happening.

    >>> of_timeline([{"at": "20s", "target": "radio", "set": {"state": "down"}},
    ...              {"at": "23s", "target": "radio", "set": {"state": "up"}}])
    [Happening(begin_s=20.0, end_s=23.0, name='radio down')]
    """
    found: list[Happening] = []
    down: dict[str, int] = {}
    for entry in sorted(entries, key=lambda entry: duration_s(str(entry["at"]))):
        at, target, changes = duration_s(str(entry["at"])), str(entry["target"]), entry["set"]
        state = changes.get("state") if isinstance(changes, Mapping) else None
        if state == "up" and target in down:
            number = down.pop(target)
            found[number] = found[number]._replace(end_s=at)
            continue
        if state == "down":
            down[target] = len(found)
        found.append(Happening(at, None, f"{target} {_in_words(changes)}"))
    return found


def _in_words(changes: object) -> str:
    if not isinstance(changes, Mapping):
        return str(changes)
    return ", ".join(str(value) if key == "state" else f"{key} {_plain(value)}" for key, value in changes.items())


def _plain(value: object) -> str:
    """A value in few words: those of a table with their keys."""
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return str(value)


def _stays(states: pl.DataFrame) -> list[Happening]:
    rows = states.with_columns(pl.col("host", "state").cast(pl.String)).filter(pl.col("state") != "tx")
    # A stay lasts until the next one begins, where its row does not say.
    following = pl.col("t_ns").shift(-1).over("host", "link", "station")
    rows = rows.with_columns(until_ns=pl.coalesce("until_ns", following))
    # The state in which a run begins has not been entered; a set-up has, by what is sent at once.
    entered = (pl.col("t_ns") > 0) | pl.col("state").is_in(["idle-dch", "fach-dch"])
    rows = rows.filter(pl.col("state").is_in(list(_STAYS)) & entered)
    if rows.height > _MOST_STAYS:
        return []
    found = []
    several = rows["host"].n_unique() > 1
    for host, state, begin, until in rows.select("host", "state", "t_ns", "until_ns").iter_rows():
        name = f"{host}: {_STAYS[state]}" if several else _STAYS[state]
        is_span = state in ("idle-dch", "fach-dch") and until is not None
        found.append(Happening(begin / 1e9, until / 1e9 if is_span else None, name))
    return found
