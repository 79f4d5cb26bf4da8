"""Segments of WWP as they stand in a capture, and the waves and probe cycles that they make up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from airloom.capture import packets
from airloom.run import Run

#: The number in the IP header.
_PROTOCOL = 253
#: Names of kinds by their number; 13 is the segment that ends a short wave.
_KINDS = (
    *("SYN", "SYN_ACK", "DATA", "N-S_ACK", "PROBE1", "PR1_ACK", "PROBE2", "PR2_ACK", "PROBE3"),
    *("FIN", "FIN_ACK", "ACK", "RST", "DATA", "PIECE"),
)
_SHORT_WAVE_ENDS = 13
#: The level that the first wave has: the highest.
FIRST_LEVEL = 3


class Segment(NamedTuple):
    """A segment with the header of six octets, where it was seen."""

    at_s: float
    #: It comes from the host that sends the data.
    is_forward: bool
    kind: str
    ends_short_wave: bool
    level: int
    wave: int
    number: int
    #: Octets of the segment, without IP.
    octets: int


class Wave(NamedTuple):
    """A wave as it left."""

    #: The level that the receiver had told.
    told: int
    level: int
    segments: list[Segment]


class Cycle(NamedTuple):
    """A probe cycle that was completed, as the receiver saw it."""

    at_s: float
    kinds: tuple[str, ...]
    #: Its two round-trip times.
    trips_s: tuple[float, float]
    #: The level told before, and by the N-S_ACK that ended it.
    before: int
    after: int

    @property
    def jitter_s(self) -> float:
        """The difference of the two times."""
        return abs(self.trips_s[0] - self.trips_s[1])


def seen(run: Run, host: str) -> tuple[Segment, ...]:
    """The segments that pass a host's link, in order of time. A run whose folder was read before is not read again."""
    assert run.capture is not None
    return _read(run.capture, run.capture.stat().st_mtime_ns, host)


@lru_cache(maxsize=64)
def _read(capture: Path, _written_ns: int, host: str) -> tuple[Segment, ...]:
    return tuple(_segments(capture, host))


def _segments(capture: Path, host: str) -> Iterator[Segment]:
    opener = b""
    for point, at_s, octets, _ in packets(capture):
        if not point.startswith(f"{host}.") or octets[9] != _PROTOCOL:
            continue
        opener = opener or octets[12:16]
        header = octets[(octets[0] & 15) * 4 :]
        kind = header[0] >> 4
        yield Segment(
            at_s=at_s,
            is_forward=octets[12:16] == opener,
            kind=_KINDS[kind],
            ends_short_wave=kind == _SHORT_WAVE_ENDS,
            level=header[0] & 15,
            wave=header[1],
            number=int.from_bytes(header[2:5]),
            octets=int.from_bytes(octets[2:4]) - (octets[0] & 15) * 4,
        )


def waves(run: Run) -> list[Wave]:
    """The waves that the sender sent."""
    found: list[Wave] = []
    told = FIRST_LEVEL
    for segment in seen(run, "sender"):
        if segment.kind == "DATA":
            if not found or found[-1].segments[-1].wave != segment.wave:
                found.append(Wave(told, segment.level, []))
            found[-1].segments.append(segment)
        elif segment.kind == "N-S_ACK" and found and segment.wave == found[-1].segments[-1].wave:
            told = segment.level
    return found


def cycles(run: Run) -> list[Cycle]:
    """The probe cycles that were completed."""
    found: list[Cycle] = []
    told, newest = FIRST_LEVEL, -1
    steps: dict[str, float] = {}
    for segment in seen(run, "receiver"):
        if segment.kind == "PROBE1" and segment.number > newest:
            newest, steps = segment.number, {segment.kind: segment.at_s}
        elif segment.kind in ("PR1_ACK", "PROBE2", "PR2_ACK", "PROBE3") and segment.number == newest and steps:
            steps.setdefault(segment.kind, segment.at_s)
        elif segment.kind == "N-S_ACK":
            if next(reversed(steps), "") == "PROBE3":
                trips = (steps["PROBE2"] - steps["PR1_ACK"], steps["PROBE3"] - steps["PR2_ACK"])
                found.append(Cycle(segment.at_s, (*steps, segment.kind), trips, told, segment.level))
            told, steps = segment.level, {}
    return found
