"""A load's requests over time, with what the link did under each of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from airloom.page_load.filmstrip import step_s
from airloom.page_load.link_events import LinkEvents, phases
from airloom.page_load.measure import Loaded
from airloom.page_load.outcome import name_of
from airloom.report.page import escaped, number

_COLOURS = {
    "queued": "#d0d0d0",
    "connecting": "#e69f00",
    "TLS": "#cc79a7",
    "waiting": "#56b4e9",
    "receiving": "#0072b2",
}
_AGAIN, _LOST = "#d55e00", "currentColor"

#: Moments of a load: what they are called, their key, and how their line is drawn.
_MOMENTS = (
    ("first contentful paint", "paint", 'stroke="#8a8a8a" stroke-width="2" stroke-dasharray="2 2"'),
    ("largest contentful paint", "largest", 'stroke="#a0408c" stroke-width="2" stroke-dasharray="6 3"'),
    ("load", "load", 'stroke="#009e73" stroke-width="2"'),
)

#: The picture's columns end at these places: names, statuses, sizes; then the bars.
_NAME, _STATUS, _SIZE, _LEFT, _RIGHT, _WIDE, _ROW = 4, 196, 242, 262, 872, 900, 16
#: Letters that fit in front of the statuses.
_LETTERS = 28

_MOST_TICKS = 12

STYLE = """
.fall { width: 100%; min-width: 54rem; height: auto; font: 10px sans-serif; display: block }
.fall text { fill: currentColor }
.key span { white-space: nowrap; margin-right: 1em }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
.key svg { width: 1.4em; height: .8em; margin-right: .3em }
"""


def key() -> str:
    """What the colours and lines mean."""
    colours = {**_COLOURS, "link layer sent again": _AGAIN, "lost": _LOST}
    marks = [f'<span><i style="background:{colour}"></i>{name}</span>' for name, colour in colours.items()]
    marks += [
        f'<span><svg viewBox="0 0 14 8"><line x1="0" x2="14" y1="4" y2="4" {line}/></svg>{name}</span>'
        for name, _, line in _MOMENTS
    ]
    return f'<p class="key">{"".join(marks)}</p>'


def waterfall(loaded: Loaded, events: LinkEvents) -> str:
    """One row a request: name, status, size and what it waited for; the totals below."""
    requests = loaded.seen.get("requests", [])
    if not requests:
        return ""
    moments = [at for _, moment, _ in _MOMENTS if (at := loaded.seen.get(moment)) is not None]
    end = max(*moments, *(request["end"] for request in requests), 1.0)
    scale = (_RIGHT - _LEFT) / end

    def x(at: float) -> float:
        return float(round(_LEFT + at * scale, 1))

    bottom = _ROW * (len(requests) + 1) + 4
    parts = [_heads()]
    tick = step_s(end / 1e3, _MOST_TICKS)
    for count in range(int(end / 1e3 / tick + 1e-9) + 1):
        at = x(count * tick * 1e3)
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{_ROW}" y2="{bottom}" stroke="#8884"/>'
            f'<text x="{at}" y="11" text-anchor="middle">{count * tick:g} s</text>'
        )
    for row, request in enumerate(requests):
        top = _ROW * (row + 1)
        label = _label(request["url"], loaded.seen["requests"][0]["url"])
        answer = request["status"] or "no answer"
        told = f"{request['url']}, {answer}, {request['protocol']}, {number(request['octets'])} octets"
        parts.append(_text(_NAME, top, label, title=told, anchor="start"))
        parts.append(_text(_STATUS, top, str(request["status"] or "failed"), bold=not 0 < request["status"] < 400))
        parts.append(_text(_SIZE, top, _size(request["octets"]) if request["octets"] else ""))
        for name, begin, stop in phases(request):
            parts.append(
                f'<rect x="{x(begin)}" y="{top + 2}" width="{max((stop - begin) * scale, 0.6):.1f}" height="8" '
                f'fill="{_COLOURS[name]}"><title>{escaped(label)}: {name} {stop - begin:.0f} ms</title></rect>'
            )
        # Under each request what the link did while it was under way.
        for times, colour in ((events.again, _AGAIN), (events.lost, _LOST)):
            path = "".join(f"M{x(at)} {top + 11}v4" for at in times if request["start"] <= at <= request["end"])
            if path:
                parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="1" fill="none"/>')
    for name, moment, line in _MOMENTS:
        if (at := loaded.seen.get(moment)) is not None:
            parts.append(
                f'<line x1="{x(at)}" x2="{x(at)}" y1="{_ROW}" y2="{bottom}" {line}><title>{name}: '
                f"{number(at / 1e3)} s</title></line>"
            )
    octets = sum(request["octets"] for request in requests)
    several = "request" if len(requests) == 1 else "requests"
    parts.append(_text(_NAME, bottom, f"{len(requests)} {several}", anchor="start", bold=True))
    parts.append(_text(_SIZE, bottom, _size(octets), bold=True))
    caption = f"{name_of(loaded)}: {len(requests)} {several}, {_size(octets)} kB, " + (
        f"loaded after {number(loaded.seen['load'] / 1e3)} s"
    )
    return (
        f"<h3>{escaped(caption)}</h3>"
        f'<div class="more" tabindex="0" role="region" aria-label="waterfall, {escaped(name_of(loaded))}">'
        f'<svg class="fall" viewBox="0 0 {_WIDE} {bottom + _ROW}" role="img" aria-label="{escaped(caption)}">'
        f"{''.join(parts)}</svg></div>"
    )


def _heads() -> str:
    return _text(_NAME, 0, "request", anchor="start") + _text(_STATUS, 0, "status") + _text(_SIZE, 0, "kB")


def _text(x: float, top: float, text: str, *, anchor: str = "end", title: str = "", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    told = f"<title>{escaped(title)}</title>" if title else ""
    return f'<text x="{x}" y="{top + 11}" text-anchor="{anchor}"{weight}>{escaped(text)}{told}</text>'


def _size(octets: int) -> str:
    """Octets in kB, without the unit."""
    return f"{octets / 1e3:,.1f}".replace(",", " ")


def _label(url: str, page: str) -> str:
    """The last part of the path, behind the host if that is another one than the page's; its end where it is long."""
    where = urlsplit(url)
    name = where.path.rsplit("/", 1)[-1] or where.path or "/"
    label = name if where.netloc == urlsplit(page).netloc else f"{where.netloc}/{name.lstrip('/')}"
    return label if len(label) <= _LETTERS else f"…{label[1 - _LETTERS :]}"
