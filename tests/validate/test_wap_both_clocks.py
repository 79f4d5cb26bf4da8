"""Real time against virtual time: the daemon and the client on real sockets, and the simulated ones."""

import json

import polars as pl
import pytest
import typer

from airloom.cli.validate import validate
from airloom.errors import RunError, UsageError
from airloom.validate import wap_both_clocks
from airloom.validate.pairs import Fetch
from airloom.validate.wap_both_clocks import BAR, CELLS, Verdict, chosen, compare, scenario, simulated
from tests.conftest import needs_laboratory


def test_the_table_has_every_size_and_rate() -> None:
    assert [cell.name for cell in CELLS] == [f"{r}k/{n}kB" for r in (384, 64) for n in (1, 10, 100)]
    assert BAR == 0.03
    assert [cell.name for cell in chosen("64k/1*0kB")] == ["64k/10kB", "64k/100kB"]
    with pytest.raises(UsageError, match="no cell matches 'lte'; there are: 384k/1kB"):
        chosen("lte")


def test_the_simulated_fetch_begins_where_it_is_told_and_takes_whole_packets() -> None:
    (cell,) = chosen("384k/10kB")
    found = simulated(scenario(cell, 1, real=False, begin_ns=700_000_000))
    assert found.began_ns == 700_000_000
    assert found.packets >= 8  # 10,000 octets in packets of 1,400
    assert 0.5 < found.seconds < 5
    assert simulated(scenario(cell, 1, real=False, begin_ns=700_000_000)) == found
    assert simulated(scenario(cell, 2, real=False, begin_ns=700_000_000)) != found


def test_a_connect_that_is_sent_again_is_no_request() -> None:
    (cell,) = chosen("384k/1kB")
    # The Connect twice, its answer and the request at once; an acknowledgement, and the reply.
    rows = [(0, "tx", 60), (5, "tx", 60), (6, "rx", 50), (6, "tx", 70), (7, "rx", 31), (9, "rx", 1100)]
    at = [("mobile.radio.ip", seconds * 10**9, event, length) for seconds, event, length in rows]
    packets = pl.DataFrame(at, schema=["point", "t_ns", "event", "len"], orient="row")
    planned = scenario(cell, 1, real=False)
    assert wap_both_clocks._fetch(planned, packets) == Fetch(3.0, 0, 1)
    with pytest.raises(RunError, match="nothing was fetched"):
        wap_both_clocks._fetch(planned, packets.head(2))


def test_a_median_too_far_away_and_a_run_that_was_late_are_misses() -> None:
    (cell,) = chosen("384k/1kB")
    near, far = Fetch(1.029, 0, 1), Fetch(1.05, 0, 1)
    assert Verdict(cell, [Fetch(1.0, 0, 1, "valid")], [near]).met
    assert not Verdict(cell, [Fetch(1.0, 0, 1, "valid")], [far]).met
    assert not Verdict(cell, [Fetch(1.0, 0, 1, "invalid")], [near]).met


@pytest.mark.emulate
def test_the_daemon_takes_as_long_as_the_simulated_gateway() -> None:
    needs_laboratory()
    errors = []
    # A busy machine delays a program, and with it some of the runs, but never brings both closer.
    for seed in range(1, 11):
        (verdict,) = compare(chosen("384k/1kB"), [seed], jobs=1)
        assert [f.packets for f in verdict.real] == [f.packets for f in verdict.simulated] == [1]
        errors += verdict.errors
        if seed >= 3 and min(map(abs, errors)) <= BAR:
            return
    raise AssertionError(errors)


def test_the_command_says_what_was_met(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (cell,) = chosen("384k/1kB")
    made = [Verdict(cell, [Fetch(1.0, 0, 1, "valid")], [Fetch(1.1, 0, 1)])]
    monkeypatch.setattr(wap_both_clocks, "compare", lambda *_, **__: made)
    with pytest.raises(typer.Exit):
        validate("wap-both-clocks", only="384k/1kB", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["missed"] == ["384k/1kB"]
    assert said["cells"][0]["error"] == pytest.approx(0.1)
