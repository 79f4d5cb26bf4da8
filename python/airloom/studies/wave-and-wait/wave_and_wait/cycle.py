"""The paper's figure 1: a probe cycle, drawn from a run's captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airloom.plot.figure import DATA, FAINT, LOST
from airloom.plot.sequence_chart import Arrow, draw_sequence
from airloom.study import Data
from airloom.study.drawing import canvas

from .segments import Segment, seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from airloom.run import Run

#: What a cycle consists of.
STEPS = ("PROBE1", "PR1_ACK", "PROBE2", "PR2_ACK", "PROBE3", "N-S_ACK")


class Passage(NamedTuple):
    """A segment from one host to the other; `came_s` is missing if it was lost."""

    segment: Segment
    came_s: float | None


def passages(run: Run) -> list[Passage]:
    """What either host sent, with when it came, in order of leaving."""
    found = []
    for sender, receiver, is_forward in (("sender", "receiver", True), ("receiver", "sender", False)):
        arrived = [segment for segment in seen(run, receiver) if segment.is_forward == is_forward]
        for segment in seen(run, sender):
            if segment.is_forward == is_forward:
                same = (s for s in arrived if s.at_s >= segment.at_s and _is_same(s, segment))
                came = next(same, None)
                if came is not None:
                    arrived.remove(came)
                found.append(Passage(segment, came.at_s if came else None))
    return sorted(found, key=lambda passage: passage.segment.at_s)


def _is_same(a: Segment, b: Segment) -> bool:
    return a._replace(at_s=b.at_s) == b


def one_cycle(run: Run) -> list[Passage]:
    """A wave whose N-S_ACK stays away and the cycle that follows, the first of the run in which no probe is lost."""
    of_run = passages(run)
    for begin, first in enumerate(of_run):
        last = of_run[begin - 1].segment
        after = [p for p in of_run[begin:] if p.segment.kind != "DATA"][: len(STEPS)]
        if first.segment.kind != STEPS[0] or last.kind != "DATA" or tuple(p.segment.kind for p in after) != STEPS:
            continue
        if all(p.came_s is not None for p in after):
            wave = [p for p in of_run[:begin] if p.segment.kind == "DATA" and p.segment.wave == last.wave]
            return [*wave, *after]
    raise ValueError("no probe cycle without a loss")


def probe_cycle(data: Data) -> Figure:
    """The paper's figure 1, as it was in a run."""
    figure, axes = canvas(height=6.0)
    shown = one_cycle(data.run("cycle"))
    wave = [p for p in shown if p.segment.kind == "DATA"]
    steps = [p for p in shown if p.segment.kind != "DATA"]
    begin = wave[0].segment.at_s
    arrows = [Arrow(p.segment.at_s, p.came_s, p.segment.is_forward, p.segment.kind) for p in steps if p.came_s]
    level, told = wave[0].segment.level, steps[-1].segment.level
    arrows[-1] = arrows[-1]._replace(label=f"N-S_ACK: level {told}")
    first = Arrow(begin, wave[0].came_s or begin, True, f"wave of level {level}: {len(wave)} segments")
    draw_sequence(axes, "sender", "receiver", [first, *arrows])
    for passage in wave:
        sent = passage.segment.at_s - begin
        if passage.came_s is None:
            axes.plot([0, 0.5], [sent, sent + _HALF_S], color=LOST, linewidth=0.7)
            axes.plot([0.5], [sent + _HALF_S], "x", color=LOST, markersize=4)
        else:
            axes.plot([0, 1], [sent, passage.came_s - begin], color=DATA, linewidth=0.5)
    _between(axes, -0.5, wave[-1].segment.at_s - begin, steps[0].segment.at_s - begin, "SEND_T: no N-S_ACK", "right")
    for answer, next_probe, name in ((1, 2, "first RTT"), (3, 4, "second RTT")):
        sent_s, came_s = steps[answer].segment.at_s, steps[next_probe].came_s
        assert came_s is not None
        length = f"{name}: {1000 * (came_s - sent_s):.0f} ms"
        _between(axes, 1.6, sent_s - begin, came_s - begin, length, "left")
    return figure


#: How much later the end of a lost segment's line is drawn than its beginning, seconds.
_HALF_S = 0.02


def _between(axes: Axes, at: float, begin_s: float, end_s: float, label: str, side: str) -> None:
    """A span of time beside a host's line."""
    axes.annotate(
        "", xy=(at, end_s), xytext=(at, begin_s), arrowprops={"arrowstyle": "<->", "color": FAINT, "linewidth": 0.9}
    )
    away = -0.04 if side == "right" else 0.04
    axes.text(at + away, (begin_s + end_s) / 2, label, ha=side, va="center", fontsize=7.5)
