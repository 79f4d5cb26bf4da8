"""Sections 4 and 6 of the study `wap-vs-http-wcdma`: what it makes of runs, and the paper's numbers in its settings."""

import re
import tomllib
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from airloom.study.folder import open_study

STUDY = open_study("wap-vs-http-wcdma")
PARTS: Any = STUDY.module

#: Kilobits a second that were swept.
RATES = np.array([9.6, 14.4, 28.8, 64.0])


def saved(octets: int, encoding_ms: float) -> Any:
    """Milliseconds that a deck comes sooner when it is so much shorter and takes so long to encode."""
    return octets * 8 / RATES - encoding_ms


def test_the_break_even_is_where_the_octets_saved_take_as_long_as_encoding() -> None:
    assert PARTS.pay_off.zero_crossing(RATES, saved(283, 130)) == pytest.approx(283 * 8 / 130)


def test_what_pays_nowhere_or_everywhere_has_no_break_even_among_the_speeds() -> None:
    assert PARTS.pay_off.zero_crossing(RATES, saved(10, 130)) == 0
    assert PARTS.pay_off.zero_crossing(RATES, saved(283, 1)) == float("inf")


@pytest.mark.parametrize(("leads_from", "found"), [(0, 0), (14.4, 14.4), (384, 384), (1e9, float("inf"))])
def test_where_http_leads_at_every_speed_there_is_no_crossing(
    monkeypatch: pytest.MonkeyPatch, leads_from: float, found: float
) -> None:
    monkeypatch.setattr(PARTS.bearers, "ratio", lambda _data, _size, rate: 1.2 if rate >= leads_from else 0.8)
    assert PARTS.bearers.crossing(None).samples.tolist() == [found]


def test_the_paper_s_gateway_has_every_string_in_place_and_takes_the_two_times_that_the_paper_gives() -> None:
    sweeps = tomllib.loads((STUDY.folder / "sweep.toml").read_text(encoding="utf-8"))
    (paper,) = (level["set"] for level in sweeps["pay-off-wap"]["vary"]["encoder"] if level["label"] == "paper")
    key = "hosts.gateway.proxy.wap-gateway"
    assert paper[f"{key}.string_table"] is False
    times = (paper[f"{key}.processing.{name}"] for name in ("encoding", "encoding_per_octet"))
    fixed, per_octet = (float(re.sub("[a-z]+", "", time)) for time in times)
    took = [fixed / 1e3 + octets * per_octet / 1e6 for octets in (1_400, 360_000)]
    assert took == pytest.approx([130, 1730], rel=1e-4)


@pytest.mark.parametrize("scenario", ["http", "tls", "proxy"])
def test_the_pages_of_the_scenarios_are_as_long_as_the_decks_of_the_same_text_in_xhtml(scenario: str) -> None:
    table = tomllib.loads((STUDY.folder / "scenarios" / f"{scenario}.toml").read_text(encoding="utf-8"))
    objects = table["hosts"]["origin"]["app"]["http-server"]["objects"]
    for size in (1, 10, 100):
        assert objects[f"/{size}K.xhtml"] == f"{len(PARTS.proposal.xhtml(size * 1000))}B"


def test_a_page_of_xhtml_has_the_text_and_the_line_breaks_of_its_deck() -> None:
    page, deck = (make(1400).decode() for make in (PARTS.proposal.xhtml, PARTS.proposal.deck))
    words = [re.sub(r"<(?!br)[^>]*>|\s", "", text[text.index("<p") :]) for text in (page, deck)]
    assert words[0] == words[1]
    assert words[0].count("<br/>") > 10


def test_the_line_between_cells_runs_along_their_sides() -> None:
    axes = Figure().subplots()
    PARTS.figures.edge(axes, np.array([[True, False], [True, True]]))
    drawn = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
    assert sorted(drawn) == [[[0.5, -0.5], [0.5, 0.5]], [[0.5, 0.5], [1.5, 0.5]]]


def test_options_of_a_segment_are_found_behind_padding() -> None:
    # MSS, NOP, NOP, SACK permitted, end of list.
    header = bytes(12) + bytes([8 << 4, 2]) + bytes(6)
    segment = header + bytes([2, 4, 5, 180, 1, 1, 4, 2, 0, 0, 0, 0])
    assert PARTS.http_side.captures.options(segment) == {1, 2, 4}
