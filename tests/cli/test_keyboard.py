"""The view at the keyboard, when nobody looks: the terminal hung up, or it was never drawn on."""

import contextlib
import io
import os
import pty
import time
from types import SimpleNamespace
from typing import cast

import pytest

from airloom.control.desk import Desk
from airloom.control.keyboard import Keyboard

LIMIT_S = 60.0


def _desk() -> Desk:
    """Of a run without links."""
    return cast(Desk, SimpleNamespace(look=lambda: (0.0, []), said="", by_key=lambda _: None))


@pytest.mark.parametrize("when", ["before", "after"])
def test_programs_are_read_on_when_the_terminal_has_hung_up(when: str) -> None:
    ours, theirs = pty.openpty()
    output, written = os.pipe()
    os.set_blocking(written, False)
    screen = open(os.dup(theirs), "w", encoding="utf-8")  # noqa: SIM115 - it is closed below, hung up or not
    view = Keyboard(theirs, screen, output)
    try:
        if when == "before":
            os.close(ours)
        view.start(_desk())
        if when == "after":
            assert os.read(ours, 64)
            os.close(ours)
        # Many times what the pipe holds.
        left, end = 1_000_000, time.monotonic() + LIMIT_S
        while left > 0:
            try:
                left -= os.write(written, b"x" * min(left, 4096))
            except BlockingIOError:
                assert time.monotonic() < end, f"{left} octets were not read"
                time.sleep(0.001)
    finally:
        view.close()
        for fd in (theirs, output, written):
            os.close(fd)
        with contextlib.suppress(OSError):
            screen.close()


def test_what_was_printed_before_anything_was_drawn_is_shown_at_the_end() -> None:
    ours, theirs = pty.openpty()
    output, written = os.pipe()
    screen = io.StringIO()
    view = Keyboard(theirs, screen, output)
    os.write(written, "ärger\nno such file\n".encode())
    os.close(written)
    view.close()
    assert screen.getvalue() == "ärger\nno such file\n"
    for fd in (ours, theirs, output):
        os.close(fd)
