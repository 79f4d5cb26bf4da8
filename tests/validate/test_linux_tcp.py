import json
import shutil
from pathlib import Path

import pytest

from airloom.errors import UsageError
from airloom.validate.linux_tcp import compare, records
from tests.cli.shell import airloom

DATA = Path(__file__).parent.parent / "data" / "linux_tcp"

CLEAN = "2M_100ms_0-default-cubic-sack1-iw10-q1000"
CLASSIC = "2M_100ms_0-classic-reno-sack1-iw2-q20"
LATER = "2M_100ms_1-default-cubic-sack1-iw10-q200"


def test_a_transfer_without_losses_follows_the_record_of_linux() -> None:
    verdict = next(v for v in compare(records(DATA)) if v.case == CLEAN)
    assert verdict.met
    assert verdict.error is not None
    assert abs(verdict.error) < 0.01
    assert verdict.start_error is not None
    assert 0 < verdict.start_error < 0.01


def test_every_case_is_listed_and_only_those_with_a_bar_are_judged() -> None:
    done = airloom("validate", "linux-tcp", DATA, "--json")
    assert done.code == 0
    cases = {c["case"]: c for c in json.loads(done.out)["cases"]}
    assert set(cases) == {CLEAN, CLASSIC, LATER}
    assert cases[CLEAN]["met"] is True
    assert cases[CLASSIC]["met"] is None
    assert cases[CLASSIC]["ours_s"] > 0
    assert cases[CLASSIC]["theirs_s"] == pytest.approx(4.510, abs=0.001)
    assert cases[LATER]["ours_s"] is None
    assert "not covered yet" in cases[LATER]["note"]


def test_the_table_has_a_line_per_case() -> None:
    done = airloom("validate", "linux-tcp", DATA)
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == sorted([CLEAN, CLASSIC, LATER])
    assert done.err.startswith("1 of 1 bars met, 3 cases")


def test_a_missed_bar_is_exit_code_1(tmp_path: Path) -> None:
    record = json.loads((DATA / f"{CLEAN}.json").read_text())
    trace = record["median_run"]["ack_trace"]
    record["median_run"]["ack_trace"] = [[us * 1.05, octets] for us, octets in trace]
    (tmp_path / "slow.json").write_text(json.dumps(record))
    done = airloom("validate", "linux-tcp", tmp_path, "--json")
    assert done.code == 1
    assert json.loads(done.out)["missed"] == [CLEAN]


def test_folders_that_hold_no_records_are_wrong_use(tmp_path: Path) -> None:
    assert airloom("validate", "linux-tcp", tmp_path).code == 2
    assert airloom("validate", "linux-tcp", tmp_path / "nowhere").code == 2
    assert airloom("validate", "windows-tcp", DATA).code == 2
    (tmp_path / "broken.json").write_text('{"case": {}}')
    with pytest.raises(UsageError, match=r"broken\.json is not a record"):
        records(tmp_path)
    shutil.copy(DATA / "README.md", tmp_path / "README.json")
    assert airloom("validate", "linux-tcp", tmp_path).code == 2
