"""How far a sweep is, and what its time went to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from airloom.sweep.work import Made


class State(NamedTuple):
    """How far a sweep is."""

    done: int
    total: int
    failed: int
    #: Runs per second of this session so far, and seconds until all are done at this rate; 0 if not known.
    rate: float
    left_s: float


#: Called after every task, and twice a second while none ends.
Progress = Callable[[State], None]


class Times:
    """What a session spent, in seconds; `share` is how much of the workers' time was inside simulations."""

    def __init__(self) -> None:
        """Starts the clock."""
        self.start = time.perf_counter()
        self.begun: float | None = None
        self.runs = 0
        #: Tasks that went out, and those that came back.
        self.tasks = 0
        self.groups = 0
        self.simulating = 0.0
        self.in_tasks = 0.0
        self.slots = 1

    def take(self, made: Made) -> None:
        """Counts what a group took."""
        self.runs += made.runs
        self.groups += 1
        self.simulating += made.simulating_ns / 1e9
        self.in_tasks += made.task_ns / 1e9

    def entry(self) -> dict[str, Any]:
        """For `sessions.json`."""
        wall = time.perf_counter() - self.start
        return {
            "runs": self.runs,
            "groups": self.groups,
            "workers": self.slots,
            "wall_s": round(wall, 3),
            "in_tasks_s": round(self.in_tasks, 3),
            "simulating_s": round(self.simulating, 3),
            "share_of_tasks": round(self.simulating / self.in_tasks, 4) if self.in_tasks else None,
            "share_of_workers": round(self.simulating / (wall * self.slots), 4) if self.runs else None,
        }
