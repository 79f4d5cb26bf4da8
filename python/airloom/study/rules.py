"""From what a paper says and what was measured to a verdict. Nothing here knows a study.

| verdict | meaning |
|---|---|
| `holds` | the whole interval of the result lies where the paper says |
| `compatible` | outside the tolerance, and still what a mean of as few runs as the paper made could have been |
| `differs` | the whole interval lies elsewhere |
| `fitted` | it holds, but a setting was fitted to it: not a prediction |
| `unclear` | the interval lies on both sides: more seeds are needed |
| `given` | it cannot fail: arithmetic on the paper's numbers, a definition, a setting; never scored |
| `not-covered` | nothing is computed for it |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airloom.analysis import statistics
from airloom.analysis.statistics import ALPHA
from airloom.errors import UsageError
from airloom.study.claims import GIVEN, Claim

HOLDS, COMPATIBLE, DIFFERS = "holds", "compatible", "differs"
FITTED, UNCLEAR, NOT_COVERED = "fitted", "unclear", "not-covered"

#: All verdicts, in the order in which a report shows them: deviations first.
VERDICTS = (DIFFERS, UNCLEAR, COMPATIBLE, FITTED, HOLDS, GIVEN, NOT_COVERED)

#: What a whole has when its parts differ: the first of these that any part has.
_WHOLE = (DIFFERS, NOT_COVERED, UNCLEAR, COMPATIBLE, FITTED, HOLDS)


#: One per seed, mostly.
Numbers = NDArray[np.float64]


class Grid(NamedTuple):
    """The values that a seed can have, where they are few: so far apart, on a scale with two ends."""

    step: float
    least: float
    most: float


class Value(NamedTuple):
    """A number measured once per seed; or an exact one, which has no interval."""

    samples: Numbers
    unit: str
    is_exact: bool = False
    grid: Grid | None = None


class Pair(NamedTuple):
    """Two things measured under the same seeds, in the same order of seeds."""

    a: Numbers
    b: Numbers
    unit: str


class Setting(NamedTuple):
    """A part or procedure, as read back from a run."""

    value: Any
    unit: str = ""


Evidence = Value | Pair | Setting


def value(samples: ArrayLike, unit: str, grid: Grid | None = None) -> Value:
    """A number measured once per seed. Raises `ValueError` for anything but one number each.

    `grid` is for what has few values, such as a rank correlation of six points: a few seeds may well agree on one.
    """
    return Value(_per_seed(samples), unit, grid=grid)


def exact(number: float, unit: str) -> Value:
    """A number that no seed changes, or one that says what occurs among all runs."""
    return Value(np.array([number], dtype=np.float64), unit, is_exact=True)


def jackknifed(statistic: Callable[..., float], *samples: ArrayLike, unit: str) -> Value:
    """A statistic of samples that have a row for each seed: what is no mean of a number per seed."""
    return Value(statistics.pseudo_values(statistic, *samples), unit)


def _per_seed(samples: ArrayLike) -> Numbers:
    found = np.asarray(samples, dtype=np.float64)
    if found.ndim > 1:
        # More numbers than seeds would pass for more seeds: what a seed has several of is averaged first.
        raise ValueError(f"an array of {' x '.join(map(str, found.shape))} is not one number per seed")
    return found.ravel()


def pair(a: ArrayLike, b: ArrayLike, unit: str) -> Pair:
    """Two measured things under the same seeds. Raises `ValueError` for anything but one number per seed each."""
    x, y = _per_seed(a), _per_seed(b)
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} numbers are no pairs")
    return Pair(x, y, unit)


class Result(NamedTuple):
    """What came out for a claim."""

    verdict: str
    #: Our number (or the setting read back), its interval and unit.
    ours: Any
    low: float | None
    high: float | None
    unit: str
    #: Seeds behind it; 0 for exact numbers and settings.
    seeds: int
    #: Why this verdict, in words.
    why: str
    #: For orderings: p before correction.
    p: float | None = None
    #: For values: in which a mean of as many runs as the paper made falls.
    prediction: tuple[float, float] | None = None


#: Why most claims are not covered.
NO_COMPUTATION = "no computation"


def nothing(why: str = NO_COMPUTATION) -> Result:
    """What a claim has for which nothing is computed."""
    return Result(NOT_COVERED, None, None, None, "", 0, why)


def judge(claims: Sequence[Claim], evidence: Sequence[Evidence | None]) -> list[Result]:
    """A result for each claim. Orderings are corrected together for their number (Holm)."""
    ordered = [
        n for n, c in enumerate(claims) if c.order is not None and c.kind != GIVEN and isinstance(evidence[n], Pair)
    ]
    raw = [statistics.paired_difference(evidence[n].a, evidence[n].b).p for n in ordered]  # type: ignore[union-attr]
    corrected = dict(zip(ordered, statistics.holm(raw), strict=True))
    return [_any(claim, found, corrected.get(n)) for n, (claim, found) in enumerate(zip(claims, evidence, strict=True))]


def _any(claim: Claim, found: Evidence | None, p: float | None) -> Result:
    if claim.kind == GIVEN:
        return _given(claim, found)
    return nothing() if found is None else _one(claim, found, p)


def _given(claim: Claim, found: Evidence | None) -> Result:
    """What cannot fail is listed with its number; one that fails all the same shows an error of the study."""
    if found is None:
        return Result(GIVEN, None, None, None, "", 0, "a definition: nothing is measured")
    result = _one(claim, found, None)
    if result.verdict == HOLDS:
        return result._replace(verdict=GIVEN, why=f"no result; {result.why}")
    return result


def _one(claim: Claim, found: Evidence, p: float | None) -> Result:
    if not claim.has_criterion:
        raise UsageError(f"{claim.id} is computed, but its claim does not say what would be near enough")
    if isinstance(found, Setting):
        return _setting(claim, found)
    if isinstance(found, Value):
        return _value(claim, found)
    if claim.order is not None:
        return _ordering(claim, found, 1.0 if p is None else p)
    if claim.equal is not None:
        return _equal(claim, found)
    if claim.size is not None:
        return _size(claim, found)
    return _ratio(claim, found)


def _setting(claim: Claim, found: Setting) -> Result:
    if claim.kind not in ("p", GIVEN):
        raise UsageError(f"{claim.id}: a setting read back is for claims of kind p or given, not {claim.kind}")
    wanted = claim.equals if claim.equals is not None else claim.paper
    if isinstance(found.value, int | float) and claim.tolerance is not None:
        low, high = claim.band
        same = low <= found.value <= high
    else:
        same = found.value == wanted
    why = "read back from the run" if same else f"the run has {found.value!r}, the paper {wanted!r}"
    return Result(HOLDS if same else DIFFERS, found.value, None, None, found.unit, 0, why)


def _interval(found: Value) -> tuple[float, float, float]:
    if found.is_exact:
        number = float(found.samples[0])
        return number, number, number
    mean = statistics.mean_interval(found.samples, 1 - ALPHA)
    if math.isnan(mean.low):
        return mean.value, -math.inf, math.inf
    if mean.method == "constant" and found.grid is not None:
        # None of these seeds has another value, which of all seeds at most this share has (Clopper and Pearson); that
        # it is a neighbouring one is assumed.
        reach = found.grid.step * (1 - (ALPHA / 2) ** (1 / mean.seeds))
        return mean.value, max(mean.value - reach, found.grid.least), min(mean.value + reach, found.grid.most)
    return mean.value, mean.low, mean.high


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _value(claim: Claim, found: Value) -> Result:
    ours, low, high = _interval(found)
    seeds = 0 if found.is_exact else len(found.samples)
    verdict, why = _against(claim, low, high)
    band = None
    if claim.runs is not None and isinstance(claim.paper, float) and not found.is_exact:
        band = statistics.prediction(found.samples, claim.runs)
        # A single seed has no band: it is compatible with everything, and says nothing.
        is_band = math.isfinite(band[0]) and math.isfinite(band[1])
        if verdict in (DIFFERS, UNCLEAR) and is_band and band[0] <= claim.paper <= band[1]:
            verdict = COMPATIBLE
            why = f"outside the tolerance; the mean of {claim.runs} runs falls within {band[0]:.4g} to {band[1]:.4g}"
    return Result(verdict, ours, _finite(low), _finite(high), found.unit, seeds, why, None, band)


def _against(claim: Claim, low: float, high: float) -> tuple[str, str]:
    """An interval against what the claim allows."""
    least, most = _allowed(claim)
    allowed = f"{least:.4g} to {most:.4g}"
    if math.isinf(least):
        allowed = f"at most {most:.4g}"
    elif math.isinf(most):
        allowed = f"at least {least:.4g}"
    if least <= low and high <= most:
        return HOLDS, f"the interval lies within {allowed}"
    if high < least or low > most:
        return DIFFERS, f"the interval lies outside {allowed}"
    return UNCLEAR, f"the interval reaches over the edge of {allowed}"


def _allowed(claim: Claim) -> tuple[float, float]:
    if claim.tolerance is not None:
        return claim.band
    if claim.between is not None:
        return claim.between
    least = -math.inf if claim.at_least is None else claim.at_least
    most = math.inf if claim.at_most is None else claim.at_most
    return least, most


def _ratio(claim: Claim, found: Pair) -> Result:
    r = statistics.ratio_interval(found.a, found.b, 1 - ALPHA)
    verdict, why = _against(claim, r.low, r.high)
    return Result(verdict, r.value, _finite(r.low), _finite(r.high), "ratio", len(found.a), why)


def _ordering(claim: Claim, found: Pair, p: float) -> Result:
    d = statistics.paired_difference(found.a, found.b)
    result = Result(UNCLEAR, d.mean, _finite(d.low), _finite(d.high), found.unit, d.pairs, "", d.p)
    is_so = d.mean < 0 if claim.order == "<" else d.mean > 0
    if d.pairs and np.all(found.a == found.b):
        return result._replace(verdict=DIFFERS, why="no difference in any pair")
    if p < ALPHA:
        verdict = HOLDS if is_so else DIFFERS
        return result._replace(verdict=verdict, why=f"paired difference, p = {p:.2g} after correction")
    return result._replace(why=f"not to be told from no difference: p = {p:.2g} after correction")


def _equal(claim: Claim, found: Pair) -> Result:
    assert claim.equal is not None
    low, high = claim.equal
    r = statistics.ratio_interval(found.a, found.b, 1 - 2 * ALPHA)
    result = Result(UNCLEAR, r.value, _finite(r.low), _finite(r.high), "ratio", len(found.a), "")
    margin = f"{low:.4g} to {high:.4g}"
    if statistics.equivalence(found.a, found.b, low, high) < ALPHA:
        return result._replace(verdict=HOLDS, why=f"equivalent: the 90 % interval of the ratio lies within {margin}")
    if r.low > high or r.high < low:
        return result._replace(verdict=DIFFERS, why=f"the 90 % interval of the ratio lies outside {margin}")
    return result._replace(why=f"the 90 % interval of the ratio reaches over the edge of {margin}")


def _size(claim: Claim, found: Pair) -> Result:
    """The size of a difference, as a share of the larger mean."""
    assert claim.size is not None
    first, second = found.a, found.b
    if first.mean() > second.mean():
        first, second = second, first
    r = statistics.ratio_interval(first, second, 1 - ALPHA)
    share, low, high = 1 - r.value, 1 - r.high, 1 - r.low
    verdict = HOLDS if high <= claim.size else DIFFERS if low > claim.size else UNCLEAR
    why = f"{share:.1%} of the larger mean, {claim.size:.0%} allowed"
    return Result(verdict, share, _finite(low), _finite(high), "share", len(first), why)


def whole(parts: Sequence[Result]) -> Result:
    """The result of a claim that has parts: it holds when all of them hold. What is given decides nothing."""
    found = {part.verdict for part in parts}
    verdict = next((v for v in _WHOLE if v in found), GIVEN)
    counted = [f"{sum(p.verdict == v for p in parts)} {v}" for v in VERDICTS if v in found]
    return Result(verdict, None, None, None, "", 0, f"of {len(parts)} parts: {', '.join(counted)}")


def fitted(result: Result) -> Result:
    """The result of a claim that a setting was fitted to: agreement is no prediction, deviation is one all the same."""
    if result.verdict == HOLDS:
        return result._replace(verdict=FITTED, why=f"a setting was fitted to it; {result.why}")
    return result
