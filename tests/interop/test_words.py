"""The words of the interop runner's network: what they mean, and what is refused."""

import json
from pathlib import Path

import polars as pl
import pytest

from airloom.errors import UsageError
from airloom.interop import network
from airloom.interop.cases import CASES, MEASUREMENTS
from airloom.interop.words import Words, parse
from airloom.scenario import parse as parse_text

WIRE = "--delay=15ms --bandwidth=10Mbps --queue=25"


def test_a_wire_has_the_rate_the_delay_and_one_packet_more_than_waits() -> None:
    expected = {"bearer": "wireline", "delay": "15000000ns", "rate": "10000000bit/s", "queue": "26 packets"}
    assert parse(f"simple-p2p {WIRE}") == Words("simple-p2p", expected)
    assert parse("simple-p2p --queue 25 --bandwidth=10Mbps --delay 15ms").link == expected


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (f"droplist {WIRE} --drops_to_client=3,1,3", {"drop_list": {"downlink": [1, 3], "uplink": []}}),
        (
            f"drop-rate {WIRE} --rate_to_client=10 --rate_to_server=20 --burst_to_client=3",
            {"drop": {"rate": {"downlink": 0.1, "uplink": 0.2}, "burst": {"downlink": 3, "uplink": 1_000_000}}},
        ),
        (
            f"corrupt-rate {WIRE} --rate_to_client=2 --rate_to_server=0",
            {"corrupt": {"rate": {"downlink": 0.02, "uplink": 0}}},
        ),
    ],
)
def test_losses_strike_udp_alone(text: str, faults: dict[str, object]) -> None:
    assert parse(text).link["faults"] == {"protocol": "udp", **faults}


def test_a_black_hole_swallows_everything() -> None:
    hole = {"on": "5000000000ns", "off": "2000000000ns", "repeat": 1, "direction": "both"}
    assert parse(f"blackhole {WIRE} --on=5s --off=2s").link["faults"] == {"blackhole": hole}
    assert parse(f"blackhole {WIRE} --on=5s --off=2s --direction=toserver").link["faults"]["blackhole"] == {
        **hole,
        "direction": "uplink",
    }


def test_rebinding_changes_ports_and_if_asked_addresses() -> None:
    words = parse(f"rebind {WIRE} --first-rebind=1s --rebind-freq=5s --rebind-addr")
    assert words.link["faults"] == {"nat": {"first": "1000000000ns", "every": "5000000000ns", "address": True}}
    once = parse(f"rebind {WIRE} --first-rebind=2")
    assert once.link["faults"] == {"nat": {"first": "2000000000ns", "address": False}}
    assert (words.moves_s, once.moves_s) == (1, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no scenario; valid: simple-p2p, "),
        ("simple-p2", "no scenario 'simple-p2' (did you mean simple-p2p?)"),
        ("simple-p2p; rm -rf /", "no scenario 'simple-p2p;'"),
        ("$(reboot)", "no scenario '$(reboot)'"),
        ("simple-p2p '", "No closing quotation"),
        ("simple-p2p --delay=15ms --bandwidth=10Mbps", "scenario simple-p2p: Missing parameter: queue"),
        (f"simple-p2p {WIRE} --burst=3", "unknown option `--burst`"),
        (f"simple-p2p {WIRE} --queue=3", "--queue is given twice"),
        (f"simple-p2p {WIRE} && reboot", "'&&' is no option"),
        ("simple-p2p --delay=$(id) --bandwidth=10Mbps --queue=25", "--delay=$(id): expected a time such as 15ms"),
        ("simple-p2p --delay=15ms --bandwidth=0Mbps --queue=25", "--bandwidth=0Mbps: expected a rate such as 10Mbps"),
        ("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=0", "--queue=0: expected a number from 1 to 1000000"),
        (f"droplist {WIRE} --drops_to_client=0", "expected packet numbers from 1"),
        (f"drop-rate {WIRE} --rate_to_client=101 --rate_to_server=0", "expected a number from 0 to 100"),
        (f"blackhole {WIRE} --on=5s --off=2s --repeat=0", "expected a number from 1 to"),
        (f"blackhole {WIRE} --on=5s --off=2s --direction=up", "expected both, toclient, toserver"),
        (f"rebind {WIRE}", "Missing parameter: first-rebind"),
        (f"rebind {WIRE} --first-rebind=0s", "it is zero"),
        ("cellular --preset=wpt/3gg", "no preset 'wpt/3gg' (did you mean wpt/3g?)"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        *sorted({case.scenario for case in (*CASES, *MEASUREMENTS)}),
        f"tcp-cross-traffic {WIRE}",
        f"udp-cross-traffic {WIRE} --crossdatarate=1Mbps",
        "asymmetric-p2p --delay=300ms --forward-data-rate=20Mbps --forward-queue=25 --return-data-rate=2Mbps "
        "--return-queue=25 --drop-rate-to-client=1",
        "cellular --preset=umts-hsdpa",
        "cellular --preset=wpt/3g",
    ],
)
def test_every_network_is_a_scenario_in_both_forms(text: str) -> None:
    words = parse(text)
    for table in (network.scenario(words, 7), network.between_devices(words, 7)):
        understood = parse_text(json.dumps(table)).understood
        assert understood["run"]["seed"] == 7
        assert understood["links"]["middle"]["subnet"] == "193.167.50.0/24"


def test_client_and_server_are_where_the_runner_has_them() -> None:
    links = parse_text(json.dumps(network.scenario(parse(f"simple-p2p {WIRE}"), 1))).understood["links"]
    assert links["near"]["addresses"] == {
        "client": ["193.167.0.100", "fd00:cafe:cafe::100"],
        "left": ["193.167.0.2", "fd00:cafe:cafe::2"],
    }
    assert links["far"]["addresses"]["server"] == ["193.167.100.100", "fd00:cafe:cafe:100::100"]


def test_a_wire_keeps_delay_and_rate_to_half_a_percent(tmp_path: Path) -> None:
    """A transfer through the runner's default network, simulated: what is asked for is what comes."""
    table = network.scenario(parse(f"simple-p2p {WIRE}"), 1)
    table["hosts"]["client"] = {"app": [{"bulk": {"size": "5MB"}}, {"ping": {"count": 1, "size": "0B"}}]}
    table["hosts"]["server"] = {"app": ["bulk-server"]}
    table["links"]["middle"]["queue"] = "1000 packets"
    table["run"] = {"record": ["packets"]}
    rows = parse_text(json.dumps(table)).run(out=tmp_path / "run").packets
    rows = rows.filter((pl.col("point") == "client.near.ip") & (pl.col("event") == "rx"))
    big = rows.filter(rows["len"] == 1500).sort("t_ns")
    steady = big[100:-100]
    rate = 8 * steady["len"].sum() / (steady["t_ns"][-1] - steady["t_ns"][0]) * 1e9
    assert rate == pytest.approx(10e6, rel=0.005)
