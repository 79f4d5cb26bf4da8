"""Captures as tshark reads them, a dissector that others wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import needs

#: Filters what tshark complains of.
BROKEN = "_ws.malformed || _ws.expert.severity == error"


def frames(capture: Path | None, shown: str = "", *options: str) -> list[str]:
    """What tshark prints of the frames that the filter `shown` takes, of all without one: a line each."""
    assert capture is not None, "no capture was recorded"
    command = [needs("tshark"), "-r", str(capture), *options, *(["-Y", shown] if shown else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fields(capture: Path | None, *names: str, shown: str = "", options: tuple[str, ...] = ()) -> list[list[str]]:
    """The values of some fields of each of these frames; empty where a frame has no such field."""
    wanted = [word for name in names for word in ("-e", name)]
    rows = [line.split("\t") for line in frames(capture, shown, *options, "-T", "fields", *wanted)]
    return [row + [""] * (len(names) - len(row)) for row in rows]
