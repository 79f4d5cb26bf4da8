"""Intervals of one sample, by scipy: t and bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airloom.errors import UsageError

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
    #: `t`, `bca`, `percentile`, `constant` (all values are equal) or `none` (one value has no interval).
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
    """A quantile (default: the median) with its percentile bootstrap interval.

    >>> quantile_interval(range(1, 102)).value
    51.0
    """
    x = sample(values)
    if not 0 <= q <= 1:
        raise UsageError(f"a quantile is between 0 and 1, not {q}")
    if (simple := _simple(x, ci)) is not None:
        return simple
    low, high = np.quantile(_resampled_quantiles(np.sort(x), q), [(1 - ci) / 2, (1 + ci) / 2])
    return Interval(float(np.quantile(x, q)), float(low), float(high), ci, len(x), "percentile")


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


def ratio_interval(above: ArrayLike, below: ArrayLike, ci: float = 0.95) -> Interval:
    """The ratio of two means, from pairs in the same order, with its bootstrap interval over pairs.

    >>> ratio_interval([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])[:3]
    (2.0, 2.0, 2.0)
    """
    a, b = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    there = ~(np.isnan(a) | np.isnan(b))
    a, b = a[there], b[there]
    if len(a) == 0 or b.mean() == 0:
        return Interval(float("nan"), float("nan"), float("nan"), ci, len(a), "none")
    value = float(a.mean() / b.mean())
    if len(a) == 1:
        return Interval(value, float("nan"), float("nan"), ci, 1, "none")
    from scipy import stats

    def ratio(x: Any, y: Any, axis: int) -> Any:
        return x.mean(axis=axis) / y.mean(axis=axis)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (a, b),
            ratio,
            paired=True,
            n_resamples=RESAMPLES,
            confidence_level=ci,
            method="percentile",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return Interval(value, float(found.low), float(found.high), ci, len(a), "percentile")


def difference_of_medians(one: ArrayLike, other: ArrayLike, ci: float = 0.95) -> Interval:
    """The median of `other` less that of `one`, of samples that have no pairs, with its percentile bootstrap interval.

    >>> difference_of_medians([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]).value
    1.0
    """
    x, y = np.sort(sample(one)), np.sort(sample(other))
    nan = float("nan")
    if not len(x) or not len(y):
        return Interval(nan, nan, nan, ci, 0, "none")
    value, smaller = float(np.median(y) - np.median(x)), min(len(x), len(y))
    if smaller == 1:
        return Interval(value, nan, nan, ci, 1, "none")
    # The resamples of one say nothing of those of the other: backwards, they are not drawn by the same numbers.
    found = _resampled_quantiles(y, 0.5) - _resampled_quantiles(x, 0.5)[::-1]
    low, high = np.quantile(found, [(1 - ci) / 2, (1 + ci) / 2])
    return Interval(value, float(low), float(high), ci, smaller, "percentile")


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


def is_constant(x: NDArray[np.float64]) -> bool:
    """Do the values differ by no more than rounding?"""
    return bool(np.ptp(x) <= 1e-13 * np.abs(x).max())


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
