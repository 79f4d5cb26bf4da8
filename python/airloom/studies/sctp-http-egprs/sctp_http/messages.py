"""What mobile and server say to each other, from captures: a packet field by field, a page message by message."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from airloom import capture
from airloom.capture import Seen, chunks
from airloom.errors import UsageError
from airloom.plot.figure import DATA, FAINT
from airloom.plot.sequence_chart import Arrow, draw_sequence
from airloom.run import Run
from airloom.study import Data
from airloom.study.drawing import canvas

from .units import SCTP, TCP

#: Chunks of SCTP (RFC 9260, 3.2).
CHUNKS = {0: "DATA", 1: "INIT", 2: "INIT ACK", 3: "SACK", 7: "SHUTDOWN", 8: "SHUTDOWN ACK", 10: "COOKIE ECHO",
          11: "COOKIE ACK", 14: "SHUTDOWN COMPLETE"}  # fmt: skip


def exchange(run: Run) -> list[Seen]:
    """The packets of a run that lost none and recorded both ends, in the order they were sent."""
    if run.capture is None:
        raise UsageError(f"{run.folder} has no capture")
    return capture.exchange(run.capture)


def opening(run: Run) -> int:
    """Octets of the window that the mobile's first packet offers."""
    first = exchange(run)[0].packet
    if first.octets[9] == TCP:
        return int(struct.unpack_from(">H", first.payload, 14)[0])
    (_, _, content), *_ = chunks(first.payload)
    return int(struct.unpack_from(">I", content, 4)[0])


# ---- Fig. 3 --------------------------------------------------------------------------------------------------------


def arrows(run: Run) -> list[Arrow]:
    """Set-up, requests and responses of a page, an arrow for each; acknowledgements have none."""
    found: list[Arrow] = []
    under_way: dict[int, int] = {}
    octets: dict[int, int] = {}
    for seen in exchange(run):
        for stream, label, content in _contents(seen):
            if not content:
                found.append(Arrow(seen.sent_s, seen.came_s, seen.is_up, label))
                continue
            # What goes on in the same direction of the same stream belongs to the same message.
            n = under_way.get(stream, -1)
            if n >= 0 and found[n].is_right == seen.is_up:
                octets[n] += len(content)
                found[n] = found[n]._replace(came_s=max(found[n].came_s, seen.came_s))
            else:
                n = len(found)
                under_way[stream] = n
                octets[n] = len(content)
                found.append(Arrow(seen.sent_s, seen.came_s, seen.is_up, _request(content, label)))
    return [
        arrow._replace(label=f"{arrow.label}: {octets[n]:,} octets") if n in octets and not arrow.is_right else arrow
        for n, arrow in enumerate(found)
    ]


def _contents(seen: Seen) -> Iterator[tuple[int, str, bytes]]:
    """Stream, name and the application's octets of each part of a packet; no octets where it sets something up."""
    segment = seen.packet.payload
    if seen.packet.octets[9] == SCTP:
        for kind, _, content in chunks(segment):
            if kind == 0:
                _, stream, _ = struct.unpack_from(">IHH", content)
                yield stream, f"stream {stream}", content[12:]
            elif kind in (1, 2, 10, 11):
                yield -1, CHUNKS[kind], b""
    elif content := segment[4 * (segment[12] >> 4) :]:
        yield 0, "", content
    elif segment[13] & 2:
        yield -1, "SYN, ACK" if segment[13] & 16 else "SYN", b""


def _request(content: bytes, where: str) -> str:
    """`GET /3kB`, or that it is a response; with the stream if there are several."""
    said = content.split(b" HTTP")[0].decode("ascii") if content.startswith(b"GET") else "response"
    return f"{said}, {where}" if where else said


def fig_3(data: Data) -> Figure:
    """A page over TCP and over SCTP, on one scale of time."""
    data.at_default_only()
    figure, both = canvas(1, 2, height=5.6)
    for axes, (protocol, title) in zip(both, (("tcp", "TCP"), ("sctp", "SCTP, 3 streams")), strict=True):
        draw_sequence(axes, "mobile", "server", arrows(data.run(f"sequence-{protocol}")), title)
    bottom, top = (f(axes.get_ylim()[n] for axes in both) for n, f in enumerate((max, min)))
    for axes in both:
        axes.set_ylim(bottom, top)
    return figure


# ---- Fig. 1 --------------------------------------------------------------------------------------------------------

#: A row of a packet's picture: fields with their bits.
Row = list[tuple[str, int]]


def layout(packet: bytes) -> list[tuple[str, list[Row]]]:
    """The common header and the chunks of a packet, each with its rows of 32 bits."""
    source, port, tag, checksum = struct.unpack_from(">HHII", packet)
    header: list[Row] = [
        [(f"source port = {source}", 16), (f"destination port = {port}", 16)],
        [(f"verification tag = {tag:#010x}", 32)],
        [(f"checksum = {checksum:#010x}", 32)],
    ]
    found = [("common header", header)]
    for kind, flags, content in chunks(packet):
        name = CHUNKS.get(kind, f"chunk {kind}")
        first = [(f"type = {kind} ({name})", 8), (f"flags = {flags:#04x}", 8), (f"length = {len(content) + 4}", 16)]
        found.append((f"{name} chunk", [first, *_fields(kind, content)]))
    return found


def _fields(kind: int, content: bytes) -> list[Row]:
    if kind == 0:
        tsn, stream, message, payload = struct.unpack_from(">IHHI", content)
        return [
            [(f"TSN = {tsn}", 32)],
            [(f"stream identifier = {stream}", 16), (f"stream sequence number (SSN) = {message}", 16)],
            [(f"payload protocol identifier = {payload}", 32)],
            [(f"user data, {len(content) - 12:,} octets", 32)],
        ]
    if kind == 3:
        tsn, window, gaps, twice = struct.unpack_from(">IIHH", content)
        return [
            [(f"cumulative TSN acknowledged = {tsn}", 32)],
            [(f"advertised receiver window = {window}", 32)],
            [(f"gap blocks = {gaps}", 16), (f"duplicate TSNs = {twice}", 16)],
        ]
    return [[(f"{len(content)} octets", 32)]] if content else []


def fig_1(data: Data) -> Figure:
    """A packet of the server with a SACK and user data."""
    data.at_default_only()
    sent = [seen.packet.payload for seen in exchange(data.run("sequence-sctp")) if not seen.is_up]
    packet = max(sent, key=lambda octets: (len({kind for kind, *_ in chunks(octets)} & {0, 3}), -len(octets)))
    figure, axes = canvas(height=4.4)
    _draw_packet(axes, layout(packet))
    return figure


def _draw_packet(axes: Axes, parts: list[tuple[str, list[Row]]]) -> None:
    y = 0.0
    for name, rows in parts:
        top = y
        for row in rows:
            x = 0
            for text, bits in row:
                axes.add_patch(_box(x, y, bits))
                axes.text(x + bits / 2, y + 0.5, text, ha="center", va="center", fontsize=7 if bits > 8 else 6)
                x += bits
            y += 1
        axes.text(32.6, (top + y) / 2, name, ha="left", va="center", fontsize=8)
        axes.plot([32.3, 32.3], [top + 0.08, y - 0.08], color=DATA, linewidth=1.6)
        y += 0.25
    for bit in (0, 8, 16, 24, 32):
        axes.text(bit, -0.12, f"{bit}", ha="center", va="bottom", fontsize=7)
    axes.set_xlim(-0.5, 40)
    axes.set_ylim(y, -0.9)
    axes.set_axis_off()


def _box(x: float, y: float, bits: int) -> Rectangle:
    return Rectangle((x, y), bits, 1, facecolor="white", edgecolor=FAINT, linewidth=0.8)
