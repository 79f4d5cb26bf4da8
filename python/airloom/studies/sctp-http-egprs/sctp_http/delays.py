"""Further than the paper: when the objects of a page are there, in place of the page; and one to eight streams."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from airloom.study import Data, Numbers, StudyFigure, StudyTable
from airloom.study.drawing import canvas, means

from .pages import ERRORS, THREE, page_time

#: What is measured: its name, and the table and column that have it.
_PAGE = ("page", "pages", "load_ns")
_FIRST = ("first object", "pages", "first_object_ns")
_EACH = ("each object", "runs", "arrival_mean_s")
_ASKED = ("from its request", "runs", "object_mean_s")

#: Ways to ask for the objects of a page: name, sweep, labels in it.
_AT_ALL_RATES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("TCP with SACK", "page-tcp", {}),
    ("SCTP, 1 stream", "page-sctp", {"lanes": 1}),
    ("SCTP, 3 streams", "page-sctp", {"lanes": 3}),
)
_AT_THREE: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("TCP, pipelined", "concurrency", {"use": "pipelined"}),
    ("TCP, three connections", "concurrency", {"use": "three connections"}),
    ("TCP, a connection per object", "concurrency", {"use": "a connection per object"}),
)


def delay(data: Data, what: tuple[str, str, str], sweep: str, **where: Any) -> Numbers:
    """Seconds since the page began, or the object was asked for: the mean of a page's objects, a number per seed."""
    data.at_default_only()
    _, table, column = what
    if table == "pages":
        return page_time(data, sweep, column, **where)
    return data.per_seed(sweep, table, column, **where)


def objects_figure(data: Data) -> Figure:
    """Fig. 5 with the delay of the first object, and of every object, in place of the page's."""
    figure, both = canvas(1, 2, height=3.8)
    for axes, what in zip(both, (_FIRST, _EACH), strict=True):
        for n, (name, sweep, where) in enumerate((*_AT_ALL_RATES, *_AT_THREE[:2])):
            rates = THREE if sweep == "concurrency" else ERRORS
            means(axes, rates, [delay(data, what, sweep, bler=rate, **where) for rate in rates], n, name)
        axes.set_xticks((0, 0.05, 0.1, 0.15, 0.2))
        axes.set_xlabel("error rate (share of RLC blocks)")
        axes.set_ylabel(f"{what[0]} there after (s)")
        axes.set_ylim(bottom=0)
    both[1].legend(fontsize=7)
    return figure


def objects_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Page, first object, every object since the page began and since it was asked for: mean seconds."""
    rows = []
    for error in (0.001, 0.14):
        for name, sweep, where in (*_AT_ALL_RATES, *_AT_THREE):
            times = (delay(data, what, sweep, bler=error, **where).mean() for what in (_PAGE, _FIRST, _EACH, _ASKED))
            rows.append([f"{error}", name, *(f"{time:.2f}" for time in times)])
    return ["error", "", "page", "first object", "each object", "each, from its request"], rows


def streams_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """One to eight streams: page, and every object since the page began, mean seconds."""
    both = [(error, what) for error in THREE for what in (_PAGE, _EACH)]
    rows = [
        [str(n), *(f"{delay(data, what, 'streams', bler=error, lanes=n).mean():.2f}" for error, what in both)]
        for n in range(1, 9)
    ]
    return ["streams", *(f"{what[0]}, {error}" for error, what in both)], rows


FIGURES = {
    "objects": StudyFigure(
        "Ours: Fig. 5 by objects in place of pages",
        objects_figure,
        "One mobile. Left until the first object of the page is there, right the mean over all its objects.",
    )
}
TABLES = {
    "objects": StudyTable("Objects in place of pages (mean s)", objects_table),
    "streams": StudyTable("One to eight streams (mean s, by error rate)", streams_table),
}
