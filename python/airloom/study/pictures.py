"""The figures of a study as files: drawn from its sweeps, or taken from the full run that came with the package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import UsageError
from airloom.study.data import Data, NotMade, NotSwept
from airloom.study.document import SHIPPED
from airloom.study.folder import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of files, by the ending of their names.
KINDS = ("svg", "pdf", "png")

#: Dots per inch of PNG files; figures are 8 inches wide.
_DPI = 120


def drawn(study: Study, place: Path) -> Iterator[tuple[str, Figure]]:
    """Key and figure of each that can be drawn: one that needs what was not made at this depth is left out."""
    for key in study.figures:
        try:
            yield key, draw(study, place, key)
        except NotSwept:
            continue


def draw(study: Study, place: Path, key: str) -> Figure:
    """One figure. Raises `NotSwept` if it needs what was not made at this depth."""
    from airloom.plot.figure import style

    with style():
        return study.figures[key].draw(Data(place, None, study.real_time))


def save(figure: Figure, path: Path) -> Path:
    """Writes a figure as what the path ends with; the same figure gives the same octets."""
    from airloom.plot.figure import octets

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets(figure, path.suffix.removeprefix("."), _DPI))
    return path


def one(study: Study, place: Path, key: str, kind: str) -> Path:
    """Draws one figure into `figures/` beside the sweeps. Raises `UsageError` where it needs what was not made."""
    try:
        return save(draw(study, place, key), place / "figures" / f"{key}.{kind}")
    except NotMade as error:
        raise UsageError(f"{key} of {study.name} needs what is {error}") from None
    except NotSwept as error:
        raise UsageError(f"{key} of {study.name} is drawn from the full study alone: {error}") from None


def from_shipped(study: Study, target: Path, key: str, kind: str) -> Path:
    """The same from the full run that came with the package, which has its pictures as PNG."""
    picture = study.folder / SHIPPED / f"{key}.png"
    if kind != "png" or not picture.is_file():
        what = "it has PNG files only" if picture.is_file() else f"{key} is not among its pictures"
        raise UsageError(
            f"{study.name} was not run here, and of the run that ships {what}: airloom study run {study.name}"
        )
    target.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(picture, target / picture.name))
