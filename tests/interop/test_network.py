"""Networks that are files."""

from pathlib import Path

import pytest

from airloom.interop import runner, words
from tests.cli.shell import inside
from tests.documents import ROOT


def test_the_network_of_a_case_is_one() -> None:
    Path("network.toml").write_text(runner._network(words.DEFAULT, 1)[1])
    runner.check_network("network.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("near", "close", "`client` is not at 193.167.0.100 and fd00:cafe:cafe:0::100 on a link `near`"),
        ("193.167.100.100", "193.167.100.101", "`server` is not at 193.167.100.100"),
        ('"pcapng"', '"packets"', "run.record has no pcapng"),
        (', "points" = ["client.near.ip", "server.far.ip"]', "", "run.points has no client.near.ip"),
        ('"server.far.ip"', '"right.far.ip"', "run.points has no server.far.ip"),
    ],
)
def test_a_network_on_which_no_case_can_be_played_is_refused_before_one_is(old: str, new: str, says: str) -> None:
    text = runner._network(words.DEFAULT, 1)[1]
    assert old in text
    Path("network.toml").write_text(text.replace(old, new))
    refused(says)


def test_a_scenario_of_other_hosts_is_refused() -> None:
    Path("network.toml").write_text((ROOT / "python/airloom/scenarios/umts-page.toml").read_text())
    refused("there is no real host `client`")


def refused(says: str) -> None:
    endpoints = ("-c", "aioquic", "-s", "aioquic", "-t", "handshake")
    done = inside("interop", "run", *endpoints, "--scenario", "network.toml", "--out", "out")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err
    assert not Path("out").exists()
