"""N01: how long packets of the sizes that pages send take over the radio, and back.

The slides name a round trip "for IP packets" and no size. What pages send has two ends: downlink mostly whole segments,
uplink acknowledgements and requests. One of each, drawn from a run's record, is the round trip that is judged; single
packets of several sizes, each alone on the link, say what it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from airloom.study import Computation, Data, Evidence, NotMade, Numbers, StudyFigure, StudyTable, value
from airloom.study.drawing import canvas, interval, labelled, means

from .loads import per_seed
from .measured import measured
from .parts import packets

#: Sizes of the packets whose way is measured, octets: those of `rtt` in `sweep.toml`.
SIZES = (52, 200, 402, 576, 1000, 1500)
DIRECTIONS = ("downlink", "uplink")
#: What the losses are losses of, as the sweeps say it.
UNITS = ("RLC PDUs", "FEC frames")
#: Of the slides (s).
RANGE_S = (0.5, 1.0)

#: Seconds of one way, by direction: a row for each seed, a column for each size.
Ways = Mapping[str, Numbers]


def sent(data: Data, direction: str) -> Numbers:
    """Octets of each packet, headers included, that crossed the radio in a direction while pages were loaded."""
    at, event = {"uplink": ("ul", "tx"), "downlink": ("dl", "rx")}[direction]
    here = (pl.col("point") == "mobile.radio.ip") & (pl.col("dir") == at) & (pl.col("event") == event)
    found: Numbers = packets(data.default).filter(here)["len"].to_numpy().astype(np.float64)
    return found


def alone(data: Data, sweep: str = "rtt", **where: str) -> Ways:
    """What single packets took."""

    def of(direction: str, size: int) -> Numbers:
        return per_seed(data, sweep, f"radio.{direction}.sdu_delay_mean_ms", size=size, **where) / 1e3

    return {direction: np.stack([of(direction, size) for size in SIZES], axis=1) for direction in DIRECTIONS}


def as_sent(data: Data, ways: Ways, sizes: Sequence[float] = SIZES) -> Numbers:
    """The mean round trip of a packet down and one up, of sizes as pages send them: a number for each seed.

    Between measured sizes it is interpolated.
    """
    both = [
        np.array([np.interp(sent(data, direction), sizes, one).mean() for one in ways[direction]])
        for direction in DIRECTIONS
    ]
    return np.asarray(both[0] + both[1], dtype=np.float64)


def round_trips(data: Data) -> Evidence:
    """N01, in virtual time."""
    return value(as_sent(data, alone(data)), "s")


def real_round_trips(data: Data) -> Evidence:
    """N01, between two kernels: of seeds under which every size was measured in time."""
    found = measured(data, "pings").sort("size", "seed")
    sizes = found["size"].unique().sort().to_list()
    whole = found.group_by("seed").agg(pl.len().alias("n")).filter(pl.col("n") == len(sizes))["seed"].sort()
    if whole.is_empty():
        raise NotMade("no round trips were measured in time")
    of = found.filter(pl.col("seed").is_in(whole.implode()))
    ways = {way: of[f"{way}_s"].to_numpy().reshape(len(sizes), len(whole)).T for way in DIRECTIONS}
    return value(as_sent(data, ways, sizes), "s")


def by_size(data: Data) -> tuple[list[str], list[list[str]]]:
    """What is measured, for both readings of the losses."""
    data.at_default_only()
    of = {unit: alone(data, "loss-units-rtt", per=unit) for unit in UNITS}
    both = {unit: ways["downlink"] + ways["uplink"] for unit, ways in of.items()}
    rows = [
        [f"{size} octets both ways", *(interval(both[unit][:, n]) for unit in UNITS)] for n, size in enumerate(SIZES)
    ]
    rows.append(["sizes as pages send them", *(interval(as_sent(data, of[unit])) for unit in UNITS)])
    in_queues = [
        sum(per_seed(data, "loss-units", f"radio.{way}.sdu_delay_mean_ms", per=unit) for way in DIRECTIONS) / 1e3
        for unit in UNITS
    ]
    rows.append(["the same packets behind each other, while pages are loaded", *map(interval, in_queues)])
    return ["packet", *(f"losses of {unit}: round trip (s)" for unit in UNITS)], rows


def draw(data: Data) -> Figure:
    """Sizes that pages send, and what a packet of each takes."""
    data.at_default_only()
    figure, (left, right) = canvas(1, 2, 3.6)
    for direction in DIRECTIONS:
        sizes = np.sort(sent(data, direction))
        shares = np.arange(1, len(sizes) + 1) / len(sizes)
        left.step(sizes, shares, where="post", label=direction, color="black" if direction == "downlink" else "0.6")
    x, y = "octets of a packet", "share of packets, at most"
    labelled(figure, left, x, y, loc="center right", bbox_to_anchor=(0.97, 0.55))
    left.set_ylim(0, 1.02)
    for n, unit in enumerate(UNITS):
        of = alone(data, "loss-units-rtt", per=unit)
        means(right, SIZES, list((of["downlink"] + of["uplink"]).T), n, f"losses of {unit}")
    right.axhspan(*RANGE_S, color="0.92", zorder=0)
    right.annotate("0.5 to 1 s", (60, RANGE_S[1]), va="top", fontsize=8, xytext=(0, -3), textcoords="offset points")
    return labelled(figure, right, "octets both ways", "round trip (s)", loc="lower right")


COMPUTE: dict[str, Computation] = {
    "N01.least": round_trips,
    "N01.most": round_trips,
    "N01.real-least": real_round_trips,
    "N01.real-most": real_round_trips,
}
FIGURES = {
    "round-trips": StudyFigure(
        "Sizes that pages send, and round trips of single packets (N01)",
        draw,
        "Left: packets over the radio while the fifteen pages are loaded twice with keep-alive and no proxy. Right:"
        " packets of one size both ways, each alone on the link, for both readings of what is lost; grey is what the"
        " slides say.",
    ),
}
TABLES = {
    "round-trips": StudyTable(
        "Round trips over the radio (N01)",
        by_size,
        "Single packets, each alone on the link; then one down and one up of sizes as pages send them; then those"
        " packets where pages send them, with what waits before them.",
    ),
}
