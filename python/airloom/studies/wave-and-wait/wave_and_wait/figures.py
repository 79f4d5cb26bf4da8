"""What the study draws, and the tables beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airloom.study import Data, StudyFigure, StudyTable

from .bursts import costs
from .further import locked, radio, real, rivals, sensitivity, shared
from .jitter import confusion
from .phases import recoveries
from .transfers import DROPS, PHASES, TABLE_1, over, seconds, total

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"tcp": "TCP Reno", "wwp": "WWP"}


def times(data: Data) -> Figure:
    """Connection time against the drop rate, beside the paper's."""
    from matplotlib.figure import Figure

    from airloom.plot.figure import LINES

    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for n, (protocol, label) in enumerate(NAMES.items()):
        axes.plot(DROPS, [seconds(data, protocol, d).mean() for d in DROPS], label=label, **LINES[n])
        paper = [TABLE_1[d][protocol][0] for d in DROPS]
        axes.plot(DROPS, paper, label=f"{label}, paper", **{**LINES[n], "linestyle": "none", "fillstyle": "none"})
    axes.set_xlabel("packets dropped in on-phases (%)")
    axes.set_ylabel("connection time (s)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def phase_lengths(data: Data) -> Figure:
    """Connection time against the length of phases, at 33 %: the steps are whole off-phases."""
    from matplotlib.figure import Figure

    from airloom.plot.figure import LINES

    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for n, (protocol, label) in enumerate(NAMES.items()):
        found = [data.per_seed(f"table-2-{protocol}", "runs", "completion_s", drop=33, phase=p).mean() for p in PHASES]
        axes.plot(PHASES, found, label=label, **LINES[n])
    axes.set_xlabel("length of phases (s)")
    axes.set_ylabel("connection time (s)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def lengths(data: Data) -> Figure:
    """Connection time at 33 % against the length of phases and where they begin: whole off-phases make the steps."""
    from matplotlib.figure import Figure

    from airloom.plot.figure import LINES

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    lengths = data.table("lengths-wwp", "runs")["phase"].unique().sort().to_list()
    for axes, (protocol, label) in zip(panels, NAMES.items(), strict=True):
        for n, first in enumerate(("off", "on", "random")):
            found = [
                data.per_seed(f"lengths-{protocol}", "runs", "completion_s", phase=length, first=first).mean()
                for length in lengths
            ]
            axes.plot(lengths, found, label=f"begins {first}" if first != "random" else "begins anywhere", **LINES[n])
        axes.set_title(label, loc="left", fontsize=9)
        axes.set_xlabel("length of phases (s)")
        axes.set_ylabel("connection time (s)")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
    return figure


def table_1(data: Data) -> tuple[list[str], list[list[str]]]:
    """Both protocols beside the paper."""
    rows = []
    for drop in DROPS:
        for protocol, label in NAMES.items():
            paper_s, paper_octets = TABLE_1[drop][protocol]
            ours = seconds(data, protocol, drop)
            rows.append(
                [
                    f"{drop} %",
                    label,
                    f"{ours.mean():.1f} ({ours.min():.1f} to {ours.max():.1f})",
                    f"{paper_s:.1f}",
                    f"{over(data, protocol, drop).mean() / 1000:.1f}",
                    f"{(paper_octets - 5_242_880) / 1000:.1f}",
                    f"{5_242_880 / ours.mean() / 1000:.1f}",
                ]
            )
    return ["drops", "protocol", "time (s)", "paper", "overhead (kB)", "paper", "goodput (kB/s)"], rows


def table_2(data: Data) -> tuple[list[str], list[list[str]]]:
    """Ratios TCP / WWP over phases of 4 to 10 s."""
    rows = []
    for drop in (10, 33, 50):
        found = []
        for length in PHASES:
            where = {"drop": drop, "phase": length}
            tcp, wwp = (data.per_seed(f"table-2-{p}", "runs", "completion_s", **where).mean() for p in NAMES)
            more, less = (total(data, f"table-2-{p}", **where).mean() - 5_242_880 for p in NAMES)
            found.append((tcp, wwp, tcp / wwp, more / less))
        columns = list(zip(*found, strict=True))
        rows.append([f"{drop} %", *(f"{min(c):.3g} to {max(c):.3g}" for c in columns)])
    return ["drops", "TCP (s)", "WWP (s)", "time ratio", "overhead ratio"], rows


def around(data: Data) -> Figure:
    """Data against time around one on-phase."""
    # What draws takes longer to import than a quick run takes to judge.
    from .around import around

    return around(data)


FIGURES = {
    "times": StudyFigure("Table 1: connection times", times),
    "phases": StudyFigure("Time against the length of phases, 33 % dropped", phase_lengths),
    "lengths": StudyFigure("The same from each beginning: what explains Table 1", lengths),
    "around": StudyFigure("Around one on-phase, 33 % dropped", around),
}

TABLES = {
    "table-1": StudyTable("Table 1, ours and the paper's", table_1),
    "table-2": StudyTable("Table 2, phases of 4 to 10 s", table_2),
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
