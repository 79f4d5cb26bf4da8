"""The paper's figure 1: the row of hosts and links, drawn from a scenario as a run understood it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airloom.plot.figure import DATA, FAINT, LINES, LOST
from airloom.study import Data
from airloom.study.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What the paper calls the hosts of the scenario.
HOSTS = {
    "client": "client PC\n(notebook,\nWindows 98)",
    "mobile": "mobile station\ncontrol\nterminal",
    "base": "base station\ncontrol\nterminal",
    "server": "network\nserver host\n(Windows NT)",
}
#: Where they stand, in the units of the drawing.
PLACES = {"client": 0.0, "mobile": 2.2, "base": 12.4, "server": 14.6}
#: Columns between the stations: terminal adapters and telephones, then units, the ISDN simulator, terminal adapters.
TAP_MOBILE, TELEPHONE, UNIT, ISDN, TAP_BASE = 4.0, 5.1, 7.4, 9.0, 10.6


def path(scenario: dict[str, Any]) -> list[str]:
    """Hosts and links in a row, from the ends of the links."""
    row = ["client"]
    links = dict(scenario["links"])
    while links:
        name, link = next((n, k) for n, k in links.items() if row[-1] in k["between"])
        row += [name, next(host for host in link["between"] if host != row[-1])]
        del links[name]
    return row


def _circuits(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    bundle = scenario["links"]["bundle"]
    return [member["piafs"] for _ in range(bundle["copies"]) for member in bundle["members"]]


def unit_of_each(scenario: dict[str, Any]) -> list[int]:
    """The base station unit of each circuit."""
    return [circuit["environment"]["unit"] for circuit in _circuits(scenario)]


def rate_of_each(scenario: dict[str, Any]) -> list[str]:
    """The rate of each circuit, as text."""
    return [circuit["rate"] for circuit in _circuits(scenario)]


def _box(axes: Axes, x: float, y: float, text: str, size: tuple[float, float], **style: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = size
    look = {"facecolor": "white", "edgecolor": LOST, "linewidth": 1.0, "zorder": 2, **style}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.04", **look))
    axes.text(x, y, text, ha="center", va="center", fontsize=7, zorder=3)


def configuration(data: Data) -> Figure:
    """The system: what is simulated solid, what is in the path as time alone dashed."""
    scenario = data.run("shown").manifest["scenario"]
    units, rates = unit_of_each(scenario), rate_of_each(scenario)
    count = len(units)
    figure, axes = canvas(height=4.0)
    axes.set_axis_off()
    axes.set_xlim(-1.0, 15.6)
    axes.set_ylim(-1.3, count + 0.9)
    middle = (count - 1) / 2
    row = path(scenario)
    for left, link, right in zip(row[0::2], row[1::2], row[2::2], strict=False):
        if link != "bundle":
            axes.plot([PLACES[left], PLACES[right]], [middle, middle], color=LOST, linewidth=1.5, zorder=1)
            rate = scenario["links"][link]["rate"]
            rate = rate["downlink"] if isinstance(rate, dict) else rate
            said = f"Ethernet\n{rate}".replace("Mbit", " Mbit")
            axes.text((PLACES[left] + PLACES[right]) / 2, middle + 1.15, said, ha="center", fontsize=6.5)
    # Circuits of a unit stand beside each other.
    order = sorted(range(count), key=lambda n: (units[n], n))
    for place, n in enumerate(order):
        y = count - 1 - place
        colour = LINES[units[n] % len(LINES)]["color"]
        axes.plot([PLACES["mobile"], TAP_MOBILE], [middle, y], color=FAINT, linewidth=0.8, zorder=1)
        axes.plot([TAP_BASE, PLACES["base"]], [y, middle], color=FAINT, linewidth=0.8, zorder=1)
        axes.plot([TAP_MOBILE, TELEPHONE], [y, y], color=colour, zorder=1)
        axes.plot([TELEPHONE, UNIT], [y, y], color=colour, linestyle=":", zorder=1)
        axes.plot([UNIT, TAP_BASE], [y, y], color=colour, zorder=1)
        axes.text((TELEPHONE + UNIT) / 2, y + 0.12, f"circuit {n}", ha="center", fontsize=6)
        _box(axes, TAP_MOBILE, y, "TAP", (0.7, 0.5))
        _box(axes, TELEPHONE, y, "PS", (0.6, 0.5), edgecolor=colour)
        _box(axes, TAP_BASE, y, "TAP", (0.7, 0.5))
    for unit in sorted(set(units)):
        of_unit = [count - 1 - place for place, n in enumerate(order) if units[n] == unit]
        colour = LINES[unit % len(LINES)]["color"]
        tall = (1.0, max(of_unit) - min(of_unit) + 0.6)
        _box(axes, UNIT, sum(of_unit) / len(of_unit), f"unit {unit}", tall, edgecolor=colour)
    _box(axes, ISDN, middle, "ISDN\nsimulator", (1.1, count - 0.3), linestyle="--")
    for host, name in HOSTS.items():
        _box(axes, PLACES[host], middle, name, (1.6, 1.7), edgecolor=DATA)
    axes.text((PLACES["client"] + TELEPHONE) / 2, count + 0.2, "mobile station", ha="center", fontsize=8)
    axes.text((UNIT + PLACES["server"]) / 2, count + 0.2, "base station", ha="center", fontsize=8)
    each = " or ".join(sorted({rate.replace("kbit", " kbit") for rate in rates}))
    said = f"PPP Multilink over {count} PIAFS circuits of {each}"
    axes.text((TELEPHONE + UNIT) / 2, -1.1, said, ha="center", fontsize=8)
    return figure
