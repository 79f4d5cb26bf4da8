"""What section 6 proposes over the bearer of Table 1: W-TCP, TLS, HTTP, XHTML and a proxy, against WAP 1.x."""

from __future__ import annotations

import gzip
from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from airloom.study import Data, Evidence, Numbers, StudyFigure, StudyTable, pair
from airloom.study.drawing import canvas, interval, means

from .decks import SIZES as DECKS
from .decks import deck, xhtml
from .encoding import encoded
from .http_side import DOWNLINKS, OBJECT, SIZES

#: Ways to the same page: the sweep, its labels, and what it is.
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "HTTP, TLS, W-TCP, proxy: XHTML": ("proposed", {}),
    "the same in clear": ("proposed-clear", {}),
    "HTTP over plain TCP: XHTML": ("plain-tcp", {}),
    "WAP 1.x: WML, encoded by ours": ("proposed-wap", {"content": "ours"}),
    "WAP 1.x: WML, as the paper's gateway": ("proposed-wap", {"content": "paper"}),
    "the same over WTLS": ("proposed-wtls", {}),
}
PROPOSED, CLEAR, PLAIN, WAP, WAP_PAPER, WAP_WTLS = WAYS


def time(data: Data, way: str, size: int, downlink: int) -> Numbers:
    """Response time of the page in seconds, one number per seed."""
    data.at_default_only()
    sweep, where = WAYS[way]
    return data.per_seed(sweep, "pages", "load_ns", page=OBJECT, size=size, downlink=downlink, **where) / 1e9


def against(first: str, second: str, size: int, data: Data, downlink: int = 384) -> Evidence:
    """U37: the same page in two ways, under the same seeds."""
    return pair(time(data, first, size, downlink), time(data, second, size, downlink), "s")


COMPUTE = {
    **{f"U37.{size}": partial(against, PROPOSED, WAP_PAPER, size) for size in SIZES},
    **{f"U37.{size}-64": partial(against, PROPOSED, WAP_PAPER, size, downlink=64) for size in SIZES},
    "U37.1-ours": partial(against, PROPOSED, WAP, 1),
    "U37.100-ours": partial(against, PROPOSED, WAP, 100),
    "U37.w-tcp": partial(against, CLEAR, PLAIN, 10),
    "U37.w-tcp-100": partial(against, CLEAR, PLAIN, 100),
    "U37.tls": partial(against, PROPOSED, CLEAR, 100),
    "U37.1-wtls": partial(against, PROPOSED, WAP_WTLS, 1),
    "U37.100-wtls": partial(against, PROPOSED, WAP_WTLS, 100),
    "U37.wtls": partial(against, WAP_WTLS, WAP_PAPER, 100),
}


def architecture_figure(data: Data) -> Figure:
    """Response times of one page in every way, over its size."""
    figure, plots = canvas(1, 2, height=4.6, sharey=True)
    for axes, downlink in zip(plots, DOWNLINKS, strict=True):
        for n, way in enumerate(WAYS):
            means(axes, SIZES, [time(data, way, size, downlink) for size in SIZES], n, way)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(SIZES, [str(size) for size in SIZES])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set_xlabel("content as text (kB)")
        axes.set_title(f"{downlink} kbit/s", loc="left", fontsize=9)
    plots[0].set_ylabel("response time (s)")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def architecture_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """The same as numbers."""
    rows = [
        [downlink, size, *(interval(time(data, way, size, downlink)) for way in WAYS)]
        for downlink in DOWNLINKS
        for size in SIZES
    ]
    return ["kbit/s", "kB", *(f"{way} (s)" for way in WAYS)], rows


def page_table(_: Data) -> tuple[list[str], list[list[Any]]]:
    """XHTML against WML of the same page, octets."""
    rows = []
    for size in DECKS:
        page = xhtml(size)
        zipped = [len(gzip.compress(text, 6, mtime=0)) for text in (page, deck(size))]
        tokens = [len(encoded(size)), len(encoded(size, string_table=True))]
        rows.append([size, len(page), *tokens, *zipped, f"{len(page) / tokens[0]:.2f}"])
    heads = ["WML, text", "XHTML, text", "WBXML, strings in place", "WBXML, string table", "XHTML, gzip", "WML, gzip"]
    return [*heads, "XHTML over WBXML in place"], rows


FIGURES = {
    "architecture": StudyFigure(
        "6: the same page as XHTML by what the paper proposes, and as WML by WAP 1.x, over W-CDMA",
        architecture_figure,
        "5 % of FEC frames in error; connection, tunnel and session are open. The paper proposes the architecture and "
        "measures nothing of it, so there are no points of its own.",
    ),
}

TABLES = {
    "architecture": StudyTable(
        "6: response times of the same page, s: what the paper proposes, plain TCP, and WAP 1.x, over W-CDMA",
        architecture_table,
    ),
    "markup": StudyTable("6: the same page in XHTML and in WML, octets", page_table),
}
