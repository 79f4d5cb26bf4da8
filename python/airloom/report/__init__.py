"""`airloom report`: a result folder becomes one HTML file that needs nothing but itself.

The file opens from disk with networking off: styles, scripts, data and the plotting library are inside, and its own
content policy forbids the browser to ask for anything else. Captures and tables beside it are linked.
"""

from __future__ import annotations

from pathlib import Path

from airloom.errors import UsageError
from airloom.places import check_file, write_whole

#: What a report is called unless told.
NAME = "report.html"


def build(folder: Path | str, out: Path | str | None = None) -> Path:
    """Writes the report of a run or of a sweep and returns where it is: `report.html` in the folder, or `out`.

    Raises `UsageError` if the folder is neither.

    >>> import airloom as al
    >>> build(al.load("umts-page").run(seed=1).folder).name
    'report.html'
    """
    place = Path(folder)
    target = Path(out) if out is not None else place / NAME
    check_file(target)
    write_whole(target, _text(place, target))
    return target


def _text(place: Path, target: Path) -> str:
    if (place / "run.json").is_file():
        from airloom.report.run import document as of_run
        from airloom.run import Run

        return of_run(Run(place), target)
    if (place / "sweep.json").is_file():
        from airloom.report.sweep import document as of_sweep
        from airloom.sweep import SweepResults

        return of_sweep(SweepResults(place), target)
    raise UsageError(f"{place} is neither a run nor a sweep: it has no run.json and no sweep.json")
