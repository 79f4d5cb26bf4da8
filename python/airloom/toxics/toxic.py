"""The kinds of toxics and their attributes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

#: By kind: attributes and their defaults. All but the last two are toxiproxy's, with its units: ms, KB/s, octets, us.
KINDS: dict[str, dict[str, float]] = {
    "latency": {"latency": 0, "jitter": 0},
    "bandwidth": {"rate": 0},
    "slow_close": {"delay": 0},
    "timeout": {"timeout": 0},
    "reset_peer": {"timeout": 0},
    "slicer": {"average_size": 0, "size_variation": 0, "delay": 0},
    "limit_data": {"bytes": 0},
    "packet_loss": {"loss": 0},  # probability for each packet
    "outage": {},
}
#: What is done to the link; the rest is done to connections.
OF_LINKS = ("latency", "bandwidth", "packet_loss", "outage")
STREAMS = ("upstream", "downstream")
_LARGEST = 1e15


class Refused(Exception):
    """What was asked for makes no sense, or is not there."""

    def __init__(self, status: int, why: str) -> None:
        """`status` as in HTTP."""
        super().__init__(why)
        self.status = status


class Toxic(NamedTuple):
    """Something that is done to what goes one way."""

    name: str
    kind: str
    #: `upstream` (from clients) or `downstream`.
    stream: str
    #: The share of connections that it is done to.
    toxicity: float
    attributes: dict[str, float]
    #: Another one for each that was added: one that was taken away and added again is a new one.
    number: int = 0

    @staticmethod
    def read(said: Any, before: Toxic | None = None) -> Toxic:
        """A toxic as a client says it; what it leaves out is as `before`. Raises `Refused`."""
        if not isinstance(said, Mapping):
            raise Refused(400, "bad request body: expected an object")
        kind = before.kind if before else said.get("type")
        if not isinstance(kind, str) or kind not in KINDS:
            raise Refused(400, f"invalid toxic type; valid: {', '.join(KINDS)}")
        stream = before.stream if before else said.get("stream") or "downstream"
        if stream not in STREAMS:
            raise Refused(400, "stream was invalid, can be either upstream or downstream")
        name = before.name if before else said.get("name") or f"{kind}_{stream}"
        if not isinstance(name, str) or len(name) > 200:
            raise Refused(400, "bad request body: the name is a text")
        toxicity = _number(said.get("toxicity", before.toxicity if before else 1.0), "toxicity")
        if toxicity > 1 or (kind in OF_LINKS and toxicity not in (0, 1)):
            raise Refused(
                400, "toxicity is 0 to 1, and for what is done to the link, which all connections share, 0 or 1"
            )
        given = said.get("attributes") or {}
        if not isinstance(given, Mapping):
            raise Refused(400, "bad request body: attributes are an object")
        attributes = dict(before.attributes if before else KINDS[kind])
        # Others are passed over, as toxiproxy does.
        attributes |= {key: _number(given[key], key) for key in KINDS[kind] if key in given}
        if attributes.get("loss", 0) > 1:
            raise Refused(400, "loss is a probability, 0 to 1")
        return Toxic(name, kind, stream, toxicity, attributes, before.number if before else 0)

    def document(self) -> dict[str, Any]:
        """As clients know it."""
        attributes = {key: int(value) if value == int(value) else value for key, value in self.attributes.items()}
        return {
            "name": self.name,
            "type": self.kind,
            "stream": self.stream,
            "toxicity": self.toxicity,
            "attributes": attributes,
        }


def _number(said: Any, what: str) -> float:
    # A comparison is right for an integer of any length, infinity, and what is no number.
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < _LARGEST:
        raise Refused(400, f"bad request body: {what} is a number that is not below 0")
    return said


class Toxics:
    """The toxics of a proxy, in the order in which they came. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._toxics: dict[str, Toxic] = {}
        self._count = 0

    def all(self) -> list[Toxic]:
        """All of them."""
        with self._lock:
            return list(self._toxics.values())

    def of_connections(self, stream: str) -> list[Toxic]:
        """Those that are done to the octets of connections this way."""
        return [toxic for toxic in self.all() if toxic.stream == stream and toxic.kind not in OF_LINKS]

    def get(self, name: str) -> Toxic:
        """The one of this name. Raises `Refused`."""
        with self._lock:
            if name not in self._toxics:
                raise Refused(404, "toxic not found")
            return self._toxics[name]

    def put(self, toxic: Toxic, *, is_new: bool) -> None:
        """Adds or changes one. Raises `Refused`."""
        with self._lock:
            if is_new and toxic.name in self._toxics:
                raise Refused(409, "toxic already exists")
            if is_new and len(self._toxics) >= 100:
                raise Refused(409, "a hundred toxics are enough")
            self._count += is_new
            self._toxics[toxic.name] = toxic._replace(number=self._count) if is_new else toxic

    def remove(self, name: str) -> None:
        """Takes one away. Raises `Refused`."""
        self.get(name)
        with self._lock:
            self._toxics.pop(name, None)

    def clear(self) -> None:
        """Takes all away."""
        with self._lock:
            self._toxics.clear()
