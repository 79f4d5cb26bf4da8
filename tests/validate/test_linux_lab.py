"""This machine's kernel over an emulated wire against recorded transfers."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import typer

from airloom.cli.validate import validate
from airloom.errors import UsageError
from airloom.validate import linux_lab, processes, transfer
from airloom.validate.linux_tcp import Record, records
from airloom.validate.transfer import Transfer
from tests.conftest import needs_laboratory
from tests.validate.test_both_clocks import fake
from tests.validate.test_linux_tcp import CLASSIC, CLEAN, DATA


@pytest.fixture
def found() -> list[Record]:
    return records(DATA)


@pytest.mark.emulate
def test_the_kernel_takes_as_long_through_our_wire_as_it_did_through_another(found: list[Record]) -> None:
    needs_laboratory()
    cases = {str(record.case["id"]): record for record in linux_lab.suitable(found)}
    # Without timestamps and with Reno and two segments at first, 38 segments are sent again.
    assert cases.keys() == {CLEAN, CLASSIC}
    for case, record in cases.items():
        seen = []
        # One stall of the machine is enough to move a queue and is no lateness yet; what is wrong is wrong each time.
        for _ in range(5):
            (verdict,) = linux_lab.compare([record])
            seen.append((verdict.error, verdict.ours.resent))
            if abs(verdict.error) <= linux_lab.BAR and verdict.ours.resent == verdict.recorded_resent:
                break
        else:
            raise AssertionError(f"{case}: {seen}")


def test_cases_with_random_loss_are_left_out(found: list[Record]) -> None:
    assert [record.case["id"] for record in linux_lab.suitable(found)] == [CLASSIC, CLEAN]
    lossy = [record for record in found if record.case["loss"]]
    with pytest.raises(UsageError, match="no case without loss"):
        linux_lab.suitable(lossy)


@pytest.mark.parametrize(
    ("seconds", "verdict", "met"),
    [(4.3, "valid", True), (4.39, "valid", False), (4.25, "valid", False), (4.34, "invalid", False)],
)
def test_a_hundredth_decides_and_lateness(
    found: list[Record], monkeypatch: pytest.MonkeyPatch, seconds: float, verdict: str, met: bool
) -> None:
    monkeypatch.setattr(transfer, "real", lambda _, **__: fake(seconds, verdict=verdict))
    (clean,) = (record for record in found if record.case["id"] == CLEAN)
    with ThreadPoolExecutor(1) as here:
        (ours,) = linux_lab.compare([clean], executor=here)
    assert ours.met is met


def test_where_the_records_end_in_two_ways_ours_may_lie_between(
    found: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean,) = (record for record in found if record.case["id"] == CLEAN)
    runs = [{**run, "completion_s": seconds} for run, seconds in zip(clean.runs, [4, 4, 5, 5, 5], strict=True)]
    for seconds, error in [(4.5, 0.0), (5.1, 0.02), (3.9, 0.02)]:
        monkeypatch.setattr(transfer, "real", lambda _, s=seconds, **__: fake(s))
        with ThreadPoolExecutor(1) as here:
            (verdict,) = linux_lab.compare([replace(clean, runs=runs)], executor=here)
        assert verdict.error == pytest.approx(error)


def test_the_command_says_which_case_was_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def real(planned: object, *, request: bool) -> Transfer:
        del planned
        assert not request
        return fake(4.34, verdict="valid")

    monkeypatch.setattr(transfer, "real", real)
    monkeypatch.setattr(processes, "Processes", ThreadPoolExecutor)
    # The other one takes 4.51 s.
    with pytest.raises(typer.Exit):
        validate("linux-lab", DATA, as_json=True)
    assert json.loads(capsys.readouterr().out)["missed"] == [CLASSIC]
    validate("linux-lab", DATA, only=CLEAN)
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "met"
    with pytest.raises(UsageError, match="no case is called 'nothing'"):
        validate("linux-lab", DATA, only="nothing")
