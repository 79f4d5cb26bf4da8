from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom.cli.names import scenarios as complete_scenario
from airloom.emulation import find
from airloom.errors import UsageError
from airloom.presets import presets
from airloom.report.page import command_line
from airloom.scenario import for_bearer, of_studies, parse


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


def test_scenarios_of_studies_have_the_study_in_front_of_their_names() -> None:
    titles = of_studies()
    assert len(titles) > 20
    for name, title in titles.items():
        scenario = al.load(name)
        assert scenario.file == name
        assert scenario.title == title != ""
    assert al.load("tsaoussidis/tcp").run_id("virtual") == al.load("wave-and-wait/tcp").run_id("virtual")
    assert al.load("kojima-2000/people").file == "phs-multilink/people"


def test_a_wrong_name_of_a_study_s_scenario_lists_that_study_s() -> None:
    with pytest.raises(UsageError) as caught:
        al.load("ueno/tcp")
    assert "the study wap-vs-http-wcdma has no scenario 'ueno/tcp'; valid: wap-vs-http-wcdma/echo, " in str(
        caught.value
    )
    assert "wave-and-wait" not in str(caught.value)
    with pytest.raises(UsageError, match="no scenario 'nothing/tcp'"):
        al.load("nothing/tcp")


def test_presets_with_a_slash_stay_presets() -> None:
    assert find("wpt/3g").understood["links"]["link"]["rate"]["uplink"] == "768kbit/s"
    assert find("wave-and-wait/tcp").understood["hosts"]["sender"]
    assert not {name.partition("/")[0] for name in presets()} & {name.partition("/")[0] for name in of_studies()}


def test_the_shell_completes_them() -> None:
    assert complete_scenario("wave-and-wait/t") == ["wave-and-wait/tcp"]
    assert complete_scenario("tsaoussidis/t") == ["tsaoussidis/tcp"]
    assert complete_scenario("tsaoussidis-") == ["tsaoussidis-2000/"]
    assert "umts-page" in complete_scenario("umts-p")
    assert complete_scenario("nobody") == []


def test_a_run_of_a_study_s_scenario_says_a_command_that_makes_it_again() -> None:
    manifest = al.load("wave-and-wait/wwp").run(out="one").manifest
    assert command_line({**manifest, "command": ["thesis.py"]}) == "airloom run wave-and-wait/wwp --seed 1"


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


def test_a_star_sets_a_key_of_all_links_of_any_shipped_scenario() -> None:
    for name in al.shipped():
        links = al.load(name, {"links.*.mtu": 2088}).understood["links"]
        assert [link["mtu"] for link in links.values()] == [2088] * len(links)
    with pytest.raises(al.ScenarioError, match="no name in `links` matches `x\\*`; valid: radio, internet"):
        al.load("umts-page", {"links.x*.mtu": 2088})
    with pytest.raises(al.ScenarioError, match="mtu: expected an integer from 68 to 65535, found the integer 9"):
        al.load("umts-page", {"links.radio.mtu": 9})


def test_a_scenario_that_records_its_radio_takes_any_number_of_mobiles() -> None:
    found = {}
    small = {"hosts.mobile.app.http-client.pages": [["/1kB"]], "run.record": ["packets"]}
    for count in (1, 16):
        keys = {**small, "hosts.mobile.count": count}
        points = al.load("umts-page", keys).run(1, out=Path(str(count))).packets["point"].cast(pl.String).unique()
        found[count] = {point for point in points if ".rlc." in point}
    ends = [f"rlc.{way}.{end}" for way in ("dl", "ul") for end in ("tx", "rx")]
    assert found[1] == {f"radio.{end}" for end in ends}
    assert found[16] == {f"radio.{number}.{end}" for number in range(16) for end in ends}


def test_the_proposal_of_2002_runs_beside_wap_and_plain_tcp() -> None:
    run = al.load("wireless-internet").run()
    octets = {str(row["client"]): row["bytes"] for row in run.pages.iter_rows(named=True) if row["page"] == 2}
    assert octets["phone"] == octets["plain"] == 10_053
    assert octets["wap"] < 10_000 / 2
    assert run.summary["wap.wtls_handshake_mean_s"] > 0.5
    assert run.summary["phone.pages_failed"] + run.summary["wap.pages_failed"] + run.summary["plain.pages_failed"] == 0
