"""Signals that end the program: as exceptions, so that namespaces and half-written folders are cleared away.

An exception can get lost: Python drops those that are raised inside a destructor or the callback of a weak reference
(every import has one), with nothing but a note on stderr. So as long as nobody is unwinding, the signal is raised
again, and there is no note.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

#: How often is looked whether the exception is on its way.
_AGAIN_S = 0.25
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: The signal that is being obeyed.
_ended_by: list[int] = []


def install() -> None:
    """Lets SIGINT, SIGTERM and SIGHUP raise in the main thread, each unless it is ignored (as under `nohup`)."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _lost


def _lost(what: sys.UnraisableHookArgs) -> None:
    """Says what Python has dropped, but for a signal's exception."""
    if not (_ended_by and isinstance(what.exc_value, SystemExit | KeyboardInterrupt)):
        sys.__unraisablehook__(what)


def done() -> None:
    """Nothing is left to be cleared away: from here on a signal just ends the process."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for number in _ENDING:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def obeyed() -> None:
    """Ctrl-C was meant for less than the program, and that has ended: it is not raised again."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    _ended_by.clear()


def _end(number: int, _: FrameType | None) -> NoReturn:
    _ended_by.append(number)
    signal.signal(signal.SIGALRM, _look_again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
    _raise(number)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _look_again(_: int, __: FrameType | None) -> None:
    error = sys.exception()
    while error is not None:
        # Whoever handles it may be handling a failure of the clearing away as well.
        if isinstance(error, (SystemExit, KeyboardInterrupt)) or error.__class__.__name__ == "Interrupted":
            return
        error = error.__context__
    _raise(_ended_by[-1])
