"""What the study draws, and the tables beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.analysis import mean_interval
from airloom.plot.figure import LINES
from airloom.study import Data, StudyFigure, StudyTable

from .pages import ERRORS, THREE, Numbers, gain, new_blocks, page_time, sctp, tcp

#: Block error rate 0 has no place on a logarithmic axis.
DRAWN = tuple(e for e in ERRORS if e > 0)


def _figure(width: float = 6.0, height: float = 4.2) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _means(axes: Axes, x: Any, samples: list[Numbers], n: int, label: str) -> None:
    """Means with 95 % intervals."""
    found = [mean_interval(sample) for sample in samples]
    reach = [[f.value - f.low for f in found], [f.high - f.value for f in found]]
    axes.errorbar(x, [f.value for f in found], yerr=np.nan_to_num(reach), capsize=3, label=label, **LINES[n])


def _against_errors(axes: Axes, what: str, *, from_zero: bool = True) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("block error rate")
    axes.set_ylabel(what)
    if from_zero:
        axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)


def fig_4_5(data: Data) -> Figure:
    """Response time against the block error rate, one mobile."""
    figure = _figure()
    axes = figure.subplots()
    _means(axes, DRAWN, [tcp(data, e) for e in DRAWN], 0, "TCP with SACK")
    for n, streams in enumerate((1, 3), 1):
        label = f"SCTP, {streams} stream{'s' if streams > 1 else ''}"
        _means(axes, DRAWN, [sctp(data, e, streams) for e in DRAWN], n, label)
    _against_errors(axes, "page time (s)")
    return figure


def gap_figure(data: Data) -> Figure:
    """TCP less SCTP, page by page, with what the paper says of it."""
    figure = _figure()
    axes = figure.subplots()
    for n, streams in enumerate((1, 3)):
        gaps = [tcp(data, e) - sctp(data, e, streams) for e in DRAWN]
        _means(axes, DRAWN, gaps, n, f"less SCTP, {streams} stream{'s' if streams > 1 else ''}")
    hollow: dict[str, Any] = {"markersize": 9, "fillstyle": "none", "color": "black", "linestyle": "none"}
    axes.plot([0.001], [0.4], marker="v", label="paper: less than 0.4 s", **hollow)
    axes.plot([0.14], [5], marker="^", label="paper: more than 5 s", **hollow)
    axes.axhline(0, linewidth=0.6, color="black")
    _against_errors(axes, "page time of TCP less that of SCTP (s)", from_zero=False)
    return figure


def fig_6(data: Data) -> Figure:
    """Four mobiles."""
    figure = _figure()
    axes = figure.subplots()
    for n, (protocol, label) in enumerate((("tcp", "TCP with SACK"), ("sctp", "SCTP, 3 streams"))):
        _means(axes, THREE, [page_time(data, f"cell-{protocol}", bler=e) for e in THREE], n, f"all four {label}")
    _against_errors(axes, "page time (s)")
    return figure


def fig_8_9(data: Data) -> Figure:
    """New RLC blocks against time, the same page, one seed."""
    figure = _figure(7.0, 3.6)
    for axes, (protocol, label) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), (("tcp", "TCP"), ("sctp", "SCTP, 3 streams")), strict=True
    ):
        blocks = new_blocks(data.run(f"blocks-{protocol}"))
        axes.plot(blocks["t_ns"].to_numpy() / 1e9, np.arange(1, blocks.height + 1), **{**LINES[0], "marker": ""})
        axes.set_title(label, fontsize=9)
        axes.set_xlabel("time (s)")
    figure.axes[0].set_ylabel("new RLC blocks")
    return figure


def streams_figure(data: Data) -> Figure:
    """One to eight streams: the page, and its first object."""
    figure = _figure(7.0, 3.6)
    at = range(1, 9)
    for axes, (column, what) in zip(
        figure.subplots(1, 2), (("load_ns", "page time (s)"), ("first_object_ns", "first object (s)")), strict=True
    ):
        for n, error in enumerate(THREE):
            samples = [page_time(data, "streams", column, bler=error, lanes=k) for k in at]
            _means(axes, list(at), samples, n, f"block error rate {error}")
        axes.set_xlabel("streams")
        axes.set_ylabel(what)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    return figure


def load_figure(data: Data) -> Figure:
    """What SCTP saves, by the load of the cell."""
    figure = _figure()
    axes = figure.subplots()
    reading = (0, 2, 5, 10, 20)
    for n, mobiles in enumerate((1, 2, 4, 8)):
        _means(
            axes, reading, [gain(data, "grid", mobiles=mobiles, reading=r) for r in reading], n, f"{mobiles} mobiles"
        )
    axes.axhline(0, linewidth=0.6, color="black")
    axes.set_xlabel("mean reading time (s)")
    axes.set_ylabel("SCTP's gain, part of TCP's page time")
    axes.legend(fontsize=8)
    return figure


FIGURES = {
    "fig-4-5": StudyFigure("Figs. 4 and 5: one mobile", fig_4_5),
    "gap": StudyFigure("Fig. 5, the gap", gap_figure),
    "fig-6": StudyFigure("Figs. 6 and 7: four mobiles", fig_6),
    "fig-8-9": StudyFigure("Figs. 8 and 9: RLC blocks", fig_8_9),
    "streams": StudyFigure("Ours: one to eight streams", streams_figure),
    "load": StudyFigure("Ours: the advantage by the load of the cell", load_figure),
}


# ---- tables --------------------------------------------------------------------------------------------------------


def spread(data: Data) -> tuple[list[str], list[list[str]]]:
    """Means and medians, and what of the mean the largest pages carry."""
    columns = ["", "error", "pages", "mean s", "median s", "largest 1 % carry"]
    rows = []
    for label, streams in (("TCP", 0), ("SCTP, 1 stream", 1), ("SCTP, 3 streams", 3)):
        for error in THREE:
            times = np.sort(sctp(data, error, streams) if streams else tcp(data, error))
            top = times[-max(len(times) // 100, 1) :].sum() / times.sum()
            rows.append(
                [label, f"{error}", f"{len(times)}", f"{times.mean():.2f}", f"{np.median(times):.2f}", f"{top:.1%}"]
            )
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
        cells = [label]
        for error in THREE:
            for column in ("load_ns", "first_object_ns"):
                cells.append(f"{page_time(data, sweep, column, bler=error, **where).mean():.2f}")
        rows.append(cells)
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
        share = mean_interval(ours / (ours + theirs))
        cells = [f"{rate.mean():.1f}" for rate in rates]
        rows.append([f"two TCP beside two {rival}", *cells, f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"])
    return ["", "TCP, kbit/s while loading", "rivals, kbit/s", "share of the TCP mobiles"], rows


TABLES = {
    "page-times": StudyTable("Page times, one mobile", spread),
    "ways": StudyTable("Ways to ask for the objects of a page (mean s)", requests),
    "clean-gi": StudyTable("What losses on Gi do", without_losses_on_gi),
    "fairness": StudyTable("Fairness in a cell of four", shares),
}
