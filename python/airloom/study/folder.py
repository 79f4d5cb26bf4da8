"""Studies that come with the package: found by name, read as a whole, and checked."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tomllib
from collections.abc import Callable
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import ModuleType

from airloom.errors import UsageError
from airloom.studies import titles
from airloom.study import assumptions, claims, paper, plan, programs
from airloom.study.assumptions import Assumption, Reading
from airloom.study.claims import Claims
from airloom.study.data import Data
from airloom.study.drawing import StudyFigure, StudyTable
from airloom.study.plan import Plan
from airloom.study.programs import Program
from airloom.study.rules import Evidence

#: From the tables at a reading to what is held against a claim.
Computation = Callable[[Data], Evidence]


def at_default(of: Computation) -> Computation:
    """For what no reading changes, or no reading makes."""

    def evidence(data: Data) -> Evidence:
        data.at_default_only()
        return of(data)

    return evidence


def _home() -> Path:
    return Path(str(resources.files("airloom") / "studies"))


def names() -> list[str]:
    """Names of the shipped studies.

    >>> "wap-vs-http-wcdma" in names()
    True
    """
    return list(titles())


def open_study(name: str | Path) -> Study:
    """The shipped study of that name or of that first author (`ueno`, `ueno-2002`), or the one in a folder.

    >>> open_study("tsaoussidis").name
    'wave-and-wait'
    """
    place = Path(name)
    if (place / "claims.toml").is_file():
        return Study(place.resolve())
    return Study(_home() / shipped_name(str(name)))


def shipped_name(name: str) -> str:
    """The name of a shipped study that goes by this one. Raises `UsageError` with those there are."""
    if name in names():
        return name
    by_author = authors()
    if name in by_author:
        return by_author[name]
    valid = ", ".join([*names(), *(author for author in by_author if "-" not in author)])
    raise UsageError(f"no study {name!r}; valid: {valid}, or a folder with claims.toml")


def authors() -> dict[str, str]:
    """Names of the shipped studies by the paper's first author, with and without its year."""
    found = {}
    for name in names():
        file = _home() / name / "claims.toml"
        of = paper.parse(tomllib.loads(file.read_text(encoding="utf-8")).get("paper"), str(file))
        found.update({of.author: name, of.name: name})
    return found


def copy_study(study: Study, target: Path) -> None:
    """Copies a study's files, without the results that ship with it. Raises `UsageError` if `target` is there."""
    if target.exists():
        raise UsageError(f"{target} is there already")
    shutil.copytree(study.folder, target, ignore=shutil.ignore_patterns("__pycache__", "shipped", "expected"))


class Study:
    """One study, as its files say."""

    def __init__(self, folder: Path) -> None:
        """Reads and checks everything: names in one file that another one does not know are errors."""
        self.folder = folder
        self.name = folder.name
        self.claims: Claims = claims.read(folder / "claims.toml")
        self.assumptions: tuple[Assumption, ...] = assumptions.read(folder / "assumptions.toml")
        self.plans: dict[str, Plan] = plan.read(folder / "sweep.toml")
        self.programs: dict[str, Program] = programs.read(folder / "programs.toml")
        known = {a.id for a in self.assumptions}
        ids = {claim.id for claim in self.claims.leaves()} | {claim.id for claim in self.claims.claims}
        for claim in self.claims.leaves():
            for assumption in claim.assumptions:
                if assumption not in known:
                    raise UsageError(f"{folder}: {claim.id} rests on {assumption!r}, which is no assumption")
        scenarios = {plan.scenario for plan in self.plans.values()}
        for assumption_ in self.assumptions:
            for level in (assumption_.default, *assumption_.levels):
                for scenario in level.only:
                    if scenario not in scenarios:
                        raise UsageError(
                            f"{folder}: {assumption_.id} sets keys of {scenario!r}, which is no sweep's scenario"
                        )
            for claim_id in assumption_.fitted_to:
                if claim_id not in ids:
                    raise UsageError(f"{folder}: {assumption_.id} was fitted to {claim_id!r}, which is no claim")

    @property
    def real_time(self) -> frozenset[str]:
        """Names of the sweeps and programs that belong to the second clock."""
        made = (self.plans, self.programs)
        return frozenset(name for each in made for name, entry in each.items() if entry.is_real_time)

    def same_as(self, depth: str) -> dict[str, dict[str, str]]:
        """By sweep and reading: the reading whose runs stand for it."""
        readings = self.readings(depth)
        return {
            name: {reading: first.name for reading, first in assumptions.distinct(readings, plan.scenario).items()}
            for name, plan in self.plans.items()
        }

    @property
    def title(self) -> str:
        """The first heading of its page."""
        for line in (self.folder / "README.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                return line[2:].strip()
        return self.name

    @cached_property
    def module(self) -> ModuleType:
        """`study.py`. It may import packages that lie beside it, whose names should be the study's own."""
        path = self.folder / "study.py"
        name = f"airloom_study_{self.name.replace('-', '_')}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"{path} cannot be read")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        sys.path.insert(0, str(self.folder))
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(self.folder))
        return module

    @cached_property
    def computations(self) -> dict[str, Computation]:
        """What `study.py` computes, by the id of the claim (`COMPUTE`); for a claim there is, with a criterion."""
        found: dict[str, Computation] = dict(self.module.COMPUTE)
        leaves = {claim.id: claim for claim in self.claims.leaves()}
        for claim in found:
            if claim not in leaves:
                raise UsageError(f"{self.folder}: study.py computes {claim}, which is no claim (or has parts)")
            if not leaves[claim].has_criterion:
                raise UsageError(
                    f"{self.folder}: {claim} is computed, but says nothing about what would be near enough"
                )
        return found

    @property
    def figures(self) -> dict[str, StudyFigure]:
        """What `study.py` draws (`FIGURES`), by key."""
        return getattr(self.module, "FIGURES", {})

    @property
    def tables(self) -> dict[str, StudyTable]:
        """The tables of `study.py` (`TABLES`), by key."""
        return getattr(self.module, "TABLES", {})

    def readings(self, depth: str) -> list[Reading]:
        """The readings of the verdict map: quick ones change one assumption at a time."""
        return assumptions.readings(self.assumptions, joint=depth == "full")
