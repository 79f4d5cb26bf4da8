"""The browser's side of a load, in the mobile's namespace: `python -m airloom.page_load.browser < job.json`."""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom.page_load.progress import COLOURS

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Request

#: What the page knows of itself once it is loaded; times in milliseconds since it was asked for.
_TIMING = """async () => {
  const entry = e => ({
    url: e.name, kind: e.initiatorType, start: e.startTime, dns: e.domainLookupStart, connect: e.connectStart,
    connected: e.connectEnd, secure: e.secureConnectionStart, request: e.requestStart, response: e.responseStart,
    end: e.responseEnd, octets: e.transferSize, body: e.encodedBodySize, protocol: e.nextHopProtocol,
    status: e.responseStatus,
  });
  // The browser tells those who ask for what was there before, and says nothing where nothing was painted.
  const largest = await new Promise(tell => {
    const told = list => tell(list.getEntries().at(-1).startTime);
    new PerformanceObserver(told).observe({ type: "largest-contentful-paint", buffered: true });
    setTimeout(() => tell(null), 500);
  });
  const [page] = performance.getEntriesByType("navigation");
  const paint = Object.fromEntries(performance.getEntriesByType("paint").map(p => [p.name, p.startTime]));
  return {
    origin: performance.timeOrigin, interactive: page.domInteractive, content: page.domContentLoadedEventEnd,
    load: page.loadEventEnd, paint: paint["first-contentful-paint"] ?? null, largest,
    requests: [entry(page), ...performance.getEntriesByType("resource").map(entry)],
  };
}"""


def mark() -> float:
    """Sends an empty datagram, by which this clock and that of the run's records meet; when, in seconds since 1970."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as knocking:
        where = (socket.gethostbyname("gateway"), 9)  # RFC 863
        at = time.time()
        knocking.sendto(b"", where)
    return at


def load(job: dict[str, Any]) -> dict[str, Any]:
    """Loads the page. `error` says why there is no more, if the page could not be loaded in time."""
    from playwright.sync_api import Error, sync_playwright

    frames: list[tuple[float, bytes]] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=job["chromium"], args=job["flags"])
        context = browser.new_context(
            viewport={"width": 800, "height": 600},
            record_har_path=job["har"],
            record_har_content="omit",
            ignore_https_errors=job["insecure"],
        )
        # Of a page's requests a browser remembers 250 unless told.
        context.add_init_script("performance.setResourceTimingBufferSize(100000)")
        page = context.new_page()
        session = context.new_cdp_session(page)

        def shown(event: dict[str, Any]) -> None:
            frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
            session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        # A page is not told the statuses of other servers' answers, and times and sizes only if these allow it.
        statuses: dict[str, int] = {}
        finished: dict[str, Request] = {}
        page.on("response", lambda response: statuses.update({response.url: response.status}))
        page.on("requestfinished", lambda request: finished.update({request.url: request}))
        session.on("Page.screencastFrame", shown)
        session.send("Page.startScreencast", {"format": "jpeg", "quality": 60, "maxWidth": 320, "maxHeight": 240})
        found: dict[str, Any] = {"error": None, "status": None, "largest": None, "marked": mark()}
        try:
            answer = page.goto(job["url"], wait_until="load", timeout=job["timeout_s"] * 1e3)
            if answer is not None:
                found |= {"status": answer.status, "status_text": answer.status_text, "answered": answer.url}
            # The end of the load event itself, and what is painted by it.
            page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
            page.wait_for_timeout(300)
            found |= page.evaluate(_TIMING)
            for request in found["requests"]:
                request["status"] = statuses.get(request["url"], request["status"] or 0)
                if not request["request"] and request["url"] in finished:
                    request |= _measured(finished[request["url"]], found["origin"])
        except Error as error:
            found["error"] = _why(str(error), job["timeout_s"])
        found["version"] = browser.version
        session.send("Page.stopScreencast")
        context.close()
        found["colours"] = _colours(browser.new_context(), [octets for _, octets in frames])
        browser.close()
    shots = Path(job["shots"])
    for number, (_, octets) in enumerate(frames):
        (shots / f"{number:04}.jpg").write_bytes(octets)
    found["frames"] = [at for at, _ in frames]
    return found


def _why(said: str, timeout_s: float) -> str:
    """What went wrong, in the words of this program where it has some."""
    first = said.splitlines()[0].removeprefix("Page.goto: ")
    return f"not there within {timeout_s:g} s" if first.startswith("Timeout ") else first


def _measured(request: Request, origin: float) -> dict[str, Any]:
    """The times and sizes of a request as the browser's own tools know them."""
    from playwright.sync_api import Error

    # Its type has a key for each name; here names are looked up.
    timing: Any = request.timing
    start = timing["startTime"] - origin

    def at(name: str) -> float:
        return start + timing[name] if timing[name] >= 0 else 0.0

    found = {
        "start": start,
        "dns": at("domainLookupStart"),
        "connect": at("connectStart"),
        "connected": at("connectEnd"),
        "secure": at("secureConnectionStart"),
        "request": at("requestStart"),
        "response": at("responseStart"),
        "end": at("responseEnd"),
    }
    try:
        sizes = request.sizes()
    except Error:  # it came out of the browser's own memory
        return found
    octets = sizes["responseHeadersSize"] + sizes["responseBodySize"]
    return found | {"octets": octets, "body": sizes["responseBodySize"]}


def _colours(context: BrowserContext, pictures: list[bytes]) -> list[Any]:
    """How often each colour is in each picture: see `airloom.page_load.progress`."""
    page = context.new_page()
    return [page.evaluate(COLOURS, base64.b64encode(octets).decode()) for octets in pictures]


if __name__ == "__main__":
    print(json.dumps(load(json.load(sys.stdin))))
