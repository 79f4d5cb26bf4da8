"""What rules say, and what they decide."""

import math

import numpy as np
import pytest

from airloom.errors import UsageError
from airloom.gate.rules import Rule


def decide(text: str, values: list[float], *, is_exact: bool = False) -> str:
    return Rule.read(text, "gates.toml").decide(values, is_exact=is_exact).state


def test_a_rule_without_a_statistic_is_about_every_run() -> None:
    assert decide("exit_code == 0", [0.0, 0.0]) == "pass"
    assert decide("exit_code == 0", [0.0, 1.0]) == "fail"
    assert Rule.read("radio.downlink.rlc_resent.p95 < 3", "x")[1:5] == ("radio.downlink.rlc_resent", "p95", "<", 3.0)


def test_in_virtual_time_a_figure_is_exact() -> None:
    assert decide("t.median <= 2", [1.0, 2.0, 30.0], is_exact=True) == "pass"
    assert decide("t.median < 2", [1.0, 2.0, 30.0], is_exact=True) == "fail"
    assert decide("t.mean == 2", [2.0], is_exact=True) == "pass"


def test_in_real_time_the_whole_interval_decides() -> None:
    values = [5 + n / 10 for n in range(20)]
    assert decide("t.median <= 9", values) == "pass"
    assert decide("t.median <= 5", values) == "fail"
    assert decide("t.median <= 6", values) == "unclear"
    assert decide("t.mean >= 5.5", values) == "pass"


def test_too_few_runs_are_unclear_and_it_says_how_many_it_takes() -> None:
    found = Rule.read("t.p75 <= 8", "x").decide([1.0] * 12, is_exact=False)
    assert found.state == "unclear"
    assert "at least 13" in found.why
    assert Rule.read("t.p75 <= 8", "x").decide([1.0] * 13, is_exact=False).state == "pass"
    assert decide("t.mean <= 8", [1.0]) == "unclear"


def test_a_mean_of_few_runs_that_are_all_the_same_is_unclear() -> None:
    found = Rule.read("retransmissions.mean <= 0", "x").decide([0.0, 0.0], is_exact=False)
    assert (found.state, found.why) == ("unclear", "2 runs; at least 6 are needed")
    assert decide("retransmissions.mean <= 0", [0.0] * 5) == "unclear"
    assert decide("retransmissions.mean <= 0", [0.0] * 6) == "pass"
    assert decide("retransmissions.mean <= 0", [0.0, 0.0], is_exact=True) == "pass"
    assert decide("t.mean <= 8", [1.0, 1.1]) == "pass"


@pytest.mark.parametrize("rule", ["t.median <= 8", "t <= 8", "t.max <= 8"])
def test_a_run_without_the_measure_fails_and_if_none_has_it_that_is_an_error(rule: str) -> None:
    read = Rule.read(rule, "x")
    for is_exact in (True, False):
        found = read.decide([1.0, None, math.nan, *[1.0] * 30], is_exact=is_exact)
        assert (found.state, found.why) == ("fail", "2 of 33 runs have no t")
        assert read.decide([None, None], is_exact=is_exact).state == "error"
        assert read.decide([], is_exact=is_exact).state == "error"


def test_the_interval_of_a_quantile_holds_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    true = math.log(4)  # the upper quartile of the exponential distribution
    rule = Rule.read("t.p75 <= 8", "x")
    found = [rule.decide(list(rng.exponential(size=30)), is_exact=False) for _ in range(400)]
    assert sum(verdict.low <= true <= verdict.high for verdict in found) >= 370


def comparing(**more: object) -> Rule:
    return Rule.read({"measure": "t.median", "vs": "before.json", "max_regression": "10 %", **more}, "x")


def test_a_regression_is_decided_on_both_intervals() -> None:
    before = [5 + n / 100 for n in range(20)]
    assert comparing().decide(before, before, is_exact=False).state == "pass"
    assert comparing().decide([v * 1.3 for v in before], before, is_exact=False).state == "fail"
    assert comparing().decide([v * 1.1 for v in before], before, is_exact=False).state == "unclear"
    assert comparing().decide([5.5], [5.0], is_exact=True).state == "pass"
    assert comparing().decide([5.6], [5.0], is_exact=True).state == "fail"
    assert comparing(better="higher").decide([4.4], [5.0], is_exact=True).state == "fail"
    assert comparing().decide([5.0], [], is_exact=True).state == "error"


@pytest.mark.parametrize(
    "rate", ["goodput_bit_s", "down_kbit_s", "download_mbit_s", "link_gbit_s", "requests_per_s", "app.requests_per_s"]
)
def test_of_rates_more_is_better_unless_it_is_said(rate: str) -> None:
    assert comparing(measure=f"{rate}.mean").relation == ">="
    assert comparing(measure=f"{rate}.mean", better="lower").relation == "<="
    assert comparing(measure="page_load_s.mean").relation == "<="


@pytest.mark.parametrize(
    ("runs", "before", "why"),
    [
        (15, 20, "15 runs; at least 16 are needed"),
        (20, 10, "20 runs; before.json has 10, and at least 16 are needed"),
        (20, 20, "20 runs are too few to tell"),
    ],
)
def test_a_regression_takes_more_runs_and_of_the_baseline_too(runs: int, before: int, why: str) -> None:
    values, others = ([5 + n / 100 for n in range(count)] for count in (runs, before))
    found = comparing(measure="t.p75", max_regression=0).decide(values, others, is_exact=False)
    assert (found.state, found.why) == ("unclear", why)


@pytest.mark.parametrize(
    "wrong",
    [
        "page_load_s",
        "page_load_s.p75 <= much",
        "page_load_s <= inf",
        "<= 8",
        7,
        {"measure": "t.median", "vs": "b.json"},
        {"measure": "t", "vs": "b.json", "max_regression": "10 %"},
        {"measure": "t.mean", "vs": "b.json", "max_regression": "-1 %"},
        {"measure": "t.mean", "vs": "b.json", "max_regression": 0.1, "better": "left"},
        {"mesure": "t.mean"},
    ],
)
def test_a_wrong_rule_says_what_would_be_right(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"expected|valid|not|such as"):
        Rule.read(wrong, "gates.toml: gate x")
