from pathlib import Path

import pytest

import airloom as al
from airloom.errors import UsageError
from airloom.scenario import for_bearer, parse


def test_a_path_and_a_name_are_both_scenarios(wire: Path) -> None:
    assert al.load(wire).name == "wire"
    for name, title in al.shipped().items():
        scenario = al.load(name)
        assert scenario.name == name
        assert scenario.title == title != ""


def test_overrides_are_the_keys_of_the_file(wire: Path) -> None:
    scenario = al.load(wire, {"links.wire.delay": "5ms", "links.wire.loss": 0.25, "run.record": []})
    link = scenario.understood["links"]["wire"]
    assert link["delay"] == {"uplink": "5ms", "downlink": "5ms"}
    assert link["loss"]["downlink"]["loss"] == 0.25
    assert scenario.understood["run"]["record"] == []


def test_errors_carry_their_parts(wire: Path) -> None:
    wire.write_text(wire.read_text().replace('delay = "20ms"', 'dealy = "20ms"'))
    with pytest.raises(al.ScenarioError) as caught:
        al.load(wire)
    error = caught.value
    assert error.file == str(wire)
    assert error.line == 9
    assert "dealy" in str(error)
    assert "delay" in error.choices


def test_what_is_understood_is_understood_again(wire: Path) -> None:
    import json

    scenario = al.load(wire)
    again = parse(json.dumps(scenario.understood), "wire.json")
    assert again.understood == scenario.understood
    assert again.run_id("virtual") == scenario.run_id("virtual")
    assert again.run_id("real") != scenario.run_id("virtual")


def test_the_seed_is_part_of_the_run_id(wire: Path) -> None:
    scenario = al.load(wire)
    assert scenario.with_seed(2**64 - 1).seed == 2**64 - 1
    assert scenario.with_seed(5).run_id("virtual") != scenario.run_id("virtual")


def test_a_bearer_alone_is_a_scenario_with_a_server_behind_it() -> None:
    scenario = for_bearer("wireline", {"delay": "30ms"})
    assert scenario.understood["hosts"]["mobile"]["real"]
    assert "http-server" in scenario.understood["hosts"]["origin"]["app"][0]


def test_a_name_that_nothing_has_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match="no scenario 'nothing'"):
        al.load("nothing")


def test_progress_hears_of_model_time(wire: Path) -> None:
    text = wire.read_text().replace('app = "ping"', 'app = { ping = { count = 100000, interval = "1ms" } }')
    wire.write_text(text.replace('record = ["packets", "pcapng"]', ""))
    heard: list[int] = []
    al.load(wire).run(progress=heard.append)
    assert len(heard) > 2
    assert heard == sorted(heard)


def test_an_exception_of_the_listener_stops_the_run(wire: Path, tmp_path: Path) -> None:
    wire.write_text(wire.read_text().replace('app = "ping"', 'app = { ping = { count = 1000000, interval = "1ms" } }'))

    def stop(_: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        al.load(wire).run(progress=stop)
    assert list(tmp_path.iterdir()) == [wire]
