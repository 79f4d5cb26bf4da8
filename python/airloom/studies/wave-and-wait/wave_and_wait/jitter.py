"""W32: do the two round-trip times of a probe cycle tell errors from congestion? Other traffic shares the link."""

from __future__ import annotations

import numpy as np

from airloom.study import Computation, Data, Numbers, value

from .segments import FIRST_LEVEL, Cycle, cycles

#: What there is besides the transfer: drops by the element, and other traffic in the same queue.
KINDS = {
    "errors": "drops alone",
    "smooth": "drops, and a steady flow of 1 Mbit/s",
    "bursts": "drops, and pages of 150 kB",
    "queue": "four long transfers, and no drops",
}


def by_seed(data: Data, kind: str) -> list[list[Cycle]]:
    """The probe cycles of each run."""
    data.at_default_only()
    return [cycles(run) for _, run in data.runs("cross", kind=kind)]


def says_something(cycle: Cycle) -> bool:
    """Could the decision have been another one? From level 1 both an error and a short queue lead to level 1."""
    return (cycle.before, cycle.after) != (1, 1)


def is_passing(cycle: Cycle) -> bool:
    """Was the loss taken for an error that passed: does the level stay, or come back from 0 to the highest?"""
    return cycle.after >= (cycle.before or FIRST_LEVEL)


def jitter(data: Data, kind: str) -> Numbers:
    """The mean difference of the two times, one number per seed."""
    return np.asarray([np.mean([cycle.jitter_s for cycle in of_run]) for of_run in by_seed(data, kind)])


def passing(data: Data, kind: str) -> Numbers:
    """The share of decisions that took the loss for an error."""
    decisions = [[is_passing(c) for c in of_run if says_something(c)] for of_run in by_seed(data, kind)]
    return np.asarray([np.mean(of_run) for of_run in decisions])


def smallest(data: Data) -> float:
    """The smallest round-trip time of all."""
    return min(min(cycle.trips_s) for of_run in by_seed(data, "errors") for cycle in of_run)


COMPUTE: dict[str, Computation] = {
    "W32.bursts": lambda data: value(jitter(data, "bursts") / jitter(data, "smooth"), ""),
    "W32.smooth": lambda data: value(jitter(data, "smooth") / smallest(data), ""),
    "W32.decisions": lambda data: value((passing(data, "errors") + 1 - passing(data, "queue")) / 2, ""),
}


def confusion(data: Data) -> tuple[list[str], list[list[str]]]:
    """Decisions by what was really there."""
    rows = []
    for kind, says in KINDS.items():
        of_kind = [cycle for of_run in by_seed(data, kind) for cycle in of_run]
        clear = [cycle for cycle in of_kind if says_something(cycle)]
        kept, waits = sum(map(is_passing, clear)), sum(cycle.after == 0 for cycle in clear)
        cells = [f"{n} ({n / len(clear):.0%})" for n in (kept, len(clear) - kept - waits, waits)]
        mean = 1000 * float(np.mean([cycle.jitter_s for cycle in of_kind]))
        longer = 1000 * float(np.mean([max(cycle.trips_s) for cycle in of_kind]))
        rows.append([says, f"{len(of_kind)}", *cells, f"{longer:.0f}", f"{mean:.1f}"])
    return ["there was", "cycles", "level kept", "taken down", "wait", "longer time (ms)", "difference (ms)"], rows
