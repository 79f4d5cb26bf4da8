"""The runs of a gate over one link."""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from airloom._core import DriveError, ScenarioError
from airloom.emulation import exported, find
from airloom.errors import CannotWrite, RunError, Unsupported, UsageError, one_line
from airloom.gate.file import Gate
from airloom.scenario import Scenario, load

#: The file into which a command may write a JSON object of further numbers.
MEASURES = "AIRLOOM_MEASURES"
#: Of what a command prints so much is kept.
_MOST_OUTPUT = 1 << 20
_MOST_MEASURES = 1 << 20
_CANNOT = 3


class Measured(NamedTuple):
    """What came of a gate's runs over a link."""

    gate: Gate
    link: str
    #: Of the runs that count.
    seeds: list[int]
    summaries: list[dict[str, float]]
    #: Runs that were made again and never were valid: seed and reason.
    invalid: list[tuple[int, str]]
    #: Runs whose page was not loaded, which count as runs without its measures: seed and reason.
    unloaded: list[tuple[int, str]]
    #: Why nothing, or not all, was measured; and is it something that this machine cannot do?
    error: str | None = None
    is_unsupported: bool = False

    def values(self, measure: str) -> list[float | None]:
        """A measure of every run; `None` of one that does not have it."""
        return [float(s[measure]) if measure in s else None for s in self.summaries]


def check_links(gate: Gate) -> None:
    """Raises `UsageError` or `ScenarioError` where a link, or a key that is set, is mistaken; nothing is run."""
    for link in gate.links:
        _runs(Measured(gate, link, [], [], [], []), Path)


def measure(gate: Gate, place: Callable[[], Path], done: Callable[[], object] = lambda: None) -> Iterator[Measured]:
    """Makes the runs, link by link. What takes real time has its results in `place()`; `done` is told of each run."""
    for link in gate.links:
        found = Measured(gate, link, [], [], [], [])
        try:
            run = _runs(found, place)
            for seed in range(gate.seed, gate.seed + gate.runs):
                summary = run(seed)
                if summary is not None:
                    found.seeds.append(seed)
                    found.summaries.append(summary)
                done()
        except (RunError, Unsupported, DriveError, UsageError, ScenarioError, CannotWrite) as error:
            cannot = isinstance(error, Unsupported) or getattr(error, "exit_code", 4) == _CANNOT
            found = found._replace(error=str(error), is_unsupported=cannot)
        yield found


def _runs(found: Measured, place: Callable[[], Path]) -> Callable[[int], dict[str, float] | None]:
    """What makes a run with a seed; it gives nothing for one that was not valid."""
    gate, link = found.gate, found.link
    if gate.kind == "url":
        from airloom.page_load.measure import check_page

        check_page(
            str(gate.what),
            link,
            loopback=gate.loopback,
            outside=gate.outside,
            overrides=_page_keys(gate),
            http=gate.http,
        )
        return lambda seed: _until_valid(found, seed, place(), partial(_page, found, seed))
    scenario = _scenario(gate, link)
    if gate.is_virtual:
        return lambda seed: _simulate(scenario.with_seed(seed))
    return lambda seed: _until_valid(found, seed, place(), partial(_command, gate, link, scenario.with_seed(seed)))


def _simulate(scenario: Scenario) -> dict[str, float]:
    from airloom.run import check

    results = scenario._core.simulate(None, None)
    check(scenario, results)
    return results.summary


def _scenario(gate: Gate, link: str) -> Scenario:
    beside = gate.folder / link
    name = str(beside) if beside.is_file() else link
    if gate.is_virtual:
        return load(name, gate.settings)
    found = find(name, gate.settings, outside=gate.outside, loopback=gate.loopback)
    return found if gate.lateness_limit is None else found.with_keys({"run.lateness_limit": gate.lateness_limit})


def _until_valid(
    found: Measured, seed: int, place: Path, run: Callable[[Path], tuple[dict[str, float], list[str]]]
) -> dict[str, float] | None:
    reasons: list[str] = []
    for attempt in range(found.gate.retries + 1):
        again = f"-again-{attempt}" if attempt else ""
        summary, reasons = run(place / f"{found.gate.name}-{found.link.replace('/', '-')}-{seed}{again}")
        if not reasons:
            return summary
    found.invalid.append((seed, "; ".join(reasons)))
    return None


def _command(gate: Gate, link: str, scenario: Scenario, folder: Path) -> tuple[dict[str, float], list[str]]:
    """The command's exit code and time, what it wrote itself, and the figures of its link."""
    from airloom.laboratory import lab

    folder.mkdir(parents=True)
    measures = folder / "measures.json"
    variables = {**os.environ, **exported(link, scenario), MEASURES: str(measures.resolve())}
    words = gate.what if isinstance(gate.what, str) else list(gate.what)
    reads, writes = os.pipe()
    # What the command leaves behind may print on: the end comes with that of the laboratory.
    keeper = threading.Thread(target=_keep, args=(reads, folder / "output.txt"), daemon=True)
    keeper.start()
    try:
        with lab(scenario, enter=False, out=folder / "run") as laboratory:
            start = time.monotonic()
            program = laboratory.popen(words, stdin=subprocess.DEVNULL, stdout=writes, stderr=writes, env=variables)
            try:
                code = program.wait(gate.timeout_s)
            except subprocess.TimeoutExpired:
                raise RunError(
                    f"{link}, seed {scenario.seed}: the command took longer than {gate.timeout_s:g} s"
                ) from None
            elapsed = time.monotonic() - start
    finally:
        os.close(writes)
        keeper.join()
    # After a signal as a shell says it: no code of success is below 0.
    said = 128 - code if code < 0 else code
    summary: dict[str, float] = {**laboratory.summary, "elapsed_s": elapsed, "exit_code": said}
    summary |= _written(measures)
    results = laboratory.results
    assert results is not None
    return summary, results.verdict_reasons if results.verdict == "invalid" else []


def _keep(reads: int, place: Path) -> None:
    """The beginning of what a program prints; the rest is read and forgotten."""
    left = _MOST_OUTPUT
    with open(reads, "rb", buffering=0) as output, place.open("wb") as kept:
        while octets := output.read(1 << 16):
            kept.write(octets[:left])
            left = max(0, left - len(octets))


def _written(measures: Path) -> dict[str, float]:
    try:
        with measures.open("rb") as file:
            # As a float each number is one, however many digits it has: infinite, as 1e400 is.
            found: Any = json.loads(file.read(_MOST_MEASURES), parse_int=float)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{measures}: {one_line(error)}") from None
    if not isinstance(found, dict):
        raise RunError(f"{measures}: expected an object of numbers")
    numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _page_keys(gate: Gate) -> dict[str, object]:
    limit = {} if gate.lateness_limit is None else {"run.lateness_limit": gate.lateness_limit}
    return {**gate.settings, **limit}


def _page(found: Measured, seed: int, folder: Path) -> tuple[dict[str, float], list[str]]:
    """A load of the page in Chromium."""
    from airloom.page_load import load_page

    gate = found.gate
    try:
        loaded = load_page(
            str(gate.what),
            found.link,
            "none",
            folder,
            loopback=gate.loopback,
            outside=gate.outside,
            seed=seed,
            timeout_s=gate.timeout_s,
            overrides=_page_keys(gate),
            http=gate.http,
        )
    except UsageError as error:
        # Address, link and keys are known to be right: nobody serves the page any more.
        found.unloaded.append((seed, str(error)))
        return {}, []
    if loaded.page_s is None:
        if not loaded.reasons:
            found.unloaded.append((seed, str(loaded.seen["error"])))
        return loaded.summary, loaded.reasons
    summary = {**loaded.summary, "page_load_s": loaded.page_s, "status": float(loaded.status or 0)}
    for name, seen in (("speed_index_s", "speed_index"), ("first_paint_s", "paint"), ("largest_paint_s", "largest")):
        if (value := loaded.seen.get(seen)) is not None:
            summary[name] = value if seen == "speed_index" else value / 1e3
    return summary, loaded.reasons
