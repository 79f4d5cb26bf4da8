"""One browser for all tests of reports: starting it takes longer than any of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.conftest import needs
from tests.report.browser import Opened, opened

Open = Callable[..., AbstractContextManager[Opened]]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = needs("chromium")
    with sync_playwright() as play:
        # A test runs as whoever runs it, root included, for whom the browser's own sandbox does not work.
        found = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def look(browser: Browser) -> Open:
    """Opens a report: `with look(path, width=390, scheme="dark") as seen: ...`."""
    return lambda report, **options: opened(browser, report, **options)
