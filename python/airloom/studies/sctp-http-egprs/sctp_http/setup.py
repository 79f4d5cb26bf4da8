"""What was simulated (2.2, 3.3, 3.4): read off the air and the wire where it shows, else from the run's scenario."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.plot.figure import DATA
from airloom.run import Run
from airloom.study import Data, Evidence, Setting, value
from airloom.study.drawing import canvas

from .messages import opening
from .pages import MCS_4, blocks
from .units import transfer

#: Block period of RLC/MAC, ns.
PERIOD = 20_000_000


def any_run(data: Data, protocol: str) -> Run:
    """A run that was kept whole."""
    data.at_default_only()
    return data.run(f"blocks-{protocol}")


def radio(data: Data) -> dict[str, Any]:
    """The radio link as the run understood it."""
    found: dict[str, Any] = any_run(data, "tcp").manifest["scenario"]["links"]["radio"]
    return found


def both(setting: Any, way: str) -> Any:
    """A setting of one direction, of a link that may have said one for both."""
    return setting[way] if isinstance(setting, dict) else setting


# ---- A11 -----------------------------------------------------------------------------------------------------------


def longest_packet(data: Data, protocol: str) -> int:
    """Octets of the longest packet on its way to the mobile."""
    packets = any_run(data, protocol).packets.with_columns(pl.col("point", "event").cast(pl.String))
    queued = packets.filter(pl.col("point").str.ends_with("rlc.dl.tx") & (pl.col("event") == "enq"))
    most = queued["len"].max()
    assert isinstance(most, int)
    return most


def streams(data: Data) -> int:
    """Streams on which the server sent objects."""
    data.at_default_only()
    found = transfer(data.run("sequence-sctp"))
    return len({unit.stream for unit in found.of.values()})


def windows(data: Data) -> Evidence:
    """The windows that the mobile offers when it opens a connection or association."""
    data.at_default_only()
    found = [opening(data.run(f"sequence-{protocol}")) for protocol in ("tcp", "sctp")]
    return Setting(", ".join(f"{window}" for window in found), "octets")


def timeouts(data: Data) -> Evidence:
    """First timeouts, as set."""
    origin = {p: any_run(data, p).manifest["scenario"]["hosts"]["origin"] for p in ("tcp", "sctp")}
    found = [host["transport"][protocol]["rto_initial"] for protocol, host in origin.items()]
    return Setting(", ".join(found))


# ---- A12, A13 ------------------------------------------------------------------------------------------------------


def block_octets(data: Data) -> Evidence:
    """Octets of the RLC data blocks on the air: every coding scheme has its own number."""
    found = blocks(any_run(data, "tcp"), "dl")["len"].unique().sort().to_list()
    return Setting(", ".join(str(octets) for octets in found), "octets")


def slots(data: Data) -> Evidence:
    """The most data blocks of a mobile in one block period, down and up: one a timeslot."""
    most = []
    for way in ("dl", "ul"):
        sent = blocks(any_run(data, "tcp"), way).filter(pl.col("event").is_in(["tx", "retx"]))
        most.append(sent.group_by(pl.col("t_ns") // PERIOD).len()["len"].max())
    return Setting("+".join(str(n) for n in most))


def wires(data: Data) -> Evidence:
    """Rates and delays of the three wires, as set."""
    return Setting(", ".join(said for _, said in _wires(any_run(data, "tcp"))))


def _wires(run: Run) -> list[tuple[str, str]]:
    links = run.manifest["scenario"]["links"]
    return [
        (name, f"{both(links[name]['rate'], 'downlink')} {both(links[name]['delay'], 'downlink')}")
        for name in ("gb", "gi", "internet")
    ]


def in_error(data: Data) -> Evidence:
    """Blocks lost over blocks sent, one number per run."""
    data.at_default_only()
    shares = []
    for _, run in data.runs("blocks-tcp"):
        rows = blocks(run, "dl").filter(pl.col("len") == MCS_4)
        sent = rows.filter(pl.col("event").is_in(["tx", "retx"])).height
        shares.append(rows.filter(pl.col("event") == "drop").height / sent)
    return value(shares, "blocks")


COMPUTE: dict[str, Any] = {
    "A11.tcp-packet": lambda data: Setting(longest_packet(data, "tcp"), "octets"),
    "A11.sctp-packet": lambda data: Setting(longest_packet(data, "sctp"), "octets"),
    "A11.streams": lambda data: Setting(streams(data)),
    "A11.window": windows,
    "A11.rto": timeouts,
    "A12.mcs": block_octets,
    "A12.window": lambda data: Setting(both(radio(data)["window"], "downlink")),
    "A12.slots": slots,
    "A13.wires": wires,
    "A13.blocks": in_error,
}


# ---- Fig. 2, Tables 1 and 2 ----------------------------------------------------------------------------------------


def fig_2(data: Data) -> Figure:
    """The nodes and links of a run, as its scenario has them."""
    run = any_run(data, "tcp")
    air, wired = radio(data), dict(_wires(run))
    gi_loss = both(run.manifest["scenario"]["links"]["gi"]["loss"], "downlink")
    nodes = ("mobile\n(4+1)", "PCU", "SGSN", "GGSN", "IP server")
    mcs, window = (both(air[key], "downlink") for key in ("mcs", "window"))
    links = (
        f"EGPRS\nMCS-{mcs}, {air['pdchs']} timeslots\nwindow {window}",
        f"Gb\n{wired['gb'].replace(' ', chr(10))}",
        f"Gi\n{wired['gi'].replace(' ', chr(10))}\n{_share(gi_loss):.0%} lost",
        f"Internet\n{wired['internet'].replace(' ', chr(10))}",
    )
    figure, axes = canvas(height=1.6)
    _chain(axes, nodes, links)
    return figure


def _share(loss: Any) -> float:
    """The probability of a loss that was given as a number or as a table."""
    return float(loss["loss"] if isinstance(loss, dict) else loss)


def _chain(axes: Axes, nodes: tuple[str, ...], links: tuple[str, ...]) -> None:
    """Boxes in a row with what lies between them."""
    for n, name in enumerate(nodes):
        box = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": DATA}
        axes.text(2 * n, 0, name, ha="center", va="center", bbox=box)
    for n, said in enumerate(links):
        axes.plot([2 * n + 0.5, 2 * n + 1.5], [0, 0], color=DATA, linewidth=1.3)
        axes.text(2 * n + 1, -0.18, said, ha="center", va="top", fontsize=7.5)
    axes.set_xlim(-0.7, 2 * len(nodes) - 1.3)
    axes.set_ylim(-0.9, 0.4)
    axes.set_axis_off()


def _agents(data: Data, protocol: str) -> list[dict[str, Any]]:
    """The transports of mobile and server, as the run understood them."""
    hosts = any_run(data, protocol).manifest["scenario"]["hosts"]
    return [hosts[host]["transport"][protocol] for host in ("mobile", "origin")]


_COLUMNS = ["", "paper: mobile", "paper: IP server", "ours: mobile", "ours: server"]


def table_1(data: Data) -> tuple[list[str], list[list[str]]]:
    """SCTP agents' parameters."""
    agents = _agents(data, "sctp")
    packet = longest_packet(data, "sctp")
    used = streams(data)
    return _COLUMNS, [
        ["MTU", "1500 bit", "1500 bit", f"{packet} octets", f"{packet} octets"],
        ["DataChunkSize", "1468 bit", "1468 bit", f"{packet - 32} octets", f"{packet - 32} octets"],
        ["OutStreams", "3", "3", f"{used}", f"{used}"],
        ["Initial Cwnd", "2", "2", *(f"{agent['initial_window']} packets" for agent in agents)],
        ["Initial Rwnd", "64 Kbit", "64 Kbit", *(f"{agent['receive_buffer']}" for agent in agents)],
        ["Initial RTO", "1 sec", "1 sec", *(agent["rto_initial"] for agent in agents)],
    ]


def table_2(data: Data) -> tuple[list[str], list[list[str]]]:
    """TCP agents' parameters."""
    agents = _agents(data, "tcp")
    packet = longest_packet(data, "tcp")
    return _COLUMNS, [
        ["MTU", "1500 bit", "1500 bit", f"{packet} octets", f"{packet} octets"],
        ["Packet size", "1460", "1460 bit", f"{packet - 40} octets", f"{packet - 40} octets"],
        ["Initial Cwnd", "2", "2", *(f"{agent['initial_window']} segments" for agent in agents)],
        ["Initial Rwnd", "64 Kbit", "64 Kbit", *(f"{agent['receive_buffer']}" for agent in agents)],
        ["Initial RTO", "1 sec", "1 sec", *(agent["rto_initial"] for agent in agents)],
    ]
