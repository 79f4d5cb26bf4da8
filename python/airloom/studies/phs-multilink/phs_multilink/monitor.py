"""What the instruments show: the PIAFS monitor on one circuit, and the sequence of a file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.capture import packets
from airloom.run import Run
from airloom.study import Computation, Data, Evidence, Setting, at_default, exact

from .bursts import round_trip

#: Numbers of frames.
MODULUS = 127
#: ns from one frame to the next.
SLOT = 10_000_000
#: Octets of the headers of IPv4 and TCP without options.
HEADERS = 40
#: The four points of the paper's instruments.
INSTRUMENTS = ("bundle.member.0.piafs.ul.tx", "bundle.member.0.piafs.dl.tx", "client.lan.ip", "server.ethernet.ip")


class Frame(NamedTuple):
    """A row of the monitor."""

    at_ns: int
    #: None: a frame without user data.
    number: int | None
    request: int
    is_new: bool
    is_error: bool


def frames(run: Run, direction: str) -> list[Frame]:
    """The frames of a direction of circuit 0 as they left."""
    seen = run.packets.cast({"point": pl.String, "event": pl.String})
    rows = seen.filter(pl.col("point") == f"bundle.member.0.piafs.{direction}.tx").sort("t_ns")
    lost = set(rows.filter(pl.col("event") == "drop")["t_ns"].to_list())
    sent = rows.filter(pl.col("event") != "drop").select("t_ns", "seq", "ack", "event")
    return [Frame(t, seq, ack, event == "tx", t in lost) for t, seq, ack, event in sent.iter_rows()]


class Burst(NamedTuple):
    """A row of frames in error, from the first to the end of the last one's slot."""

    begin_s: float
    end_s: float


#: CRC errors go on for so long in the paper's log.
BURST_S = 0.37


def burst(run: Run) -> Burst:
    """The row of errors, among the frames that circuit 0 carries upwards, whose length is nearest the paper's."""
    found: list[Burst] = []
    was_error = False
    for frame in frames(run, "ul"):
        end = (frame.at_ns + SLOT) / 1e9
        if frame.is_error:
            found.append(Burst(found.pop().begin_s if was_error else frame.at_ns / 1e9, end))
        was_error = frame.is_error
    return min(found, key=lambda b: abs(b.end_s - b.begin_s - BURST_S))


def wrong_numbers(data: Data) -> Evidence:
    """K04: new frames that have not the next number."""
    wrong = 0
    for direction in ("ul", "dl"):
        last = 0
        for frame in frames(data.run("monitor"), direction):
            if frame.number is None or not frame.is_new:
                continue
            wrong += frame.number != last % MODULUS + 1
            last = frame.number
    return Setting(wrong)


def wrong_requests(data: Data) -> Evidence:
    """K04: what a direction asks for next never goes back, and does not move while nothing arrives."""
    run = data.run("shown")
    wrong = 0
    for direction, other in (("ul", "dl"), ("dl", "ul")):
        arrives = frames(run, other)
        # A frame acts on its receiver 25 ms after it left.
        acted = np.asarray([frame.at_ns + 25_000_000 for frame in arrives if not frame.is_error])
        before = None
        for frame in frames(run, direction):
            if before is not None:
                step = (frame.request - before.request) % MODULUS
                heard = np.searchsorted(acted, frame.at_ns, "right") - np.searchsorted(acted, before.at_ns, "right")
                wrong += step > MODULUS // 2 or (step > 0 and heard == 0)
            before = frame
    return Setting(int(wrong))


def repeats(data: Data) -> Evidence:
    """K04: slots from a failed frame to its repetition, where its neighbours had arrived."""
    slots = []
    for _, run in data.runs("monitor"):
        rows = frames(run, "dl")
        by_number: dict[int, list[Frame]] = {}
        for frame in rows:
            if frame.number is not None:
                by_number.setdefault(frame.number, []).append(frame)
        for n, frame in enumerate(rows[1:-1], 1):
            if frame.is_error and frame.is_new and frame.number is not None:
                near = rows[max(0, n - 8) : n] + rows[n + 1 : n + 8]
                again = next((f for f in by_number[frame.number] if f.at_ns > frame.at_ns), None)
                if again is not None and not any(other.is_error for other in near):
                    slots.append((again.at_ns - frame.at_ns) / SLOT)
    return exact(float(np.median(slots)), "")


def header(data: Data) -> Evidence:
    """K19: the protocol field of the first fragment on circuit 0."""
    point = "bundle.member.0.ppp.dl.tx"
    first = next(p for p in packets(data.run("shown").folder / "trace.pcapng") if p.point == point)
    return Setting(first.octets[2:4].hex())


def instruments(data: Data) -> Evidence:
    """K21: which of them the run has."""
    there = set(data.run("shown").packets["point"].unique().to_list())
    return Setting(sum(point in there for point in INSTRUMENTS))


class Sequence(NamedTuple):
    """The data segments of a file as they leave their sender."""

    #: Seconds.
    at: NDArray[np.float64]
    #: Octets of the file up to the segment's end.
    octets: NDArray[np.float64]
    #: Was it sent before?
    is_again: NDArray[np.bool_]


#: Where an analyzer sees them, and in which direction, by that of the file.
ANALYZER = {"get": ("server.ethernet.ip", "dl"), "put": ("client.lan.ip", "ul")}


def sequence(run: Run, way: str) -> Sequence:
    """The segments of the connection that carries the file."""
    point, direction = ANALYZER[way]
    rows = run.packets.filter((pl.col("point") == point) & (pl.col("proto") == "tcp") & (pl.col("dir") == direction))
    flow = rows.filter(pl.col("len") > 1000)["flow"].mode().first()
    rows = rows.filter((pl.col("flow") == flow) & (pl.col("len") > HEADERS)).sort("t_ns", maintain_order=True)
    begins = rows["seq"].cast(pl.Int64).to_numpy()
    # The first is the SYN, which has a number of its own and options.
    rows, begins, first = rows[1:], begins[1:], begins[0] + 1
    ends = begins + rows["len"].cast(pl.Int64).to_numpy() - HEADERS
    so_far = np.maximum.accumulate(ends)
    again = np.concatenate([[False], ends[1:] <= so_far[:-1]])
    return Sequence(rows["t_ns"].to_numpy() / 1e9, (ends - first).astype(np.float64), again)


COMPUTE: dict[str, Computation] = {
    "K04.rtt": round_trip,
    "K04.numbers": at_default(wrong_numbers),
    "K04.request": at_default(wrong_requests),
    "K04.repeats": at_default(repeats),
    "K19.header": at_default(header),
    "K21.points": at_default(instruments),
}
