"""What a sweep gives, and that it is the same however it came about."""

import errno
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airloom as al
from airloom import _core
from airloom.cli import call
from airloom.errors import Interrupted, RunError, UsageError
from airloom.scenario import Scenario, for_bearer
from airloom.sweep import work
from airloom.sweep.axes import COLUMNS, axis
from tests.sweep.conftest import FETCH

LOSS = "links.wire.loss"


def octets(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def test_a_sweep_is_a_table_with_a_row_per_run(fetch: Scenario) -> None:
    results = fetch.sweep({LOSS: [0, 0.1], "links.wire.delay": ["20ms", "200ms"]}, seeds="1..3").run(workers=2)
    runs = results.runs
    assert runs.height == 12
    assert runs.columns[:7] == ["point", LOSS, "links.wire.delay", "seed", "run_id", "status", "error"]
    assert runs[LOSS].to_list() == [0.0] * 6 + [0.1] * 6
    assert runs["links.wire.delay"].to_list() == (["20ms"] * 3 + ["200ms"] * 3) * 2
    assert runs["seed"].to_list() == [1, 2, 3] * 4
    assert results.pages.height == 12
    assert results.failures.is_empty()
    assert not (results.folder / "parts").exists()


def test_a_sweep_that_was_begun_on_another_day_goes_on_whatever_its_file_is_called() -> None:
    Path("a[1].toml").write_text(FETCH)
    sweep = al.load("a[1].toml").sweep(seeds="1..2")
    begun = sweep.run().folder.rename(f"runs/2020-01-01-a[1]-{sweep.sweep_id}")
    assert sweep.run().folder == begun


def test_a_run_of_a_sweep_is_the_run_alone(fetch: Scenario) -> None:
    results = fetch.sweep({LOSS: [0.1]}, seeds="7").run()
    alone = fetch.with_keys({LOSS: 0.1}).run(seed=7)
    row = results.runs.row(0, named=True)
    assert row["run_id"] == alone.manifest["run_id"]
    assert {key: row[key] for key in alone.summary} == alone.summary
    columns = alone.flows.columns
    assert results.flows.select(columns).rows() == alone.flows.with_columns(pl.col("proto", "end").cast(str)).rows()


def test_number_of_workers_and_kind_of_executor_do_not_change_an_octet(fetch: Scenario) -> None:
    sweep = fetch.sweep({LOSS: [0, 0.05, 0.1]}, seeds="1..40")
    one = octets(sweep.run(workers=1, out="one").folder)
    assert set(one) == {"runs.parquet", "pages.parquet", "flows.parquet", "rate.parquet"}
    assert octets(sweep.run(workers=2, out="two").folder) == one
    with ThreadPoolExecutor(2) as executor:
        assert octets(sweep.run(executor=executor, out="threads").folder) == one
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert octets(sweep.run(executor=processes, out="processes").folder) == one


def test_the_same_command_again_makes_nothing_and_more_seeds_make_only_those(fetch: Scenario) -> None:
    first = fetch.sweep({LOSS: [0, 0.1]}, seeds="1..4").run(out="s")
    before = octets(first.folder)
    fetch.sweep({LOSS: [0, 0.1]}, seeds="1..4").run(out="s")
    assert octets(first.folder) == before
    grown = fetch.sweep({LOSS: [0, 0.1]}, seeds="1..9").run(out="s")
    sessions = json.loads((grown.folder / "sessions.json").read_text())
    assert [session["runs"] for session in sessions] == [8, 0, 10]
    at_once = octets(fetch.sweep({LOSS: [0, 0.1]}, seeds="1..9").run(out="at-once").folder)
    assert octets(grown.folder) == at_once
    assert fetch.sweep({LOSS: [0, 0.1]}, seeds="2..3").run(out="s").seeds == range(1, 10), "those that are there"
    fetch.sweep({LOSS: [0, 0.1]}, seeds="5..9").run(out="behind")
    before_them = fetch.sweep({LOSS: [0, 0.1]}, seeds="1..9").run(out="behind")
    assert octets(before_them.folder) == at_once, "as if none had been there"
    assert before_them.rate["seed"].unique().to_list() == [1]


def test_a_sweep_that_stops_early_says_which_seeds_it_made(fetch: Scenario) -> None:
    results = fetch.sweep({LOSS: [0]}, seeds="1..2000").run(until_ci=0.5, measure="page_load_s")
    assert results.seeds == range(1, 31)
    assert results.runs["seed"].to_list() == [*range(1, 31)]


def test_a_point_of_which_no_run_comes_to_its_end_is_not_known_well_enough(fetch: Scenario) -> None:
    results = fetch.sweep({"run.limit": ["1h", "30ms"]}, seeds="1..40").run(until_ci=0.5, measure="page_load_s")
    assert (results.seeds, results.failures.height) == (range(1, 41), 40)


def test_levels_of_axes_are_called_as_they_are_in_the_tables(fetch: Scenario) -> None:
    results = fetch.sweep({"run.keep_awake": [True, False]}, seeds="1..3").run()
    assert results.axes == {"run.keep_awake": ["true", "false"]}
    for baseline in (None, True, "true"):
        assert results.paired("page_load_s", "run.keep_awake", baseline)["level"].to_list() == ["false"]
    mixed = [{"label": 0.1, "set": {}}, {"label": "none", "set": {}}]
    assert fetch.sweep({"wire": mixed}, seeds="1..3").run().paired("page_load_s", "wire", 0.1).height == 1


def test_no_axis_is_called_as_a_column_that_analysis_makes(fetch: Scenario) -> None:
    results = fetch.sweep({LOSS: [0, 0.1]}, seeds="1..3").run()
    tables = (results.mean("page_load_s"), results.median("page_load_s"), results.paired("page_load_s", LOSS))
    for column in {column for table in tables for column in table.columns} - {LOSS}:
        with pytest.raises(UsageError, match=f"an axis cannot be called '{column}'"):
            fetch.sweep({column: [{"label": "a", "set": {}}]})


def test_a_seed_is_the_same_radio_at_every_point() -> None:
    # The second axis changes nothing that the radio knows of: all must be equal to the last digit.
    vary: dict[str, list[Any]] = {"title": ["one", "two"], "links.radio.loss.downlink": [0.1]}
    results = al.load("umts-page").sweep(vary, seeds="1..5").run()
    table = results.paired("page_load_s", "title")
    assert table["difference"].to_list() == [0.0]
    assert table["p"].to_list() == [1.0]
    spread = results.runs.filter(pl.col("title") == "one")["page_load_s"]
    assert spread.n_unique() > 1


def test_tables_are_levels_by_their_label(fetch: Scenario) -> None:
    transports = [{"label": "Reno", "tcp": {"congestion": "reno"}}, {"label": "none", "value": "tcp"}]
    sizes = [{"label": 5, "value": [["/5kB"]]}, {"label": 10, "value": [["/10kB"]]}]
    both = {"label": "slow", "set": {"links.wire.rate": "64kbit/s", "links.wire.delay": "100ms"}}
    vary: dict[str, list[Any]] = {
        "hosts.origin.transport": transports,
        "hosts.mobile.app.http-client.pages": sizes,
        "wire": [both, {"label": "as it is", "set": {}}],
    }
    results = fetch.sweep(vary, seeds=[1]).run()
    assert results.axes == {
        "hosts.origin.transport": ["Reno", "none"],
        "hosts.mobile.app.http-client.pages": [5, 10],
        "wire": ["slow", "as it is"],
    }
    assert results.runs.filter(pl.col("wire") == "slow")["page_load_s"].min() > 0.4  # type: ignore[operator]
    sizes_seen = results.pages.select("hosts.mobile.app.http-client.pages", "bytes").unique().sort("bytes").rows()
    assert sizes_seen == [(5, 5000), (10, 10000)]


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"links.wire.lossy": [1]}, "--vary links.wire.lossy=1: .*lossy.*"),
        ({"links.radio.loss": [1]}, ".*radio.*wire.*"),
        ({LOSS: []}, "links.wire.loss has no values to vary over.*"),
        ({LOSS: [0, "0"]}, "links.wire.loss has the value 0 twice.*"),
        ({LOSS: [0, 7]}, ".*7.*"),
        ({"run.seed": [1, 2]}, "run.seed is not varied.*"),
        *(({name: [{"label": 1, "set": {}}]}, f"an axis cannot be called '{name}': .*") for name in COLUMNS),
    ],
)
def test_what_cannot_be_varied_is_said_in_one_line_before_anything_runs(
    fetch: Scenario, vary: dict[str, list[object]], said: str
) -> None:
    with pytest.raises(UsageError, match=f"^{said}$"):
        fetch.sweep(vary)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", ["method", "octets", "seen_at", "t_ns", "span_ns", "len", "good", "value", "share"])
def test_no_axis_is_called_as_a_column_of_what_is_computed(name: str) -> None:
    with pytest.raises(UsageError, match=f"^an axis cannot be called '{name}': "):
        axis(name, [1])


def test_a_folder_with_another_sweep_is_left_alone(fetch: Scenario) -> None:
    first = fetch.sweep({LOSS: [0]}, seeds=[1]).run(out="s")
    before = octets(first.folder)
    with pytest.raises(UsageError, match=r"^s holds another sweep \(fetch, [0-9a-f]{10}\): .*$"):
        fetch.sweep({LOSS: [0.1]}, seeds=[1]).run(out="s")
    Path("other").mkdir()
    Path("other/thesis.tex").touch()
    with pytest.raises(UsageError, match=r"^other exists and is not a result folder: .*$"):
        fetch.sweep({LOSS: [0]}, seeds=[1]).run(out="other")
    assert octets(first.folder) == before
    assert [p.name for p in Path("other").iterdir()] == ["thesis.tex"]


def test_a_sweep_says_which_seeds_its_tables_have_whenever_it_is_stopped(
    fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    fetch.sweep(seeds=[3, 1, 2]).run(out="s")
    assert al.SweepResults("s").manifest["seeds"] == "3,1,2"
    more = fetch.sweep(seeds="1..6")
    with pytest.raises(Interrupted):
        more.run(out="s", progress=stop)
    assert al.SweepResults("s").manifest["seeds"] == "3,1,2"
    assert more.run(out="s").manifest["seeds"] == "1..6"
    assert fetch.sweep(seeds="1..2").run(out="s").manifest["seeds"] == "1..6"
    # Also between the looks of a sweep that takes seeds until it knows enough.
    monkeypatch.setattr("airloom.sweep.sweep.FEWEST_SEEDS", 2)
    monkeypatch.setattr("airloom.analysis.stop.is_precise", lambda *_, **__: stop(None))
    with pytest.raises(Interrupted):
        fetch.sweep(seeds="1..9").run(out="t", until_ci=0.01)
    assert al.SweepResults("t").manifest["seeds"] == "1..2"


def test_a_damaged_table_is_one_line(fetch: Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = fetch.sweep({LOSS: [0]}, seeds=[1])
    sweep.run(out="s")
    whole = Path("s/runs.parquet").read_bytes()
    Path("s/runs.parquet").write_bytes(whole[: len(whole) // 2])
    assert call(["report", "s"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("airloom: s/runs.parquet is damaged (")
    with pytest.raises(UsageError, match=r"^s/runs.parquet is damaged \("):
        sweep.run(out="s")


def test_a_failed_run_keeps_its_error_and_its_seed(fetch: Scenario) -> None:
    results = fetch.sweep({"run.limit": ["1h", "30ms"]}, seeds="1..3").run()
    failures = results.failures
    assert failures["seed"].to_list() == [1, 2, 3]
    assert failures["run.limit"].to_list() == ["30ms"] * 3
    assert set(failures["error"]) == {"not done within run.limit"}
    assert results.runs.height == 3
    assert results.mean("page_load_s")["seeds"].to_list() == [3]


@pytest.mark.parametrize("name", ["page_load_s", "bytes", "proto"])
def test_an_axis_cannot_be_called_as_something_that_runs_measure(fetch: Scenario, name: str) -> None:
    said = f"^an axis cannot be called '{name}': runs measure something of that name; rename the axis$"
    for _ in range(2):  # what the first one made is not taken for results by the second
        with pytest.raises(UsageError, match=said):
            fetch.sweep({name: [{"label": 1, "set": {}}]}, seeds=[1]).run(out="s")
        assert list(Path("s/parts").iterdir()) == []


def test_with_folders_each_run_can_be_opened_and_the_tables_are_the_same(
    fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = fetch.with_keys({"run.record": ["packets", "pcapng", "congestion"]})
    wanted = ("pages", "flows", "states", "congestion")
    vary: dict[str, list[Any]] = {LOSS: [0, 0.3], "run.limit": ["1h", "90ms"]}
    results = scenario.sweep(vary, seeds="1..3", folders=True, tables=wanted).run(out="whole")
    without = scenario.sweep(vary, seeds="1..3", tables=wanted).run(out="plain")
    assert {name: pl.read_parquet(path).rows() for name, path in parquet(results.folder)} == {
        name: pl.read_parquet(path).rows() for name, path in parquet(without.folder)
    }
    assert octets(results.folder) == octets(without.folder)
    assert results.failures.height == 6
    run = al.Run(results.folder / "runs" / "point-2-seed-2")
    assert run.manifest["run_id"] == results.runs.filter((pl.col("point") == 2) & (pl.col("seed") == 2))["run_id"][0]
    assert run.packets.height > 0
    alone = scenario.with_keys({LOSS: 0.3}).run(seed=2, out="alone")
    for file in ("packets.parquet", "trace.pcapng", "summary.json"):
        assert (run.folder / file).read_bytes() == (alone.folder / file).read_bytes()
    # A run that failed has no folder, and nothing half-made is left.
    assert not list((results.folder / "runs").glob("point-1-*"))
    assert not list((results.folder / "runs").glob(".*"))


def parquet(folder: Path) -> list[tuple[str, Path]]:
    return [(path.stem, path) for path in sorted(folder.glob("*.parquet"))]


def test_a_run_with_a_folder_is_made_once(fetch: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    whole = _core.make_runs

    def counted(points: Any, runs: Any, *how: Any) -> Any:
        made.append((runs, how[-1] is None))
        return whole(points, runs, *how)

    monkeypatch.setattr(work, "make_runs", counted)
    fetch.sweep(seeds="1..4", folders=True).run(out="s")
    assert sorted(p.name for p in Path("s/runs").iterdir()) == [f"point-0-seed-{n}" for n in (1, 2, 3, 4)]
    (_, simulated), *again = made
    assert not simulated
    assert again == [([(0, 1)], True)], "only the first seed's rate over time takes packets, which the folder has not"


def panic() -> None:
    """In Rust: a run without the label that its axis wants."""
    _core.Part(["axis"], 0, [], 1, "")


def in_simulation(monkeypatch: pytest.MonkeyPatch, fails: Callable[[], None]) -> None:
    monkeypatch.setattr(work.Whole, "_go_on", lambda self, now: fails())


def in_saving(monkeypatch: pytest.MonkeyPatch, fails: Callable[[], None]) -> None:
    monkeypatch.setattr("airloom.run.save", lambda *_: fails())


def in_tables(monkeypatch: pytest.MonkeyPatch, fails: Callable[[], None]) -> None:
    monkeypatch.setattr("airloom.tables.write", lambda *_: fails())


def in_rows(monkeypatch: pytest.MonkeyPatch, fails: Callable[[], None]) -> None:
    whole = work.OneByOne._part

    def part(self: work.OneByOne, job: work.Job, seed: int, error: str | None, *rest: Any, **how: Any) -> _core.Part:
        if error is None:
            fails()
        return whole(self, job, seed, error, *rest, **how)

    monkeypatch.setattr(work.OneByOne, "_part", part)


# The first seed is made once more, without a folder, for its rate over time.
@pytest.mark.parametrize(("where", "seed"), [(in_simulation, 1), (in_saving, 1), (in_tables, 1), (in_rows, 2)])
def test_a_panic_of_a_run_with_a_folder_is_the_error_of_that_run(
    fetch: Scenario, where: Callable[..., None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def fails() -> None:
        asked.append(True)
        if len(asked) == 1:
            panic()

    # A run is asked first after some 65,000 events.
    long = fetch.with_keys({"hosts.mobile.app.http-client.pages": "[['/100MB']]"} if where is in_simulation else {})
    sweep = long.sweep(seeds="1..2", folders=True)
    with monkeypatch.context() as patched:
        where(patched, fails)
        results = sweep.run(out="s", workers=1)
    ((found, status, error),) = results.failures.select("seed", "status", "error").rows()
    assert (found, status) == (seed, "failed")
    place = "part.rs" if where is in_simulation else "test_sweep.py"
    assert re.fullmatch(rf"a fault in airloom at .*{place}:\d+: .*index out of bounds: .*", error), error
    assert results.runs.height == 1
    assert sweep.run(out="s").session is None, "nothing is left to be made"


def test_a_panic_where_the_scenario_of_a_point_is_read_is_said_before_anything_runs(
    fetch: Scenario, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("fetch.toml").write_bytes(fetch.text)

    def some(given: bytes, file: str, settings: list[tuple[str, str]], real: list[str]) -> _core.Scenario:
        if (LOSS, "0.123") in settings:
            panic()
        return _core.Scenario(given, file, settings, real)

    monkeypatch.setitem(vars(work), "Scenario", some)
    assert call(["sweep", "fetch.toml", "--vary", f"{LOSS}=0.1,0.123", "--out", "s"]) == 4
    *_, line = capsys.readouterr().err.splitlines()
    said = rf"airloom: {LOSS}=0.123: a fault in airloom at test_sweep.py:\d+: PanicException: index out of bounds: .*"
    assert re.fullmatch(said, line), line
    assert not Path("s").exists()


def test_an_error_that_nobody_foresaw_is_the_error_of_its_run(fetch: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise KeyError("x")

    in_saving(monkeypatch, fails)
    results = fetch.sweep(seeds="1..2", folders=True).run(out="s")
    assert results.failures["seed"].to_list() == [1, 2]
    said = r"a fault in airloom at test_sweep.py:\d+: KeyError: 'x'"
    assert all(re.fullmatch(said, error) for error in results.failures["error"])


def test_a_run_whose_folder_cannot_be_written_is_lost_and_made_when_it_can(
    fetch: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fetch.toml").write_bytes(fetch.text)
    words = ["sweep", "fetch.toml", "--seeds", "1..3", "--folders", "--out", "s"]
    Path("s/runs").mkdir(parents=True)
    Path("s/sweep.json").write_text(json.dumps(fetch.sweep(seeds="1..3", folders=True).manifest()))
    (in_the_way := Path("s/runs/point-0-seed-2")).touch()
    assert call(words) == 4
    said = "s/runs/point-0-seed-2 exists and is not a folder: choose another --out"
    assert f"{said}: seed 2" in capsys.readouterr().err
    assert pl.read_parquet("s/runs.parquet").select("seed", "status").rows() == [(1, "ok"), (2, "lost"), (3, "ok")]
    in_the_way.unlink()
    assert call(words) == 0
    fetch.sweep(seeds="1..3", folders=True).run(out="fresh")
    assert octets(Path("s")) == octets(Path("fresh"))


def test_a_disk_that_is_full_for_one_run_ends_the_session_and_the_next_one_goes_on(
    fetch: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sweep = fetch.sweep(seeds="1..3", folders=True)
    with monkeypatch.context() as patched:
        in_rows(patched, fails)
        with pytest.raises(RunError, match=r"^s: No space left on device; 1 of 3 runs are kept: .* goes on$"):
            sweep.run(out="s", workers=1)
    results = sweep.run(out="s")
    assert results.failures.is_empty()
    assert octets(results.folder) == octets(sweep.run(out="fresh").folder)


def test_a_bearer_alone_can_be_swept() -> None:
    # Its host is real and does nothing in virtual time: each run ends with the scenario's own limit of time.
    scenario = for_bearer("umts-dch", {"rate": "384kbit/s"}).with_keys({"run.until": "1s"})
    results = scenario.sweep({"links.link.loss": [0, 0.1]}, seeds="1..2").run(out="s")
    assert results.runs.height == 4
