"""A real browser that opens a report the way a person does: from disk, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

#: `with look(path, width=390, scheme="dark") as seen: ...`.
Open = Callable[..., AbstractContextManager["Opened"]]


class Opened:
    """A page in the browser, and everything it complained about or asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def span(self, plot: int = 0) -> tuple[float, float]:
        low, high = self.page.evaluate(f"airloom.plots[{plot}].span")
        return low, high


@contextmanager
def opened(browser: Browser, report: Path, *, width: int = 1280, scheme: str = "light") -> Iterator[Opened]:
    """The report in headless Chromium. Fails if it complained, or asked for anything but itself."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light", offline=True
    )
    page = context.new_page()
    found = Opened(page)
    page.on("console", lambda m: found.complaints.append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda e: found.complaints.append(f"error: {e}"))
    page.on("request", lambda r: found.requests.append(r.url))
    address = report.resolve().as_uri()
    try:
        page.goto(address)
        yield found
        assert found.complaints == [], found.complaints
        assert found.requests == [address]
    finally:
        context.close()


#: How many pixels of a plot have the colour of one of its series.
COLOURED = """n => {
  const plot = airloom.plots[n], box = plot.u.bbox;
  const copy = new OffscreenCanvas(box.width, box.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(plot.u.ctx.canvas, -box.left, -box.top);
  const pixels = copy.getImageData(0, 0, box.width, box.height).data;
  const colours = [...plot.place.querySelectorAll(".mark")].map(m => getComputedStyle(m).backgroundColor);
  const wanted = colours.map(c => c.match(/\\d+/g).map(Number));
  let found = 0;
  for (let i = 0; i < pixels.length; i += 4)
    if (pixels[i + 3] > 200 && wanted.some(c => c.every((v, k) => Math.abs(v - pixels[i + k]) < 8))) found++;
  return found;
}"""


def drag(page: Page, selector: str, start: float, end: float) -> None:
    """Drags over a plot from one share of its width to another."""
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=8)
    page.mouse.up()
