"""`Sweep`: a scenario, what is varied, and seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import _core
from airloom._core import DriveError, ScenarioError, __version__
from airloom.errors import Interrupted, RunError, UsageError
from airloom.json_file import read_json
from airloom.places import command, give_back
from airloom.scenario import Scenario, as_toml
from airloom.sweep import axes as axes_
from airloom.sweep import executors, layout
from airloom.sweep.axes import Axis, Label, Point
from airloom.sweep.layout import SweepFolder
from airloom.sweep.runner import Runner, TooManyFailures
from airloom.sweep.times import Progress
from airloom.sweep.work import Variant, fault, names
from airloom.sweep.work import scenario as scenario_at

if TYPE_CHECKING:
    from airloom.sweep.results import SweepResults

#: Tables that can be kept of every run besides the summary; packets are too many: ask for folders.
TABLES = ("pages", "objects", "flows", "states", "congestion")

#: With `until_ci`: the fewest seeds, the most, and by how much their number grows between two looks.
FEWEST_SEEDS = 30
MOST_SEEDS = 2000
_GROWTH = 1.5


class Sweep:
    """All combinations of some levels, each with all seeds. Seed n is the same radio at every point."""

    def __init__(
        self,
        scenario: Scenario,
        vary: Mapping[str, Iterable[Any]],
        seeds: str | int | Iterable[int],
        *,
        tables: Sequence[str] = ("pages", "flows"),
        folders: bool = False,
        real_time: bool = False,
        command: Sequence[str] | None = None,
    ) -> None:
        """See `Scenario.sweep`. Every point is read at once: what is wrong with one is said before anything runs."""
        self.scenario = scenario
        self.axes: tuple[Axis, ...] = axes_.axes(vary)
        self.points: tuple[Point, ...] = axes_.points(self.axes)
        self.seeds: Sequence[int] = axes_.seeds(seeds)
        for name in tables:
            if name not in TABLES:
                raise UsageError(f"no table {name!r} can be kept of every run; valid: {', '.join(TABLES)}")
        self.tables = tuple(tables)
        self.folders = folders
        self.real_time = real_time
        self.command = None if command is None else tuple(command)
        if self.command and not real_time:
            raise UsageError("a command runs in real time only: add --emulate, or leave the command out")
        #: The scenario at each point.
        self.scenarios: dict[Variant, _core.Scenario] = {}
        for point in self.points:
            self._read(point)

    def _read(self, point: Point) -> None:
        if "run.seed" in point.settings:
            raise UsageError("run.seed is not varied: say which seeds with seeds (--seeds 1..20)")
        try:
            variant = self.variant(point.number)
            self.scenarios[variant] = scenario_at(variant)
        except ScenarioError as error:
            raise UsageError(str(error).replace("--set ", "--vary ", 1)) from None
        except (OSError, UsageError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            settings = ", ".join(f"{key}={value}" for key, value in point.settings.items())
            raise RunError(f"{settings or self.name}: {fault(error)}") from None

    @property
    def name(self) -> str:
        """That of the scenario."""
        return self.scenario.name

    @cached_property
    def sweep_id(self) -> str:
        """Ten hexadecimal digits that follow from scenario, axes, version and clock; not from the seeds."""
        # A number means the same whether Python gave it or the command line did, as a text.
        axes = [
            [a.key, [[lv.label, {key: as_toml(v) for key, v in lv.settings}] for lv in a.levels]] for a in self.axes
        ]
        inputs = [self._scenario, axes, self.tables, self.folders, self.clock, self.command, __version__]
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def clock(self) -> str:
        """`virtual` or `real`."""
        return "real" if self.real_time else "virtual"

    @property
    def _scenario(self) -> dict[str, Any]:
        understood = self.scenario.understood
        understood["run"].pop("seed")
        return understood

    @property
    def _axes(self) -> list[dict[str, Any]]:
        return [
            {"key": a.key, "levels": [{"label": lv.label, "set": dict(lv.settings)} for lv in a.levels]}
            for a in self.axes
        ]

    @property
    def axis_names(self) -> tuple[str, ...]:
        """What the axes are called."""
        return tuple(axis.key for axis in self.axes)

    @cached_property
    def labels(self) -> list[tuple[Label, ...]]:
        """The labels of each point, by its number: those of an axis are of one kind."""
        of_axes = [axes_.cells([p.levels[n].label for p in self.points]) for n in range(len(self.axes))]
        return [tuple(of_axis[n] for of_axis in of_axes) for n in range(len(self.points))]

    def variant(self, point: int) -> Variant:
        """The scenario at a point, as a worker gets it."""
        settings = {**self.scenario.overrides, **self.points[point].settings}
        texts = tuple((key, as_toml(value)) for key, value in settings.items())
        return Variant(self.scenario.text, self.scenario.file, texts, self.scenario.real)

    def manifest(self) -> dict[str, Any]:
        """What `sweep.json` says."""
        return {
            "schema": layout.SCHEMA,
            "sweep_id": self.sweep_id,
            "name": self.name,
            "file": self.scenario.file,
            "overrides": self.scenario.overrides,
            "clock": self.clock,
            "axes": self._axes,
            "points": len(self.points),
            "seeds": axes_.seeds_text(self.seeds),
            "tables": list(self.tables),
            "folders": self.folders,
            "run_command": self.command,
            "scenario": self._scenario,
            "version": __version__,
            "command": command(),
            "start_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }

    def run(
        self,
        *,
        workers: int | None = None,
        on: str | None = None,
        executor: Executor | None = None,
        out: Path | str | None = None,
        force: bool = False,
        max_failures: int | None = None,
        until_ci: float | None = None,
        measure: str | None = None,
        progress: Progress | None = None,
    ) -> SweepResults:
        """Makes the runs that are not there yet and opens the results.

        `out` is the folder, by default one under `runs/`; the same call goes on where an earlier one was stopped, and
        makes only what is missing when there are more seeds. Other results in it are replaced with `force` only.
        Runs go to `workers` threads of this process (default: one per core), to a Dask cluster (`on`, such as
        `dask://host:8786` or `scheduler-file:PATH`), or to any `executor`. With `until_ci=0.02` seeds are taken until
        the half width of the 95 % interval of the mean of `measure` is at most 2 % of the mean at every point, at least
        30 and at most all of `seeds`. With more than `max_failures` failed runs it gives up; without, it goes on:
        `results.failures` has them.

        >>> import airloom as al
        >>> sweep = al.load("umts-page").sweep({"links.radio.loss.downlink": [0, 0.1]}, seeds="1..3")
        >>> results = sweep.run()
        >>> results.runs.height
        6
        """
        if workers is not None and workers < 1:
            raise UsageError(f"workers are 1 or more, not {workers}")
        place = Path(out) if out is not None else layout.default_place(self.name, self.sweep_id)
        folder = SweepFolder(place)
        # The cluster is looked for first: without one, no folder is made.
        with self._where(workers, on, executor) as where, folder.open(self.manifest(), force=force):
            runner = Runner(self, folder, where, max_failures, progress)
            try:
                if until_ci is None:
                    runner.run(self.seeds)
                else:
                    self._until(folder, runner, until_ci, measure)
                self._finish(folder, runner, where.name)
            except TooManyFailures:
                folder.finish(names(self.tables), [])
                self._finish(folder, runner, where.name)
                raise
            except (OSError, DriveError) as error:
                # Parts that were written stay; only what was under way is made again.
                why = f"{place}: {getattr(error, 'strerror', None) or error}; {_kept(runner, folder)}"
                raise RunError(f"{why}: when that is mended, the same command goes on") from None
            except KeyboardInterrupt:
                kept = _kept(runner, folder)
                raise Interrupted(f"interrupted: {kept}, the same command goes on with them") from None
            except SystemExit as ended:
                ended.add_note(f"stopped: {_kept(runner, folder)}, the same command goes on with them")
                raise
        give_back(chain((place,), place.rglob("*")))
        # Not before the end: a table library takes longer to import than a thousand short runs.
        from airloom.sweep.results import SweepResults

        return SweepResults(place)

    def _finish(self, folder: SweepFolder, runner: Runner, where: str) -> None:
        folder.parts.rmdir()
        path = folder.place / "sessions.json"
        before = read_json(path) if path.exists() else []
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        folder.write_json("sessions.json", [*before, {"end_utc": now, "on": where, **runner.times.entry()}])
        self._say_seeds(folder, runner)

    def _say_seeds(self, folder: SweepFolder, runner: Runner) -> None:
        """Writes down which seeds the tables have: not all that were asked for may be made yet, or more of them."""
        import numpy as np

        made = runner.seeds_made()
        is_all = np.array_equal(made, np.sort(np.fromiter(self.seeds, np.uint64, len(self.seeds))))
        seeds = axes_.seeds_text(self.seeds if is_all else made.tolist())
        manifest = read_json(folder.place / layout.MANIFEST)
        if manifest["seeds"] != seeds:
            folder.write_json(layout.MANIFEST, {**manifest, "seeds": seeds})

    def _until(self, folder: SweepFolder, runner: Runner, wanted: float, measure: str | None) -> None:
        """Takes more seeds until every point's mean is known well enough.

        All points get the same seeds, so that pairs stay whole. The looks are at fixed numbers of seeds: an interrupted
        sweep stops at the same one.
        """
        from airloom.analysis.stop import USUAL, is_precise

        count = min(FEWEST_SEEDS, len(self.seeds))
        while True:
            runner.run(self.seeds[:count])
            if count == len(self.seeds):
                return
            self._say_seeds(folder, runner)
            found = runner.finished(self.seeds[:count], USUAL if measure is None else [measure])
            if is_precise(found, measure, wanted, points=len(self.points)):
                return
            count = min(int(count * _GROWTH), len(self.seeds))

    def _where(
        self, workers: int | None, on: str | None, executor: Executor | None
    ) -> AbstractContextManager[executors.Place]:
        if executor is not None:
            return executors.given(executor, workers)
        if on is not None:
            if self.real_time:
                raise UsageError("emulated runs need this machine's cores: leave --on out")
            return executors.on(on)
        return executors.here(workers, alone=self.real_time)

    def __repr__(self) -> str:
        """Name and size."""
        return f"Sweep({self.name!r}, {len(self.points)} points x {len(self.seeds)} seeds)"


def _kept(runner: Runner, folder: SweepFolder) -> str:
    """How many runs a session leaves that is over."""
    with suppress(OSError, UsageError):  # what was counted is about as true
        folder.tidy()
        runner.done = len(folder.done())
    return f"{runner.done} of {runner.total} runs are kept"
