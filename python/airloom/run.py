"""One execution of a scenario: made in virtual time, or opened from its folder."""

from __future__ import annotations

import json
import logging
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom._core import __version__
from airloom.errors import Interrupted, RunError, UsageError
from airloom.folder import Folder, Progress
from airloom.json_file import read_json
from airloom.measures import typed
from airloom.places import default_place

if TYPE_CHECKING:
    import polars as pl

    from airloom._core import Results
    from airloom.scenario import Scenario


_log = logging.getLogger(__name__)

#: Version of the tables' columns.
_TABLES_SCHEMA = "1"


class Run:
    """The results of one run, read from its folder when they are asked for."""

    def __init__(self, folder: Path | str) -> None:
        """Opens a run folder; one without `status` in its `run.json` is unfinished and refused."""
        self.folder = Path(folder)
        try:
            manifest = read_json(self.folder / "run.json")
        except UsageError as error:
            raise UsageError(f"{folder} is not a run folder: {error}") from None
        if not isinstance(manifest, dict) or "status" not in manifest:
            raise UsageError(f"{folder}: this run was never finished")
        #: What `run.json` says: scenario, seed, versions, command, clock, status.
        self.manifest: dict[str, Any] = manifest
        #: Of a run that was just made with `plot`: what is to be said about its picture.
        self.notes: list[str] = []

    @cached_property
    def summary(self) -> dict[str, float]:
        """Flat name -> number; names carry their unit."""
        return {name: value for name, value in self._said.items() if isinstance(value, int | float)}

    @cached_property
    def _said(self) -> dict[str, Any]:
        found = read_json(self.folder / "summary.json")
        if not isinstance(found, dict):
            raise UsageError(f"{self.folder / 'summary.json'} is not a summary")
        return found

    @property
    def verdict(self) -> str | None:
        """Of a run in real time: `valid`, `suspect` or `invalid`; `None` in virtual time, where nothing can be late."""
        verdict = self._said.get("verdict")
        return verdict if isinstance(verdict, str) else None

    @property
    def verdict_reasons(self) -> list[str]:
        """Why it is not `valid`, in words."""
        reasons = self._said.get("verdict_reasons")
        return [str(reason) for reason in reasons] if isinstance(reasons, list) else []

    @cached_property
    def packets(self) -> pl.DataFrame:
        """One row per packet or PDU event; only if the scenario records packets."""
        return self._table("packets")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow."""
        return self._table("flows")

    @cached_property
    def pages(self) -> pl.DataFrame:
        """One row per page load."""
        return self._table("pages")

    @cached_property
    def objects(self) -> pl.DataFrame:
        """One row per object of each page: its waterfall; only if the scenario records it."""
        return self._table("objects")

    @cached_property
    def states(self) -> pl.DataFrame:
        """One row per stay in a radio state, and air time."""
        return self._table("states")

    @cached_property
    def congestion(self) -> pl.DataFrame:
        """One row per change of a sender's congestion window or timer; only if the scenario records it."""
        return self._table("congestion")

    @property
    def capture(self) -> Path | None:
        """The capture, if the scenario asked for one."""
        path = self.folder / "trace.pcapng"
        return path if path.exists() else None

    @property
    def qlogs(self) -> list[Path]:
        """Files with the events of QUIC's connections, one for each end; only if the scenario records qlog."""
        return sorted(self.folder.glob("*.sqlog"))

    def _table(self, name: str) -> pl.DataFrame:
        from airloom import tables

        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise UsageError(f'{self.folder} has no table {name!r}: add "{name}" to `record` in [run] and run again')
        rows = tables.read(path)
        # Written as it came: stays and flows when they were over.
        return rows.sort(tables.SORTED_BY[name], maintain_order=True) if self.manifest.get("clock") == "real" else rows

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def simulate(
    scenario: Scenario,
    seed: int | None = None,
    *,
    out: Path | None = None,
    force: bool = False,
    plot: bool = False,
    width_mm: float | None = None,
    progress: Progress | None = None,
) -> Run:
    """Runs a scenario in virtual time and writes its folder. See `Scenario.run`."""
    if plot:
        scenario = with_records(scenario, *_for_a_picture(scenario))
    if seed is not None:
        scenario = scenario.with_seed(seed)
    identity = scenario.run_id("virtual")
    with Folder(out or default_place(scenario.name, identity), identity, force=force) as folder:
        _log.info("simulating %s, seed %d, run %s", scenario.name, scenario.seed, identity)
        before = time.process_time()
        results = scenario._core.simulate(folder.path(""), progress)
        used, simulated = time.process_time() - before, results.summary.get("simulated_s", 0.0)
        _log.info("%.3f s of model time in %.3f s of CPU", simulated, used)
        check(scenario, results)
        run = save(folder, scenario, results, "virtual")
    if plot:
        # Once the folder is complete: whatever becomes of the picture, the run is kept.
        from airloom.plot.whole_run import save_picture

        run.notes = save_picture(run, width_mm)
    return run


def _for_a_picture(scenario: Scenario) -> list[str]:
    """What a picture of its runs is drawn from: for streams, waves and transactions a capture as well."""
    from airloom.scenario import spoken_by

    hosts = scenario.understood["hosts"].values()
    spoken = {name for host in hosts for name in spoken_by(host)}
    spoken |= {name for host in hosts for part in (*host.get("app", []), host.get("proxy") or {}) for name in part}
    return ["packets", "pcapng"] if spoken & {"sctp", "wwp", "wap-browser", "wap-gateway"} else ["packets"]


def measure(scenario: Scenario) -> tuple[dict[str, float], dict[str, pl.DataFrame]]:
    """Runs a scenario in virtual time; the summary and the tables, and no folder."""
    from airloom import tables

    results = scenario._core.simulate(None, None)
    check(scenario, results)
    return results.summary, {name: tables.table(columns) for name, columns in results.tables.items()}


def check(scenario: Scenario, results: Results) -> None:
    """A run that did not come to its end is an error, not a result."""
    simulated = f"after {results.summary.get('simulated_s', 0):.3f} s of simulated time"
    match results.outcome:
        case "limit-reached":
            limit = scenario.understood["run"]["limit"]
            raise RunError(
                f"{scenario.name}: not done within run.limit = {limit}; raise it, or give run.until a duration"
            )
        case "stuck":
            raise RunError(f"{scenario.name}: {simulated} nothing more could happen, and not everything was done")
        case "stopped":
            raise Interrupted(f"{scenario.name}: stopped {simulated}")


def with_records(scenario: Scenario, *kinds: str) -> Scenario:
    """The scenario with its seed, recording these kinds as well."""
    recorded = scenario.understood["run"]["record"]
    missing = [kind for kind in kinds if kind not in recorded]
    if not missing:
        return scenario
    return scenario.with_keys({"run.record": [*recorded, *missing]}).with_seed(scenario.seed)


def metadata(scenario: Scenario) -> dict[str, str]:
    """What each table of its runs says of them."""
    return {
        "airloom.schema": _TABLES_SCHEMA,
        "airloom.scenario": json.dumps(scenario.understood, separators=(",", ":"), ensure_ascii=False),
        "airloom.seed": str(scenario.seed),
        "airloom.version": __version__,
    }


def save(
    folder: Folder,
    scenario: Scenario,
    results: Results,
    clock: str,
    *,
    more: dict[str, Any] | None = None,
) -> Run:
    """Writes the results of a run into its folder, where those of one in real time are in part, and finishes it."""
    understood = scenario.understood
    if results.tables:
        # Imported here, with polars: `airloom --help` and `airloom check` start without it.
        from airloom import tables

        rows = {name: tables.table(columns) for name, columns in results.tables.items()}
        for optional in tables.OPTIONAL:
            if optional not in understood["run"]["record"]:
                rows.pop(optional, None)
        tables.write(rows, folder.path(""), metadata(scenario))
    said = {"verdict": results.verdict, "verdict_reasons": results.verdict_reasons, "grades": results.grades}
    folder.write_json("summary.json", typed(results.summary) | (said if results.verdict else {}))
    manifest = {
        "run_id": scenario.run_id(clock),
        "name": scenario.name,
        "file": scenario.file,
        "overrides": scenario.overrides,
        "seed": scenario.seed,
        "clock": clock,
        "scenario": understood,
    }
    if results.priority:
        manifest["engine"] = {"priority": results.priority, "processors": results.processors}
    return Run(folder.finish({**manifest, **(more or {})}))
