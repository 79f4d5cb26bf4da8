"""The network of a scenario: hosts, what runs on them, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.plot.figure import DATA, FAINT, RESENT, Drawing, inches, style

#: Bearers that are wires to whoever looks at a network; all others are radio, or made of it.
_WIRES = ("wireline", "trace")

#: Inches from one host to the next, along the path and across it.
_ALONG, _ACROSS = 2.6, 1.2

#: Links are looked at from the side of those who ask for something.
_DELAYS = ("delay", "radio_delay", "core_delay")


class _Link(NamedTuple):
    name: str
    ends: tuple[str, str]
    #: What it is, line by line.
    lines: list[str]
    is_radio: bool


def topology(understood: Mapping[str, Any], width_mm: float | None = None) -> Figure:
    """Draws a scenario as understood (`scenario.understood`, or `run.manifest["scenario"]`).

    Hosts say their applications and proxies, links their bearer, rate and delay. A host that is there several times is
    drawn once. `width_mm` is the width in print; where that is too narrow for its path, the path leads down.
    """
    links = [link for name, keys in understood["links"].items() for link in _links(name, keys)]
    hosts = {_base(name): keys for name, keys in understood["hosts"].items()}
    places = _places(list(hosts), links)
    needed = 1.6 + _ALONG * max(x for x, _ in places.values())
    is_down = width_mm is not None and inches(width_mm) < 0.9 * needed
    if is_down:
        places = {name: (y, x) for name, (x, y) in places.items()}
    columns = 1 + max(x for x, _ in places.values())
    rows = 1 + max(y for _, y in places.values())
    with style(width_mm):
        width = needed if width_mm is None else inches(width_mm)
        figure = Drawing(figsize=(width, 0.5 + _ACROSS * rows), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        for link in links:
            share = {end: sum(end in other.ends for other in links) for end in link.ends}
            _draw_link(axes, link, places, _name_at(link, share) if is_down else 0.5)
        for name, keys in hosts.items():
            _draw_host(axes, name, keys, places[name], _copies(understood["hosts"], name))
        axes.set_xlim(-0.42, columns - 0.58)
        axes.set_ylim(rows - 0.45, -0.55)
    return figure


def _base(name: str) -> str:
    """`mobile[3]` is one of the hosts called `mobile`."""
    return name.split("[")[0]


def _copies(hosts: Mapping[str, Any], name: str) -> int:
    there = sum(_base(other) == name for other in hosts)
    count = hosts.get(name, {}).get("count")
    return int(count) if isinstance(count, int) else there


def _links(name: str, keys: Mapping[str, Any]) -> list[_Link]:
    """A link, once for each kind of host that it joins with its far end."""
    *ends, far = (_base(host) for host in keys["between"])
    bearer = str(keys["bearer"])
    members = keys.get("members") or []
    if members:
        inner = next(iter(members[0])) if isinstance(members[0], Mapping) else str(members[0])
        count = len(members) * int(keys.get("copies") or 1)
        bearer = f"{bearer}: {count} {inner}"
    lines = [f"{name}: {bearer}"]
    if keys.get("rate"):
        lines.append(_both(keys["rate"]))
    if delays := [_both(keys[key]) for key in _DELAYS if keys.get(key) and _both(keys[key])]:
        lines.append(f"{' + '.join(delays)} delay")
    is_radio = keys["bearer"] not in _WIRES
    return [_Link(name, (near, far), lines, is_radio) for near in dict.fromkeys(ends) if near != far]


def _both(value: Any) -> str:
    """Of both directions, where they differ: down and up; empty if none is set."""
    if not isinstance(value, Mapping):
        return str(value)
    down, up = value.get("downlink"), value.get("uplink")
    if down == up:
        return "" if down is None else str(down)
    return f"{down} down, {up} up"


def _places(hosts: list[str], links: list[_Link]) -> dict[str, tuple[int, int]]:
    """A column and row for each host: as many links from the first end as the column says."""
    neighbours: dict[str, list[str]] = {name: [] for name in hosts}
    for link in links:
        for one, other in (link.ends, link.ends[::-1]):
            neighbours[one].append(other)
    near = {link.ends[0] for link in links} - {link.ends[1] for link in links}
    found: dict[str, tuple[int, int]] = {}
    used: dict[int, int] = {}
    # From the first host at a near end; what hangs together with nothing begins anew.
    for start in sorted(hosts, key=lambda name: (name not in near, len(neighbours[name]) > 1, hosts.index(name))):
        waiting = [(start, 0)]
        while waiting:
            name, column = waiting.pop(0)
            if name in found:
                continue
            found[name] = (column, used.get(column, 0))
            used[column] = found[name][1] + 1
            # Other hosts at near ends stand beside the first one.
            waiting += [(other, max(0, column - 1) if other in near else column + 1) for other in neighbours[name]]
    return found


def _name_at(link: _Link, links: Mapping[str, int]) -> float:
    """How far along a link its name stands, where little room is: nearer to the end that has fewer `links`."""
    near, far = (links[end] for end in link.ends)
    return 0.5 if near == far else 0.3 if near < far else 0.7


def _draw_link(axes: Axes, link: _Link, places: Mapping[str, tuple[int, int]], name_at: float) -> None:
    (x1, y1), (x2, y2) = (places[end] for end in link.ends)
    look = {"color": DATA, "linestyle": (0, (4, 2))} if link.is_radio else {"color": FAINT, "linestyle": "-"}
    axes.plot([x1, x2], [y1, y2], linewidth=2.0, zorder=1, **look)
    at = (x1 + name_at * (x2 - x1), y1 + name_at * (y2 - y1))
    first, *others = link.lines
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}
    axes.annotate(first, at, (0, 4), textcoords="offset points", ha="center", va="bottom", fontsize="small", bbox=box)
    if others:
        text = "\n".join(others)
        axes.annotate(
            text, at, (0, -4), textcoords="offset points", ha="center", va="top", fontsize="x-small", bbox=box
        )


def _real(keys: Mapping[str, Any]) -> list[str]:
    """A host that has an application too is simulated in virtual time."""
    return [] if not keys.get("real") else ["or real programs"] if keys.get("app") else ["real programs"]


def _draw_host(axes: Axes, name: str, keys: Mapping[str, Any], place: tuple[int, int], copies: int) -> None:
    """A box: its name, and below it what runs there."""
    proxy = list(keys.get("proxy") or {})
    apps = [next(iter(app)) for app in keys.get("app") or []]
    lines = [f"{name} ({copies})" if copies > 1 else name]
    lines += [
        *dict.fromkeys(apps),
        *(f"proxy: {one}" for one in proxy),
        *_real(keys),
    ]
    edge = RESENT if proxy else "black"
    box = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": edge, "linewidth": 1.2}
    axes.annotate("\n".join(lines), place, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
