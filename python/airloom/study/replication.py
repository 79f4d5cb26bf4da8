"""The full run of a study as a page of the repository (`docs/replications`): what held, what differs and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airloom.study import text
from airloom.study.claims import GIVEN
from airloom.study.document import Document, is_deviation
from airloom.study.page import MEANINGS, places
from airloom.study.rules import NOT_COVERED


def markdown(document: Document, folder: str) -> str:
    """The page of one study. `folder` is where the study's files are, as seen from the page."""
    paper, cost = document["paper"], document["cost"]
    score = ", ".join(f"{document['score'][v]} {v}" for v in MEANINGS if v in document["score"])
    name = document["study"]
    minutes = cost["core_s"] / 60
    took = "a minute" if minutes < 1.5 else f"{minutes:.0f} minutes"
    parts = [
        f"# {document['title']}",
        f"{paper['citation']}.",
        paper["summary"],
        f"**Of {sum(document['score'].values())} claims: {score}.** Parts and procedures: "
        f"{text.counts(document['score_parts'])}. Given, and in no score: {document['given']}.",
        f"From the full run: {cost['runs']:,} simulated runs, {took} of one core; "
        f"`airloom study run {name}` makes it again, `airloom study report {name}` shows it without. How the study is "
        f"built: [its README]({folder}/README.md). What the words mean: [verdicts](../explanation/verdicts.md). In the "
        "figures the paper's numbers are hollow and ours solid.",
        *_shown("## The paper's figures", document, "figures", folder, of_paper=True),
        *_shown("## The paper's tables", document, "tables", folder, of_paper=True),
        *_differing(document),
        *_list("## What held", document, lambda c: c["verdict"] in ("holds", "fitted")),
        *_shown("## Further figures", document, "figures", folder, of_paper=False),
        *_shown("## Further tables", document, "tables", folder, of_paper=False),
        *_list("## Given: no results, not scored", document, lambda c: c["verdict"] == GIVEN),
        *_list("## Not covered", document, lambda c: c["verdict"] == NOT_COVERED),
        *_rest(document),
    ]
    return "\n\n".join(parts) + "\n"


def _list(heading: str, document: Document, chosen: Any) -> list[str]:
    """Claims without parts, and parts, in the order of the paper."""
    items = []
    for leaf in _leaves(document):
        if not chosen(leaf):
            continue
        said = f" Paper: {text.paper(leaf)}." if leaf["paper"] != leaf["says"] else ""
        ours = f" Ours: {text.ours(leaf)}." if leaf["ours"] is not None else ""
        note = f" ({leaf['note'] or leaf['why']})" if leaf["verdict"] == NOT_COVERED else ""
        fitted = " *fitted*" if leaf["verdict"] == "fitted" else ""
        items.append(f"- **{leaf['id']}**{fitted} {text.full_says(document, leaf)}.{said}{ours}{note}")
    return [heading, "\n".join(items)] if items else []


def _differing(document: Document) -> list[str]:
    found = []
    for leaf in _leaves(document):
        if not is_deviation(leaf):
            continue
        said = f" Paper: {text.paper(leaf)}." if leaf["paper"] != leaf["says"] else ""
        found.append(
            f"- **{leaf['id']}** *{leaf['verdict']}*: {text.full_says(document, leaf)} ({leaf['where']}).{said} "
            f"Ours: {text.ours(leaf)}; {text.why(document, leaf)}"
        )
    return ["## What differs, and why", "\n".join(found)] if found else []


def _leaves(document: Document) -> list[Mapping[str, Any]]:
    """Claims without parts, and parts, in the order of the paper."""
    wholes = {claim["whole"] for claim in document["claims"]}
    return [claim for claim in document["claims"] if claim["id"] not in wholes]


def _claims_at(document: Document, key: str) -> list[str]:
    items = [
        f"- {leaf['verdict']}: **{leaf['id']}** {text.full_says(document, leaf)}"
        for leaf in _leaves(document)
        if key in places(leaf["where"])
    ]
    return ["\n".join(items)] if items else []


def _shown(heading: str, document: Document, what: str, folder: str, *, of_paper: bool) -> list[str]:
    """`figures` or `tables`, each with what is claimed of it."""
    prefix = {"figures": "fig-", "tables": "table-"}[what]
    chosen = [e for e in document[what] if e["key"].startswith(prefix) == of_paper]
    found: list[str] = [heading] if chosen else []
    for e in chosen:
        picture = f"![{e['title']}]({folder}/shipped/{e['key']}.png)"
        found += [f"### {e['title']}", picture if what == "figures" else _table(text.own_table(e))]
        found += [e["caption"]] if e["caption"] else []
        found += _claims_at(document, e["key"])
    return found


def _rest(document: Document) -> Iterable[str]:
    """Assumptions, map and controls."""
    for table in text.tables(document):
        if table.title.startswith(("Assumptions", "Verdict map", "Controls")):
            yield from (f"## {table.title}", _table(table))


def _table(table: text.Table) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def index(documents: Sequence[Document]) -> str:
    """The page that lists them."""
    rows = [
        [
            f"[{d['paper']['name']}]({d['paper']['name']}.md)",
            f"{', '.join(d['paper']['authors'])}: {d['paper']['title']} ({d['paper']['year']})",
            f"`{d['study']}`",
            text.counts(d["score"]),
            text.counts(d["score_parts"]),
            str(d["given"]),
        ]
        for d in documents
    ]
    columns = ["page", "paper", "study", "claims", "parts and procedures", "given"]
    return (
        "# Replications\n\nPapers, held claim by claim against what the same networks do here. The pages are made by\n"
        "`make replications` from the full runs that ship with the package. What of each paper is here, system by\n"
        f"system and figure by figure: [coverage](coverage.md).\n\n{_table(text.Table('', columns, rows))}\n"
    )
