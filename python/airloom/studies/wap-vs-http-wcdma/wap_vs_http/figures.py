"""What the study draws."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from airloom.analysis.statistics import paired_difference
from airloom.plot.figure import ACK, DATA, FAINT, LINES
from airloom.plot.sequence_chart import draw_sequence
from airloom.study import Data, StudyFigure, StudyTable
from airloom.study.data import NotSwept
from airloom.study.drawing import canvas, hollow, interval, labelled, means

from . import bearers, captures, encoding, http_side, pay_off, pictures, pipe, proposal
from .cells import cells, edge
from .decks import SIZES as DECKS
from .http_side import DOWNLINKS, ERRORS, SIZES, server_data
from .http_side import response as http
from .wap_side import HALF_PAUSE, acks_at_gateway, sent_by_gateway, wap

# ---- section 4 -----------------------------------------------------------------------------------------------------


def fig_4(data: Data) -> Figure:
    """Bars: original over encoded size. Lines: what encoding takes, parsing included, and parsing alone."""
    figure, axes = canvas()
    at = np.arange(len(DECKS))
    series = {
        "WML encoding, strings in place": [size / len(encoding.encoded(size)) for size in DECKS],
        "WML encoding, string table": [size / len(encoding.encoded(size, string_table=True)) for size in DECKS],
        "gzip": [size / encoding.zipped(size) for size in DECKS],
    }
    for n, (label, rates) in enumerate(series.items()):
        axes.bar(at + (n - 1) * 0.26, rates, 0.24, label=label, color=("#9ecae1", "#3182bd", "#bdbdbd")[n])
    hollow(axes, DECKS.index(1400) - 0.26, 1400 / 1117, 0, "paper: 1400 to 1117 octets", color="black")
    axes.set_xticks(at, ["500", "1000", "1400", "20K", "100K", "360K"])
    axes.set_xlabel("content set size (octets)")
    axes.set_ylabel("compression rate (original over reduced size)")
    axes.grid(visible=False)
    times = axes.twinx()
    times.grid(visible=False)
    times.spines["right"].set_visible(True)
    try:
        for n, (what, label) in enumerate((("encode", "encoding with parsing, ours"), ("parse", "XML parsing, ours"))):
            found = [np.median(encoding.seconds(data, f"prose {size} {what}")) * 1e3 for size in DECKS]
            times.plot(at, found, label=label, **LINES[n + 1])
    except NotSwept:
        pass  # times of this machine belong to full studies
    hollow(times, [at[2], at[5]], [130, 1730], 1, "encoding with parsing, paper (130 and 1730 ms)")
    hollow(times, at[5], 0.249 * 1730, 2, "XML parsing, paper (24.9 % of 1730 ms)")
    times.set_yscale("log")
    times.set_ylabel("time (ms)")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


# ---- section 5 -----------------------------------------------------------------------------------------------------


def fig_5(data: Data) -> Figure:
    """Set-up, pull and closure of both, from captures."""
    figure, plots = canvas(2, 1, height=7.6)
    sides = (("sequence-wap", "gateway", "WAP 1.x"), ("sequence-http", "server", "HTTP/TCP"))
    for axes, (sweep, right, name) in zip(plots, sides, strict=True):
        found = captures.arrows(data.run(sweep).folder / "trace.pcapng")
        # The second page is there so that the run goes on until the closure of the first one is over.
        found = [arrow for arrow in found if arrow.sent_s < found[0].sent_s + HALF_PAUSE / 1e9]
        draw_sequence(axes, "client", right, found, name)
    return figure


def fig_6(data: Data) -> Figure:
    """Response time against size, both axes logarithmic."""
    figure, axes = canvas()
    for n, (downlink, (name, of)) in enumerate(product(DOWNLINKS, (("WAP 1.1", wap), ("HTTP/TCP", http)))):
        times = [of(data, size=size, downlink=downlink, fer=ERRORS) for size in SIZES]
        means(axes, SIZES, times, n, f"{name}, {downlink} kbit/s")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [f"{size}K" for size in SIZES])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xlabel("content size (bytes)")
    axes.set_ylabel("response time (s)")
    axes.legend()
    return figure


def fig_7(data: Data) -> Figure:
    """What the sender sent and what came back, over time: groups of 5 and 21 packets, and TCP."""
    figure, plots = canvas(1, 3, sharey=True)
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
    plots[1].set_xlabel("time since the first packet (s)")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _steps(axes: Axes, times: pl.Series, lengths: pl.Series, acks: Any, title: str) -> None:
    t = (times.to_numpy() - times[0]) / 1e9
    axes.plot(t, np.cumsum(lengths.to_numpy()) / 1e3, ".", color=DATA, markersize=3.5, label="packet sent")
    axes.plot((acks - times[0]) / 1e9, np.zeros(len(acks)), "|", color=ACK, markersize=9, label="acknowledgement came")
    axes.set_title(title, loc="left", fontsize=9)


def verdict_map(data: Data) -> Figure:
    """WAP against HTTP/TCP for every variant of TCP and every group: by how much, and whether it can be told."""
    figure, plots = canvas(len(DOWNLINKS), len(SIZES), height=5.6, squeeze=False)
    groups = ("3", "5", "8", "15", "21", "all")
    variants = [(w, a) for w in ("warm", "3 segments", "2 segments") for a in ("Linux", "every", "every second")]
    labels = [f"{window}, {acks}" for window, acks in variants]
    for row, downlink in enumerate(DOWNLINKS):
        for column, size in enumerate(SIZES):
            where: dict[str, Any] = {"size": size, "downlink": downlink}
            by_wap = [wap(data, "variants-wap", group=group, **where) for group in groups]
            by_http = [http(data, "variants-http", window=w, acks=a, **where) for w, a in variants]
            shares = np.array([[w.mean() / h.mean() for w in by_wap] for h in by_http])
            least = 0.05 / shares.size
            told = [[paired_difference(w, h).p < least for w in by_wap] for h in by_http]
            texts = [
                [f"{100 * (s - 1):+.0f}" if t else "=" for s, t in zip(*r, strict=True)]
                for r in zip(shares, told, strict=True)
            ]
            axes = plots[row][column]
            names = labels if column == 0 else [""] * len(labels)
            cells(axes, np.log2(shares), texts, 1.5, names, groups)
            axes.set_title(f"{size} kB, {downlink} kbit/s", loc="left", fontsize=8)
    figure.supxlabel("packets of a group", fontsize=9)
    figure.supylabel("TCP's window at the request, and what the client acknowledges", fontsize=9)
    return figure


def gateway_time(data: Data) -> Figure:
    """U36: 1 kB by WAP over the gateway's time, and by HTTP/TCP for requests of several sizes."""
    figure, axes = canvas()
    times = (0, 60, 120, 150)
    for n, request in enumerate((50, 100, 150)):
        samples = [wap(data, "gateway", gateway=ms, request=request) for ms in times]
        means(axes, times, samples, n, f"WAP, request of {request} octets")
    for request in (150, 300, 450, 600):
        mean = float(http(data, "request", request=request).mean())
        axes.axhline(mean, color=FAINT, linewidth=1.0)
        said, beside = f"HTTP, {request} octets", axes.get_yaxis_transform()
        axes.text(1.01, mean, said, va="center", fontsize=7.5, transform=beside)
    return labelled(figure, axes, "time of the gateway (ms)", "response time of 1 kB (s)", from_zero=False)


def several(data: Data) -> Figure:
    """U18: a page of several objects."""
    figure, axes = canvas()
    counts = (2, 3, 5, 9)
    for n, kind in enumerate(("one by one", "asynchronous")):
        samples = [wap(data, "several-wap", count=count, transactions=kind) for count in counts]
        means(axes, counts, samples, n, f"WAP, {kind}")
    try:
        for n, connections in enumerate((1, 4), start=2):
            samples = [http(data, "several-http", count=count, parallel=connections) for count in counts]
            means(axes, counts, samples, n, f"HTTP, {connections} connection{'s' if connections > 1 else ''}")
    except NotSwept:
        pass  # only the full study has it
    return labelled(figure, axes, "objects of 1 kB, the first one fetched alone", "time for all (s)", from_zero=False)


def heat_map(data: Data) -> Figure:
    """U19, U29: the ratio over bearer speed and size, with the crossing between the cells."""
    names = {
        bearers.OURS: "encoded by our gateway",
        bearers.PAPER: "as the paper's gateway",
        bearers.PLAIN: "content as it is",
    }
    figure, plots = canvas(len(names), 2, height=6.6, sharex=True)
    rows, columns = [str(size) for size in SIZES], [_speed(rate) for rate in bearers.RATES]
    for pair, (content, name) in zip(plots, names.items(), strict=True):
        for axes, group in zip(pair, (bearers.LARGE, bearers.SMALL), strict=True):
            found = np.array(
                [[bearers.ratio(data, size, r, group=group, content=content) for r in bearers.RATES] for size in SIZES]
            )
            texts = [[f"{x:.2f}" if np.isfinite(x) else "fails" for x in row] for row in found]
            shown = np.log2(np.where(np.isfinite(found), found, 1e9))
            cells(axes, shown, texts, 1.5, rows, columns)
            axes.tick_params("x", rotation=60)
            edge(axes, found < 1)
            packets = "32 Kbytes" if group == bearers.LARGE else "3 packets"
            axes.set_title(f"{name}, groups of {packets}", loc="left", fontsize=8)
    figure.supylabel("size (kB)", fontsize=9)
    figure.supxlabel("bearer speed (bit/s)", fontsize=9)
    return figure


def _speed(kilobits: float) -> str:
    return f"{kilobits:g} k" if kilobits < 1000 else f"{kilobits / 1000:g} M"


FIGURES = {
    **pictures.BEFORE,
    "fig-4": StudyFigure(
        "Fig. 4. WML encoding and gzip compression rate (bars); WML encoding processing time and XML parsing time "
        "(lines)",
        fig_4,
        "Bars and solid lines: ours, decks as in Fig. 3; the times are medians of 30 batches on the machine of the "
        "run, and there in full studies alone. Hollow: what the text gives of the paper's numbers; the rest of its "
        "figure is lost. At 500 octets parsing takes 72.7 % of the paper's time, which the text does not give.",
    ),
    "fig-5": StudyFigure(
        "Fig. 5. Communication sequences of WAP 1.x and HTTP/TCP",
        fig_5,
        "From captures of 1 kB in one packet over W-CDMA without errors, each with a set-up and a closure of its own; "
        "the upper and the lower figure are independent. The time axes are true.",
    ),
    "fig-6": StudyFigure(
        "Fig. 6. The response times of WAP 1.1 and HTTP/TCP",
        fig_6,
        "Means with 95 % intervals over seeds, 5 % of FEC frames in error; both axes have logarithmic scale, as the "
        "paper's. Of the paper's figure the points are lost: its text gives the orderings alone (U13 to U16).",
    ),
    "fig-7": StudyFigure(
        "Fig. 7. Waiting time after sending data packets until the ACK packet is received",
        fig_7,
        "100 kB at 384 kbit/s without errors, as seen at the sender: groups of five packets as the paper's figure "
        "draws them, of 21 as its 32 Kbytes come to, and TCP. The paper's figure is a drawing without numbers.",
    ),
    **pictures.AFTER,
    **pay_off.FIGURES,
    **pipe.FIGURES,
    "several": StudyFigure(
        "5.1: several requests at a time", several, "Means with 95 % intervals over seeds, downlink 384 kbit/s."
    ),
    "gateway-time": StudyFigure(
        "5.3: 1 kB, by the gateway's own time",
        gateway_time,
        "Means with 95 % intervals; grey: HTTP/TCP with requests of several sizes. Where a line crosses a grey one "
        "HTTP/TCP begins to lead.",
    ),
    "verdict-map": StudyFigure(
        "5.3: time by WAP over that by HTTP/TCP, per cent, at every combination of the decisive readings",
        verdict_map,
        "5 % of FEC frames in error; =: not to be told apart.",
    ),
    "bearers": StudyFigure(
        "6: time by WAP over that by HTTP/TCP, over speed and size",
        heat_map,
        "Over a wire without errors, round trip 260 ms. Black: where the lead changes.",
    ),
    **proposal.FIGURES,
}


# ---- tables --------------------------------------------------------------------------------------------------------


def times_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """Fig. 6 as numbers."""
    rows = []
    for downlink, size, errors in product(DOWNLINKS, SIZES, (0, 1, 5, 10)):
        by_http, by_wap = (of(data, size=size, downlink=downlink, fer=errors) for of in (http, wap))
        d = paired_difference(by_wap, by_http)
        difference = f"{d.mean:+.3f} [{d.low:+.3f}, {d.high:+.3f}]"
        rows.append([downlink, size, errors, interval(by_http), interval(by_wap), difference])
    return ["kbit/s", "kB", "% of frames in error", "HTTP/TCP, s", "WAP, s", "WAP minus HTTP/TCP, s"], rows


def capacity_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """U31: what the gateway can do in a second of CPU time, by kind of content."""
    found = data.program("gateway")["replies_per_cpu_s"]
    return ["content of 10 kB", "replies per CPU second (median)"], [
        [kind, float(np.median(rates))] for kind, rates in found.items()
    ]


def parameters_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """Table 1: the bearer as the paper has it, and as it was measured here."""
    down, slower, up = (http_side.peak_rate(data, *which) for which in (("dl", 384), ("dl", 64), ("ul", 384)))
    tti, errors = "payload of the fullest TTI", f"{http_side.frame_errors(data):.2%}"
    frame = http_side.fullest_tti(data, "dl", 384)
    return ["parameter", "the paper", "ours", "ours read from"], [
        ["bearer speed, downlink (Kbps)", "384 and 64", f"{down:g} and {slower:g}", tti],
        ["bearer speed, uplink (Kbps)", "64", f"{up:g}", tti],
        ["layer 2", "Radio Link Control (RLC) protocol", "RLC, acknowledged mode (TS 25.322)", "the bearer umts-dch"],
        ["bearer MTU (bytes)", "1500", http_side.largest_datagram(data), "the largest datagram on the link"],
        ["error rate (per FEC frame)", "5 %", errors, "blocks lost over all runs; those of a frame are lost together"],
        ["PDUs in a FEC frame", "one to twelve", f"one to {frame}", "PDUs of a TTI"],
    ]


#: Table 2: service, content and WSP function, and the applications of `applications.py` that stand for it.
_TABLE_2 = (
    ("Browsing", "WML", "GET, POST method", ("browsing, GET", "browsing, POST")),
    ("Push", "GIF, Text", "WSP Confirmed/Unconfirmed Push", ("push of text, unconfirmed", "push of text, confirmed",
     "push of a GIF, unconfirmed", "push of a GIF, confirmed")),
    ("E-mail", "Text", "(Send) POST method (Receive) WSP Confirmed/Unconfirmed Push",
     ("e-mail, sent by POST and told of by push",)),
)  # fmt: skip


def applications_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """Table 2, with what works on real sockets."""
    found = data.program("applications")["applications"]
    rows = [
        [service, content, function, "; ".join(f"{name}: {'works' if found[name] else 'fails'}" for name in names)]
        for service, content, function, names in _TABLE_2
    ]
    return ["service", "content", "WSP function", "ours"], rows


TABLES = {
    "table-1": StudyTable(
        "Table 1. Principal parameters set in the W-CDMA bearer simulator",
        parameters_table,
        "Ours is read from the records of the runs behind Fig. 6. The maximum number of repetitions, which section 3 "
        "names without a value, has no limit here (assumption rlc-repetitions).",
    ),
    "table-2": StudyTable(
        "Table 2. Applications developed for the test-bed system",
        applications_table,
        "Ours: between client, gateway daemon and a server on this machine's loopback.",
    ),
    **encoding.TABLES,
    **pay_off.TABLES,
    **pipe.TABLES,
    "times-5-3": StudyTable("5.3: response times, means with 95 % intervals", times_table),
    **proposal.TABLES,
    "capacity": StudyTable("2.1: capacity of the gateway on this machine", capacity_table),
}
