"""What the study draws: the figures that the slides had, and the map of N03."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom import page_sets
from airloom.analysis import mean_interval
from airloom.plot.figure import LINES
from airloom.study import Data, StudyFigure

from .loads import (
    DELAYS,
    H2_PROXIES,
    LOSSES,
    MODES,
    PROXIES,
    Numbers,
    at_delay,
    at_loss,
    by_page,
    by_seed,
    main,
    rows,
    times,
)
from .tables import of_policy

#: Over the pages of each seed.
AVERAGES: tuple[tuple[Callable[..., Numbers], str], ...] = ((np.mean, "mean"), (np.median, "median"))


def _figure(width: float = 6.0, height: float = 4.2) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def histograms(data: Data) -> Figure:
    """N12: inline objects, inline data, servers of each of the 135 pages."""
    data.at_default_only()
    pages = page_sets.news().pages
    figure = _figure(9.0, 3.2)
    shown: tuple[tuple[list[float], str], ...] = (
        ([len(p.objects) - 1 for p in pages], "inline objects"),
        ([(p.octets - p.objects[0].size) / 1e3 for p in pages], "inline data (kB)"),
        ([p.servers for p in pages], "servers"),
    )
    for axes, (values, label) in zip(figure.subplots(1, 3), shown, strict=True):
        bins: Any = np.arange(0.5, max(values) + 1) if label == "servers" else 20
        axes.set_axisbelow(True)
        axes.hist(values, bins=bins, color="0.6", edgecolor="black")
        axes.set_xlabel(label)
    figure.axes[0].set_ylabel("pages")
    return figure


def per_page(data: Data) -> Figure:
    """N20: page time against the number of objects, a point for each page."""
    shown = (("none", "no keep-alive"), ("none", "keep-alive"), ("HTTP", "keep-alive"))
    figure = _figure(9.0, 3.4)
    for axes, (proxy, http) in zip(figure.subplots(1, 3, sharex=True, sharey=True), shown, strict=True):
        objects = by_page(data, rows(data, "main", proxy=proxy, http=http)["objects"].to_numpy())
        axes.plot(objects, by_page(data, main(data, proxy, http)), "o", color="black", markersize=4)
        axes.set_title(f"{http}, {'HTTP' if proxy == 'HTTP' else 'no'} proxy", fontsize=9)
        axes.set_xlabel("objects")
        axes.set_ylim(bottom=0)
    figure.axes[0].set_ylabel("page time (s)")
    return figure


def mean_and_median(data: Data) -> Figure:
    """N21: bars of means and medians, 95 % intervals over seeds; and HTTP/2, which the slides did not have."""
    figure = _figure(9.0, 3.6)
    for axes, (of, name) in zip(figure.subplots(1, 2, sharey=True), AVERAGES, strict=True):
        for n, http in enumerate((*MODES, "HTTP/2")):
            sweep, proxies = ("main", PROXIES) if http in MODES else ("http2", H2_PROXIES)
            where = {"http": http} if http in MODES else {}
            of_proxy = (by_seed(data, times(data, sweep, proxy=proxy, **where), sweep) for proxy in proxies)
            found = [mean_interval(of(pages, axis=1)) for pages in of_proxy]
            reach = np.nan_to_num([[f.value - f.low for f in found], [f.high - f.value for f in found]])
            at = np.arange(len(proxies)) + 0.21 * (n - 1.5)
            axes.bar(at, [f.value for f in found], 0.19, yerr=reach, capsize=2, color=str(0.3 + 0.2 * n), label=http)
        axes.set_xticks(range(len(PROXIES)), [f"{p} proxy" if p != "none" else "no proxy" for p in PROXIES])
        axes.set_title(name, fontsize=9)
        axes.set_axisbelow(True)
    figure.axes[0].set_ylabel("page time (s)")
    # The bars of the medians leave room above the last ones.
    figure.axes[1].legend(fontsize=8, loc="upper right")
    return figure


def _over(of: Callable[[Data, str, float], Numbers], xs: tuple[float, ...], label: str, sweep: str) -> Any:
    """N22: mean and median against what is varied, keep-alive without pipelining."""

    def draw(data: Data) -> Figure:
        figure = _figure(9.0, 3.6)
        panels: list[Axes] = list(figure.subplots(1, 2))
        for axes, (average, name) in zip(panels, AVERAGES, strict=True):
            for n, proxy in enumerate(PROXIES):
                found = [mean_interval(average(by_seed(data, of(data, proxy, x), sweep), axis=1)) for x in xs]
                reach = np.nan_to_num([[f.value - f.low for f in found], [f.high - f.value for f in found]])
                at = [100 * x for x in xs] if sweep == "loss" else list(xs)
                said = "no proxy" if proxy == "none" else f"{proxy} proxy"
                axes.errorbar(at, [f.value for f in found], yerr=reach, capsize=3, label=said, **LINES[n])
            axes.set_title(name, fontsize=9)
            axes.set_xlabel(label)
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("page time (s)")
        panels[0].legend(fontsize=8)
        return figure

    return draw


def nagle(data: Data) -> Figure:
    """N03: one object through a TCP proxy less the same without, against T, for each thing a proxy may do."""
    shown = ("plain", "Nagle's rule", "5 ms a read")
    figure = _figure(9.0, 3.6)
    for axes, (size, http) in zip(
        figure.subplots(1, 3, sharey=True),
        (("10kB", "no keep-alive"), ("10kB", "keep-alive"), ("50kB", "keep-alive")),
        strict=True,
    ):
        for n, policy in enumerate(shown):
            found = [mean_interval(of_policy(data, policy, t, size, http)) for t in (20, 100, 200, 400)]
            reach = np.nan_to_num([[f.value - f.low for f in found], [f.high - f.value for f in found]])
            axes.errorbar(
                (20, 100, 200, 400), [f.value for f in found], yerr=reach, capsize=3, label=policy, **LINES[n]
            )
        axes.axhline(0, linewidth=0.6, color="black")
        axes.set_title(f"{size}, {http}", fontsize=9)
        axes.set_xlabel("T (ms)")
    figure.axes[0].set_ylabel("longer through the proxy (s)")
    figure.axes[0].legend(fontsize=8)
    return figure


FIGURES = {
    "histograms": StudyFigure("The page set (N12; the slides' histograms are lost)", histograms),
    "per-page": StudyFigure("Page time by page (N20)", per_page),
    "bars": StudyFigure("Mean and median (N21)", mean_and_median),
    "delay": StudyFigure(
        "Over the delay of the internet (N22)", _over(at_delay, tuple(sorted(DELAYS)), "T (ms)", "delay")
    ),
    "loss": StudyFigure("Over the loss of the internet (N22)", _over(at_loss, LOSSES, "loss (%)", "loss")),
    "nagle": StudyFigure("One object through a TCP proxy (N03)", nagle),
}
