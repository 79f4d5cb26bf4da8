"""Pairs of runs, one in real time and one in virtual time: what comparisons of both clocks have in common.

Every cell of a table is run with several seeds. A run in real time comes first and is made again while its engine was
too late for its figures to be believed; the simulation then repeats it, beginning at the same moment of the model's
time, so that a radio channel's transmission intervals and the fates of their blocks lie alike.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, Protocol, TypedDict, TypeVar, Unpack

import polars as pl

from airloom import _core, interpreter, tables
from airloom.errors import LabError, RunError, UsageError
from airloom.laboratory import Program
from airloom.scenario import Scenario, parse
from airloom.validate.kept import Kept
from airloom.validate.tasks import Progress, Task, carry_out

#: How often a run is made whose engine was too late. A host that stands still does so several times within a minute, a
#: run of a third of a second is late by one such moment: of 60, 21 were made again, and three were late three times.
TRIES = 8

#: Programs ask to run before others, as the engine does: on a busy machine a program that waits for its turn delays
#: its host's answers, which is not what is compared.
FIRST = """\
import os, sys
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
except PermissionError:
    pass
"""

_AIRLOOM = "from airloom.cli import main\nmain()\n"


class Cell(Protocol):
    """One row of the table."""

    @property
    def name(self) -> str:
        """What the row is called."""

    @property
    def bar(self) -> float:
        """How far the medians may be apart, as a part of that in real time."""


class Judged(Protocol):
    """What was measured in real time, or simulated."""

    @property
    def verdict(self) -> str | None:
        """Of real time: `valid`, `suspect` or `invalid`."""


class Run(Judged, Protocol):
    """What was measured in one run."""

    @property
    def seconds(self) -> float:
        """How long it took, in the model's time."""


C = TypeVar("C", bound=Cell)
R = TypeVar("R", bound=Run)
J = TypeVar("J", bound=Judged)

#: A pair as it comes from a worker: both runs, and how often the real one was made again.
Made = tuple[R, R, int]


@dataclass
class Verdict(Generic[C, R]):
    """One cell: a pair of runs for each seed."""

    cell: C
    real: list[R] = field(default_factory=list)
    simulated: list[R] = field(default_factory=list)
    #: Runs in real time that were made again because the engine was late.
    repeated: int = 0

    @property
    def real_s(self) -> float:
        """Median seconds in real time."""
        return statistics.median(r.seconds for r in self.real)

    @property
    def simulated_s(self) -> float:
        """Median seconds in virtual time."""
        return statistics.median(r.seconds for r in self.simulated)

    @property
    def error(self) -> float:
        """Relative error of the simulated median."""
        return self.simulated_s / self.real_s - 1

    @property
    def errors(self) -> list[float]:
        """The same seed by seed."""
        return [s.seconds / r.seconds - 1 for s, r in zip(self.simulated, self.real, strict=True)]

    @property
    def invalid(self) -> int:
        """Runs in real time that were late even at the last try."""
        return sum(r.verdict == "invalid" for r in self.real)

    @property
    def met(self) -> bool:
        """Is the median close enough, and can the runs be believed?"""
        return abs(self.error) <= self.cell.bar and self.invalid == 0


def chosen(cells: Sequence[C], pattern: str) -> list[C]:
    """The cells whose names match `pattern` (`*` for any text)."""
    found = [cell for cell in cells if fnmatch(cell.name, pattern)]
    if not found:
        raise UsageError(f"no cell matches {pattern!r}; there are: {', '.join(cell.name for cell in cells)}")
    return found


def believed(run: Callable[[], J]) -> tuple[J, int]:
    """Runs in real time until the engine was not late, `TRIES` times at most; and how often it was made again."""
    found, tries = run(), 1
    while found.verdict == "invalid" and tries < TRIES:
        found, tries = run(), tries + 1
    return found, tries - 1


class How(TypedDict, total=False):
    """What `fill` is told besides."""

    jobs: int
    executor: Executor | None
    kept: Kept[Any] | None
    progress: Progress


def fill(
    verdicts: Sequence[Verdict[C, R]],
    seeds: Sequence[int],
    pair: Callable[[C, int], Made[R]],
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    kept: Kept[Made[R]] | None = None,
    progress: Progress = lambda _done, _share: None,
    weight: Callable[[C], float] = lambda _: 1.0,
) -> None:
    """Makes the pairs of all verdicts, in the order given; `progress` is told how many are done, and which share.

    `pair` makes that of a cell and a seed: the run in real time, the simulated one, how often the first was repeated.
    It runs in `jobs` processes, which end at once where this one has to, or wherever `executor` says. What `kept` has
    is not made again; `weight` says how much work a cell is.
    """
    wanted = [(verdict.cell, seed) for verdict in verdicts for seed in seeds]
    tasks = [Task(f"{cell.name}, seed {seed}", weight(cell), partial(pair, cell, seed)) for cell, seed in wanted]
    made = carry_out(tasks, jobs=jobs, executor=executor, kept=kept, progress=progress)
    for verdict, (real, simulated, repeated) in zip(
        [verdict for verdict in verdicts for _ in seeds], made, strict=True
    ):
        verdict.real.append(real)
        verdict.simulated.append(simulated)
        verdict.repeated += repeated


def compare(
    cells: Sequence[C], seeds: Sequence[int], pair: Callable[[C, int], Made[R]], **how: Unpack[How]
) -> list[Verdict[C, R]]:
    """A verdict for each cell; see `fill`."""
    verdicts: list[Verdict[C, R]] = [Verdict(cell) for cell in cells]
    fill(verdicts, seeds, pair, **how)
    return verdicts


def to_json(made: tuple[Any, Any, int], one: Callable[[Any], Any] = asdict) -> dict[str, Any]:
    """A pair as plain data; `one` turns a run into that."""
    real, simulated, repeated = made
    return {"real": one(real), "simulated": one(simulated), "repeated": repeated}


def from_json(said: Mapping[str, Any], one: Callable[[Any], R]) -> Made[R]:
    """The pair that `to_json` turned into that."""
    return one(said["real"]), one(said["simulated"]), int(said["repeated"])


@dataclass(frozen=True)
class Fetch:
    """Something that a client fetched."""

    #: From the request to the last packet of the reply, in the model's time.
    seconds: float
    #: When the client's first packet came to the link, in the model's time.
    began_ns: int
    #: Packets of the reply.
    packets: int
    #: Of real time: `valid`, `suspect` or `invalid`.
    verdict: str | None = None


def scenario(
    title: str, path: Sequence[str], hosts: Mapping[str, Any], links: Mapping[str, Any], seed: int, point: str
) -> Scenario:
    """A network whose packets are recorded at one point."""
    run = {"seed": seed, "record": ["packets"], "points": [point]}
    whole = {"title": title, "path": path, "hosts": hosts, "links": links, "run": run}
    return parse(json.dumps(whole), title)


def recorded(scenario: Scenario, work: Callable[[_core.Lab], None]) -> tuple[pl.DataFrame, _core.Results]:
    """The packets of a laboratory in which this work was done, and its results."""
    with TemporaryDirectory(prefix="airloom-") as folder:
        lab = _core.Lab(scenario._core, Path(folder))
        try:
            work(lab)
        finally:
            results = lab.stop()
        packets = tables.read(Path(folder) / "packets.parquet").sort("t_ns", maintain_order=True)
    return packets, results


def at(packets: pl.DataFrame, point: str) -> pl.DataFrame:
    """Those at one point, with their events as texts."""
    return packets.with_columns(pl.col("point", "event").cast(pl.String)).filter(pl.col("point") == point)


def airloom(lab: _core.Lab, host: str, *words: str) -> Program:
    """`airloom` with these words on `host`."""
    return python(lab, host, _AIRLOOM, *words, quiet=True)


def carry_through(lab: _core.Lab, host: str, words: Sequence[str], patience_s: float, title: str) -> None:
    """The same to its end; `RunError` if it fails, or is not over in time."""
    with airloom(lab, host, *words) as client:
        try:
            code = client.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise RunError(f"{title}: not done after {patience_s:g} s") from None
    if code:
        raise RunError(f"{title}: the client ended with {code}")


def python(lab: _core.Lab, host: str, text: str, *arguments: str, quiet: bool = False) -> Program:
    """Starts a few lines of Python on `host`; what they print comes by a pipe, errors are shown unless `quiet`."""
    words = interpreter.python("-c", FIRST + text, *arguments)
    errors = subprocess.DEVNULL if quiet else None
    return Program(lab, host, words, (subprocess.DEVNULL, subprocess.PIPE, errors), None, True)


def expect(program: Program, word: str, title: str) -> None:
    """Waits for the line with `word` that says that a program is there; `LabError` if it is not."""
    assert program.stdout is not None
    line = program.stdout.readline()
    if not line or word not in line:
        raise LabError(f"{title}: a program did not start")
