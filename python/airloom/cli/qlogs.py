"""What `airloom analyze` says of a qlog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.cli.terminal import print_table, quoted, say

if TYPE_CHECKING:
    from airloom.analysis.qlog import QlogAnalysis

_UNKNOWN = "-"


def draw(found: QlogAnalysis, connection: int | None, plot: Path, width_mm: float | None) -> None:
    """Draws a connection, by default the one with the most packets."""
    from airloom import plot as plots

    chosen = found.busiest() if connection is None else connection
    plots.save_as(plots.quic_trace(found.trace, chosen, width_mm), plot)
    say(f"wrote {quoted(plot)}")


def show(found: QlogAnalysis, connection: int | None) -> None:
    """Prints the connections, and one more closely."""
    report = found.report
    headings = ["no", "connection", "said by", "sent", "octets", "received", "octets", "lost", "RTT (ms)"]
    headings += ["window (octets)", "handshake (ms)"]
    print_table(headings, [_row(each) for each in found.connections])
    schemas = ", ".join(report["schemas"])
    form = f"{report['form']} ({schemas})" if schemas else report["form"]
    say(f"{form}: {report['events']} events in {report['duration_s']:.3f} s")
    for key, what in (
        ("other_events", "events of other kinds, not looked into"),
        ("left_out", "events of more connections than are told apart, left out"),
        ("rows_left_out", "events have no row in the trace"),
    ):
        if report[key]:
            say(f"{report[key]} {what}")
    if found.connections:
        chosen = found.connections[_chosen(found, connection)]
        say(f"connection {chosen['number']}:")
        for fact in _facts(chosen):
            say(f"  {fact}")


def _chosen(found: QlogAnalysis, connection: int | None) -> int:
    if connection is not None:
        return connection
    return max(range(len(found.connections)), key=lambda n: found.connections[n]["sent"]["packets"])


def _row(connection: dict[str, Any]) -> list[str]:
    window = connection["cwnd"]
    said_by = connection["vantage"] if not connection["host"] else f"{connection['host']} ({connection['vantage']})"
    return [
        str(connection["number"]),
        connection["group"] or _UNKNOWN,
        said_by,
        str(connection["sent"]["packets"]),
        str(connection["sent"]["octets"]),
        str(connection["received"]["packets"]),
        str(connection["received"]["octets"]),
        str(connection["lost"]),
        _ms(connection["rtt"]["median_s"]),
        _UNKNOWN if window is None else f"{window[1]} to {window[2]}",
        _ms(connection["handshake_s"]),
    ]


def _ms(seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else f"{seconds * 1e3:.1f}"


def _facts(connection: dict[str, Any]) -> list[str]:
    rtt, window = connection["rtt"], connection["cwnd"]
    facts = []
    if rtt["count"]:
        times = [f"{rtt[key] * 1e3:.1f}" for key in ("min_s", "median_s", "p95_s", "max_s")]
        facts.append(f"round trips (ms): least {times[0]}, median {times[1]}, p95 {times[2]}, longest {times[3]}")
    if window is not None:
        facts.append(f"congestion window (octets): {window[0]} at first, {window[3]} at the end")
    if connection["most_in_flight"] is not None:
        facts.append(f"in flight at most {connection['most_in_flight']} octets")
    if connection["most_pto"]:
        facts.append(f"probe timeouts in a row: {connection['most_pto']} at most")
    if connection["dropped"]:
        facts.append(f"thrown away unread: {connection['dropped']} packets")
    facts.append(f"ended: {connection['closed'] or 'not said'}")
    return facts
