"""All that a study has to say, as plain data: what a terminal, a page and a file in the repository are made from.

A document is made from an outcome, is kept as `result.json` beside the sweeps, and ships with the package for the full
run. Whoever shows it needs neither sweeps nor `study.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airloom._core import __version__
from airloom.errors import UsageError
from airloom.json_file import read_json
from airloom.places import write_whole
from airloom.study.assumptions import DEFAULT, Assumption
from airloom.study.claims import GIVEN, Claim
from airloom.study.data import Data, NotSwept
from airloom.study.folder import Study
from airloom.study.outcome import Outcome, Row
from airloom.study.paper import Paper
from airloom.study.rules import COMPATIBLE, DIFFERS, NOT_COVERED, UNCLEAR, VERDICTS

#: Keys and values of JSON. `of` says which there are.
Document = dict[str, Any]

#: The file with a study's last results, in the place of its sweeps.
NAME = "result.json"

#: The folder of a study with the document of its full run, and the pictures beside it.
SHIPPED = "shipped"


def of(outcome: Outcome, place: Path) -> Document:
    """Everything that is said of a study whose sweeps are in `place`."""
    study, paper = outcome.study, outcome.study.claims.paper
    data = Data(place, None, study.real_time)
    results = outcome.results
    return {
        "study": study.name,
        "title": study.title,
        "version": __version__,
        "depth": outcome.depth,
        # Those of the study's main sweep, which stands first in its file.
        "seeds": outcome.seeds.get(next(iter(study.plans)), 0),
        "sweeps": outcome.seeds,
        "cost": cost(study, place),
        "paper": cited(paper),
        "score": outcome.score(),
        "score_parts": outcome.score(("p",)),
        # Of claims without parts, and of parts.
        "given": sum(results[leaf.id].verdict == GIVEN for c in study.claims.claims for leaf in c.parts or (c,)),
        "claims": list(_rows(study.claims.claims, outcome)),
        "controls": list(_rows(study.claims.controls, outcome)),
        "null": {"compared": outcome.null_compared, "differing": list(outcome.null_differences)},
        "pairings": [
            {"claim": p.claim, "paired": _three(p.paired), "unpaired": _three(p.unpaired), "agrees": bool(p.agrees)}
            for p in outcome.pairings
        ],
        "assumptions": [_assumption(a, a.id in outcome.after_result) for a in study.assumptions],
        "readings": len(outcome.map[0].verdicts) if outcome.map else 0,
        "reading_seeds": outcome.reading_seeds,
        "map": [_map_row(each) for each in outcome.map],
        "tables": list(_tables(study, data)),
        "figures": [
            {"key": key, "title": figure.title, "caption": figure.caption} for key, figure in study.figures.items()
        ],
    }


def cited(paper: Paper) -> dict[str, Any]:
    """What is said of the paper."""
    return {**paper._asdict(), "name": paper.name, "citation": paper.citation}


def _rows(claims: Iterable[Claim], outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Every claim, followed by its parts."""
    for whole in claims:
        yield _row(whole, None, outcome)
        yield from (_row(part, whole.id, outcome) for part in whole.parts)


def _row(claim: Claim, whole: str | None, outcome: Outcome) -> dict[str, Any]:
    result = outcome.results[claim.id]
    flips = next((r.flips for r in outcome.map if r.claim == claim.id), ())
    return {
        "id": claim.id,
        "whole": whole,
        "where": claim.where,
        "kind": claim.kind,
        "says": claim.says,
        "paper": claim.paper if claim.paper is not None else claim.says,
        "ours": _json(result.ours),
        "low": _json(result.low),
        "high": _json(result.high),
        "unit": result.unit or claim.unit,
        "seeds": result.seeds,
        "verdict": result.verdict,
        "why": result.why,
        "because": claim.because,
        "statistic": claim.statistic,
        "turned": [[flip.verdict, flip.reading] for flip in flips[:3]],
        "note": claim.note,
        "assumptions": list(claim.assumptions),
        "tied_to": list(claim.tied_to),
    }


def _json(value: Any) -> Any:
    """JSON has no not-a-number: what is not known is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _three(found: Any) -> list[float | None]:
    return [_json(float(x)) for x in (found.mean, found.low, found.high)]


def _assumption(a: Assumption, is_after: bool) -> dict[str, Any]:
    return {
        "id": a.id,
        "says": a.says,
        "default": a.default.label,
        "levels": [level.label for level in a.levels if level.settings is not None],
        "not_run": [level.label for level in a.levels if level.settings is None],
        "role": a.role,
        "source": a.source,
        "why": a.why,
        "after_result": is_after,
    }


def _map_row(found: Row) -> dict[str, Any]:
    counts = {v: sum(x == v for x in found.verdicts.values()) for v in VERDICTS}
    return {
        "claim": found.claim,
        "default": found.verdicts[DEFAULT],
        "share": found.share,
        "counts": {verdict: n for verdict, n in counts.items() if n},
        "turned": [[flip.verdict, flip.reading] for flip in found.flips],
    }


def _tables(study: Study, data: Data) -> Iterator[dict[str, Any]]:
    """The study's own tables; one that needs what was not made at this depth is left out."""
    for key, entry in study.tables.items():
        try:
            columns, rows = entry.make(data)
        except NotSwept:
            continue
        shown = [[_json(cell) for cell in row] for row in rows]
        yield {"key": key, "title": entry.title, "caption": entry.caption, "columns": list(columns), "rows": shown}


def cost(study: Study, place: Path) -> dict[str, float]:
    """Runs that were made in virtual time, and the seconds of one core that they took."""
    runs, seconds = 0, 0.0
    for file in sorted(place.glob("*/sessions.json")):
        if file.parent.name in study.real_time:
            continue
        for session in read_json(file):
            runs += session["runs"]
            seconds += session["wall_s"] * session["workers"]
    return {"runs": runs, "core_s": round(seconds, 1)}


def save(document: Document, target: Path) -> None:
    """Writes it; the file has its name once all of it is there."""
    write_whole(target, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read(file: Path) -> Document:
    """A document that was saved. Raises `UsageError` if it is none."""
    try:
        found = read_json(file)
    except UsageError as error:
        raise UsageError(f"{error}: airloom study report writes it again") from None
    if not isinstance(found, dict) or "claims" not in found:
        raise UsageError(f"{file} is no result of a study: airloom study report writes it again")
    return found


def last(place: Path) -> Document | None:
    """The last results in a study's place, full or quick, as they were saved."""
    found = sorted(place.glob(f"*/{NAME}"), key=lambda p: p.stat().st_mtime)
    return read(found[-1]) if found else None


def shipped(study: Study) -> Document | None:
    """The full run that came with the package, if one did."""
    file = study.folder / SHIPPED / NAME
    return read(file) if file.is_file() else None


def claim(document: Document, name: str) -> list[dict[str, Any]]:
    """A claim of a document, followed by its parts. Raises `UsageError` for one that is not there."""
    found = [row for row in document["claims"] if name in (row["id"], row["whole"])]
    if not found:
        ids = [row["id"] for row in document["claims"] if row["whole"] is None]
        raise UsageError(
            f"no claim {name!r} in {document['study']}; valid: {', '.join(ids)}, and parts such as ID.part"
        )
    return found


def entry(document: Document, what: str, name: str) -> dict[str, Any]:
    """A figure or table (`figures`, `tables`) by its key, or by the paper's number. Raises `UsageError` for others.

    >>> entry({"study": "s", "tables": [{"key": "table-1"}]}, "tables", "1")
    {'key': 'table-1'}
    """
    prefix = {"figures": "fig-", "tables": "table-"}[what]
    for each in document[what]:
        if each["key"] in (name, f"{prefix}{name}"):
            return dict(each)
    keys = ", ".join(each["key"] for each in document[what]) or "none"
    raise UsageError(f"no {what.removesuffix('s')} {name!r} in {document['study']}, {document['depth']}; valid: {keys}")


def covered(document: Document) -> int:
    """Number of scored claims with something computed."""
    return sum(n for verdict, n in document["score"].items() if verdict != NOT_COVERED)


def is_deviation(row: Mapping[str, Any]) -> bool:
    """Does it call for a reason?"""
    return row["verdict"] in (DIFFERS, UNCLEAR, COMPATIBLE)
