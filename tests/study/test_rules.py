"""From a claim and what was measured to a verdict."""

from typing import Any

import numpy as np
import pytest

from airloom.errors import UsageError
from airloom.study import Grid, claims, exact, jackknifed, pair, rules, value
from airloom.study.claims import Claim
from airloom.study.rules import Evidence, Result, Setting
from tests.study.test_files import PAPER


def claim(**keys: Any) -> Claim:
    entry = {"id": "X1", "where": "here", "says": "so", **keys}
    return claims.parse({"paper": PAPER, "claim": [entry]}).claims[0]


def judged(one: Claim, evidence: Evidence | None) -> Result:
    return rules.judge([one], [evidence])[0]


def around(mean: float, spread: float, count: int = 20) -> Any:
    """A sample with exactly this mean and standard deviation."""
    x = np.random.default_rng(1).normal(0, 1, count)
    return mean + spread * (x - x.mean()) / x.std(ddof=1)


VALUE = {"kind": "v", "paper": 10, "unit": "s", "tolerance": "10%"}


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [(10.5, 0.1, "holds"), (12.0, 0.1, "differs"), (11.0, 0.5, "unclear"), (10.0, 10.0, "unclear")],
)
def test_value_is_held_with_its_whole_interval_against_the_tolerance(mean: float, spread: float, verdict: str) -> None:
    result = judged(claim(**VALUE), value(around(mean, spread), "s"))
    assert result.verdict == verdict
    assert result.low is not None
    assert result.high is not None
    assert result.low < mean < result.high
    assert result.seeds == 20


def test_few_runs_of_the_paper_make_a_deviation_compatible_and_never_hold() -> None:
    measured = value(around(12.0, 2.0, 200), "s")
    assert judged(claim(**VALUE), measured).verdict == "differs"
    few = judged(claim(**VALUE, runs=3), measured)
    assert few.verdict == "compatible"
    assert few.prediction is not None
    assert few.prediction[0] < 10 < few.prediction[1]
    # Of many runs it would not be.
    assert judged(claim(**VALUE, runs=1000), measured).verdict == "differs"
    # And what holds, holds.
    assert judged(claim(**VALUE, runs=3), value(around(10.0, 0.5, 200), "s")).verdict == "holds"


def test_what_cannot_fail_is_given_and_what_fails_all_the_same_differs() -> None:
    given = claim(kind="given", paper=10, unit="s", tolerance="10%")
    assert judged(given, exact(10.5, "s")).verdict == "given"
    assert judged(given, exact(12.0, "s")).verdict == "differs"
    assert judged(given, Setting(10.0)).verdict == "given"
    # A definition has nothing to compute.
    assert judged(claim(kind="given"), None).verdict == "given"


def test_what_is_given_decides_nothing_of_a_whole() -> None:
    holds, differs, given = (rules.nothing()._replace(verdict=v) for v in ("holds", "differs", "given"))
    assert [rules.whole(parts).verdict for parts in ([given, holds], [given, differs], [given, given])] == [
        "holds",
        "differs",
        "given",
    ]


def test_exact_numbers_need_no_seeds() -> None:
    assert judged(claim(**VALUE), exact(10.9, "s")).verdict == "holds"
    assert judged(claim(**VALUE), exact(11.1, "s")).verdict == "differs"
    assert judged(claim(**VALUE), exact(11.1, "s")).seeds == 0


def test_more_numbers_than_seeds_are_no_evidence() -> None:
    pages = np.ones((20, 15))
    for made in (lambda: value(pages, "s"), lambda: pair(pages, pages, "s")):
        with pytest.raises(ValueError, match="20 x 15 is not one number per seed"):
            made()


def test_what_is_no_mean_has_an_interval_all_the_same() -> None:
    above, below = around(20.0, 2.0, 40), around(2.0, 0.1, 40)
    found = judged(claim(**VALUE), jackknifed(lambda a, b: a.mean() / b.mean(), above, below, unit="s"))
    assert found.ours == pytest.approx(10.0)
    assert (found.verdict, found.seeds) == ("holds", 40)
    assert found.low is not None
    # 10 % less 5 % of spread, since both have the same luck, by the root of 40 and t.
    assert found.low == pytest.approx(10 - 10 * 0.05 / 40**0.5 * 2.02, abs=0.01)
    # Fifty times as widely spread it is not told from what the paper has, nor by one seed.
    for wide in (around(20.0, 100.0, 40), [24.0]):
        found = judged(claim(**VALUE), jackknifed(lambda a, b: a.mean() / b.mean(), wide, below, unit="s"))
        assert found.verdict == "unclear"


def test_one_seed_decides_nothing() -> None:
    assert judged(claim(**VALUE), value([10.0], "s")).verdict == "unclear"
    assert judged(claim(**VALUE, runs=3), value([99_999.0], "s")).verdict == "unclear", "nor may it be compatible"


@pytest.mark.parametrize(
    ("number", "points", "seeds", "low", "high", "verdict"),
    [
        (33 / 35, 6, 2, 0.8947, 0.9910, "unclear"),
        (1.0, 6, 3, 0.9596, 1.0, "holds"),
        (1.0, 5, 3, 0.9292, 1.0, "unclear"),
        (0.6, 6, 3, 0.5596, 0.6404, "differs"),
    ],
)
def test_seeds_that_agree_on_one_of_few_values_leave_room_for_the_next_one(
    number: float, points: int, seeds: int, low: float, high: float, verdict: str
) -> None:
    """Rank correlations of so many points, such as 1 and 0.943 of six."""
    grid = Grid(12 / (points * (points**2 - 1)), -1.0, 1.0)
    found = judged(claim(kind="s", statistic="rank correlation", at_least=0.95), value([number] * seeds, "", grid))
    assert found.verdict == verdict
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_bounds_on_one_side() -> None:
    more = claim(kind="v", paper="above 5 s", at_least=5, unit="s")
    assert judged(more, value(around(6, 0.5), "s")).verdict == "holds"
    assert judged(more, value(around(4, 0.5), "s")).verdict == "differs"
    assert judged(more, value(around(5, 0.5), "s")).verdict == "unclear"


def test_ratio_is_of_means_of_pairs() -> None:
    ratio = claim(kind="r", paper=1.7, tolerance="10%", unit="ratio")
    b = around(1.0, 0.3)
    assert judged(ratio, pair(1.7 * b, b, "s")).verdict == "holds"
    assert judged(ratio, pair(2.5 * b, b, "s")).verdict == "differs"


ORDER = {"kind": "o", "order": "<"}


def test_ordering_holds_differs_or_is_unclear() -> None:
    b = around(2.0, 0.5)
    assert judged(claim(**ORDER), pair(b - around(0.2, 0.1), b, "s")).verdict == "holds"
    assert judged(claim(**ORDER), pair(b + around(0.2, 0.1), b, "s")).verdict == "differs"
    assert judged(claim(**ORDER), pair(b + around(0.0, 0.1), b, "s")).verdict == "unclear"
    assert judged(claim(kind="o", order=">"), pair(b + around(0.2, 0.1), b, "s")).verdict == "holds"


def test_a_protocol_against_itself_is_no_ordering() -> None:
    b = around(2.0, 0.5)
    assert judged(claim(**ORDER), pair(b, b, "s")).verdict == "differs"


def test_orderings_are_corrected_for_their_number() -> None:
    b = around(2.0, 0.5, 12)
    shift = -around(0.052, 0.08, 12)
    alone = claim(**ORDER)
    assert judged(alone, pair(b + shift, b, "s")).verdict == "holds"
    family = [claim(**ORDER)] * 12
    nothing = [pair(b + around(0, 0.1, 12), b, "s")] * 11
    results = rules.judge(family, [pair(b + shift, b, "s"), *nothing])
    assert results[0].verdict == "unclear"
    assert results[0].p == judged(alone, pair(b + shift, b, "s")).p


def test_families_of_nulls_seldom_give_an_ordering() -> None:
    random = np.random.default_rng(3)
    family = [claim(**ORDER)] * 8
    wrong = 0
    for _ in range(200):
        evidence = []
        for _ in family:
            b = random.normal(2, 0.5, 10)
            evidence.append(pair(b + random.normal(0, 0.1, 10), b, "s"))
        wrong += any(r.verdict != "unclear" for r in rules.judge(family, evidence))
    assert wrong / 200 < 0.1


def test_comparable_needs_evidence_of_equality() -> None:
    equal = claim(kind="o", equal=[0.8, 1.25])
    b = around(1.0, 0.2)
    assert judged(equal, pair(1.1 * b, b, "s")).verdict == "holds"
    assert judged(equal, pair(1.5 * b, b, "s")).verdict == "differs"
    # Too noisy to tell: neither significant nor equivalent.
    noisy = pair(around(1.0, 2.0), b, "s")
    assert judged(equal, noisy).verdict == "unclear"


def test_slightly_is_at_most_a_share_of_the_larger_mean() -> None:
    slightly = claim(kind="o", size=0.15)
    b = around(1.0, 0.05)
    small = judged(slightly, pair(0.9 * b, b, "s"))
    assert small.verdict == "holds"
    assert small.ours == pytest.approx(0.1)
    assert judged(slightly, pair(b, 0.9 * b, "s")).ours == pytest.approx(0.1)
    assert judged(slightly, pair(0.5 * b, b, "s")).verdict == "differs"


def test_settings_are_read_back() -> None:
    mtu = claim(kind="p", paper=1500, tolerance=0, unit="octets")
    assert judged(mtu, Setting(1500, "octets")).verdict == "holds"
    assert judged(mtu, Setting(1492, "octets")).verdict == "differs"
    assert judged(claim(kind="p", equals=[True, True]), Setting([True, False])).verdict == "differs"
    with pytest.raises(UsageError, match="kind p"):
        judged(claim(**VALUE), Setting(10.0))


def test_nothing_computed_is_not_covered() -> None:
    assert judged(claim(**VALUE), None).verdict == "not-covered"


def test_a_computation_without_a_criterion_is_an_error() -> None:
    with pytest.raises(UsageError, match="near enough"):
        judged(claim(kind="o"), pair([1.0, 2.0], [2.0, 3.0], "s"))


def test_a_whole_holds_when_all_parts_do() -> None:
    def of(*verdicts: str) -> str:
        return rules.whole([rules.nothing()._replace(verdict=v) for v in verdicts]).verdict

    assert of("holds", "holds") == "holds"
    assert of("holds", "not-covered") == "not-covered"
    assert of("holds", "not-covered", "differs") == "differs"
    assert of("holds", "unclear") == "unclear"
    assert of("holds", "compatible") == "compatible"
    assert of("holds", "fitted") == "fitted"


def test_what_was_fitted_never_holds_and_may_differ() -> None:
    held = judged(claim(**VALUE), exact(10.0, "s"))
    assert rules.fitted(held).verdict == "fitted"
    assert rules.fitted(held._replace(verdict="differs")).verdict == "differs"
    assert rules.fitted(held._replace(verdict="compatible")).verdict == "compatible", "which is no agreement"
    assert rules.fitted(rules.nothing()).verdict == "not-covered"
