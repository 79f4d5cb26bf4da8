"""What programs find on the interop runner's network, against its words."""

import pytest

from airloom.errors import UsageError
from airloom.validate import interop_sim
from tests.conftest import needs_laboratory

DEFAULT = interop_sim.NETWORKS[0]


def found(delay_s: float, rate: float, verdict: str = "valid") -> list[interop_sim.Row]:
    ways = ("to server", "to client")
    made = interop_sim._Found(dict.fromkeys(ways, delay_s), dict.fromkeys(ways, rate), verdict)
    return interop_sim.judged(DEFAULT, made)


def test_figures_are_held_against_the_words() -> None:
    # 128 octets take 0.1024 ms at 10 Mbit/s.
    right = found(0.0151024, 10e6)
    assert [(row.what, row.met) for row in right] == [
        ("one-way delay to server", True),
        ("one-way delay to client", True),
        ("rate to server", True),
        ("rate to client", True),
    ]
    assert [row.error for row in right] == pytest.approx([0] * 4, abs=1e-9)
    assert [row.met for row in found(0.0151024 * 1.006, 10e6 * 0.994)] == [False] * 4
    assert [row.met for row in found(0.0151024, 10e6, "invalid")] == [False] * 4
    with pytest.raises(UsageError, match="no network matches"):
        interop_sim.chosen("other")


@pytest.mark.emulate
def test_programs_find_the_delay_and_the_rate() -> None:
    needs_laboratory()
    measured = interop_sim.measure(DEFAULT, probes=40, flood_s=0.5)
    rows = {row.what: row for row in interop_sim.judged(DEFAULT, measured)}
    # Nobody is there sooner (but for the instrument's own time, which is taken off), and no more passes than that; how
    # much later is for a calm machine to say.
    for way in ("to server", "to client"):
        assert -0.05 < rows[f"one-way delay {way}"].error < 1
        assert -0.5 < rows[f"rate {way}"].error <= interop_sim.BAR
