"""The report of a sweep, in a real browser."""

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airloom as al
from airloom import report
from airloom.analysis import quantile_interval, summarise
from airloom.report.sweep import _medians
from airloom.scenario import parse
from airloom.sweep import SweepResults, overview
from tests.cli.shell import airloom
from tests.report.browser import COLOURED, Open
from tests.sweep.conftest import FETCH

VARY: dict[str, list[Any]] = {
    "links.wire.loss": [0, 0.05, 0.2],
    "hosts.origin.transport.tcp.congestion": ["newreno", "reno"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> SweepResults:
    place = tmp_path_factory.mktemp("report") / "sweep"
    return parse(FETCH, "fetch.toml").sweep(VARY, seeds="1..12").run(out=place, workers=1)


def test_report_of_a_sweep_draws_medians_and_distributions(results: SweepResults, look: Open) -> None:
    made = airloom("report", results.folder)
    assert made.code == 0, made.err
    for width, scheme in ((1280, "light"), (390, "dark")):
        with look(results.folder / "report.html", width=width, scheme=scheme) as seen:
            page = seen.page
            assert page.locator("h1").inner_text() == "A small object over a lossy wire"
            assert page.evaluate("airloom.plots.length") == 2
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert all(page.evaluate(COLOURED, n) > 20 for n in (0, 1))
            page.get_by_label("over:").select_option("1")
            assert page.evaluate("airloom.plots[0].ticks") == ["newreno", "reno"]
            page.get_by_label("Measure:").select_option("resent")
            assert page.evaluate("airloom.plots[0].y") == "resent (count)"
            assert all(page.evaluate(COLOURED, n) > 20 for n in (0, 1))


def test_terminal_and_report_estimate_the_same(results: SweepResults) -> None:
    found = _medians(results, "page_load_s")
    printed = overview.points(results, ["page_load_s"])
    for point in range(6):
        values = results.runs.filter(pl.col("point") == point)["page_load_s"]
        wanted = quantile_interval(values, 0.5, 0.95)
        shown = printed[point]["medians"]["page_load_s"]
        assert (found["median"][point], found["low"][point], found["high"][point]) == wanted[:3]
        assert (shown["value"], shown["low"], shown["high"]) == wanted[:3]
        assert found["mean"][point] == pytest.approx(values.mean())
        assert found["n"][point] == 12


def test_counts_have_no_interval_below_zero(results: SweepResults) -> None:
    means = results.mean("resent")
    assert (means["mean"] > 0).any()
    assert (means["low"] >= 0).all()
    few = pl.DataFrame({"seed": range(1, 9), "resent": [0, 0, 0, 0, 0, 0, 0, 1]})
    (low,) = summarise(few, "resent", [])["low"]
    assert low >= 0


def test_failed_runs_stand_in_front_and_not_in_the_means(tmp_path: Path, look: Open) -> None:
    # Two round trips of 40 ms and 5 kB at 1 Mbit/s: nothing is done within 100 ms.
    sweep = parse(FETCH, "fetch.toml").sweep({"run.limit": ["100ms", "1h"]}, seeds="1..8")
    results = sweep.run(out=tmp_path / "sweep", workers=1)
    assert results.failures.height == 8
    report.build(results.folder)
    with look(results.folder / "report.html") as seen:
        assert seen.page.locator("section").first.locator("h2").inner_text() == "Failed runs"
        assert f"{results.failures.height} of 16 runs failed" in seen.page.locator("#failures").inner_text()


def test_too_few_seeds_for_an_interval_are_said_so_everywhere(tmp_path: Path, look: Open) -> None:
    sweep = parse(FETCH, "fetch.toml").sweep({"links.wire.loss": [0.05, 0.2]}, seeds="1..5")
    results = sweep.run(out=tmp_path / "few", workers=1)
    said = "\n".join(" ".join(row) for row in overview.overview(results, ["page_load_s"]).rows)
    assert said.count("[no interval]") >= 2
    assert "nan" not in said
    assert results.median("page_load_s")["method"].to_list() == ["none", "none"]
    titles = [
        axes.get_title(loc="left")
        for axes in results.plot.response("page_load_s", "links.wire.loss", statistic="median").axes
    ]
    assert titles == ["5 seeds: no intervals"]
    (other,) = al.compare(results.folder, results.folder, measures=["page_load_s"]).figures()
    assert other.axes
    with look(report.build(results.folder)) as seen:
        shown = seen.page.locator("#medians table").inner_text()
        assert "–" in shown
        assert "nan" not in shown.lower()
        # The scale is that of the medians.
        low, high = seen.page.evaluate("(p => [p.series[0].low[0], p.series[0].high[0]])(airloom.plots[0])")
        assert low == high > 0


def test_a_sweep_without_axes_and_with_one_seed_has_a_report(tmp_path: Path, look: Open) -> None:
    results = al.load("umts-page", {"run.record": "none"}).sweep({}, seeds=[3]).run(out=tmp_path / "one", workers=1)
    with look(report.build(results.folder)) as seen:
        assert "–" in seen.page.locator("#medians table").inner_text()


def test_two_thousand_runs_make_a_small_report(results: SweepResults, tmp_path: Path) -> None:
    # The same table twenty-eight times over, with other seeds: what matters is its size.
    import shutil

    place = tmp_path / "large"
    shutil.copytree(results.folder, place)
    rows = results.all_runs
    many = pl.concat([rows.with_columns(pl.col("seed") + 12 * n) for n in range(28)])
    assert many.height > 2000
    many.write_parquet(place / "runs.parquet")
    start = time.process_time()
    made = report.build(place)
    print(f"{time.process_time() - start:.2f} s, {made.stat().st_size} octets")
    assert made.stat().st_size < 5_000_000
