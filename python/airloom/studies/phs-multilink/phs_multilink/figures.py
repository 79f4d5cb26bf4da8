"""What the study draws, and the tables beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airloom.study import Data, StudyFigure, StudyTable

from .bursts import LENGTHS, expired, five, member, seen
from .monitor import frames, sequence
from .outdoor import figure_rows
from .release import remedies, table_2
from .transfers import CIRCUITS, CROSSED, POINTS, TABLE_1, rate, seconds, static

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"get": "FTP Get", "put": "FTP Put"}


def _empty(rows: int = 1, height: float = 4.2) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, height), layout="constrained")
    figure.subplots(rows, 1, sharex=rows > 1)
    return figure


def series(data: Data) -> Figure:
    """Fig. 7: rate over the number of circuits."""
    from airloom.plot.figure import LINES

    figure = _empty()
    (axes,) = figure.axes
    for n, (way, label) in enumerate(NAMES.items()):
        axes.plot(CIRCUITS, [static(data, way, k).mean() for k in CIRCUITS], label=label, **LINES[n])
        paper = {"get": (245.65, 291.09), "put": (176.77, 186.64)}[way]
        axes.plot((5, 6), paper, label=f"{label}, paper", **{**LINES[n], "linestyle": "none", "fillstyle": "none"})
    axes.set_xlabel("PHS circuits")
    axes.set_ylabel("throughput (kbit/s)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def fields(way: str) -> Callable[[Data], Figure]:
    """Figs. 3 and 4: rate, CRC errors of the monitored circuit and retransmissions by the mean field."""

    def draw(data: Data) -> Figure:
        figure = _empty(3, 6.0)
        rows = figure_rows(data, way)
        good = [row for row in rows if row[4] >= 35]
        bad = [row for row in rows if row[4] < 35]
        for axes, column, label in zip(
            figure.axes, (1, 2, 3), ("throughput (kbit/s)", "CRC errors", "TCP retransmissions"), strict=True
        ):
            axes.plot(
                [r[0] for r in good], [r[column] for r in good], "o", markersize=3, label="each unit above 35 dBuV"
            )
            axes.plot([r[0] for r in bad], [r[column] for r in bad], "x", markersize=4, label="one below")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
        # A run whose file never comes has errors without end.
        figure.axes[1].set_yscale("symlog", linthresh=10)
        figure.axes[0].legend(fontsize=8)
        figure.axes[-1].set_xlabel("mean field strength of the three units (dBuV)")
        return figure

    return draw


def beside(data: Data) -> Figure:
    """Figs. 2 and 6: the sequence of TCP above the frames of circuit 0 that failed, on one clock."""
    run = data.run("shown")
    figure = _empty(2, 5.0)
    above, below = figure.axes
    at, octets = sequence(run)
    above.plot(at, octets, ".", markersize=2)
    above.set_ylabel("sequence number (kB)")
    rows = frames(run, "dl")
    ok = [(f.at_ns / 1e9, f.number) for f in rows if not f.is_error and f.number is not None]
    failed = [(f.at_ns / 1e9, f.number or 0) for f in rows if f.is_error]
    below.plot(*zip(*ok, strict=True), ".", markersize=2, label="frames of circuit 0")
    if failed:
        below.plot(*zip(*failed, strict=True), "x", markersize=4, label="CRC error")
    # The people come at 3 s and have gone at 8.
    below.set_xlim(2, 9)
    within = [n for time, n in zip(at, octets, strict=True) if 2 <= time <= 9]
    above.set_ylim(min(within, default=0), max(within, default=1))
    below.set_ylabel("NUM")
    below.set_xlabel("time (s)")
    below.legend(fontsize=8)
    return figure


def thresholds(data: Data) -> Figure:
    """K28: share of bursts that TCP sees, by their length."""
    from airloom.plot.figure import LINES

    figure = _empty()
    (axes,) = figure.axes
    axes.plot(LENGTHS, [seen(data, n).mean() for n in LENGTHS], label="TCP sends again", **LINES[0])
    axes.plot(LENGTHS, [expired(data, n).mean() for n in LENGTHS], label="its timer expires", **LINES[1])
    axes.axvline(150, linewidth=0.8, label="round trip of 150 ms")
    axes.set_xlabel("length of the burst (ms)")
    axes.set_ylabel("share of the bursts")
    axes.legend(fontsize=8)
    return figure


def table_1(data: Data) -> tuple[list[str], list[list[str]]]:
    """Table 1, ours without people, and with."""
    rows = []
    for way, label in NAMES.items():
        for distance, paper in zip(POINTS, TABLE_1[way], strict=True):
            clear = rate(seconds(data, "distances", way=way, distance=distance))
            crossed = seconds(data, "people", way=way).mean() if CROSSED[way] == distance else None
            rows.append(
                [
                    label,
                    f"{distance:g} m",
                    f"{clear.mean():.1f}",
                    "" if crossed is None else f"{crossed:.1f} s",
                    f"{paper:.2f}",
                ]
            )
    return ["direction", "distance", "ours, without people (kbit/s)", "ours, a run with people", "paper (kbit/s)"], rows


def members(data: Data) -> tuple[list[str], list[list[str]]]:
    """K26: one circuit worse than the others."""
    alone = five(data).mean()
    rows = [
        [f"{errors:.0%}", f"{member(data, errors).mean():.1f}", f"{member(data, errors).mean() / alone:.2f}"]
        for errors in (0.0, 0.02, 0.1, 0.2, 0.5)
    ]
    return ["frames of one circuit in error", "rate (kbit/s)", "in that of the five others alone"], rows


FIGURES = {
    "circuits": StudyFigure("Throughput over the number of circuits (Fig. 7)", series),
    "get-by-field": StudyFigure("Get by field strength (Fig. 3)", fields("get")),
    "put-by-field": StudyFigure("Put by field strength (Fig. 4)", fields("put")),
    "beside": StudyFigure("TCP's sequence beside the PIAFS monitor (Figs. 2, 6)", beside),
    "bursts": StudyFigure("Bursts that TCP sees, by their length", thresholds),
}

TABLES = {
    "table-1": StudyTable("Table 1, ours and the paper's", table_1),
    "table-2": StudyTable("Table 2, ours and the paper's", table_2),
    "members": StudyTable("Ours: one bad circuit in six", members),
    "remedies": StudyTable("Ours: what would have helped", remedies),
}
