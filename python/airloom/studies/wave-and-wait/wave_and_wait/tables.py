"""Both tables of the paper, ours beside the printed numbers, in the units that it prints."""

from __future__ import annotations

import numpy as np

from airloom.study import Data, Numbers
from airloom.study.drawing import interval

from .printed import TABLE_1, TABLE_2
from .transfers import BASE, DROPS, PHASES, completion, octets, over, seconds, time_over, total

NAMES = {"tcp": "TCP", "wwp": "WWP"}

Table = tuple[list[str], list[list[str]]]


def table_1(data: Data) -> Table:
    """All columns of Table 1."""
    rows = []
    for drop in DROPS:
        for protocol, label in NAMES.items():
            of = TABLE_1[drop][protocol]
            time = seconds(data, protocol, drop)
            cells = [f"{drop} %", label, interval(time, 4), f"{of.printed_s:g}"]
            cells += [f"{octets(data, protocol, drop).mean():.0f}", f"{of.total}"]
            longer = f"{time_over(data, protocol, drop).mean():.1f}" if drop else "---"
            cells += [longer, f"{of.time_over:g}" if of.time_over is not None else "---"]
            cells += [f"{over(data, protocol, drop).mean():.0f}", f"{of.byte_over}"]
            rows.append([*cells, f"{(BASE / time).mean():.0f}", f"{of.goodput}"])
    heads = ("time ran (s)", "total octets", "time overhead (s)", "octets of overhead", "goodput (octets/s)")
    return ["drops", "protocol", *(column for head in heads for column in (head, "paper"))], rows


def table_2(data: Data) -> Table:
    """All columns of Table 2: the least and the largest mean over phases of 4 to 10 s, and the lengths of these."""
    rows = []
    for drop, of in TABLE_2.items():
        (tcp_s, tcp_over), (wwp_s, wwp_over) = (_by_length(data, protocol, drop) for protocol in NAMES)
        ratios = [
            *(_range(tcp_over / wwp_over), of.overhead_ratio),
            *(_range(100 * wwp_s / tcp_s, unit="%"), of.goodput_ratio),
            *(_range(tcp_s / wwp_s), of.time_ratio),
        ]
        rows.append([f"{drop} %", "TCP", _range(tcp_s), of.tcp_s, *ratios])
        rows.append(["", "WWP", _range(wwp_s), of.wwp_s, *("" for _ in ratios)])
    heads = ("time ran (s)", "overhead ratio", "goodput ratio", "time ratio")
    return ["drops", "protocol", *(column for head in heads for column in (head, "paper"))], rows


def _by_length(data: Data, protocol: str, drop: int) -> tuple[Numbers, Numbers]:
    """Mean times and overheads, one for each length of phases; without errors there is one."""
    if drop == 0:
        return np.asarray([seconds(data, protocol, 0).mean()]), np.asarray([over(data, protocol, 0).mean()])
    sweep = f"table-2-{protocol}"
    places = [{"drop": drop, "phase": length} for length in PHASES]
    times = [completion(data, sweep, **where).mean() for where in places]
    return np.asarray(times), np.asarray([total(data, sweep, **where).mean() - BASE for where in places])


def _range(found: Numbers, unit: str = "") -> str:
    if len(found) == 1:
        return f"{found[0]:.3g}{unit}"
    return " to ".join(f"{found[n]:.3g}{unit} ({PHASES[n]} s)" for n in (found.argmin(), found.argmax()))
