"""Faults of links, simulated: over every bearer, the same each time."""

import json

import pytest

from airloom import reference
from airloom.scenario import parse

SCENARIO = """\
path = ["mobile", "link", "origin"]
[hosts]
mobile = {{ app = {{ bulk = {{ size = "20kB" }} }} }}
origin = {{ app = "bulk-server" }}
[links.link]
bearer = "{bearer}"
{keys}
faults = {faults}
[run]
record = ["packets"]
"""

#: Bearers with keys that have to be given.
_OTHERS = {"mlppp", "trace", "vdeldrop"}


def summary(bearer: str, faults: str, seed: int = 1) -> dict[str, float]:
    text = SCENARIO.format(bearer=bearer, keys="", faults=faults)
    return parse(text, f"{bearer}.toml").with_seed(seed)._core.simulate().summary


@pytest.mark.parametrize("bearer", [b for b in reference.names("bearers") if b not in _OTHERS])
def test_a_list_is_dropped_over_every_bearer(bearer: str) -> None:
    found = summary(bearer, "{ drop_list = { downlink = [3, 5], uplink = [2] } }")
    assert found["link.downlink.dropped_by_list"] == 2
    assert found["link.uplink.dropped_by_list"] == 1
    assert found["transfers"] == 1


def test_a_transfer_ends_whatever_goes_wrong_and_the_same_way_each_time() -> None:
    faults = {
        "drop": '{ rate = "5%", burst = 2 }',
        "duplication": '{ probability = "5%" }',
        "reordering": '{ probability = "5%", delay = "30ms" }',
        "blackhole": '{ on = "100ms", off = "300ms" }',
        "nat": '{ first = "10s" }',
    }
    together = "{ " + ", ".join(f"{key} = {value}" for key, value in faults.items()) + " }"
    found = summary("umts-dch", together)
    assert found["transfers"] == 1
    for counted in ("dropped_by_rate", "duplicated", "reordered", "dropped_by_blackhole"):
        assert found[f"link.downlink.{counted}"] + found[f"link.uplink.{counted}"] > 0, counted
    assert summary("umts-dch", together) == found
    assert summary("umts-dch", together, seed=2) != found


def test_a_black_hole_for_large_datagrams_stops_a_transfer_and_no_handshake() -> None:
    text = SCENARIO.format(bearer="wireline", keys="", faults="{ mtu = 1000 }")
    results = parse(text, overrides={"run.until": "30s"})._core.simulate()
    assert results.summary["link.downlink.dropped_by_mtu"] > 3
    assert results.summary["link.uplink.dropped_by_mtu"] == 0
    assert results.summary["transfers"] == 0


def test_a_connection_of_tcp_does_not_survive_a_translator_that_forgets_it() -> None:
    keys = 'rate = "100kbit/s"\nqueue = "3 packets"'
    text = SCENARIO.format(bearer="wireline", keys=keys, faults='{ nat = { first = "500ms" } }')
    found = parse(text, overrides={"run.until": "60s"})._core.simulate().summary
    assert found["link.downlink.dropped_by_nat"] > 0
    assert found["transfers"] == 0


def test_what_is_understood_is_read_again() -> None:
    text = SCENARIO.format(
        bearer="wireline", keys="", faults='{ nat = { first = "1s" }, drop_list = { uplink = [3, 1] } }'
    )
    understood = parse(text).understood
    assert understood["links"]["link"]["faults"]["drop_list"] == {"downlink": [], "uplink": [1, 3]}
    assert parse(json.dumps(understood)).understood == understood


SWITCHED = """\
path = ["a", "wire", "b"]
hosts = { a = { app = { ping = { count = 20, interval = "1s" } } }, b = {} }
[links.wire]
bearer = "wireline"
delay = "10ms"
faults = { drop = { rate = { uplink = 1, downlink = 0 } }, duplication = { probability = 1 } }
[[timeline]]
at = "0s"
target = "wire"
set = { faults = { drop = "off", duplication = "off" } }
[[timeline]]
at = "4500ms"
target = "wire"
set = { faults = { drop = "on" } }
[[timeline]]
at = "9500ms"
target = "wire"
set = { faults = { drop = "off", duplication = "on" } }
"""


def test_the_timeline_switches_faults_at_its_moments() -> None:
    scenario = parse(SWITCHED)
    found = scenario._core.simulate().summary
    # One request a second: those at 5, 6, 7, 8 and 9 s are lost, and of those from 10 s on there are two.
    assert found["wire.uplink.dropped_by_rate"] == 5
    assert found["wire.uplink.duplicated"] == 10
    understood = scenario.understood
    assert understood["timeline"][2]["set"] == {"faults": {"drop": "off", "duplication": "on"}}
    assert parse(json.dumps(understood)).understood == understood
