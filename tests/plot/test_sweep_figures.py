"""Figures show what is in the table, with names and units on every axis."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

import airloom as al
from airloom import analysis, plot
from airloom.analysis import sequences
from airloom.errors import UsageError
from airloom.report import events
from airloom.scenario import parse
from tests.cli.shell import inside

LOSS = "links.wire.loss"


@pytest.fixture
def runs() -> pl.DataFrame:
    rows = [
        {"point": 2 * i + j, LOSS: loss, "tcp": tcp, "seed": seed, "page_load_s": 1.0 + loss + j + seed % 3 / 10}
        for i, loss in enumerate((0.0, 0.1, 0.2))
        for j, tcp in enumerate(("NewReno", "Tahoe"))
        for seed in range(1, 11)
    ]
    return pl.DataFrame(rows)


@pytest.fixture
def run(wire: Path) -> al.Run:
    text = (
        wire.read_text()
        .replace('app = "ping"', 'app = "bulk"')
        .replace("origin = {}", 'origin = { app = "bulk-server" }')
    )
    wire.write_text(text)
    return al.load(str(wire), {"run.record": ["packets", "congestion"], "run.points": ["*.ip"]}).run()


def labels(figure: Figure) -> list[tuple[str, str]]:
    return [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]


def test_a_response_has_a_line_per_variant_and_intervals(runs: pl.DataFrame) -> None:
    table = analysis.summarise(runs, "page_load_s", ["tcp", LOSS])
    figure = plot.response(table, LOSS)
    assert labels(figure) == [("wire loss", "page load (s), mean")]
    axes = figure.axes[0]
    lines, names = axes.get_legend_handles_labels()
    assert names == ["NewReno", "Tahoe"]
    for line, name in zip(lines, names, strict=True):
        shown = table.filter(pl.col("tcp") == name)
        assert isinstance(line, ErrorbarContainer)
        points, _, bars = line.lines
        np.testing.assert_allclose(np.asarray(points.get_ydata(), float), shown["mean"])
        np.testing.assert_allclose(np.asarray(points.get_xdata(), float), np.array([0.0, 0.1, 0.2]))
        reach = np.array([segment[:, 1] for segment in bars[0].get_segments()])
        np.testing.assert_allclose(reach, shown.select("low", "high").to_numpy())
    assert axes.get_title(loc="left") == "95 % intervals over 10 seeds"


def test_a_line_goes_along_its_axis_in_whatever_order_the_points_were_made(runs: pl.DataFrame) -> None:
    table = analysis.summarise(runs, "page_load_s", ["tcp", LOSS]).sort(LOSS, descending=True)
    lines, _ = plot.response(table, LOSS).axes[0].get_legend_handles_labels()
    assert len(lines) == 2
    for line in lines:
        assert isinstance(line, ErrorbarContainer)
        np.testing.assert_allclose(np.asarray(line.lines[0].get_xdata(), float), np.array([0.0, 0.1, 0.2]))


def test_an_axis_that_is_called_as_a_quantile_is_no_estimate(runs: pl.DataFrame) -> None:
    table = analysis.summarise(runs.rename({"tcp": "q1"}), "page_load_s", ["q1", LOSS], 0.9)
    figure = plot.response(table, LOSS)
    assert labels(figure) == [("wire loss", "page load (s), q0.9")]
    assert figure.axes[0].get_legend_handles_labels()[1] == ["NewReno", "Tahoe"]


def test_a_response_against_names_has_no_line_between_them(runs: pl.DataFrame) -> None:
    figure = plot.response(analysis.summarise(runs, "page_load_s", ["tcp"], "median"), "tcp")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["NewReno", "Tahoe"]
    assert {line.get_linestyle() for line in axes.get_lines()} == {"None"}


def test_a_distribution_steps_from_nothing_to_all(runs: pl.DataFrame) -> None:
    figure = plot.cdf(analysis.cdf(runs, "page_load_s", ["tcp"]), "page_load_s")
    assert labels(figure) == [("page load (s)", "share of runs")]
    for line in figure.axes[0].get_lines():
        share = np.asarray(line.get_ydata(), dtype=float)
        assert share[0] == 0
        assert share[-1] == 1
        assert (np.diff(share) >= 0).all()


def test_paired_differences_stand_around_zero(runs: pl.DataFrame) -> None:
    table = analysis.paired(runs, "page_load_s", "tcp", "NewReno", [LOSS])
    figure = plot.paired_difference(table, LOSS)
    assert labels(figure) == [("wire loss", "page load (s):\ndifference from tcp = NewReno")]
    lines, names = figure.axes[0].get_legend_handles_labels()
    assert names == ["Tahoe"]
    assert isinstance(lines[0], ErrorbarContainer)
    np.testing.assert_allclose(np.asarray(lines[0].lines[0].get_ydata(), float), np.ones(3))
    beneath = plot.paired_difference(table)
    assert [t.get_text() for t in beneath.axes[0].get_yticklabels()] == ["0, Tahoe", "0.1, Tahoe", "0.2, Tahoe"]


@pytest.mark.parametrize("width_mm", [None, 88, 170])
def test_figures_fit_a_column_of_a_paper_and_nothing_is_cut(runs: pl.DataFrame, width_mm: float | None) -> None:
    long = "hosts.origin.transport.tcp.congestion"
    named = runs.rename({"tcp": long})
    pairs = analysis.paired(named, "page_load_s", long, "NewReno", [LOSS])
    for figure in (
        plot.response(analysis.summarise(named, "page_load_s", [long, LOSS]), LOSS, width_mm),
        plot.cdf(analysis.cdf(named, "page_load_s", [LOSS, long]), "page_load_s", width_mm),
        plot.paired_difference(pairs, LOSS, width_mm),
        plot.paired_difference(pairs, None, width_mm),
    ):
        assert figure.get_figwidth() == pytest.approx(5.0 if width_mm is None else width_mm / 25.4)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        legend = axes.get_legend()
        titles = [axes.xaxis.label, axes.yaxis.label]
        for box in (part.get_window_extent() for part in [*titles, *([legend] if legend else [])]):
            assert figure.bbox.x0 <= box.x0 + 1
            assert box.x1 <= figure.bbox.x1 + 1
            assert figure.bbox.y0 <= box.y0 + 1
            assert box.y1 <= figure.bbox.y1 + 1


def test_the_command_line_draws_as_wide_as_it_is_told(wire: Path) -> None:
    column = 88 / 25.4 * 72

    def width(picture: Path) -> float:
        found = re.search(r'<svg [^>]*width="([0-9.]+)pt"', picture.read_text())
        assert found
        return float(found[1])

    wide = ("--plot", "--width-mm", "88")
    assert inside("run", wire, *wide, "--out", "run").code == 0
    assert inside("sweep", wire, "--vary", f"{LOSS}=0,0.1", "--seeds", "1..2", *wide, "--out", "sweep").code == 0
    assert inside("list", "scenarios", wire, "--picture", "--width-mm", "88", "--out", "net.svg").code == 0
    for picture in ("run/time-sequence.svg", "sweep/response-links.wire.loss.svg", "net.svg"):
        assert width(Path(picture)) == pytest.approx(column, abs=0.01)
    for words, why in (
        (("run", wire, "--width-mm", "88"), "--width-mm 88: there is a picture with --plot only"),
        (("run", wire, "--plot", "--width-mm", "3"), "--width-mm"),
    ):
        done = inside(*words)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert why in done.err


def test_the_congestion_window_is_that_of_the_sender(run: al.Run) -> None:
    figure = plot.congestion_window(run.congestion)
    assert labels(figure) == [("time since the start of the run (s)", "octets")]
    assert figure.axes[0].get_title(loc="left") == "flow 1, sender origin"
    window = next(line for line in figure.axes[0].get_lines() if line.get_label() == "congestion window")
    assert (
        np.max(np.asarray(window.get_ydata()))
        == run.congestion.filter(pl.col("host").cast(str) == "origin")["cwnd"].max()
    )


@pytest.mark.parametrize("transport", ["tcp", "sctp"])
def test_every_time_out_of_an_outage_is_marked(transport: str) -> None:
    text = """
        [run]
        record = ["congestion"]
        [hosts]
        mobile = { app = { bulk = { size = "500kB" } }, transport = "TRANSPORT" }
        origin = { app = "bulk-server", transport = "TRANSPORT" }
        [links.wire]
        bearer = "wireline"
        rate = "1Mbit/s"
        delay = "20ms"
        between = ["mobile", "origin"]
        [[timeline]]
        at = "1s"
        target = "wire"
        set = { state = "down" }
        [[timeline]]
        at = "9s"
        target = "wire"
        set = { state = "up" }
    """
    run = parse(text.replace("TRANSPORT", transport)).run()
    lines = plot.congestion_window(run.congestion).axes[0].get_lines()
    assert run.summary["rto_count"] > 2
    assert f"time-out ({run.summary['rto_count']:.0f})" in [line.get_label() for line in lines]


def test_a_backlog_ends_at_nothing_and_is_what_the_queue_and_the_wire_hold(run: al.Run) -> None:
    figure = plot.backlog(run.packets, "wire")
    assert labels(figure) == [("time since the start of the run (s)", "octets in the link")]
    level = np.asarray(figure.axes[0].get_lines()[0].get_ydata())
    assert level[-1] == 0
    assert level.min() == 0
    assert level.max() >= run.summary["wire.downlink.queue_max_bytes"]


@pytest.mark.parametrize(("bearer", "point"), [("umts-dch", "radio.rlc.dl.tx"), ("wireline", "radio.queue.dl.tx")])
def test_what_waits_in_a_links_queue_is_drawn_packet_by_packet(bearer: str, point: str) -> None:
    text = f"""\
path = ["mobile", "radio", "origin"]
hosts = {{ mobile = {{ app = {{ bulk = {{ size = "100kB" }} }} }}, origin = {{ app = "bulk-server" }} }}
links.radio = {{ bearer = "{bearer}", rate = "384kbit/s", queue = "60 packets" }}
run = {{ record = ["packets"] }}
"""
    run = parse(text, "bulk.toml").run(seed=1)
    entered = run.packets.filter((pl.col("event").cast(str) == "enq") & (pl.col("point").cast(str) == point))
    assert entered.height == run.summary["radio.downlink.packets"]
    assert entered["q_bytes"].max() == run.summary["radio.downlink.queue_max_bytes"]
    assert entered["q_bytes"].to_numpy()[0] == entered["len"].to_numpy()[0]
    figure = plot.backlog(run.packets, "radio")
    level, queue, *_ = figure.axes[0].get_lines()
    np.testing.assert_array_equal(queue.get_ydata(), entered["q_bytes"].to_numpy())
    assert np.max(np.asarray(level.get_ydata())) >= np.max(np.asarray(queue.get_ydata()))


def test_what_a_link_drops_is_in_it_no_more() -> None:
    text = """\
path = ["mobile", "radio", "origin"]
hosts = { mobile = { app = { bulk = { size = "200kB" } } }, origin = { app = "bulk-server" } }
links.radio = { bearer = "wireline", rate = "384kbit/s", delay = "50ms", queue = "8 packets", loss = 0.02 }
run = { record = ["packets"] }
"""
    run = parse(text, "bulk.toml").run(seed=1)
    assert run.summary["radio.downlink.lost"] > 0
    assert run.summary["radio.downlink.queue_drops"] > 0
    level = np.asarray(plot.backlog(run.packets, "radio").axes[0].get_lines()[0].get_ydata())
    assert (level[-1], level.min()) == (0, 0)
    (line,) = [line for line in events.queues(sequences.plain(run.packets)) if line.name.startswith("radio downlink")]
    assert (line.y[-1], line.y.min()) == (0, 0)


def test_throughput_is_all_that_arrived(run: al.Run) -> None:
    figure = plot.throughput(run.packets, "wire", span_s=0.25)
    assert labels(figure) == [("time since the start of the run (s)", "rate of datagrams (bit/s)")]
    (steps,) = figure.axes[0].patches
    values, edges, _ = steps.get_data()  # type: ignore[attr-defined]
    assert sum(values) * 0.25 / 8 == pytest.approx(run.summary["wire.downlink.bytes"])
    # A span has whole datagrams: at most one more than fits.
    assert max(values) <= 1e6 + 8 * 1500 / 0.25
    assert edges[1] == 0.25


def test_figures_are_the_same_octets_each_time(runs: pl.DataFrame) -> None:
    for name in ("one", "two"):
        plot.save(plot.cdf(analysis.cdf(runs, "page_load_s", ["tcp"]), "page_load_s"), name)
    for ending in (".svg", ".pdf"):
        assert Path("one").with_suffix(ending).read_bytes() == Path("two").with_suffix(ending).read_bytes()


def test_what_cannot_be_drawn_is_said(runs: pl.DataFrame, run: al.Run) -> None:
    with pytest.raises(UsageError, match="no estimate"):
        plot.response(runs, "tcp")
    with pytest.raises(UsageError, match="no differences"):
        plot.paired_difference(runs)
    with pytest.raises(UsageError, match="both ends"):
        plot.backlog(run.packets.filter(pl.col("point").cast(str) == "mobile.wire.ip"), "wire")
    with pytest.raises(UsageError, match="nothing to draw"):
        plot.congestion_window(run.congestion, flow=99)


def test_long_names_are_not_cut() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axis, other = "hosts.mobile.app.http-client.connections", "links.radio.loss.downlink"
    rows = [(a, b, s, 1.0 + s * a, 2.0 * a + s) for a in (1, 4) for b in (0.0, 0.1) for s in (1, 2, 3)]
    runs = pl.DataFrame(
        rows, schema=[axis, other, "seed", "requests_per_connection", "first_object_mean_s"], orient="row"
    )
    for measure in ("requests_per_connection", "first_object_mean_s"):
        differences = analysis.paired(runs, measure, axis, 1, [other])
        for figure in (
            plot.response(analysis.summarise(runs, measure, [axis, other], "median"), other),
            plot.paired_difference(differences, other),
            plot.paired_difference(differences),
            plot.cdf(analysis.cdf(runs, measure, [axis, other]), measure),
        ):
            FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
            (axes,) = figure.axes
            for text in (axes.xaxis.label, axes.yaxis.label):
                box = text.get_window_extent()
                inside = (
                    figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1
                )
                assert inside, text.get_text()
