"""A study's document as tables of texts, deviations first: for a terminal, and in full for a page or a file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from airloom.study.claims import GIVEN
from airloom.study.document import Document, covered, is_deviation
from airloom.study.rules import DIFFERS, HOLDS, NO_COMPUTATION, NOT_COVERED, VERDICTS

Claim = Mapping[str, Any]


class Table(NamedTuple):
    """A heading, columns and rows of texts."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def number(value: Any) -> str:
    """A number with four digits that count, anything else as it is."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–" if math.isnan(value) else "infinite"
        return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(number(v) for v in value)
    return str(value)


def headline(document: Document) -> str:
    """The score in one line."""
    total = sum(document["score"].values())
    given = f"; given, not scored: {document['given']}" if document["given"] else ""
    return (
        f"{document['study']}, {document['depth']}: of {total} claims {covered(document)} computed: "
        f"{counts(document['score'])}; parts and procedures: {counts(document['score_parts'])}{given}"
    )


def counts(score: Mapping[str, int]) -> str:
    """Verdicts with their numbers, what holds first."""
    order = [HOLDS, *(v for v in VERDICTS if v != HOLDS)]
    return ", ".join(f"{score[v]} {v}" for v in order if v in score) or "none"


def ours(claim: Claim) -> str:
    """Our number with its interval, unit and seeds."""
    if claim["ours"] is None:
        return "–"
    text = number(claim["ours"])
    low, high = claim["low"], claim["high"]
    if low is not None and high is not None and low != high:
        text += f" [{number(low)}, {number(high)}]"
    text += f" {claim['unit']}" if claim["unit"] else ""
    return text + (f", {claim['seeds']} seed{'s' if claim['seeds'] > 1 else ''}" if claim["seeds"] else "")


def paper(claim: Claim) -> str:
    """What the paper says, in short."""
    said = claim["paper"]
    return f"{number(said)} {claim['unit']}".strip() if isinstance(said, float) else str(said)


def wholes(document: Document, group: str = "claims") -> list[Claim]:
    """Claims without parts' rows; deviations first, what is not covered last."""
    found = [claim for claim in document[group] if claim["whole"] is None]
    return sorted(found, key=lambda c: VERDICTS.index(c["verdict"]))


def parts(document: Document, whole: Claim, group: str = "claims") -> list[Claim]:
    """The parts of a claim."""
    return [claim for claim in document[group] if claim["whole"] == whole["id"]]


def leaves(document: Document) -> list[Claim]:
    """Claims without parts, and parts: what has a verdict of its own; deviations first."""
    return [leaf for whole in wholes(document) for leaf in (parts(document, whole) or [whole])]


def _whole(document: Document, claim: Claim) -> Claim:
    """What it is a part of, or the claim itself."""
    return next((c for c in document["claims"] if c["id"] == claim["whole"]), claim)


def full_says(document: Document, claim: Claim) -> str:
    """What a claim says; of a part, with what its whole says."""
    whole = _whole(document, claim)
    return f"{whole['says']}: {claim['says']}" if whole["says"] != claim["says"] else str(claim["says"])


def because(document: Document, claim: Claim) -> str:
    """Why ours differs, in the study's words: said of the claim, or of its whole."""
    return str(claim["because"] or _whole(document, claim)["because"])


def deviations(document: Document) -> list[str]:
    """A sentence for every claim and part that differs, is unclear or just compatible: what, ours, and why."""
    found = []
    for claim in leaves(document):
        if not is_deviation(claim):
            continue
        said = f"paper {paper(claim)}, " if claim["paper"] != claim["says"] else ""
        said = said or (f"{claim['statistic']}: " if claim["statistic"] else "")
        text = f"{claim['id']} {claim['verdict']}: {full_says(document, claim)} ({said}ours {ours(claim)}): "
        found.append(text + why(document, claim))
    return found


def on_deviations(document: Document) -> str:
    """How many deviations are listed, and why these are not as many as the score says; empty if there are none."""
    listed = [claim for claim in leaves(document) if is_deviation(claim)]
    of_parts = [claim for claim in listed if claim["whole"] is not None]
    if not listed:
        return ""
    verdicts = counts(Counter(claim["verdict"] for claim in listed))
    said = f"{len(listed)} listed ({verdicts})"
    if not of_parts:
        return said
    claims = len({claim["whole"] for claim in of_parts})
    whole = len(listed) - len(of_parts)
    pieces = [f"{whole} {'claim' if whole == 1 else 'claims'} without parts"] if whole else []
    pieces.append(f"{len(of_parts)} parts of {claims} {'claim' if claims == 1 else 'claims'}")
    return f"{said}: {' and '.join(pieces)}; the score counts a claim once"


def why(document: Document, claim: Claim) -> str:
    """Why a claim has its verdict: the test, what would turn it, and the study's reason for a deviation."""
    text = str(claim["why"])
    if claim["turned"]:
        verdict = claim["turned"][0][0]
        text += f"; {verdict} with {' or '.join(reading for _, reading in claim['turned'])}"
    if is_deviation(claim) and (reason := because(document, claim)):
        text += f". {reason[0].upper()}{reason[1:]}"
    return text + (f" [{claim['note']}]" if claim["note"] else "")


_COLUMNS = ["claim", "kind", "where", "what", "verdict", "paper", "ours", "why", "rests on"]


def claim_row(document: Document, claim: Claim) -> list[str]:
    """One claim as a row of the table of claims."""
    said = paper(claim) if claim["paper"] != claim["says"] else "as said"
    rests = ", ".join([*claim["assumptions"], *claim["tied_to"]])
    return [
        claim["id"], claim["kind"], claim["where"], claim["says"], claim["verdict"], said, ours(claim),
        why(document, claim), rests,
    ]  # fmt: skip


def claims_table(document: Document, title: str, chosen: Sequence[Claim]) -> Table:
    """Claims, each followed by its parts."""
    rows = [claim_row(document, each) for whole in chosen for each in (whole, *parts(document, whole))]
    return Table(title, _COLUMNS, rows)


def tables(document: Document) -> list[Table]:
    """Everything but the study's own tables, in its order, in full."""
    every = wholes(document)
    scored = [c for c in every if c["verdict"] not in (GIVEN, NOT_COVERED)]
    given = [c for c in every if c["verdict"] == GIVEN]
    found = [claims_table(document, "Claims, deviations first", scored)]
    if given:
        title = "Given: arithmetic on the paper's numbers, definitions, settings; no results, not scored"
        found.append(claims_table(document, title, given))
    return [
        *found,
        *_not_covered(document),
        _assumptions(document),
        *_map(document),
        _controls(document),
        *_pairings(document),
    ]


def own(document: Document) -> list[Table]:
    """The study's own tables: the paper's, and ours."""
    return [own_table(entry) for entry in document["tables"]]


def own_table(entry: Mapping[str, Any]) -> Table:
    """A table of the study."""
    return Table(entry["title"], list(entry["columns"]), [[number(cell) for cell in row] for row in entry["rows"]])


#: Characters of a sentence in a table of the terminal.
_SHORT = 56


def terminal(document: Document) -> list[Table]:
    """The same for a terminal: short sentences, and without what only matters for the record."""
    keep = {
        "claim", "kind", "verdict", "paper", "ours", "assumption", "default", "levels", "role", "source",
        "holds at", "what turns it", "difference, same seeds", "difference, other seeds", "agree", "",
    }  # fmt: skip
    found = []
    for table in tables(document):
        shown = [
            n for n, name in enumerate(table.columns) if name in keep or name.startswith(("of ", "at the default"))
        ]
        rows = [[_shortened(row[n]) for n in shown] for row in table.rows]
        found.append(Table(table.title, [table.columns[n] for n in shown], rows))
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1].rstrip()}…"


def _not_covered(document: Document) -> list[Table]:
    rows = []
    for claim in wholes(document):
        if claim["verdict"] == NOT_COVERED:
            said = claim["note"] or (claim["why"] if claim["why"] != NO_COMPUTATION else "")
            rows.append([claim["id"], claim["kind"], claim["where"], claim["says"], said])
    if not rows:
        return []
    return [Table("Not covered: nothing is computed for these", ["claim", "kind", "where", "paper", "remark"], rows)]


def _assumptions(document: Document) -> Table:
    rows = []
    for a in document["assumptions"]:
        after = "chosen after the result" if a["after_result"] else ""
        text = ", ".join(a["levels"]) + (f" (not run: {', '.join(a['not_run'])})" if a["not_run"] else "")
        rows.append([a["id"], a["says"], a["default"], text, a["role"], a["source"], a["why"], after])
    columns = ["assumption", "what", "default", "levels", "role", "source", "why", ""]
    return Table("Assumptions", columns, rows)


def _map(document: Document) -> list[Table]:
    if not document["map"]:
        return []
    rows = []
    for row in document["map"]:
        others = ", ".join(f"{n} {v}" for v, n in row["counts"].items())
        flips = "; ".join(f"{verdict} with {reading}" for verdict, reading in row["turned"]) or "nothing"
        rows.append(
            [row["claim"], row["default"], "–" if row["share"] is None else f"{row['share']:.0%}", others, flips]
        )
    # Readings have fewer seeds than the default has above, so that what is clear there may be unclear here.
    default = f"at the default, {document['reading_seeds']} seeds"
    columns = ["claim", default, "holds at", f"of {document['readings']} readings", "what turns it"]
    return [Table("Verdict map: the same claims at every reading of the assumptions", columns, rows)]


def _controls(document: Document) -> Table:
    chosen = wholes(document, "controls")
    rows = [claim_row(document, each) for whole in chosen for each in (whole, *parts(document, whole, "controls"))]
    compared, differing = document["null"]["compared"], document["null"]["differing"]
    if compared:
        rows.append(
            [
                "null", "p", "control", "the default under another name differs in nothing",
                DIFFERS if differing else HOLDS, "0",
                f"{compared - len(differing)} of {compared} results the same",
                f"differing: {', '.join(differing)}" if differing else "to the last digit", "",
            ]
        )  # fmt: skip
    return Table("Controls of the study itself; they are no claims of the paper", _COLUMNS, rows)


def _pairings(document: Document) -> list[Table]:
    if not document["pairings"]:
        return []
    rows = []
    for p in document["pairings"]:
        shown = (f"{number(mean)} [{number(low)}, {number(high)}]" for mean, low, high in (p["paired"], p["unpaired"]))
        rows.append([p["claim"], *shown, "yes" if p["agrees"] else "no"])
    columns = ["claim", "difference, same seeds", "difference, other seeds", "agree"]
    return [Table("Pairing: with seeds of their own both sides must give the same mean, less precisely", columns, rows)]
