"""The report of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from airloom import digest
from airloom.analysis import default_models, energy, sequences
from airloom.analysis.happenings import happenings
from airloom.analysis.sequences import LINK_LAYERS
from airloom.analysis.units import titled
from airloom.measures import describe
from airloom.report import events, page
from airloom.report.page import Section, escaped
from airloom.run import Run

#: Plots of quantities over time, by the names of their places.
_LINES = ("rates", "queues", "windows")

#: Protocols in which more happens than numbers show.
_MORE_THAN_NUMBERS = {"sctp", "wwp", "wsp"}

#: What the numbers of a transport are.
_NUMBERS = {"tcp": "sequence number (octets)", "sctp": "TSN (chunks)", "wwp": "number (segments)"}

#: Parts of a radio's energy.
_PARTS = ("transfer", "tail", "idle")

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
    sections = [
        *_happenings(run),
        *time,
        _summary(run),
        _network(run),
        *_energy(run),
        *_every_row("flows", "Flows", run.flows),
        *_every_row("pages", "Page loads", run.pages),
        Section("files", "Files", page.links(run.folder, _FILES, target)),
    ]
    return page.document(f"{run.manifest['name']}, seed {run.manifest['seed']}", _intro(run), sections, data)


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
    answers = page.facts(digest.of_run(run), kind="asked")
    return (
        f"<h1>{escaped(scenario.get('title') or manifest['name'])}</h1>{answers}{said}"
        f'<p>To repeat it:</p><pre tabindex="0"><code>{escaped(page.command_line(manifest))}</code></pre>'
    )


def _summary(run: Run) -> Section:
    body = "<p>One run, one seed: no number here has an interval. A sweep over seeds gives them.</p>"
    for group in digest.grouped(run.summary):
        # Names of keys stand between backticks in the catalogue.
        rows = [
            (titled(key).removesuffix(" (count)"), value, describe(key).meaning.replace("`", ""))
            for key, value in group.lines
        ]
        body += page.table(group.title, ["result", "value", "what it is"], rows, is_whole=True)
    every = page.table("All numbers", ["result", "value"], sorted(run.summary.items()))
    body += (
        f"<details><summary>All {len(run.summary)} numbers, by their names in summary.json</summary>{every}</details>"
    )
    return Section("summary", "Summary", body)


def _happenings(run: Run) -> list[Section]:
    """What the plots mark, in words."""
    found = happenings(run)
    if not found:
        return []
    rows = [(one.name, one.begin_s, one.end_s) for one in found]
    table = page.table("What happened to the links", ["what", "from (s)", "to (s)"], rows, is_whole=True)
    return [Section("happenings", "Timeline", table)]


def _network(run: Run) -> Section:
    """Hosts and links."""
    from airloom.plot import topology

    scenario = run.manifest["scenario"]
    alt = f"hosts {', '.join(scenario['hosts'])}; links {', '.join(scenario['links'])}"
    body = page.picture(topology(scenario), "svg", alt)
    return Section(
        "network", "Network", f'<div class="wide" tabindex="0" role="region" aria-label="Network">{body}</div>'
    )


def _energy(run: Run) -> list[Section]:
    """What the radio spent, where a run has the radio states that the models speak of."""
    link = next((name for name, keys in run.manifest["scenario"]["links"].items() if keys.get("rrc")), None)
    if link is None or run.states.is_empty():
        return []
    rows, mobiles = [], 0
    for model in default_models(run, link):
        spent = energy(run, model, link=link)
        mobiles = max(mobiles, spent["host"].n_unique())
        parts = dict(spent.group_by("part").agg(pl.col("joules").sum()).rows())
        rows.append((model.title, sum(parts.values()), *(parts.get(part, 0.0) for part in _PARTS)))
    columns = ["model", "energy (J)", *(f"{part} (J)" for part in _PARTS)]
    said = "<p>Phones differ by a factor of two: good for orderings. <code>airloom energy DIR</code> has more.</p>"
    whose = "the mobile's radio" if mobiles < 2 else f"the radios of {mobiles} mobiles, all together"
    return [Section("energy", "Energy", page.table(f"Energy of {whose}", columns, rows, is_whole=True) + said)]


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
        rates, *others = (f'<div id="{name}" class="plot"></div>' for name in _LINES)
        places = "".join((rates, _on_rates(run, packets), *others))
        found.append(Section("rate", "Queue and rate", ("" if flows else controls) + places))
    return found


def _on_rates(run: Run, packets: pl.DataFrame) -> str:
    """How rates are counted, and why a link may seem faster than it is."""
    span = events.rate_span_ns(packets) / 1e9
    links = run.manifest["scenario"]["links"]
    rates = [f"{name}: {_rate(keys['rate'])}" for name, keys in links.items() if keys.get("rate")]
    return (
        f"<p>Rates are means over {span:g} s of the datagrams that come out of a link. A link that delivers in order "
        "holds back what came after a loss, and lets all of it go at once when the gap is filled: after a pause a span "
        f"may show more than the link carries. Set are {escaped('; '.join(rates) or 'no rates')}.</p>"
    )


def _rate(rate: Any) -> str:
    if isinstance(rate, dict):
        ways = {"downlink": "down", "uplink": "up"}
        return ", ".join(f"{value} {ways.get(way, way)}" for way, value in rate.items())
    return str(rate)


def _picture(run: Run) -> Section:
    """What the script has no plots for: streams, waves, transactions, members; links without datagrams."""
    from airloom.plot import picture

    drawn = picture(run)
    body = "".join(f"<p>{escaped(note)}</p>" for note in drawn.notes)
    if drawn.figure is not None:
        alt = "; ".join(axes.get_title(loc="left") for axes in drawn.figure.axes)
        body = page.picture(drawn.figure, "png", alt) + body
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


def _every_row(anchor: str, caption: str, rows: pl.DataFrame) -> list[Section]:
    if rows.is_empty():
        return []
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
    return [Section(anchor, caption, text)]


def _data(run: Run, packets: pl.DataFrame | None) -> dict[str, Any]:
    if packets is None:
        return {"kind": "run", "events": [], **{name: [] for name in _LINES}}
    lines = {"rates": events.rates(packets), "queues": events.queues(packets), "windows": _windows(run)}
    return {
        "kind": "run",
        "events": [one._asdict() for one in happenings(run)],
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
