"""What the paper shows, drawn again, and what lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from airloom.plot.figure import LINES
from airloom.study import Data, Numbers, StudyFigure
from airloom.study.drawing import canvas, hollow, labelled, means

from . import messages, setup
from .pages import ERRORS, THREE, gain, new_blocks, page_time, sctp, tcp

#: Fig. 7's part of Fig. 6.
LOW = tuple(e for e in ERRORS if e <= 0.05)

#: A line of a figure: what it is called, and its response times at an error rate.
Line = tuple[str, Callable[[float], Numbers]]


#: What they are drawn against.
_ERRORS = "error rate (share of RLC blocks)"


def response_time(lines: Sequence[Line], rates: Sequence[float]) -> Figure:
    """Response time against error rate, on linear axes, on which alone a zoom shows more."""
    figure, axes = canvas()
    for n, (label, times) in enumerate(lines):
        means(axes, rates, [times(rate) for rate in rates], n, label)
    return labelled(figure, axes, _ERRORS, "response time (s)", from_zero=False)


def one_mobile(streams: int, data: Data) -> Figure:
    """Figs. 4 and 5."""
    over_sctp = f"HTTP 1.0 over SCTP, {'one stream' if streams == 1 else 'three streams'}"
    lines: list[Line] = [
        ("HTTP 1.0 over TCP", lambda rate: tcp(data, rate)),
        (over_sctp, lambda rate: sctp(data, rate, streams)),
    ]
    return response_time(lines, ERRORS)


def four_mobiles(rates: Sequence[float], data: Data) -> Figure:
    """Figs. 6 and 7."""
    lines: list[Line] = [
        ("HTTP 1.0 over TCP", lambda rate: page_time(data, "cell-tcp", bler=rate)),
        ("HTTP 1.0 over SCTP, three streams", lambda rate: page_time(data, "cell-sctp", bler=rate)),
    ]
    return response_time(lines, rates)


def rlc_blocks(protocol: str, data: Data) -> Figure:
    """Figs. 8 and 9: new RLC blocks of one mobile of four; both have the same axes."""
    seen = {p: new_blocks(data.run(f"blocks-cell-{p}"), "0")["t_ns"].to_numpy() / 1e9 for p in ("tcp", "sctp")}
    figure, axes = canvas(height=3.4)
    times = seen[protocol]
    axes.plot(times, np.arange(len(times)), **{**LINES[0], "linestyle": "none", "markersize": 1.5})
    axes.set_xlim(0, 1.02 * max(t[-1] for t in seen.values()))
    axes.set_ylim(0, 1.02 * max(len(t) for t in seen.values()))
    axes.set_xlabel("time (s)")
    axes.set_ylabel("RLC sequence number")
    return figure


def gap_figure(data: Data) -> Figure:
    """TCP less SCTP, page by page, with what the paper says of it."""
    figure, axes = canvas()
    for n, streams in enumerate((1, 3), 1):
        gaps = [tcp(data, e) - sctp(data, e, streams) for e in ERRORS]
        means(axes, ERRORS, gaps, n, f"less SCTP, {streams} stream{'s' if streams > 1 else ''}")
    hollow(axes, 0.001, 0.4, 2, "paper, 3 streams: less than 0.4 s", marker="v", markersize=9)
    hollow(axes, 0.14, 5, 2, "paper, 3 streams: more than 5 s", marker="^", markersize=9)
    axes.axhline(0, linewidth=0.6, color="black")
    y = "response time of TCP less that of SCTP (s)"
    return labelled(figure, axes, _ERRORS, y, from_zero=False, loc="center")


def streams_figure(data: Data) -> Figure:
    """One to eight streams: the page, and its first object."""
    figure, both = canvas(1, 2, height=3.6)
    at = range(1, 9)
    for axes, (column, what) in zip(
        both, (("load_ns", "page there after (s)"), ("first_object_ns", "first object there after (s)")), strict=True
    ):
        for n, error in enumerate(THREE):
            samples = [page_time(data, "streams", column, bler=error, lanes=k) for k in at]
            means(axes, list(at), samples, n, f"error rate {error}")
        labelled(figure, axes, "streams", what, fontsize=7)
    return figure


def load_figure(data: Data) -> Figure:
    """What SCTP saves, by the load of the cell."""
    figure, axes = canvas()
    reading = (0, 2, 5, 10, 20)
    for n, mobiles in enumerate((1, 2, 4, 8)):
        samples = [gain(data, "grid", mobiles=mobiles, reading=r) for r in reading]
        means(axes, reading, samples, n, f"{mobiles} mobile{'s' if mobiles > 1 else ''}")
    axes.axhline(0, linewidth=0.6, color="black")
    return labelled(figure, axes, "mean reading time (s)", "SCTP's gain, part of TCP's response time", from_zero=False)


#: What stands below every figure whose points were pictures.
_LOST = "The paper's own points are lost with its figures."
_ONE_MOBILE = (
    "One mobile. Means over pages with 95 % intervals. Both protocols load the same pages, so that their difference is "
    "known better than either: see the figure of the gap."
)
_BLOCKS = (
    "New downlink RLC blocks of one of four mobiles that load a page each at the same time, at an error rate of 0.05, "
    "counted from 0; one run, with the same pages and radio, and the same axes, in Figs. 8 and 9. " + _LOST
)

FIGURES: dict[str, StudyFigure] = {
    "fig-1": StudyFigure(
        "Fig. 1. SCTP packet format",
        messages.fig_1,
        "A packet that the server sent in a run of ours, field by field, 32 bits a row. The paper's figure is the "
        "format of RFC 2960, which has these fields.",
    ),
    "fig-2": StudyFigure(
        "Fig. 2. Simulated configuration",
        setup.fig_2,
        "The nodes and links of our runs, with the numbers in the scenario of a run. The paper's drawing is lost; its "
        "numbers are those of 3.4.",
    ),
    "fig-3": StudyFigure(
        "Fig. 3. General sequence of an HTTP 1.0 transaction",
        messages.fig_3,
        "A page of 3 kB with three objects, from captures at both ends of a run without losses: set-up, requests and "
        "responses. Acknowledgements are left out, and a response is one arrow from when its first packet left to when "
        "its last one came. The paper's drawing and caption are lost; the title is after the text of 3.2.",
    ),
    "fig-4": StudyFigure(
        "Fig. 4. Response Time vs error rate in case of HTTP 1.0 over TCP and SCTP (one stream) over RLC/MAC",
        partial(one_mobile, 1),
        f"{_ONE_MOBILE} {_LOST}",
    ),
    "fig-5": StudyFigure(
        "Fig. 5. Response Time vs error rate in case of HTTP 1.0 over TCP/SCTP (three streams) over RLC/MAC",
        partial(one_mobile, 3),
        f"{_ONE_MOBILE} {_LOST} The two distances that its text gives are in that figure.",
    ),
    "fig-6": StudyFigure(
        "Fig. 6. Response Time vs error rate in case of HTTP 1.0 over TCP/SCTP (three streams)",
        partial(four_mobiles, ERRORS),
        "Four active mobiles, all over TCP or all over SCTP; each loads thirty pages. Means over pages, with 95 % "
        f"intervals over runs. {_LOST}",
    ),
    "fig-7": StudyFigure(
        "Fig. 7. (zoom of figure 6)",
        partial(four_mobiles, LOW),
        "Error rates up to 0.05. Which part of Fig. 6 the paper enlarges is lost with it.",
    ),
    "fig-8": StudyFigure(
        "Fig. 8. RLC Sequence number for HTTP 1.0 over TCP over RLC/MAC", partial(rlc_blocks, "tcp"), _BLOCKS
    ),
    "fig-9": StudyFigure(
        "Fig. 9. RLC Sequence number for HTTP 1.0 over SCTP over RLC/MAC", partial(rlc_blocks, "sctp"), _BLOCKS
    ),
    "gap": StudyFigure(
        "Ours: what Figs. 4 and 5 differ by, TCP less SCTP",
        gap_figure,
        "Page by page, means with 95 % intervals; hollow the two bounds that the paper's text gives for three streams.",
    ),
    "streams": StudyFigure("Ours: one to eight streams", streams_figure, "One mobile."),
    "load": StudyFigure(
        "Ours: the advantage by the load of the cell", load_figure, "Three streams, at an error rate of 0.05."
    ),
}
