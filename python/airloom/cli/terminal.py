"""Manners: results on stdout, everything else on stderr, colour and progress only for people."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airloom.errors import Interrupted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from airloom.sweep.times import State

#: A progress bar appears only for what takes longer than this.
_PATIENCE_S = 1.0


class Manners:
    """How talkative this run of the program is; set once from the command line."""

    quiet = False


def cleaned(text: str) -> str:
    """Text as it may go to a terminal, whoever wrote it: a peer's, a document's, a file name.

    Control characters (C0, C1), marks that turn the direction of writing, and what has no width are replaced; lines and
    spaces stay.

    >>> cleaned("a\x1b]0;owned\x07b\x9b31m\u202ec\xa0d")
    'a\ufffd]0;owned\ufffdb\ufffd31m\ufffdc d'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else " " if c.isspace() else "\ufffd" for c in text)


def emit(text: str = "", *, end: str = "\n", error: bool = False) -> None:
    """A line of results on stdout, or a daemon's line on stderr, at once; cleaned."""
    print(cleaned(text), end=end, file=sys.stderr if error else sys.stdout, flush=True)


def emit_octets(octets: bytes) -> None:
    """What was fetched, as it is; on a terminal as cleaned text."""
    if sys.stdout.isatty():
        emit(octets.decode(errors="replace"), end="")
        return
    sys.stdout.buffer.write(octets)


def say(text: str) -> None:
    """A line for the person at the terminal, unless `-q` was given."""
    if not Manners.quiet:
        emit(text, error=True)


def say_details(level: int) -> None:
    """Shows what the package logs on stderr: what it does and writes (1), and everything (2)."""
    if level == 0:
        return
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("airloom: %(message)s"))
    logger = logging.getLogger("airloom")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if level == 1 else logging.DEBUG)


def say_error(text: str) -> None:
    """What went wrong, in one line where possible."""
    begin = "\x1b[1;31mairloom:\x1b[0m" if _colour() else "airloom:"
    print(f"{begin} {cleaned(text)}", file=sys.stderr)


def _colour() -> bool:
    if os.environ.get("FORCE_COLOR"):
        return True
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and sys.stderr.isatty()


def print_json(value: object, *, is_line: bool = False) -> None:
    """The document of `--json`, or one of many as a line; seen at once also where the program goes on and a pipe reads.

    Escaped on a terminal, for a text in it may be somebody else's.
    """
    print(json.dumps(value, indent=None if is_line else 2, ensure_ascii=sys.stdout.isatty()), flush=True)


def print_table(columns: list[str], rows: list[list[str]], right: tuple[int, ...] = ()) -> None:
    """A table for reading: ruled on a terminal, plain columns in a pipe."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(_ruled(columns, rows, right))
        return
    lines = [[cleaned(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        print("  ".join(cells).rstrip())


def _ruled(columns: list[str], rows: list[list[str]], right: tuple[int, ...]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i in right else "left")
    for row in rows:
        table.add_row(*(Text(cleaned(cell)) for cell in row))
    return table


def quoted(path: Path | str) -> str:
    """A path as one can paste it into a shell."""
    return shlex.quote(str(path))


@contextmanager
def interruptible(left: str = "nothing was written") -> Iterator[None]:
    """Makes Ctrl-C a failure with a sentence of its own, which says what is `left`; the exit code is 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted, {left}") from None


class _Bar:
    """A progress bar on stderr that appears only when its work has taken a while."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self.total = total
        self._start = time.monotonic()
        self._shown: tuple[Progress, TaskID] | None = None

    def update(self, completed: int | None, text: str) -> None:
        if self._shown is None:
            if time.monotonic() - self._start < _PATIENCE_S:
                return
            self._shown = self._show()
        bar, task = self._shown
        bar.update(task, completed=completed, total=self.total, text=text)

    def _show(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        said = TextColumn("{task.description}")
        model = TextColumn("{task.fields[text]}")
        bar = Progress(
            said, BarColumn(bar_width=20), model, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        task = bar.add_task(self._what, total=self.total, text="")
        bar.start()
        return bar, task

    def stop(self) -> None:
        if self._shown is not None:
            self._shown[0].stop()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """Shows model time while something runs, if it takes long and stderr is a terminal."""
    bar = _Bar(what, None) if sys.stderr.isatty() and not Manners.quiet else None
    try:
        yield lambda t_ns: bar.update(None, f"{t_ns / 1e9:.1f} s of model time") if bar else None
    finally:
        if bar:
            bar.stop()


@contextmanager
def runs_bar(what: str) -> Iterator[Callable[[State], None] | None]:
    """Shows how many runs of a sweep are done, at which rate, and how long the rest takes."""
    if not sys.stderr.isatty() or Manners.quiet:
        yield None
        return
    bar: _Bar | None = None

    def show(state: State) -> None:
        nonlocal bar
        # Not before the first call: the bar has a thread, and until there is one a sweep can copy this process.
        bar = bar or _Bar(what, None)
        failed = f", {state.failed} failed" if state.failed else ""
        left = f", {_clock(state.left_s)} left" if state.rate else ""
        bar.total = state.total
        bar.update(state.done, f"{state.done}/{state.total} runs{failed}, {state.rate:.3g}/s{left}")

    try:
        yield show
    finally:
        if bar:
            bar.stop()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


@contextmanager
def steps(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows how many of `total` steps are done, if it takes long and stderr is a terminal."""
    bar = _Bar(what, total) if sys.stderr.isatty() and not Manners.quiet else None
    try:
        yield lambda done: bar.update(done, f"{done}/{total}") if bar else None
    finally:
        if bar:
            bar.stop()
