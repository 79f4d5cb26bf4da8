"""N13: both clocks beside each other.

Virtual time has Linux's TCP here, with the congestion control and loss detection that the scenario tells the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from airloom.analysis import mean_interval
from airloom.errors import UsageError
from airloom.plot.figure import LINES
from airloom.study import Computation, Data, Evidence, NotMade, StudyFigure, StudyTable, jackknifed, pair
from airloom.study.drawing import canvas, labelled

from .loads import at_delay, at_loss, rows, spearman
from .measured import measured, together, visited
from .ways import DELAYS, LOSSES, PROXIES, VARIANTS, Way, said, varied

#: What each clock's table is grouped by.
_WAY = list(Way._fields)
#: Where both clocks have the TCP proxy and none.
_POINTS = ((20, 0.0), (100, 0.0), (200, 0.0), (400, 0.0), (20, 0.02), (20, 0.05))
#: How real time is drawn: as the lines of virtual time, hollow and larger.
_HOLLOW = [{**line, "linestyle": "none", "fillstyle": "none", "markersize": 8.0} for line in LINES]


def simulated(data: Data, way: Way) -> pl.DataFrame:
    """Pages of a way over Linux's TCP in virtual time: `page`, `virtual_s`."""
    if (way.t, way.loss) == Way("none")[2:]:
        sweep = "clocks-variants" if way.proxy in VARIANTS else "clocks"
        found = rows(data, sweep, proxy=way.proxy, http=way.http)
    elif way.loss == 0:
        found = rows(data, "clocks-delay", proxy=way.proxy, t=way.t)
    else:
        found = rows(data, "clocks-loss", proxy=way.proxy, loss=way.loss)
    visits = visited(data)
    places = [visits[(n - 1) % len(visits)] for n in found["page"]]
    return pl.DataFrame({"page": places, "virtual_s": found["load_ns"].to_numpy() / 1e9})


def both(data: Data, which: Callable[[Way], bool]) -> pl.DataFrame:
    """Mean times of each page on each way, `real_s` and `virtual_s`, of pages that both have."""
    real = measured(data).group_by(*_WAY, "page").agg(pl.col("load_s").mean().alias("real_s"))
    ways = [way for way in map(Way._make, real.select(_WAY).unique().sort(_WAY).rows()) if which(way)]
    if not ways:
        raise NotMade("none of these ways was measured in time")
    virtual = pl.concat(
        simulated(data, way)
        .group_by("page")
        .agg(pl.col("virtual_s").mean())
        .with_columns(pl.lit(x, dtype=real.schema[name]).alias(name) for name, x in zip(_WAY, way, strict=True))
        for way in ways
    )
    joined = real.join(virtual, on=[*_WAY, "page"]).sort(*_WAY, "page")
    if joined.is_empty():
        raise UsageError("real.json: none of its pages is one that the study loads")
    return joined


def is_base(way: Way) -> bool:
    """One of the nine of the slides, at T = 20 ms without loss?"""
    return way.proxy in PROXIES and way[2:] == Way("none")[2:]


def is_elsewhere(way: Way) -> bool:
    """At another T or loss?"""
    return way[2:] != Way("none")[2:]


def _means(found: pl.DataFrame) -> pl.DataFrame:
    return found.group_by(_WAY, maintain_order=True).agg(pl.col("real_s", "virtual_s").mean())


def means(which: Callable[[Way], bool], data: Data) -> Evidence:
    """N13: the mean of each configuration, in both clocks."""
    found = _means(both(data, which))
    return pair(found["real_s"].to_numpy(), found["virtual_s"].to_numpy(), "s")


def ranks(data: Data) -> Evidence:
    """N13: the order of pages, over the nine configurations."""
    found = both(data, is_base).group_by("page", maintain_order=True).agg(pl.col("real_s", "virtual_s").mean())
    return jackknifed(spearman, found["real_s"], found["virtual_s"], unit="rank correlation")


def base(data: Data) -> tuple[list[str], list[list[str]]]:
    """N13: means of the fifteen pages in both clocks, and in a browser of today, each page of which begins anew."""
    data.at_default_only()
    today = data.program("real").get("chromium") or []
    cells = []
    for row in _means(both(data, is_base)).iter_rows(named=True):
        of = [r[4] for r in today if (r[0], r[1]) == (row["proxy"], row["http"])]
        shown = f"{np.mean(of):.2f} ({len(of)} pages)" if of else "–"
        cells.append([row["proxy"], row["http"], *_numbers(row), shown])
    return ["proxy", "HTTP", "virtual (s)", "real (s)", "real / virtual", "Chromium (s)"], cells


def others(data: Data) -> tuple[list[str], list[list[str]]]:
    """N13: the same over T and loss, and for proxies with other settings."""
    data.at_default_only()
    found = _means(both(data, lambda way: not is_base(way)))
    cells = [
        [row["proxy"], row["http"], f"{row['t']}", f"{100 * row['loss']:g}", *_numbers(row)]
        for row in found.iter_rows(named=True)
    ]
    return ["proxy", "HTTP", "T (ms)", "loss (%)", "virtual (s)", "real (s)", "real / virtual"], cells


def gaps(data: Data) -> tuple[list[str], list[list[str]]]:
    """N06, N11, N23: what a page takes longer through the TCP proxy.

    Over the study's TCP with the rule of RFC 896, over Linux's with its own, and in real time.
    """
    data.at_default_only()
    measured(data)
    cells = []
    for t, loss in _POINTS:
        ways = Way("TCP", t=t, loss=loss), Way("none", t=t, loss=loss)
        study = [at_loss(data, way.proxy, loss) if loss else at_delay(data, way.proxy, t) for way in ways]
        linux = [simulated(data, way)["virtual_s"].to_numpy().reshape(-1, len(visited(data))) for way in ways]
        virtual = [mean_interval((ours - direct).mean(axis=1)) for ours, direct in (study, linux)]
        found = [*virtual, mean_interval(np.subtract(*together(data, ways)))]
        cells.append([f"{t}", f"{100 * loss:g}", *(f"{f.value:+.2f} [{f.low:.2f}, {f.high:.2f}]" for f in found)])
    return ["T (ms)", "loss (%)", "virtual, RFC's TCP (s)", "virtual, Linux's TCP (s)", "real (s)"], cells


def _numbers(row: dict[str, float]) -> list[str]:
    return [f"{row['virtual_s']:.2f}", f"{row['real_s']:.2f}", f"{row['real_s'] / row['virtual_s']:.2f}"]


def scatter(data: Data) -> Figure:
    """N13: each page of each configuration, in real time against virtual time."""
    data.at_default_only()
    found = both(data, is_base)
    figure, axes = canvas(height=4.8)
    axes.set_aspect("equal")
    for n, proxy in enumerate(PROXIES):
        of = found.filter(pl.col("proxy") == proxy)
        mark = {**LINES[n], "linestyle": "none", "markersize": 4.0}
        axes.plot(of["virtual_s"], of["real_s"], label=said(proxy), **mark)
    most = float(max(found["virtual_s"].max(), found["real_s"].max()))  # type: ignore[arg-type,type-var]
    axes.plot((0, most), (0, most), linewidth=0.6, color="black")
    return labelled(figure, axes, "page time in virtual time (s)", "page time in real time (s)", from_zero=False)


def internet(data: Data) -> Figure:
    """N06, N11, N22, N23: over T and loss with keep-alive; virtual time as lines, real time as hollow marks."""
    data.at_default_only()
    found = both(data, lambda way: way.http == "keep-alive" and way.proxy in PROXIES)
    figure, panels = canvas(1, 2, 3.8)
    shown = (("t", DELAYS, 1.0, "T (ms)"), ("loss", LOSSES, 100.0, "loss (%)"))
    for axes, (vary, over, factor, label) in zip(panels, shown, strict=True):
        for n, proxy in enumerate(PROXIES):
            at = sorted(over)
            of = [simulated(data, varied(proxy, vary, x))["virtual_s"].mean() for x in at]
            axes.plot([factor * x for x in at], of, label=f"{said(proxy)}, virtual", **LINES[n])
            other = "loss" if vary == "t" else "t"
            kept = (pl.col("proxy") == proxy) & (pl.col(other) == getattr(Way(proxy), other))
            measured_at = _means(found.filter(kept)).sort(vary)
            xs = (measured_at[vary] * factor).to_list()
            axes.plot(xs, measured_at["real_s"].to_list(), label=f"{said(proxy)}, real", **_HOLLOW[n])
        axes.set_xlabel(label)
        axes.margins(y=0.1)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("mean page time (s)")
    figure.legend(*panels[0].get_legend_handles_labels(), fontsize=8, loc="outside upper center", ncols=3)
    return figure


TABLES = {
    "clocks": StudyTable(
        "Both clocks, and a browser of today (N13)",
        base,
        "Means of the fifteen pages: twenty seeds of virtual time over Linux's TCP, up to three of real time; Chromium"
        " with six connections to a server and an empty cache for each page.",
    ),
    "clocks-tcp-proxy": StudyTable(
        "The TCP proxy less no proxy with keep-alive, in both clocks (N06, N11, N23)",
        gaps,
        "RFC's TCP is that of the study, with RFC 896's rule in the proxy; Linux's has Minshall's, as the forwarder.",
    ),
    "clocks-internet": StudyTable(
        "Both clocks over T and loss, and proxies with other settings (N03, N06, N13, N23)", others
    ),
}
FIGURES = {
    "clocks": StudyFigure(
        "Pages in both clocks (N13)",
        scatter,
        "Each page of the nine configurations at T = 20 ms without loss, means over seeds; on the line both agree.",
    ),
    "clocks-internet": StudyFigure(
        "Over T and loss in both clocks, Linux's TCP (N06, N11, N22, N23)",
        internet,
        "Keep-alive without pipelining. Lines are virtual time, hollow marks real programs; nothing is the slides'.",
    ),
}

COMPUTE: dict[str, Computation] = {
    "N13.means": partial(means, is_base),
    "N13.internet": partial(means, is_elsewhere),
    "N13.ranks": ranks,
}
