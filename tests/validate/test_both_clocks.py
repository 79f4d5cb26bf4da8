"""Real time against virtual time: transfers of this machine's kernel and simulated ones."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import typer

from airloom.cli import call
from airloom.cli.validate import validate
from airloom.errors import UsageError
from airloom.validate import both_clocks, pairs, processes, transfer
from airloom.validate.both_clocks import CELLS, Cell, Verdict, chosen, compare
from airloom.validate.transfer import Transfer
from tests.cli.shell import airloom
from tests.conftest import needs_laboratory


class here(ThreadPoolExecutor):  # noqa: N801
    """In place of other processes, which would not see what a test replaces."""


def needs_rights() -> None:
    needs_laboratory()


def test_the_table_has_every_link_and_size() -> None:
    assert len(CELLS) == len({cell.name for cell in CELLS}) == 13
    assert {cell.bar for cell in CELLS if "loss/" in cell.name} == {0.02}
    assert {cell.bar for cell in CELLS if "loss3" in cell.name} == {0.03}
    bundles = [cell for cell in CELLS if cell.link["bearer"] == "mlppp"]
    assert {cell.bar for cell in bundles} == {0.03}
    assert [len(cell.timeline) for cell in bundles] == [0, 1], "whole, and with a circuit released"
    clean = [cell for cell in CELLS if "loss" not in cell.name and cell not in bundles]
    assert {cell.bar for cell in clean} == {0.005}
    assert [cell.name for cell in chosen("umts*/1MB")] == ["umts-dch-loss/1MB"]
    with pytest.raises(UsageError, match="no cell matches 'lte'; there are: 384k-300ms/200kB"):
        chosen("lte")


@pytest.mark.emulate
def test_a_clean_and_a_lossy_cell_agree() -> None:
    needs_rights()
    seeds = [1, 2, 3]
    for verdict in compare(chosen("2M-100ms*/200kB"), seeds, jobs=3):
        decided, differently = verdict.decided
        assert decided > 3 * 140
        assert differently == 0
        for seed, real, simulated in zip(seeds, verdict.real, verdict.simulated, strict=True):
            assert real.resent == simulated.resent or _agrees_alone(verdict.cell, seed), (verdict.cell.name, seed)
        # A busy machine delays a kernel's answers, and with them a run or two, but never brings a transfer closer.
        assert min(map(abs, verdict.errors)) <= verdict.cell.bar, verdict.errors


def _agrees_alone(cell: Cell, seed: int) -> bool:
    """A kernel held up for a round trip repeats what nobody lost; a model that is wrong is wrong each time."""
    for _ in range(3):
        (verdict,) = compare([cell], [seed], jobs=1)
        if verdict.real[0].resent == verdict.simulated[0].resent:
            return True
    return False


@pytest.mark.emulate
def test_blocks_at_the_same_place_of_the_grid_have_the_same_fate() -> None:
    needs_rights()
    (cell,) = chosen("umts-dch-loss/200kB")
    # Here, and not in another process: packets are not kept.
    real, simulated, _ = both_clocks._pair(replace(cell, size=50_000), 1)
    verdict = Verdict(cell, [real], [simulated])
    fates = transfer.decisions(real.packets)
    # Which blocks these are depends on when the transfer began: some of them are lost.
    assert 0 < sum(fates.values()) < len(fates)
    decided, differently = verdict.decided
    assert decided > 100
    assert differently == 0
    # Another seed has other fates: the comparison sees a difference where there is one.
    other = transfer.scenario(
        "", cell.link, 50_000, {"profile": "linux"}, seed=2, begin_ns=real.began_ns, downlink=True
    )
    elsewhere = transfer.simulated(other)
    mistaken = Verdict(cell, [both_clocks.decided(real, elsewhere)], [elsewhere])
    assert mistaken.decided[1] > 0
    assert not mistaken.met


def fake(seconds: float, lost: int | None = None, verdict: str | None = None, again_s: float | None = None) -> Transfer:
    """A transfer of three packets of which one is lost."""
    rows = [(n, "link.queue.ul.tx", "drop" if n == lost else "enq", "lost" if n == lost else None) for n in range(3)]
    packets = pl.DataFrame(rows, schema=["t_ns", "point", "event", "reason"], orient="row")
    return Transfer(seconds, 0, 0, packets, verdict, again_s=again_s or seconds)


@pytest.mark.parametrize(
    ("real", "simulated", "met"),
    [
        (fake(1.0, verdict="valid"), fake(1.0049), True),
        (fake(1.0, verdict="valid"), fake(1.0051), False),
        (fake(1.0, lost=1), fake(1.0, lost=1), True),
        (fake(1.0, lost=1), fake(1.0, lost=2), False),
        (fake(1.0, verdict="invalid"), fake(1.0), False),
    ],
)
def test_time_decisions_and_lateness_decide(real: Transfer, simulated: Transfer, met: bool) -> None:
    assert Verdict(Cell("", {}, 0, 0.005), [both_clocks.decided(real, simulated)], [simulated]).met is met


def test_seeds_count_where_reality_repeats() -> None:
    real = [fake(1.0, again_s=1.009), fake(1.0, again_s=0.98), fake(1.0, again_s=1.0)]
    verdict = Verdict(Cell("", {}, 0, 0.02), real, [fake(1.009), fake(1.0), fake(1.011)])
    assert verdict.repeats == pytest.approx([0.009, -0.02, 0.0])
    assert verdict.where_reality_repeats == (2, 1), "the second does not repeat, the third is not met"


def test_a_late_run_is_made_again_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    late = iter(["invalid", "invalid", "valid", "valid", *["invalid"] * pairs.TRIES, "valid"])
    monkeypatch.setattr(transfer, "real", lambda _, **__: fake(1.0, verdict=next(late)))
    monkeypatch.setattr(transfer, "simulated", lambda _: fake(1.0))
    with ThreadPoolExecutor(1) as here:
        first, second = compare(chosen("2M-100ms/*"), [1], executor=here)
    # The longer one comes first.
    assert (first.invalid, first.repeated) == (1, pairs.TRIES - 1)
    assert (second.invalid, second.repeated) == (0, 2)


def test_packets_that_a_full_queue_drops_are_not_counted() -> None:
    rows = [("enq", None), ("drop", "queue full"), ("drop", "lost"), ("enq", None)]
    table = [(n, "link.queue.ul.tx", event, reason) for n, (event, reason) in enumerate(rows)]
    packets = pl.DataFrame(table, schema=["t_ns", "point", "event", "reason"], orient="row")
    point = "link.queue.ul.tx"
    assert transfer.decisions(packets) == {(point, 0, 0): False, (point, 1, 0): True, (point, 2, 0): False}


def test_blocks_are_told_apart_by_their_place_in_the_interval() -> None:
    rows = [(0, "enq"), (0, "tx"), (0, "retx"), (0, "drop"), (0, "ack"), (10, "tx"), (10, "drop")]
    table: list[tuple[int, str, str, str | None]] = [(t, "link.rlc.dl.tx", event, None) for t, event in rows]
    table += [(7, "link.rlc.dl.tx", "drop", "queue full"), (5, "link.rlc.dl.rx", "rx", None)]
    packets = pl.DataFrame(table, schema=["t_ns", "point", "event", "reason"], orient="row")
    found = {(time, place): lost for (_, time, place), lost in transfer.decisions(packets).items()}
    assert found == {(0, 0): False, (0, 1): True, (0, 2): False, (10, 0): True}


def test_a_missed_cell_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pair(_cell: Cell, seed: int) -> tuple[Transfer, Transfer, int]:
        return fake(1.0, verdict="valid"), fake(1.0 + (2 * seed - 1) / 1000), 0

    monkeypatch.setattr(both_clocks, "_pair", pair)
    monkeypatch.setattr(processes, "Processes", here)
    for as_json in (True, False):
        with pytest.raises(typer.Exit) as ended:
            validate("both-clocks", only="2M-100ms*/200kB", as_json=as_json)
        assert ended.value.exit_code == 1
        out = capsys.readouterr().out
        if as_json:
            found = json.loads(out)
            # Two per cent are allowed where there are losses, half a per cent where there are none.
            assert found["missed"] == ["2M-100ms/200kB"]
            assert [cell["error"] for cell in found["cells"]] == pytest.approx([0.01, 0.01])
        else:
            assert [line.split()[0] for line in out.splitlines()[1:]] == ["2M-100ms/200kB", "2M-100ms-loss/200kB"]
            assert [line.split()[-1] for line in out.splitlines()[1:]] == ["MISSED", "met"]


def test_fewer_seeds_than_the_bars_are_for_are_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(both_clocks, "_pair", lambda *_: (fake(1.0, verdict="valid"), fake(1.5), 0))
    monkeypatch.setattr(processes, "Processes", here)
    validate("both-clocks", only="2M-100ms/200kB", seeds=1)
    said = capsys.readouterr()
    assert said.out.splitlines()[1].endswith("not judged")
    assert "1 seed each, not judged: the bars are for the median of 10" in said.err
    validate("both-clocks", only="2M-100ms/200kB", seeds=9, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["judged"], found["missed"], found["cells"][0]["met"]) == (False, [], None)


def test_what_was_measured_is_not_measured_again_and_a_finished_comparison_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[int] = []

    def pair(_cell: Cell, seed: int) -> tuple[Transfer, Transfer, int]:
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(seed)
        return fake(1.0, verdict="valid"), fake(1.0), 0

    monkeypatch.setattr(both_clocks, "_pair", pair)
    monkeypatch.setattr(processes, "Processes", here)
    words = ["validate", "both-clocks", "--only", "2M-100ms/200kB", "--jobs", "1"]
    assert call(words) == 130
    (place,) = Path("runs").iterdir()
    said = capsys.readouterr().err
    assert said == (
        f"airloom: interrupted, 4 of 10 measurements are kept in {place}: the same command goes on with them\n"
    )
    # Half a line is what a full disk or a kill leaves.
    with (place / "measured.jsonl").open("a") as file:
        file.write('["2M-100ms/200kB, seed 9", {"re')
    made.clear()

    def go_on(_cell: Cell, seed: int) -> tuple[Transfer, Transfer, int]:
        made.append(seed)
        return fake(1.0, verdict="valid"), fake(1.0), 0

    monkeypatch.setattr(both_clocks, "_pair", go_on)
    assert call(words) == 0
    assert len(made) == 6
    assert f"4 of 10 measurements were there already, in {place}" in capsys.readouterr().err
    assert [path.name for path in Path("runs").iterdir()] == [place.name]
    assert call(words) == 0
    assert len(made) == 16
    assert len(list(Path("runs").iterdir())) == 2, "a comparison that was finished keeps its place"
    assert call([*words, "--out", str(place)]) == 0
    assert len(made) == 16, "all of it was there"


def test_records_are_for_comparisons_with_records(tmp_path: Path) -> None:
    assert airloom("validate", "both-clocks", tmp_path).code == 2
    for what in ("linux-tcp", "linux-lab"):
        assert "which folder" in airloom("validate", what).err
