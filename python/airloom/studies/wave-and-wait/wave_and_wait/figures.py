"""What the study draws, and the tables beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airloom.study import Data, Numbers, StudyFigure, StudyTable
from airloom.study.drawing import canvas, hollow, labelled, means

from .bursts import costs
from .further import locked, radio, real, rivals, sensitivity, shared, tried
from .jitter import confusion
from .phases import recoveries
from .printed import TABLE_1, PaperRow
from .tables import table_1, table_2
from .transfers import DROPS, PHASES, completion, over, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"tcp": "TCP Reno", "wwp": "WWP"}


def probe_cycle(data: Data) -> Figure:
    """The paper's figure 1."""
    from .cycle import probe_cycle

    return probe_cycle(data)


def around(data: Data) -> Figure:
    """Data against time around one on-phase."""
    # What draws takes longer to import than a quick run takes to judge.
    from .around import around

    return around(data)


def _over_drops(
    data: Data, ours: Callable[[Data, str, int], Numbers], paper: Callable[[PaperRow], float], says: str
) -> Figure:
    figure, axes = canvas()
    for n, (protocol, label) in enumerate(NAMES.items()):
        means(axes, DROPS, [ours(data, protocol, drop) for drop in DROPS], n, label)
        hollow(axes, DROPS, [paper(TABLE_1[drop][protocol]) for drop in DROPS], n, f"{label}, paper")
    return labelled(figure, axes, "packets dropped in on-phases (%)", says)


def times(data: Data) -> Figure:
    """Connection time against the drop rate, beside the paper's."""
    return _over_drops(data, seconds, lambda row: row.seconds, "connection time (s)")


def overheads(data: Data) -> Figure:
    """Octets of overhead against the drop rate, beside the paper's."""
    return _over_drops(
        data, lambda *of: over(*of) / 1000, lambda row: row.byte_over / 1000, "octets beyond the data (kB)"
    )


#: Windows of TCP among what was tried, and what the figure calls them.
BUFFERS = {
    "as it is: 16 KiB, 2048": "16 KiB, segments of 2048 (BSD)",
    "2048, 4 KiB, 1.16 Mbit/s": "4 KiB, segments of 2048 (x-kernel)",
    "1460, 18 kB, 3.3 Mbit/s": "18 kB, segments of 1460",
}


def buffers(data: Data) -> Figure:
    """TCP's connection times with three windows, each on a link fitted to rows 1.1 and 1.2, beside the paper's."""
    figure, axes = canvas()
    for n, (how, label) in enumerate(BUFFERS.items()):
        means(axes, DROPS, [completion(data, "tried", how=how, drop=drop) for drop in DROPS], n, label)
    hollow(axes, DROPS, [TABLE_1[drop]["tcp"].seconds for drop in DROPS], 0, "TCP, paper", color="black")
    return labelled(figure, axes, "packets dropped in on-phases (%)", "connection time of TCP (s)")


def phase_lengths(data: Data) -> Figure:
    """Connection time against the length of phases, at 33 %: the steps are whole off-phases."""
    figure, axes = canvas()
    for n, (protocol, label) in enumerate(NAMES.items()):
        found = [completion(data, f"table-2-{protocol}", drop=33, phase=p) for p in PHASES]
        means(axes, PHASES, found, n, label)
    return labelled(figure, axes, "length of phases (s)", "connection time (s)")


def lengths(data: Data) -> Figure:
    """Connection time at 33 % against the length of phases and where they begin: whole off-phases make the steps."""
    figure, panels = canvas(1, 2)
    lengths = data.table("lengths-wwp", "runs")["phase"].unique().sort().to_list()
    for axes, (protocol, label) in zip(panels, NAMES.items(), strict=True):
        for n, first in enumerate(("off", "on", "random")):
            found = [completion(data, f"lengths-{protocol}", phase=length, first=first) for length in lengths]
            means(axes, lengths, found, n, f"begins {first}" if first != "random" else "begins anywhere")
        axes.set_title(label, loc="left", fontsize=9)
        axes.set_xlabel("length of phases (s)")
        axes.set_ylabel("connection time (s)")
        if protocol == "tcp":  # where its timer locks to the phases it takes hours
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    return figure


FIGURES = {
    "fig-1": StudyFigure(
        "Fig. 1. A probe cycle",
        probe_cycle,
        "From the captures of both hosts at 10 %: a wave whose N-S_ACK stays away, and the first cycle after such a "
        "wave in which no probe was lost. Crosses are segments that the element dropped. The paper's own drawing is "
        "lost; section 2.3 says what was in it.",
    ),
    "times": StudyFigure(
        "Table 1 as a figure: connection times",
        times,
        "Phases of 10 s. The paper's times are those of its goodput column, which is printed more precisely.",
    ),
    "overheads": StudyFigure(
        "Table 1 as a figure: octets of overhead",
        overheads,
        "Phases of 10 s. Octets of all segments in both directions with the transport's headers, less 5,242,880.",
    ),
    "buffers": StudyFigure(
        "TCP's times by its buffer: what explains 33 and 50 %",
        buffers,
        "Phases of 10 s. With two segments under way nothing but a timer repairs a loss, and after an on-phase of 10 s "
        "it sleeps through half of the off-phase. Each buffer has a link of its own, fitted to rows 1.1 and 1.2.",
    ),
    "phases": StudyFigure(
        "Time against the length of phases, 33 % dropped",
        phase_lengths,
        "The lengths of Table 2. The paper prints the ends of a range and not the lengths that they belong to, so none "
        "of its points is here.",
    ),
    "lengths": StudyFigure(
        "The same from each beginning: what explains Table 1",
        lengths,
        "33 % dropped. TCP's times on a logarithmic scale: its timer locks to some lengths. Ours; the paper has no "
        "such figure.",
    ),
    "around": StudyFigure(
        "Around one on-phase, 33 % dropped",
        around,
        "From the records of one run of each protocol. Ours; the paper has no such figure.",
    ),
}

TABLES = {
    "table-1": StudyTable(
        "Table 1: 10sec On/Off Drop phase, 5MB data transmission",
        table_1,
        "Ours beside the printed numbers. Time overhead is beyond the same protocol's time without errors, goodput "
        "5,242,880 octets over the connection time, both as section 3 defines them; a kilobyte is nowhere used.",
    ),
    "table-2": StudyTable(
        "Table 2: Summary of results with Drop Phase 4-10 sec",
        table_2,
        "Ours: the least and the largest mean over phases of 4, 5, .. 10 s, with the length it belongs to. The paper "
        "does not say which lengths its ends belong to; one of each pair is the row of 10 s of Table 1. Ratios are "
        "TCP's over WWP's.",
    ),
    "tried": StudyTable("What was tried for the times of TCP at 33 and 50 %", tried),
    "recoveries": StudyTable("What is made of the phases", recoveries),
    "decisions": StudyTable("Decisions after probe cycles, by what there was", confusion),
    "burst": StudyTable("A burst that is over at once", costs),
    "lengths": StudyTable("Lengths of phases, and the timer that locks to them", locked),
    "second-clock": StudyTable("The second clock: real transfers beside the simulated one", real),
    "rivals": StudyTable("Ours: rivals behind the same element", rivals),
    "choices": StudyTable("Ours: choices in WWP, each changed alone", sensitivity),
    "radio": StudyTable("Ours: radio links behind the element", radio),
    "shared": StudyTable("Ours: two transfers on one bottleneck", shared),
}
