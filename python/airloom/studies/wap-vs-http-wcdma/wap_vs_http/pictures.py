"""The paper's drawings that are no plots: the stacks (Figs. 1 and 8), the test bed (Fig. 2), a deck (Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.capture import packets
from airloom.plot.figure import DATA, FAINT
from airloom.run import Run
from airloom.study import Data, StudyFigure
from airloom.study.drawing import canvas

from .decks import deck
from .encoding import encoded

_OURS, _PAPER = "#dceaf5", "#ffffff"


def _box(axes: Axes, x: float, y: float, width: float, height: float, text: str, *, is_ours: bool = True) -> None:
    """A box with a text in it; dashed where nothing of ours stands for it."""
    from matplotlib.patches import Rectangle

    face, dashes = (_OURS, "-") if is_ours else (_PAPER, (0, (4, 3)))
    axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=DATA, linewidth=1.0, linestyle=dashes))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8)


def _blank(axes: Axes, width: float, height: float) -> None:
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_axis_off()


# ---- Fig. 1 --------------------------------------------------------------------------------------------------------


def response_octets(run: Run, point: str) -> dict[str, int]:
    """Octets of each layer of the datagram that brings the 1 kB of a page that begins with its own set-up."""
    for at, _, datagram, _ in packets(run.folder / "trace.pcapng"):
        if at != point or len(datagram) < 500:
            continue
        ip = (datagram[0] & 15) * 4
        if datagram[9] == 17:
            wtp = 3  # a result in one packet has no items
            return {"content": 1000, "WSP": len(datagram) - ip - 8 - wtp - 1000, "WTP": wtp, "UDP": 8, "IP": ip}
        tcp = (datagram[ip + 12] >> 4) * 4
        return {"content": 1000, "HTTP": len(datagram) - ip - tcp - 1000, "TCP": tcp, "IP": ip}
    raise LookupError(point)


def fig_1(data: Data) -> Figure:
    """Two stacks side by side, with the octets of the response of 1 kB in each layer."""
    figure, axes = canvas(height=3.6)
    _blank(axes, 10, 7.0)
    axes.set_ylim(-0.1, 7.0)
    by_wap = response_octets(data.run("sequence-wap"), "mobile.radio.ip")
    by_http = response_octets(data.run("sequence-http"), "mobile.radio.ip")
    axes.text(2.4, 6.85, "WAP", ha="center", va="top", fontweight="bold")
    axes.text(7.6, 6.85, "Internet protocol", ha="center", va="top", fontweight="bold")
    left = [
        ("application: WAE (WML)", by_wap["content"], True),
        ("session: WSP", by_wap["WSP"], True),
        ("transaction: WTP", by_wap["WTP"], True),
        ("security: WTLS", None, False),
        ("datagram: WDP (UDP over IP)", by_wap["UDP"] + by_wap["IP"], True),
    ]
    right = [
        ("HTML, XHTML, pictures", by_http["content"], True),
        ("HTTP", by_http["HTTP"], True),
        ("", None, False),
        ("TLS", None, False),
        ("TCP over IP", by_http["TCP"] + by_http["IP"], True),
    ]
    for x, stack in ((0.2, left), (5.4, right)):
        for n, (name, octets, is_ours) in enumerate(stack):
            text = name if octets is None else f"{name}: {octets} octets"
            if text:
                _box(axes, x, 5.2 - n * 1.05, 4.4, 0.9, text, is_ours=is_ours)
    _box(axes, 0.2, 0.0, 9.6, 0.85, "bearer: umts-dch (RLC over dedicated channels)")
    return figure


# ---- Fig. 2 --------------------------------------------------------------------------------------------------------


def fig_2(data: Data) -> Figure:
    """The test bed: hosts and links of the scenario, as its run understood it."""
    scenario = data.run("capture-wap", size=10, downlink=384, fer=5).manifest["scenario"]
    radio, lan = scenario["links"]["radio"], scenario["links"]["lan"]
    figure, axes = canvas(height=2.7)
    _blank(axes, 12.4, 3.4)
    browser = scenario["hosts"]["mobile"]["app"][0]["wap-browser"]
    groups = browser["wtp"]["maximum_group"]
    _box(axes, 0.1, 1.0, 2.7, 1.6, f"WAP client\nwap-browser\nWSP, WTP; groups of\n{groups} at most")
    _box(axes, 4.8, 1.0, 2.7, 1.6, "WAP gateway\nwap-gateway\nWML, WSP, WTP |\nHTTP, TCP")
    _box(axes, 9.5, 1.0, 2.7, 1.6, "origin server\nhttp-server\nHTTP/1.1")
    for x, end in ((2.8, 4.8), (7.5, 9.5)):
        axes.plot([x, end], [1.8, 1.8], color=FAINT, linewidth=2.0)
    down, up = radio["rate"]["downlink"], radio["rate"]["uplink"]
    axes.text(3.8, 2.75, f"{radio['bearer']}\n{down} down\n{up} up", ha="center", va="bottom", fontsize=7.5)
    axes.text(8.5, 2.75, f"wire\n{lan['rate']['downlink']}", ha="center", va="bottom", fontsize=7.5)
    lost = f"{float(_probability(radio['loss']['downlink'])):.0%} of FEC frames\nin error, RLC repeats"
    axes.text(3.8, 0.75, lost, ha="center", va="top", fontsize=7.5)
    return figure


def _probability(loss: Any) -> Any:
    """The probability in a scenario's table of losses, however it is written out."""
    while isinstance(loss, dict):
        loss = loss.get("loss", next(iter(loss.values())))
    return loss


# ---- Fig. 3 --------------------------------------------------------------------------------------------------------


def fig_3(_: Data) -> Figure:
    """A deck of ours as text, and how its first octets read in WBXML."""
    figure, (left, right) = canvas(1, 2, height=3.0, gridspec_kw={"width_ratios": [1.6, 1]})
    lines = deck(1400).decode().splitlines()
    shown = [*lines[:14], f"   ... {len(lines) - 18} lines more ...", *lines[-4:]]
    tokens = encoded(1400)
    rows = [tokens[at : at + 8] for at in range(0, 8 * 19, 8)]
    dump = [f"{row.hex(' '):<24}  {''.join(chr(o) if 32 <= o < 127 else '.' for o in row)}" for row in rows]
    for axes, title, text in (
        (left, f"{len(deck(1400))} octets of WML", shown),
        (right, f"the first of {len(tokens)} octets of WBXML", dump),
    ):
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=9)
        letters = {"family": "DejaVu Sans Mono", "fontsize": 6.3, "linespacing": 1.5}
        axes.text(0, 1, "\n".join(text), va="top", transform=axes.transAxes, **letters)
    return figure


# ---- Fig. 8 --------------------------------------------------------------------------------------------------------


def fig_8(data: Data) -> Figure:
    """The proposed architecture: the layers at its three places, as the scenario of the sweep `proposed` has them."""
    scenario = data.default.results("proposed").manifest["scenario"]
    client = scenario["hosts"]["mobile"]
    profile = client["transport"]["tcp"]["profile"] if "tcp" in client["transport"] else "w-tcp"
    figure, axes = canvas(height=3.3)
    _blank(axes, 12.4, 5.7)
    stacks: Sequence[tuple[float, str, list[str]]] = (
        (0.1, "client", ["XHTML", "HTTP", "TLS", f"W-TCP ({profile})", "IP", "W-CDMA"]),
        (4.9, "proxy (http-cache, CONNECT)", ["", "", "tunnel", f"W-TCP ({profile}) | TCP", "IP", "W-CDMA | wire"]),
        (9.7, "origin server", ["XHTML", "HTTP", "TLS", "TCP", "IP", "wire"]),
    )
    for x, name, layers in stacks:
        axes.text(x + 1.3, 5.55, name, ha="center", va="top", fontweight="bold", fontsize=8.5)
        for n, layer in enumerate(layers):
            if layer:
                _box(axes, x, 4.2 - n * 0.83, 2.6, 0.75, layer)
    for x in (2.7, 7.5):
        axes.annotate("", (x + 2.2, 0.4), (x, 0.4), arrowprops={"arrowstyle": "<->", "color": FAINT})
    height, arc = 4.2 - 2 * 0.83 + 0.6, {"connectionstyle": "arc3,rad=-0.25"}
    axes.annotate("", (9.7, height), (2.7, height), arrowprops={"arrowstyle": "<->", "color": DATA, **arc})
    axes.text(6.2, 4.6, "TLS from end to end", ha="center", fontsize=8, color=DATA)
    return figure


BEFORE = {
    "fig-1": StudyFigure(
        "Fig. 1. WAP protocol overview and its comparison to the Internet protocol",
        fig_1,
        "The layers as they run here. The octets are those of the one datagram that brings 1 kB, read from the "
        "captures behind Fig. 5; WSP's and HTTP's are the headers. Dashed: not part of these runs.",
    ),
    "fig-2": StudyFigure(
        "Fig. 2. The WAP 1.1 test-bed system",
        fig_2,
        "The hosts and links of the runs behind Fig. 6, from the scenario as the run understood it. The paper's "
        "client ran on Windows 98, its gateway on Solaris 2.6, its server was Apache 1.3.9.",
    ),
    "fig-3": StudyFigure(
        "Fig. 3. Example of WML content",
        fig_3,
        "Our deck of 1400 octets: up to the line that begins with 'cellular phones' it is the paper's text; the paper "
        "omits the rest, and ours goes on with words of a fixed order.",
    ),
}

AFTER = {
    "fig-8": StudyFigure(
        "Fig. 8. Proposed mobile Internet architecture for 3G wireless networks",
        fig_8,
        "As it is run here (claim U37): the proxy terminates wireless TCP, and TLS goes through it in a tunnel.",
    ),
}
