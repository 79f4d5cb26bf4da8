"""The browser's side of a load, in the mobile's namespace: `python -m airloom.page_load.browser < job.json`."""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

#: What the page knows of itself once it is loaded; times in milliseconds since it was asked for.
_TIMING = """() => {
  const entry = e => ({
    url: e.name, kind: e.initiatorType, start: e.startTime, dns: e.domainLookupStart, connect: e.connectStart,
    connected: e.connectEnd, secure: e.secureConnectionStart, request: e.requestStart, response: e.responseStart,
    end: e.responseEnd, octets: e.transferSize, body: e.encodedBodySize, protocol: e.nextHopProtocol,
  });
  const [page] = performance.getEntriesByType("navigation");
  const paint = Object.fromEntries(performance.getEntriesByType("paint").map(p => [p.name, p.startTime]));
  return {
    origin: performance.timeOrigin, interactive: page.domInteractive, content: page.domContentLoadedEventEnd,
    load: page.loadEventEnd, paint: paint["first-contentful-paint"] ?? null,
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
            viewport={"width": 800, "height": 600}, record_har_path=job["har"], record_har_content="omit"
        )
        page = context.new_page()
        session = context.new_cdp_session(page)

        def shown(event: dict[str, Any]) -> None:
            frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
            session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        # A page is not told the statuses of other servers' answers.
        statuses: dict[str, int] = {}
        page.on("response", lambda response: statuses.update({response.url: response.status}))
        session.on("Page.screencastFrame", shown)
        session.send("Page.startScreencast", {"format": "jpeg", "quality": 60, "maxWidth": 320, "maxHeight": 240})
        found: dict[str, Any] = {"error": None, "marked": mark()}
        try:
            page.goto(job["url"], wait_until="load", timeout=job["timeout_s"] * 1e3)
            # The end of the load event itself, and what is painted by it.
            page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
            page.wait_for_timeout(300)
            found |= page.evaluate(_TIMING)
            for request in found["requests"]:
                request["status"] = statuses.get(request["url"], 0)
        except Error as error:
            found["error"] = str(error).splitlines()[0]
        found["version"] = browser.version
        context.close()
        browser.close()
    shots = Path(job["shots"])
    for number, (_, octets) in enumerate(frames):
        (shots / f"{number:04}.jpg").write_bytes(octets)
    found["frames"] = [at for at, _ in frames]
    return found


if __name__ == "__main__":
    print(json.dumps(load(json.load(sys.stdin))))
