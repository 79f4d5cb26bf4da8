"""The thirteen figures with results that the slides had, in their order; the numbers are ours. Then more of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.analysis import mean_interval
from airloom.plot.figure import LINES
from airloom.study import Data, Numbers, StudyFigure
from airloom.study.drawing import LEAST, canvas, labelled, means

from .loads import H2_PROXIES, at_delay, at_loss, main, times, whole_list
from .tables import of_policy
from .ways import DELAYS, LOSSES, MODES, PROXIES, said

#: An average over pages, seed by seed.
Average = Callable[..., Numbers]

#: The configurations of Figs. 4 to 6, and what the slides call them.
BY_PAGE = {
    ("none", "no keep-alive"): "no keep-alive, no proxy",
    ("none", "keep-alive"): "keep-alive, no proxy",
    ("HTTP", "keep-alive"): "keep-alive, Squid HTTP proxy",
}

LOST = "The slides' own points are lost."


def transmitted(data: Data) -> pl.DataFrame:
    """What came over the network in a cycle of all 135 pages: `page`, `object` (0: the page itself), `url`, `bytes`."""
    data.at_default_only()
    found = data.run("cycle").objects
    return found.filter(pl.col("source").cast(pl.String) == "network")


def _histogram(axes: Axes, values: pl.Series, bins: Any, label: str) -> None:
    axes.set_axisbelow(True)
    axes.hist(values.to_list(), bins=bins, color="0.6", edgecolor="black")
    axes.set_xlabel(label)
    axes.set_ylabel("pages")


def inline_images(data: Data) -> Figure:
    """Fig. 1."""
    data.at_default_only()
    figure, axes = canvas(height=3.2)
    _histogram(axes, data.run("cycle").pages["objects"] - 1, range(0, 100, 5), "inline images of a page")
    return figure


def inline_data(data: Data) -> Figure:
    """Fig. 2."""
    inline = transmitted(data).filter(pl.col("object") > 0).group_by("page").agg(pl.col("bytes").sum())
    figure, axes = canvas(height=3.2)
    _histogram(axes, inline["bytes"] / 1e3, 25, "transmitted inline data of a page (kB)")
    return figure


def servers(data: Data) -> Figure:
    """Fig. 3."""
    host = pl.col("url").str.split("/").list.get(2)
    found = transmitted(data).with_columns(host.alias("host"))
    figure, (left, right) = canvas(1, 2, 3.2)
    of_page = found.group_by("page").agg(pl.col("host").n_unique())["host"]
    _histogram(left, of_page, np.arange(0.5, max(of_page) + 1), "servers that a page accesses")
    accesses = found["host"].value_counts(sort=True)
    right.set_axisbelow(True)
    right.bar(accesses["host"].to_list(), accesses["count"].to_list(), color="0.6", edgecolor="black")
    right.set_ylabel("accesses in a cycle")
    right.tick_params(axis="x", rotation=45)
    return figure


def page_times(data: Data, proxy: str, http: str) -> Numbers:
    """Means of all 135 pages over the seeds."""
    return np.asarray(whole_list(data, proxy, http).mean(axis=0), dtype=np.float64)


def per_page(proxy: str, http: str, data: Data) -> Figure:
    """Figs. 4 to 6: page times in the order of the list; all three have the same scale."""
    figure, axes = canvas(height=3.0)
    found = page_times(data, proxy, http)
    axes.set_axisbelow(True)
    axes.bar(np.arange(len(found)) + 1, found, 0.6, color="0.3")
    axes.axhline(found.mean(), linewidth=0.8, linestyle="--", color="black", label=f"mean {found.mean():.1f} s")
    axes.set_ylim(0, 1.05 * max(page_times(data, *way).max() for way in BY_PAGE))
    axes.set_xlim(0, len(found) + 1)
    axes.set_xticks([1, *range(15, len(found) + 1, 15)])
    return labelled(figure, axes, "page of the surf list", "page time (s)", from_zero=False, loc="upper right")


def sorted_pages(data: Data) -> Figure:
    """The three in one."""
    figure, axes = canvas(height=3.8)
    order = np.argsort(page_times(data, *next(iter(BY_PAGE))), kind="stable")
    for n, way in enumerate(BY_PAGE):
        mark = {"marker": LINES[n]["marker"], "color": LINES[n]["color"], "linestyle": "none", "markersize": 3.0}
        label = f"{way[1]}, {said(way[0])}"
        axes.plot(np.arange(len(order)) + 1, page_times(data, *way)[order], label=label, **mark)
    axes.set_xlim(0, len(order) + 1)
    return labelled(figure, axes, "pages, in the order of their times without keep-alive", "page time (s)")


def _bars(
    groups: Sequence[Sequence[Numbers]], labels: Sequence[str], proxies: Sequence[str], y: str, height: float = 3.6
) -> tuple[Figure, Axes]:
    """A group of bars for each proxy, one bar for each label; 95 % intervals, or each seed where these are few."""
    figure, axes = canvas(height=height)
    width = 0.8 / len(labels)
    for n, (label, samples) in enumerate(zip(labels, groups, strict=True)):
        at = np.arange(len(samples)) + width * (n - (len(labels) - 1) / 2)
        axes.bar(at, [s.mean() for s in samples], 0.9 * width, color=str(0.35 + 0.25 * n), label=label)
        for x, sample in zip(at, samples, strict=True):
            if len(sample) < LEAST:
                axes.plot(np.full(len(sample), x), sample, ".", color="black", markersize=3)
                continue
            found = mean_interval(sample)
            reach = np.nan_to_num([[found.value - found.low], [found.high - found.value]])
            axes.errorbar(x, found.value, yerr=reach, capsize=2, color="black", linewidth=1)
    axes.set_axisbelow(True)
    axes.set_xticks(range(len(proxies)), [said(p) for p in proxies])
    axes.set_ylabel(y)
    figure.legend(*axes.get_legend_handles_labels(), fontsize=8, loc="outside upper center", ncols=len(labels))
    return figure, axes


def nine(average: Average, name: str, data: Data) -> Figure:
    """Figs. 7 and 8: three proxies, three uses of HTTP."""
    groups = [[average(main(data, p, http), axis=1) for p in PROXIES] for http in MODES]
    figure, axes = _bars(groups, MODES, PROXIES, f"{name} page time (s)")
    axes.set_ylim(0, axes.get_ylim()[1])
    return figure


def against_none(data: Data) -> Figure:
    """Fig. 9: what a page takes longer through a proxy than without, by the use of HTTP."""
    proxies = PROXIES[1:]

    def longer(proxy: str, http: str) -> Numbers:
        ours, direct = (main(data, p, http).mean(axis=1) for p in (proxy, "none"))
        return np.asarray(ours - direct, dtype=np.float64)

    groups = [[longer(proxy, http) for proxy in proxies] for http in MODES]
    figure, axes = _bars(groups, MODES, proxies, "mean page time less\nthat without proxy (s)")
    axes.axhline(0, linewidth=0.8, color="black")
    return figure


def over(what: str, average: Average, name: str, data: Data) -> Figure:
    """Figs. 10 to 13: against T or the loss of the internet, keep-alive without pipelining."""
    of, xs, factor, label = {
        "delay": (at_delay, tuple(sorted(DELAYS)), 1, "T of the internet, one way (ms)"),
        "loss": (at_loss, LOSSES, 100, "loss in the internet (%)"),
    }[what]
    figure, axes = canvas(height=3.8)
    for n, proxy in enumerate(PROXIES):
        samples = [average(of(data, proxy, x), axis=1) for x in xs]
        means(axes, [factor * x for x in xs], samples, n, said(proxy))
    return labelled(figure, axes, label, f"{name} page time (s)")


def http2(data: Data) -> Figure:
    """HTTP/2 beside what the slides had."""
    groups = [[main(data, p, http).mean(axis=1) for p in H2_PROXIES] for http in MODES[1:]]
    groups.append([times(data, "http2", proxy=p).mean(axis=1) for p in H2_PROXIES])
    return _bars(groups, [*MODES[1:], "HTTP/2"], H2_PROXIES, "mean page time (s)", 3.4)[0]


def nagle(data: Data) -> Figure:
    """N03: one object through a TCP proxy less the same without, against T, for each thing a proxy may do."""
    shown = ("plain", "Nagle's rule", "5 ms a read")
    panels = (("10kB", "no keep-alive"), ("10kB", "keep-alive"), ("50kB", "keep-alive"))
    at = (20, 100, 200, 400)
    figure, found = canvas(1, 3, 3.4, sharey=True)
    for axes, (size, http) in zip(found, panels, strict=True):
        for n, policy in enumerate(shown):
            means(axes, at, [of_policy(data, policy, t, size, http) for t in at], n, policy)
        axes.axhline(0, linewidth=0.6, color="black")
        axes.set_title(f"{size}, {http}", fontsize=9)
        axes.set_xlabel("T (ms)")
    found[0].set_ylabel("longer through the proxy (s)")
    found[0].legend(fontsize=8)
    return figure


_PAGE = "All 135 pages in the order of the list, means over seeds, T = 20 ms, no loss; the same scale in Figs. 4 to 6. "
_NINE = "Fifteen pages at T = 20 ms without loss; bars are means over seeds with 95 % intervals. "
_OVER = (
    "Fifteen pages; means over seeds with 95 % intervals. The slides' axes are lost, too: what they vary is inferred. "
)

FIGURES = {
    "fig-1": StudyFigure(
        "Fig. 1. Histogram of inline images",
        inline_images,
        f"Of the 135 pages of the made-up set, as loaded in one cycle. {LOST} The slides number no figures: the numbers"
        " here are the order of those with results.",
    ),
    "fig-2": StudyFigure(
        "Fig. 2. Histogram of transmitted inline data",
        inline_data,
        f"What came over the network in one cycle of the 135 pages; what the browser's cache had is not in it. {LOST}",
    ),
    "fig-3": StudyFigure(
        "Fig. 3. Histogram of accessed servers during one cycle",
        servers,
        "Both things that the title may mean: how many servers a page accesses, and how often each server is accessed,"
        f" in one cycle of the 135 pages. {LOST}",
    ),
    **{
        f"fig-{n}": StudyFigure(f"Fig. {n}. HTTP 1.1, {how}", partial(per_page, *way), _PAGE + LOST)
        for n, (way, how) in enumerate(BY_PAGE.items(), 4)
    },
    "fig-7": StudyFigure("Fig. 7. Mean", partial(nine, np.mean, "mean"), _NINE + LOST),
    "fig-8": StudyFigure("Fig. 8. Median", partial(nine, np.median, "median"), _NINE + LOST),
    "fig-9": StudyFigure(
        "Fig. 9. Mean (beside the observations)",
        against_none,
        "The slides have a second figure of means beside what they observe; what it adds to the first is lost. Here the"
        " same means less those without proxy, of which the observations speak.",
    ),
    **{
        f"fig-{n}": StudyFigure(
            f"Fig. {n}. Keep-alive, no pipelining: {name} over {'T' if what == 'delay' else 'the loss'}",
            partial(over, what, average, name),
            _OVER + LOST,
        )
        for n, (what, (name, average)) in enumerate(
            product(("delay", "loss"), (("mean", np.mean), ("median", np.median))), 10
        )
    },
    "pages": StudyFigure(
        "Figs. 4 to 6 in one, page by page (N20)",
        sorted_pages,
        "All 135 pages; what stands above each other is one page. Means over seeds.",
    ),
    "http2": StudyFigure(
        "HTTP/2 in place of pipelining",
        http2,
        "One connection to each server from end to end; the HTTP proxy speaks HTTP/1.1 and is not in it.",
    ),
    "nagle": StudyFigure(
        "One object through a TCP proxy (N03)",
        nagle,
        "Seconds that an object takes longer through the proxy than without, on a new connection (left) and on one that"
        " is open, by what the proxy does.",
    ),
}
