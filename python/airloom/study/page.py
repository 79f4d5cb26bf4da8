"""A study's report as one HTML file, with its figures inside."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from airloom._core import __version__
from airloom.plot.figure import style
from airloom.report import page, write
from airloom.report.page import Section, escaped
from airloom.study import text
from airloom.study.data import Data, NotSwept
from airloom.study.outcome import Outcome


def figures(outcome: Outcome, place: Path) -> dict[str, tuple[str, Figure]]:
    """The figures of `study.py` (`FIGURES`): by name, with title."""
    data = Data(place)
    found = getattr(outcome.study.module, "FIGURES", {})
    drawn = {}
    with style():
        for name, made in found.items():
            try:
                drawn[name] = (made.title, made.draw(data))
            except NotSwept:  # it needs what was not made at this depth
                continue
    return drawn


def build(outcome: Outcome, place: Path, target: Path) -> Path:
    """Writes the report, and beside it each figure as SVG and PDF."""
    folder = place / "figures"
    folder.mkdir(exist_ok=True)
    shown = ""
    for name, (title, figure) in figures(outcome, place).items():
        svg = folder / f"{name}.svg"
        with style():
            figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "airloom"})
            figure.savefig(folder / f"{name}.pdf", format="pdf", metadata={"CreationDate": None, "Creator": "airloom"})
        # What stands before the element is for files of their own.
        drawn = svg.read_text(encoding="utf-8")
        inline = drawn[drawn.index("<svg") :]
        shown += f"<figure><figcaption>{escaped(title)}</figcaption>{inline}</figure>"
    sections = [
        Section("figures", "Figures: the paper hollow, ours solid", shown),
        *(
            Section(f"part{n}", table.title, page.table(table.title, table.columns, table.rows, is_whole=True))
            for n, table in enumerate(text.tables(outcome, text.of_study(outcome.study, Data(place))))
        ),
    ]
    seeds = ", ".join(f"{name} {count}" for name, count in outcome.seeds.items())
    facts = page.facts(
        [("study", outcome.study.name), ("depth", outcome.depth), ("seeds", seeds), ("airloom", __version__)]
    )
    flag = " --quick" if outcome.depth == "quick" else ""
    command = f"airloom study run {outcome.study.name}{flag}"
    intro = (
        f"<h1>{escaped(outcome.study.title)}</h1><p>{escaped(outcome.study.claims.paper)}</p>{facts}"
        f"<p><strong>{escaped(text.headline(outcome))}</strong></p>"
        f'<p>To repeat it:</p><pre tabindex="0"><code>{escaped(command)}</code></pre>'
    )
    write(target, page.document(outcome.study.title, intro, sections, {"kind": "study"}))
    return target
