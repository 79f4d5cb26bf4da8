"""Sequence chart: who sent what to whom, time running downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes

from airloom.plot.figure import DATA, FAINT


class Arrow(NamedTuple):
    """One message: when it left and when it came, s, and what it is."""

    sent_s: float
    came_s: float
    #: From left to right?
    is_right: bool
    label: str


def draw_sequence(axes: Axes, left: str, right: str, arrows: Sequence[Arrow], title: str = "") -> None:
    """Draws messages between two parties into `axes`; the scale is true, and labels keep clear of each other."""
    first = min(arrow.sent_s for arrow in arrows)
    last = max(arrow.came_s for arrow in arrows)
    room = (last - first) / 28
    used: dict[bool, float] = {True: first - room, False: first - room}
    for arrow in sorted(arrows, key=lambda a: a.sent_s):
        begin, end = (0.0, 1.0) if arrow.is_right else (1.0, 0.0)
        axes.annotate(
            "",
            xy=(end, arrow.came_s - first),
            xytext=(begin, arrow.sent_s - first),
            arrowprops={"arrowstyle": "-|>", "color": DATA, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
        )
        # Beside the sender's line; of two that leave together the second one's label goes below the first.
        at = max(arrow.sent_s, used[arrow.is_right] + room)
        used[arrow.is_right] = at
        axes.text(
            begin + (-0.03 if arrow.is_right else 0.03),
            at - first,
            arrow.label,
            ha="right" if arrow.is_right else "left",
            va="center",
            fontsize=7.5,
        )
    for place, name in ((0.0, left), (1.0, right)):
        axes.plot([place, place], [0, last - first], color=FAINT, linewidth=1.2)
        axes.text(place, -0.02 * (last - first), name, ha="center", va="bottom", fontsize=9, fontweight="bold")
    axes.set_xlim(-1.35, 2.25)
    lowest = max(last, *used.values()) + room / 2  # labels that were moved down may end below the last arrival
    axes.set_ylim(lowest - first, -0.08 * (last - first))
    axes.set_xticks([])
    axes.set_ylabel("time (s)")
    axes.set_title(title, loc="left", fontsize=9, pad=14)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
