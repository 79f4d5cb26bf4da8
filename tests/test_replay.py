"""A run again with one change, and a failing scenario made small."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airloom import shrink
from airloom.errors import UsageError
from airloom.replay import replay
from airloom.scenario import Scenario
from airloom.scenario import parse as parse_text
from tests.cli.shell import airloom, inside

#: A transfer over a wire that loses, and behind it one that is cut for a while.
LOSSY = """\
path = ["a", "wire", "b", "core", "c"]
[hosts]
a = { app = { bulk = { size = "100kB" } } }
b = {}
c = { app = "bulk-server" }
[links.wire]
bearer = "wireline"
rate = "1Mbit/s"
delay = "10ms"
loss = "5%"
[links.core]
bearer = "wireline"
delay = "5ms"
faults = { drop = { rate = "10%" } }
[[timeline]]
at = "200ms"
target = "core"
set = { delay = "6ms" }
[[timeline]]
at = "300ms"
target = "core"
set = { state = "down" }
[[timeline]]
at = "2s"
target = "core"
set = { state = "up" }
"""


def test_only_what_is_changed_differs_and_the_first_packet_is_named(tmp_path: Path) -> None:
    original = parse_text(LOSSY).run(seed=3, out=tmp_path / "original")
    drops = {"links.wire.faults": "{ drop_list = { downlink = [10] } }"}
    done = replay(original, drops, out=tmp_path / "again")
    first = done.comparison.first
    assert first
    assert done.run.manifest["seed"] == 3
    assert set(done.comparison.settings) == {f"links.wire.faults.drop_list.{way}" for way in ("downlink", "uplink")}
    lost = done.run.packets.filter(
        (done.run.packets["point"] == "wire.faults.dl") & (done.run.packets["event"] == "drop")
    )
    assert lost["seq"].to_list() == [10]
    # Until then all is the same; the datagram that was dropped is the first one that misses.
    assert first.t_s == lost["t_ns"][0] / 1e9
    assert first.packet == lost["pkt_id"][0]
    assert replay(original, {"run.limit": "1h"}, out=tmp_path / "same").comparison.first is None


def test_the_command_says_it_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parse_text(LOSSY).run(seed=3, out="original")
    done = airloom("replay", "original", "--set", "links.core.delay=50ms", "--json")
    said = json.loads(done.out)
    assert done.code == 0
    assert said["first_difference"]["where"].startswith("c.core")
    assert said["settings"] == {
        "links.core.delay.downlink": ["5ms", "50ms"],
        "links.core.delay.uplink": ["5ms", "50ms"],
    }
    assert Path(said["folder"]).is_dir()
    nothing = airloom("replay", "original")
    assert (nothing.code, nothing.err.count("\n")) == (2, 1)
    assert "--set" in nothing.err


def test_ddmin_finds_what_is_needed_together() -> None:
    asked: list[list[int]] = []

    def fails(parts: list[int]) -> bool:
        asked.append(parts)
        return {3, 77} <= set(parts) or 50 in parts

    assert shrink.ddmin(range(100), fails) in ([3, 77], [50])
    assert len(asked) < 60
    assert shrink.ddmin(range(100), lambda _: True) == []


def test_losses_as_a_list_are_the_same_run() -> None:
    # Losses are found whatever the file records.
    scenario = parse_text(LOSSY, overrides={"run.points": ["a.wire.ip"]}).with_seed(3)
    parts, bare = shrink.listed(scenario)
    assert any(part.where == ("wire", "downlink") for part in parts)
    assert any(part.where == ("core", "downlink") for part in parts)
    again = shrink._with(bare, parts)
    assert again.understood["links"]["wire"]["loss"]["downlink"] == {"model": "bernoulli", "loss": 0.0}
    same: dict[str, Any] = {}
    for which in (scenario, again):
        summary = which._core.simulate().summary
        same[str(which.understood["links"]["wire"].get("faults"))] = summary["completion_s"]
    assert len(set(same.values())) == 1


def test_a_failing_run_is_shrunk_to_what_makes_it_fail(tmp_path: Path) -> None:
    scenario = parse_text(LOSSY, "lossy.toml").with_seed(3)
    rule = "completion_s <= 2"
    found = shrink.shrink(scenario, shrink.by_rule(rule))
    assert found.before > 5
    # The link that is cut is enough, if it comes back: without that the run has no end, and fails as well.
    assert [entry["set"] for entry in found.timeline] == [{"state": "down"}]
    assert found.drops == {}
    test = tmp_path / "test_shrunk.py"
    test.write_text(shrink.as_test(found, rule, []))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test], capture_output=True)
    assert done.returncode == 1, "it shows the failure"
    assert b"assert not" in done.stdout


def test_a_command_may_be_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lossy.toml").write_text(LOSSY)
    # Fails where the wire loses something towards its client and anything at all is changed.
    Path("check.py").write_text(
        "import json, sys\n"
        "s = json.load(open(sys.argv[1]))\n"
        "wire = s['links']['wire']\n"
        "by_luck = wire['loss']['downlink']['loss'] > 0\n"
        "listed = wire.get('faults', {}).get('drop_list', {}).get('downlink')\n"
        "sys.exit(bool(s['timeline'] and (by_luck or listed)))\n"
    )
    done = airloom("shrink", "lossy.toml", "--set", "run.seed=3", "--json", "--", sys.executable, "check.py", "{}")
    said = json.loads(done.out)
    assert (len(said["drops"]["wire"]["downlink"]), len(said["timeline"]), said["left"]) == (1, 1, 2)
    compile(said["test"], "test", "exec")
    done = airloom("shrink", "lossy.toml", "--", "./no-such-check", "{}")
    assert (done.code, done.out) == (2, "")
    assert "./no-such-check: the test cannot be run" in done.err


def test_a_test_that_cannot_be_written_or_decided_is_refused_before_the_first_try() -> None:
    Path("lossy.toml").write_text(LOSSY)
    command = ["--", "sh", "-c", "touch tried; exit 1"]
    for words, why in (
        (["--unless", "completion_s <= 8.0.1"], "expected a number of the summary and a bound"),
        (["--unless", "completion_s <= e"], "expected a number of the summary and a bound"),
        (["--out", "no/test.py", *command], "no is not there"),
        (["--out", ".", *command], "it is a folder"),
    ):
        done = inside("shrink", "lossy.toml", *words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert why in done.err
    assert not Path("tried").exists()


def test_a_test_that_can_no_longer_be_written_is_printed() -> None:
    Path("lossy.toml").write_text(LOSSY)
    Path("made").mkdir()
    done = inside("shrink", "lossy.toml", "--out", "made/test.py", "--", "sh", "-c", "rmdir made; exit 1")
    assert done.code == 4
    assert "def test_lossy() -> None:" in done.out
    assert "the test is on stdout" in done.err


def test_a_list_for_real_programs_is_shrunk_although_a_simulation_sends_nothing() -> None:
    real = LOSSY.replace('app = { bulk = { size = "100kB" } }', "real = true").replace(
        'app = "bulk-server"', "real = true"
    )
    text = real.replace('drop = { rate = "10%" }', "drop_list = { uplink = [2, 3, 5, 8], downlink = [1] }")
    scenario = parse_text(text.replace('loss = "5%"\n', ""))

    def fails(candidate: Scenario) -> bool:
        lists = candidate.understood["links"]["core"].get("faults", {}).get("drop_list", {})
        return {3, 8} <= set(lists.get("uplink", []))

    found = shrink.shrink(scenario, fails)
    assert (found.before, found.drops, found.timeline) == (8, {"core": {"uplink": [3, 8]}}, [])


def test_what_does_not_fail_is_not_shrunk() -> None:
    with pytest.raises(UsageError, match="does not fail"):
        shrink.shrink(parse_text(LOSSY), shrink.by_rule("completion_s <= 1000"))
    with pytest.raises(UsageError, match="expected a number of the summary and a bound"):
        shrink.by_rule("page_load_s")
    with pytest.raises(UsageError, match="has no complete_s \\(did you mean"):
        shrink.by_rule("complete_s <= 3")(parse_text(LOSSY))
