"""What the instruments show: the PIAFS monitor on one circuit, and the sequence of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from airloom.capture import packets
from airloom.run import Run
from airloom.study import Data, Evidence, Setting, exact, value

from .bursts import round_trip
from .transfers import at_default

#: Numbers of frames.
MODULUS = 127
#: ns from one frame to the next.
SLOT = 10_000_000
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


def pause(sweep: str, **where: object) -> Callable[[Data], Evidence]:
    """K11: the longest time without new octets."""
    return lambda data: value(data.per_seed(sweep, "runs", "client.longest_pause_s", **where), "s")


def sequence(run: Run) -> tuple[list[float], list[float]]:
    """Data segments as the client sees them: seconds, and octets of the file so far (kB)."""
    rows = run.packets.filter(
        (pl.col("point") == "client.lan.ip") & (pl.col("proto") == "tcp") & (pl.col("dir") == "dl")
    )
    flow = rows.filter(pl.col("len") > 1000)["flow"].mode().first()
    rows = rows.filter((pl.col("flow") == flow) & (pl.col("len") > 100)).sort("t_ns")
    first = rows["seq"].min()
    assert isinstance(first, int)
    return (rows["t_ns"] / 1e9).to_list(), ((rows["seq"] - first) / 1000).to_list()


COMPUTE: dict[str, Callable[[Data], Evidence]] = {
    "K04.rtt": round_trip,
    "K04.numbers": at_default(wrong_numbers),
    "K04.request": at_default(wrong_requests),
    "K04.repeats": at_default(repeats),
    "K11.linear": pause("static", way="get", circuits=6),
    "K11.stalls": pause("people", way="get"),
    "K19.header": at_default(header),
    "K21.points": at_default(instruments),
}
