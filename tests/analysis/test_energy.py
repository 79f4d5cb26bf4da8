"""Joules from the records of a run, against sums made by hand."""

import json
from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom import analysis
from airloom.analysis.energy import Model
from airloom.errors import UsageError
from airloom.run import Run
from airloom.scenario import parse
from tests.cli.shell import airloom, inside

WIRE = """\
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = { http-client = { objects = ["/20kB"] } } }
origin = { app = "http-server" }

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms" }

[run]
record = ["packets"]
"""

SIMPLE = Model(
    name="simple",
    form="states",
    title="",
    source="",
    verified=True,
    watts={"idle": 0.1, "fach": 1.0, "dch": 10.0, "idle-dch": 5.0},
    tail_s={"dch": 1, "fach": 2},
    send={},
    receive={},
)

#: The powers that a model of a form has at least.
POWERS = {
    "states": {"idle", "fach", "dch", "idle-dch", "fach-dch"},
    "interface": {"transmit", "receive", "idle"},
    "packets": {"idle"},
    "activity": {"promotion", "connected", "tail", "idle"},
}


#: The states whose stay a model of a form limits.
TAILS = {"states": {"dch", "fach"}, "activity": {"promotion", "connected", "tail"}}


def page(**rrc: str) -> Run:
    return al.load("umts-page").with_keys({"links.radio.rrc": rrc}).run(seed=1)


def test_joules_are_power_by_time_in_each_state() -> None:
    run = page(dch_inactivity="3s", fach_inactivity="7s")
    spent = {(part, what): (s, j) for _, part, what, s, j in analysis.energy(run, SIMPLE).rows()}
    end = max(run.states.filter(pl.col("state") == "tx")["until_ns"].to_list()) / 1e9
    assert spent["transfer", "idle-dch"] == pytest.approx((2.0, 10.0))
    assert spent["transfer", "dch"] == pytest.approx((end - 2.0, 10 * (end - 2.0)))
    # The scenario's own timers, not those of the model.
    assert spent["tail", "dch"] == (3.0, 30.0)
    assert spent["tail", "fach"] == (7.0, 7.0)
    assert run.summary["simulated_s"] < end + 10
    assert set(spent) == {("transfer", "idle-dch"), ("transfer", "dch"), ("tail", "dch"), ("tail", "fach")}


def test_per_megabyte_with_and_without_the_tail() -> None:
    run = page()
    spent = analysis.energy(run, SIMPLE)
    octets = sum(run.flows["app_bytes_up"].to_list() + run.flows["app_bytes_down"].to_list())
    joules = sum(spent["joules"].to_list())
    assert analysis.joules_per_megabyte(run, spent) == pytest.approx(joules / octets * 1e6)
    # The default timers are 4 and 10 s.
    assert analysis.joules_per_megabyte(run, spent, tail=False) == pytest.approx((joules - 50.0) / octets * 1e6)


def test_per_megabyte_of_a_page_is_the_same_whoever_fetches_it() -> None:
    split, direct = (
        al.load("split-page", {"hosts.gateway.proxy": proxy}).run(1, out=Path(str(proxy)))
        for proxy in ("split-tcp", "none")
    )
    assert split.flows.height == 2 * direct.flows.height
    octets = direct.flows.select(pl.sum("app_bytes_up", "app_bytes_down")).sum_horizontal().item()
    for run in (split, direct):
        spent = analysis.energy(run, SIMPLE)
        assert analysis.joules_per_megabyte(run, spent) == pytest.approx(spent["joules"].sum() / octets * 1e6, rel=0.02)
    cell = al.load("umts-page", {"hosts.mobile.count": 2, "links.radio.rrc": {}, "run.points": ["*.ip"]}).run(
        1, out=Path("cell")
    )
    spent = analysis.energy(cell, SIMPLE)
    octets = cell.flows.select(pl.sum("app_bytes_up", "app_bytes_down")).sum_horizontal().item()
    assert analysis.joules_per_megabyte(cell, spent) == pytest.approx(spent["joules"].sum() / octets * 1e6)


def test_joules_of_a_cell_are_for_what_its_mobiles_received_however_many_there_are() -> None:
    run = al.load("umts-page", {"hosts.mobile.count": 16, "links.radio.rrc": {}, "run.points": ["*.ip"]}).run(1)
    assert 0 < analysis.joules_per_megabyte(run, analysis.energy(run)) < float("inf")


def test_timeslots_of_one_moment_count_once() -> None:
    run = al.load("sctp-page").run(1)
    spent = {(part, what): s for _, part, what, s, _ in analysis.energy(run, "wlan.ns3").rows()}
    air = run.states.filter((pl.col("state") == "tx") & (pl.col("dir") == "dl"))
    assert sum(air["ns"].to_list()) / 1e9 > run.summary["simulated_s"]
    instants = set[int]()
    for begin, end in air["t_ns", "until_ns"].rows():
        instants.update(range(begin // 1_000_000, end // 1_000_000))
    assert spent["transfer", "receive"] == pytest.approx(len(instants) / 1e3, rel=0.01)


def test_a_mobile_that_is_never_released_has_no_tail() -> None:
    run = al.load("umts-page").run(seed=1)
    spent = analysis.energy(run, SIMPLE)
    assert set(spent["what"]) == {"dch"}
    assert "tail" not in set(spent["part"])
    assert spent["joules"].sum() == pytest.approx(10 * run.summary["simulated_s"])


def test_a_radio_behind_an_element_has_its_own_timers() -> None:
    radio = 'bearer = "vdeldrop", over = { umts-dch = { rrc = { dch_inactivity = "3s" } } }'
    run = parse(WIRE.replace('bearer = "wireline", rate = "1Mbit/s", delay = "20ms"', radio), "wire.toml").run()
    spent = {(part, what): s for _, part, what, s, _ in analysis.energy(run, SIMPLE).rows()}
    assert spent["tail", "dch"] == 3.0


@pytest.mark.parametrize("radio", ['bearer = "umts-dch"', 'bearer = "vdeldrop", over = { umts-dch = { rrc = {} } }'])
def test_air_time_is_whole_wherever_a_run_ends(radio: str) -> None:
    text = WIRE.replace('bearer = "wireline", rate = "1Mbit/s", delay = "20ms"', radio).replace("20kB", "1MB")
    run = parse(text.replace("[run]", '[run]\nuntil = "5.93s"'), "wire.toml").run()
    octets = run.states.filter(pl.col("dir") == "dl")["octets"].sum()
    assert octets == 42 * run.summary["wire.downlink.blocks"] > 100_000


def test_every_mobile_of_a_cell_is_told_apart() -> None:
    run = (
        al.load("umts-page")
        .with_keys({"hosts.mobile.count": 2, "links.radio.rrc": {}, "run.points": ["gateway.radio.ip"]})
        .run(seed=1)
    )
    assert set(analysis.energy(run)["host"]) == {"mobile[0]", "mobile[1]"}


def test_interfaces_send_receive_or_wait() -> None:
    run = parse(WIRE, "wire.toml").run()
    spent = {what: (s, j) for _, _, what, s, j in analysis.energy(run, "wlan.ns3").rows()}
    assert spent["receive"][0] == pytest.approx(run.summary["wire.downlink.bytes"] * 8 / 1e6)
    # The run ended while the last acknowledgement, 52 octets, was about to go.
    assert spent["transmit"][0] == pytest.approx((run.summary["wire.uplink.bytes"] - 52) * 8 / 1e6)
    assert spent["transmit"][1] == pytest.approx(1.14 * spent["transmit"][0])
    assert sum(s for s, _ in spent.values()) == pytest.approx(run.summary["simulated_s"])
    # On a radio link air time counts, with what RLC repeats.
    run = al.load("umts-page").run(seed=1)
    spent = {what: (s, j) for _, _, what, s, j in analysis.energy(run, "wlan.ns3").rows()}
    air = sum(run.states.filter(pl.col("dir") == "dl")["ns"].to_list()) / 1e9
    assert spent["receive"][0] == pytest.approx(air)


def test_packets_are_counted_where_they_go_one_by_one() -> None:
    run = parse(WIRE.replace('20ms"', '20ms", loss = { downlink = 0.3 }'), "wire.toml").run()
    spent = {what: j for _, _, what, _, j in analysis.energy(run, "wavelan.2mbit").rows()}
    got = run.packets.filter((pl.col("point") == "wire.queue.dl.tx") & (pl.col("event") == "enq"))
    assert 0 < got.height < run.summary["wire.downlink.packets"]
    assert spent["receive"] == pytest.approx(got.height * 330e-6 + sum(got["len"].to_list()) * 0.42e-6)
    sent, octets = run.summary["wire.uplink.packets"], run.summary["wire.uplink.bytes"]
    assert spent["send"] == pytest.approx(sent * 420e-6 + octets * 1.9e-6)


def test_datagrams_that_a_cut_throws_away_are_not_received_and_copies_are() -> None:
    wire = WIRE.replace('["/20kB"]', '["/200kB"]')
    states = (("500ms", "down"), ("2s", "up"))
    cut = wire + "".join(
        f'\n[[timeline]]\nat = "{at}"\ntarget = "wire"\nset = {{ state = "{state}" }}\n' for at, state in states
    )
    twice = wire.replace('20ms"', '20ms", duplication = { probability = 0.2 }')
    for text in (cut, twice):
        for points in ("", '\npoints = ["wire.*"]'):
            run = parse(text.replace('["packets"]', f'["packets"]{points}'), "wire.toml").run(
                1, out=Path("w"), force=True
            )
            joules = {what: j for _, _, what, _, j in analysis.energy(run, "wavelan.2mbit").rows()}["receive"]
            at = run.packets.filter(pl.col("point") == ("wire.queue.dl.tx" if points else "mobile.wire.ip"))
            if points:
                lost = at.filter(pl.col("event") == "drop")["pkt_id"].to_list()
                got = at.filter((pl.col("event") == "enq") & ~pl.col("pkt_id").is_in(lost))
            else:
                got = at.filter(pl.col("event") == "rx")
            assert joules == pytest.approx(got.height * 330e-6 + sum(got["len"].to_list()) * 0.42e-6), (text, points)


def test_a_radio_is_connected_while_packets_pass_and_let_go_afterwards() -> None:
    app = 'http-client = { objects = ["/20kB"] }'
    twice = WIRE.replace(app, 'ping = { count = 2, interval = "20s" }')
    for text, pauses in ((WIRE, 0), (twice, 1)):
        run = parse(text, "wire.toml").run()
        spent = {(part, what): (s, j) for _, part, what, s, j in analysis.energy(run, "lte.4gtest").rows()}
        passed = run.packets.filter(pl.col("point").cast(pl.String).str.contains("queue") & (pl.col("event") == "enq"))
        last = max(passed["t_ns"].to_list()) / 1e9
        assert spent["tail", "tail"] == pytest.approx((11.476, 11.476 * 1.060))
        assert spent["transfer", "promotion"][0] == pytest.approx(0.26 * (1 + pauses))
        assert spent.get(("transfer", "tail"), (0.0,))[0] == pytest.approx(11.476 * pauses)
        # All the time up to the last packet is spent in one of the states.
        until = sum(spent.get(("transfer", state), (0.0,))[0] for state in ("connected", "tail", "idle"))
        assert until == pytest.approx(last)
        down = passed.filter(pl.col("point").cast(pl.String).str.contains("dl"))
        assert spent["transfer", "receive"][1] == pytest.approx(sum(down["len"].to_list()) * 0.416e-6)


def test_without_a_model_the_bearer_decides() -> None:
    radio = 'bearer = "vdeldrop", over = "umts-dch"'
    behind = parse(WIRE.replace('bearer = "wireline", rate = "1Mbit/s", delay = "20ms"', radio), "wire.toml").run()
    wwp = al.load("wwp-transfer").run()
    for run, names in ((behind, {"umts"}), (page(), {"umts"}), (wwp, {"wlan"}), (al.load("sctp-page").run(), {"wlan"})):
        models = analysis.default_models(run)
        assert {model.name.partition(".")[0] for model in models} == names
        assert len(models) == (6 if names == {"umts"} else 1)
        assert analysis.energy(run).equals(analysis.energy(run, models[0]))
    done = airloom("energy", wwp.folder)
    assert done.code == 0
    assert "taken for a link of wireline: wlan.ns3" in done.err
    # What the sender was on the air is what the link was given, at its rate.
    spent = dict(analysis.energy(wwp).select("what", "seconds").rows())
    assert spent["transmit"] == pytest.approx(wwp.summary["air.uplink.bytes"] * 8 / 3.3e6, rel=1e-3)
    with pytest.raises(UsageError, match=r"'phs' \(piafs\) does not say how long it was busy: no model fits"):
        analysis.energy(al.load("phs-circuit").run())


def test_what_another_link_was_busy_is_not_spent_on_this_one() -> None:
    two = WIRE.replace('["mobile", "wire", "origin"]', '["mobile", "phs", "gateway", "wire", "origin"]')
    two = two.replace("[links]", '[links]\nphs = { bearer = "piafs" }').replace("[hosts]", "[hosts]\ngateway = {}")
    run = parse(two, "two.toml").run()
    assert run.summary["uplink.busy_s"] == run.summary["wire.uplink.busy_s"] > 0
    with pytest.raises(UsageError, match=r"'phs' \(piafs\) does not say how long it was busy: no model fits"):
        analysis.energy(run)
    assert analysis.energy(run, link="wire").height > 0


def test_a_replayed_trace_is_told_of_a_model_that_then_works() -> None:
    run = parse(WIRE.replace('"wireline", rate = "1Mbit/s", delay = "20ms"', '"trace"'), "wire.toml").run()
    done = inside("energy", run.folder)
    assert done.code == 2
    assert "'wire' (trace) does not say how long it was busy: choose a model" in done.err
    (named,) = (name for name in analysis.energy_models() if name in done.err)
    for model in (named, "lte"):
        assert inside("energy", run.folder, "--model", model).code == 0
    assert analysis.energy(run, named).filter(pl.col("what") == "receive")["joules"].sum() > 0


def test_a_group_of_one_spends_as_its_only_member() -> None:
    one, group = (
        parse(WIRE.replace("mobile = { ", f"mobile = {{ {count}"), "wire.toml").run(1, out=Path(f"{len(count)}"))
        for count in ("", "count = 1, ")
    )
    for model in (None, "wavelan.2mbit"):
        spent = [analysis.energy(run, model) for run in (one, group)]
        assert [set(each["host"]) for each in spent] == [{"mobile"}, {"mobile[0]"}]
        assert spent[0].drop("host").equals(spent[1].drop("host"))
        per_megabyte = [analysis.joules_per_megabyte(run, each) for run, each in zip((one, group), spent, strict=True)]
        assert per_megabyte[0] == per_megabyte[1] > 0


def test_what_a_model_needs_and_a_run_has_not_is_said(tmp_path: Path) -> None:
    wire = parse(WIRE, "wire.toml").run()
    radio = al.load("umts-page").run(seed=1)
    for run, model, link, why in (
        (wire, "umts.captivate", None, "no radio states"),
        (radio, "wavelan.2mbit", "radio", "one by one"),
        (radio, "umts.captivate", "air", "no link 'air'; it has radio"),
        (radio, "umts.none", None, "no energy model 'umts.none'; there are umts.captivate"),
        (radio, SIMPLE._replace(watts={}), None, "does not know the state 'dch'"),
    ):
        with pytest.raises(UsageError, match=why):
            analysis.energy(run, model, link=link)


def test_overheads_are_what_is_beyond_the_data() -> None:
    run = parse(WIRE, "wire.toml").run()
    found = analysis.overheads(run.flows).row(0, named=True)
    flow = run.flows.row(0, named=True)
    assert found["overhead_bytes"] == found["wire_bytes"] - flow["app_bytes_up"] - flow["app_bytes_down"] > 0


def test_discontinuous_reception_of_the_lte_profile_is_averaged_over_its_cycles() -> None:
    watts, tail_s = analysis.energy_models()["lte.aro"][5:7]
    # On for 2 ms of each cycle at 1.68 W, else 1.06 W: one cycle of 20 ms, then 10 s of 40 ms.
    short, long = (1.06 + 2 / cycle_ms * (1.68 - 1.06) for cycle_ms in (20, 40))
    assert tail_s["tail"] * watts["tail"] == pytest.approx(0.02 * short + 10 * long, rel=1e-4)
    assert watts["idle"] == pytest.approx(0.043 / 1.28 * 0.594, rel=1e-3)


def test_all_models_are_whole() -> None:
    models = analysis.energy_models()
    assert len(models) >= 9
    for model in models.values():
        assert model.title
        assert model.source
        assert set(model.watts) >= POWERS[model.form]
        assert set(model.tail_s) == TAILS.get(model.form, set())


def test_joules_for_a_megabyte_are_those_of_each_host() -> None:
    keys = {"hosts.mobile.count": 2, "links.radio.rrc": {}, "run.points": ["*.ip"]}
    run = al.load("umts-page", keys).run(1, out=Path("two"))
    said = json.loads(inside("energy", run.folder, "--model", "umts.captivate", "--json").out)
    spent = analysis.energy(run, "umts.captivate")
    assert len(said) == 2
    for row in said:
        of_host = spent.filter(pl.col("host") == row["host"])
        assert row["per_mb_j"] == pytest.approx(analysis.joules_per_megabyte(run, of_host))
    assert said[0]["per_mb_j"] != said[1]["per_mb_j"]


def test_a_host_that_received_nothing_has_no_joules_for_a_megabyte() -> None:
    lost = WIRE.replace('20ms"', '20ms", loss = { downlink = 1.0 }').replace("[run]", '[run]\nuntil = "2s"')
    run = parse(lost, "wire.toml").run()
    # NaN and Infinity are no numbers of JSON.
    (row,) = json.loads(inside("energy", run.folder, "--json").out, parse_constant=pytest.fail)
    assert row["transfer_j"] > 0
    assert row["per_mb_j"] is row["per_mb_without_tail_j"] is None
    assert inside("energy", run.folder).out.split()[-2:] == ["-", "-"]
