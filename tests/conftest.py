"""Fixtures for every test."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airloom.programs import path_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.report.browser import Open

WIRE = """\
title = "Ping over a wire"
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = "ping" }
origin = {}

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms" }

[run]
record = ["packets", "pcapng"]
"""


def pytest_configure() -> None:
    """Programs under test are ended by signals, however the tests were started (nohup, in the background)."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    """A small scenario file."""
    path = tmp_path / "wire.toml"
    path.write_text(WIRE)
    return path


def needs(program: str) -> str:
    """The path of a peer; the test is skipped, with the reason, where it is missing."""
    path = path_of(program)
    if path is None:
        pytest.skip(f"{program} is not installed: tools/peers test")
    return path


def needs_laboratory() -> None:
    """Skips the test, with the reason, where laboratories cannot be made."""
    from airloom.doctor import examine

    for finding in examine():
        if finding.needed and not finding.ok:
            pytest.skip(f"{finding.what}: {finding.says}")


def until(true: Callable[[], object], within_s: float = 60.0) -> None:
    """Waits for something that comes, without saying how soon."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of reports: starting it takes longer than any of them."""
    from playwright.sync_api import sync_playwright

    chromium = needs("chromium")
    with sync_playwright() as play:
        # A test runs as whoever runs it, root included, for whom the browser's own sandbox does not work.
        found = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def look(browser: Browser) -> Open:
    """Opens a report: `with look(path, width=390, scheme="dark") as seen: ...`."""
    from tests.report.browser import opened

    return lambda report, **options: opened(browser, report, **options)
