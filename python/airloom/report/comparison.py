"""The page of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airloom.analysis.units import titled
from airloom.measures import groups
from airloom.report import page
from airloom.report.page import Section, escaped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from airloom.comparison import Comparison


def page_text(found: Comparison, command: str) -> str:
    """The whole document; `command` makes it again."""
    facts = page.facts([("differences", found.differences.height)])
    firsts = "".join(f"<p>{escaped(first.in_words())}</p>" for first in found.firsts)
    notes = "".join(f"<p>{escaped(note)}</p>" for note in found.notes)
    repeat = f'<p>To repeat it:</p><pre tabindex="0"><code>{escaped(command)}</code></pre>'
    equal = "<p>Nothing differs.</p>" if found.is_equal else ""
    names = page.facts(found.names.items(), kind="asked")
    intro = f"<h1>{escaped(found.kind.capitalize())} compared</h1>{names}{facts}{equal}"
    sections = [Section("differences", "Differences", _table(found) + notes)]
    if firsts:
        sections.insert(0, Section("first", "The first packet that differs", firsts))
    if pictures := "".join(_picture(figure) for figure in found.figures()):
        sections.append(Section("pictures", "On one axis", pictures))
    if found.settings:
        rows = [
            (key, *("–" if value is None else str(value) for value in values)) for key, values in found.settings.items()
        ]
        body = page.table("What was set differently", ["key", *found.names], rows, is_whole=True)
        sections.append(Section("settings", "Settings", body))
    return page.document(f"{found.kind} compared", intro + repeat, sections, {"kind": "comparison"})


def _table(found: Comparison) -> str:
    """By groups; what belongs to single hosts, links and directions of a run is folded."""
    whole = found.differences
    if found.kind == "captures":
        return _connections(found) or "<p>No number differs.</p>"
    if found.levels:
        return _groups(found, whole) or "<p>No number differs.</p>"
    parts = whole.filter(pl.col("measure").str.contains(".", literal=True))
    text = _groups(found, whole.join(parts, on="measure", how="anti")) or "<p>No number of the whole differs.</p>"
    if not parts.is_empty():
        more = f"{parts.height} more, by host, link and direction"
        text += f"<details><summary>{more}</summary>{_groups(found, parts)}</details>"
    return text


def _connections(found: Comparison) -> str:
    """A table for all connections together, and one for each that differs."""
    columns = ["measure", "A", "of", "its value", "difference"]
    text = ""
    for (connection,), rows in found.differences.group_by("connection", maintain_order=True):
        numbers = [
            (titled(row["measure"]), row["first"], row["of"], row["value"], row["difference"])
            for row in rows.iter_rows(named=True)
        ]
        text += page.table(str(connection), columns, numbers)
    return text


def _groups(found: Comparison, differences: pl.DataFrame) -> str:
    columns = [*found.levels, "measure", "A", "of", "its value", "difference", "95 % interval", "seeds"]
    text = ""
    for group, title in {**groups(), "": "Others"}.items():
        rows = []
        for row in differences.filter(group=group).iter_rows(named=True):
            interval = "–" if row["low"] is None else f"{page.number(row['low'])} to {page.number(row['high'])}"
            values = (row["first"], row["of"], row["value"], row["difference"], interval, row["seeds"])
            rows.append((*(row[level] for level in found.levels), titled(row["measure"]), *values))
        if rows:
            text += page.table(title, columns, rows)
    return text


def _picture(figure: Figure) -> str:
    alt = "; ".join(axes.get_title(loc="left") or axes.get_xlabel() for axes in figure.axes)
    return page.picture(figure, "svg", alt)
