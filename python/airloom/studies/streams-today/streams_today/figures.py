"""Figures and tables: objects and pages under losses, handshakes, and head-of-line times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.plot.figure import LINES
from airloom.study import Data, Numbers, StudyFigure, StudyTable
from airloom.study.drawing import canvas, interval, means

from .times import AT_ONCE, BEARERS, LOSSES, MOST, PROTOCOLS, SIX, object_delay, page_time, set_up, share
from .times import small_pages as small
from .waits import waits

_PERCENT = [100 * loss for loss in LOSSES]
#: Protocols whose objects can wait for each other.
_SIDE_BY_SIDE = ("h2", "h3", "sctp")


def _panels(of: Callable[[str, Axes], None], what: str, x: str) -> Figure:
    """A panel for each radio."""
    figure, panels = canvas(1, 3, height=3.2)
    for axes, bearer in zip(panels, BEARERS, strict=True):
        of(bearer, axes)
        axes.set_title(bearer, fontsize=9)
        axes.set_xlabel(x)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel(what)
    panels[0].legend(fontsize=7)
    return figure


def objects_figure(data: Data) -> Figure:
    """Objects against losses."""

    def draw(bearer: str, axes: Axes) -> None:
        for n, (protocol, (name, _)) in enumerate(PROTOCOLS.items()):
            samples = [object_delay(data, protocol, bearer=bearer, loss=loss, at_once=SIX) for loss in LOSSES]
            means(axes, _PERCENT, samples, n, name)

    return _panels(draw, "object there after (s)", "packets lost on the wire (%)")


def at_once_figure(data: Data) -> Figure:
    """Pages against requests at a time, with losses."""

    def draw(bearer: str, axes: Axes) -> None:
        for n, (protocol, (name, _)) in enumerate(PROTOCOLS.items()):
            samples = [page_time(data, protocol, bearer=bearer, loss=MOST, at_once=k) for k in AT_ONCE]
            means(axes, AT_ONCE, samples, n, name)
        axes.set_xticks(AT_ONCE)

    return _panels(draw, "page there after (s)", "requests at a time")


def waits_figure(data: Data) -> Figure:
    """Head-of-line times against losses."""

    def draw(bearer: str, axes: Axes) -> None:
        for n, protocol in enumerate(_SIDE_BY_SIDE, 1):
            samples = [1e3 * waits(data, protocol, bearer=bearer, loss=loss) for loss in LOSSES]
            means(axes, _PERCENT, samples, n, PROTOCOLS[protocol][0])

    return _panels(draw, "complete, and waiting (ms)", "packets lost on the wire (%)")


def set_up_figure(data: Data) -> Figure:
    """Bars: what part of the page its handshake is."""
    figure, axes = canvas(height=3.2)
    width = 0.8 / len(PROTOCOLS)
    for n, (protocol, (name, _)) in enumerate(PROTOCOLS.items()):
        at = np.arange(len(BEARERS)) + (n - (len(PROTOCOLS) - 1) / 2) * width
        parts = [100 * share(data, protocol, bearer).mean() for bearer in BEARERS]
        bars = axes.bar(at, parts, 0.9 * width, color=LINES[n]["color"], label=name)
        took = [f"{set_up(data, protocol, bearer).mean():.2f} s" for bearer in BEARERS]
        axes.bar_label(bars, took, fontsize=7, padding=2)
    axes.set_xticks(range(len(BEARERS)), BEARERS)
    axes.set_ylabel("set-up, % of the page's time")
    axes.margins(y=0.1)
    axes.legend(fontsize=8)
    return figure


def objects_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Objects and pages, six at a time."""
    rows = []
    for bearer in BEARERS:
        for protocol, (name, _) in PROTOCOLS.items():
            cells = [bearer, name]
            for time in (object_delay, page_time):
                cells += [interval(time(data, protocol, bearer=bearer, loss=loss, at_once=SIX)) for loss in LOSSES]
            air: dict[str, Any] = {"kind": "air", "bearer": bearer}
            rows.append([*cells, *(interval(time(data, protocol, **air)) for time in (object_delay, page_time))])
    lost = [f"{loss:.0%}" for loss in LOSSES]
    columns = [f"{what}, {each}" for what in ("object", "page") for each in lost]
    return ["radio", "", *columns, "object, air", "page, air"], rows


def at_once_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Pages by requests at a time."""
    rows = []
    for bearer in BEARERS:
        for protocol, (name, _) in PROTOCOLS.items():
            times: list[Numbers] = [
                page_time(data, protocol, bearer=bearer, loss=loss, at_once=k) for loss in (0, MOST) for k in AT_ONCE
            ]
            rows.append([bearer, name, *(interval(time) for time in times)])
    return ["radio", "", *(f"{k} at a time, {loss:.0%}" for loss in (0, MOST) for k in AT_ONCE)], rows


def set_up_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Set-up, round trip, one object, and the set-up's part of a page."""
    rows = []
    for bearer in BEARERS:
        for protocol, (name, _) in PROTOCOLS.items():
            _, again, large = (each.mean() for each in small(data, protocol, bearer))
            new, part = set_up(data, protocol, bearer).mean(), share(data, protocol, bearer).mean()
            cells = [f"{new:.3f}", f"{again:.3f}", f"{large:.3f}", f"{part:.1%}"]
            rows.append([bearer, name, *cells])
    return ["radio", "", "set-up, s", "one octet, s", "100 kB, s", "set-up, of the page"], rows


def waits_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Head-of-line times in ms."""
    rows = []
    for bearer in BEARERS:
        for protocol in _SIDE_BY_SIDE:
            samples = [waits(data, protocol, bearer=bearer, loss=loss) for loss in LOSSES]
            samples.append(waits(data, protocol, "holes-air", bearer=bearer))
            rows.append([bearer, PROTOCOLS[protocol][0], *(interval(1e3 * sample) for sample in samples)])
    return ["radio", "", *(f"{loss:.0%} of packets" for loss in LOSSES), "blocks on the air"], rows


FIGURES: dict[str, StudyFigure] = {
    "objects": StudyFigure(
        "When an object is there, by losses",
        objects_figure,
        "Six requests at a time: six connections of HTTP/1.1, six streams of one connection of the others. From when "
        "the page names an object until it is there, mean over its eight objects, with 95 % intervals over seeds.",
    ),
    "at-once": StudyFigure(
        "The page, by requests at a time", at_once_figure, "3 % of packets lost on the wire, in each direction."
    ),
    "waits": StudyFigure(
        "Head-of-line time: complete objects that wait for others",
        waits_figure,
        "From when the last octet of an object came to the mobile until the browser had the object, from captures.",
    ),
    "set-up": StudyFigure(
        "What part of the page its set-up is",
        set_up_figure,
        "Six requests at a time, nothing lost. Set-up: one octet on a new connection less one on the same connection. "
        "HTTP/1.1 and 2 with TLS 1.3 over TCP, SCTP in clear.",
    ),
}
TABLES: dict[str, StudyTable] = {
    "objects": StudyTable("Objects and pages, six requests at a time (mean s)", objects_table),
    "at-once": StudyTable("Pages by requests at a time (mean s)", at_once_table),
    "set-up": StudyTable("Set-up of connections", set_up_table),
    "waits": StudyTable("Head-of-line time (mean ms)", waits_table),
}
