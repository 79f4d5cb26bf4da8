"""All results of a study: verdicts at the default and at every other reading, and the controls of the machinery."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from airloom.analysis import statistics
from airloom.errors import UsageError
from airloom.study import rules
from airloom.study.assumptions import DEFAULT, NULL
from airloom.study.claims import GIVEN, SCORED
from airloom.study.data import Data, NotMade, NotSwept
from airloom.study.folder import Study
from airloom.study.rules import DIFFERS, FITTED, HOLDS, VERDICTS, Evidence, Pair, Result, Value
from airloom.sweep import SweepResults


class Flip(NamedTuple):
    """A reading at which a claim has another clear verdict than at the default."""

    reading: str
    verdict: str


class Row(NamedTuple):
    """A claim over the readings."""

    claim: str
    #: Its verdict at each reading, by the reading's name; with as many seeds as the readings have.
    verdicts: dict[str, str]
    #: Those with the fewest changes that turn `holds` into `differs` or the other way round.
    flips: tuple[Flip, ...]

    @property
    def share(self) -> float | None:
        """The share of readings, the default among them, at which it holds; of those at which it can fail, if any."""
        can_fail = [v for v in self.verdicts.values() if v != GIVEN]
        return sum(v in (HOLDS, FITTED) for v in can_fail) / len(can_fail) if can_fail else None


class Pairing(NamedTuple):
    """The control of pairing for one claim: independent seeds must give the same mean, with a wider interval."""

    claim: str
    paired: statistics.Difference
    unpaired: statistics.Difference
    agrees: bool


class Outcome(NamedTuple):
    """Everything that a report of a study says."""

    study: Study
    depth: str
    seeds: dict[str, int]
    #: By id: of claims, their parts and controls.
    results: dict[str, Result]
    map: tuple[Row, ...]
    pairings: tuple[Pairing, ...]
    #: What differed between the default and the same under another name: nothing, if all is well.
    null_differences: tuple[str, ...]
    #: Number of results that were compared for that.
    null_compared: int
    #: Assumptions whose default was changed after results were seen.
    after_result: tuple[str, ...]
    #: Seeds of each reading in the map; 0 if there is none.
    reading_seeds: int

    def score(self, kinds: tuple[str, ...] = SCORED) -> dict[str, int]:
        """Number of claims of these kinds by verdict. Controls and parts are no claims, what is given no result."""
        verdicts = [self.results[c.id].verdict for c in self.study.claims.claims if c.kind in kinds]
        counted = {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict != GIVEN}
        return {verdict: n for verdict, n in counted.items() if n}


def evaluate(study: Study, place: Path, depth: str) -> Outcome:
    """Judges every claim from the tables in `place`."""
    if not any(place.glob("*/runs.parquet")):
        flag = " --quick" if depth == "quick" else ""
        raise UsageError(f"{place} holds no results of {study.name}: airloom study run {study.name}{flag}")
    data = Data(place, None, study.real_time)
    evidence, missing = _evidence(study, data)
    results = _results(study, evidence, missing)
    rows, null, compared = _map(study, place, depth)
    return Outcome(
        study=study,
        depth=depth,
        seeds=dict(data.seeds),
        results=results,
        map=rows,
        pairings=_pairings(study, evidence),
        null_differences=null,
        null_compared=compared,
        after_result=_after_result(study),
        reading_seeds=_reading_seeds(place) if rows else 0,
    )


def _evidence(study: Study, data: Data, *, whole: bool = True) -> tuple[dict[str, Evidence], dict[str, str]]:
    """What is held against each claim; and why there is nothing for those that need real time."""
    found: dict[str, Evidence] = {}
    missing: dict[str, str] = {}
    for claim, compute in study.computations.items():
        try:
            found[claim] = compute(data)
        except NotMade as error:
            missing[claim] = str(error)
        except NotSwept as error:
            if whole:
                raise UsageError(f"{study.name}: {claim}: {error}") from None
    return found, missing


def _results(study: Study, evidence: dict[str, Evidence], missing: dict[str, str]) -> dict[str, Result]:
    """Claims and controls are corrected for their number apart: a control is no claim of the paper.

    A claim is judged without the parts that are `missing`, unless all of them are.
    """
    found: dict[str, Result] = {}
    calibrated = _calibrated(study)
    for group in (study.claims.claims, study.claims.controls):
        leaves = [leaf for claim in group for leaf in (claim.parts or (claim,))]
        judged = rules.judge(leaves, [evidence.get(leaf.id) for leaf in leaves])
        for leaf, result in zip(leaves, judged, strict=True):
            if leaf.id in missing:
                result = rules.nothing(missing[leaf.id])
            found[leaf.id] = rules.fitted(result) if leaf.id in calibrated else result
        for claim in group:
            if claim.parts:
                made = [part.id for part in claim.parts if part.id not in missing]
                whole = rules.whole([found[part] for part in made or (part.id for part in claim.parts)])
                if made and len(made) < len(claim.parts):
                    whole = whole._replace(why=f"{whole.why}; {len(claim.parts) - len(made)} more not made here")
                found[claim.id] = rules.fitted(whole) if claim.id in calibrated else whole
    return found


def _calibrated(study: Study) -> frozenset[str]:
    """Claims that predict nothing: those that a setting was fitted to, and what is tied to one of them."""
    found = {claim for a in study.assumptions for claim in a.fitted_to}
    for claim in study.claims.claims:
        if claim.id in found:
            found.update(part.id for part in claim.parts)
    every = [each for claim in (*study.claims.claims, *study.claims.controls) for each in (claim, *claim.parts)]
    while more := {each.id for each in every if each.id not in found and found.intersection(each.tied_to)}:
        found |= more
    return frozenset(found)


def _map(study: Study, place: Path, depth: str) -> tuple[tuple[Row, ...], tuple[str, ...], int]:
    if not any(place.glob("*-readings/runs.parquet")):
        return (), (), 0
    readings = study.readings(depth)
    same = study.same_as(depth)
    read: dict[tuple[str, str], pl.DataFrame] = {}
    at = {r.name: _evidence(study, Data(place, r.name, study.real_time, same, read), whole=False)[0] for r in readings}
    differences, compared = _null(at)
    verdicts = {name: _results(study, evidence, {}) for name, evidence in at.items() if name != NULL}
    changes = {r.name: len(r.changed) for r in readings}
    rows = []
    for leaf in (leaf for claim in study.claims.claims for leaf in (claim.parts or (claim,))):
        if _is_single(at[DEFAULT].get(leaf.id)):
            continue
        of_claim = {name: results[leaf.id].verdict for name, results in verdicts.items() if leaf.id in at[name]}
        rows.append(Row(leaf.id, of_claim, _flips(of_claim, changes)))
    return tuple(rows), differences, compared


def _reading_seeds(place: Path) -> int:
    """The most seeds that a reading has."""
    folders = (file.parent for file in place.glob("*-readings/sweep.json"))
    return max((len(SweepResults(folder).seeds) for folder in folders), default=0)


def _is_single(found: Evidence | None) -> bool:
    """Is there nothing at a reading, or one seed, which says nothing of any other?"""
    if isinstance(found, Pair):
        return len(found.a) < 2
    return found is None or (isinstance(found, Value) and not found.is_exact and len(found.samples) < 2)


def _flips(verdicts: dict[str, str], changes: dict[str, int]) -> tuple[Flip, ...]:
    other = {HOLDS: DIFFERS, FITTED: DIFFERS, DIFFERS: HOLDS}.get(verdicts[DEFAULT])
    turned = [name for name, verdict in verdicts.items() if verdict == other]
    if not turned:
        return ()
    fewest = min(changes[name] for name in turned)
    return tuple(Flip(name, verdicts[name]) for name in turned if changes[name] == fewest)


def _null(at: dict[str, dict[str, Evidence]]) -> tuple[tuple[str, ...], int]:
    """The default against itself under another name: every number must be the same to the last digit."""
    default, null = at[DEFAULT], at[NULL]
    differing = [claim for claim in default if claim not in null or not _same(default[claim], null[claim])]
    return tuple(differing), len(default)


def _same(first: Evidence, second: Evidence) -> bool:
    if type(first) is not type(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


def _pairings(study: Study, evidence: dict[str, Evidence]) -> tuple[Pairing, ...]:
    found = []
    for claim in study.claims.leaves():
        pair = evidence.get(claim.id)
        if not isinstance(pair, Pair) or len(pair.a) < 4:
            continue
        paired = statistics.paired_difference(pair.a, pair.b)
        # One half of the seeds for one side, the other half for the other: no seed is on both.
        halves = pair.a[::2], pair.b[1::2]
        unpaired = statistics.unpaired_difference(*halves)
        # A 99 % interval: of many such controls some would fall out of one of 95 % by chance. Means of constants differ
        # by their rounding.
        reach = statistics.unpaired_difference(*halves, ci=0.99).half_width
        reach += statistics.rounding(*halves)
        found.append(Pairing(claim.id, paired, unpaired, abs(paired.mean - unpaired.mean) <= reach))
    return tuple(found)


def _after_result(study: Study) -> tuple[str, ...]:
    """Assumptions that say so, and those whose default is not the one that the recorded results had."""
    recorded = study.folder / "expected" / "defaults.json"
    seen: dict[str, str] = json.loads(recorded.read_text(encoding="utf-8")) if recorded.is_file() else {}
    return tuple(
        a.id for a in study.assumptions if a.is_after_result or seen.get(a.id, a.default.label) != a.default.label
    )
