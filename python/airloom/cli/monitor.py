"""`airloom monitor`: the frames of PHS circuits, beside what TCP did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import print_json, print_table, quoted, say
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.piafs import Frame, Segment

#: Rows of a table for reading, if the times were not limited.
_MOST = 200


def monitor(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a run with a capture.", autocompletion=names.runs)
    ],
    circuit: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which circuit, such as bundle.member.0. Default: the first.")
    ] = None,
    begin: Annotated[float, typer.Option("--from", metavar="S", help="Seconds from which on rows are printed.")] = 0.0,
    until: Annotated[float | None, typer.Option(metavar="S", help="Seconds up to which rows are printed.")] = None,
    as_json: common.Json = False,
) -> None:
    """Prints a row for each frame that left, and for each segment at points of hosts."""
    from airloom.piafs import read

    frames, segments = read(folder / "trace.pcapng")
    circuits = sorted({frame.circuit for frame in frames})
    if not circuits:
        raise UsageError(f"{quoted(folder)} has no PIAFS frames in its capture: record points such as *.piafs.*.tx")
    chosen = circuit or circuits[0]
    if chosen not in circuits:
        raise UsageError(f"no circuit {chosen!r}; valid: {', '.join(circuits)}")
    end = float("inf") if until is None else until
    rows: list[tuple[Frame | Segment, list[str]]] = []
    rows += [(f, _frame(f)) for f in frames if f.circuit == chosen and begin <= f.at_s < end]
    rows += [(s, _segment(s)) for s in segments if begin <= s.at_s < end]
    rows.sort(key=lambda row: row[0].at_s)
    if as_json:
        print_json([row._asdict() for row, _ in rows])
        return
    shown = rows if until is not None else rows[:_MOST]
    print_table(["time (s)", "way", "NUM", "REQ", "type", "ACK", "TCP"], [cells for _, cells in shown])
    errors = sum(f.is_error for f in frames if f.circuit == chosen)
    more = f", {len(rows) - len(shown)} more rows: --from and --until" if len(rows) > len(shown) else ""
    say(f"{chosen} of {', '.join(circuits)}; {errors} CRC errors in all{more}   next: airloom report {quoted(folder)}")


def _frame(frame: Frame) -> list[str]:
    """The monitor's columns; a frame that arrives with a wrong checksum shows nothing else there."""
    time, way = f"{frame.at_s:.3f}", frame.direction
    if frame.is_error:
        return [time, way, "", "", "CRC ERR", "", ""]
    acknowledged = f"{frame.flag} {frame.acknowledged:03}"
    return [time, way, f"{frame.number:03}", f"{frame.request:03}", "DATA", acknowledged, ""]


def _segment(segment: Segment) -> list[str]:
    said = f"{segment.source} > {segment.destination} seq {segment.sequence} ack {segment.acknowledgement}"
    return [f"{segment.at_s:.3f}", "", "", "", "", "", f"{said} len {segment.payload} at {segment.point}"]
