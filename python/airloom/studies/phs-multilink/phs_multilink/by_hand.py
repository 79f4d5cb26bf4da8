"""The control of the system while it works: what `control.py` saw in real time (K20)."""

from __future__ import annotations

from typing import Any

from airloom.study import Computation, Data, Setting
from airloom.study.data import NotMade


def seen(data: Data) -> dict[str, Any]:
    """What the program wrote."""
    found: dict[str, Any] = data.program("control")
    if not found:
        raise NotMade("made in real time, by the full study, on a machine that allows it")
    return found


COMPUTE: dict[str, Computation] = {
    "K20.released": lambda data: Setting(sorted(seen(data)["released"])),
    "K20.set-up": lambda data: Setting(sorted(seen(data)["set up"])),
    "K20.traffic": lambda data: Setting("yes" if seen(data)["octets"] > 0 else "no"),
}
