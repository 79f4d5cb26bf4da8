"""How far a sweep is, and what its time went to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class State(NamedTuple):
    """How far a sweep is."""

    done: int
    total: int
    failed: int
    #: Runs per second of this session so far, and seconds until all are done at this rate; 0 if not known.
    rate: float
    left_s: float


#: Called some times a second.
Progress = Callable[[State], None]


class Times:
    """What a session spent, in seconds; `share_of_workers` is how much of the workers' time was inside simulations."""

    def __init__(self, slots: int) -> None:
        """Starts the clock; `slots` is the number of workers."""
        self.start = time.perf_counter()
        self.begun: float | None = None
        self.runs = 0
        self.simulating = 0.0
        self.slots = slots

    def rate(self) -> float:
        """Runs per second."""
        spent = time.perf_counter() - (self.begun or time.perf_counter())
        return self.runs / spent if spent > 0 else 0.0

    def entry(self) -> dict[str, Any]:
        """For `sessions.json`."""
        wall = time.perf_counter() - self.start
        return {
            "runs": self.runs,
            "workers": self.slots,
            "wall_s": round(wall, 3),
            "simulating_s": round(self.simulating, 3),
            "share_of_workers": round(self.simulating / (wall * self.slots), 4) if self.runs else None,
        }
