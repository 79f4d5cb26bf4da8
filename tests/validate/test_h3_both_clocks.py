"""HTTP/3 in real time against virtual time: `serve h3` and `h3 get`, and the simulated client and server."""

from pathlib import Path

import pytest

from airloom.errors import UsageError
from airloom.validate.h3_both_clocks import CELLS, Verdict, chosen, compare, make_certificate, scenario, simulated
from airloom.validate.pairs import Fetch
from tests.conftest import needs_laboratory


def test_the_table_has_every_link_and_size() -> None:
    assert len(CELLS) == len({cell.name for cell in CELLS}) == 8
    assert {cell.bar for cell in CELLS if "loss" in cell.name} == {0.03}
    assert {cell.bar for cell in CELLS if "loss" not in cell.name} == {0.01}
    with pytest.raises(UsageError, match="no cell matches 'lte'; there are: 2M-100ms/200kB"):
        chosen("lte")


def test_the_simulated_fetch_begins_where_it_is_told_and_takes_what_the_wire_takes() -> None:
    (cell,) = chosen("2M-100ms/200kB")
    found = simulated(scenario(cell, 1, begin_ns=700_000_000))
    assert found.began_ns == 700_000_000
    # 200,000 octets in datagrams of at most 1452 octets.
    assert 140 <= found.packets <= 190
    assert 0.8 + 0.2 < found.seconds < 2
    other = simulated(scenario(cell, 2, begin_ns=700_000_000)).seconds
    assert other == pytest.approx(found.seconds, rel=1e-3), "nothing is lost"
    (lossy,) = chosen("2M-100ms-loss/200kB")
    assert len({simulated(scenario(lossy, seed)).seconds for seed in range(1, 6)}) > 1


def test_a_certificate_is_as_long_as_its_message_is_said_to_be(tmp_path: Path) -> None:
    octets = make_certificate(tmp_path)
    assert 1_000 <= octets < 2_000, "one flight, and no smaller one than the model has"
    assert "PRIVATE KEY" in (tmp_path / "key.pem").read_text()


@pytest.mark.parametrize(
    ("seconds", "verdict", "met"), [(1.009, "valid", True), (1.02, "valid", False), (1.0, "invalid", False)]
)
def test_time_and_lateness_decide(seconds: float, verdict: str, met: bool) -> None:
    (cell,) = chosen("2M-100ms/200kB")
    assert Verdict(cell, [Fetch(1.0, 0, 1, verdict)], [Fetch(seconds, 0, 1)]).met is met


@pytest.mark.emulate
@pytest.mark.parametrize("name", ["2M-100ms/200kB", "2M-100ms-loss/200kB"])
def test_the_daemon_takes_as_long_as_the_simulated_server(name: str) -> None:
    needs_laboratory()
    (cell,) = chosen(name)
    found = Verdict(cell)
    # The medians of five seeds. A busy machine delays a program, and with it some of the runs, so that more are made;
    # what keeps most of them apart more runs do not mend.
    for seed in range(1, 12):
        (one,) = compare([cell], [seed], jobs=1)
        found.real += one.real
        found.simulated += one.simulated
        if seed >= 5 and abs(found.error) <= cell.bar:
            return
    raise AssertionError((found.error, found.errors))
