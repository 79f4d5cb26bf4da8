"""What the study draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from airloom.analysis import mean_interval
from airloom.plot.figure import ACK, DATA, FAINT, LINES
from airloom.plot.sequence_chart import draw_sequence
from airloom.study import Data, StudyFigure, StudyTable
from airloom.study.data import NotSwept
from airloom.study.statistics import paired_difference

from . import captures, encoding
from .decks import SIZES as DECKS
from .http_side import DOWNLINKS, ERRORS, SIZES, response, server_data
from .wap_side import HALF_PAUSE, RATES, acks_at_gateway, bearer_ratio, http, sent_by_gateway, wap


def _figure(width: float = 6.0, height: float = 4.2) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _errorbar(axes: Axes, x: Any, samples: list[Any], n: int, label: str) -> None:
    """Means with 95 % intervals."""
    found = [mean_interval(sample) for sample in samples]
    reach = [[f.value - f.low for f in found], [f.high - f.value for f in found]]
    axes.errorbar(x, [f.value for f in found], yerr=np.nan_to_num(reach), capsize=3, label=label, **LINES[n])


# ---- section 4 -----------------------------------------------------------------------------------------------------


def fig_4(_: Data) -> Figure:
    """Encoded over original size."""
    figure = _figure()
    axes = figure.subplots()
    series = {
        "WBXML, strings in place": [len(encoding.encoded(size)) / size for size in DECKS],
        "WBXML, string table": [len(encoding.encoded(size, string_table=True)) / size for size in DECKS],
        "gzip": [encoding.zipped(size) / size for size in DECKS],
    }
    for n, (label, ratios) in enumerate(series.items()):
        axes.plot(DECKS, ratios, label=label, **LINES[n])
    axes.plot([1400], [1117 / 1400], marker="o", markersize=9, fillstyle="none", color="black", linestyle="none",
              label="paper: 1400 to 1117 octets")  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.set_xlabel("deck (octets)")
    axes.set_ylabel("encoded over original size")
    axes.legend(fontsize=8)
    return figure


def break_even_speed(data: Data) -> Figure:
    """Below which bearer speed encoding pays, by size: with the paper's time and with ours."""
    figure = _figure()
    axes = figure.subplots()
    for n, kind in enumerate(("prose", "rich")):
        saved = [size - len(encoding.encoded(size, rich=kind == "rich", string_table=True)) for size in DECKS]
        took = [float(np.median(encoding.seconds(data, f"{kind} {size} encode"))) for size in DECKS]
        speeds = np.asarray(saved) * 8 / np.asarray(took)
        axes.plot(DECKS, speeds, label=f"today's encoder, {'text' if kind == 'prose' else 'links'}", **LINES[n])
    axes.plot([1400], [encoding.PAPER_DECK_SAVED * 8 / encoding.PAPER_DECK_S], marker="o", markersize=9,
              fillstyle="none", color="black", linestyle="none", label="paper: 130 ms for 1400 octets")  # fmt: skip
    for speed, name in ((9600, "9600 bit/s"), (384_000, "384 kbit/s")):
        axes.axhline(speed, color=FAINT, linewidth=0.8)
        axes.text(DECKS[0], speed * 1.15, name, fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("deck (octets)")
    axes.set_ylabel("encoding pays below (bit/s)")
    axes.legend(fontsize=8)
    return figure


# ---- section 5 -----------------------------------------------------------------------------------------------------


def fig_5(data: Data) -> Figure:
    """Set-up, pull and closure of both, from captures."""
    figure = _figure(10.0, 5.4)
    for axes, sweep, right, name in zip(
        figure.subplots(1, 2),
        ("sequence-wap", "sequence-http"),
        ("gateway", "origin"),
        ("WAP", "HTTP/TCP"),
        strict=True,
    ):
        file = data.run(sweep).folder / "trace.pcapng"
        found = captures.arrows(file, "mobile.radio.ip", f"{right}.radio.ip")
        # The second page is there so that the run goes on until the closure of the first one is over.
        found = [arrow for arrow in found if arrow.sent_s < found[0].sent_s + HALF_PAUSE / 1e9]
        draw_sequence(axes, "client", "gateway" if right == "gateway" else "server", found, f"{name}: 1 kB, no errors")
    return figure


def fig_6(data: Data) -> Figure:
    """Response time against size, both axes logarithmic."""
    figure = _figure()
    axes = figure.subplots()
    n = 0
    for downlink in DOWNLINKS:
        for name, of in (("HTTP/TCP", http), ("WAP", wap)):
            times = [of(data, size=size, downlink=downlink, fer=ERRORS) for size in SIZES]
            _errorbar(axes, SIZES, times, n, f"{name}, {downlink} kbit/s")
            n += 1
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size (kB)")
    axes.set_ylabel("response time (s), mean and 95 % interval")
    seeds = len(wap(data, size=1, downlink=384, fer=ERRORS))
    axes.set_title(
        f"{seeds} seeds, {ERRORS} % of FEC frames in error; the paper's points are in its picture only",
        loc="left",
        fontsize=8,
    )
    axes.legend()
    return figure


def fig_7(data: Data) -> Figure:
    """What the sender sent and what came back, over time: groups of 5 and 21 packets, and TCP."""
    figure = _figure(9.0, 4.4)
    plots = figure.subplots(1, 3, sharey=True)
    for axes, group in zip(plots, ("5", "21"), strict=False):
        run = data.run("capture-groups", group=group)
        sent = sent_by_gateway(run)
        _steps(axes, sent["t_ns"], sent["len"] - 32, acks_at_gateway(run), f"WAP, groups of {group} packets")
    run = data.run("capture", size=100, downlink=384, fer=0)
    sent = server_data(run)
    packets = run.packets.with_columns(pl.col("point", "event").cast(pl.String))
    came = packets.filter((pl.col("point") == "origin.radio.ip") & (pl.col("event") == "rx"))
    acks = came.filter(pl.col("t_ns") > sent["t_ns"][0])["t_ns"].to_numpy()
    _steps(plots[2], sent["t_ns"], sent["len"] - 40, acks, "HTTP/TCP")
    plots[0].set_ylabel("octets sent (kB)")
    plots[0].legend(loc="upper left", fontsize=8)
    figure.supxlabel("time since the first packet (s)", fontsize=9)
    return figure


def _steps(axes: Axes, times: pl.Series, lengths: pl.Series, acks: Any, title: str) -> None:
    t = (times.to_numpy() - times[0]) / 1e9
    axes.plot(t, np.cumsum(lengths.to_numpy()) / 1e3, ".", color=DATA, markersize=3.5, label="packet sent")
    axes.plot((acks - times[0]) / 1e9, np.zeros(len(acks)), "|", color=ACK, markersize=9, label="acknowledgement came")
    axes.set_title(title, loc="left", fontsize=9)


def verdict_map(data: Data) -> Figure:
    """WAP against HTTP/TCP for every variant of TCP and every group: by how much, and whether it can be told."""
    figure = _figure(10.0, 6.2)
    plots = figure.subplots(len(DOWNLINKS), len(SIZES), squeeze=False)
    groups = ("3", "5", "8", "15", "21", "all")
    variants = [(w, a) for w in ("2 segments", "3 segments", "warm") for a in ("every second", "every", "Linux")]
    image = None
    for row, downlink in enumerate(DOWNLINKS):
        for column, size in enumerate(SIZES):
            axes = plots[row][column]
            shares = np.zeros((len(variants), len(groups)))
            for i, (window, acks) in enumerate(variants):
                by_http = http(data, "variants-http", size=size, downlink=downlink, window=window, acks=acks)
                for j, group in enumerate(groups):
                    by_wap = wap(data, "variants-wap", size=size, downlink=downlink, group=group)
                    shares[i, j] = np.log2(by_wap.mean() / by_http.mean())
                    told = paired_difference(by_wap, by_http).p < 0.05 / (len(variants) * len(groups))
                    text = f"{100 * (by_wap.mean() / by_http.mean() - 1):+.0f}" if told else "="
                    colour = "white" if abs(shares[i, j]) > 0.9 else "black"
                    axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=colour)
            image = axes.imshow(shares, cmap="PuOr", vmin=-1.5, vmax=1.5, aspect="auto")
            axes.grid(visible=False)
            axes.set_xticks(range(len(groups)), groups, fontsize=7)
            labels = [f"{w}, {a}" for w, a in variants] if column == 0 else [""] * len(variants)
            axes.set_yticks(range(len(variants)), labels, fontsize=7)
            axes.set_title(f"{size} kB, {downlink} kbit/s", loc="left", fontsize=8)
    assert image is not None
    figure.supxlabel("packets of a group", fontsize=9)
    figure.supylabel("TCP's window at the request, and what the client acknowledges", fontsize=9)
    figure.suptitle(
        "time by WAP over that by HTTP/TCP, per cent; =: not to be told apart", x=0.01, ha="left", fontsize=9
    )
    return figure


def gateway_time(data: Data) -> Figure:
    """U36: 1 kB by WAP over the gateway's time, and by HTTP/TCP for requests of several sizes."""
    figure = _figure()
    axes = figure.subplots()
    times = (0, 60, 120, 150)
    for n, request in enumerate((50, 100, 150)):
        samples = [wap(data, "gateway", gateway=ms, request=request) for ms in times]
        _errorbar(axes, times, samples, n, f"WAP, request of {request} octets")
    for request in (150, 300, 450, 600):
        mean = float(http(data, "request", request=request).mean())
        axes.axhline(mean, color=FAINT, linewidth=1.0)
        axes.text(150, mean, f"HTTP, {request} octets ", ha="right", va="bottom", fontsize=8)
    axes.set_xlabel("time of the gateway (ms)")
    axes.set_ylabel("response time of 1 kB (s)")
    axes.legend(fontsize=8)
    return figure


def several(data: Data) -> Figure:
    """U18: a page of several objects."""
    figure = _figure()
    axes = figure.subplots()
    counts = (2, 3, 5, 9)
    for n, kind in enumerate(("one by one", "asynchronous")):
        samples = [wap(data, "several-wap", count=count, transactions=kind) for count in counts]
        _errorbar(axes, counts, samples, n, f"WAP, {kind}")
    try:
        for n, connections in enumerate((1, 4), start=2):
            samples = [http(data, "several-http", count=count, parallel=connections) for count in counts]
            _errorbar(axes, counts, samples, n, f"HTTP, {connections} connection{'s' if connections > 1 else ''}")
    except NotSwept:
        pass  # only the full study has it
    axes.set_xlabel("objects of 1 kB, the first one fetched alone")
    axes.set_ylabel("time for all (s)")
    axes.legend(fontsize=8)
    return figure


def heat_map(data: Data) -> Figure:
    """U19, U29, U35: the ratio over bearer speed and size, with the crossing."""
    figure = _figure(10.0, 3.6)
    plots = figure.subplots(1, 3)
    kinds = ((260, "32 Kbytes"), (260, "3"), (20, "32 Kbytes"))
    image = None
    for axes, (round_trip, group) in zip(plots, kinds, strict=True):
        found = np.array([[bearer_ratio(data, size, rate, round_trip, group) for rate in RATES] for size in SIZES])
        shown = np.log2(np.where(np.isfinite(found), found, 1e9))
        image = axes.imshow(shown, cmap="PuOr", vmin=-1.5, vmax=1.5, aspect="auto", origin="lower")
        for i in range(len(SIZES)):
            for j in range(len(RATES)):
                text = f"{found[i, j]:.2f}" if np.isfinite(found[i, j]) else "fails"
                dark = abs(shown[i, j]) > 0.9
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "black")
        finite = np.where(np.isfinite(found), found, 4.0)
        if finite.min() < 1 < finite.max():
            axes.contour(finite, levels=[1.0], colors="black", linewidths=1.2)
        axes.grid(visible=False)
        axes.set_xticks(range(len(RATES)), [_speed(rate) for rate in RATES], rotation=60, fontsize=7)
        axes.set_yticks(range(len(SIZES)), [str(size) for size in SIZES])
        packets = "32 Kbytes" if group != "3" else "3 packets"
        axes.set_title(f"round trip {round_trip} ms, groups of {packets}", loc="left", fontsize=8)
    assert image is not None
    plots[0].set_ylabel("size (kB)")
    figure.supxlabel("bearer speed (bit/s)", fontsize=9)
    figure.suptitle("time by WAP over that by HTTP/TCP; black: the crossing", x=0.01, ha="left", fontsize=9)
    return figure


def _speed(kilobits: float) -> str:
    return f"{kilobits:g} k" if kilobits < 1000 else f"{kilobits / 1000:g} M"


def window_figure(data: Data) -> Figure:
    """Goodput of 500 kB against the receive window, and the paper's pair of window and round-trip time."""
    figure = _figure()
    axes = figure.subplots()
    windows = (8, 16, 32, 64)
    for n, echo in enumerate((260, 500, 667, 1000)):
        samples = [500 * 8 / response(data, "window", window=w, echo=echo) for w in windows]
        _errorbar(axes, windows, samples, n, f"idle round-trip time {echo} ms")
    axes.plot([32], [384], marker="o", markersize=9, fillstyle="none", color="#d55e00", linestyle="none",
              label="paper: 32 Kbytes fill 384 kbit/s up to 667 ms")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(windows, [str(w) for w in windows])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel("receive window (kB)")
    axes.set_ylabel("goodput of 500 kB (kbit/s), mean and 95 % interval")
    axes.legend(fontsize=8)
    return figure


FIGURES = {
    "fig-4": StudyFigure("Fig. 4: what the encodings save", fig_4),
    "break-even": StudyFigure(
        "4.1: below which bearer speed encoding pays, times measured on this machine", break_even_speed
    ),
    "fig-5": StudyFigure("Fig. 5: the sequence of both, from captures", fig_5),
    "fig-6": StudyFigure("Fig. 6: response time against content size", fig_6),
    "fig-7": StudyFigure("Fig. 7: the gateway waits for the acknowledgement of a group", fig_7),
    "verdict-map": StudyFigure("5.3: the orderings at every combination of the decisive readings", verdict_map),
    "gateway-time": StudyFigure("5.3: 1 kB, by the gateway's own time", gateway_time),
    "several": StudyFigure("5.1: several requests", several),
    "bearers": StudyFigure("6: slow and fast bearers", heat_map),
    "window": StudyFigure("5.2: the receive window and the bandwidth-delay product", window_figure),
}


# ---- tables --------------------------------------------------------------------------------------------------------


def times_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """Fig. 6 as numbers."""
    rows = []
    for downlink in DOWNLINKS:
        for size in SIZES:
            for errors in (0, 1, 5, 10):
                where: dict[str, Any] = {"size": size, "downlink": downlink, "fer": errors}
                by_http, by_wap = http(data, **where), wap(data, **where)
                d = paired_difference(by_wap, by_http)
                difference = f"{d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}]"
                rows.append([downlink, size, errors, *(_mean(x) for x in (by_http, by_wap)), difference])
    return ["kbit/s", "kB", "% of frames in error", "HTTP/TCP, s", "WAP, s", "WAP minus HTTP/TCP, s"], rows


def _mean(sample: Any) -> str:
    found = mean_interval(sample)
    return f"{found.value:.3f} ± {(found.high - found.low) / 2:.3f}"


def capacity_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """U31: what the gateway can do in a second of CPU time, by kind of content."""
    found = data.program("gateway")["replies_per_cpu_s"]
    return ["content of 10 kB", "replies per CPU second (median)"], [
        [kind, float(np.median(rates))] for kind, rates in found.items()
    ]


def applications_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """U20: Table 2, on real sockets."""
    found = data.program("applications")["applications"]
    return ["application", "works"], [[name, "yes" if works else "no"] for name, works in found.items()]


TABLES = {
    "table-2": StudyTable(
        "Table 2: the applications, between client, gateway daemon and a server on this machine", applications_table
    ),
    "times-5-3": StudyTable("5.3: response times, means with 95 % intervals", times_table),
    "capacity": StudyTable("2.1: capacity of the gateway on this machine", capacity_table),
}
