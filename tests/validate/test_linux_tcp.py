import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from airloom.cli.validate import _recorded
from airloom.errors import UsageError
from airloom.run import measure
from airloom.scenario import parse
from airloom.validate.linux_tcp import Verdict, compare, records, scenario, wheel_position
from tests.cli.shell import inside

DATA = Path(__file__).parent.parent / "data" / "linux_tcp"

CLEAN = "2M_100ms_0-default-cubic-sack1-iw10-q1000"
CLASSIC = "2M_100ms_0-classic-reno-sack1-iw2-q20"
LATER = "2M_100ms_1-default-cubic-sack1-iw10-q200"


def verdicts() -> dict[str, Verdict]:
    return {v.case: v for v in compare(records(DATA))}


def test_every_kind_of_case_meets_its_bars() -> None:
    found = verdicts()
    assert {case: v.met for case, v in found.items()} == {CLEAN: True, CLASSIC: True, LATER: True}
    what = {case: [b.what for b in v.bars] for case, v in found.items()}
    assert what[CLEAN] == ["completion, clean", "sent again"]
    assert what[CLASSIC] == ["completion, drops", "sent again", "largest window", "between windows"]
    assert what[LATER] == ["completion, median error", "seeds beyond 10 %", "sent again"]
    assert len(found[LATER].errors) == 10
    assert found[CLASSIC].ours_resent == found[CLASSIC].theirs_resent == 38


def test_the_table_has_a_line_per_bar() -> None:
    done = inside("validate", "linux-tcp", DATA)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [CLASSIC] * 4 + [CLEAN] * 2 + [LATER] * 3
    assert all(line.endswith(" met") for line in lines[1:])
    assert done.err.startswith("9 of 9 bars met, 3 cases")


@pytest.mark.parametrize(
    ("case", "change", "missed"),
    [
        (CLEAN, lambda r: r | {"completion_s": r["completion_s"] * 1.01}, "completion, clean"),
        (CLASSIC, lambda r: r | {"completion_s": r["completion_s"] * 1.04}, "completion, drops"),
        (CLASSIC, lambda r: r | {"retransmitted_packets": 43}, "sent again"),
        (LATER, lambda r: r | {"completion_s": r["completion_s"] * 1.2}, "seeds beyond 10 %"),
    ],
)
def test_a_missed_bar_is_exit_code_1(
    tmp_path: Path, case: str, change: Callable[[dict[str, float]], dict[str, float]], missed: str
) -> None:
    record = json.loads((DATA / f"{case}.json").read_text())
    record["runs"] = [change(r) for r in record["runs"]]
    (tmp_path / "changed.json").write_text(json.dumps(record))
    done = inside("validate", "linux-tcp", tmp_path, "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["missed"] == [case]
    assert missed in [b["what"] for b in found["cases"][0]["bars"] if not b["met"]]


def test_where_linux_ends_in_two_ways_ours_has_to_lie_between() -> None:
    record = next(r for r in records(DATA) if r.case["id"] == CLASSIC)
    for factors, met in [((0.9, 1.1), True), ((1.02, 1.1), False)]:
        runs = [r | {"completion_s": r["completion_s"] * f} for r, f in zip(record.runs, factors, strict=False)]
        (verdict,) = compare([replace(record, runs=runs)])
        assert verdict.bars[0].what == "completion, two outcomes"
        assert verdict.bars[0].met is met


def test_a_window_twice_as_large_misses_both_bars_of_the_window() -> None:
    record = next(r for r in records(DATA) if r.case["id"] == CLASSIC)
    trace = [[p[0], p[1] * 2, *p[2:]] for p in record.median_run["cwnd_trace"]]
    (verdict,) = compare([replace(record, median_run={**record.median_run, "cwnd_trace": trace})])
    assert [b.what for b in verdict.bars if not b.met] == ["largest window", "between windows"]


def trace(sent: list[tuple[int, int]], states: list[tuple[int, int, int]]) -> dict[str, object]:
    """A traced run: when which sequence number left, and (time, state, timeout) as they were sampled."""
    return {
        "data_trace": [[at, start, 1448, "D"] for at, start in sent],
        "cwnd_trace": [[at, 10, -1, state, 300_000, rto, 10] for at, state, rto in states],
    }


def test_a_long_timeout_tells_how_the_timer_wheel_stood() -> None:
    sent = [(1_000_000, 0), (1_010_000, 1448), (3_712_000, 0)]
    states = [(1_050_000, 0, 2_576_000), (3_700_000, 0, 2_576_000), (3_750_000, 4, 5_152_000)]
    # 14.5 places of 256 ms after the beginning: half a place more makes it 15.
    assert wheel_position(trace(sent, states)) == 0.128
    # A fast retransmission, and a timeout that ended at a finer place, tell nothing.
    assert wheel_position(trace(sent, [(at, min(state, 3), rto) for at, state, rto in states])) is None
    assert wheel_position(trace(sent, [(at, state, 1_900_000) for at, state, _ in states])) is None
    assert wheel_position(trace(sent[:2], states)) is None


@pytest.mark.parametrize("position", ["1ms", "225585us", "3s"])
def test_long_timeouts_end_at_places_of_the_timer_wheel(position: str) -> None:
    tcp = {"tcp": {"profile": "linux", "timer_wheel_position": position}}
    cut = {
        "title": "A wire that is cut",
        "path": ["sender", "link", "receiver"],
        "hosts": {
            "sender": {"app": {"bulk": {"mode": "put", "size": "1MB"}}, "transport": tcp},
            "receiver": {"app": "bulk-server", "transport": tcp},
        },
        "links": {"link": {"bearer": "wireline", "rate": "384kbit/s", "delay": "150ms"}},
        "timeline": [{"at": "5s", "target": "link", "set": {"state": "down"}}],
        "run": {"record": ["packets"], "until": "60s"},
    }
    _, tables = measure(parse(json.dumps(cut), "cut"))
    packets = tables["packets"].filter((pl.col("point") == "sender.link.ip") & (pl.col("t_ns") > 6_500_000_000))
    moments = packets["t_ns"].to_list()
    assert len(moments) >= 4
    before_the_run = {"1ms": 1_000_000, "225585us": 225_585_000, "3s": 3_000_000_000}[position]
    assert [(at + before_the_run) % 256_000_000 for at in moments] == [0] * len(moments)


def test_a_position_that_is_known_goes_into_the_scenario() -> None:
    case = records(DATA)[0].case
    assert scenario(case, None, 0.128) != scenario(case, None)


def test_folders_that_hold_no_records_are_wrong_use(tmp_path: Path) -> None:
    assert inside("validate", "linux-tcp", tmp_path).code == 2
    assert inside("validate", "linux-tcp", tmp_path / "nowhere").code == 2
    assert inside("validate", "windows-tcp", DATA).code == 2
    (tmp_path / "broken.json").write_text('{"case": {}}')
    with pytest.raises(UsageError, match=r"broken\.json is not a record"):
        records(tmp_path)
    shutil.copy(DATA / "README.md", tmp_path / "README.json")
    assert inside("validate", "linux-tcp", tmp_path).code == 2


@pytest.mark.parametrize("change", [{"case": {}}, {"runs": []}, {"runs": [{"seed": 1}]}, {"median_run": {}}])
def test_a_record_without_what_is_compared_is_refused_in_a_line(tmp_path: Path, change: dict[str, object]) -> None:
    record = json.loads((DATA / f"{CLEAN}.json").read_text())
    (tmp_path / "less.json").write_text(json.dumps(record | change))
    for what in ("linux-tcp", "linux-lab"):
        done = inside("validate", what, tmp_path)
        assert done.code == 2
        assert "less.json is not a record of a transfer" in done.err
        assert len(done.err.splitlines()) == 1


def test_two_records_of_one_case_are_refused_by_their_names(tmp_path: Path) -> None:
    for name in ("first.json", "second.json"):
        shutil.copy(DATA / f"{CLEAN}.json", tmp_path / name)
    done = inside("validate", "linux-tcp", tmp_path)
    assert done.code == 2
    assert f"first.json and {tmp_path / 'second.json'} are both records of {CLEAN}" in done.err


def test_another_trace_of_the_congestion_window_is_another_comparison() -> None:
    record = records(DATA)[0]
    assert _recorded([record]) != _recorded([replace(record, median_run={**record.median_run, "cwnd_trace": []})])
