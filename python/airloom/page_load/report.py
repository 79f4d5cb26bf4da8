"""Loads side by side in one HTML file: numbers, filmstrips, waterfalls with what the link did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airloom.page_load import filmstrip, waterfall
from airloom.page_load.measure import Loaded
from airloom.page_load.outcome import Runs, complaints, name_of, rows, status_text, together
from airloom.places import write_whole
from airloom.report.page import Section, document, escaped, number, table

#: Rows of pictures and requests that are wider than the screen: a shadow says on which side there is more.
_MORE = """
.more { overflow-x: auto; background:
  linear-gradient(to right, var(--paper) 50%, transparent) 0 / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 50%, transparent) 100% / 3rem 100% no-repeat local,
  linear-gradient(to right, #8888, transparent) 0 / 1rem 100% no-repeat scroll,
  linear-gradient(to left, #8888, transparent) 100% / 1rem 100% no-repeat scroll }
#numbers .wide { max-height: none }
#numbers td { text-align: right }
.took strong { font-size: 1.3rem }
"""


def write_report(loads: Sequence[Loaded], url: str, target: Path, command: str = "") -> None:
    """Writes the report of some loads of one page; `command` makes them again."""
    groups = together(loads)
    longest = max((group.shown.page_s or filmstrip.last_picture_s(group.shown) for group in groups), default=0.0)
    sections = [
        Section("numbers", "Numbers", _numbers(groups) + _every_run(groups)),
        Section("filmstrips", "Filmstrips", "".join(filmstrip.strip(group.shown, longest) for group in groups)),
        Section(
            "waterfalls",
            "Waterfalls",
            waterfall.key() + "".join(waterfall.waterfall(group.shown, group.events) for group in groups),
        ),
    ]
    style = f"<style>{_MORE}{filmstrip.STYLE}{waterfall.STYLE}</style>"
    about = f"Loaded by {escaped(_browsers(loads))} over modelled links, in real time."
    again = f"<pre><code>{escaped(command)}</code></pre>" if command else ""
    intro = f"{style}<h1>{escaped(url)}</h1>{_took(groups)}<p>{about}</p>{again}"
    write_whole(target, document(f"{url}: loads", intro, sections, {"plots": []}))


def _took(groups: Sequence[Runs]) -> str:
    """The answer: how long it took, and how sure that is."""
    lines = []
    for group in groups:
        shown = group.shown
        took = "not loaded" if shown.page_s is None else f"{number(shown.page_s)} s"
        sure = "one run"
        if len(group.runs) > 1:
            sure = f"the median of {group.loaded} runs" if shown.page_s is not None else f"{len(group.runs)} runs"
        if group.page is not None:
            sure += f"; 95 % interval {number(group.page.low)} to {number(group.page.high)} s"
        bad = complaints(group.runs)
        wrong = f'<br><span class="differs">{"<br>".join(map(escaped, bad))}</span>' if bad else ""
        lines.append(f"<li>{escaped(name_of(shown))}: <strong>{escaped(took)}</strong> ({escaped(sure)}){wrong}</li>")
    return f'<ul class="took">{"".join(lines)}</ul>'


def _browsers(loads: Sequence[Loaded]) -> str:
    return ", ".join(sorted({f"Chromium {loaded.seen['version']}" for loaded in loads}))


def _numbers(groups: Sequence[Runs]) -> str:
    """A column for each load, a row for what is known of any of them."""
    found = [rows(group, everything=True) for group in groups]
    names = list(dict.fromkeys(name for column in found for name in column))
    lines = [[name, *(_cell(column.get(name)) for column in found)] for name in names]
    return table("The run that stands for each", ["", *(name_of(group.shown) for group in groups)], lines)


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return " to ".join(number(end) for end in value)
    return value


def _every_run(groups: Sequence[Runs]) -> str:
    """All runs, where there are several."""
    if all(len(group.runs) == 1 for group in groups):
        return ""
    lines = [
        [name_of(run), run.seed, run.page_s, status_text(run), "valid" if run.valid else "; ".join(run.reasons)]
        for group in groups
        for run in group.runs
    ]
    return table("Every run", ["load", "seed", "page (s)", "the page's answer", "times are"], lines)
