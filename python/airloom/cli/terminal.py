"""Manners: results on stdout, everything else on stderr, colour and progress only for people."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airloom.closing import Closing
from airloom.errors import Interrupted

if TYPE_CHECKING:
    from rich.table import Table

    from airloom.sweep.times import State

#: A progress bar appears only for what takes longer than this, and is drawn so often.
_PATIENCE_S = 1.0
_REFRESH_S = 0.1
#: Lines of text are no longer, however wide the terminal is, and where there is none.
_WIDEST, _IN_A_PIPE = 100, 80
#: Where stderr is no terminal there is a line as often.
_EVERY_S = 10.0

T = TypeVar("T")


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


@contextmanager
def verdict_follows() -> Iterator[None]:
    """Prints what an exit code will sum up: that is the same where the reader of stdout has seen enough (`head -1`)."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_stdout()


def give_up_stdout() -> None:
    """Its reader is gone: what is still printed, or waits to be written, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


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
    """Shows what the package logs on stderr: what one should know (0), what it does and writes (1), everything (2)."""
    import logging

    handler = logging.StreamHandler()
    # Where it tells what happens, it says when.
    form = "%(asctime)s.%(msecs)03d airloom: %(message)s" if level else "airloom: %(message)s"
    handler.setFormatter(logging.Formatter(form, "%H:%M:%S"))
    logger = logging.getLogger("airloom")
    logger.handlers = [handler]
    least = logging.ERROR if Manners.quiet else logging.WARNING
    logger.setLevel([least, logging.INFO, logging.DEBUG][min(level, 2)])


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
    indent, escaped = None if is_line else 2, sys.stdout.isatty()
    print(json.dumps(value, indent=indent, ensure_ascii=escaped, allow_nan=False), flush=True)


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


def print_text(text: str) -> None:
    """Paragraphs and items of lists, wrapped as `print_entries` does; tables and what is set in stay as they are."""
    for paragraph in re.split(r"\n(?=\n|[-*] )", cleaned(text)):
        body = paragraph.strip("\n")
        if paragraph.startswith("\n"):
            print()
        print(body if body.startswith((" ", "|", "```")) else textwrap.fill(body, _width(), break_on_hyphens=False))


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _IN_A_PIPE


def print_entries(entries: Iterable[tuple[str, str]]) -> None:
    """Names and what there is to say about each, wrapped to the terminal; 80 columns in a pipe."""
    shown = [(cleaned(name), cleaned(text)) for name, text in entries]
    width = _width()
    margin = max((len(name) for name, _ in shown), default=0) + 2
    # Beside a long name there is no room for sentences: they stand below it.
    below = margin > width // 3
    for name, text in shown:
        # Names have hyphens, and are copied.
        lines = textwrap.wrap(text, max(width - (4 if below else margin), 20), break_on_hyphens=False) or [""]
        if below:
            print("\n".join([*textwrap.wrap(name, width, subsequent_indent="  "), *(f"    {line}" for line in lines)]))
            continue
        print(f"{name.ljust(margin)}{lines[0]}".rstrip())
        for line in lines[1:]:
            print(" " * margin + line)


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


def open_hint(path: Path | str) -> str:
    """The command that shows a file on this system."""
    program = next((word for word in ("xdg-open", "open", "wslview") if shutil.which(word)), None)
    return f"{program} {quoted(path)}" if program else f"open {quoted(path)} in a browser"


@contextmanager
def interruptible(left: str | Callable[[], str] = "nothing was written") -> Iterator[None]:
    """Says what is `left` when Ctrl-C or another signal ends the program, with the exit code 128 + its number."""

    def say_left(word: str) -> str:
        return f"{word}, {left if isinstance(left, str) else left()}"

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(say_left("interrupted")) from None
    except SystemExit as ended:
        if not hasattr(ended, "__notes__"):
            ended.add_note(say_left("stopped"))
        raise


class _Bar(Closing):
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere; of work that has taken a while only.

    With `--quiet` there is none.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: tuple[int | None, int | None] = (None, None)
        self._text = ""
        self._ends: float | None = None

    def update(self, completed: int | None, total: int | None, text: str, left_s: float | None = None) -> None:
        """How far it is, and how long the rest may take. With the first call the waiting begins."""
        if Manners.quiet:
            return
        self._done, self._text = (completed, total), text
        self._ends = None if left_s is None else time.monotonic() + left_s
        if self._thread is None:
            # A thread of its own: a step that takes long is no reason to show nothing.
            show = self._draw if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else self._tell
            self._thread = threading.Thread(target=show, name="airloom-progress", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Takes the bar away."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _said(self) -> str:
        left = None if self._ends is None else max(self._ends - time.monotonic(), 0)
        return ", ".join(filter(None, [self._text, None if left is None else f"{_clock(left)} left"]))

    def _draw(self) -> None:
        if self._stopped.wait(_PATIENCE_S):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        said = TextColumn("{task.description}", markup=False)
        text = TextColumn("{task.fields[text]}", markup=False)
        console = Console(stderr=True)
        with Progress(
            said, BarColumn(bar_width=20), text, TimeElapsedColumn(), console=console, transient=True
        ) as progress:
            task = progress.add_task(self._what, total=None, text="")
            while True:
                completed, total = self._done
                progress.update(task, completed=completed, total=total, text=self._said())
                if self._stopped.wait(_REFRESH_S):
                    return

    def _tell(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            spent = _clock(time.monotonic() - self._start)
            emit(f"airloom: {self._what}: {', '.join(filter(None, [self._said(), f'{spent} so far']))}", error=True)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """Shows model time while something runs, if it takes long."""
    with _Bar(what) as bar:
        yield lambda t_ns: bar.update(None, None, f"{t_ns / 1e9:.1f} s of model time")


@contextmanager
def runs_bar(what: str) -> Iterator[Callable[[State], None] | None]:
    """Shows how many runs of a sweep are done, at which rate, and how long the rest takes."""
    with _Bar(what) as bar:

        def show(state: State) -> None:
            # The bar has a thread only from here on: until there is one a sweep can copy this process.
            failed = f", {state.failed} failed" if state.failed else ""
            text = f"{state.done}/{state.total} runs{failed}, {state.rate:.3g}/s"
            bar.update(state.done, state.total, text, state.left_s if state.rate else None)

        yield None if Manners.quiet else show


@contextmanager
def steps(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Shows how many of `total` steps are done, if it takes long.

    What is given back is called with that number, and if steps are of unequal length with the share of the work that
    is done.
    """
    start: tuple[float, float] | None = None
    with _Bar(what) as bar:

        def show(done: int, share: float | None = None) -> None:
            nonlocal start
            now, share = time.monotonic(), done / max(total, 1) if share is None else share
            # What was there already took no time.
            start = start or (now, share)
            made = share - start[1]
            left = (1 - share) * (now - start[0]) / made if made > 0 else None
            bar.update(done, total, f"{done}/{total}", left)

        yield show


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Shows that something goes on of which nobody knows how long it takes."""
    with _Bar(what) as bar:
        bar.update(None, None, "")
        yield


def waiting(what: str, work: Callable[[], T]) -> T:
    """What `work` gives, which may take long and hears of no signal: it is done by a thread, and a bar shows that."""
    made: list[T] = []
    failed: list[BaseException] = []

    def carry_out() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=carry_out, name="airloom-work", daemon=True)
    with busy(what):
        thread.start()
        while thread.is_alive():
            # In steps, so that signals are heard.
            thread.join(0.1)
    if failed:
        raise failed[0]
    return made[0]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
