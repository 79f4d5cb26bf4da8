"""What TCP did in a capture, ours or a foreign one: `analyze`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from airloom import tables
from airloom._core import analyze_capture
from airloom.errors import UsageError

#: Rows of the trace that are kept unless the caller says otherwise.
MOST_ROWS = 2_000_000


class Analysis:
    """What was found in a file."""

    def __init__(self, path: Path, report: dict[str, Any], trace: pl.DataFrame) -> None:
        """`report` is the document that `airloom analyze --json` prints; `trace` has a row for whatever happened."""
        self.path = path
        self.report = report
        self.trace = trace

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The connections as they began, in a capture once for each interface that saw them."""
        found: list[dict[str, Any]] = self.report["connections"]
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {len(self.connections)} connections)"


class CaptureAnalysis(Analysis):
    """What was found in a capture: its trace has a row per segment."""

    def busiest(self) -> tuple[int, int]:
        """Number and side (0 the client) of whoever sent most data. Raises `UsageError` if nobody sent any."""
        sent = [
            (side["unique_octets"], -connection["number"], -number)
            for connection in self.connections
            for number, side in enumerate(connection["sides"])
        ]
        octets, connection, side = max(sent, default=(0, 0, 0))
        if octets == 0:
            raise UsageError(f"{self.path}: no data of TCP in it")
        return -connection, -side


def analyze(path: Path | str, *, stall_s: float | None = None, rows: int = MOST_ROWS) -> CaptureAnalysis:
    """Reads a capture (pcap or pcapng, of Ethernet, raw IP, PPP, Linux's cooked links) and says what TCP did in it.

    A pause of a sender counts as a stall from `stall_s` seconds on, by default two round trips and 0.2 s at least. A
    file that is cut or corrupt is read up to there, and `report["unreadable"]` says why no further. The trace has at
    most `rows` rows: `connection`, `t_ns` since the first frame, `side` (0: sent by the client), `kind`, `seq` and
    `ack` in octets since the beginning, `len`, `window` in octets (null where the SYNs that say its scale were not
    captured), octets `in_flight`. Raises `UsageError` if it is no capture.
    """
    path = Path(path)
    if stall_s is not None and not stall_s > 0:
        raise UsageError(f"a stall lasts longer than 0 s, not {stall_s}")
    try:
        report, columns = analyze_capture(path, stall_s, rows)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return CaptureAnalysis(path, json.loads(report), tables.table(columns))
