"""claims.toml and assumptions.toml: what may stand there, and what is said about what may not."""

from typing import Any

import pytest

from airloom.errors import UsageError
from airloom.study import assumptions, claims

GOOD: dict[str, Any] = {"id": "X1", "kind": "v", "where": "2", "says": "so", "paper": 3, "unit": "s", "tolerance": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "x"}, "valid: v, r, o, s, p"),
        ({"tolerance": "a lot"}, "expected a number in the unit, or a share"),
        ({"tolerance": -1}, "not negative"),
        ({"paper": "text"}, "needs a number"),
        ({"order": "<"}, "nothing that a claim of kind v has"),
        ({"where": None}, "no 'where'"),
        ({"verdict": "holds"}, "nothing that a claim of kind v has"),
        ({"runs": 0}, "a number of runs"),
        ({"at_least": "x"}, "at_least is a number"),
        ({"part": [{"id": "Y1", "says": "s"}], "tolerance": None}, "begins with that of its claim"),
        ({"part": [{"id": "X1.a", "says": "s"}]}, "has parts"),
    ],
)
def test_a_wrong_claim_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    entry = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message) as caught:
        claims.parse({"claim": [entry]})
    assert "X1" in str(caught.value) or "Y1" in str(caught.value)


def test_ids_are_there_once() -> None:
    with pytest.raises(UsageError, match="X1 is there twice"):
        claims.parse({"claim": [GOOD, GOOD]})


def test_parts_take_over_what_they_do_not_say() -> None:
    whole = {key: value for key, value in GOOD.items() if key not in ("paper", "tolerance", "unit")}
    part = {"id": "X1.a", "paper": 4, "tolerance": "5%"}
    (claim,) = claims.parse({"claim": [{**whole, "assumptions": ["a"], "part": [part]}]}).claims
    (found,) = claim.parts
    assert (found.kind, found.where, found.says, found.assumptions) == ("v", "2", "so", ("a",))
    assert found.band == pytest.approx((3.8, 4.2))


ENTRY: dict[str, Any] = {
    "id": "a",
    "says": "what",
    "default": "one",
    "why": "so",
    "role": "decisive",
    "source": "guess",
    "set": {"k": 1},
    "levels": [{"label": "two", "set": {"k": 2}}, {"label": "later"}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"role": "other"}, "valid: decisive, level, calibration"),
        ({"source": "me"}, "valid: paper, standard, guess"),
        ({"why": None}, "no 'why'"),
        ({"levels": ["two"]}, "a level is"),
        ({"levels": [{"label": "one"}]}, "there twice"),
        ({"fitted_to": ["X1"]}, "a calibration, and nothing else"),
        ({"role": "calibration"}, "a calibration, and nothing else"),
        ({"colour": 1}, "unknown key"),
    ],
)
def test_a_wrong_assumption_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    entry = {key: value for key, value in {**ENTRY, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        assumptions.parse({"assumption": [entry]})


def test_readings_are_the_default_each_level_and_pairs_of_decisive_ones() -> None:
    second = {**ENTRY, "id": "b", "set": {"m": 1}, "levels": [{"label": "x", "set": {"m": 2}}]}
    third = {**second, "id": "c", "role": "level", "levels": [{"label": "y", "set": {"n": 3}}]}
    known = assumptions.parse({"assumption": [ENTRY, second, third]})
    found = {reading.name: reading.settings for reading in assumptions.readings(known)}
    assert found == {
        "default": {"k": 1, "m": 1},
        "default, by another name": {"k": 1, "m": 1},
        "a = two": {"k": 2, "m": 1},
        "b = x": {"k": 1, "m": 2},
        "c = y": {"k": 1, "m": 1, "n": 3},
        "a = two, b = x": {"k": 2, "m": 2},
    }
    quick = [reading.name for reading in assumptions.readings(known, joint=False)]
    assert "a = two, b = x" not in quick
