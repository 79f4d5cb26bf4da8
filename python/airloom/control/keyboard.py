"""The view at the keyboard: a table of the links on the terminal, and keys that toggle them."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from airloom.control.desk import Desk, Row
from airloom.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_EVERY_S = 0.25
#: Lines of the screen that are not rows: title, head, rule, what was said, keys.
_OTHER_LINES = 7
_UP, _DOWN = ("\x1b[A", "\x1bOA", "k"), ("\x1b[B", "\x1bOB", "j")


class Keyboard:
    """Draws on a terminal and listens to its keys, in a thread of its own; what programs print goes above the table."""

    def __init__(self, keys: int, screen: TextIO, output: int | None) -> None:
        """`keys` is read, `screen` drawn on, and what can be read from `output` is shown there too."""
        self._keys, self._screen, self._output = keys, screen, output
        self._wake, self._waker = os.pipe()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._chosen = 0
        self._pressed = ""
        self._partial = b""

    def start(self, desk: Desk) -> None:
        """Begins."""
        self._thread = threading.Thread(target=self._run, args=(desk,), daemon=True, name="airloom-keyboard")
        self._thread.start()

    def close(self) -> None:
        """Ends, when everything that was printed is shown."""
        self._ending = True
        os.write(self._waker, b"x")
        if self._thread:
            self._thread.join()
        else:
            self._copy_output()
        os.close(self._wake)
        os.close(self._waker)

    def _run(self, desk: Desk) -> None:
        # A terminal that hung up can be neither drawn on nor asked for its size.
        with contextlib.suppress(OSError):
            self._view(desk)
        # Nobody sees it any more, but a program must not wait for ever for somebody to read what it writes.
        while self._output is not None and not self._ending:
            ready, _, _ = select.select([self._output, self._wake], [], [])
            if self._output in ready:
                self._read_output()

    def _view(self, desk: Desk) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._screen)
        with Live(self._drawn(desk, console), console=console, auto_refresh=False) as live:
            listens = True
            while not self._ending:
                watched = [self._wake, *([self._output] if self._output is not None else [])]
                watched += [self._keys] if listens else []
                ready, _, _ = select.select(watched, [], [], _EVERY_S)
                if self._output in ready:
                    self._show_output(live)
                if self._keys in ready:
                    pressed = _read(self._keys, 64)
                    listens = bool(pressed)
                    self._press(desk, pressed.decode(errors="replace"))
                live.update(self._drawn(desk, console), refresh=True)
            while self._output is not None and select.select([self._output], [], [], 0)[0]:
                self._show_output(live)
            if self._partial:
                self._print(live, self._partial)

    def _read_output(self) -> bytes:
        assert self._output is not None
        octets = _read(self._output, 65_536)
        if not octets:
            self._output = None
        return octets

    def _copy_output(self) -> None:
        """What nobody drew, as it is."""
        with contextlib.suppress(OSError):
            while self._output is not None and select.select([self._output], [], [], 0)[0]:
                self._screen.write(self._read_output().decode(errors="replace"))
            self._screen.flush()

    def _show_output(self, live: Live) -> None:
        octets = self._read_output()
        if not octets:
            return
        # A bar that draws itself again and again says `\r`; only its last state is worth a line.
        *lines, self._partial = (self._partial + octets).split(b"\n")
        for line in lines:
            self._print(live, line)
        self._partial = self._partial.rsplit(b"\r", 1)[-1][-65_536:]

    def _print(self, live: Live, line: bytes) -> None:
        from rich.text import Text

        text = line.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode(errors="replace")
        live.console.print(Text.from_ansi(text))

    def _press(self, desk: Desk, pressed: str) -> None:
        for key in _split(self._pressed + pressed):
            self._pressed = ""
            _, rows = desk.look()
            if key in _UP or key in _DOWN:
                step = -1 if key in _UP else 1
                self._chosen = max(0, min(len(rows) - 1, self._chosen + step))
            elif key in (" ", "\r", "\n") and rows:
                desk.toggle(rows[min(self._chosen, len(rows) - 1)].target)
            elif key == "q":
                desk.control.stop()
            elif key.startswith("\x1b") and len(key) < 3:
                # The rest of an arrow is still on its way.
                self._pressed = key
            elif target := desk.by_key(key):
                self._chosen = next((n for n, row in enumerate(rows) if row.target == target), self._chosen)
                desk.toggle(target)

    def _drawn(self, desk: Desk, console: Console) -> RenderableType:
        from rich import box
        from rich.console import ConsoleDimensions, Group
        from rich.table import Table
        from rich.text import Text

        # Standard input and output are not the terminal meanwhile: nobody else knows its size.
        size = os.get_terminal_size(self._keys)
        console.size = ConsoleDimensions(size.columns or 80, size.lines or 24)
        at, rows = desk.look()
        table = Table(box=box.SIMPLE_HEAD, title=f"{at:.1f} s", title_justify="left")
        for name in ("key", "link"):
            table.add_column(name, no_wrap=True)
        table.add_column("state", min_width=13, no_wrap=True)
        for name in ("down kbit/s", "up kbit/s", "frames", "lost"):
            table.add_column(name, justify="right", no_wrap=True)
        fitting = max(1, console.height - _OTHER_LINES)
        first = max(0, min(self._chosen - fitting // 2, len(rows) - fitting))
        for number, row in list(enumerate(rows))[first : first + fitting]:
            table.add_row(*_cells(row), style="reverse" if number == self._chosen else "")
        keys = [row.key for row in rows if row.key]
        span = f"{keys[0]}-{keys[-1]}" if len(keys) > 1 else "".join(keys)
        help_ = f"{span} release, set up   arrows, space: any row   q end   Ctrl-C give up"
        return Group(table, Text(desk.said or " "), Text(help_, style="dim"))


def _cells(row: Row) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.0f}"

    sign = {"up": "●", "down": "○", "on": "●", "off": "○"}.get(row.state, "◐")
    return [
        row.key or "",
        row.target,
        f"{sign} {row.state}",
        number(row.downlink_kbit_s),
        number(row.uplink_kbit_s),
        number(row.frames),
        number(row.errors),
    ]


def _read(fd: int, most: int) -> bytes:
    """Nothing at the end, and from a terminal that hung up."""
    try:
        return os.read(fd, most)
    except OSError:
        return b""


def _split(pressed: str) -> list[str]:
    """Keys of what was read: letters, and arrows with their three characters."""
    keys = []
    while pressed:
        length = 3 if pressed.startswith(("\x1b[", "\x1bO")) else 1
        keys.append(pressed[:length])
        pressed = pressed[length:]
    return keys


@contextlib.contextmanager
def keyboard() -> Iterator[Keyboard]:
    """The terminal that standard input is, for a `Keyboard`; programs that start meanwhile read nothing from it.

    What they write to it is shown above the table. Afterwards the terminal is as it was.
    """
    if not sys.stdin.isatty() or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("--control: this is no terminal to draw on; --control-page shows the same in a browser")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with contextlib.ExitStack() as back:
        kept = [os.dup(number) for number in (0, 1, 2)]
        for fd in kept:
            back.callback(os.close, fd)
        before = termios.tcgetattr(kept[0])
        back.callback(_set_back, kept[0], before)
        tty.setcbreak(kept[0])
        # A laboratory that is stopped is none: Ctrl-Z is a key like others.
        quiet = termios.tcgetattr(kept[0])
        quiet[6][termios.VSUSP] = b"\x00"
        termios.tcsetattr(kept[0], termios.TCSADRAIN, quiet)
        output, written = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        screen = open(os.dup(kept[2]), "w", encoding="utf-8")  # noqa: SIM115 - closed below, hung up or not
        back.callback(_close, screen)
        view = Keyboard(kept[0], screen, output)
        back.callback(os.close, output)
        back.callback(view.close)
        back.callback(_restore, kept)
        os.dup2(nothing, 0)
        for number in (1, 2):
            if os.isatty(number):
                os.dup2(written, number)
        os.close(nothing)
        os.close(written)
        yield view


def _set_back(fd: int, before: list[Any]) -> None:
    # One that hung up cannot be set to anything.
    with contextlib.suppress(termios.error):
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _close(screen: TextIO) -> None:
    # What was drawn and not written yet goes nowhere when it hung up.
    with contextlib.suppress(OSError):
        screen.close()


def _restore(kept: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for number, fd in enumerate(kept):
        os.dup2(fd, number)
