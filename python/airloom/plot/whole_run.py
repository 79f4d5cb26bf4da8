"""The picture of a run: every layer that it recorded, one below the other on one time axis.

| layer | drawn as | needs |
|---|---|---|
| WTP | transactions and their messages | a capture where a host is |
| SCTP | TSN, coloured by stream | packets and a capture where a host is |
| WWP | number of the segment, coloured by wave; levels told, probes | packets and a capture where a host is |
| TCP | sequence number | packets where a host is |
| QUIC over several links | octets that arrived, coloured by link | packets where a host is |
| others | octets that passed | packets where a host is |
| Multilink | number of the fragment, rates, by member | packets at the members |
| RLC, MAC-hs, PIAFS | PDUs and frames, attempts, losses | packets on the link |
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from airloom.analysis import sequences
from airloom.analysis.happenings import happenings
from airloom.analysis.sequences import Sequence
from airloom.errors import AirloomError, UsageError
from airloom.plot import on_the_wire, transports
from airloom.plot.bundle import bundle_panels
from airloom.plot.figure import LINES, heading, save_svg
from airloom.plot.panels import Panel, stacked
from airloom.plot.paths import path_panel
from airloom.plot.time_sequence import from_zero, link_panels, seconds, sequence_panel
from airloom.scenario import spoken_by

if TYPE_CHECKING:
    from airloom.run import Run

#: What the picture is called in the folder of its run.
NAME = "time-sequence.svg"

#: What the rows of a link are called (`proto`) where it, or what it is made of, is one of these bearers.
_LAYERS = {
    "umts-dch": ("rlc", "RLC"),
    "umts-hsdpa": ("rlc", "RLC"),
    "egprs": ("rlc", "RLC"),
    "piafs": ("piafs", "PIAFS"),
    "mlppp": ("mp", "Multilink"),
}

#: Ports behind which WAP is encrypted (WTLS), without and with sessions.
_SECURE = {9202, 9203}

#: A flow that takes less than this share of a run has the time axis for itself.
_SHORT_FLOW = 0.5


class Picture(NamedTuple):
    """A figure, if there is anything to draw, and what is to be said about it."""

    figure: Figure | None
    #: Which of several flows it shows; what is not in it, with the setting that would record it.
    notes: list[str]


def picture(run: Run, flow: int | None = None, width_mm: float | None = None) -> Picture:
    """Draws what a run recorded; of several flows with sequence numbers the one that carried most, or `flow`.

    Outages and other changes of the links are marked. `width_mm` is the width on paper, such as 88 for a column.
    Nothing is an error that the run has not: `notes` say what is missing and how to record it. Raises `UsageError` if
    there is no such `flow`.

    >>> import airloom as al
    >>> picture(al.load("sctp-page").run()).notes[0]
    'drawn is flow 9, SCTP, which carried most of 20; others: airloom report, or airloom.plot.picture(run, flow=N)'
    """
    if not (run.folder / "packets.parquet").is_file():
        return Picture(None, [f"nothing to draw: {_setting('record', ['packets', *_recorded(run)])} records packets"])
    packets = sequences.plain(run.packets)
    there = sequences.flows(packets)
    if flow is not None and flow not in there:
        raise UsageError(f"no flow {flow} with sequence numbers; valid: {', '.join(map(str, sorted(there))) or 'none'}")
    drawn: Sequence | None = None
    notes: list[str] = []
    panels: list[Panel] = []
    wap = _wap(run)
    if there:
        drawn, panels, without = _flow(run, packets, there[0] if flow is None else flow, len(there))
        notes += without
        if len(there) > 1 and flow is None:
            which = f"drawn is flow {drawn.flow}, {drawn.proto.upper()}, which carried most of {len(there)}"
            notes.insert(0, f"{which}; others: airloom report, or airloom.plot.picture(run, flow=N)")
    elif not wap and (passed := path_panel(packets) or _passed(packets)) is not None:
        panels = [passed]
    span_s = _span(packets, drawn) if drawn and not wap else None
    if span_s is not None:
        packets = packets.filter((pl.col("t_ns") / 1e9).is_between(*span_s))
    # What a gateway fetches does not pass the radio; its transactions have no flow there.
    carried = None if wap else drawn
    direction = carried.direction if carried else None
    below = bundle_panels(packets, direction)
    below += link_panels(packets, direction or _busier(packets), carried.flow if carried else None)
    notes += _missing(run, packets, bool(there or wap))
    shown = [*wap, *panels, *below]
    if not shown:
        return Picture(None, ["nothing to draw: no packet passed a point that was recorded", *notes])
    return Picture(stacked(shown, span_s, happenings(run), width_mm), notes)


def save_picture(run: Run, width_mm: float | None = None) -> list[str]:
    """Draws a run into its folder; what is to be said about the picture."""
    drawn = picture(run, width_mm=width_mm)
    if drawn.figure is None:
        return drawn.notes
    temporary = run.folder / f".{NAME}.part"
    try:
        save_svg(drawn.figure, temporary)
        temporary.replace(run.folder / NAME)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        why = error.strerror or error
        raise AirloomError(f"{run.folder} is complete, but there is no picture in it: {why}") from None
    return drawn.notes


def _flow(run: Run, packets: pl.DataFrame, flow: int, flows: int) -> tuple[Sequence, list[Panel], list[str]]:
    """A flow with what its own protocol says, if that was captured."""
    drawn = sequences.sequence(packets, flow)
    if drawn.proto == "tcp":
        return drawn, [sequence_panel(drawn, flows)], []
    if run.capture is not None:
        hosts = run.manifest["scenario"]["hosts"].values()
        wwp = next((spoken["wwp"] for spoken in map(spoken_by, hosts) if "wwp" in spoken), None)
        inside = (
            on_the_wire.wwp_segments(run.capture, wwp["ports"])
            if drawn.proto == "wwp" and wwp
            else on_the_wire.sctp_chunks(run.capture)
        )
        # A capture has fewer points than the table: the flow is looked at where it was captured.
        there = packets.filter(pl.col("point").is_in(inside["point"].unique().implode()))
        if flow in sequences.flows(there):
            drawn = sequences.sequence(there, flow)
            if drawn.proto == "wwp" and wwp:
                return drawn, transports.wave_panels(drawn, flows, there, inside, wwp["waves"]), []
            return drawn, [transports.stream_panel(drawn, flows, there, inside)], []
    what = "streams" if drawn.proto == "sctp" else "waves and probes"
    note = f"not in the picture: {what}; {_setting('record', [*_recorded(run), 'pcapng'])} adds them"
    return drawn, [sequence_panel(drawn, flows)], [note]


def _wap(run: Run) -> list[Panel]:
    """The transactions of WAP, if datagrams of a gateway were captured in the clear."""
    gateways = run.flows.filter(pl.col("proto").cast(pl.String) == "wsp")["dst"].to_list()
    ports = {int(address.rsplit(":", 1)[1]) for address in gateways} - _SECURE
    if run.capture is None or not ports:
        return []
    hosts = run.manifest["scenario"]["hosts"].values()
    browsers = [app["wap-browser"] for host in hosts for app in host.get("app", []) if "wap-browser" in app]
    has_sessions = not any(browser["mode"] == "connectionless" for browser in browsers)
    panel = transports.transaction_panel(run.capture, ports, has_sessions=has_sessions)
    return [] if panel is None else [panel]


def _passed(packets: pl.DataFrame) -> Panel | None:
    """Octets of datagrams that have passed the point that saw most, both ways."""
    rows = packets.filter(pl.col("point").str.ends_with(".ip") & pl.col("event").is_in(["tx", "rx"]))
    if rows.is_empty():
        return None
    order = rows.group_by("point").agg(pl.col("len").sum()).sort(["len", "point"], descending=[True, False])
    return Panel(3.0, partial(_draw_passed, rows=rows.filter(pl.col("point") == order["point"][0])))


def _draw_passed(axes: Axes, rows: pl.DataFrame) -> None:
    kinds = rows.group_by("proto", "dir", "event", maintain_order=True)
    for n, ((proto, way, event), of_kind) in enumerate(kinds):
        label = f"{proto}, {'downlink' if way == 'dl' else 'uplink'}, {'sent' if event == 'tx' else 'received'}"
        octets = of_kind["len"].cast(pl.Int64).cum_sum()
        axes.step(seconds(of_kind), octets, ".-", where="post", color=LINES[n % len(LINES)]["color"], label=label)
    axes.set_ylabel("datagrams that passed\n(octets)")
    axes.yaxis.set_major_formatter(EngFormatter(sep=" "))
    from_zero(axes)
    heading(axes, f"Datagrams at {rows['point'][0]}")


def _busier(packets: pl.DataFrame) -> str:
    """The way that more octets of PDUs went, for runs without numbered flows."""
    sent = packets.filter(pl.col("seq").is_not_null()).group_by("dir").agg(pl.col("len").sum())
    return "dl" if sent.is_empty() else str(sent.sort(["len", "dir"], descending=[True, False])["dir"][0])


def _span(packets: pl.DataFrame, drawn: Sequence) -> tuple[float, float] | None:
    """When the flow was there, with a little room, if it is a short part of the run."""
    times = seconds(packets.filter((pl.col("flow") == drawn.flow) & (pl.col("point") == drawn.point)))
    first, last = float(times.min()), float(times.max())  # type: ignore[arg-type]
    if last - first >= _SHORT_FLOW * float(packets["t_ns"].max()) / 1e9:  # type: ignore[arg-type]
        return None
    room = 0.03 * (last - first) or 0.1
    return max(first - room, 0.0), last + room


def _missing(run: Run, packets: pl.DataFrame, has_flow: bool) -> list[str]:
    """What passed and is not in the table, with the points that see it."""
    points = run.manifest["scenario"]["run"].get("points")
    if points is None:
        return []
    links = run.manifest["scenario"]["links"]
    wanted: dict[str, str] = {}
    protocols = {"tcp", "sctp", "wwp", "wsp"} & set(run.flows["proto"].cast(pl.String).to_list())
    if protocols and not has_flow:
        # At the link that was looked at; the first one of the path has a client at its end.
        begun = next(
            (name for name in links if any(point.startswith(f"{name}.") for point in points)), next(iter(links))
        )
        wanted[", ".join(sorted(p.upper() for p in protocols))] = f"*.{begun}.ip"
    seen = packets.select("point", "proto").unique()
    for link, keys in links.items():
        own = set(seen.filter(pl.col("point").str.starts_with(f"{link}."))["proto"].to_list())
        for proto, name in dict.fromkeys(_LAYERS[b] for b in _bearers(keys) if b in _LAYERS):
            if proto not in own:
                wanted[f"{name} on {link}"] = f"{link}.*"
    if not wanted:
        return []
    more = _setting("points", [*points, *dict.fromkeys(wanted.values())])
    return [f"not in the picture: {', '.join(wanted)}; {more} adds {'it' if len(wanted) == 1 else 'them'}"]


def _bearers(keys: dict[str, Any]) -> Iterator[str]:
    """The bearer of a link and those it is made of."""
    if "bearer" in keys:
        yield keys["bearer"]
    for inner in (keys.get("over") or {}, *(keys.get("members") or [])):
        for name, table in (inner if isinstance(inner, dict) else {inner: {}}).items():
            yield name
            yield from _bearers(table or {})


def _recorded(run: Run) -> list[str]:
    recorded: list[str] = run.manifest["scenario"]["run"]["record"]
    return recorded


def _setting(key: str, values: list[str]) -> str:
    """As it stands on the command line."""
    return f"--set {shlex.quote(f'run.{key}=' + json.dumps(list(dict.fromkeys(values)), separators=(',', ':')))}"
