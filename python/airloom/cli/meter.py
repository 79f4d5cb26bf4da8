"""The live meter of `--watch`: in the terminal's title, else a line a second on stderr; never on stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airloom.cli.terminal import emit
from airloom.emulation import Meter

_SECOND = 1_000_000_000


@contextmanager
def meter(label: str, wanted: bool) -> Iterator[Meter | None]:
    """The function to call with readings, if a meter is wanted; afterwards the title is as it was."""
    if not wanted:
        yield None
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _every(_SECOND, lambda text: emit(f"airloom: {label}: {text}", error=True))
        return
    # Terminals keep a stack of titles (XTWINOPS 22 and 23).
    _write("\x1b[22;2t")
    try:
        yield _every(_SECOND // 4, lambda text: _write(f"\x1b]2;{label}: {text}\x07"))
    finally:
        _write("\x1b[23;2t")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _every(period_ns: int, show: Callable[[str], None]) -> Meter:
    """Calls `show` at most once per period, with rates over the time since the last call."""
    before = (0, 0, 0)
    queue = 0

    def take(t_ns: int, sent: int, received: int, dropped: int, resent: int, waiting: int, state: str | None) -> None:
        nonlocal before, queue
        queue = max(queue, waiting)
        elapsed = t_ns - before[0]
        if elapsed < period_ns:
            return
        up, down = ((now - then) * 8e6 / elapsed for now, then in ((sent, before[1]), (received, before[2])))
        parts = [f"down {down:.0f} kbit/s", f"up {up:.0f} kbit/s"]
        parts += [f"queue {queue / 1000:.1f} kB"]
        parts += [f"lost {dropped}"] if dropped else []
        parts += [f"resent {resent}"] if resent else []
        parts += [state] if state else []
        show(", ".join(parts))
        before, queue = (t_ns, sent, received), 0

    return take
