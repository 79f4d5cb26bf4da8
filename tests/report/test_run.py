"""The report of one run, in a real browser."""

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import airloom as al
from airloom import report
from airloom.analysis import sequences
from airloom.cli import call
from airloom.errors import UsageError
from airloom.report import events
from airloom.report.page import command_line, document
from tests.cli.shell import inside
from tests.report.browser import COLOURED, Open, drag

RECORDS = {"run.record": ["packets", "pcapng", "congestion"]}
PLOT = "#sequence .u-over"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "run"
    return al.load("umts-page", RECORDS).run(seed=4, out=place).folder


def test_command_writes_one_file_that_says_what_it_is_about(folder: Path) -> None:
    done = inside("report", folder)
    assert done.code == 0, done.err
    text = Path(done.out.strip()).read_text()
    assert "<h1>A page of nine objects" in text
    assert al.__version__ in text
    assert "To repeat it" in text
    assert 'href="trace.pcapng"' in text
    # Nothing but itself: no element that loads, and a policy that forbids it.
    assert not re.search(r'<(link|img|iframe|script)[^>]+(href|src)="(?!data:)', text)
    assert "default-src 'none'" in text
    assert "Permission is hereby granted" in text


def test_a_run_made_from_python_says_a_command_that_makes_it_again(tmp_path: Path) -> None:
    scenario = al.load("umts-page", {"links.radio.loss.downlink": 0.1, "title": "Two words"})
    run = scenario.run(seed=3, out="one")
    command = command_line({**run.manifest, "command": ["thesis.py"]})
    assert command == "airloom run umts-page --seed 3 --set links.radio.loss.downlink=0.1 --set 'title=Two words'"
    assert call([*shlex.split(command)[1:], "--out", "two"]) == 0
    assert al.Run("two").manifest["run_id"] == run.manifest["run_id"]


def test_a_sweep_made_from_python_says_a_command_or_the_script(tmp_path: Path) -> None:
    vary: dict[str, list[Any]] = {"links.radio.loss.downlink": [0, 0.1], "hosts.origin.transport": ["tcp"]}
    results = al.load("umts-page").sweep(vary, seeds=range(1, 4)).run(out="one")
    command = command_line({**results.manifest, "command": ["-c"]})
    assert call([*shlex.split(command)[1:], "--out", "two"]) == 0
    assert al.SweepResults("two").manifest["sweep_id"] == results.manifest["sweep_id"]
    assert al.SweepResults("two").runs.height == 6
    named = {"loss": [{"label": "none", "set": {"links.radio.loss.downlink": 0}}]}
    manifest = al.load("umts-page").sweep(named, seeds=[1]).manifest()
    assert command_line({**manifest, "command": ["thesis.py", "7"]}) == "python thesis.py 7"


def test_report_opens_without_complaint_and_draws(folder: Path, look: Open) -> None:
    report.build(folder)
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "dark")):
        with look(folder / "report.html", width=width, scheme=scheme) as seen:
            page = seen.page
            assert page.locator("canvas").count() == page.evaluate("airloom.plots.length") == 5
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(255, 255, 255)") == (scheme == "light")
            # Every canvas has marks of its series' colours on it, not only axes.
            for n in range(5):
                assert page.evaluate(COLOURED, n) > 20


def test_dragging_zooms_all_plots_over_time_and_a_double_click_shows_all(folder: Path, look: Open) -> None:
    report.build(folder)
    with look(folder / "report.html") as seen:
        whole = seen.span()
        drag(seen.page, PLOT, 0.25, 0.5)
        width = whole[1] - whole[0]
        low, high = seen.span()
        assert low == pytest.approx(whole[0] + 0.25 * width, abs=0.01 * width)
        assert high == pytest.approx(whole[0] + 0.5 * width, abs=0.01 * width)
        assert all(seen.span(n) == (low, high) for n in range(5))
        seen.page.locator(PLOT).dblclick()
        assert seen.span() == whole


def test_keys_and_buttons_do_what_the_mouse_does(folder: Path, look: Open) -> None:
    report.build(folder)
    with look(folder / "report.html") as seen:
        page = seen.page
        low, high = seen.span()
        page.locator("#sequence .canvas").focus()
        page.keyboard.press("+")
        assert seen.span() == pytest.approx((low + (high - low) / 4, high - (high - low) / 4))
        page.keyboard.press("ArrowLeft")
        assert seen.span()[0] < low + (high - low) / 4
        page.keyboard.press("0")
        assert seen.span() == (low, high)
        page.get_by_role("button", name="Zoom in").click()
        assert seen.span()[0] > low
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "BUTTON"
        page.locator("#sequence .canvas").focus()
        page.keyboard.press("n")
        assert "frame.packet_id ==" in page.locator("#chosen").inner_text()
        first = page.locator("#filter").inner_text()
        for _ in range(4):
            page.keyboard.press("n")
        assert page.locator("#filter").inner_text() != first
        for _ in range(4):
            page.keyboard.press("p")
        assert page.locator("#filter").inner_text() == first


@pytest.mark.parametrize("zoom", [True, False], ids=["alone", "among others"])
def test_a_clicked_segment_gives_its_packet_and_a_filter_for_the_capture(folder: Path, look: Open, zoom: bool) -> None:
    report.build(folder)
    with look(folder / "report.html") as seen:
        page = seen.page
        if zoom:
            page.evaluate("() => { const p = airloom.plots[0], t = p.series[1].t[10]; p.show(t - 0.05, t + 0.05); }")
        place = page.evaluate(
            """() => { const p = airloom.plots[0], s = p.series[1];
                       return [p.u.valToPos(s.t[10], "x"), p.u.valToPos(s.y[10], "y")]; }"""
        )
        page.locator(PLOT).click(position={"x": place[0], "y": place[1]})
        said = page.locator("#chosen").inner_text()
        chosen = int(re.search(r"frame\.packet_id == (\d+)", said).group(1))  # type: ignore[union-attr]
        run = al.Run(folder)
        rows = run.packets.filter(pl.col("pkt_id") == chosen)
        assert rows.height > 0
        assert f"packet {chosen}" in said
        assert "trace.pcapng" in said


def test_a_series_can_be_hidden(folder: Path, look: Open) -> None:
    report.build(folder)
    with look(folder / "report.html") as seen:
        button = seen.page.locator("#sequence .legend button").nth(1)
        before = seen.page.evaluate(COLOURED, 0)
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
        assert seen.page.evaluate(COLOURED, 0) < before


def test_a_hundred_thousand_points_are_there_and_zoom(tmp_path: Path, look: Open) -> None:
    # 7 MB in PDUs of 40 octets: more than 100,000 attempts of the link layer.
    scenario = al.load("umts-page", {**RECORDS, "hosts.mobile.app.http-client.pages": [["/7MB"]]})
    run = scenario.run(out=tmp_path / "big")
    made = report.build(run.folder)
    with look(made) as seen:
        points = seen.page.evaluate("airloom.plots[1].series.reduce((sum, s) => sum + s.t.length, 0)")
        assert points > 100_000
        low, high = seen.span(1)
        drag(seen.page, "#attempts .u-over", 0.4, 0.41)
        now = seen.span(1)
        assert 0 < now[1] - now[0] < 0.02 * (high - low)
        assert seen.page.evaluate(COLOURED, 1) > 20


def test_numbers_of_the_plots_are_those_of_the_tables(tmp_path: Path) -> None:
    # With this seed a segment of the server is sent again.
    run = al.load("umts-page", RECORDS).run(seed=8, out=tmp_path / "run")
    packets = sequences.plain(run.packets)
    (flow,) = events.flows(packets)
    kinds = {kind.name: kind.rows for kind in (*flow.segments, *flow.attempts)}
    assert (
        kinds["further attempt"].height
        == packets.filter((pl.col("point") == "radio.rlc.dl.tx") & (pl.col("event") == "retx")).height
    )
    assert kinds["sent again by TCP"].height == run.summary["resent"] == 1
    assert kinds["lost on the air"].height > 0
    assert np.all(np.diff(kinds["acknowledged"]["y"].to_numpy()) >= 0)
    # What came out of the radio link, by its rate, is what the client got and its headers.
    (down,) = [line for line in events.rates(packets) if line.name == "radio downlink"]
    octets = down.y.sum() * (down.t[1] - down.t[0]) / 8
    assert octets == pytest.approx(run.summary["radio.downlink.delivered_bytes"])
    (queue,) = [line for line in events.queues(packets) if line.name.startswith("radio downlink")]
    assert queue.y.min() >= 0
    assert queue.y[-1] == 0


def test_energy_says_of_how_many_mobiles_it_is(tmp_path: Path) -> None:
    keys = {"links.radio.rrc": {}, "run.points": ["*.ip"]}
    for mobiles, whose in ((1, "the mobile's radio"), (2, "the radios of 2 mobiles, all together")):
        run = al.load("umts-page", {"hosts.mobile.count": mobiles, **keys}).run(out=tmp_path / str(mobiles))
        assert f"Energy of {whose}" in unescape(report.build(run.folder).read_text())


def test_a_run_without_packets_says_how_to_get_them(tmp_path: Path, look: Open) -> None:
    run = al.load("umts-page", {"run.record": "none"}).run(out=tmp_path / "bare")
    made = report.build(run.folder)
    assert "recorded no packets" in made.read_text()
    with look(made) as seen:
        assert seen.page.locator("canvas").count() == 0


def test_names_from_a_scenario_are_text_and_not_markup(tmp_path: Path, look: Open) -> None:
    scenario = al.load("umts-page", {"title": "</script><b onclick=x>&", "run.record": "none"})
    run = scenario.run(out=tmp_path / "odd")
    manifest = json.loads((run.folder / "run.json").read_text())
    manifest["command"] = ["airloom", "run", "</script><i>"]
    (run.folder / "run.json").write_text(json.dumps(manifest))
    text = report.build(run.folder).read_text()
    assert "<b onclick" not in text
    assert "<i>" not in text
    with look(run.folder / "report.html") as seen:
        assert seen.page.locator("h1").inner_text() == "</script><b onclick=x>&"


@pytest.mark.parametrize("name", ["</script>", "<!--<script", "\\<"])
def test_no_name_ends_the_data_of_the_plots_or_hides_their_end(name: str) -> None:
    text = document("title", "", [], {"name": name})
    (data,) = re.findall('<script type="application/json" id="data">([^<]*)</script>\n<script>', text)
    assert json.loads(data) == {"name": name}


def test_what_is_no_result_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a run nor a sweep"):
        report.build(tmp_path)
    done = inside("report", tmp_path)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert inside("report", tmp_path / "missing").code == 2


def test_the_json_says_where_the_report_is(folder: Path, tmp_path: Path) -> None:
    done = inside("report", folder, "--json", "--out", tmp_path / "elsewhere.html")
    said = json.loads(done.out)
    assert Path(said["report"]).stat().st_size == said["octets"]
    # Links lead back to the run's files.
    assert "run/trace.pcapng" in Path(said["report"]).read_text()


@pytest.mark.parametrize(
    ("name", "plots", "pictures"), [("phs-384k", 0, 1), ("egprs-page", 1, 1), ("sctp-page", 2, 1), ("umts-page", 4, 0)]
)
def test_a_report_has_no_empty_place_and_pictures_of_what_numbers_do_not_show(
    name: str, plots: int, pictures: int, tmp_path: Path, look: Open
) -> None:
    run = al.load(name).run(out=tmp_path / "run")
    with look(report.build(run.folder)) as seen:
        assert seen.page.evaluate("airloom.plots.length") == plots == seen.page.locator("canvas").count()
        assert seen.page.locator("#layers img.picture").count() == pictures
        # Every place is filled, and its heading with it.
        for place, width in (("layers", 500), ("network", 300)):
            images = f"[...document.querySelectorAll('#{place} img')]"
            assert seen.page.evaluate(f"{images}.every(image => image.naturalWidth > {width})")
        assert seen.page.locator("#network img").count() == 1
        for section in seen.page.locator("section").all():
            assert len(section.inner_text().splitlines()) > 1 or section.locator("img").count()


def test_flows_of_every_numbered_transport_are_offered_with_their_units(tmp_path: Path, look: Open) -> None:
    run = al.load("wwp-transfer").run(out=tmp_path / "run")
    with look(report.build(run.folder)) as seen:
        assert "WWP, flow 1" in seen.page.locator("#sequence h3").inner_text()
        assert seen.page.evaluate("airloom.plots[0].y") == "number (segments)"
        sent = run.packets.filter(pl.col("dir").cast(pl.String) == "ul")["seq"].count()
        assert seen.page.evaluate("airloom.plots[0].series.slice(1).reduce((sum, s) => sum + s.t.length, 0)") == sent


OUTAGE = """\
path = ["mobile", "radio", "server"]
hosts = { mobile = { app = { bulk = { server = "server", size = "1MB" } } }, server = { app = "bulk-server" } }
links = { radio = { bearer = "umts-dch", loss = { downlink = 0.05 } } }
[[timeline]]
at = "4s"
target = "radio"
set = { state = "down" }
[[timeline]]
at = "6500ms"
target = "radio"
set = { state = "up" }
"""


def test_the_first_screen_says_how_long_and_the_plots_mark_the_outage(tmp_path: Path, look: Open) -> None:
    (tmp_path / "outage.toml").write_text(OUTAGE)
    run = al.load(tmp_path / "outage.toml").run(out=tmp_path / "run")
    report.build(run.folder)
    for width, height in ((1280, 720), (390, 660)):
        with look(run.folder / "report.html", width=width) as seen:
            answer = seen.page.locator("dl.asked div").first
            assert f"{run.summary['completion_s']:.4g} s" in answer.inner_text()
            box = answer.bounding_box()
            assert box
            assert box["y"] + box["height"] < height / 2
            assert "radio down" in seen.page.locator("#happenings").inner_text()
            (event,) = seen.page.evaluate("airloom.data.events")
            assert (event["begin_s"], event["end_s"], event["name"]) == (4, 6.5, "radio down")
            # Where marks would cover each other they are counted; closer by each one is drawn.
            attempts = 'airloom.plots.find(p => p.place.id === "attempts")'
            assert seen.page.evaluate(f"{attempts}.counts !== null")
            counted = seen.page.evaluate(f"{attempts}.counts.lines.map(l => l.y.reduce((a, b) => a + b, 0))")
            assert counted == seen.page.evaluate(f"{attempts}.series.map(s => s.t.length)")
            seen.page.evaluate("airloom.plots[0].show(1, 2)")
            assert seen.page.evaluate(f"{attempts}.counts === null")
            assert seen.page.evaluate(COLOURED, seen.page.evaluate(f"airloom.plots.indexOf({attempts})")) > 20


def test_rates_are_counted_in_spans_that_bursts_do_not_dominate(tmp_path: Path) -> None:
    (tmp_path / "outage.toml").write_text(OUTAGE)
    run = al.load(tmp_path / "outage.toml").run(out=tmp_path / "run")
    packets = sequences.plain(run.packets)
    assert events.rate_span_ns(packets) == 500_000_000
    downlink = next(line for line in events.rates(packets) if line.name == "radio downlink")
    assert downlink.y.max() < 1.5 * 384e3
    assert "Set are radio: " in report.build(run.folder).read_text()
