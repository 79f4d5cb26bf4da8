"""A study with other assumptions: `airloom study run NAME --reading A=LEVEL` and `--set KEY=VALUE`."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from airloom._core import ScenarioError
from airloom.errors import UsageError
from airloom.scenario import load
from airloom.study.assumptions import Assumption
from airloom.study.document import Document
from airloom.study.folder import Study


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
    says = []
    for reading in readings:
        changed.assumptions, said = _at(study, changed.assumptions, reading)
        says.append(said)
    plans = {name: plan._replace(reading_seeds=None) for name, plan in study.plans.items()}
    for key, value in settings.items():
        taken = _takes(study, key, value)
        plans = {
            name: plan._replace(settings={**plan.settings, key: value}) if plan.scenario in taken else plan
            for name, plan in plans.items()
        }
        says.append(f"{key} = {value} in the scenarios {', '.join(sorted(taken))}")
    changed.plans = plans
    words = [*readings, *(f"{key}={value}" for key, value in settings.items())]
    return Varied(changed, tuple(says), re.sub(r"[^\w.=*-]+", "_", ",".join(words))[:80])


def _at(study: Study, known: tuple[Assumption, ...], reading: str) -> tuple[tuple[Assumption, ...], str]:
    """The assumptions with another level as default, and what that means."""
    name, _, label = reading.partition("=")
    found = next((a for a in known if a.id == name), None)
    if found is None:
        raise UsageError(f"no assumption {name!r} in {study.name}; valid: {', '.join(a.id for a in known)}")
    levels = [level for level in found.levels if level.settings is not None]
    # A level may be named by any words of it that no other level has.
    fitting = [lv for lv in levels if lv.label == label] or [lv for lv in levels if label and label in lv.label]
    if len(fitting) != 1:
        valid = "; ".join(f'"{level.label}"' for level in levels) or "none, it has no level that can be run"
        what = "fits several levels" if fitting else "is no level"
        raise UsageError(
            f"{label!r} {what} of {name}; valid, by words of it: {valid} (default: {found.default.label!r})"
        )
    (level,) = fitting
    said = f"{name}: {level.label!r} in place of {found.default.label!r}"
    # What the default sets stays set where the level says nothing else, as in every reading.
    settings = {**(found.default.settings or {}), **(level.settings or {})}
    only = {key: dict(of) for key, of in found.default.only.items()}
    for scenario, keys in level.only.items():
        only.setdefault(scenario, {}).update(keys)
    default = level._replace(settings=settings, only=only)
    return tuple(a._replace(default=default, levels=()) if a is found else a for a in known), said


def _takes(study: Study, key: str, value: object) -> set[str]:
    """Names of the scenarios that have this key."""
    taken, refused = set(), None
    for scenario in sorted({plan.scenario for plan in study.plans.values()}):
        try:
            load(study.folder / "scenarios" / f"{scenario}.toml", {key: value})
            taken.add(scenario)
        except ScenarioError as error:
            refused = error
    if not taken:
        raise UsageError(f"no scenario of {study.name} takes {key} = {value}: {refused}")
    return taken


def beside(varied: Document, default: Document) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: both verdicts and numbers of each claim; those whose verdict is another one stand first."""
    from airloom.study import text

    before = {claim["id"]: claim for claim in default["claims"]}
    rows = [
        [
            c["id"],
            c["verdict"],
            before[c["id"]]["verdict"],
            text.ours(c),
            text.ours(before[c["id"]]),
            text.paper(c)[:56],
        ]
        for c in text.leaves(varied)
        if c["id"] in before
    ]
    rows.sort(key=lambda row: row[1] == row[2])
    return ["claim", "here", "default", "ours, here", "ours, default", "paper"], rows
