"""Intervals cover what they say they cover, and agree with textbooks."""

import numpy as np
import polars as pl
import pytest

from airloom import analysis
from airloom.analysis.statistics import difference_of_medians
from airloom.errors import UsageError


def test_a_t_interval_is_that_of_the_textbook() -> None:
    # Student, W. S. Gosset (1908), hours of sleep gained with the second drug; mean 2.33, s 2.002, t(9, 0.975) = 2.262.
    sleep = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = analysis.mean_interval(sleep, method="t")
    assert found.value == pytest.approx(2.33)
    assert (found.low, found.high) == pytest.approx((0.898, 3.762), abs=1e-3)
    assert (found.seeds, found.method) == (10, "t")


def test_a_paired_difference_is_that_of_the_textbook() -> None:
    # The same paper: t = -4.0621 with 9 degrees of freedom, p = 0.002833, difference 1.58 [0.70, 2.46].
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    runs = pl.DataFrame(
        {"drug": ["1"] * 10 + ["2"] * 10, "seed": [*range(10), *range(10)], "extra_s": [*first, *second]}
    )
    found = analysis.paired(runs, "extra_s", "drug", "1").row(0, named=True)
    assert found["difference"] == pytest.approx(1.58)
    assert found["p"] == pytest.approx(0.002833, abs=1e-6)
    apart = analysis.unpaired(runs, "extra_s", "drug", "1").row(0, named=True)
    assert apart["difference"] == pytest.approx(found["difference"])
    assert apart["p"] == pytest.approx(0.07939, abs=1e-5)  # Welch's test of the same numbers
    assert apart["high"] - apart["low"] > found["high"] - found["low"]


@pytest.mark.parametrize("what", ["mean-t", "mean-bca", "median", "ratio"])
def test_intervals_cover_the_truth_about_as_often_as_they_say(what: str) -> None:
    chance = np.random.default_rng(7)
    hits = 0
    samples = 60
    for _ in range(samples):
        x = chance.exponential(1.0, 40) if what != "mean-t" else chance.normal(1.0, 1.0, 40)
        if what == "median":
            found, truth = analysis.quantile_interval(x), float(np.log(2))
        elif what == "ratio":
            found, truth = analysis.ratio_interval(2 * x + chance.normal(0, 0.1, 40), x), 2.0
        else:
            found, truth = analysis.mean_interval(x, method=what.removeprefix("mean-")), 1.0
        hits += found.low <= truth <= found.high
    # 95 % of 60, less four standard deviations; and the bootstrap of 40 values is a little too bold.
    assert hits >= 0.95 * samples - 4 * 1.7 - 2


@pytest.mark.parametrize(("count", "q"), [(6, 0.5), (9, 0.5), (10, 0.5), (60, 0.9), (301, 0.25)])
def test_the_interval_of_a_quantile_is_that_of_a_bootstrap(count: int, q: float) -> None:
    from scipy import stats

    # Values are their own ranks: the intervals are compared in ranks, which 10,000 resamples know to a few.
    x = np.random.default_rng(count).permutation(count).astype(float)
    theirs = stats.bootstrap(
        (x,), lambda a, axis: np.quantile(a, q, axis=axis), method="percentile", n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    ours = analysis.quantile_interval(x, q)
    assert ours.value == np.quantile(x, q)
    # Four standard deviations of a 2.5 % quantile of 10,000 draws, in units of the spread of what is drawn.
    reach = 4 * 0.027 * max(np.sqrt(count * q * (1 - q)), 0.5) + 0.5
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=reach)


@pytest.mark.parametrize(("q", "enough"), [(0.5, 6), (0.25, 13), (0.75, 13), (0.9, 36)])
def test_too_few_values_set_no_interval_of_a_quantile(q: float, enough: int) -> None:
    few, many = np.arange(enough - 1.0), np.arange(float(enough))
    none, found = analysis.quantile_interval(few, q), analysis.quantile_interval(many, q)
    assert (none.value, none.seeds, none.method) == (np.quantile(few, q), enough - 1, "none")
    assert np.isnan([none.low, none.high]).all()
    assert found.method == "percentile"
    assert found.low < found.value < found.high
    assert analysis.quantile_interval([3.0] * 2, q)[:3] == (3.0, 3.0, 3.0)


def test_too_few_values_of_either_set_no_interval_of_a_difference_of_medians() -> None:
    five, six = np.arange(5.0), np.arange(6.0)
    for one, other, method in ((five, six, "none"), (six, five, "none"), (six, six, "percentile")):
        assert difference_of_medians(one, other).method == method


def test_the_mean_of_a_skewed_sample_has_a_bootstrap_interval() -> None:
    x = np.random.default_rng(1).pareto(1.5, 60)
    skewed = analysis.mean_interval(x)
    assert skewed.method == "bca"
    assert skewed.high - skewed.value > skewed.value - skewed.low
    assert analysis.mean_interval(x) == skewed, "its random numbers are fixed"


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0, 2.0], [float("nan"), 1.0]])
def test_what_has_no_interval_says_so(values: list[float]) -> None:
    found = analysis.mean_interval(values)
    assert found.method in ("none", "constant")
    assert found.seeds == len([v for v in values if v == v])


def test_equal_variants_differ_by_nothing_to_the_last_digit() -> None:
    x = np.random.default_rng(1).normal(size=30)
    runs = pl.DataFrame({"v": ["a"] * 30 + ["b"] * 30, "seed": [*range(30)] * 2, "x_s": [*x, *x]})
    found = analysis.paired(runs, "x_s", "v", "a").row(0, named=True)
    assert (found["difference"], found["low"], found["high"], found["p"], found["ratio"]) == (0.0, 0.0, 0.0, 1.0, 1.0)


def test_pooled_axes_are_averaged_within_their_seed_first() -> None:
    runs = pl.DataFrame(
        {"a": [1, 1, 2, 2] * 2, "b": [1, 2, 1, 2] * 2, "seed": [1] * 4 + [2] * 4, "x_s": [1.0, 2, 3, 4, 3, 4, 5, 6]}
    )
    found = analysis.summarise(runs, "x_s", ["a"])
    assert found["mean"].to_list() == [2.5, 4.5]
    assert found["seeds"].to_list() == [2, 2]
    assert found["unit"].to_list() == ["s", "s"]


def test_runs_without_a_value_do_not_count() -> None:
    runs = pl.DataFrame({"seed": [1, 2, 3], "x_s": [1.0, None, 3.0]})
    assert analysis.summarise(runs, "x_s", []).row(0, named=True)["seeds"] == 2


def test_warm_up_is_cut_at_a_time_and_found_in_a_series() -> None:
    from airloom.analysis.warm_up import warm_up_length

    pages = pl.DataFrame({"start_ns": [0, 10**9, 2 * 10**9], "n": [0, 1, 2]})
    assert analysis.cut_warm_up(pages, 1.0)["n"].to_list() == [1, 2]
    with pytest.raises(UsageError, match="no column 'when'"):
        analysis.cut_warm_up(pages, 1.0, "when")
    chance = np.random.default_rng(3)
    rising = 1 - np.exp(-np.arange(400) / 20) + chance.normal(0, 0.05, 400)
    assert 40 <= warm_up_length(rising) <= 120
    assert warm_up_length(chance.normal(size=400)) <= 100


def test_precision_is_that_of_the_worst_point() -> None:
    runs = pl.DataFrame({"point": [0] * 30 + [1] * 30, "x_s": [1.0, 1.01] * 15 + [1.0, 3.0] * 15})
    assert not analysis.is_precise(runs, "x_s", 0.02)
    assert analysis.is_precise(runs.filter(pl.col("point") == 0), "x_s", 0.02)
    # Of the other point no run came to its end.
    assert not analysis.is_precise(runs.filter(pl.col("point") == 0), "x_s", 0.02, points=2)
