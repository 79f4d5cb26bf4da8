"""A19: streams in RLC flows of different priority. When each stream's object was there, and what was sent again."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from airloom.study import Data, Evidence, Numbers, StudyFigure, StudyTable, pair, value
from airloom.study.drawing import canvas, means

from .pages import THREE, page_time
from .units import done, transfer

#: Which packets RLC takes first, as the sweeps call it.
NONE, FIRST, EACH = "none", "stream 0", "0, then 1, then 2"
#: Rates of Gb: that of the paper, and one that leaves the waiting to RLC.
PAPER, FAST = "64 kbit/s", "512 kbit/s"
#: When the server repeats, besides the fourth report of the paper's agents.
RFC_9260, TIMER = "RFC 9260", "timer alone"


def of_rule(rule: str | None) -> tuple[str, dict[str, Any]]:
    """The sweep, and labels in it, with a fast Gb; `rule`: when the server repeats; none: as the paper's agents."""
    return ("flows", {"gb": FAST}) if rule is None else ("flows-rules", {"rule": rule})


def object_times(data: Data, sweep: str, **where: Any) -> list[Numbers]:
    """Seconds until the object on each stream was there, one number per seed."""
    data.at_default_only()
    of = [done(transfer(run)) for _, run in data.runs(sweep, **where)]
    return [np.asarray([times[stream] for times in of]) for stream in range(3)]


def sent_again(data: Data, sweep: str, **where: Any) -> Numbers:
    """Packets that either end sent again, one number per seed."""
    data.at_default_only()
    return data.per_seed(sweep, "runs", "resent", **where)


def favoured(sweep: str, data: Data, **where: Any) -> Evidence:
    """The object on stream 0, in turn with the others and before them."""
    in_turn, first = (object_times(data, sweep, first=order, **where)[0] for order in (NONE, FIRST))
    return pair(in_turn, first, "s")


def whole_page(data: Data) -> Evidence:
    """All objects, with priorities and without."""
    data.at_default_only()
    first, in_turn = (page_time(data, "flows", gb=FAST, first=order) for order in (FIRST, NONE))
    return pair(first, in_turn, "s")


def repeats(data: Data) -> Evidence:
    """What priorities cause to be sent again."""
    with_priorities, without = (sent_again(data, "flows", gb=FAST, first=first) for first in (FIRST, NONE))
    return value(with_priorities - without, "packets")


COMPUTE = {
    "A19.favoured": partial(favoured, "flows", gb=FAST),
    "A19.page": whole_page,
    "A19.repeats": repeats,
    "A19.gb": partial(favoured, "flows", gb=PAPER),
    "A19.timer": partial(favoured, "flows-rules", rule=TIMER),
}

#: What the figure and the table show: a title, the rule, the order.
_ROWS = (
    ("in turn", None, NONE),
    ("stream 0 first", None, FIRST),
    ("stream 0 first, server by RFC 9260", RFC_9260, FIRST),
    ("stream 0 first, server repeats by its timer alone", TIMER, FIRST),
)


def flows_figure(data: Data) -> Figure:
    """When the objects on each stream were there."""
    figure, axes = canvas(height=3.6)
    for n, (title, rule, first) in enumerate(_ROWS):
        sweep, where = of_rule(rule)
        at = np.arange(3) + 0.08 * (n - 1.5)
        means(axes, at, object_times(data, sweep, first=first, **where), n, title, linestyle="none")
    axes.set_xticks(range(3), [f"object on stream {stream}" for stream in range(3)])
    axes.set_ylabel("there after (s)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return figure


def flows_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Objects, page, and chunks sent again, by the order in RLC and by when the server repeats."""
    rows = []
    for gb in (PAPER, FAST):
        for first in (NONE, FIRST, EACH):
            rows.append([f"Gb {gb}, fourth report", first, *_cells(data, "flows", gb=gb, first=first)])
    for rule in (RFC_9260, TIMER):
        for first in (NONE, FIRST):
            rows.append([f"Gb {FAST}, {rule}", first, *_cells(data, "flows-rules", rule=rule, first=first)])
    return ["", "goes first", "stream 0, s", "stream 1, s", "stream 2, s", "page, s", "sent again"], rows


def _cells(data: Data, sweep: str, **where: Any) -> list[str]:
    objects = [f"{times.mean():.1f}" for times in object_times(data, sweep, **where)]
    page = page_time(data, sweep, **where).mean()
    return [*objects, f"{page:.1f}", f"{sent_again(data, sweep, **where).mean():.1f}"]


def flows_pages(data: Data) -> tuple[list[str], list[list[str]]]:
    """The paper's pages with stream 0 first, Gb of 512 kbit/s."""
    rows = []
    for error in THREE:
        for first in (NONE, FIRST):
            where: dict[str, Any] = {"bler": error, "first": first}
            page = page_time(data, "flows-pages", **where).mean()
            each = data.per_seed("flows-pages", "runs", "arrival_mean_s", **where).mean()
            again = sent_again(data, "flows-pages", **where).mean()
            rows.append([f"{error}", first, f"{page:.2f}", f"{each:.2f}", f"{again:.2f}"])
    return ["error", "goes first", "page, s", "each object, s", "sent again"], rows


FIGURES = {
    "flows": StudyFigure(
        "Ours: streams in RLC flows of different priority (A19)",
        flows_figure,
        "Three objects of 60 kB, one on each stream, through a Gb of 512 kbit/s.",
    )
}
TABLES = {
    "flows": StudyTable("Streams of different priority in RLC: three objects of 60 kB", flows_table),
    "flows-pages": StudyTable("Streams of different priority in RLC: the paper's pages, Gb of 512 kbit/s", flows_pages),
}
