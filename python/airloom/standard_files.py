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
            # Gets the lowest number that is free. Processes that are started have it, too, as they would another.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def give_missing() -> None:
    """`sys.stdin` and its kin, for a program of our own, are files and never `None`."""
    open_missing()
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
