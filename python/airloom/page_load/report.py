"""Loads side by side in one HTML file: numbers, filmstrips, waterfalls with what the link did."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from airloom.page_load.link_events import LinkEvents, link_events, phases
from airloom.page_load.measure import Loaded
from airloom.report.page import Section, document, escaped, number, table

#: Seconds from one picture of a filmstrip to the next, and how many there are at most.
STEP_S = 0.5
_MOST_PICTURES = 60

_COLOURS = {
    "queued": "#d0d0d0",
    "connecting": "#e69f00",
    "TLS": "#cc79a7",
    "waiting": "#56b4e9",
    "receiving": "#0072b2",
}

_STYLE = """<style>
.strip { display: flex; gap: .4rem; overflow-x: auto; padding-bottom: .4rem }
.strip figure { margin: 0; flex: 0 0 auto; text-align: center; font-size: .75rem }
.strip img { width: 8rem; height: 6rem; object-fit: cover; object-position: top;
  border: 1px solid #8888; background: #fff }
.strip .done img { outline: 3px solid #009e73 }
.fall { width: 100%; min-width: 36rem; height: auto; font: 10px sans-serif }
.fall text { fill: currentColor }
.scroll { overflow-x: auto }
.key span { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em }
</style>"""


def write_report(loads: Sequence[Loaded], url: str, target: Path) -> None:
    """Writes the report of some loads of one page."""
    events = [link_events(loaded) for loaded in loads]
    longest = max((loaded.page_s or _last(loaded) for loaded in loads), default=0.0)
    sections = [
        Section("numbers", "Numbers", _numbers(loads, events)),
        Section("filmstrips", "Filmstrips", "".join(_strip(loaded, longest) for loaded in loads)),
        Section("waterfalls", "Waterfalls", _key() + "".join(map(_fall, loads, events))),
    ]
    about = f"Loaded by {escaped(_browsers(loads))} over modelled links, in real time."
    intro = f"{_STYLE}<h1>{escaped(url)}</h1><p>{about}</p>"
    temporary = target.with_suffix(".part")
    temporary.write_text(document(f"{url}: loads", intro, sections, {"plots": []}), encoding="utf-8")
    temporary.rename(target)


def name_of(loaded: Loaded) -> str:
    """How a load is called."""
    return f"{loaded.link}, {'no proxy' if loaded.way == 'none' else loaded.way}"


def _browsers(loads: Sequence[Loaded]) -> str:
    return ", ".join(sorted({f"Chromium {loaded.seen['version']}" for loaded in loads}))


def _numbers(loads: Sequence[Loaded], events: Sequence[LinkEvents]) -> str:
    columns = ["load", "page (s)", "first paint (s)", "DOM (s)", "requests", "connections", "kB received"]
    columns += ["PDUs sent again", "lost", "times are"]
    rows = []
    for loaded, of_link in zip(loads, events, strict=True):
        seen = loaded.seen
        times: list[object] = ["not loaded", None, None, None]
        if loaded.page_s is not None:
            paint = None if seen["paint"] is None else seen["paint"] / 1e3
            times = [loaded.page_s, paint, seen["content"] / 1e3, len(seen["requests"])]
        valid = "valid" if loaded.summary.get("valid") else "not valid: this machine was too slow"
        link = [of_link.connections, of_link.received / 1e3, len(of_link.again), len(of_link.lost)]
        rows.append([name_of(loaded), *times, *link, valid])
    failed = [
        f"<p>{escaped(name_of(loaded))}: {escaped(loaded.seen['error'])}</p>"
        for loaded in loads
        if loaded.seen["error"]
    ]
    return table("One load each", columns, rows, is_whole=True) + "".join(failed)


def _last(loaded: Loaded) -> float:
    frames = loaded.seen["frames"]
    return float(frames[-1]) - _zero(loaded) if frames else 0.0


def _zero(loaded: Loaded) -> float:
    """When the page was asked for, in seconds since 1970."""
    origin = loaded.seen.get("origin")
    return float(origin / 1e3 if origin else loaded.seen["began"])


def _strip(loaded: Loaded, longest: float) -> str:
    """A picture each half second: the last that was painted before it."""
    zero, frames = _zero(loaded), loaded.seen["frames"]
    end = loaded.page_s
    pictures = []
    shown: dict[int, str] = {}
    for step in range(min(int(longest / STEP_S) + 2, _MOST_PICTURES)):
        at = step * STEP_S
        painted = [index for index, frame in enumerate(frames) if zero <= frame <= zero + at]
        is_done = end is not None and end <= at
        source = _BLANK
        if painted:
            source = shown.setdefault(painted[-1], _picture(loaded, painted[-1]))
        pictures.append(
            f'<figure class="{"done" if is_done else ""}"><img alt="the page after {at:g} s" src="{source}">'
            f"<figcaption>{at:g} s</figcaption></figure>"
        )
        if is_done:
            break
    when = "not loaded" if end is None else f"loaded after {number(end)} s"
    return (
        f'<h3>{escaped(name_of(loaded))}: {when}</h3><div class="strip" tabindex="0" role="region" '
        f'aria-label="filmstrip, {escaped(name_of(loaded))}">{"".join(pictures)}</div>'
    )


#: A white pixel.
_BLANK = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="


def _picture(loaded: Loaded, index: int) -> str:
    octets = (loaded.folder / "shots" / f"{index:04}.jpg").read_bytes()
    return f"data:image/jpeg;base64,{base64.b64encode(octets).decode()}"


def _key() -> str:
    parts = "".join(f'<span style="background:{colour}"></span>{name}' for name, colour in _COLOURS.items())
    marks = '<span style="background:#d55e00"></span>link layer sent again<span style="background:#000"></span>lost'
    return f'<p class="key">{parts}{marks}</p>'


_LEFT, _WIDE, _ROW = 170, 900, 16


def _fall(loaded: Loaded, events: LinkEvents) -> str:
    requests = loaded.seen.get("requests", [])
    if not requests:
        return ""
    end = max(loaded.seen["load"], max(request["end"] for request in requests), 1.0)
    scale = (_WIDE - _LEFT - 10) / end

    def x(at: float) -> float:
        return float(round(_LEFT + at * scale, 1))

    height = _ROW * (len(requests) + 2)
    parts = []
    for tick in range(int(end / 500) + 1):
        parts.append(
            f'<line x1="{x(tick * 500)}" x2="{x(tick * 500)}" y1="{_ROW}" y2="{height}" stroke="#8884"/>'
            f'<text x="{x(tick * 500)}" y="11" text-anchor="middle">{tick * STEP_S:g} s</text>'
        )
    for row, request in enumerate(requests):
        top = _ROW * (row + 1)
        label = _label(request["url"])
        told = f"{request['url']}, {request['status']}, {request['protocol']}, {number(request['octets'])} octets"
        parts.append(f'<text x="4" y="{top + 11}">{escaped(label)}<title>{escaped(told)}</title></text>')
        for name, begin, stop in phases(request):
            parts.append(
                f'<rect x="{x(begin)}" y="{top + 2}" width="{max((stop - begin) * scale, 0.6):.1f}" height="8" '
                f'fill="{_COLOURS[name]}"><title>{escaped(label)}: {name} {stop - begin:.0f} ms</title></rect>'
            )
        # Under each request what the link did while it was under way.
        for times, colour in ((events.again, "#d55e00"), (events.lost, "currentColor")):
            within = [at for at in times if request["start"] <= at <= request["end"]]
            path = "".join(f"M{x(at)} {top + 11}v4" for at in within)
            if path:
                parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="1" fill="none"/>')
        if not request["status"]:
            parts.append(f'<text x="{x(request["end"]) + 3}" y="{top + 10}">failed</text>')
    load = x(loaded.seen["load"])
    parts.append(f'<line x1="{load}" x2="{load}" y1="{_ROW}" y2="{height}" stroke="#009e73" stroke-width="2"/>')
    caption = f"{name_of(loaded)}: {len(requests)} requests, loaded after {number(loaded.seen['load'] / 1e3)} s"
    return (
        f"<h3>{escaped(caption)}</h3>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="waterfall, {escaped(name_of(loaded))}">'
        f'<svg class="fall" viewBox="0 0 {_WIDE} {height}" role="img" aria-label="{escaped(caption)}">'
        f"{''.join(parts)}</svg></div>"
    )


def _label(url: str) -> str:
    """The last part of the path, behind the host if that is another one than the page's."""
    where = urlsplit(url)
    name = where.path.rsplit("/", 1)[-1] or where.path or "/"
    host = "" if where.hostname == "origin" else f"{where.hostname}/"
    return (host + name.lstrip("/") if host else name)[-26:]
