"""What the views of a live control share: rows with rates and keys, and what was done last."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

from airloom._core import DriveError, ScenarioError
from airloom.control import Condition, Control, Passed

#: Rates are those of so many seconds.
_OVER_S = 1.0
#: The engine is not asked more often than that, however many look.
_EVERY_S = 0.2
#: Between a link and what may go wrong on it; no name of a link has a dot.
_FAULTS = ".faults."
#: Of the first rows.
_KEYS = "123456789"


class Row(NamedTuple):
    """A link, a part of it, or something that may go wrong on it (`radio.faults.corrupt`), for reading."""

    target: str
    state: str
    is_wanted: bool
    #: The key that toggles it.
    key: str | None
    #: kbit/s that came out at the far end.
    uplink_kbit_s: float | None
    downlink_kbit_s: float | None
    #: Frames sent and lost, both directions together.
    frames: int | None
    errors: int | None

    @property
    def verb(self) -> str:
        """What a press of its button does."""
        if _FAULTS in self.target:
            return "switch off" if self.is_wanted else "switch on"
        return "release" if self.is_wanted else "set up"

    @property
    def press(self) -> tuple[str, dict[str, object]]:
        """The change that this is: `target` and `set` of an entry of a timeline."""
        link, _, fault = self.target.partition(_FAULTS)
        if fault:
            return link, {"faults": {fault: "off" if self.is_wanted else "on"}}
        return self.target, {"state": "down" if self.is_wanted else "up"}


class Desk:
    """Reads a control for views, and toggles what they point at. Threads may share it."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self._lock = threading.Lock()
        self._readings: deque[tuple[float, list[Condition]]] = deque()
        self._looked = -_EVERY_S
        #: What was done last, or why not, in one line.
        self.said = ""
        #: Is the run over?
        self.is_over = False

    def look(self) -> tuple[float, list[Row]]:
        """The second of the run, and its links."""
        with self._lock:
            if not self.is_over and time.monotonic() - self._looked >= _EVERY_S:
                try:
                    self._readings.append(self.control.look())
                except DriveError:
                    self.is_over = True
                self._looked = time.monotonic()
                while len(self._readings) > 2 and self._readings[1][0] <= self._readings[-1][0] - _OVER_S:
                    self._readings.popleft()
            if not self._readings:
                return 0.0, []
            (then, before), (now, conditions) = self._readings[0], self._readings[-1]
            return now, _rows(before, conditions, now - then)

    def toggle(self, target: str) -> str:
        """Releases what is in service, and sets up what is not; switches faults; what was done, or why not."""
        _, rows = self.look()
        row = next((row for row in rows if row.target == target), None)
        return self.change(*row.press) if row else self.change(target, {"state": "up"})

    def change(self, target: str, changes: object) -> str:
        """Makes a change; what was done, or why not."""
        try:
            at = self.control.set(target, changes)
        except (ScenarioError, DriveError) as error:
            said = str(error)
        else:
            said = f"{at:.3f} s: {target} {_in_words(changes)}"
        with self._lock:
            # Whoever looks next sees what came of it.
            self._looked = -_EVERY_S
            self.said = said
        return said

    def by_key(self, key: str) -> str | None:
        """What this key toggles."""
        return next((row.target for row in self.look()[1] if row.key == key), None)


def _in_words(changes: object) -> str:
    if isinstance(changes, dict):
        return ", ".join(f"{key} {_in_words(value)}" for key, value in changes.items())
    return str(changes)


def _rows(before: list[Condition], now: list[Condition], elapsed_s: float) -> list[Row]:
    then = {condition.target: condition for condition in before}
    # Keys are for what has no parts of its own: the circuits, not their bundle.
    parents = {target.rpartition(".member.")[0] for target in (c.target for c in now)}
    keys = iter(_KEYS)
    rows = []
    for condition in now:
        old = then.get(condition.target, condition)
        up = _rate(old.uplink, condition.uplink, elapsed_s)
        down = _rate(old.downlink, condition.downlink, elapsed_s)
        both = [way for way in (condition.uplink, condition.downlink) if way]
        rows.append(
            Row(
                target=condition.target,
                state=condition.state,
                is_wanted=condition.is_wanted,
                key=None if condition.target in parents else next(keys, None),
                uplink_kbit_s=up,
                downlink_kbit_s=down,
                frames=sum(way.frames for way in both) if both else None,
                errors=sum(way.errors for way in both) if both else None,
            )
        )
        for fault, is_on in condition.faults.items():
            target = f"{condition.target}{_FAULTS}{fault}"
            rows.append(Row(target, "on" if is_on else "off", is_on, None, None, None, None, None))
    return rows


def _rate(then: Passed | None, now: Passed | None, elapsed_s: float) -> float | None:
    if then is None or now is None:
        return None
    return max(0, now.octets - then.octets) * 8e-3 / elapsed_s if elapsed_s > 0 else 0.0
