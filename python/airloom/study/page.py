"""A study's report as one HTML file, with its figures inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airloom.places import write_whole
from airloom.report import page
from airloom.report.page import Marked, Section, embedded, escaped
from airloom.study import pictures, text
from airloom.study.claims import GIVEN
from airloom.study.document import Document, is_deviation
from airloom.study.folder import Study
from airloom.study.rules import COMPATIBLE, DIFFERS, FITTED, HOLDS, NOT_COVERED, UNCLEAR, VERDICTS

#: What each verdict means, in a few words.
MEANINGS = {
    HOLDS: "the whole interval lies where the paper says",
    FITTED: "it does, but a setting was fitted to it",
    COMPATIBLE: "it does not, but as few runs as the paper's could have given its number",
    UNCLEAR: "the interval lies on both sides of the edge",
    DIFFERS: "the whole interval lies elsewhere",
    GIVEN: "cannot fail, is not scored",
    NOT_COVERED: "nothing is computed",
}


def build(study: Study, document: Document, place: Path, target: Path) -> Path:
    """Writes the report of the sweeps in `place`, and beside these each figure as SVG and PDF."""
    markup = {}
    for key, figure in pictures.drawn(study, place):
        svg = pictures.save(figure, place / "figures" / f"{key}.svg")
        pictures.save(figure, svg.with_suffix(".pdf"))
        # What stands before the element is for files of their own.
        whole = svg.read_text(encoding="utf-8")
        markup[key] = whole[whole.index("<svg") :]
    return _written(document, markup, target)


def build_shipped(study: Study, document: Document, target: Path) -> Path:
    """Writes the report of the run that came with the package."""
    markup = {}
    for entry in document["figures"]:
        source = embedded((study.folder / "shipped" / f"{entry['key']}.png").read_bytes(), "png")
        markup[entry["key"]] = f'<img alt="{escaped(entry["title"])}" src="{source}">'
    return _written(document, markup, target)


def _written(document: Document, markup: Mapping[str, str], target: Path) -> Path:
    figures = [entry for entry in document["figures"] if entry["key"] in markup]
    of_paper, ours = _split(figures, "fig-")
    tables_of_paper, our_tables = _split(document["tables"], "table-")
    sections = [
        Section("figures", "The paper's figures", _figures(document, of_paper, markup)),
        Section("tables", "The paper's tables", _tables(document, tables_of_paper)),
        Section("deviations", "Where ours differs, and why", _deviations(document)),
        Section(
            "further", "Further figures and tables", _figures(document, ours, markup) + _tables(document, our_tables)
        ),
        *(Section(f"part{n}", table.title, _table(table)) for n, table in enumerate(text.tables(document))),
    ]
    shown = [section for section in sections if section.body]
    write_whole(target, page.document(document["title"], _intro(document), shown, {"kind": "study"}))
    return target


def _split(entries: Iterable[dict[str, Any]], prefix: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The paper's and ours."""
    found: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for entry in entries:
        found[not entry["key"].startswith(prefix)].append(entry)
    return found


def _intro(document: Document) -> str:
    depth = document["depth"]
    flag = " --quick" if depth == "quick" else ""
    seeds = ", ".join(f"{name} {count}" for name, count in document["sweeps"].items())
    facts = page.facts([("study", document["study"]), ("depth", depth), ("airloom", document["version"])])
    score = " ".join(f"{n} {_chip(verdict)}" for verdict, n in _in_order(document["score"]))
    legend = "".join(f"<li>{_chip(verdict)} {escaped(meaning)}</li>" for verdict, meaning in MEANINGS.items())
    command = f"airloom study run {document['study']}{flag}"
    return (
        f"<h1>{escaped(document['title'])}</h1><p>{escaped(document['paper']['citation'])}</p>"
        f"<p>{escaped(document['paper']['summary'])}</p>"
        f'<p class="score">Of {sum(document["score"].values())} claims: {score}</p>'
        f"<p>Parts and procedures: {escaped(text.counts(document['score_parts']))}. Given, and in no score: "
        f"{document['given']}.</p>"
        f'<ul class="verdicts" aria-label="What the verdicts mean">{legend}</ul>'
        "<p>In the figures the paper's numbers are hollow and ours solid; captions say where the paper's are lost.</p>"
        f"{facts}<details><summary>Seeds of each sweep</summary><p>{escaped(seeds)}</p></details>"
        f'<p>To repeat it:</p><pre tabindex="0"><code>{escaped(command)}</code></pre>'
    )


def _in_order(score: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(verdict, score[verdict]) for verdict in MEANINGS if verdict in score]


def _chip(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{escaped(verdict)}</span>'


def _figures(document: Document, entries: Iterable[Mapping[str, Any]], markup: Mapping[str, str]) -> str:
    return "".join(
        f'<figure id="{escaped(e["key"])}"><h3>{escaped(e["title"])}</h3>{markup[e["key"]]}'
        f"<figcaption>{escaped(e['caption'])}</figcaption></figure>{_claims_at(document, e['key'])}"
        for e in entries
    )


def _tables(document: Document, entries: Iterable[Mapping[str, Any]]) -> str:
    found = ""
    for e in entries:
        shown = text.own_table(e)._replace(title=e["caption"])
        body = page.table(shown.title, shown.columns, shown.rows, is_whole=True, label=e["title"])
        found += f'<h3 id="{escaped(e["key"])}">{escaped(e["title"])}</h3>{body}{_claims_at(document, e["key"])}'
    return found


_NUMBERS = re.compile(r"\b(Figs?|Tables?)\b\.?\s*((?:\d+(?:\s*(?:,|and|to|[-–])\s*)?)+)")
_RANGE = re.compile(r"(\d+)(?:\s*(?:to|[-–])\s*(\d+))?")


def places(where: str) -> set[str]:
    """Keys of the figures and tables that the place of a claim names.

    >>> sorted(places("5.3, Figs. 6 and 7")), sorted(places("Table 1, row 1.1"))
    (['fig-6', 'fig-7'], ['table-1'])
    >>> sorted(places("Figs. 1 to 3, 8–9"))
    ['fig-1', 'fig-2', 'fig-3', 'fig-8', 'fig-9']
    """
    found = set()
    for kind, numbers in _NUMBERS.findall(where):
        prefix = "fig-" if kind.startswith("Fig") else "table-"
        for first, last in _RANGE.findall(numbers):
            found |= {f"{prefix}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def _claims_at(document: Document, key: str) -> str:
    """What the paper states of a figure or table, in its order: verdicts, and the reasons where ours differs."""
    items = ""
    for whole in (claim for claim in document["claims"] if claim["whole"] is None):
        leaves = [leaf for leaf in text.parts(document, whole) or [whole] if key in places(leaf["where"])]
        if not leaves:
            continue
        chips = [_chip(c["verdict"]) if c is whole else f"{escaped(c['says'])} {_chip(c['verdict'])}" for c in leaves]
        reasons = {text.because(document, leaf): None for leaf in leaves if is_deviation(leaf)}
        items += (
            f"<li><strong>{escaped(whole['id'])}</strong> {escaped(whole['says'])}: {', '.join(chips)}"
            f"{''.join(f'<p>{escaped(reason)}</p>' for reason in reasons if reason)}</li>"
        )
    return f'<ul class="claims">{items}</ul>' if items else ""


def _deviations(document: Document) -> str:
    cards = ""
    for claim in text.leaves(document):
        if not is_deviation(claim):
            continue
        said = f"<p>Paper: {escaped(text.paper(claim))}</p>" if claim["paper"] != claim["says"] else ""
        cards += (
            f'<div class="card"><p>{_chip(claim["verdict"])} <strong>{escaped(claim["id"])}</strong> '
            f"{escaped(text.full_says(document, claim))} ({escaped(claim['where'])})</p>{said}"
            f"<p>Ours: {escaped(text.ours(claim))}</p><p>{escaped(text.why(document, claim))}</p></div>"
        )
    said = text.on_deviations(document)
    return f"<p>{escaped(said[0].upper() + said[1:])}.</p>{cards}" if said else cards


def _table(table: text.Table) -> str:
    """A table whose verdicts have their colours."""
    rows = [[Marked(cell, f"verdict {cell}") if cell in VERDICTS else cell for cell in row] for row in table.rows]
    return page.table("", table.columns, rows, is_whole=True, label=table.title)
