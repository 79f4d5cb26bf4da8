"""What both protocols make of on- and off-phases of ten seconds, the first one off (W22, W31)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from airloom.run import Run
from airloom.study import Computation, Data, Numbers, value

from .transfers import BASE, seconds

#: Length of both phases, seconds.
PHASE_S = 10.0
#: What counts as the whole window, octets: TCP's buffer less one segment, and a wave of the highest level.
_WHOLE = {"tcp": 16 * 1024 - 2048, "wwp": 36 * 1024}
#: Octets in front of the application's: IP and the transport.
_HEADERS = {"tcp": 20 + 20, "wwp": 20 + 6}


def is_off(at_s: float) -> bool:
    """Is this moment in a phase without errors?"""
    return int(at_s // PHASE_S) % 2 == 0


def recovery_s(run: Run, protocol: str) -> float:
    """How long after the end of an on-phase the sender sends with its whole window again: mean, at most a phase.

    A row is written when something is sent or acknowledged, so that a window which is whole while its timer sleeps does
    not count. Off-phases in which the transfer ends do not count either.
    """
    rows = run.congestion.filter(pl.col("host").cast(pl.String) == "sender").sort("t_ns", maintain_order=True)
    at_s, window = rows["t_ns"].to_numpy() / 1e9, rows["cwnd"].to_numpy()
    # A cycle of probes has no wave; fast recovery counts what left the network, and is no window yet.
    sends = ~rows["state"].cast(pl.String).is_in(["probe", "recovery", "fast-recovery"]).to_numpy()
    is_whole = (window >= _WHOLE[protocol]) & sends
    found = []
    for begin in np.arange(2 * PHASE_S, run.summary["completion_s"] - PHASE_S, 2 * PHASE_S):
        later = at_s[(at_s > begin) & is_whole]
        found.append(min(float(later[0]) - begin if len(later) else PHASE_S, PHASE_S))
    return float(np.mean(found))


def arrived(run: Run, protocol: str) -> tuple[Numbers, Numbers]:
    """When octets of the application arrived first, and how many."""
    rows = run.packets.with_columns(pl.col("point", "dir", "event").cast(pl.String)).filter(
        (pl.col("point") == "receiver.air.ip")
        & (pl.col("dir") == "ul")
        & (pl.col("event") == "rx")
        & pl.col("seq").is_not_null()
    )
    first = rows.sort("t_ns", maintain_order=True).unique("seq", keep="first", maintain_order=True)
    return first["t_ns"].to_numpy() / 1e9, first["len"].cast(pl.Float64).to_numpy() - _HEADERS[protocol]


def share(data: Data, run: Run, protocol: str, *, off: bool) -> float:
    """What arrived in off-phases (or on-phases), as a share of what these could have carried by row 1 of Table 1."""
    at_s, octets = arrived(run, protocol)
    end = run.summary["completion_s"]
    # A hundredth of a second is fine enough to count the time of phases.
    grid = (np.arange(0, end, 0.01) // PHASE_S).astype(int) % 2 == 0
    time_s = 0.01 * float(np.count_nonzero(grid == off))
    mine = octets[((at_s // PHASE_S).astype(int) % 2 == 0) == off].sum()
    capacity = BASE / seconds(data, protocol, 0).mean() * time_s
    return float(mine / capacity)


def kept(run: Run) -> float:
    """TCP's smallest window of an on-phase over the window before it: mean over the on-phases."""
    rows = run.congestion.filter(pl.col("host").cast(pl.String) == "sender").sort("t_ns", maintain_order=True)
    at_s, window = rows["t_ns"].to_numpy() / 1e9, rows["cwnd"].to_numpy().astype(float)
    found = []
    for begin in np.arange(PHASE_S, run.summary["completion_s"], 2 * PHASE_S):
        inside = window[(at_s > begin) & (at_s <= begin + PHASE_S)]
        before = window[at_s <= begin]
        if len(inside) and len(before):
            found.append(float(inside.min() / before[-1]))
    return float(np.mean(found))


def _per_run(protocol: str, look: Callable[[Data, Run], float], data: Data) -> Numbers:
    data.at_default_only()
    return np.asarray([look(data, run) for _, run in data.runs(f"phases-{protocol}")])


_TCP_RECOVERS = partial(_per_run, "tcp", lambda _, run: recovery_s(run, "tcp"))
_WWP_RECOVERS = partial(_per_run, "wwp", lambda _, run: recovery_s(run, "wwp"))
_TCP_KEEPS = partial(_per_run, "tcp", lambda _, run: kept(run))


def used(protocol: str, *, off: bool) -> Callable[[Data], Numbers]:
    """The share of off-phases (or on-phases) that a protocol used, one number per seed."""
    return partial(_per_run, protocol, lambda data, run: share(data, run, protocol, off=off))


COMPUTE: dict[str, Computation] = {
    "W22": lambda data: value(_TCP_RECOVERS(data) / _WWP_RECOVERS(data), ""),
    "W31.reduces": lambda data: value(_TCP_KEEPS(data), ""),
    "W31.tcp": lambda data: value(used("tcp", off=True)(data), ""),
    "W31.wwp": lambda data: value(used("wwp", off=True)(data), ""),
}


def recoveries(data: Data) -> tuple[list[str], list[list[str]]]:
    """How soon the window is whole again, and which shares of the phases were used."""
    rows = []
    for protocol, label, recovers in (("tcp", "TCP Reno", _TCP_RECOVERS), ("wwp", "WWP", _WWP_RECOVERS)):
        off, on = (used(protocol, off=is_off)(data).mean() for is_off in (True, False))
        rows.append([label, f"{recovers(data).mean():.2f}", f"{off:.0%}", f"{on:.0%}"])
    return ["33 %", "whole window after an on-phase (s)", "off-phases used", "on-phases used"], rows
