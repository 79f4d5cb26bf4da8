"""Links and laboratories before anybody enters them: what they are of."""

from pathlib import Path

import airloom as al


def test_each_link_is_of_its_file_as_it_is_now(wire: Path) -> None:
    def delay() -> object:
        return al.link(wire, enter=False).scenario.understood["links"]["wire"]["delay"]["downlink"]

    assert delay() == "20ms"
    wire.write_text(wire.read_text().replace('"20ms"', '"200ms"'))
    assert delay() == "200ms"


def test_a_laboratory_of_a_scenario_that_is_read_already_sets_its_keys_and_has_its_seed(wire: Path) -> None:
    scenario = al.load(wire, {"links.wire.delay": "5ms"}).with_seed(9)
    lab = al.lab(scenario, overrides={"links.wire.loss": 0.25}, real=["mobile"], enter=False)
    link = lab.scenario.understood["links"]["wire"]
    assert (link["delay"]["downlink"], link["loss"]["downlink"]["loss"]) == ("5ms", 0.25)
    assert lab.scenario.understood["hosts"]["mobile"]["real"] is True
    assert lab.scenario.seed == 9
    assert al.lab(scenario, enter=False).scenario is scenario
    assert al.lab(scenario, overrides={"run.seed": 7}, enter=False).scenario.seed == 7
