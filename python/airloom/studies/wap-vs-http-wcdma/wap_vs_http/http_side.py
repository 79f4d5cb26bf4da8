"""HTTP/TCP: the bearer, the window, slow start, and the second clock."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from airloom.analysis.sequences import plain
from airloom.capture import packets
from airloom.run import Run
from airloom.study import Data, Evidence, NotSwept, Numbers, exact, pair, value
from airloom.study.rules import Setting

from . import captures

SIZES = (1, 10, 100)
DOWNLINKS = (384, 64)
#: FEC frames in error, per cent (Table 1).
ERRORS = 5

#: The object is the second page; the first one opens the connection.
OBJECT = 2


# ---- tables -> numbers ---------------------------------------------------------------------------------------------


def response(data: Data, sweep: str = "core", **where: Any) -> Numbers:
    """Response time in seconds, one number per seed: the mean over the phases of the request."""
    return data.per_seed(sweep, "pages", "load_ns", page=OBJECT, **where) / 1e9


def capture(data: Data, **where: Any) -> Run:
    """The run whose packets were kept."""
    return data.run("capture", **where)


def ip(run: Run) -> pl.DataFrame:
    """Datagrams where they meet a host, with texts."""
    return plain(run.packets).filter(pl.col("proto") == "tcp")


def asked_at(run: Run) -> int:
    """When the client asked for the object, ns."""
    return int(run.pages.filter(pl.col("page") == OBJECT)["start_ns"][0])


def server_data(run: Run) -> pl.DataFrame:
    """Segments with data that the server sent for the object."""
    sent = ip(run).filter((pl.col("point") == "origin.radio.ip") & (pl.col("event") == "tx"))
    bare = 40  # no options after the handshake but SACK blocks, which only the client sends
    return sent.filter((pl.col("t_ns") >= asked_at(run)) & (pl.col("len") > bare))


def window_at_end(data: Data, size: int, downlink: int, window: str, statistic: str) -> Numbers:
    """The server's congestion window, octets, `last` or `max` of the transfer of the object, one number per seed."""
    rows = data.table("start", "congestion", size=size, downlink=downlink, window=window)
    begun = data.table("start", "pages", size=size, downlink=downlink, window=window, page=OBJECT)
    rows = rows.filter(pl.col("host").cast(pl.String) == "origin")
    rows = rows.join(begun.select("point", "seed", "start_ns"), on=["point", "seed"])
    rows = rows.filter(pl.col("t_ns") >= pl.col("start_ns")).sort("point", "seed", "t_ns")
    picked = pl.col("cwnd").last() if statistic == "last" else pl.col("cwnd").max()
    per_run = rows.group_by("point", "seed", maintain_order=True).agg(picked)
    return per_run.group_by("seed").agg(pl.col("cwnd").cast(pl.Float64).mean()).sort("seed")["cwnd"].to_numpy()


def _in_units(units: dict[str, float], text: str) -> float:
    for unit, factor in units.items():
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)


#: A size of the scenario as understood, in octets; a time of it, in ms.
octets = partial(_in_units, {"kB": 1e3, "KiB": 1024, "MB": 1e6, "B": 1})
milliseconds = partial(_in_units, {"ms": 1.0, "us": 1e-3, "ns": 1e-6, "s": 1e3})


def tcp(run: Run, host: str) -> dict[str, Any]:
    """TCP of a host, as the run understood it."""
    found: dict[str, Any] = run.manifest["scenario"]["hosts"][host]["transport"]["tcp"]
    return found


# ---- claims --------------------------------------------------------------------------------------------------------


def bandwidth_delay(data: Data) -> Evidence:
    """U12: the paper's arithmetic on its own numbers, ms."""
    data.at_default_only()
    return exact(32_000 * 8 / 384, "ms")


def persistent(data: Data) -> Evidence:
    """U11: segments on the wire from asking to having a response that fits into one packet."""
    run = capture(data, size=1, downlink=384, fer=0)
    done = asked_at(run) + int(run.pages.filter(pl.col("page") == OBJECT)["load_ns"][0])
    sent = ip(run).filter((pl.col("event") == "tx") & pl.col("t_ns").is_between(asked_at(run), done - 1))
    return exact(sent.height, "packets")


def set_up(data: Data) -> Evidence:
    """U11: round trips before the first request of a new connection, by the time it takes."""
    run = capture(data, size=1, downlink=384, fer=0)
    flow = run.flows.row(0, named=True)
    return exact((flow["established_ns"] - flow["open_ns"]) / 1e6 / echo_ms(data), "round trips")


def echo_ms(data: Data) -> float:
    """The idle echo at the default, in ms."""
    return float(data.default.table("echo", "runs")["rtt_mean_s"][0]) * 1e3


def round_trip_ms(data: Data, run: Run) -> float:
    """The idle echo on a run's link, in ms: that of the default, with the delay of the run's core network."""
    echo = data.default.results("echo").manifest["scenario"]["links"]["radio"]["core_delay"]
    core = run.manifest["scenario"]["links"]["radio"]["core_delay"]
    return echo_ms(data) + 2 * (milliseconds(core) - milliseconds(echo))


def idle_echo(data: Data) -> Evidence:
    """Control: the idle echo has the round-trip time that the assumption names."""
    return exact(echo_ms(data), "ms")


def by_window(size: int, first: str, second: str, data: Data) -> Evidence:
    """U14, U15, and a control: so many kB with two windows. `whole` is slow start as good as switched off."""
    one, other = (response(data, "start", size=size, downlink=384, window=window) for window in (first, second))
    return pair(one, other, "s")


def first_flight(data: Data) -> Evidence:
    """U15: segments that leave the server before anything of the object is acknowledged."""
    run = capture(data, size=10, downlink=384, fer=ERRORS)
    sent = server_data(run)
    first = int(sent["t_ns"][0])
    acks = ip(run).filter((pl.col("point") == "origin.radio.ip") & (pl.col("event") == "rx") & (pl.col("t_ns") > first))
    return Setting(sent.filter(pl.col("t_ns") < int(acks["t_ns"][0])).height, "segments")


def not_expanded(data: Data) -> Evidence:
    """U15: the congestion window at the end of 10 kB, as a share of the receive window."""
    window = octets(tcp(capture(data, size=10, downlink=384, fer=ERRORS), "mobile")["receive_buffer"])
    return value(window_at_end(data, 10, 384, "cold", "last") / window, "of the receive window")


def expanded(data: Data) -> Evidence:
    """U16: the congestion window within 100 kB, as a multiple of the bandwidth-delay product of the idle bearer."""
    product = 384e3 / 8 * echo_ms(data) / 1e3
    return value(window_at_end(data, 100, 384, "cold", "max") / product, "of the product")


def longest_pause(data: Data) -> Evidence:
    """U17: the longest pause of the server in the second half of 100 kB, in idle round-trip times."""
    run = capture(data, size=100, downlink=384, fer=0)
    if run.summary["downlink.blocks_lost"] > 0:
        raise NotSwept("this reading has errors, and the statement is about none")
    times = server_data(run)["t_ns"].to_numpy()
    later = times[len(times) // 2 :]
    return exact(float(np.diff(later).max()) / 1e6 / round_trip_ms(data, run), "round-trip times")


def loaded_round_trip(data: Data) -> Evidence:
    """U28: TCP's smoothed round-trip time at the end of 100 kB."""
    return value(data.per_seed("core", "flows", "srtt_ms", size=100, downlink=384, fer=ERRORS), "ms")


def largest_datagram(data: Data) -> int:
    """Octets of the largest datagram that was seen."""
    return int(ip(capture(data, size=100, downlink=384, fer=ERRORS))["len"].max())  # type: ignore[arg-type]


def fullest_tti(data: Data, direction: str, downlink: int) -> int:
    """PDUs of the fullest TTI."""
    run = capture(data, size=100, downlink=downlink, fer=ERRORS)
    sent = run.packets.filter(
        (pl.col("point").cast(pl.String) == f"radio.rlc.{direction}.tx")
        & pl.col("event").cast(pl.String).is_in(["tx", "retx", "ack"])
    )
    return int(max(sent.group_by("t_ns").len()["len"].to_list()))


def peak_rate(data: Data, direction: str, downlink: int) -> float:
    """RLC payload of the fullest TTI, as a rate in kbit/s."""
    tti_ms = 10 if direction == "dl" and downlink == 384 else 20
    return fullest_tti(data, direction, downlink) * 320 / tti_ms


def frame_errors(data: Data) -> float:
    """Share of blocks that were lost over all runs; the blocks of a FEC frame are lost together."""
    runs = data.table("core", "runs", size=100, downlink=384, fer=ERRORS)
    lost, sent = sum(runs["downlink.blocks_lost"].to_list()), sum(runs["downlink.blocks"].to_list())
    return float(lost / sent)


def frames_share_their_fate(data: Data) -> Evidence:
    """U21: within a TTI all blocks are lost or none is."""
    run = capture(data, size=100, downlink=384, fer=ERRORS)
    packets = run.packets.with_columns(pl.col("point", "event").cast(pl.String))
    at_tx = packets.filter(pl.col("point") == "radio.rlc.dl.tx")
    sent = at_tx.filter(pl.col("event").is_in(["tx", "retx", "ack"])).group_by("t_ns").len("sent")
    lost = at_tx.filter(pl.col("event") == "drop").group_by("t_ns").len("lost")
    both = lost.join(sent, on="t_ns", how="left")
    return Setting(both.height > 0 and bool((both["lost"] == both["sent"]).all()))


def connections_for_object(data: Data) -> Evidence:
    """U22: connections that were opened for the object."""
    pages = data.table("core", "pages", fer=ERRORS, page=OBJECT)
    return Setting(int(pages["connections"].max()))  # type: ignore[arg-type]


def opening(data: Data) -> list[bytes]:
    """The segments of the capture that open the connection: SYN, and SYN with ACK."""
    file = data.run("sequence-http").folder / "trace.pcapng"
    found: dict[bool, bytes] = {}
    for segment in (packet.payload for packet in packets(file)):
        if segment[13] & 2:
            found.setdefault(bool(segment[13] & 16), segment)
    return [found[False], found[True]]


def selective_acks(data: Data) -> Evidence:
    """U23: both ends say in their SYN that they take SACK (RFC 2018: option 4)."""
    data.at_default_only()
    return Setting([4 in captures.options(segment) for segment in opening(data)])


def receive_window(data: Data) -> Evidence:
    """U23: the window that the client's SYN announces."""
    data.at_default_only()
    return Setting(int.from_bytes(opening(data)[0][14:16]), "octets")


def fading(of: Callable[[Numbers], Numbers], data: Data) -> Evidence:
    """U34: of response times, with frame errors in bursts and independent."""
    bursts, alone = (of(response(data, "fading", frames=how)) for how in ("bursts of 5", "independent"))
    return pair(bursts, alone, "s")


def from_median(times: Numbers) -> Numbers:
    """Distance of each seed from the median."""
    return np.abs(times - np.median(times))


# ---- controls ------------------------------------------------------------------------------------------------------


def closed_form(data: Data) -> Evidence:
    """Response time of 1 kB without errors over what the TTI grid and the delays give on paper."""
    ratios = []
    for downlink in DOWNLINKS:
        run = capture(data, size=1, downlink=downlink, fer=0)
        link = run.manifest["scenario"]["links"]["radio"]
        delay = milliseconds(link["radio_delay"]) + milliseconds(link["core_delay"])
        core = milliseconds(link["core_delay"])
        request = ip(run).filter((pl.col("t_ns") >= asked_at(run)) & (pl.col("dir") == "ul"))["len"][0]
        answer = server_data(run)["len"][0]
        slot = 10.0 if downlink == 384 else 20.0
        per_slot = 12 if downlink == 384 else 4
        pages = data.table("core", "pages", size=1, downlink=downlink, fer=0, page=OBJECT)
        for start, load in pages.select("start_ns", "load_ns").unique().iter_rows():
            t = math.ceil(start / 1e6 / 20) * 20 + slots(request, 4) * 20 + delay
            t = math.ceil((t + core) / slot) * slot + slots(answer, per_slot) * slot + delay - core
            ratios.append(load / 1e6 / (t - start / 1e6))
    return value(ratios, "of the closed form")


def slots(datagram: int, blocks: int) -> int:
    """TTIs for a datagram: PDUs of 40 octets, one of which goes to the length indicator."""
    return math.ceil(math.ceil((datagram + 1) / 40) / blocks)


def grows_with_errors(data: Data) -> Evidence:
    """100 kB with 10 per cent of frames in error and without errors."""
    return pair(response(data, size=100, downlink=384, fer=10), response(data, size=100, downlink=384, fer=0), "s")


def second_clock(data: Data) -> Evidence:
    """U-emulated: per seed, how long real fetches took, in parts of the mean in virtual time, over all six cells."""
    ratios: dict[int, list[float]] = {}
    data.results("emulated")  # without it there is nothing to look at
    for downlink in DOWNLINKS:
        where: dict[str, Any] = {"column": "load_ns", "downlink": downlink}
        pages = range(OBJECT, OBJECT + len(SIZES))
        model = [float(data.per_seed("emulated-model", "pages", page=page, **where).mean()) for page in pages]
        for seed, run in data.runs("emulated", downlink=downlink):
            shares = [took / mean for took, mean in zip(real_responses(run), model, strict=True)]
            ratios.setdefault(seed, []).extend(shares)
    whole = [float(np.mean(of_seed)) for of_seed in ratios.values() if len(of_seed) == len(DOWNLINKS) * len(SIZES)]
    return value(whole, "of virtual time")


def real_responses(run: Run) -> list[float]:
    """From each request to the last new octets of its response, ns, as seen where the mobile meets the link."""
    seen = ip(run).filter(pl.col("point") == "mobile.radio.ip")
    carries_data = pl.col("len") > 80
    # A request follows on the client's pause; one that TCP sent again does not. What the server sends again into the
    # pause, and its acknowledgement, do not count.
    is_first = (pl.col("t_ns") - pl.col("t_ns").shift(1)) > 4_000_000_000
    asked = seen.filter((pl.col("dir") == "ul") & carries_data).filter(is_first)["t_ns"].to_list()
    segments = seen.filter((pl.col("dir") == "dl") & (pl.col("event") == "rx") & carries_data)
    came = segments.unique(["flow", "seq"], keep="first", maintain_order=True)["t_ns"].to_numpy()
    spans = itertools.pairwise([*asked, math.inf])
    return [float(came[(came > begin) & (came < end)].max()) - begin for begin, end in spans]


COMPUTE = {
    "U-emulated": second_clock,
    "U11.http-set-up": set_up,
    "U11.http-pull": persistent,
    "U12.arithmetic": bandwidth_delay,
    "U14.one-packet": partial(by_window, 1, "cold", "warm"),
    "U15.first-flight": first_flight,
    "U15.slow-start": partial(by_window, 10, "cold", "warm"),
    "U15.not-expanded": not_expanded,
    "U16.expanded": expanded,
    "U17.tcp": longest_pause,
    "U21.mtu": lambda data: Setting(largest_datagram(data), "octets"),
    "U21.downlink-384": lambda data: Setting(peak_rate(data, "dl", 384), "kbit/s"),
    "U21.downlink-64": lambda data: Setting(peak_rate(data, "dl", 64), "kbit/s"),
    "U21.uplink-64": lambda data: Setting(peak_rate(data, "ul", 384), "kbit/s"),
    "U21.frame-errors": lambda data: Setting(frame_errors(data)),
    "U21.whole-frames": frames_share_their_fate,
    "U22.open-connection": connections_for_object,
    "U23.sack": selective_acks,
    # An increased one, against one segment of RFC 2001.
    "U23.initial-window": first_flight,
    "U23.receive-window": receive_window,
    "U28.round-trip": loaded_round_trip,
    "U34.mean": partial(fading, np.asarray),
    "U34.spread": partial(fading, from_median),
    "closed-form": closed_form,
    "idle-echo": idle_echo,
    # Nothing may be left of U15.
    "slow-start-off": partial(by_window, 10, "whole", "warm"),
    "errors-cost": grows_with_errors,
}
