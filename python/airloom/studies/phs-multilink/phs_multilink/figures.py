"""The figures of the study: the paper's in its order, then ours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from airloom.plot.figure import DATA, LOST, RESENT
from airloom.study import Data, StudyFigure
from airloom.study.drawing import canvas, hollow, labelled, means

from .bursts import LENGTHS, expired, seen
from .configuration import configuration
from .monitor import Sequence, burst, frames, sequence
from .outdoor import NEEDED, runs
from .release import PAPER_STATIC
from .transfers import CIRCUITS, static_of_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from airloom.run import Run

NAMES = {"get": "FTP Get", "put": "FTP Put"}


def draw_sequence(axes: Axes, of: Sequence) -> None:
    """Octets over time, what is sent again with another mark."""
    axes.plot(of.at[~of.is_again], of.octets[~of.is_again] / 1000, ".", color=DATA, markersize=3, label="first time")
    if of.is_again.any():
        at, octets = of.at[of.is_again], of.octets[of.is_again] / 1000
        axes.plot(at, octets, "x", color=RESENT, markersize=6, markeredgewidth=1.4, label="sent again")
    axes.set_ylabel("sequence number (kB)")
    axes.legend(fontsize=8, loc="lower right")


def beside(data: Data) -> Figure:
    """Fig. 2: the sequence of TCP above the frames of circuit 0, around a burst of errors."""
    run = data.run("shown")
    figure, (above, below) = canvas(2, height=6.0, sharex=True)
    shown = burst(run)
    begin, end = shown.begin_s - 0.6, shown.end_s + 1.6
    of = sequence(run, "put")
    draw_sequence(above, of)
    above.legend(fontsize=8, loc="upper left")
    within = of.octets[(of.at >= begin) & (of.at <= end)] / 1000
    above.set_ylim(within.min() - 2, within.max() + 2)
    rows = [f for f in frames(run, "ul") if begin <= f.at_ns / 1e9 <= end]
    ok = [(f.at_ns / 1e9, f.number) for f in rows if not f.is_error and f.number is not None]
    failed = [(f.at_ns / 1e9, f.number or 0) for f in rows if f.is_error]
    below.plot(*zip(*ok, strict=True), ".", color=DATA, markersize=3, label="frame of circuit 0")
    below.plot(*zip(*failed, strict=True), "x", color=LOST, markersize=4, label="CRC error")
    for axes in (above, below):
        axes.axvspan(shown.begin_s, shown.end_s, color="#f0e442", alpha=0.35, linewidth=0)
    above.text(shown.begin_s, above.get_ylim()[0], " [A]", va="bottom", fontsize=9)
    below.set_xlim(begin, end)
    below.set_ylim(0, 140)
    below.set_ylabel("NUM")
    below.set_xlabel("time (s)")
    below.legend(fontsize=8, loc="upper right", ncols=2)
    return figure


def by_field(way: str, data: Data) -> Figure:
    """Figs. 3 and 4: rate, CRC errors of the monitored circuit and retransmissions by the mean field."""
    figure, all_axes = canvas(3, height=7.0, sharex=True)
    rows = runs(data, way)
    good, bad = (rows.filter(is_in) for is_in in (rows["weakest"] >= NEEDED, rows["weakest"] < NEEDED))
    titles = {"rate": "throughput (kbit/s)", "seen": "CRC errors", "resent": "TCP retransmissions"}
    for axes, (column, label) in zip(all_axes, titles.items(), strict=True):
        axes.plot(good["mean"], good[column], "o", color=DATA, markersize=3, label="each unit above 35 dBµV")
        axes.plot(bad["mean"], bad[column], "x", color=RESENT, markersize=4, label="one of three below")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    all_axes[0].set_ylim(0, 320)
    all_axes[0].axhline(250, color=LOST, linewidth=0.8, linestyle=":", label="250 kbit/s")
    # A run whose file never comes has errors without end.
    all_axes[1].set_yscale("symlog", linthresh=10)
    all_axes[1].set_ylim(0, 2 * max(100.0, *rows["seen"].to_list()))
    all_axes[0].legend(fontsize=8, loc="lower right")
    all_axes[-1].set_xlabel("electric field strength, mean of three units (dBµV)")
    return figure


def alone(run: Run) -> Figure:
    """The sequence of one get."""
    figure, axes = canvas()
    draw_sequence(axes, sequence(run, "get"))
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("time (s)")
    return figure


def at_field(field: int, place: int, data: Data) -> Figure:
    """Figs. 5 and 6: of the gets at so many dBµV that are kept, the first or last by what is sent again."""
    rows = data.table("sequence", "runs", field=field).sort("resent", "seed")
    return alone(dict(data.runs("sequence", field=field))[rows["seed"][place]])


def series(data: Data) -> Figure:
    """Fig. 7: rate over the number of connections."""
    figure, axes = canvas()
    for n, (way, label) in enumerate(NAMES.items()):
        means(axes, CIRCUITS, [static_of_all(data, way, k) for k in CIRCUITS], n, label)
        hollow(axes, (5, 6), [PAPER_STATIC[way, k] for k in (5, 6)], n, f"{label}, paper (Table 2)")
    return labelled(figure, axes, "number of PHS connections", "throughput (kbit/s)")


def released(data: Data) -> Figure:
    """Fig. 8: a get with one of six released at 5 s."""
    figure = alone(data.run("sequence-release"))
    (axes,) = figure.axes
    axes.axvline(5, color=LOST, linewidth=0.8, linestyle="--", label="one of six released")
    axes.legend(fontsize=8, loc="lower right")
    return figure


def thresholds(data: Data) -> Figure:
    """K28: share of bursts that TCP sees, by their length."""
    figure, axes = canvas()
    means(axes, LENGTHS, [seen(data, n) for n in LENGTHS], 0, "TCP sends again")
    means(axes, LENGTHS, [expired(data, n) for n in LENGTHS], 1, "its timer expires")
    axes.axvline(150, color=LOST, linewidth=0.8, linestyle=":", label="the paper's round trip, 150 ms")
    axes.axvline(370, color=LOST, linewidth=0.8, linestyle="--", label="the paper's burst, 370 ms")
    axes.set_ylim(-0.02, 1.05)
    x, y = "length of the burst (ms)", "share of the bursts"
    return labelled(figure, axes, x, y, from_zero=False, loc="lower right")


LOST_POINTS = "The paper's points are lost."

FIGURES = {
    "fig-1": StudyFigure(
        "Fig. 1. System configuration",
        configuration,
        "Drawn from the scenario as a run understood it. Solid: simulated. Dashed: in the path as time alone (the ISDN "
        "simulator: its B-channels have the 64 kbit/s of a circuit, its call set-up is part of the 2 s of a call).",
    ),
    "fig-2": StudyFigure(
        "Fig. 2. Typical example of TCP retransmission sequence",
        beside,
        "A put at 31.6 m with people in the path: segments as they leave the client, and below them the frames that "
        "circuit 0 carried upwards, on one clock. [A]: CRC errors about as long as the paper's 370 ms. The monitor's "
        "log over [A] is the table `monitor`. Of the paper's figure the log is left; its TCP sequence is lost.",
    ),
    "fig-3": StudyFigure(
        "Fig. 3. Relationship between electric field strength and throughput and number of retransmissions (FTP Get)",
        partial(by_field, "get"),
        "A mark is one get outdoors; CRC errors are those of circuit 0, where the monitor is, in both directions. "
        f"{LOST_POINTS}",
    ),
    "fig-4": StudyFigure(
        "Fig. 4. Relationship between electric field strength and throughput and number of retransmissions (FTP Put)",
        partial(by_field, "put"),
        f"As Fig. 3, with the slowness of the notebook that was fitted to Table 2. {LOST_POINTS}",
    ),
    "fig-5": StudyFigure(
        "Fig. 5. Transition of TCP sequence number (When no retransmissions observed)",
        partial(at_field, 50, 0),
        f"A get outdoors at 50 dBµV, at the server. {LOST_POINTS}",
    ),
    "fig-6": StudyFigure(
        "Fig. 6. Transition of TCP sequence number (When retransmissions observed)",
        partial(at_field, 34, -1),
        f"A get outdoors at 34 dBµV, at the server: of eight that in which most is sent again. {LOST_POINTS}",
    ),
    "fig-7": StudyFigure(
        "Fig. 7. Throughput measurement result (PHS connections statically changed)",
        series,
        "Solid: ours with 95 % intervals. Hollow: the averages over five and six connections in the paper's Table 2; "
        "its other points are lost.",
    ),
    "fig-8": StudyFigure(
        "Fig. 8. Transition of TCP sequence number (When one of PHS connections released)",
        released,
        f"A get, at the server; one of six connections is released at 5 s. {LOST_POINTS}",
    ),
    "bursts": StudyFigure(
        "Ours: bursts that TCP sees, by their length",
        thresholds,
        "One burst of frame errors on one of six circuits while a file of 160 kB is fetched.",
    ),
}
