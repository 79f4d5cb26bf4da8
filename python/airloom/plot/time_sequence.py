"""Time-sequence plot: what TCP sent and what the radio link below made of it, on one time axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import NDArray

from airloom.errors import UsageError
from airloom.plot.figure import ACK, DATA, FAINT, LOST, RESENT, Drawing, style

#: TCP sequence numbers and RLC AM sequence numbers count modulo these.
_TCP_MODULUS = 2**32
_RLC_MODULUS = 4096


class _Flow(NamedTuple):
    """A TCP flow as its data sender sees it; times in seconds, numbers in octets from the start."""

    number: int
    point: str
    direction: str
    data: NDArray[np.float64]
    resent: NDArray[np.float64]
    acks: NDArray[np.float64]


def time_sequence(packets: pl.DataFrame, flow: int | None = None) -> Figure:
    """Data, retransmissions and acknowledgements of a TCP flow, and below them the attempts of the radio link.

    `packets` is the packets table of a run; without `flow` the flow that carries most is drawn. The lower plot is
    there if the run recorded RLC PDUs.
    """
    drawn = _flow(packets, flow)
    rlc = _rlc(packets, drawn)
    with style():
        figure = Drawing(figsize=(9.0, 6.5 if rlc is not None else 4.2), layout="constrained")
        if rlc is None:
            axes = [figure.subplots()]
        else:
            axes = list(figure.subplots(2, 1, sharex=True, height_ratios=(3, 2)))
            _draw_rlc(axes[1], rlc)
        _draw_flow(axes[0], drawn)
        axes[-1].set_xlabel("time since the start of the run (s)")
        axes[0].set_xlim(left=0.0)
    return figure


def _flow(packets: pl.DataFrame, wanted: int | None) -> _Flow:
    tcp = packets.filter((pl.col("proto").cast(pl.String) == "tcp") & pl.col("seq").is_not_null())
    if wanted is not None:
        tcp = tcp.filter(pl.col("flow") == wanted)
    seen = tcp.filter(pl.col("event").cast(pl.String).is_in(["tx", "retx"])).with_columns(
        pl.col("point", "dir").cast(pl.String)
    )
    if seen.is_empty():
        what = "TCP flow" if wanted is None else f"TCP flow {wanted}"
        raise UsageError(f"no {what} in the packets table: nothing to draw")
    # The sender of the data is where most octets of the flow were handed to a link first.
    totals = seen.group_by("flow", "dir", "point").agg(pl.col("len").sum(), pl.col("t_ns").min())
    number, direction = totals.sort(["len", "flow"], descending=[True, False]).row(0)[:2]
    sent = seen.filter((pl.col("flow") == number) & (pl.col("dir") == direction))
    first = sent.sort("t_ns", maintain_order=True)["point"][0]
    sent = sent.filter(pl.col("point") == first).sort("t_ns", maintain_order=True)

    # Retransmissions are judged by the numbers, as any observer would: data below what was sent before.
    sequence = _unwrapped(sent["seq"], _TCP_MODULUS)
    start = float(sequence[0])
    bare = int(sent["len"].min())  # type: ignore[arg-type]
    carries = (sent["len"] > bare).to_numpy()
    times = sent["t_ns"].to_numpy() / 1e9
    sequence = (sequence - start)[carries]
    times = times[carries]
    highest = np.maximum.accumulate(np.concatenate(([-1.0], sequence[:-1]))) if len(sequence) else sequence
    again = sequence <= highest

    back = tcp.with_columns(pl.col("point", "dir", "event").cast(pl.String)).filter(
        (pl.col("flow") == number)
        & (pl.col("dir") != direction)
        & (pl.col("point") == first)
        & (pl.col("event") == "rx")
        & pl.col("ack").is_not_null()
    )
    back = back.sort("t_ns", maintain_order=True)
    acks = np.column_stack((back["t_ns"].to_numpy() / 1e9, _unwrapped(back["ack"], _TCP_MODULUS) - start))
    points = np.column_stack((times, sequence))
    return _Flow(number, first, direction, points[~again], points[again], acks)


def _unwrapped(numbers: pl.Series, modulus: int) -> NDArray[np.float64]:
    """Numbers that count modulo `modulus`, as they would be without it."""
    return np.unwrap(numbers.cast(pl.Float64).to_numpy(), period=modulus)


def _rlc(packets: pl.DataFrame, flow: _Flow) -> pl.DataFrame | None:
    """PDUs with sequence numbers on the flow's way, with `n` the number without its modulus."""
    ids = packets.filter(pl.col("flow") == flow.number)["pkt_id"].unique()
    rlc = packets.with_columns(pl.col("point", "proto", "dir", "event").cast(pl.String)).filter(
        (pl.col("proto") == "rlc") & (pl.col("dir") == flow.direction) & pl.col("seq").is_not_null()
    )
    sent = rlc.filter(pl.col("event").is_in(["tx", "retx"]) & pl.col("pkt_id").is_in(ids.implode()))
    if sent.is_empty():
        return None
    # On a cell each mobile has a point of its own: the flow's is where most of its packets are seen.
    point = sent.group_by("point").len().sort(["len", "point"], descending=[True, False])["point"][0]
    rlc = rlc.filter(pl.col("point") == point).sort("t_ns", maintain_order=True)
    # Sent again or lost, a PDU is within half a window of the newest one: the same unwrapping fits all events.
    return rlc.with_columns(pl.Series("n", _unwrapped(rlc["seq"], _RLC_MODULUS)))


def _draw_flow(axes: Axes, flow: _Flow) -> None:
    axes.plot(*flow.acks.T, drawstyle="steps-post", color=ACK, linewidth=1.0, label="acknowledged")
    axes.plot(*flow.data.T, "|", color=DATA, markersize=5, label="data")
    axes.plot(*flow.resent.T, "x", color=RESENT, markersize=5, label=f"sent again by TCP ({len(flow.resent)})")
    axes.set_ylabel("TCP sequence number (octets)")
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.set_title(f"TCP flow {flow.number} at {flow.point}", loc="left")
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="upper left")


def _draw_rlc(axes: Axes, rlc: pl.DataFrame) -> None:
    axes.set_title(f"RLC at {rlc['point'][0]}", loc="left")
    sent = rlc.filter(pl.col("event").is_in(["tx", "retx"]))
    lost = rlc.filter(pl.col("event") == "drop")
    first = sent.filter(pl.col("event") == "tx")
    again = sent.filter(pl.col("event") == "retx")
    for rows, marker, colour, size, label in (
        (first, "|", FAINT, 4, "first attempt"),
        (again, "x", RESENT, 4, f"further attempt ({len(again)})"),
        (lost, ".", LOST, 3, f"lost on the air ({len(lost)})"),
    ):
        axes.plot(
            rows["t_ns"].to_numpy() / 1e9, rows["n"].to_numpy(), marker, color=colour, markersize=size, label=label
        )
    axes.set_ylabel("RLC sequence number\n(PDUs)")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="upper left", ncols=3)
