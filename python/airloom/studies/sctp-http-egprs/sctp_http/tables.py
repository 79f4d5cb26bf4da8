"""The paper's tables beside ours, and the numbers of the figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from airloom.study import Data, StudyTable
from airloom.study.drawing import interval

from . import drawn, setup
from .pages import ERRORS, THREE, gap, page_time, sctp, tcp


def response_times(data: Data) -> tuple[list[str], list[list[str]]]:
    """The numbers of Figs. 4 to 7."""
    rows = []
    for e in ERRORS:
        alone = (tcp(data, e), sctp(data, e, 1), sctp(data, e, 3), gap(data, e))
        cell = (page_time(data, f"cell-{protocol}", bler=e) for protocol in ("tcp", "sctp"))
        rows.append([f"{e}", *(interval(times) for times in (*alone, *cell))])
    columns = ["error rate", "TCP", "SCTP, 1 stream", "SCTP, 3 streams", "TCP less 3 streams"]
    return [*columns, "four mobiles: TCP", "four mobiles: SCTP, 3 streams"], rows


def spread(data: Data) -> tuple[list[str], list[list[str]]]:
    """Means and medians, and what of the mean the largest pages carry."""
    columns = ["", "error", "pages", "mean s", "median s", "largest 1 % carry"]
    rows = []
    for label, streams in (("TCP", 0), ("SCTP, 1 stream", 1), ("SCTP, 3 streams", 3)):
        for error in THREE:
            times = np.sort(sctp(data, error, streams) if streams else tcp(data, error))
            top = times[-max(len(times) // 100, 1) :].sum() / times.sum()
            numbers = [f"{len(times):,}", f"{times.mean():.2f}", f"{np.median(times):.2f}", f"{top:.1%}"]
            rows.append([label, f"{error}", *numbers])
    return columns, rows


def requests(data: Data) -> tuple[list[str], list[list[str]]]:
    """The ways to use TCP beside SCTP: the page and its first object, mean seconds."""
    ways: list[tuple[str, str, dict[str, Any]]] = [("TCP, one after another", "page-tcp", {})]
    ways += [
        (f"TCP, {use}", "concurrency", {"use": use})
        for use in ("a connection per object", "pipelined", "three connections")
    ]
    ways += [(f"SCTP, streams: {n}", "page-sctp", {"lanes": n}) for n in (1, 3)]
    rows = []
    for label, sweep, where in ways:
        both = [(error, column) for error in THREE for column in ("load_ns", "first_object_ns")]
        rows.append([label, *(f"{page_time(data, sweep, c, bler=e, **where).mean():.2f}" for e, c in both)])
    return ["", *(f"{what}, {e}" for e in THREE for what in ("page", "first"))], rows


def without_losses_on_gi(data: Data) -> tuple[list[str], list[list[str]]]:
    """The gap with and without the 1 % of packets that Gi loses."""
    rows = []
    for error in THREE:
        clean = [page_time(data, f"clean-gi-{protocol}", bler=error) for protocol in ("tcp", "sctp")]
        lossy = tcp(data, error) - sctp(data, error, 3)
        rows.append([f"{error}", f"{lossy.mean():+.2f}", f"{(clean[0] - clean[1]).mean():+.2f}"])
    return ["error", "1 % lost on Gi: TCP less SCTP, s", "nothing lost on Gi"], rows


def shares(data: Data) -> tuple[list[str], list[list[str]]]:
    """Four mobiles in a cell: what each pair gets while it loads, and the share of the TCP mobiles."""
    rows = []
    for rival in ("TCP", "SCTP"):
        pages = data.table("mixed", "pages", rival=rival).with_columns(pl.col("client").cast(pl.String))
        is_ours = pl.col("client").str.starts_with("tcp")
        rates = []
        for of in (pages.filter(is_ours), pages.filter(~is_ours)):
            rate = pl.col("bytes").sum() * 8e6 / pl.col("load_ns").sum()
            rates.append(of.group_by("seed").agg(rate.alias("rate")).sort("seed")["rate"].to_numpy())
        ours, theirs = rates
        cells = [f"{rate.mean():.1f}" for rate in rates]
        rows.append([f"two TCP beside two {rival}", *cells, interval(ours / (ours + theirs))])
    return ["", "TCP, kbit/s while loading", "rivals, kbit/s", "share of the TCP mobiles"], rows


TABLES: dict[str, StudyTable] = {
    "table-1": StudyTable(
        "Table 1. SCTP agents' parameters",
        setup.table_1,
        "As printed, beside the run's: its longest packet and its streams counted, the rest as set. Octets, not bits: "
        "64 kbit would be 5.5 packets. A sender of SCTP goes on while less than its window is under way, so that three "
        "packets leave first.",
    ),
    "table-2": StudyTable(
        "Table 2. TCP agents' parameters", setup.table_2, "As printed, beside the run's; octets, not bits."
    ),
    "times": StudyTable(
        "Figs. 4 to 7 in numbers: response times, s",
        response_times,
        "Means with 95 % intervals. The paper has less than 0.4 s between TCP and three streams at 0.001, more than 5 "
        "s at 0.14.",
    ),
    "page-times": StudyTable("Page times, one mobile", spread),
    "drawn": StudyTable(
        "The pages drawn",
        drawn.laws_table,
        "Means with 95 % intervals. Without an end the laws have no variance, and no number of pages has their mean.",
    ),
    "ways": StudyTable("Ways to ask for the objects of a page (mean s)", requests),
    "clean-gi": StudyTable("What losses on Gi do", without_losses_on_gi),
    "fairness": StudyTable("Fairness in a cell of four", shares),
}
"""The paper's two first, then ours."""
