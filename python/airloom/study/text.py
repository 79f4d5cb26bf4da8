"""A study's report for a terminal: tables of texts, deviations first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from airloom.study.claims import SCORED, Claim
from airloom.study.data import Data, NotSwept
from airloom.study.folder import Study
from airloom.study.outcome import Outcome, covered, not_run
from airloom.study.rules import DIFFERS, HOLDS, NO_COMPUTATION, NOT_COVERED, UNCLEAR, VERDICTS, Result


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


def headline(outcome: Outcome) -> str:
    """The score in one line."""
    scored, parts = outcome.score(), outcome.score(("p",))
    total = sum(1 for c in outcome.study.claims.claims if c.kind in SCORED)
    return (
        f"{outcome.study.name}, {outcome.depth}: of {total} claims {covered(outcome)} computed: {_counts(scored)}; "
        f"parts and procedures: {_counts(parts)}"
    )


def _counts(score: dict[str, int]) -> str:
    order = [HOLDS, *(v for v in VERDICTS if v != HOLDS)]
    return ", ".join(f"{score[v]} {v}" for v in order if v in score) or "none"


def ours(result: Result) -> str:
    """Our number with its interval, unit and seeds."""
    if result.ours is None:
        return "–"
    text = number(result.ours)
    if result.low is not None and result.high is not None and result.low != result.high:
        text += f" [{number(result.low)}, {number(result.high)}]"
    text += f" {result.unit}" if result.unit else ""
    return text + (f", {result.seeds} seeds" if result.seeds else "")


def paper(claim: Claim) -> str:
    """What the paper says, in short."""
    if isinstance(claim.paper, float):
        return f"{number(claim.paper)} {claim.unit}".strip()
    return claim.paper or claim.says


def in_order(outcome: Outcome, *, controls: bool = False) -> list[Claim]:
    """Claims, each followed by its parts; deviations first, what is not covered last."""
    group = outcome.study.claims.controls if controls else outcome.study.claims.claims
    wholes = sorted(group, key=lambda c: VERDICTS.index(outcome.results[c.id].verdict))
    return [each for claim in wholes for each in (claim, *claim.parts)]


def tables(outcome: Outcome, further: Sequence[Table] = ()) -> list[Table]:
    """Everything that the report says, in its order, in full; `further` are the study's own tables."""
    return [
        _claims(outcome),
        _not_covered(outcome),
        _assumptions(outcome),
        *_map(outcome),
        *further,
        _controls(outcome),
        *_pairings(outcome),
    ]


def of_study(study: Study, data: Data) -> list[Table]:
    """The tables of `study.py` (`TABLES`: title and a function that returns columns and rows).

    One that needs what was not made at this depth is left out.
    """
    found = []
    for entry in getattr(study.module, "TABLES", {}).values():
        try:
            columns, rows = entry.make(data)
        except NotSwept:
            continue
        found.append(Table(entry.title, list(columns), [[number(cell) for cell in row] for row in rows]))
    return found


#: Characters of a sentence in a table of the terminal.
_SHORT = 56


def terminal(outcome: Outcome) -> list[Table]:
    """The same for a terminal: short sentences, and without what only matters for the record."""
    keep = {
        "claim", "kind", "verdict", "paper", "ours", "assumption", "default", "levels", "role", "source",
        "at the default", "holds at", "what turns it", "difference, same seeds", "difference, other seeds", "agree", "",
    }  # fmt: skip
    found = []
    for table in tables(outcome):
        columns = [n for n, name in enumerate(table.columns) if name in keep or name.startswith("of ")]
        rows = [[_shortened(row[n]) for n in columns] for row in table.rows]
        found.append(Table(table.title, [table.columns[n] for n in columns], rows))
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1].rstrip()}…"


def deviations(outcome: Outcome) -> list[str]:
    """A sentence for every claim and part that differs or is unclear: what, ours, why, and what would turn it."""
    found = []
    for claim in in_order(outcome):
        result = outcome.results[claim.id]
        if claim.parts or result.verdict not in (DIFFERS, UNCLEAR):
            continue
        said = (
            f"paper {paper(claim)}, " if claim.paper is not None else f"{claim.statistic}: " if claim.statistic else ""
        )
        text = f"{claim.id} {result.verdict}: {claim.says} ({said}ours {ours(result)}): "
        text += _why(outcome, claim)
        found.append(f"{text}; rests on {', '.join(claim.assumptions)}" if claim.assumptions else text)
    return found


def _why(outcome: Outcome, claim: Claim) -> str:
    why = outcome.results[claim.id].why
    flipped = next((r for r in outcome.map if r.claim == claim.id and r.flips), None)
    if flipped:
        why += f"; {flipped.flips[0].verdict} with {' or '.join(f.reading for f in flipped.flips[:3])}"
    return why + (f" [{claim.note}]" if claim.note else "")


_CLAIM_COLUMNS = ["claim", "kind", "where", "what", "verdict", "paper", "ours", "why", "rests on"]


def _claim_row(outcome: Outcome, claim: Claim) -> list[str]:
    result = outcome.results[claim.id]
    said = paper(claim) if claim.paper is not None else "as said" if not claim.parts else ""
    return [
        claim.id, claim.kind, claim.where, claim.says, result.verdict, said, ours(result), _why(outcome, claim),
        ", ".join(claim.assumptions),
    ]  # fmt: skip


def _claims(outcome: Outcome) -> Table:
    shown: list[list[str]] = []
    for whole in sorted(outcome.study.claims.claims, key=lambda c: VERDICTS.index(outcome.results[c.id].verdict)):
        leaves = whole.parts or (whole,)
        if any(outcome.results[leaf.id].verdict != NOT_COVERED for leaf in leaves):
            shown.extend(_claim_row(outcome, claim) for claim in (whole, *whole.parts))
    return Table("Claims, deviations first", _CLAIM_COLUMNS, shown)


def _not_covered(outcome: Outcome) -> Table:
    rows = []
    for claim in outcome.study.claims.claims:
        leaves = claim.parts or (claim,)
        if all(outcome.results[leaf.id].verdict == NOT_COVERED for leaf in leaves):
            why = outcome.results[claim.id].why if not claim.parts else ""
            said = claim.note or (why if why != NO_COMPUTATION else "")
            rows.append([claim.id, claim.kind, claim.where, claim.says, said])
    return Table("Not covered: nothing is computed for these", ["claim", "kind", "where", "paper", "remark"], rows)


def _assumptions(outcome: Outcome) -> Table:
    rows = []
    for a in outcome.study.assumptions:
        levels = [lv.label for lv in a.levels if lv.settings is not None]
        missing = not_run(a)
        after = "chosen after the result" if a.id in outcome.after_result else ""
        text = ", ".join(levels) + (f" (not run: {', '.join(missing)})" if missing else "")
        rows.append([a.id, a.says, a.default.label, text, a.role, a.source, a.why, a.introduced, after])
    columns = ["assumption", "what", "default", "levels", "role", "source", "why", "since", ""]
    return Table("Assumptions", columns, rows)


def _map(outcome: Outcome) -> list[Table]:
    if not outcome.map:
        return []
    rows = []
    for row in outcome.map:
        counted = {v: sum(x == v for x in row.verdicts.values()) for v in VERDICTS}
        others = ", ".join(f"{n} {v}" for v, n in counted.items() if n)
        flips = "; ".join(f"{f.verdict} with {f.reading}" for f in row.flips) or "nothing"
        rows.append([row.claim, row.verdicts["default"], f"{row.share:.0%}", others, flips])
    columns = ["claim", "at the default", "holds at", f"of {len(outcome.map[0].verdicts)} readings", "what turns it"]
    return [Table("Verdict map: the same claims at every reading of the assumptions", columns, rows)]


def _controls(outcome: Outcome) -> Table:
    rows = [_claim_row(outcome, claim) for claim in in_order(outcome, controls=True)]
    if outcome.null_compared:
        same = not outcome.null_differences
        rows.append(
            [
                "null", "p", "control", "the default under another name differs in nothing",
                HOLDS if same else DIFFERS, "0",
                f"{outcome.null_compared - len(outcome.null_differences)} of {outcome.null_compared} results the same",
                "to the last digit" if same else f"differing: {', '.join(outcome.null_differences)}", "",
            ]
        )  # fmt: skip
    return Table("Controls of the study itself; they are no claims of the paper", _CLAIM_COLUMNS, rows)


def _pairings(outcome: Outcome) -> list[Table]:
    if not outcome.pairings:
        return []
    rows = []
    for p in outcome.pairings:
        paired = f"{number(p.paired.mean)} [{number(p.paired.low)}, {number(p.paired.high)}]"
        unpaired = f"{number(p.unpaired.mean)} [{number(p.unpaired.low)}, {number(p.unpaired.high)}]"
        rows.append([p.claim, paired, unpaired, "yes" if p.agrees else "no"])
    columns = ["claim", "difference, same seeds", "difference, other seeds", "agree"]
    return [Table("Pairing: with seeds of their own both sides must give the same mean, less precisely", columns, rows)]
