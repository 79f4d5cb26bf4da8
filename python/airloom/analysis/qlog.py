"""What QUIC did by an endpoint's own account: qlog of ours and of other programs, read by `analyze`."""

from __future__ import annotations

import json
from pathlib import Path

from airloom import tables
from airloom._core import analyze_qlog
from airloom.analysis.capture import MOST_ROWS, Analysis
from airloom.errors import UsageError


class QlogAnalysis(Analysis):
    """What was found in a qlog: its trace has a row per packet and change."""

    def busiest(self) -> int:
        """Number of the connection whose end sent most. Raises `UsageError` if nothing was sent."""
        sent = [(connection["sent"]["packets"], -connection["number"]) for connection in self.connections]
        packets, number = max(sent, default=(0, 0))
        if packets == 0:
            raise UsageError(f"{self.path}: no packet was sent in it")
        return -number


def is_qlog(path: Path) -> bool:
    """Does a file begin as a qlog does, with a JSON object or the mark of a JSON text sequence?

    A pipe is taken for a capture: what was looked at is gone from it.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as opened:
            return opened.read(64).lstrip(b"\x1e \t\r\n").startswith(b"{")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def analyze(path: Path | str, *, rows: int = MOST_ROWS) -> QlogAnalysis:
    """Reads a qlog, of version 0.3 or of today's draft: a JSON text sequence, lines, or one document with its traces.

    A file that is cut or corrupt is read up to there, and `report["unreadable"]` says why no further. The trace has at
    most `rows` rows: `connection`, `t_ns` since the first event, `kind` (`sent`, `received`, `acknowledged` with the
    largest number, `lost`, `dropped`, `recovery`), `space`, `number` and `len` of packets; `cwnd` and `in_flight` in
    octets and `rtt_ns` of recovery, where they changed; and the number of the `path`, where a connection has several.
    Raises `UsageError` if it is no qlog.
    """
    path = Path(path)
    try:
        report, columns = analyze_qlog(path, rows)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return QlogAnalysis(path, json.loads(report), tables.table(columns))
