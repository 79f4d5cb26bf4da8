"""W33: what it costs to shrink the window for a burst of errors that is over at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from airloom.study import Computation, Data, Evidence, Numbers, value

from .transfers import BASE, MODEL, completion, joules, total

#: The same TCP, but for what a loss does to it.
REACTIONS = {
    "reno": "Reno: halves, or begins anew",
    "probing": "TCP-Probing: probes, and goes on where nothing changed",
}


def _ratio(of: Callable[..., Numbers], data: Data) -> Evidence:
    reno, probing = (of(data, "bursts", reaction=reaction) for reaction in REACTIONS)
    return value(reno / probing, "")


COMPUTE: dict[str, Computation] = {
    "W33.time": partial(_ratio, completion),
    "W33.energy": partial(_ratio, joules),
}


def costs(data: Data) -> tuple[list[str], list[list[str]]]:
    """Time, octets and energy of both reactions."""
    rows = []
    for reaction, says in REACTIONS.items():
        time = completion(data, "bursts", reaction=reaction).mean()
        over = total(data, "bursts", reaction=reaction).mean() - BASE
        spent = joules(data, "bursts", reaction=reaction).mean()
        rows.append([says, f"{time:.1f}", f"{over / 1000:.1f}", f"{spent:.1f}"])
    return ["a third dropped for 0.3 s every 5 s", "time (s)", "overhead (kB)", f"energy ({MODEL})"], rows
