"""A process may be started without stdin, stdout or stderr (`<&-` in a shell)."""

from __future__ import annotations

import os
import sys


def open_missing() -> None:
    """Opens those that are closed, on nothing: else the next file gets their number, and is written to as such."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
