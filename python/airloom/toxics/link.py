"""Toxics on a link: its delays, rates, losses and state."""

from __future__ import annotations

import random
import re
import threading
from contextlib import suppress
from typing import Any

from airloom._core import DriveError, ScenarioError
from airloom.control import Control
from airloom.toxics.toxic import Refused, Toxic, Toxics

#: A link without a rate has this one after it had another: no link goes back to none.
_FAST = "100Gbit/s"
#: With jitter the delay is drawn anew so often.
_REDRAW_S = 0.02
_WAYS = {"upstream": "uplink", "downstream": "downlink"}
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


class LinkToxics:
    """Keeps a link as its toxics say."""

    def __init__(self, control: Control, target: str, understood: dict[str, Any], seed: int) -> None:
        """`understood` is the scenario; `target` a link of it."""
        self.toxics = Toxics()
        self._control = control
        self._target = target
        link = understood["links"][target]
        self._base = {key: link.get(key) for key in ("delay", "rate", "loss")}
        self._random = random.Random(seed)
        #: Held from the change of a toxic until the link is as that says: what draws anew in between sees neither.
        self._lock = threading.RLock()
        self._made: dict[tuple[str, str], str | float] = {}
        self._is_down = False
        self._over = threading.Event()
        self._jitter: threading.Thread | None = None

    def add(self, said: Any) -> Toxic:
        """A further toxic. Raises `Refused`, and all is as it was."""
        return self._change(Toxic.read(said), None)

    def update(self, name: str, said: Any) -> Toxic:
        """Changes one. Raises `Refused`, and all is as it was."""
        with self._lock:
            before = self.toxics.get(name)
            return self._change(Toxic.read(said, before), before)

    def _change(self, toxic: Toxic, before: Toxic | None) -> Toxic:
        with self._lock:
            self.toxics.put(toxic, is_new=before is None)
            try:
                self.apply()
            except Refused:
                if before is None:
                    self.toxics.remove(toxic.name)
                else:
                    self.toxics.put(before, is_new=False)
                raise
            return toxic

    def remove(self, name: str) -> None:
        """Takes one away. Raises `Refused`."""
        with self._lock:
            self.toxics.remove(name)
            self.apply()

    def clear(self) -> None:
        """Takes all away. Raises `Refused`."""
        with self._lock:
            self.toxics.clear()
            self.apply()

    def switch(self, faults: Any) -> dict[str, bool]:
        """Puts faults of the link on and off, `{"corrupt": "off"}`; how all of them are. Raises `Refused`."""
        with self._lock:
            self._set({"faults": faults}, keep=True)
            return next(dict(c.faults) for c in self._control.conditions() if c.target == self._target)

    def close(self) -> None:
        """Changes nothing any more."""
        self._over.set()

    def apply(self, *, keep: bool = True) -> None:
        """Makes the link as the toxics say. Raises `Refused` for what this link cannot do.

        What is drawn anew all the time is not to `keep`: no run has a timeline of that length.
        """
        with self._lock:
            toxics = [toxic for toxic in self.toxics.all() if toxic.toxicity > 0]
            changes: dict[str, Any] = {}
            for key, wanted in (("delay", self._delay), ("rate", self._rate), ("loss", self._loss)):
                for stream, way in _WAYS.items():
                    if (key, way) in self._made or _those(toxics, stream, _KIND[key]):
                        value = wanted(stream, toxics)
                        if self._made.get((key, way)) != value:
                            changes.setdefault(key, {})[way] = value
            is_down = any(toxic.kind == "outage" for toxic in toxics)
            if is_down != self._is_down:
                changes["state"] = "down" if is_down else "up"
            if changes:
                self._set(changes, keep=keep)
            self._is_down = is_down
            if any(toxic.attributes.get("jitter") for toxic in toxics) and self._jitter is None:
                self._jitter = threading.Thread(target=self._redraw, name="airloom-jitter", daemon=True)
                self._jitter.start()

    def _set(self, changes: dict[str, Any], *, keep: bool) -> None:
        try:
            self._control.set(self._target, changes, keep=keep)
        except ScenarioError as error:
            raise Refused(400, f"this link cannot do it: {error}") from None
        except DriveError as error:
            raise Refused(500, str(error)) from None
        for key, ways in changes.items():
            if key not in ("state", "faults"):
                self._made |= {(key, way): value for way, value in ways.items()}

    def _redraw(self) -> None:
        while not self._over.wait(_REDRAW_S):
            with self._lock:
                # What the link cannot do now it may do the next time.
                with suppress(Refused):
                    self.apply(keep=False)
                if not any(toxic.attributes.get("jitter") for toxic in self.toxics.all()):
                    self._jitter = None
                    return

    def _delay(self, stream: str, toxics: list[Toxic]) -> str:
        ms = _of(self._base["delay"], stream, _ms, 0.0)
        if ms is None:
            raise Refused(400, "this link has delays of its own, which would not come back")
        for toxic in _those(toxics, stream, "latency"):
            jitter = toxic.attributes["jitter"]
            ms += toxic.attributes["latency"] + (self._random.uniform(-jitter, jitter) if jitter else 0.0)
        return f"{max(0, round(ms * 1e6))}ns"

    def _rate(self, stream: str, toxics: list[Toxic]) -> str:
        # toxiproxy's KB are of 1000 octets.
        rates = [toxic.attributes["rate"] * 8 for toxic in _those(toxics, stream, "bandwidth")]
        if not rates:
            return str(_of(self._base["rate"], stream, str, _FAST))
        if min(rates) == 0:
            raise Refused(400, "rate is a number above 0; nothing passes with an outage")
        return f"{max(1, round(1000 * min(rates)))}bit/s"

    def _loss(self, stream: str, toxics: list[Toxic]) -> float:
        base = _of(self._base["loss"], stream, lambda loss: loss, 0.0)
        if isinstance(base, dict):
            if base.get("model") != "bernoulli":
                raise Refused(400, "this link has losses of its own, which would not come back")
            base = base.get("loss", 0.0)
        return max([float(base), *(toxic.attributes["loss"] for toxic in _those(toxics, stream, "packet_loss"))])


#: The toxic that is about each key of a link.
_KIND = {"delay": "latency", "rate": "bandwidth", "loss": "packet_loss"}


def _those(toxics: list[Toxic], stream: str, kind: str) -> list[Toxic]:
    return [toxic for toxic in toxics if toxic.stream == stream and toxic.kind == kind]


def _of(base: Any, stream: str, read: Any, default: Any) -> Any:
    """What a key of the scenario says of one direction."""
    way = _WAYS[stream]
    said = base[way] if isinstance(base, dict) and way in base else base
    return default if said is None else read(said)


def _ms(time: Any) -> float | None:
    """Of a delay that is always the same; recorded ones have no number of their own."""
    match = re.fullmatch(r"([0-9.]+)(ns|us|ms|s)", time) if isinstance(time, str) else None
    return float(match[1]) * _MS[match[2]] if match else None
