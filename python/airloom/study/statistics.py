"""The tests behind the verdicts; formulas are scipy's where it has them.

Samples are numbers of one seed each, in the same order of seeds where they are compared in pairs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Error probability of every test, and 1 minus the confidence of every interval but that of an equivalence test.
ALPHA = 0.05


class Difference(NamedTuple):
    """Mean difference of two samples with its 95 % interval, and p of the two-sided test that there is none."""

    mean: float
    low: float
    high: float
    p: float
    pairs: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


class Ratio(NamedTuple):
    """Ratio of two means with its interval; the bounds are infinite where the data sets no bound."""

    value: float
    low: float
    high: float


def _array(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64).ravel()


def is_constant(values: NDArray[np.float64], *scale: NDArray[np.float64]) -> bool:
    """Do the values differ by no more than rounding, seen against the numbers they come from?"""
    largest = max(float(np.abs(x).max()) for x in (values, *scale))
    return bool(np.ptp(values) <= 1e-12 * largest)


def paired_difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """`a` minus `b`, pair by pair. Without any difference p is 1; a difference that never varies has p 0.

    >>> paired_difference([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    Difference(mean=0.0, low=0.0, high=0.0, p=1.0, pairs=3)
    """
    from scipy import stats

    x, y = _array(a), _array(b)
    d = x - y
    nan = math.nan
    if len(d) == 0:
        return Difference(nan, nan, nan, 1.0, 0)
    mean = float(d.mean())
    if len(d) == 1:
        return Difference(mean, nan, nan, 1.0, 1)
    if is_constant(d, x, y):
        same = np.array_equal(x, y) or abs(mean) <= 1e-12 * max(np.abs(x).max(), np.abs(y).max())
        return Difference(mean, mean, mean, 1.0 if same else 0.0, len(d))
    found = stats.ttest_1samp(d, 0.0)
    interval = found.confidence_interval(1 - ALPHA)
    return Difference(mean, float(interval.low), float(interval.high), float(found.pvalue), len(d))


def unpaired_difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """`a` minus `b` of independent samples (Welch): the control of pairing. Means agree, the interval widens."""
    from scipy import stats

    x, y = _array(a), _array(b)
    nan = math.nan
    if min(len(x), len(y)) < 2:
        return Difference(nan, nan, nan, 1.0, min(len(x), len(y)))
    mean = float(x.mean() - y.mean())
    if is_constant(x) and is_constant(y):
        return Difference(mean, mean, mean, 0.0 if mean else 1.0, min(len(x), len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one side may be constant to the last digits; the other is not
        found = stats.ttest_ind(x, y, equal_var=False)
        interval = found.confidence_interval(1 - ALPHA)
    return Difference(mean, float(interval.low), float(interval.high), float(found.pvalue), min(len(x), len(y)))


def holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm): each may be compared with the error probability by itself.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p)), key=lambda n: p[n])
    found, highest = [0.0] * len(p), 0.0
    for rank, n in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[n]))
        found[n] = highest
    return found


def equivalence(a: ArrayLike, b: ArrayLike, low: float, high: float) -> float:
    """p of the test that the ratio of the means of `a` and `b` is not inside `low`..`high` (two one-sided tests).

    Below 0.05 the two are equivalent within that margin; this is so exactly if the 90 % interval of the ratio lies
    inside it. A ratio is below `high` if the mean of `a - high * b` is negative, which is a paired t test.
    """
    from scipy import stats

    x, y = _array(a), _array(b)
    if len(x) < 2:
        return 1.0
    tests = []
    for bound, alternative in ((low, "greater"), (high, "less")):
        d = x - bound * y
        if is_constant(d, x, y):
            is_right = d[0] > 0 if alternative == "greater" else d[0] < 0
            tests.append(0.0 if is_right else 1.0)
        else:
            tests.append(float(stats.ttest_1samp(d, 0.0, alternative=alternative).pvalue))
    return max(tests)


def ratio(a: ArrayLike, b: ArrayLike, confidence: float = 0.90) -> Ratio:
    """Ratio of the means of pairs with Fieller's interval, which is `equivalence` and the paired t test turned round.

    The interval holds every r for which the mean of `a - r * b` cannot be told from 0.

    >>> ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Ratio(value=2.0, low=2.0, high=2.0)
    """
    from scipy import stats

    x, y = _array(a), _array(b)
    if len(x) == 0 or y.mean() == 0:
        return Ratio(math.nan, -math.inf, math.inf)
    value = float(x.mean() / y.mean())
    if len(x) == 1:
        return Ratio(value, -math.inf, math.inf)
    t = float(stats.t.ppf((1 + confidence) / 2, len(x) - 1))
    # (mean(x) - r mean(y))^2 = t^2 (vxx - 2 r vxy + r^2 vyy) is a quadratic equation in r.
    v = np.cov(x, y) / len(x) * t * t
    p2 = float(y.mean() ** 2 - v[1, 1])
    p1 = float(x.mean() * y.mean() - v[0, 1])
    p0 = float(x.mean() ** 2 - v[0, 0])
    if p2 <= 0:  # the mean below cannot be told from 0: nothing bounds the ratio
        return Ratio(value, -math.inf, math.inf)
    root = math.sqrt(max(0.0, p1 * p1 - p2 * p0))
    return Ratio(value, (p1 - root) / p2, (p1 + root) / p2)


def prediction(values: ArrayLike, runs: int) -> tuple[float, float]:
    """The 95 % interval in which the mean of `runs` new runs falls.

    >>> low, high = prediction([1.0, 2.0, 3.0, 2.0, 2.0], runs=3)
    >>> low < 2.0 < high
    True
    """
    from scipy import stats

    x = _array(values)
    if len(x) < 2:
        return -math.inf, math.inf
    half = float(stats.t.ppf(1 - ALPHA / 2, len(x) - 1)) * float(x.std(ddof=1)) * math.sqrt(1 / runs + 1 / len(x))
    return float(x.mean()) - half, float(x.mean()) + half
