"""`airloom gate`, of virtual time: what needs laboratories is in tests/emulate."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree

import pytest

from airloom.errors import AirloomError, CannotWrite, Unsupported, UsageError
from airloom.gate import check_links
from airloom.gate.file import load
from airloom.gate.measure import Measured
from airloom.gate.outcome import Outcome
from airloom.page_load.measure import Loaded
from tests.cli.shell import airloom, inside
from tests.documents import ROOT

PAGE = """\
runs = 5
[gate.page]
scenario = "umts-page"
rules = [{rules}]
"""


def gates(rules: str) -> Path:
    path = Path("gates.toml")
    path.write_text(PAGE.format(rules=rules))
    return path


def test_exit_code_junit_and_markdown_say_whether_the_rules_hold(tmp_path: Path) -> None:
    code, out, err = inside("gate", gates('"page_load_s.median <= 60"'), "--junit", "ok.xml", "--summary-md", "s.md")
    assert code == 0, err
    assert "pass" in out
    suite = ElementTree.parse("ok.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")
    code, out, _ = inside("gate", gates('"page_load_s.median <= 1"'), "--junit", "bad.xml", "--summary-md", "s.md")
    assert code == 1
    root = ElementTree.parse("bad.xml").getroot()
    assert root.tag == "testsuites"
    (case,) = root.iter("testcase")
    assert case.get("classname") == "page"
    assert case.get("name") == "page_load_s.median <= 1[umts-page]"
    failure = case.find("failure")
    assert failure is not None
    assert "5 runs" in (failure.get("message") or "")
    said = Path("s.md").read_text()
    assert said.count("### airloom gate") == 2
    assert said.index("✅") < said.index("❌")


def test_the_same_gate_gives_the_same_figures() -> None:
    file = gates('"page_load_s.p75 <= 60", "resent.mean >= 0"')
    said = [json.loads(inside("gate", file, "--json").out) for _ in range(2)]
    assert said[0] == said[1]
    assert [row["low"] == row["value"] == row["high"] for row in said[0]["rules"]] == [True, True]


def test_github_is_told_by_its_own_lines_and_nobody_else() -> None:
    file = gates('"page_load_s.median <= 1"')
    assert "::error" not in airloom("gate", file, GITHUB_ACTIONS="").out
    said = airloom("gate", file, GITHUB_ACTIONS="true").out
    (line,) = (line for line in said.splitlines() if line.startswith("::error"))
    assert re.fullmatch(r"::error title=airloom gate::.* \[.*\] page_load_s.median <= 1: [0-9.]+( \(.*\))?: .+", line)


def test_a_baseline_is_made_and_held_against() -> None:
    rule = '{ measure = "page_load_s.mean", vs = "before.json", max_regression = "1 %" }'
    assert inside("gate", gates(rule)).code == 2
    code, _, err = inside("gate", gates('"page_load_s.mean <= 60"'), "--write-baseline", "before.json")
    assert code == 0, err
    said = json.loads(Path("before.json").read_text())
    assert len(said["gates"]["page"]["umts-page"]["values"]["page_load_s"]) == 5
    assert said["machine"]["cpus"] > 0
    assert inside("gate", gates(rule)).code == 0
    slower = f'[gate.page]\nscenario = "umts-page"\nruns = 5\nset."links.radio.loss.downlink" = 0.3\nrules = [{rule}]\n'
    Path("gates.toml").write_text(slower)
    assert inside("gate", "gates.toml").code == 1


def test_a_measure_that_no_run_has_is_an_error_and_a_page_that_was_not_loaded_a_failure() -> None:
    code, out, _ = inside("gate", gates('"page_load_s.medain <= 60"'), "--junit", "j.xml")
    assert (code, "no run has page_load_s.medain" in out) == (4, True)
    assert "<error" in Path("j.xml").read_text()
    missing = 'set."hosts.mobile.app.http-client.pages" = [["/none"]]\n'
    Path("gates.toml").write_text(gates('"page_load_s.median <= 60"').read_text() + missing)
    assert inside("gate", "gates.toml").code == 4


def test_a_verdict_is_the_same_if_nobody_reads_it_to_its_end() -> None:
    for limit, code in ((1, 1), (60, 0)):
        gates(f'"page_load_s.median <= {limit}"')
        reads, writes = os.pipe()
        os.close(reads)
        with os.fdopen(writes, "wb") as nobody:
            words = [sys.executable, "-m", "airloom", "gate", "gates.toml"]
            done = subprocess.run(words, stdout=nobody, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")


def test_what_is_unclear_passes_unless_it_is_strict() -> None:
    Path("gates.toml").write_text("[gate.x]\ncommand = 'true'\nlinks = ['wpt/3g']\nrules = ['t.mean <= 1']")
    # One run of a command sets no interval.
    found = Outcome([Measured(load("gates.toml")[0], "wpt/3g", [1], [{"exit_code": 0.0, "t": 0.5}], [], [])])
    assert [row.state for row in found.rows] == ["pass", "unclear"]
    assert (found.exit_code(), found.exit_code(strict=True)) == (0, 3)
    assert b"unclear" in found.junit()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no gate"),
        ("[gate.x]\nrules = ['a <= 1']", "expected one of scenario, command, url"),
        ("[gate.x]\nscenario = 'umts-page'\nurl = 'http://a/'\nrules = ['a <= 1']", "not scenario and url"),
        ("[gate.x]\nscenario = 'umts-page'\n", "rules is empty"),
        ("[gate.x]\nscenario = 'umts-page'\nlinks = ['wpt/3g']\nrules = ['a <= 1']", "a scenario has its own links"),
        ("[gate.x]\ncommand = 'true'\nrules = ['a <= 1']", "needs links"),
        ("[gate.x]\ncommand = 'true'\nlinks = ['wpt/3g', 'wpt/3g']\nrules = ['a <= 1']", "links has wpt/3g twice"),
        ("[gate.x]\nscenario = 'umts-page'\nrun = 3\nrules = ['a <= 1']", "did you mean `runs`"),
        ("[gate.x]\nscenario = 'umts-page'\nruns = true\nrules = ['a <= 1']", "runs is a whole number"),
        ("[gate.x]\nscenario = 'umts-page'\nruns = 0\nrules = ['a <= 1']", "runs are 1 to"),
        ("[gate.x]\nscenario = 'umts-pag'\nrules = ['a <= 1']", "umts-page"),
        ("[gate.x]\nscenario = 'umts-page'\nset.'links.no' = 3\nrules = ['a <= 1']", "links"),
        ("gate = 3", "gate is a table"),
        ("[gate.x", "gates.toml"),
    ],
)
def test_a_wrong_file_is_one_line_and_exit_code_2(text: str, said: str) -> None:
    Path("gates.toml").write_text(text)
    code, out, err = inside("gate", "gates.toml")
    assert (code, out) == (2, ""), err
    assert said in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize("key", ["scenario", "command"])
def test_a_scenario_is_looked_for_beside_the_gate_file(tmp_path: Path, key: str) -> None:
    place = tmp_path / "there"
    place.mkdir()
    (place / "own.toml").write_text((ROOT / "python/airloom/scenarios/umts-page.toml").read_text())
    what = {"scenario": "scenario = 'own.toml'", "command": "command = 'true'\nlinks = ['own.toml']"}[key]
    (place / "gates.toml").write_text(f"[gate.x]\n{what}\nrules = ['a <= 1']\n")
    check_links(load(place / "gates.toml")[0])
    with pytest.raises(UsageError, match=r"own\.toml"):
        check_links(load(place / "gates.toml")[0]._replace(folder=tmp_path))


PLACE = """\
[gate.start]
links = ["wireline"]
url = "http://localhost:8000/"
runs = 3
rules = [{rules}]
"""


def page(seen: dict[str, Any]) -> Loaded:
    summary = {"valid": 1.0, "packets": 7.0}
    return Loaded("wireline", "none", Path(), {"error": None, "load": 1000.0, "status": 200} | seen, summary, [], 1)


@pytest.mark.parametrize(
    ("seen", "rules", "code", "says"),
    [
        ([{}, {}, {}], '"page_load_s.max < 9"', 0, ""),
        ([{}, {}, {"status": 404}], '"page_load_s.max < 9"', 1, "status < 400"),
        ([{}, {}, {"status": 404}], '"status >= 200"', 0, ""),
        ([{}, {"error": "net::ERR_TIMED_OUT"}, {}], '"packets > 0"', 1, "seed 2: not loaded: net::ERR_TIMED_OUT"),
        ([{"error": "net::ERR_FAILED"}] * 3, '"page_load_s.max < 9"', 4, "seed 3: not loaded: net::ERR_FAILED"),
    ],
)
def test_a_page_that_fails_or_is_an_error_fails_its_gate(
    monkeypatch: pytest.MonkeyPatch, seen: list[dict[str, Any]], rules: str, code: int, says: str
) -> None:
    path = Path("gates.toml")
    path.write_text(PLACE.format(rules=rules))
    monkeypatch.setattr("airloom.page_load.load_page", Mock(side_effect=map(page, seen)))
    done = inside("gate", path)
    assert done.code == code, done.out
    assert says in done.out + done.err


@pytest.mark.parametrize(
    ("broken", "code", "kind", "says"),
    [
        (UsageError("nothing listens on port 8000"), 1, "failure", "seed 2: not loaded: nothing listens on port 8000"),
        (CannotWrite("no space left"), 4, "error", "no space left"),
    ],
)
def test_what_breaks_while_a_gate_is_measured_takes_no_verdict_of_another_with_it(
    monkeypatch: pytest.MonkeyPatch, broken: AirloomError, code: int, kind: str, says: str
) -> None:
    path = gates('"page_load_s.median <= 60"')
    path.write_text(path.read_text() + PLACE.format(rules='"page_load_s.max < 9"'))
    monkeypatch.setattr("airloom.page_load.load_page", Mock(side_effect=[page({}), broken, page({})]))
    done = inside("gate", path, "--junit", "j.xml")
    assert done.code == code, done.out + done.err
    assert says in done.err + Path("j.xml").read_text()
    cases = list(ElementTree.parse("j.xml").getroot().iter("testcase"))
    assert {case.get("classname") for case in cases} == {"page", "start"}
    assert {case.get("classname") for case in cases if case.find(kind) is not None} == {"start"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("command = 'true'\nlinks = ['wtp/3g']\nrules = ['exit_code == 0']", "did you mean wpt/3g?"),
        ("command = 'true'\nlinks = ['wpt/3g']\nset = { dely = '1s' }\nrules = ['exit_code == 0']", "dely"),
        (PLACE.format(rules='"status == 200"').replace("wireline", "wtp/3g"), "did you mean wpt/3g?"),
        (PLACE.format(rules='"status == 200"').replace("wireline", "umts-page"), "umts-page: no bearer or preset"),
        (PLACE.format(rules='"status == 200"') + "set = { delay = '200ms' }", "delay"),
        (PLACE.format(rules='"status == 200"') + "http = '3'", "ask for https://localhost:8000/"),
    ],
)
def test_a_wrong_link_or_key_of_any_gate_is_said_before_one_is_measured(
    monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    path = gates('"page_load_s.median <= 60"')
    path.write_text(path.read_text() + (text if text.startswith("[") else f"[gate.far]\n{text}"))
    monkeypatch.setattr("airloom.gate.measure", lambda *_: pytest.fail("it was measured"))
    done = inside("gate", path)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_keys_of_a_page_are_those_of_its_load(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("gates.toml")
    path.write_text(PLACE.format(rules='"page_load_s.max < 9"') + 'set = { "links.radio.delay" = "200ms" }\n')
    load_page = Mock(return_value=page({}))
    monkeypatch.setattr("airloom.page_load.load_page", load_page)
    assert inside("gate", path).code == 0
    given = [call.kwargs["overrides"] for call in load_page.call_args_list]
    assert given == [{"links.radio.delay": "200ms"}] * 3


def test_a_baseline_that_is_not_there_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    path = gates('{ measure = "page_load_s.median", vs = "before.json", max_regression = "10 %" }')
    monkeypatch.setattr("airloom.gate.measure", lambda *_: pytest.fail("it was measured"))
    done = inside("gate", path)
    assert done.code == 2
    assert "before.json" in done.err


def test_runs_of_a_baseline_without_the_measure_are_left_out(tmp_path: Path) -> None:
    assert inside("gate", gates('"page_load_s.median <= 60"'), "--write-baseline", "before.json").code == 0
    said = json.loads(Path("before.json").read_text())
    values = said["gates"]["page"]["umts-page"]["values"]["page_load_s"]
    said["gates"]["page"]["umts-page"]["values"]["page_load_s"] = [None, *values]
    Path("before.json").write_text(json.dumps(said))
    rule = '{ measure = "page_load_s.median", vs = "before.json", max_regression = "1 %" }'
    assert inside("gate", gates(rule)).code == 0


def two_gates(monkeypatch: pytest.MonkeyPatch, *broken: AirloomError) -> Path:
    """`page` in virtual time, and `start`, whose loads of a page come through; those after the third break."""
    path = gates('"page_load_s.median <= 60"')
    path.write_text(path.read_text() + PLACE.format(rules='"page_load_s.max < 9"'))
    monkeypatch.setattr("airloom.page_load.load_page", Mock(side_effect=[*[page({})] * 3, *broken]))
    return path


def figures(file: str) -> dict[str, Any]:
    """The figures of a baseline, by gate."""
    found: dict[str, Any] = json.loads(Path(file).read_text())["gates"]
    return found


def test_figures_of_what_broke_replace_none(monkeypatch: pytest.MonkeyPatch) -> None:
    path = two_gates(monkeypatch, CannotWrite("no space left"))
    assert inside("gate", path, "--write-baseline", "before.json").code == 0
    before = Path("before.json").read_text()
    done = inside("gate", path, "--write-baseline", "before.json")
    assert (done.code, "before.json was not written: start, wireline: no space left" in done.err) == (4, True)
    assert Path("before.json").read_text() == before
    done = inside("gate", gates('"page_load_s.medain <= 60"'), "--write-baseline", "before.json")
    assert (done.code, "not written: page, umts-page: no run has page_load_s.medain" in done.err) == (4, True)
    assert Path("before.json").read_text() == before


@pytest.mark.parametrize("before", [None, "{"])
def test_a_baseline_that_could_not_be_made_takes_no_verdict_with_it(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    path = two_gates(monkeypatch)
    rule = '{ measure = "page_load_s.mean", vs = "before.json", max_regression = "1 %" }, "page_load_s.medain <= 6"'
    path.write_text(path.read_text().replace('"page_load_s.median <= 60"', rule))
    if before is not None:
        # One that cannot be read stays, and is of as little use.
        Path("before.json").write_text(before)
    done = inside("gate", path, "--write-baseline", "before.json")
    assert (done.code, "before.json has no page_load_s of it" in done.out) == (4, True)
    assert (Path("before.json").read_text() if Path("before.json").exists() else None) == before


def test_what_is_skipped_keeps_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    no = Unsupported("no user namespaces")
    path = two_gates(monkeypatch, no, no, no)
    words = ("--skip-unsupported", "--write-baseline")
    assert inside("gate", path, *words, "before.json").code == 0
    before = figures("before.json")
    assert len(before["start"]["wireline"]["values"]["page_load_s"]) == 3
    Path("before.json").write_text(Path("before.json").read_text().replace('"made_utc": "2', '"made_utc": "1'))
    assert inside("gate", path, *words, "before.json").code == 0
    assert '"made_utc": "2' in Path("before.json").read_text()
    assert figures("before.json") == before
    # Of another machine they cannot stay beside those of this one.
    said = json.loads(Path("before.json").read_text())
    Path("before.json").write_text(json.dumps({**said, "machine": {}}))
    done = inside("gate", path, *words, "before.json")
    assert (done.code, "was made on another machine" in done.err) == (3, True)
    assert json.loads(Path("before.json").read_text())["machine"] == {}
    done = inside("gate", path, *words, "new.json", "--only", "start")
    assert (done.code, "new.json was not written: nothing was measured" in done.err) == (3, True)
    assert not Path("new.json").exists()


def test_a_gate_that_is_measured_alone_leaves_the_figures_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    path = two_gates(monkeypatch)
    words = ("--only", "page", "--write-baseline", "before.json")
    assert inside("gate", path, "--write-baseline", "before.json").code == 0
    before = figures("before.json")
    path.write_text(path.read_text().replace("runs = 5", "runs = 4"))
    assert inside("gate", path, *words).code == 0
    after = figures("before.json")
    assert after["start"] == before["start"]
    assert after["page"]["umts-page"]["seeds"] == [1, 2, 3, 4]
    said = json.loads(Path("before.json").read_text())
    Path("before.json").write_text(json.dumps({**said, "airloom": "0.0.1"}))
    monkeypatch.setattr("airloom.gate.measure", lambda *_: pytest.fail("it was measured"))
    done = inside("gate", path, *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "before.json was made by airloom 0.0.1" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("--junit", "nowhere/j.xml"),
        ("--junit", "full"),
        ("--write-baseline", "nowhere/b.json"),
        ("--out", "gates.toml"),
        ("--out", "full"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
) -> None:
    path = gates('"page_load_s.median <= 60"')
    Path("full").mkdir()
    (Path("full") / "precious").touch()
    monkeypatch.setattr("airloom.gate.measure", lambda *_: pytest.fail("it was measured"))
    done = inside("gate", path, *words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert words[1] in done.err
