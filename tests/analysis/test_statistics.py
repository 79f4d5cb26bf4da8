"""Reports and verdicts have one statistics, whose tests keep their error probabilities: on made-up data."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

import airloom
from airloom import analysis
from airloom.analysis import statistics
from airloom.study import pair, rules, value
from tests.study.test_rules import claim

#: Made-up experiments of each kind.
TRIALS = 800


def rejections(p: list[float]) -> float:
    return sum(x < statistics.ALPHA for x in p) / len(p)


def test_paired_test_of_equal_things_errs_one_time_in_twenty() -> None:
    random = np.random.default_rng(1)
    p = []
    for _ in range(TRIALS):
        shared = random.gamma(2.0, 1.0, 20)
        p.append(statistics.paired_difference(shared + random.normal(0, 0.1, 20), shared + random.normal(0, 0.1, 20)).p)
    # Three standard deviations of the share of 800 trials are 0.023.
    assert rejections(p) == pytest.approx(0.05, abs=0.024)


def test_interval_of_a_difference_holds_the_truth_in_95_of_100() -> None:
    random = np.random.default_rng(2)
    inside = 0
    for _ in range(TRIALS):
        shared = random.normal(5, 1, 15)
        d = statistics.paired_difference(shared + random.normal(0.3, 0.2, 15), shared)
        inside += d.low <= 0.3 <= d.high
    assert inside / TRIALS == pytest.approx(0.95, abs=0.024)


def test_pairing_narrows_the_interval_and_leaves_the_mean() -> None:
    random = np.random.default_rng(3)
    shared = random.normal(5, 1, 400)
    a, b = shared + random.normal(0.2, 0.1, 400), shared
    paired, unpaired = statistics.paired_difference(a, b), statistics.unpaired_difference(a[::2], b[1::2])
    assert paired.half_width < unpaired.half_width / 5
    assert abs(paired.mean - unpaired.mean) <= unpaired.half_width


def test_a_thing_against_itself_does_not_differ() -> None:
    x = np.random.default_rng(4).normal(1, 0.1, 30)
    assert statistics.paired_difference(x, x) == statistics.Difference(0.0, 0.0, 0.0, 1.0, 30)
    assert statistics.paired_difference(x + 0.5, x).p == 0.0


def test_rounding_is_no_difference() -> None:
    for compared in (statistics.paired_difference, statistics.unpaired_difference):
        assert compared([0.1 + 0.2] * 2, [0.3] * 2) == statistics.Difference(0.0, 0.0, 0.0, 1.0, 2)
        assert compared([0.4] * 2, [0.3] * 2).p == 0.0


def test_holm_keeps_the_error_of_a_whole_family() -> None:
    random = np.random.default_rng(5)
    families = [statistics.holm(list(random.uniform(size=12))) for _ in range(TRIALS)]
    assert sum(min(f) < 0.05 for f in families) / TRIALS == pytest.approx(0.05, abs=0.024)
    # Without correction nearly half of them would err.
    raw = [random.uniform(size=12).min() for _ in range(TRIALS)]
    assert sum(p < 0.05 for p in raw) / TRIALS > 0.4


def test_holm_gives_what_the_definition_says() -> None:
    assert statistics.holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert statistics.holm([0.5, 0.01]) == pytest.approx([0.5, 0.02])
    assert statistics.holm([0.9, 0.9, 0.9]) == [1.0, 1.0, 1.0]
    assert statistics.holm([]) == []


def ratios(truth: float, count: int, spread: float, seed: int) -> list[float]:
    random = np.random.default_rng(seed)
    p = []
    for _ in range(TRIALS):
        b = random.normal(1.0, 0.1, count)
        a = truth * b + random.normal(0, spread, count)
        p.append(statistics.equivalence(a, b, 0.8, 1.25))
    return p


def test_equivalence_finds_equal_things_equal() -> None:
    assert rejections(ratios(1.0, 20, 0.1, 6)) > 0.99


def test_equivalence_errs_one_time_in_twenty_at_the_edge_of_the_margin() -> None:
    assert rejections(ratios(1.25, 20, 0.1, 7)) == pytest.approx(0.05, abs=0.024)
    assert rejections(ratios(0.8, 20, 0.1, 8)) == pytest.approx(0.05, abs=0.024)


def test_too_few_seeds_are_not_equivalence() -> None:
    # "Not significant" would call these equal; three seeds with this spread show nothing.
    assert rejections(ratios(1.0, 3, 0.5, 9)) < 0.05
    assert statistics.equivalence([1.0], [1.0], 0.8, 1.25) == 1.0


def test_interval_of_a_ratio_says_the_same_as_the_equivalence_test() -> None:
    random = np.random.default_rng(10)
    for truth in (0.75, 0.82, 1.0, 1.2, 1.3):
        for _ in range(50):
            b = random.normal(1.0, 0.1, 12)
            a = truth * b + random.normal(0, 0.1, 12)
            r = statistics.ratio_interval(a, b, 0.90)
            inside = r.low > 0.8 and r.high < 1.25
            assert inside == (statistics.equivalence(a, b, 0.8, 1.25) < 0.05)


def test_ratio_to_what_may_be_zero_has_no_bounds() -> None:
    r = statistics.ratio_interval([1.0, 2.0, 3.0], [-1.0, 1.0, 0.5])
    assert (r.low, r.high) == (-np.inf, np.inf)


@pytest.mark.parametrize("runs", [1, 3])
def test_prediction_holds_the_mean_of_new_runs_in_95_of_100(runs: int) -> None:
    random = np.random.default_rng(11)
    inside = 0
    for _ in range(TRIALS):
        low, high = statistics.prediction(random.normal(10, 2, 30), runs)
        inside += low <= random.normal(10, 2, runs).mean() <= high
    assert inside / TRIALS == pytest.approx(0.95, abs=0.024)


def test_prediction_of_very_many_runs_is_the_interval_of_the_mean() -> None:
    x = np.random.default_rng(12).normal(10, 2, 30)
    wanted = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert statistics.prediction(x, 10**9) == pytest.approx((wanted.low, wanted.high), rel=1e-6)


RANDOM = np.random.default_rng(13)
SHARED = RANDOM.gamma(2.0, 1.0, 20)

#: Samples in pairs, those among them of which there were two opinions once.
SAMPLES = {
    "different": (SHARED + RANDOM.normal(0.2, 0.1, 20), SHARED),
    "skewed": (SHARED + RANDOM.pareto(1.2, 20), SHARED),
    "equal": (SHARED, SHARED),
    "equal but for rounding": (SHARED * (1 + RANDOM.uniform(-2e-13, 2e-13, 20)), SHARED),
    "shifted": (SHARED + 0.5, SHARED),
    "around nothing": (SHARED, RANDOM.normal(0.0, 1.0, 20)),
    "one pair": (SHARED[:1] + 1, SHARED[:1]),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_says_of_a_difference_what_a_claim_is_judged_by(name: str) -> None:
    a, b = SAMPLES[name]
    (reported,) = analysis.paired(table(a, b), "x_s", "way", "theirs").to_dicts()
    order = claim(kind="o", order=">")
    ratio = claim(kind="r", paper=1.2, tolerance="10%")
    ordered, measured = rules.judge([order, ratio], [pair(a, b, "s")] * 2)
    same(reported, {"difference": ordered.ours, "low": ordered.low, "high": ordered.high, "p": ordered.p})
    same(reported, {"ratio": measured.ours, "ratio_low": measured.low, "ratio_high": measured.high})
    assert reported["seeds"] == ordered.seeds == measured.seeds
    # What is said of the interval and of p agrees, whatever the sample.
    if not math.isnan(reported["low"]):
        assert (reported["low"] <= 0 <= reported["high"]) == (reported["p"] >= statistics.ALPHA)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_says_of_a_mean_what_a_claim_is_judged_by(name: str) -> None:
    a, _ = SAMPLES[name]
    (reported,) = analysis.summarise(table(a, a).filter(way="ours"), "x_s", ["way"]).to_dicts()
    (judged,) = rules.judge([claim(kind="v", paper=2, unit="s", tolerance="10%")], [value(a, "s")])
    same(reported, {"mean": judged.ours, "low": judged.low, "high": judged.high})


def table(a: NDArray[np.float64], b: NDArray[np.float64]) -> pl.DataFrame:
    seeds = [*range(len(a))] * 2
    return pl.DataFrame({"way": ["ours"] * len(a) + ["theirs"] * len(b), "seed": seeds, "x_s": [*a, *b]})


def same(reported: dict[str, float], judged: dict[str, float | None]) -> None:
    """To the last digit; a verdict has no bound where a report has one that is none."""
    for key, number in judged.items():
        assert number == (reported[key] if math.isfinite(reported[key]) else None), key


def test_no_other_module_tests_or_estimates() -> None:
    package = Path(airloom.__file__).parent
    used = {
        str(path.relative_to(package)): set(re.findall(r"\bstats\.(\w+)", path.read_text()))
        for path in package.rglob("*.py")
        if "import stats" in path.read_text()
    }
    # Estimates of a form (a trimmed mean, a line), which are no tests and no intervals.
    assert used.pop("analysis/tails.py") == {"trim_mean"}
    assert set(used) == {
        "analysis/statistics.py",
        "studies/umts-proxies/umts_proxies/loads.py",
        "studies/wap-vs-http-wcdma/wap_vs_http/encoding.py",
    }


def test_a_jackknife_is_spread_as_the_estimate_is() -> None:
    draw = np.random.default_rng(3)

    def ratio(a: Any, b: Any) -> float:
        return float(a.mean() / b.mean())

    def made(seeds: int = 30) -> Any:
        return draw.normal(10, 2, seeds), draw.normal(5, 1, seeds)

    # Of many samples 95 % of the intervals have the truth, also where one sample has more seeds than the other.
    for other in (30, 90):
        hits = 0
        for _ in range(400):
            interval = statistics.mean_interval(statistics.pseudo_values(ratio, made()[0], made(other)[1]))
            hits += interval.low <= 2 <= interval.high
        assert 0.92 < hits / 400 < 0.98


def test_a_statistic_that_is_nowhere_is_no_interval() -> None:
    found = statistics.pseudo_values(lambda x: np.inf if x.max() < 5 else 1.0, [1.0, 2.0, 6.0])
    assert found.tolist() == [1.0]
    assert np.isinf(statistics.pseudo_values(lambda _: np.inf, [1.0, 2.0])).all()
