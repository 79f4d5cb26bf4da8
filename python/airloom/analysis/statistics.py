"""The statistics of reports and verdicts: intervals, and the tests behind what a study says; formulas are scipy's.

Samples are numbers of one seed each, in the same order of seeds where they are compared in pairs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airloom.errors import UsageError

#: Error probability of every test, and 1 minus the confidence of every interval but that of an equivalence test.
ALPHA = 0.05

#: Resamples of a bootstrap.
RESAMPLES = 10_000

#: From this size on the mean of a sample with this skewness is close enough to normal for the t interval (Cochran's
#: rule of thumb: n > 25 g^2).
_COCHRAN = 25.0


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float
    #: Confidence, such as 0.95.
    ci: float
    #: Size of the sample.
    seeds: int
    #: `t`, `bca`, `percentile`, `fieller`, `constant` (all values are equal) or `none` (too few values
    #: have no interval).
    method: str

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def relative(self) -> float:
        """Half width over the estimate; infinite if that is 0 and the width is not."""
        if self.half_width == 0:
            return 0.0
        return abs(self.half_width / self.value) if self.value else float("inf")


class Difference(NamedTuple):
    """Mean difference of two samples with its interval, and p of the two-sided t test that there is none."""

    mean: float
    low: float
    high: float
    #: 1 where there are too few pairs to tell.
    p: float
    pairs: int

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def method(self) -> str:
        """As that of an `Interval`."""
        return "none" if math.isnan(self.low) else "constant" if self.low == self.high else "t"


def sample(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers without the missing ones."""
    found = np.asarray(values, dtype=np.float64).ravel()
    return found[~np.isnan(found)]


def mean_interval(values: ArrayLike, ci: float = 0.95, method: str = "auto") -> Interval:
    """The mean with its interval.

    `method` is `t`, `bca` (bias-corrected and accelerated bootstrap) or `auto`: t unless the sample is too skewed for
    its size, then bootstrap.

    >>> mean_interval([1.0, 2.0, 3.0, 4.0])[:3]
    (2.5, 0.445739..., 4.554260...)
    """
    x = sample(values)
    if (simple := _simple(x, ci)) is not None:
        return simple
    from scipy import stats

    if method not in ("auto", "t", "bca"):
        raise UsageError(f"no method {method!r} for the interval of a mean; valid: auto, t, bca")
    if method == "bca" or (method == "auto" and len(x) <= _COCHRAN * stats.skew(x) ** 2 and len(x) >= 10):
        return _bootstrap(x, np.mean, ci, "bca")
    low, high = stats.t.interval(ci, len(x) - 1, loc=x.mean(), scale=stats.sem(x))
    return Interval(float(x.mean()), float(low), float(high), ci, len(x), "t")


def quantile_interval(values: ArrayLike, q: float = 0.5, ci: float = 0.95) -> Interval:
    """A quantile (default: the median) with its percentile bootstrap interval, which `fewest` values and more have.

    >>> quantile_interval(range(1, 102)).value
    51.0
    """
    x = sample(values)
    if not 0 <= q <= 1:
        raise UsageError(f"a quantile is between 0 and 1, not {q}")
    if (simple := _simple(x, ci)) is not None:
        return simple
    value = float(np.quantile(x, q))
    if len(x) < fewest(q, ci):
        return Interval(value, math.nan, math.nan, ci, len(x), "none")
    low, high = np.quantile(_resampled_quantiles(np.sort(x), q), [(1 - ci) / 2, (1 + ci) / 2])
    return Interval(value, float(low), float(high), ci, len(x), "percentile")


def fewest(q: float = 0.5, ci: float = 0.95) -> float:
    """The size of the smallest sample by which a quantile has an interval; infinite for the ends.

    No interval within a sample reaches further than from its smallest value to its largest. Each of these is on the
    wrong side of the quantile too often in smaller ones: the median lies between two values half of the time.

    >>> fewest(), fewest(0.75), fewest(0.9)
    (6, 13, 36)
    """
    share = max(q, 1 - q)
    return math.inf if share == 1 else math.ceil(math.log((1 - ci) / 2) / math.log(share))


def order_interval(values: ArrayLike, q: float, ci: float = 0.95) -> tuple[float, float]:
    """An interval of a quantile whose ends are values of the sample, by the binomial distribution.

    It holds whatever the values are distributed as, and is without end where the sample is too small for one.
    """
    from scipy import stats

    x = sample(values)
    found = stats.quantile_test(x, q=float(np.quantile(x, q)), p=q).confidence_interval(ci)
    low, high = float(found.low), float(found.high)
    return -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


def _resampled_quantiles(ordered: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """The quantile of each resample of a bootstrap, without making the resamples, nor importing scipy.

    A resample picks its values by uniform random numbers, and its k-th smallest value is the one that the k-th smallest
    of these numbers picks, which has a beta distribution. The next number above it is the smallest of those that are
    left, uniform above the first.
    """
    # Its random numbers are fixed: the same table gives the same interval.
    rng = np.random.default_rng(0)
    n = len(ordered)
    place = (n - 1) * q
    k = int(place)
    number = rng.beta(k + 1, n - k, RESAMPLES)
    found = ordered[np.minimum((number * n).astype(np.intp), n - 1)]
    if place > k:
        left = n - k - 1
        number = number + (1 - number) * (1 - (1 - rng.random(RESAMPLES)) ** (1 / left))
        found = found + (place - k) * (ordered[np.minimum((number * n).astype(np.intp), n - 1)] - found)
    return found


def bootstrap_interval(values: ArrayLike, statistic: Callable[..., Any], ci: float = 0.95) -> Interval:
    """Any statistic of a sample with its percentile bootstrap interval; `statistic(x, axis)` as numpy's functions.

    >>> bootstrap_interval([1.0, 2.0, 3.0, 4.0], np.max).value
    4.0
    """
    x = sample(values)
    if len(x) < 2:
        value = float(statistic(x, axis=0)) if len(x) else float("nan")
        return Interval(value, float("nan"), float("nan"), ci, len(x), "none")
    if is_constant(x):
        value = float(statistic(x, axis=0))
        return Interval(value, value, value, ci, len(x), "constant")
    return _bootstrap(x, statistic, ci, "percentile")


def difference_of_medians(one: ArrayLike, other: ArrayLike, ci: float = 0.95) -> Interval:
    """The median of `other` less that of `one`, of samples that have no pairs, with its percentile bootstrap interval.

    It has one where the median of each of them has.

    >>> difference_of_medians([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]).value
    1.0
    """
    x, y = np.sort(sample(one)), np.sort(sample(other))
    nan = float("nan")
    if not len(x) or not len(y):
        return Interval(nan, nan, nan, ci, 0, "none")
    value, smaller = float(np.median(y) - np.median(x)), min(len(x), len(y))
    if smaller < fewest(0.5, ci):
        return Interval(value, nan, nan, ci, smaller, "none")
    # The resamples of one say nothing of those of the other: backwards, they are not drawn by the same numbers.
    found = _resampled_quantiles(y, 0.5) - _resampled_quantiles(x, 0.5)[::-1]
    low, high = np.quantile(found, [(1 - ci) / 2, (1 + ci) / 2])
    return Interval(value, float(low), float(high), ci, smaller, "percentile")


def paired_difference(a: ArrayLike, b: ArrayLike, ci: float = 1 - ALPHA) -> Difference:
    """`a` minus `b`, pair by pair. Without any difference p is 1; a difference that never varies has p 0.

    >>> paired_difference([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    Difference(mean=0.0, low=0.0, high=0.0, p=1.0, pairs=3)
    """
    from scipy import stats

    x, y = _in_pairs(a, b)
    d = x - y
    nan = math.nan
    if len(d) == 0:
        return Difference(nan, nan, nan, 1.0, 0)
    mean = float(d.mean())
    if len(d) == 1:
        return Difference(mean, nan, nan, 1.0, 1)
    if is_constant(d, x, y):
        if abs(mean) <= rounding(x, y):
            return Difference(0.0, 0.0, 0.0, 1.0, len(d))
        return Difference(mean, mean, mean, 0.0, len(d))
    found = stats.ttest_1samp(d, 0.0)
    interval = found.confidence_interval(ci)
    return Difference(mean, float(interval.low), float(interval.high), float(found.pvalue), len(d))


def unpaired_difference(a: ArrayLike, b: ArrayLike, ci: float = 1 - ALPHA) -> Difference:
    """`a` minus `b` of independent samples (Welch): the control of pairing. Means agree, the interval widens."""
    from scipy import stats

    x, y = sample(a), sample(b)
    nan = math.nan
    mean = float(x.mean() - y.mean()) if len(x) and len(y) else nan
    if min(len(x), len(y)) < 2:
        return Difference(mean, nan, nan, 1.0, min(len(x), len(y)))
    if is_constant(x) and is_constant(y):
        if abs(mean) <= rounding(x, y):
            return Difference(0.0, 0.0, 0.0, 1.0, min(len(x), len(y)))
        return Difference(mean, mean, mean, 0.0, min(len(x), len(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one side may be constant to the last digits; the other is not
        found = stats.ttest_ind(x, y, equal_var=False)
        interval = found.confidence_interval(ci)
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

    x, y = _in_pairs(a, b)
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


def ratio_interval(above: ArrayLike, below: ArrayLike, ci: float = 0.95) -> Interval:
    """Ratio of the means of pairs with Fieller's interval, which is `equivalence` and the paired t test turned round.

    The interval holds every r for which the mean of `above - r * below` cannot be told from 0; its bounds are infinite
    where the data sets none.

    >>> ratio_interval([4.0, 5.0, 6.0], [2.0, 2.5, 3.0]).value
    2.0
    """
    from scipy import stats

    x, y = _in_pairs(above, below)
    nan = math.nan
    if len(x) == 0 or y.mean() == 0:
        return Interval(nan, nan, nan, ci, len(x), "none")
    value = float(x.mean() / y.mean())
    if len(x) == 1:
        return Interval(value, nan, nan, ci, 1, "none")
    t = float(stats.t.ppf((1 + ci) / 2, len(x) - 1))
    # (mean(x) - r mean(y))^2 = t^2 (vxx - 2 r vxy + r^2 vyy) is a quadratic equation in r.
    v = np.cov(x, y) / len(x) * t * t
    p2 = float(y.mean() ** 2 - v[1, 1])
    p1 = float(x.mean() * y.mean() - v[0, 1])
    p0 = float(x.mean() ** 2 - v[0, 0])
    if p2 <= 0:  # the mean below cannot be told from 0: nothing bounds the ratio
        return Interval(value, -math.inf, math.inf, ci, len(x), "fieller")
    root = math.sqrt(max(0.0, p1 * p1 - p2 * p0))
    return Interval(value, (p1 - root) / p2, (p1 + root) / p2, ci, len(x), "fieller")


def prediction(values: ArrayLike, runs: int) -> tuple[float, float]:
    """The 95 % interval in which the mean of `runs` new runs falls.

    >>> low, high = prediction([1.0, 2.0, 3.0, 2.0, 2.0], runs=3)
    >>> low < 2.0 < high
    True
    """
    from scipy import stats

    x = sample(values)
    if len(x) < 2:
        return -math.inf, math.inf
    half = float(stats.t.ppf(1 - ALPHA / 2, len(x) - 1)) * float(x.std(ddof=1)) * math.sqrt(1 / runs + 1 / len(x))
    return float(x.mean()) - half, float(x.mean()) + half


@np.errstate(divide="ignore", invalid="ignore")
def pseudo_values(statistic: Callable[..., float], *samples: ArrayLike) -> NDArray[np.float64]:
    """Numbers whose mean is a statistic of samples and that are spread as its estimate is: the jackknife's (Tukey).

    Each sample has a row for each seed. As many groups of seeds as the smallest has are left out in turn, from all of
    them together (delete-a-group jackknife, Kott 2001). Of one seed, or where the statistic is not finite, it is the
    statistic alone, which has no interval. For means and what is smooth in them: extremes and medians have none.

    >>> pseudo_values(lambda x: float(np.mean(x)), [1.0, 2.0, 6.0])
    array([1., 2., 6.])
    """
    arrays = [np.asarray(each, dtype=np.float64) for each in samples]
    whole = float(statistic(*arrays))
    groups = min(map(len, arrays))
    if groups < 2:
        return np.array([whole])
    parts = [np.array_split(np.arange(len(each)), groups) for each in arrays]

    def rest(n: int) -> list[NDArray[np.float64]]:
        return [np.delete(each, part[n], axis=0) for each, part in zip(arrays, parts, strict=True)]

    without = np.array([statistic(*rest(n)) for n in range(groups)])
    if not np.isfinite([whole, *without]).all():
        return np.array([whole])
    # Their mean is put back from the jackknife's estimate without bias to the statistic itself.
    return np.asarray(whole + (groups - 1) * (without.mean() - without), dtype=np.float64)


def _in_pairs(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both samples without the pairs of which a number is missing."""
    x, y = (np.asarray(values, dtype=np.float64).ravel() for values in (a, b))
    there = ~(np.isnan(x) | np.isnan(y))
    return x[there], y[there]


def is_constant(values: NDArray[np.float64], *scale: NDArray[np.float64]) -> bool:
    """Do the values differ by no more than rounding, seen against the numbers they come from?"""
    return bool(np.ptp(values) <= rounding(values, *scale))


def known(value: float) -> float | None:
    """What is not-a-number is not known."""
    return None if math.isnan(value) else value


def rounding(*values: NDArray[np.float64]) -> float:
    """By how much sums of these numbers, taken in another order, may differ."""
    return 1e-12 * max(float(np.abs(x).max()) for x in values)


def _simple(x: NDArray[np.float64], ci: float) -> Interval | None:
    """Samples that no method is for."""
    if not 0 < ci < 1:
        raise UsageError(f"a confidence is between 0 and 1, such as 0.95, not {ci}")
    nan = float("nan")
    if len(x) == 0:
        return Interval(nan, nan, nan, ci, 0, "none")
    first = float(x[0])
    if len(x) == 1:
        return Interval(first, nan, nan, ci, 1, "none")
    if is_constant(x):
        return Interval(first, first, first, ci, len(x), "constant")
    return None


def _bootstrap(x: NDArray[np.float64], statistic: Callable[..., Any], ci: float, method: str) -> Interval:
    from scipy import stats

    def interval(method: str) -> Any:
        # Its random numbers are fixed: the same table gives the same interval.
        return stats.bootstrap(
            (x,),
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=ci,
            method=method,
            vectorized=True,
            rng=np.random.default_rng(0),
        ).confidence_interval

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate BCa interval is not-a-number, and handled here
        found = interval(method)
        if np.isnan(found.low) or np.isnan(found.high):
            method = "percentile"
            found = interval(method)
    return Interval(float(statistic(x, axis=0)), float(found.low), float(found.high), ci, len(x), method)
