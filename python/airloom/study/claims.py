"""`claims.toml`: the paper, and what it states: one entry per number, ratio, ordering, shape, and part or procedure.

An entry says what the paper says and what would be near enough, fixed before any result. What is computed for it is in
the study's `study.py`; what follows from both, the verdict, is in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError
from airloom.study import paper
from airloom.study.paper import Paper

#: What cannot fail: arithmetic on the paper's own numbers, definitions, settings read back. Listed, never scored.
GIVEN = "given"

#: v value, r ratio, o ordering, s shape, p part or procedure.
KINDS = ("v", "r", "o", "s", "p", GIVEN)

#: Kinds that the score counts; the others are counted apart.
SCORED = ("v", "r", "o", "s")

#: What may be said of each kind, besides what every entry has; at least one of the first group makes it a criterion.
_CRITERIA: dict[str, tuple[str, ...]] = {
    "v": ("tolerance", "at_least", "at_most"),
    "r": ("tolerance", "at_least", "at_most"),
    "o": ("order", "equal", "size"),
    "s": ("at_least", "at_most", "between"),
    "p": ("equals", "tolerance"),
    GIVEN: ("equals", "tolerance", "at_least", "at_most", "between", "order", "equal", "size"),
}
_EVERY = (
    "id", "kind", "where", "says", "paper", "unit", "runs", "assumptions", "note", "part", "statistic", "ours",
    "tied_to", "because",
)  # fmt: skip


class Claim(NamedTuple):
    """One statement of a paper, or a part of one."""

    id: str
    kind: str
    #: Its place in the paper.
    where: str
    says: str
    #: What the paper gives: a number, or the statement in short.
    paper: float | str | None
    unit: str
    #: How far the result may be from the paper's number: a share of it if `is_share`, else in `unit`.
    tolerance: float | None
    is_share: bool
    at_least: float | None
    at_most: float | None
    between: tuple[float, float] | None
    #: `<` or `>`: what is compared stands in this order.
    order: str | None
    #: Bounds of the ratio within which two are equal.
    equal: tuple[float, float] | None
    #: "slightly": the difference is at most this share of the larger mean.
    size: float | None
    equals: Any
    #: Runs behind the paper's number; none if it does not say.
    runs: int | None
    #: Name of the statistic of a shape.
    statistic: str
    assumptions: tuple[str, ...]
    #: Claims that this one is made of or follows from: where one of them is fitted, this one predicts nothing either.
    tied_to: tuple[str, ...]
    #: Remark on a trap: a slip, gap or contradiction in the paper.
    note: str
    #: Why ours differs, written after the result; shown where it does.
    because: str
    #: A question that the paper raises and does not answer.
    is_ours: bool
    parts: tuple[Claim, ...]

    @property
    def has_criterion(self) -> bool:
        """Is there anything that a result could be held against?"""
        return any(getattr(self, key) is not None for key in _CRITERIA[GIVEN])

    @property
    def band(self) -> tuple[float, float]:
        """The numbers that are near enough to the paper's value."""
        assert isinstance(self.paper, float)
        assert self.tolerance is not None
        reach = abs(self.paper) * self.tolerance if self.is_share else self.tolerance
        return self.paper - reach, self.paper + reach


class Claims(NamedTuple):
    """The statements of a paper, and the study's controls of itself, which have the same form."""

    paper: Paper
    claims: tuple[Claim, ...]
    controls: tuple[Claim, ...]

    def leaves(self) -> Iterator[Claim]:
        """Everything that has a verdict of its own: claims without parts, parts, controls."""
        for claim in (*self.claims, *self.controls):
            yield from claim.parts or (claim,)


def read(path: Path) -> Claims:
    """The claims in a file. Raises `UsageError` with the file and the claim that is wrong."""
    return parse(fields.read_toml(path), str(path))


def parse(table: Mapping[str, Any], file: str = "claims.toml") -> Claims:
    """The claims of a table as TOML gives it.

    >>> claim = {"id": "X1", "kind": "v", "where": "2", "says": "s", "paper": 3, "unit": "s", "tolerance": "10%"}
    >>> paper = {"authors": ["N. Obody"], "title": "On links", "year": 2001, "summary": "Done. With. Out."}
    >>> parse({"paper": paper, "claim": [claim]}).claims[0].band
    (2.7, 3.3)
    """
    fields.check(table, ("paper", "claim", "control"), file)
    claims = tuple(_claim(entry, file, None) for entry in fields.tables(table, "claim", file))
    controls = tuple(_claim(entry, file, None) for entry in fields.tables(table, "control", file))
    if not claims:
        raise UsageError(f"{file}: no [[claim]]")
    every = [each for claim in (*claims, *controls) for each in (claim, *claim.parts)]
    seen: set[str] = set()
    for each in every:
        if each.id in seen:
            raise UsageError(f"{file}: {each.id} is there twice")
        seen.add(each.id)
    for each in every:
        for other in each.tied_to:
            if other not in seen or other == each.id:
                raise UsageError(f"{file}: {each.id} is tied to {other!r}, which is no other claim")
    return Claims(paper.parse(table.get("paper"), file), claims, controls)


def _claim(entry: Mapping[str, Any], file: str, whole: Claim | None) -> Claim:
    name = entry.get("id")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{file}: a claim without an id")
    where = f"{file}: {name}"
    if whole and not name.startswith(f"{whole.id}."):
        raise UsageError(f"{where}: the id of a part begins with that of its claim: {whole.id}.{name}")
    kind = entry.get("kind", whole.kind if whole else None)
    if kind not in KINDS:
        raise UsageError(f"{where}: kind {kind!r}; valid: {', '.join(KINDS)}")
    fields.check(entry, (*_CRITERIA[kind], *_EVERY), f"{where}, a claim of kind {kind}")
    for key in ("where", "says"):
        if not isinstance(entry.get(key, getattr(whole, key) if whole else None), str):
            raise UsageError(f"{where}: no {key!r}")
    tolerance, is_share = _tolerance(entry.get("tolerance"), where)
    said = entry.get("paper")
    if tolerance is not None and not isinstance(said, int | float):
        raise UsageError(f"{where}: a tolerance needs a number in `paper`")
    order = entry.get("order")
    if order not in (None, "<", ">"):
        raise UsageError(f"{where}: order {order!r}; valid: <, >")
    found = Claim(
        id=name,
        kind=kind,
        where=str(entry.get("where", whole.where if whole else "")),
        says=str(entry.get("says", whole.says if whole else "")),
        paper=float(said) if isinstance(said, int | float) and not isinstance(said, bool) else said,
        unit=str(entry.get("unit", "")),
        tolerance=tolerance,
        is_share=is_share,
        at_least=_number(entry, "at_least", where),
        at_most=_number(entry, "at_most", where),
        between=_pair(entry, "between", where),
        order=order,
        equal=_pair(entry, "equal", where),
        size=_number(entry, "size", where),
        equals=entry.get("equals"),
        runs=entry.get("runs"),
        statistic=str(entry.get("statistic", "")),
        assumptions=fields.texts(entry, "assumptions", where, whole.assumptions if whole else ()),
        tied_to=fields.texts(entry, "tied_to", where, whole.tied_to if whole else ()),
        note=str(entry.get("note", "")),
        because=str(entry.get("because", "")),
        is_ours=bool(entry.get("ours", False)),
        parts=(),
    )
    parts = tuple(_claim(part, file, found) for part in fields.tables(entry, "part", where))
    if parts and found.has_criterion:
        raise UsageError(f"{where}: has parts, so what is near enough is said in these")
    if found.runs is not None and (not isinstance(found.runs, int) or found.runs < 1):
        raise UsageError(f"{where}: runs is a number of runs, not {found.runs!r}")
    return found._replace(parts=parts)


def _tolerance(given: object, where: str) -> tuple[float | None, bool]:
    if given is None:
        return None, False
    try:
        if isinstance(given, str) and given.endswith("%"):
            value, is_share = float(given[:-1]) / 100, True
        else:
            value, is_share = float(given), False  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(
            f'{where}: tolerance {given!r}; expected a number in the unit, or a share such as "5%"'
        ) from None
    if value < 0:
        raise UsageError(f"{where}: a tolerance is not negative")
    return value, is_share


def _number(entry: Mapping[str, Any], key: str, where: str) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: {key} is a number, not {value!r}")
    return float(value)


def _pair(entry: Mapping[str, Any], key: str, where: str) -> tuple[float, float] | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(x, int | float) for x in value):
        raise UsageError(f"{where}: {key} is a pair of numbers, not {value!r}")
    low, high = float(value[0]), float(value[1])
    if not low < high:
        raise UsageError(f"{where}: {key} runs backwards")
    return low, high
