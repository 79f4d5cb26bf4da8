"""Sections 4.1 and 4.2 in runs: does it pay to encode, where encoding takes its time and the bearer has its speed?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from airloom.plot.figure import FAINT
from airloom.study import Data, Evidence, Numbers, StudyFigure, StudyTable, exact, pair
from airloom.study.drawing import canvas, hollow

from .bearers import LARGE, SMALL, load_s
from .cells import cells, edge
from .wap_side import wap

#: Sizes in kB and speeds in kbit/s that were swept.
SIZES = (0.4, 1, 1.4, 5, 10, 20, 50, 100)
RATES = (9.6, 14.4, 28.8, 64, 128, 384)

#: Encoders, as in sweep.toml, and what they are.
ENCODERS = {
    "paper": "the paper's: strings in place, 124 ms and 4.5 us an octet",
    "table, paper's time": "a string table, in the paper's time",
    "ours": "ours: a string table, 3 us and 30 ns an octet",
    "in place, no time": "strings in place, in no time",
}

#: What the client of the paper takes for the headers of a connect (4.2), s.
HEADERS_S = 0.010


def saved_ms(data: Data, size: float, rate: float, encoder: str, group: str = LARGE) -> float:
    """How much sooner a deck is there encoded than as it is, both by WAP, ms; infinite if it comes encoded alone."""
    where: dict[str, Any] = {"size": size, "rate": rate, "group": group}
    encoded = load_s(data, "pay-off-wap", encoder=encoder, **where)
    plain = load_s(data, "pay-off-wap", encoder="none", **where)
    if np.isinf(encoded):
        return float("nan") if np.isinf(plain) else float("-inf")
    return 1e3 * (plain - encoded)


def saves(size: float, rate: float, encoder: str, data: Data) -> Evidence:
    """U08: that, for one size and speed."""
    return exact(saved_ms(data, size, rate, encoder), "ms")


def zero_crossing(rates: Numbers, saved: Numbers) -> float:
    """The speed at which nothing is saved. What octets take goes as one over the speed: a line in that.

    Zero if nothing is saved at any speed, infinite if something is at all.
    """
    if np.all(saved > 0):
        return float("inf")
    if np.all(saved <= 0):
        return 0.0
    last = int(np.flatnonzero(saved > 0).max())
    if last == len(rates) - 1:
        return float("inf")
    slowness, ends = 1 / rates[last : last + 2], saved[last : last + 2]
    return float(1 / np.interp(0, ends[::-1], slowness[::-1]))


def break_even(data: Data, size: float, encoder: str, group: str = LARGE) -> float:
    """The speed below which a deck is there sooner encoded, kbit/s."""
    saved = np.array([saved_ms(data, size, rate, encoder, group) for rate in RATES])
    known = ~np.isnan(saved)
    return zero_crossing(np.array(RATES)[known], saved[known])


def deck_break_even(data: Data) -> Evidence:
    """U26: of 1400 octets, with the paper's encoder."""
    return exact(break_even(data, 1.4, "paper"), "kbit/s")


def over_the_radio(size: float, downlink: int, encoder: str, data: Data) -> Evidence:
    """U08: the deck encoded and as it is, over the bearer of Table 1."""
    data.at_default_only()
    where = {"size": size, "downlink": downlink}
    encoded, plain = (wap(data, "pay-off-radio", encoder=e, **where) for e in (encoder, "none"))
    return pair(encoded, plain, "s")


# ---- headers (4.2) -------------------------------------------------------------------------------------------------


def headers_saved_ms(data: Data, rate: float) -> float:
    """How much sooner a page with a session of its own comes with headers of 50 octets and 10 ms for these, ms.

    A client that encodes first sends everything that much later.
    """
    text, tokens = (load_s(data, "connect-wire", headers=size, rate=rate) for size in (185, 50))
    return 1e3 * (text - (tokens + HEADERS_S))


def headers_break_even(data: Data) -> Evidence:
    """U25: the speed at which nothing is saved."""
    saved = np.array([headers_saved_ms(data, rate) for rate in RATES])
    return exact(zero_crossing(np.array(RATES), saved), "kbit/s")


def headers_over_the_radio(encoding_s: float, data: Data) -> Evidence:
    """U25: a page with a session of its own over the uplink of Table 1, with headers of 50 and of 185 octets."""
    data.at_default_only()
    return pair(wap(data, "connect", headers=50) + encoding_s, wap(data, "connect", headers=185), "s")


COMPUTE = {
    "U08.slow": partial(saves, 1.4, 9.6, "paper"),
    "U08.fast": partial(saves, 1.4, 384, "paper"),
    "U08.radio": partial(over_the_radio, 1.4, 384, "paper"),
    "U08.today": partial(over_the_radio, 1.4, 384, "ours"),
    "U08.large": partial(over_the_radio, 100, 384, "paper"),
    "U25.slow": lambda data: exact(headers_saved_ms(data, 9.6), "ms"),
    "U25.fast": lambda data: exact(headers_saved_ms(data, 384), "ms"),
    "U25.uplink": partial(headers_over_the_radio, HEADERS_S),
    "U25.break-even": headers_break_even,
    "U25.measured": partial(headers_over_the_radio, 0.0),
    "U26.run": deck_break_even,
}


# ---- figures and tables --------------------------------------------------------------------------------------------


def pay_off_figure(data: Data) -> Figure:
    """Time saved by encoding over size and speed, one panel an encoder, and the break-even between the cells."""
    figure, plots = canvas(1, 3, height=4.4, sharey=True)
    titles = {
        "paper": "the paper's encoder",
        "table, paper's time": "string table, paper's time",
        "ours": "our encoder",
    }
    for axes, (encoder, title) in zip(plots, titles.items(), strict=True):
        saved = np.array([[saved_ms(data, size, rate, encoder) for rate in RATES] for size in SIZES])
        shown = np.nan_to_num(saved, nan=0.0, posinf=1e9, neginf=-1e9)
        texts = [[_cell(ms) for ms in row] for row in saved]
        rows, columns = [f"{size:g}" for size in SIZES], [f"{rate:g}" for rate in RATES]
        cells(axes, shown, texts, 600, rows, columns)
        edge(axes, shown > 0)
        axes.set_title(title, loc="left", fontsize=8)
    plots[0].set_ylabel("deck (kB)")
    figure.supxlabel("bearer speed (kbit/s)", fontsize=9)
    return figure


def _cell(saved: float) -> str:
    if np.isnan(saved):
        return "both\nfail"
    if np.isposinf(saved):
        return "plain\nfails"
    if np.isneginf(saved):
        return "fails"
    return f"{round(saved):+d}" if abs(saved) < 1e3 else f"{saved / 1e3:+.{1 if abs(saved) < 1e4 else 0}f} s"


def break_even_figure(data: Data) -> Figure:
    """Below which speed encoding pays, by size of the deck, from runs."""
    figure, axes = canvas()
    from airloom.plot.figure import LINES

    for n, (encoder, title) in enumerate(ENCODERS.items()):
        speeds = np.array([_within(break_even(data, size, encoder, SMALL)) for size in SIZES])
        axes.plot(SIZES, speeds, label=title, **LINES[n])
    hollow(axes, 1.4, 17.4, 0, "the paper's 130 ms for 283 octets: 17.4 kbit/s", color="black")
    for speed in (RATES[0], RATES[-1]):
        axes.axhline(speed, color=FAINT, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [f"{size:g}" for size in SIZES], fontsize=8)
    axes.minorticks_off()
    axes.set_yticks([4.8, *RATES, 768], ["nowhere", *(f"{rate:g}" for rate in RATES), "everywhere"], fontsize=8)
    axes.set_ylim(3.6, 1000)
    axes.set_xlabel("deck (kB)")
    axes.set_ylabel("encoding pays below (kbit/s)")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _within(speed: float) -> float:
    """A break-even within what was swept; beyond it, at a place of its own."""
    return 4.8 if speed < RATES[0] else 768.0 if speed > RATES[-1] else speed


def pay_off_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """4.1: response times of decks as they are and encoded."""
    rows = []
    for size in SIZES:
        for rate in (9.6, 64, 384):
            by_http = load_s(data, "pay-off-http", size=size, rate=rate)
            times = [
                load_s(data, "pay-off-wap", size=size, rate=rate, group=LARGE, encoder=e) for e in ("none", *ENCODERS)
            ]
            rows.append([size, rate, *(f"{t:.3f}" if np.isfinite(t) else "fails" for t in (by_http, *times))])
    return ["deck (kB)", "kbit/s", "HTTP/TCP (s)", "WAP, as it is (s)", *(f"{name} (s)" for name in ENCODERS)], rows


def statement_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """4.1 and 4.2: the paper's sentences, and the same from runs."""

    def ms(x: float) -> str:
        return f"{x:+.1f} ms"

    def octets(ms_saved: float, rate: float) -> str:
        return f"{ms_saved:.1f} ms ({ms_saved * rate / 8:.0f} octets)"

    bare = {rate: saved_ms(data, 1.4, rate, "in place, no time") for rate in (384, 9.6)}
    headers = {rate: headers_saved_ms(data, rate) + 1e3 * HEADERS_S for rate in (384, 9.6)}
    rows = [
        [
            "1400 octets at 384 kbit/s: what the shorter deck saves on the air",
            "6 ms (283 octets)",
            octets(bare[384], 384),
        ],
        ["the same at 9600 bit/s", "236 ms (283 octets)", octets(bare[9.6], 9.6)],
        ["encoding included, at 384 kbit/s", "does not pay", ms(saved_ms(data, 1.4, 384, "paper"))],
        ["encoding included, at 9600 bit/s", "pays", ms(saved_ms(data, 1.4, 9.6, "paper"))],
        ["1400 octets: break-even", "17.4 kbit/s (from its numbers)", f"{break_even(data, 1.4, 'paper'):.1f} kbit/s"],
        ["headers of a connect at 384 kbit/s", "3 ms (135 octets)", octets(headers[384], 384)],
        ["the same at 9600 bit/s", "112 ms (135 octets)", octets(headers[9.6], 9.6)],
        ["10 ms of encoding included, at 384 kbit/s", "does not pay", ms(headers_saved_ms(data, 384))],
        ["10 ms of encoding included, at 9600 bit/s", "pays", ms(headers_saved_ms(data, 9.6))],
        ["headers: break-even", "108 kbit/s (from its numbers)", f"{headers_break_even(data).samples[0]:.1f} kbit/s"],  # type: ignore[union-attr]
    ]
    return ["4.1, 4.2", "the paper", "ours, from runs over a wire"], rows


FIGURES = {
    "pay-off": StudyFigure(
        "4.1: how much sooner a deck is there encoded than as it is, by WAP, ms",
        pay_off_figure,
        "Runs over a wire without errors, round trip 260 ms, groups of 32 Kbytes. Above and to the left of the black "
        "line encoding pays. The paper's encoder has every string in place and takes the time of the line through 130 "
        "ms for 1400 octets and 1730 ms for 360 Kbytes; ours has a string table and takes 3 us and 30 ns an octet. At "
        "9.6 kbit/s a group of 32 Kbytes takes longer than WTP waits: 100 kB as they are fail.",
    ),
    "break-even": StudyFigure(
        "4.1: the speed of the bearer below which encoding pays, by the size of the deck",
        break_even_figure,
        "From the same runs with groups of three packets, which come through at every speed; between two speeds what "
        "is saved is taken as a line in one over the speed. Hollow: what follows from the paper's own numbers for "
        "1400 octets.",
    ),
}

TABLES = {
    "statements": StudyTable(
        "4.1 and 4.2: the paper's sentences on what encoding saves, and the same from runs", statement_table
    ),
    "pay-off": StudyTable(
        "4.1: response times of decks by WAP, as they are and encoded, and by HTTP/TCP, over a wire", pay_off_table
    ),
}
