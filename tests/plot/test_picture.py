"""`--plot` draws whatever a run is, and never costs a run."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

import airloom as al
from airloom.analysis.happenings import happenings
from airloom.errors import AirloomError, UsageError
from airloom.plot import on_the_wire, picture
from airloom.scenario import parse
from tests.cli.shell import airloom
from tests.conftest import WIRE

#: What stands above the plots of each shipped scenario.
SHOWN = {
    "egprs-page": ["RLC"],
    "hsdpa-cell": ["TCP", "RLC", "MAC-hs"],
    "http2-page": ["TCP", "RLC"],
    "http3-page": ["Datagrams", "RLC"],
    "http3-race": ["TCP", "RLC"],
    "phs-384k": ["bundle", "What each member carries"],
    "phs-circuit": ["PIAFS"],
    "phs-room": ["TCP", "PIAFS"],
    "quic-migration": ["QUIC, flow 1, received at mobile", "RLC"],
    "quic-transfer": ["Datagrams", "RLC", "MAC-hs"],
    "sctp-page": ["SCTP"],
    "split-page": ["TCP", "RLC"],
    "umts-page": ["TCP", "RLC"],
    "umts-page-proxy": ["TCP", "RLC"],
    "wap-page": ["WTP", "TCP"],
    "wap-push": ["WTP", "TCP"],
    "wwp-transfer": ["WWP", "Waves and decisions"],
}

SETTING = re.compile(r"--set ('[^']*'|\S+)")


def titles(figure: Figure | None) -> list[str]:
    assert figure is not None
    return [axes.get_title(loc="left") for axes in figure.axes]


def length(line: Line2D) -> int:
    return len(np.asarray(line.get_xdata()))


def recorded(name: str, *kinds: str) -> al.Run:
    """A run that records what `--plot` would see to."""
    scenario = al.load(name)
    record = [*scenario.understood["run"]["record"], *kinds]
    return scenario.with_keys({"run.record": list(dict.fromkeys(record))}).run(out=Path(name))


@pytest.mark.parametrize("name", al.shipped())
def test_every_shipped_scenario_has_a_picture_without_an_empty_plot(name: str) -> None:
    drawn = picture(recorded(name, "packets", "pcapng"))
    shown = titles(drawn.figure)
    if name in SHOWN:
        assert len(shown) == len(SHOWN[name])
        assert all(title.startswith(begin) for title, begin in zip(shown, SHOWN[name], strict=True)), shown
    assert drawn.figure
    drawn.figure.draw_without_rendering()
    whole = drawn.figure.bbox
    for axes in drawn.figure.axes:
        assert sum(length(line) for line in axes.lines) + len(axes.patches) > 0, axes.get_title(loc="left")
        assert axes.get_ylabel() or axes.get_yticklabels()
        # Nothing is cut off, and no legend lies over marks.
        tight = axes.get_tightbbox()
        assert tight
        assert tight.x0 >= whole.x0 - 1
        assert tight.x1 <= whole.x1 + 1
        assert tight.y1 <= whole.y1 + 1
        if legend := axes.get_legend():
            assert legend.get_window_extent().y0 >= axes.bbox.y1 - 1


@pytest.mark.parametrize("name", ["phs-384k", "egprs-page", "phs-circuit", "sctp-page"])
def test_what_is_missing_is_said_with_the_setting_that_adds_it(name: str) -> None:
    run = recorded(name)
    missing = [note for note in picture(run).notes if note.startswith("not in the picture")]
    assert len(missing) == 1
    settings = [setting for word in SETTING.findall(missing[0]) for setting in shlex.split(word)]
    key, _, value = settings[0].partition("=")
    again = al.load(name, {key: value}).run(out=Path("again"))
    drawn = picture(again)
    assert not [note for note in drawn.notes if note.startswith("not in the picture")]
    assert len(titles(drawn.figure)) > len(titles(picture(run).figure))


def test_the_command_leaves_a_picture_and_ends_well() -> None:
    done = airloom("run", "phs-384k", "--plot", "--out", "kept")
    assert done.code == 0
    assert "not in the picture: TCP" in done.err
    assert (Path("kept") / "time-sequence.svg").read_text().startswith("<?xml")
    # What streams, waves and transactions are read from is recorded without being asked for.
    assert airloom("run", "wwp-transfer", "--plot", "--out", "waves").code == 0
    assert al.Run("waves").capture


def test_a_run_outlives_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Figure, path: Path) -> None:
        path.write_text("half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("airloom.plot.whole_run.save_svg", fails)
    with pytest.raises(AirloomError, match="kept is complete, but there is no picture in it: No space left"):
        al.load("phs-circuit").run(out="kept", plot=True)
    assert al.Run("kept").manifest["status"] == "ok"
    assert not list(Path("kept").glob("*time-sequence*"))


def test_a_run_that_records_nothing_says_what_would_be_drawn() -> None:
    run = parse(WIRE.replace('["packets", "pcapng"]', '"none"'), "wire.toml").run()
    drawn = picture(run)
    assert drawn.figure is None
    assert drawn.notes == ["nothing to draw: --set 'run.record=[\"packets\"]' records packets"]


def test_datagrams_without_numbers_are_counted() -> None:
    drawn = picture(parse(WIRE, "wire.toml").run())
    assert titles(drawn.figure) == ["Datagrams at mobile.wire.ip"]


def test_members_carry_what_their_points_saw() -> None:
    run = recorded("phs-384k")
    figure = picture(run).figure
    assert figure
    fragments, rates = figure.axes
    seen = run.packets.group_by("point").len().sort("point")["len"].to_list()
    assert [length(line) for line in fragments.lines] == seen
    # The sixth is released after 5 s.
    assert np.asarray(fragments.lines[5].get_xdata()).max() < 5
    assert len(rates.patches) == 6


def test_streams_are_those_of_the_chunks() -> None:
    run = recorded("sctp-page")
    figure = picture(run, flow=1).figure
    assert figure
    named = {str(line.get_label()): length(line) for line in figure.axes[0].lines}
    assert run.capture
    chunks = on_the_wire.sctp_chunks(run.capture).filter(pl.col("stream").is_not_null())
    own = run.packets.filter((pl.col("flow") == 1) & (pl.col("dir").cast(pl.String) == "dl"))["pkt_id"]
    counts = chunks.filter(pl.col("pkt_id").is_in(own.implode())).group_by("stream").len().sort("stream").rows()
    assert len(counts) == 3
    for stream, number in counts:
        assert named[f"stream {stream} ({number})"] == number
    with pytest.raises(UsageError, match="no flow 99"):
        picture(run, flow=99)


def test_waves_and_probes_are_those_of_the_capture() -> None:
    run = recorded("wwp-transfer", "pcapng")
    figure = picture(run).figure
    assert figure
    segments, decisions = figure.axes
    told, sent, probes = decisions.lines
    there = {way: run.packets.filter(pl.col("dir").cast(pl.String) == way) for way in ("ul", "dl")}
    assert length(told) == there["dl"]["ack"].count()
    assert np.asarray(sent.get_ydata()).max() == 3
    # A probe is the IP header and the six octets of its own; opening and end have content.
    assert length(probes) == there["ul"].filter(pl.col("len") == 26).height > 0
    in_waves = sum(length(line) for line in segments.lines if "acknowledged" not in str(line.get_label()))
    assert in_waves == there["ul"]["seq"].count()


def test_transactions_of_wap_have_the_names_of_what_they_ask_for() -> None:
    figure = picture(recorded("wap-page")).figure
    assert figure
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["Connect", "GET http://origin/", *["GET http://origin/5kB"] * 2, "GET http://origin/20kB"]
    figure = picture(recorded("wap-push")).figure
    assert figure
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[-3:] == ["ConfirmedPush"] * 3


def test_requests_without_a_session_are_told_apart_too() -> None:
    keys = {
        "hosts.mobile.app.wap-browser.mode": "connectionless",
        "hosts.mobile.app.wap-browser.pages": [["/300", "/400"]],
    }
    figure = picture(al.load("wap-page", keys).run()).figure
    assert figure
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "WSP requests without a session at gateway.radio.ip"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["GET http://origin/300", "GET http://origin/400"]
    assert [str(line.get_label()) for line in axes.lines] == ["Invoke (2)", "Result (2)"]


def test_an_outage_is_named_and_many_attempts_are_counted(tmp_path: Path) -> None:
    (tmp_path / "outage.toml").write_text(
        'path = ["mobile", "radio", "server"]\n'
        '[hosts]\nmobile = { app = { bulk = { server = "server", size = "1MB" } } }\nserver = { app = "bulk-server" }\n'
        '[links]\nradio = { bearer = "umts-dch", loss = { downlink = 0.05 } }\n'
        '[[timeline]]\nat = "4s"\ntarget = "radio"\nset = { state = "down" }\n'
        '[[timeline]]\nat = "6s"\ntarget = "radio"\nset = { state = "up" }\n'
        '[[timeline]]\nat = "9s"\ntarget = "radio"\nset = { loss = { downlink = 0.1 } }\n'
    )
    run = al.load(tmp_path / "outage.toml").run(out=tmp_path / "run")
    assert [(one.begin_s, one.end_s) for one in happenings(run)] == [(4.0, 6.0), (9.0, None)]
    for width_mm in (None, 88):
        figure = picture(run, width_mm=width_mm).figure
        assert figure is not None
        top, below = figure.axes
        assert [text.get_text() for text in top.texts] == ["radio down", "radio loss downlink 0.1"]
        steps = [patch for patch in below.patches if isinstance(patch, StepPatch)]
        counts = {str(one.get_label()): one.get_data()[0].sum() for one in steps}
        attempts = run.packets.filter((pl.col("point") == "radio.rlc.dl.tx") & pl.col("seq").is_not_null())
        for event, name in (("tx", "first attempt"), ("retx", "further attempt"), ("drop", "lost on the air")):
            number = attempts.filter(pl.col("event") == event).height
            assert counts[f"{name} ({number})"] == number > 0
        # Nothing is cut: every title and name lies inside the figure.
        figure.draw_without_rendering()
        whole = figure.bbox
        for axes in figure.axes:
            legend = axes.get_legend()
            assert legend
            box = legend.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1 + 1
            assert box.y0 >= axes.bbox.y1 - 2, "the legend covers no mark"
    with pytest.raises(UsageError, match="40 to 2000 mm"):
        picture(run, width_mm=3)


def test_set_ups_and_releases_of_the_radio_are_happenings_if_they_are_few(tmp_path: Path) -> None:
    keys = {"links.radio.rrc": {}, "hosts.mobile.app.http-client.start": "2s", "run.until": "60s"}
    run = al.load("umts-page", keys).run(out=tmp_path / "run")
    found = [(one.name, one.begin_s) for one in happenings(run)]
    assert found[0] == ("radio set up", 2.0)
    assert found[-1][0] == "radio released"
    first = happenings(run)[0]
    assert first.end_s == run.states.filter(pl.col("state").cast(str) == "dch")["t_ns"][0] / 1e9


def test_a_set_up_at_the_first_moment_is_a_happening(tmp_path: Path) -> None:
    run = al.load("umts-page", {"links.radio.rrc": {}}).run(out=tmp_path / "run")
    first = happenings(run)[0]
    assert (first.name, first.begin_s) == ("radio set up", 0.0)
    assert first.end_s == run.states.filter(pl.col("state").cast(str) == "dch")["t_ns"][0] / 1e9
