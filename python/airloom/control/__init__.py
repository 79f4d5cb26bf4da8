"""Live control: changes the links of a run in real time by hand, and sees how they are.

`Lab.control` has one, and `airloom emulate --control` and `--control-page` are views of one. A change is what an entry
of a timeline is, without its time: it is made at once, and written down with the time at which it was, so that the run
can be repeated in virtual time (`replay.json` in its folder).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from airloom import _core
from airloom.errors import UsageError
from airloom.folder import Folder

#: A value for both directions, or one for each: `{"downlink": "64kbit/s"}`.
Value = str | float | Mapping[str, str | float]

#: The file of a run folder that has the scenario with the changes that were made by hand in its timeline.
REPLAY = "replay.json"


class Passed(NamedTuple):
    """What passed a link in one direction since the run began."""

    #: Frames that left the sender (of a link without frames: packets).
    frames: int
    #: Those of them that were lost on the way.
    errors: int
    #: Octets of packets that came out at the far end.
    octets: int


class Condition(NamedTuple):
    """How a link, or a part of it, is."""

    #: As the timeline names it: `bundle.member.3`.
    target: str
    #: In a word or two: `up`, `down`, `setting up`, `negotiating`; a member of a bundle that is gone while its ends do
    #: not know is `lost`.
    state: str
    #: Is it in service, or on its way there?
    is_wanted: bool
    #: By direction; `None` where it is not counted for this part alone.
    uplink: Passed | None
    downlink: Passed | None
    #: What may go wrong on it (`corrupt`, `nat`, ...), and whether it is switched on.
    faults: Mapping[str, bool] = MappingProxyType({})


class Control:
    """Changes the links of a run that goes on; threads may share it."""

    def __init__(self, core: _core.Control) -> None:
        """Use `Lab.control`."""
        self._core = core

    def change(
        self,
        target: str,
        *,
        state: str | None = None,
        rate: Value | None = None,
        delay: Value | None = None,
        loss: Value | None = None,
        queue: Value | None = None,
        faults: Mapping[str, str] | None = None,
    ) -> float:
        """Changes a link, or a part of it, as an entry of a timeline does; says at which second of the run.

        Several changes are made at the same moment. What makes no sense raises `ScenarioError` with one line that says
        why, and the run is as it was (if a link itself refuses a part, the parts before it stay made, and stand in no
        timeline); `DriveError` if the run is over.

        >>> import airloom
        >>> with airloom.lab("mlppp", overrides={"copies": 2}, enter=False) as link:
        ...     at = link.control.change("link.member.1", state="down")
        ...     [c.is_wanted for c in link.control.conditions()]
        [True, True, False]
        """
        given = {"state": state, "rate": rate, "delay": delay, "loss": loss, "queue": queue, "faults": faults}
        return self.set(target, {key: value for key, value in given.items() if value is not None})

    def set(self, target: str, changes: object, *, keep: bool = True) -> float:
        """The same with a table as it stands under `set` in a timeline; written down only with `keep`."""
        try:
            text = json.dumps(changes, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"change: {error}") from None
        return self._core.change(target, text, keep) / 1e9

    def conditions(self) -> list[Condition]:
        """How all links and their parts are: each link, then what it consists of. `DriveError` if the run is over."""
        return self.look()[1]

    def look(self) -> tuple[float, list[Condition]]:
        """The same, after the second of the run at which it was so."""
        at, rows = self._core.look()
        conditions = []
        for target, state, is_wanted, passed, faults in rows:
            up, down = (Passed(*passed[0]), Passed(*passed[1])) if passed else (None, None)
            conditions.append(Condition(target, state, is_wanted, up, down, dict(faults)))
        return at / 1e9, conditions

    def stop(self) -> None:
        """Ends the run, as if it had come to its end by itself."""
        self._core.stop()

    @property
    def changes(self) -> list[dict[str, Any]]:
        """What was changed, as entries of a timeline: `at`, `target`, `set`."""
        return json.loads(self._core.timeline)  # type: ignore[no-any-return]

    @property
    def replay(self) -> dict[str, Any]:
        """The scenario whose timeline makes these changes too."""
        return json.loads(self._core.replay)  # type: ignore[no-any-return]


def keep(control: Control | None, folder: Folder) -> dict[str, Any]:
    """Writes the scenario with the changes into a run folder, if there were any; what its `run.json` says of them."""
    changes = control.changes if control else []
    if control and changes:
        folder.write_json(REPLAY, control.replay)
    return {"changes": changes} if changes else {}
