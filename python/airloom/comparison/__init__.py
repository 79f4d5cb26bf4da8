"""What differs between results of one kind: runs, sweeps, loads of pages, captures.

>>> import airloom as al
>>> page = al.load("umts-page")
>>> one, other = page.run(seed=1, out="one"), page.run(seed=2, out="other")
>>> found = al.compare(one.folder, other.folder)
>>> found.kind, found.is_equal, found.first.t_s < 1
('runs', False, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airloom.comparison.result import Comparison, FirstDifference, letters
from airloom.errors import UsageError

__all__ = ["Comparison", "FirstDifference", "compare"]

#: What tells a folder's kind, and how one calls it.
_KINDS = {"run.json": "runs", "sweep.json": "sweeps"}


def compare(*paths: Path | str, measures: Sequence[str] = ()) -> Comparison:
    """Holds results against the first of them: folders of runs, of sweeps or of loads, or captures.

    `measures` are those that are wanted of sweeps, by default the ones that their overview shows. Raises `UsageError`
    if there are fewer than two, or of more than one kind.
    """
    if len(paths) < 2:
        raise UsageError("it takes two results to compare")
    if len(paths) > len(letters()):
        raise UsageError(f"at most {len(letters())} results are compared")
    places = [Path(path) for path in paths]
    kinds = [_kind(place) for place in places]
    if len(set(kinds)) > 1:
        named = ", ".join(f"{place} is of {kind}" for place, kind in zip(places, kinds, strict=True))
        raise UsageError(f"only results of one kind are compared: {named}")
    match kinds[0]:
        case "runs":
            from airloom.comparison.runs import compare_runs

            return compare_runs(places)
        case "sweeps":
            from airloom.comparison.sweeps import compare_sweeps

            return compare_sweeps(places, measures)
        case "loads":
            from airloom.comparison.loads import compare_loads

            return compare_loads(places)
    from airloom.comparison.captures import compare_captures

    return compare_captures(places)


def _kind(place: Path) -> str:
    for name, kind in _KINDS.items():
        if (place / name).is_file():
            return kind
    if place.is_dir():
        if any(place.glob("**/load.json")):
            return "loads"
        raise UsageError(f"{place} is no result: it has no run.json, no sweep.json and no load.json")
    if not place.exists():
        raise UsageError(f"{place} is not there")
    return "captures"
