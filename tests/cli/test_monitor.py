"""`airloom monitor` on runs of circuits."""

import json
from pathlib import Path

import airloom as al
from tests.cli.shell import airloom


def recorded() -> Path:
    points = ["phs.piafs.*", "mobile.phs.ip"]
    changes = {"run.record": ["packets", "pcapng"], "run.points": points}
    return al.load("phs-circuit", changes).run().folder


def test_the_table_has_the_columns_of_the_monitor_and_the_errors_of_the_run() -> None:
    folder = recorded()
    rows = json.loads(airloom("monitor", folder, "--json").out)
    frames = [row for row in rows if "circuit" in row]
    run = al.Run(folder)
    assert sum(f["is_error"] for f in frames) == run.summary["phs.piafs_crc_errors"] > 10
    new = [f["number"] for f in frames if f["direction"] == "dl" and f["number"] > 0]
    assert set(new) == set(range(1, 128))
    assert any("sequence" in row for row in rows)
    shown = airloom("monitor", folder, "--from", "1", "--until", "1.2")
    lines = shown.out.splitlines()
    assert lines[0].split() == ["time", "(s)", "way", "NUM", "REQ", "type", "ACK", "TCP"]
    # A frame each way every 10 ms.
    assert 38 <= sum(" dl " in line or " ul " in line for line in lines) <= 41


def test_what_is_not_there_is_said() -> None:
    folder = recorded()
    wrong = airloom("monitor", folder, "--circuit", "x")
    assert (wrong.code, wrong.err) == (2, "airloom: no circuit 'x'; valid: phs\n")
    other = al.load("umts-page", {"run.record": ["pcapng"]}).run()
    assert airloom("monitor", other.folder).code == 2
    assert airloom("monitor", Path("nowhere")).code == 2
    capture = folder / "trace.pcapng"
    capture.write_bytes(capture.read_bytes()[:-3])
    cut = airloom("monitor", folder)
    assert (cut.code, cut.err) == (2, f"airloom: {capture} is cut or corrupt\n")


def test_the_scenario_with_people_records_a_circuit_of_each_unit() -> None:
    folder = al.load("phs-multilink/people").run().folder
    for circuit in ("bundle.member.0", "bundle.member.1", "bundle.member.2"):
        rows = json.loads(airloom("monitor", folder, "--circuit", circuit, "--json").out)
        assert {row["direction"] for row in rows if "circuit" in row} == {"ul", "dl"}
        assert any(row.get("is_error") for row in rows)
        assert any("sequence" in row for row in rows)
