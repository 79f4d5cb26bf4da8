"""A study with other assumptions: `airloom study run NAME --reading A=LEVEL` and `--set KEY=VALUE`."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from airloom._core import ScenarioError
from airloom.errors import UsageError
from airloom.scenario import load
from airloom.study.assumptions import Assumption, Level
from airloom.study.document import Document
from airloom.study.folder import Study
from airloom.study.plan import READING, Plan


class Varied(NamedTuple):
    """A study with other assumptions, made at this one reading alone."""

    study: Study
    #: What is changed, in words, one line each.
    says: tuple[str, ...]
    #: The same as part of a folder's name.
    name: str


def vary(study: Study, readings: Sequence[str], settings: Mapping[str, object]) -> Varied:
    """`readings` are `ASSUMPTION=LEVEL`, `settings` keys of the scenarios. Raises `UsageError` with what there is."""
    changed = copy.copy(study)
    #: By scenario, what is set there.
    sets: dict[str, dict[str, object]] = {plan.scenario: {} for plan in study.plans.values()}
    says = []
    for reading in readings:
        found, level = _level(study, reading)
        only = {scenario: dict(keys) for scenario, keys in level.only.items()}
        # A scenario that has no such keys stays as it is.
        for scenario in _takes(study, level.settings or {}):
            only[scenario] = {**(level.settings or {}), **only.get(scenario, {})}
        for scenario, keys in only.items():
            sets[scenario].update(keys)
        default = found.default._replace(label=level.label)
        changed.assumptions = tuple(
            a._replace(default=default, levels=()) if a.id == found.id else a for a in changed.assumptions
        )
        says.append(f"{found.id}: {level.label!r} in place of {found.default.label!r}, in {', '.join(sorted(only))}")
    for key, value in settings.items():
        taken = _takes(study, {key: value})
        for scenario in taken:
            sets[scenario][key] = value
        says.append(f"{key} = {value}, in {', '.join(sorted(taken))}")
    words = ",".join([*readings, *(f"{key}={value}" for key, value in settings.items())])
    changed.plans = {name: _with(plan, words, sets[plan.scenario]) for name, plan in study.plans.items()}
    return Varied(changed, tuple(says), re.sub(r"[^\w.=*-]+", "_", words)[:80])


def _with(plan: Plan, label: str, keys: dict[str, object]) -> Plan:
    """The sweep at this one reading, which comes last: what it sets, it sets, whatever else is varied."""
    return plan._replace(reading_seeds=None, vary={**plan.vary, READING: [{"label": label, "set": keys}]})


def _level(study: Study, reading: str) -> tuple[Assumption, Level]:
    """The assumption and its level that a text names."""
    name, _, label = reading.partition("=")
    found = next((a for a in study.assumptions if a.id == name), None)
    if found is None:
        valid = ", ".join(a.id for a in study.assumptions)
        raise UsageError(f"no assumption {name!r} in {study.name}; valid: {valid}")
    levels = [level for level in found.levels if level.settings is not None]
    # A level may be named by any words of it that no other level has.
    fitting = [lv for lv in levels if lv.label == label] or [lv for lv in levels if label and label in lv.label]
    if len(fitting) != 1:
        valid = "; ".join(f'"{level.label}"' for level in levels) or "none, it has no level that can be run"
        what = "fits several levels" if fitting else "is no level"
        raise UsageError(f"{label!r} {what} of {name}; valid, by words of it: {valid}")
    return found, fitting[0]


def _takes(study: Study, settings: Mapping[str, object]) -> set[str]:
    """Names of the scenarios that have these keys. Raises `UsageError` if none has."""
    taken, refused = set(), None
    for scenario in sorted({plan.scenario for plan in study.plans.values()}):
        try:
            load(study.folder / "scenarios" / f"{scenario}.toml", settings)
            taken.add(scenario)
        except ScenarioError as error:
            refused = error
    if not taken:
        raise UsageError(f"no scenario of {study.name} takes it: {refused}")
    return taken


def beside(varied: Document, default: Document) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: both verdicts and numbers of each claim; those whose verdict is another one stand first."""
    from airloom.study import text

    before = {claim["id"]: claim for claim in default["claims"]}
    both = ((c, before[c["id"]]) for c in text.leaves(varied) if c["id"] in before)
    rows = [[c["id"], c["verdict"], b["verdict"], text.ours(c), text.ours(b), text.paper(c)[:56]] for c, b in both]
    rows.sort(key=lambda row: row[1] == row[2])
    return ["claim", "here", "default", "ours, here", "ours, default", "paper"], rows
