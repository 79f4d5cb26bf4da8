"""The receive window and the bandwidth-delay product (5.2): what 32 Kbytes fill at a round-trip time of 667 ms."""

from __future__ import annotations

from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from airloom.study import Data, Evidence, Numbers, StudyFigure, StudyTable, pair
from airloom.study.drawing import canvas, hollow, interval, labelled, means

from .http_side import response

#: The downlink, kbit/s.
RATE = 384.0

#: Cases of the sweep `pipe`, as in sweep.toml.
CASES = (
    "as it is",
    "whole window at once",
    "every segment acknowledged",
    "queue without end",
    "36 Kbytes",
    "64 Kbytes",
    "every segment, 36 Kbytes",
)


def goodput(data: Data, case: str = "as it is", *, size: int = 5000, errors: int = 5) -> Numbers:
    """Goodput of one transfer in kbit/s, one number a seed."""
    data.at_default_only()
    return size * 8 / response(data, "pipe", case=case, size=size, errors=errors)


def filled(errors: int, data: Data) -> Evidence:
    """U12: goodput with 32 Kbytes over goodput with a window that is never the limit."""
    return pair(goodput(data, errors=errors), goodput(data, "64 Kbytes", errors=errors), "")


def knee(low: int, high: int, data: Data) -> Evidence:
    """U28: goodput with one receive window over goodput with another, at an idle round-trip time of 667 ms."""
    one, other = (1 / response(data, "window", window=window, echo=667) for window in (low, high))
    return pair(one, other, "")


COMPUTE = {
    "U12.filled": partial(filled, 5),
    "U12.clean": partial(filled, 0),
    "U28.below": partial(knee, 16, 32),
    "U28.above": partial(knee, 64, 32),
}


def window_figure(data: Data) -> Figure:
    """Goodput of 500 kB against the receive window, and the paper's pair of window and round-trip time."""
    figure, axes = canvas()
    windows = (8, 16, 32, 64)
    for n, echo in enumerate((260, 500, 667, 1000)):
        samples = [500 * 8 / response(data, "window", window=w, echo=echo) for w in windows]
        means(axes, windows, samples, n, f"idle round-trip time {echo} ms")
    hollow(axes, 32, RATE, 1, "the paper's arithmetic: 32 Kbytes fill 384 kbit/s up to 667 ms")
    axes.set_xscale("log", base=2)
    axes.set_xticks(windows, [str(w) for w in windows])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    return labelled(figure, axes, "receive window (kB)", "goodput of 500 kB (kbit/s)", from_zero=False)


def pipe_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """U12: goodput of 500 kB and 5 MB, with one thing changed at a time."""
    columns = [(size, errors) for errors in (5, 0) for size in (500, 5000)]
    rows = [[case, *(interval(goodput(data, case, size=s, errors=e)) for s, e in columns)] for case in CASES]
    heads = [f"{'500 kB' if s == 500 else '5 MB'}, {e} % of frames in error" for s, e in columns]
    return ["goodput at 667 ms, kbit/s of 384", *heads], rows


FIGURES = {
    "window": StudyFigure(
        "5.2: the receive window and the bandwidth-delay product",
        window_figure,
        "Transfers of 500 kB over the downlink of 384 kbit/s with 5 % of FEC frames in error, slow start included: "
        "means with 95 % intervals over seeds (of fewer than five seeds each one). Hollow: what the paper's "
        "arithmetic promises.",
    ),
}

TABLES = {
    "pipe": StudyTable(
        "5.2: what keeps 32 Kbytes from filling 384 kbit/s at a round-trip time of 667 ms",
        pipe_table,
        "Each row changes one thing against the first, the last one two. With 64 Kbytes and without errors the "
        "headers of RLC, IP and TCP alone are left.",
    ),
}
