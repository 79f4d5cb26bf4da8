"""What the study `wave-and-wait` reads off captures, and the paper's tables as they were typed."""

import pytest

from airloom.run import Run
from airloom.scenario import load
from airloom.study import open_study

STUDY = open_study("wave-and-wait")
assert STUDY.module  # what lies beside `study.py` can be imported once that is

from wave_and_wait import cycle, printed, procedures  # noqa: E402
from wave_and_wait.transfers import BASE  # noqa: E402


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short transfer through short phases in which every tenth packet is dropped, with the captures of both hosts."""
    keys: dict[str, object] = {
        "hosts.sender.app.bulk.size": "1048560B",  # whole segments, with the request of 16
        "links.air.every": 10,
        "links.air.on": "2s",
        "links.air.off": "2s",
        "run.record": ["packets", "pcapng"],
        "run.points": ["sender.air.ip", "receiver.air.ip"],
    }
    scenario = load(STUDY.folder / "scenarios" / "wwp.toml", keys)
    return scenario.run(out=tmp_path_factory.mktemp("wwp") / "run")


def test_every_segment_arrives_once_or_is_lost(found: Run) -> None:
    passages = cycle.passages(found)
    lost = [p for p in passages if p.came_s is None]
    assert lost
    assert all(p.segment.is_forward for p in lost), "the element acts on what arrives at the receiver"
    assert all(p.came_s > p.segment.at_s for p in passages if p.came_s is not None)


def test_cycle_of_figure_1_follows_a_wave_of_which_something_is_missing(found: Run) -> None:
    shown = cycle.one_cycle(found)
    wave = [p for p in shown if p.segment.kind == "DATA"]
    assert tuple(p.segment.kind for p in shown[len(wave) :]) == cycle.STEPS
    assert len({p.segment.wave for p in wave}) == 1
    assert len(wave) == 12 * wave[0].segment.level
    assert any(p.came_s is None for p in wave)


def test_numbers_of_the_protocol_are_read_off_the_wire(found: Run) -> None:
    assert procedures.headers(found) == [6]
    assert procedures.per_level(found) == [12]


def test_printed_tables_agree_with_themselves() -> None:
    for drop, rows in printed.TABLE_1.items():
        for protocol, row in rows.items():
            assert row.total - BASE == row.byte_over, (drop, protocol)
            assert BASE / row.goodput == pytest.approx(row.seconds, abs=0.06), (drop, protocol)
            assert abs(row.seconds - row.printed_s) < 1, (drop, protocol)
            if row.time_over is not None:
                longer = row.seconds - printed.TABLE_1[0][protocol].seconds
                assert row.time_over == pytest.approx(longer, abs=0.15), (drop, protocol)


def test_claims_have_the_printed_numbers() -> None:
    claims = {claim.id: claim for claim in STUDY.claims.leaves()}
    number = 1
    for rows in printed.TABLE_1.values():
        for row in rows.values():
            assert claims[f"W{number:02}.time"].paper == row.seconds
            assert claims[f"W{number:02}.octets"].paper == round(row.byte_over / 1000, 1)
            number += 1
