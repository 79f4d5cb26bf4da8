"""The full run of a study that ships with the package: its document and its pictures, current with today's claims."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.errors import UsageError
from airloom.study import document, pictures
from airloom.study.data import IN_REAL_TIME
from airloom.study.document import SHIPPED, Document
from airloom.study.folder import Study
from airloom.study.outcome import evaluate
from airloom.study.rules import DIFFERS, FITTED, HOLDS, NOT_COVERED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What of a claim may be worded anew without another full run.
_WORDS = ("says", "where", "note", "because", "statistic")

#: Colours of a picture: charts need few, and a file of few is a third as large.
_COLOURS = 64


def take(study: Study, place: Path) -> Document:
    """Makes the full run in `place` the one that ships. Raises `UsageError` if a deviation in it has no reason.

    Until all of it is there, and can ship, the one that shipped stays as it is.
    """
    made = document.of(evaluate(study, place, "full"), place)
    made["claims_digest"] = digest(study)
    target = study.folder / SHIPPED
    beside = Path(tempfile.mkdtemp(prefix=f".{SHIPPED}.", suffix=".part", dir=study.folder))
    try:
        fresh, old = beside / "new", beside / "old"
        fresh.mkdir()
        drawn = set()
        for key, figure in pictures.drawn(study, place):
            _save(figure, fresh / f"{key}.png")
            drawn.add(key)
        made["figures"] = [entry for entry in made["figures"] if entry["key"] in drawn]
        document.save(made, fresh / document.NAME)
        found = _of_today(study, document.read(fresh / document.NAME))
        try:
            if target.exists():
                target.rename(old)
            fresh.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return found


def current(study: Study) -> Document:
    """The run that ships, with today's words. Raises `UsageError` if it was judged by other claims than today's."""
    found = document.shipped(study)
    if found is None:
        raise UsageError(
            f"no full run of {study.name} ships: .venv/bin/python tools/replications.py --take {study.name} DIR"
        )
    if found["claims_digest"] != digest(study):
        raise UsageError(
            f"the run of {study.name} that ships was judged by other claims or defaults than today's: "
            f"airloom study run {study.name}; "
            f".venv/bin/python tools/replications.py --take {study.name} runs/studies/{study.name}/full"
        )
    return _of_today(study, found)


def _of_today(study: Study, found: Document) -> Document:
    """The same run with today's words. Raises `UsageError` if a deviation has no reason."""
    every = (*study.claims.claims, *study.claims.controls)
    today = {each.id: each for claim in every for each in (claim, *claim.parts)}
    for row in (*found["claims"], *found["controls"]):
        claim = today.get(row["id"])
        if claim is None:  # a control that is no more
            continue
        row.update({key: getattr(claim, key) for key in _WORDS})
        if claim.paper is None:
            # The document has the claim's own words there.
            row["paper"] = claim.says
    found["paper"].update(document.cited(study.claims.paper))
    found["title"] = study.title
    unexplained = [row["id"] for row in found["claims"] if document.is_deviation(row) and not _explained(found, row)]
    if unexplained:
        raise UsageError(f"{study.name}: {', '.join(unexplained)} deviate, and no `because` says why")
    return found


def turned(study: Study, place: Path) -> dict[str, tuple[str, str]]:
    """Claims and parts whose verdict in the full run in `place` contradicts the one that ships, with both.

    They contradict where one holds, fitted or not, and the other differs, and where one is covered and the other is
    not, unless what ships was made without real time and waits for that. An interval that now reaches over the edge of
    a tolerance, or no longer does, is no contradiction. Raises `UsageError` if no full run was judged there.
    """
    ships, made = current(study), document.read(place / document.NAME)
    if made["depth"] != "full":
        raise UsageError(f"{place} has a {made['depth']} run: airloom study run {study.name} makes a full one")
    now = {row["id"]: row["verdict"] for row in made["claims"]}
    pairs = {
        row["id"]: (row["verdict"], now.get(row["id"], NOT_COVERED))
        for row in ships["claims"]
        if not _waits(ships, row)
    }
    return {
        claim: both
        for claim, both in pairs.items()
        # What is fitted holds.
        if {HOLDS if each == FITTED else each for each in both} == {HOLDS, DIFFERS}
        or (NOT_COVERED in both and len(set(both)) > 1)
    }


def _waits(found: Document, row: dict[str, Any]) -> bool:
    """Is a claim or part not covered for want of real time: its own, or that of all its parts that are not?"""
    parts = [c for c in found["claims"] if c["whole"] == row["id"]]
    without = [c for c in parts or [row] if c["verdict"] == NOT_COVERED]
    return bool(without) and all(c["why"] == IN_REAL_TIME for c in without)


def _explained(found: Document, row: dict[str, Any]) -> bool:
    """Has a claim or part that deviates a reason: its own, its whole's, or those of all its parts that deviate?"""
    of_whole = [c["because"] for c in found["claims"] if c["id"] == row["whole"]]
    parts = [c for c in found["claims"] if c["whole"] == row["id"] and document.is_deviation(c)]
    return bool(row["because"] or any(of_whole) or (parts and all(part["because"] for part in parts)))


def digest(study: Study) -> str:
    """A number for what decides verdicts: the claims without their words, and the defaults of the assumptions."""
    words: dict[str, Any] = dict.fromkeys(_WORDS, "")
    claims = [c._replace(**words, parts=tuple(p._replace(**words) for p in c.parts)) for c in study.claims.claims]
    defaults = [[a.id, a.default, a.fitted_to] for a in study.assumptions]
    return hashlib.sha256(json.dumps([claims, defaults], sort_keys=True).encode()).hexdigest()[:16]


def _save(figure: Figure, path: Path) -> None:
    from PIL import Image

    pictures.save(figure, path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
