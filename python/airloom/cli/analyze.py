"""`airloom analyze`: what TCP did in a capture, and QUIC by a qlog."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, say_error, waiting
from airloom.errors import UsageError
from airloom.places import check_file

if TYPE_CHECKING:
    import polars as pl

    from airloom.analysis.capture import CaptureAnalysis

#: Draws a connection (by default one that is chosen), so wide in millimetres, into a file.
_Draw = Callable[[Any, int | None, Path, float | None], None]

#: Rows of stalls that are printed; --json has all.
_MOST_STALLS = 20

#: What is printed where the capture cannot tell.
_UNKNOWN = "-"

#: What a capture shows, by where it was made on the way of the data.
_SEEN_FROM = {
    "receiver": "captured near the receiver: causes, round trips and what was in flight do not show there",
    "between": "captured between the ends: what was lost before is not in it, and round trips are those from there on",
    "one-direction": "the other direction was not captured: acknowledgements, windows, causes and times do not show",
    "unknown": "where it was captured does not show (no beginning, or both ends are near): read as at the sender",
}

_ENDINGS = {".csv", ".parquet"}
_FIGURES = {".svg", ".pdf", ".png"}

_WHY = {
    "timeout": "timer: nothing was acknowledged, sent again",
    "receiver-window": "the receiver's window was full",
    "no-acknowledgement": "what was in flight was not acknowledged",
    "application": "the program had nothing to send",
    "unseen": "nothing came; why is not seen at this end",
    "end-of-capture": "not acknowledged until the capture ended",
}


def analyze(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capture (pcap, pcapng), or a qlog of QUIC.")],
    connection: Annotated[
        int | None, typer.Option(metavar="N", help="The connection to look at closely. Default: that with most data.")
    ] = None,
    stall: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="How long a pause has to be. Default: two round trips, 0.2 at least."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw its sequence trace (.svg, .pdf or .png).")
    ] = None,
    width_mm: common.Width = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write a row for each segment or packet (.csv or .parquet).")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Prints the connections, and the stalls of the one that is looked at closely."""
    common.check_width(width_mm, "--plot", is_drawn=plot is not None)
    _refuse(plot, _FIGURES, file)
    _refuse(trace, _ENDINGS, file)
    read, show, draw = _by_kind(file, stall)
    with interruptible():
        found = waiting(f"reading {file.name}", read)
    if connection is not None and not 0 <= connection < len(found.connections):
        raise UsageError(f"there is no connection {connection}: {quoted(file)} has {len(found.connections)}")
    if as_json:
        print_json(found.report)
    else:
        show(found, connection)
    if why := found.report["unreadable"]:
        say_error(f"{quoted(file)}: {why}; all before it is in the numbers")
    if trace is not None:
        write_trace(found.trace, trace)
    if plot is not None:
        draw(found, connection, plot, width_mm)


def _by_kind(file: Path, stall: float | None) -> tuple[Callable[[], Any], Callable[[Any, int | None], None], _Draw]:
    """How a file is read, printed and drawn: either kind has connections, a report and a trace."""
    from airloom.analysis import capture, qlog

    if file.is_dir():
        there = sorted(path for path in file.iterdir() if path.suffix in (".pcapng", ".pcap", ".sqlog"))
        hint = f": {quoted(there[0])} is in it" if there else ""
        raise UsageError(f"{quoted(file)} is a directory, and no capture or qlog{hint}")
    if not qlog.is_qlog(file):
        return partial(capture.analyze, file, stall_s=stall), _print, _draw
    if stall is not None:
        raise UsageError("--stall: a qlog says what was sent, and no pauses")
    from airloom.cli import qlogs

    return partial(qlog.analyze, file), qlogs.show, qlogs.draw


def _refuse(path: Path | None, endings: set[str], file: Path) -> None:
    if path is None:
        return
    if path.suffix not in endings:
        raise UsageError(f"{path}: its name has to end in {', '.join(sorted(endings))}")
    check_file(path, file)


def _chosen(found: CaptureAnalysis, connection: int | None) -> tuple[int, int]:
    if connection is None:
        return found.busiest()
    sides = found.connections[connection]["sides"]
    return connection, max((0, 1), key=lambda side: sides[side]["unique_octets"])


def _print(found: CaptureAnalysis, connection: int | None) -> None:
    report = found.report
    headings = ["no", "seen at", "client", "server", "sends", "octets", "kbit/s", "sent again", "timeouts"]
    headings += ["RTT (ms)", "stalls", "stalled (s)"]
    print_table(headings, [row for each in found.connections for row in _rows(each)])
    say(f"{report['frames']} frames, {report['segments']} segments of TCP in {report['duration_s']:.3f} s")
    for link in report["unknown_links"]:
        say(f"link type {link} is not known: its frames were not looked into")
    for dropped in report["dropped"]:
        say(f"{dropped['segments']} segments ({dropped['octets']} octets) were dropped at {dropped['interface']}")
    for key, what in (
        ("fragments", "fragments of TCP, not looked into"),
        ("left_out", "segments of more connections than are told apart, left out"),
        ("rows_left_out", "segments have no row in the trace"),
    ):
        if report[key]:
            say(f"{report[key]} {what}")
    if any(side["unique_octets"] for each in found.connections for side in each["sides"]):
        _print_closely(found, *_chosen(found, connection))


def _rows(connection: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, side in zip(("client", "server"), connection["sides"], strict=True):
        if side["data_segments"] == 0 and name == "client" and connection["sides"][1]["data_segments"] > 0:
            continue
        if side["data_segments"] == 0 and name == "server":
            continue
        rate, median = side["rate_bit_s"], side["rtt"]["median_s"]
        rows.append(
            [
                str(connection["number"]),
                connection["interface"],
                connection["client"],
                connection["server"],
                name,
                str(side["unique_octets"]),
                _UNKNOWN if rate is None else f"{rate / 1e3:.1f}",
                str(side["retransmissions"]),
                _known(side["timeouts"]),
                _UNKNOWN if median is None else f"{median * 1e3:.1f}",
                str(side["stall_count"]) if _is_timed(side) else _UNKNOWN,
                f"{side['stalled_s']:.3f}" if _is_timed(side) else _UNKNOWN,
            ]
        )
    return rows


def _known(count: int | None) -> str:
    return _UNKNOWN if count is None else str(count)


def _is_timed(side: dict[str, Any]) -> bool:
    """Do pauses say anything? In one direction alone nobody knows what the sender waited for."""
    return bool(side["seen_from"] != "one-direction")


def _print_closely(found: CaptureAnalysis, number: int, which: int) -> None:
    connection = found.connections[number]
    side = connection["sides"][which]
    say(f"connection {number}, what the {('client', 'server')[which]} sends ({connection['end']}):")
    for fact in _facts(connection, side):
        say(f"  {fact}")
    stalls = side["stalls"]
    if not stalls:
        return
    # The less like the flow's rhythm a pause is, the further up it stands.
    longest = sorted(stalls, key=lambda stall: stall["begin_s"] - stall["end_s"])[:_MOST_STALLS]
    rows = [
        [
            f"{stall['begin_s']:.3f}",
            f"{stall['end_s']:.3f}",
            f"{stall['end_s'] - stall['begin_s']:.3f}",
            str(stall["in_flight"]),
            _WHY[stall["why"]],
        ]
        for stall in longest
    ]
    print_table(["stalled from (s)", "to (s)", "for (s)", "in flight (octets)", "why"], rows)
    if side["stall_count"] > len(rows):
        say(f"the {len(rows)} longest of {side['stall_count']} stalls; --json has more")


def _facts(connection: dict[str, Any], side: dict[str, Any]) -> list[str]:
    """What is known of one end's data, and what is not where the capture was made."""
    facts = [_SEEN_FROM[side["seen_from"]]] if side["seen_from"] in _SEEN_FROM else []
    rtt, window, rhythm = side["rtt"], side["window"], side["rhythm"]
    again = f"sent again: {side['retransmissions']}"
    if side["timer_retransmissions"] is not None:
        again += (
            f", {side['fast_retransmissions']} after duplicate acknowledgements "
            f"({side['fast_recoveries']} recoveries), {side['timer_retransmissions']} by a timer"
        )
    if side["needless_retransmissions"] is not None:
        again += f"; {side['needless_retransmissions']} needlessly"
    facts.append(f"{again}; {side['out_of_order']} out of order")
    if side["duplicate_acks"] is not None:
        facts.append(
            f"duplicate acknowledgements: {side['duplicate_acks']}, with selective blocks {side['selective_acks']}, "
            f"reporting a duplicate {side['duplicates_reported']}"
        )
    flight = []
    if side["most_in_flight"] is not None:
        flight.append(f"in flight at most {side['most_in_flight']} octets")
    if side["window_full"] is not None:
        flight.append(f"window full {side['window_full']} times")
    if side["zero_windows"] is not None:
        flight.append(f"window closed {side['zero_windows']} times")
    if window:
        flight.append(f"offered {window[0]} to {window[1]} octets")
    if flight:
        facts.append("; ".join(flight))
    if rtt["count"]:
        times = [f"{rtt[key] * 1e3:.1f}" for key in ("min_s", "median_s", "p95_s", "max_s")]
        facts.append(f"round trips (ms): least {times[0]}, median {times[1]}, p95 {times[2]}, longest {times[3]}")
    elif (round_trip := connection["handshake_round_trip_s"]) is not None:
        facts.append(f"round trip of the handshake: {round_trip * 1e3:.1f} ms")
    if rhythm:
        facts.append(f"{rhythm['count']} pauses of about {rhythm['median_s']:.2f} s are its rhythm, and no stalls")
    return facts


def write_trace(trace: pl.DataFrame, path: Path) -> None:
    """Writes a trace in the form that the file's name says. Raises `UsageError` if it cannot be written."""
    try:
        if path.suffix == ".csv":
            trace.write_csv(path)
        else:
            trace.write_parquet(path)
    except OSError as error:
        raise UsageError(f"{quoted(path)}: {error.strerror or error}") from None
    say(f"wrote {quoted(path)}")


def _draw(found: CaptureAnalysis, connection: int | None, path: Path, width_mm: float | None) -> None:
    from airloom import plot

    number, side = _chosen(found, connection)
    stalls = found.connections[number]["sides"][side]["stalls"]
    figure = plot.sequence_trace(found.trace, number, side, stalls, width_mm)
    plot.save_as(figure, path)
    say(f"wrote {quoted(path)}")
