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

from airloom.comparison.result import LETTERS, Comparison, FirstDifference
from airloom.errors import UsageError
from airloom.fields import did_you_mean

__all__ = ["Comparison", "FirstDifference", "compare"]

#: What tells a folder's kind, and how one calls it.
_KINDS = {"run.json": "runs", "sweep.json": "sweeps"}


def compare(*paths: Path | str, measures: Sequence[str] = ()) -> Comparison:
    """Holds results against the first of them: folders of runs, of sweeps or of loads, or captures.

    `measures` are those that are wanted, by default of sweeps those that their overview shows, else all. Raises
    `UsageError` if there are fewer than two results, or of more than one kind, or if they do not measure something of
    that name.
    """
    if len(paths) < 2:
        raise UsageError("it takes two results to compare")
    if len(paths) > len(LETTERS):
        raise UsageError(f"at most {len(LETTERS)} results are compared")
    places = [Path(path) for path in paths]
    kinds = [_kind(place) for place in places]
    if len(set(kinds)) > 1:
        named = ", ".join(f"{place} is of {kind}" for place, kind in zip(places, kinds, strict=True))
        raise UsageError(f"only results of one kind are compared: {named}")
    if kinds[0] == "sweeps":
        from airloom.comparison.sweeps import compare_sweeps

        return compare_sweeps(places, measures)
    found = _compare(kinds[0], places)
    there = found.table["measure"].unique(maintain_order=True).to_list()
    for measure in measures:
        if measure not in there:
            raise UsageError(f"none of these {kinds[0]} measures {measure!r}{did_you_mean(measure, there)}")
    return found


def _compare(kind: str, places: list[Path]) -> Comparison:
    match kind:
        case "runs":
            from airloom.comparison.runs import compare_runs

            return compare_runs(places)
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
