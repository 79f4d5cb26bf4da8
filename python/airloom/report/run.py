"""The report of one run."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import polars as pl

from airloom.analysis import sequences
from airloom.analysis.sequences import LINK_LAYERS
from airloom.report import events, page
from airloom.report.page import Section, escaped
from airloom.run import Run

#: Plots of quantities over time, by the names of their places.
_LINES = ("rates", "queues", "windows")

#: Protocols in which more happens than numbers show.
_MORE_THAN_NUMBERS = {"sctp", "wwp", "wsp"}

#: What the numbers of a transport are.
_NUMBERS = {"tcp": "sequence number (octets)", "sctp": "TSN (chunks)", "wwp": "number (segments)"}

#: Rows of a table that are shown; the files have them all.
_MOST_ROWS = 200

_FILES = (
    ("trace.pcapng", "capture; open it in Wireshark, or: tshark --enable-heuristic rlc_udp -r trace.pcapng"),
    ("packets.parquet", "one row per packet or PDU at each point"),
    ("flows.parquet", "one row per flow"),
    ("pages.parquet", "one row per page load"),
    ("states.parquet", "radio states and air time"),
    ("congestion.parquet", "congestion windows and timers"),
    ("summary.json", "the summary"),
    ("run.json", "scenario as understood, seed, versions, command"),
    ("time-sequence.svg", "the time-sequence graph for print"),
)


def document(run: Run, target: Path) -> str:
    """The report of an opened run, as it will stand at `target`."""
    packets = sequences.plain(run.packets) if (run.folder / "packets.parquet").is_file() else None
    data = _data(run, packets)
    flows = [] if packets is None else events.flows(packets)
    data["flows"] = [_flow(flow) for flow in flows]
    time = _not_recorded() if packets is None else _over_time(run, packets, flows, has_lines=_has_lines(data))
    sections = [_summary(run), *time, *_flows(run), *_pages(run), _files(run, target)]
    return page.document(_title(run), _intro(run), sections, data)


def page_text(place: Path, target: Path) -> str:
    """The report of a run folder."""
    return document(Run(place), target)


def _title(run: Run) -> str:
    return f"{run.manifest['name']}, seed {run.manifest['seed']}"


def _intro(run: Run) -> str:
    manifest = run.manifest
    scenario = manifest["scenario"]
    said = page.facts(
        [
            ("scenario", manifest["name"]),
            ("seed", manifest["seed"]),
            ("clock", f"{manifest['clock']} time"),
            ("run", manifest["run_id"]),
            ("airloom", manifest["version"]),
            ("made", f"{manifest['start_utc'][:19]}Z"),
        ]
    )
    return (
        f"<h1>{escaped(scenario.get('title') or manifest['name'])}</h1>{said}"
        f'<p>To repeat it:</p><pre tabindex="0"><code>{escaped(page.command_line(manifest))}</code></pre>'
    )


def _summary(run: Run) -> Section:
    whole = [(key, value) for key, value in run.summary.items() if "." not in key]
    parts = [(key, value) for key, value in run.summary.items() if "." in key]
    body = "<p>One run, one seed: no number here has an interval. A sweep over seeds gives them.</p>"
    body += page.table("Summary", ["result", "value"], whole)
    if parts:
        rows = page.table("By host, link and direction", ["result", "value"], parts)
        body += f"<details><summary>{len(parts)} more, by host, link and direction</summary>{rows}</details>"
    return Section("summary", "Summary", body)


def _not_recorded() -> list[Section]:
    hint = "<p>This run recorded no packets: add <code>&quot;packets&quot;</code> to <code>record</code> in "
    return [Section("time", "Over time", f"{hint}<code>[run]</code> and run it again to see it over time.</p>")]


def _over_time(run: Run, packets: pl.DataFrame, flows: list[events.FlowEvents], *, has_lines: bool) -> list[Section]:
    found = []
    controls = '<div id="controls"></div>'
    if flows:
        body = (
            "<p>Drag to zoom, double-click for all of it. On a focused plot: arrow keys move, <kbd>+</kbd> and "
            "<kbd>-</kbd> zoom, <kbd>0</kbd> shows all, <kbd>n</kbd> and <kbd>p</kbd> choose the next and "
            f"previous mark. Click a mark for its packet.</p>{controls}"
            '<div id="sequence" class="plot"></div><div id="attempts" class="plot"></div>'
            '<div id="chosen" class="card" role="region" aria-label="Chosen packet" aria-live="polite">'
            "<p>No packet chosen.</p></div>"
        )
        found.append(Section("time", "Time-sequence graph", body + _marks(flows)))
    spoken = set(run.flows["proto"].cast(pl.String).to_list()) & _MORE_THAN_NUMBERS
    if not flows or spoken or "mp" in packets["proto"]:
        found.append(_picture(run))
    if has_lines:
        places = "".join(f'<div id="{name}" class="plot"></div>' for name in _LINES)
        found.append(Section("rate", "Queue and rate", ("" if flows else controls) + places))
    return found


def _picture(run: Run) -> Section:
    """What the script has no plots for: streams, waves, transactions, members; links without datagrams."""
    from airloom.plot import picture
    from airloom.plot.figure import png

    drawn = picture(run)
    body = "".join(f"<p>{escaped(note)}</p>" for note in drawn.notes)
    if drawn.figure is not None:
        octets = base64.b64encode(png(drawn.figure)).decode()
        alt = "; ".join(axes.get_title(loc="left") for axes in drawn.figure.axes)
        body = f'<img class="picture" alt="{escaped(alt)}" src="data:image/png;base64,{octets}">{body}'
    return Section("layers", "Layer by layer", body)


def _marks(flows: list[events.FlowEvents]) -> str:
    """The same in numbers, for whoever does not see the plot."""
    rows: list[tuple[object, ...]] = []
    for flow in flows:
        for kind in (*flow.segments, *flow.attempts):
            times = kind.rows["t_ns"].to_list()
            first, last = (min(times) / 1e9, max(times) / 1e9) if times else (None, None)
            rows.append((f"flow {flow.sequence.flow}", kind.name, len(times), first, last))
    columns = ["flow", "marks", "number", "first (s)", "last (s)"]
    return (
        "<details><summary>What the plots show, in numbers</summary>"
        + page.table("Marks", columns, rows)
        + "</details>"
    )


def _flows(run: Run) -> list[Section]:
    flows = run.flows
    if flows.is_empty():
        return []
    return [Section("flows", "Flows", _rows("Flows", flows))]


def _pages(run: Run) -> list[Section]:
    pages = run.pages
    if pages.is_empty():
        return []
    return [Section("pages", "Page loads", _rows("Page loads", pages))]


def _rows(caption: str, rows: pl.DataFrame) -> str:
    shown = rows.head(_MOST_ROWS)
    # Times in seconds and with their unit in the heading, as people read them.
    renamed = shown.select(
        [
            (pl.col(name) / 1e9).alias(f"{name.removesuffix('_ns')} (s)") if name.endswith("_ns") else pl.col(name)
            for name in shown.columns
        ]
    )
    text = page.table(caption, renamed.columns, renamed.rows())
    if rows.height > shown.height:
        text += f"<p>{shown.height} of {rows.height} rows; the file has all.</p>"
    return text


def _files(run: Run, target: Path) -> Section:
    return Section("files", "Files", page.links(run.folder, _FILES, target))


def _data(run: Run, packets: pl.DataFrame | None) -> dict[str, Any]:
    if packets is None:
        return {"kind": "run", **{name: [] for name in _LINES}}
    lines = {"rates": events.rates(packets), "queues": events.queues(packets), "windows": _windows(run)}
    return {
        "kind": "run",
        "capture": "trace.pcapng" if run.capture else None,
        **{name: [line.encoded() for line in lines[name]] for name in _LINES},
    }


def _has_lines(data: dict[str, Any]) -> bool:
    return any(data[name] for name in _LINES)


def _flow(flow: events.FlowEvents) -> dict[str, Any]:
    of, below = flow.sequence, flow.below
    return {
        "flow": of.flow,
        "name": f"flow {of.flow}, data at {of.point}",
        "title": of.proto.upper(),
        "y": _NUMBERS[of.proto],
        "segments": [kind.encoded() for kind in flow.segments],
        "attempts": [kind.encoded() for kind in flow.attempts],
        "attempts_title": below and f"{LINK_LAYERS[below.proto]} at {below.point}",
    }


def _windows(run: Run) -> list[events.Line]:
    if not (run.folder / "congestion.parquet").is_file():
        return []
    rows = run.congestion.with_columns(pl.col("host").cast(pl.String)).sort("t_ns", maintain_order=True)
    found = []
    for (host, flow), of_flow in sorted(rows.group_by("host", "flow"), key=lambda entry: str(entry[0])):
        times = of_flow["t_ns"].to_numpy() / 1e9
        found.append(events.Line(f"flow {flow} at {host}, congestion window", times, of_flow["cwnd"].to_numpy() * 1.0))
    return found[: 2 * events.MOST_FLOWS]
