"""What the loads of a page say together: which run stands for its link, how sure its time is, what it cost.

Several runs of one link and way differ in the seed of the radio. The one with the median page time is shown, of two in
the middle the faster one, as WebPageTest does; the median itself has an interval over the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from airloom.analysis.statistics import Interval, quantile_interval
from airloom.page_load.link_events import LinkEvents, link_events
from airloom.page_load.measure import Loaded

#: A page whose own answer has this status, or a higher one, is not the page that was wanted (RFC 9110, 15.5).
ERROR_STATUS = 400


class Runs(NamedTuple):
    """The runs of one link, way and version of HTTP."""

    runs: list[Loaded]
    #: The one that stands for all.
    shown: Loaded
    #: What the link did during that one.
    events: LinkEvents
    #: Median and interval of the page times, where enough runs were loaded.
    page: Interval | None

    @property
    def loaded(self) -> int:
        """How many runs were loaded."""
        return sum(one.page_s is not None for one in self.runs)


def together(loads: Sequence[Loaded]) -> list[Runs]:
    """The loads by link, way and version of HTTP, in their order."""
    groups: dict[tuple[str, str, str | None], list[Loaded]] = {}
    for load in loads:
        groups.setdefault((load.link, load.way, load.http), []).append(load)
    found = []
    for runs in groups.values():
        times = [one.page_s for one in runs if one.page_s is not None]
        shown = _median(runs)
        page = quantile_interval(times)
        found.append(Runs(runs, shown, link_events(shown), None if page.method == "none" else page))
    return found


def _median(runs: Sequence[Loaded]) -> Loaded:
    """A run that failed is shown only where they all did."""
    loaded = sorted((one for one in runs if one.page_s is not None), key=lambda one: one.page_s or 0.0)
    return loaded[(len(loaded) - 1) // 2] if loaded else runs[0]


def name_of(loaded: Loaded) -> str:
    """How a load is called."""
    version = f", HTTP/{loaded.http}" if loaded.http else ""
    return f"{loaded.link}, {'no proxy' if loaded.way == 'none' else loaded.way}{version}"


def status_text(loaded: Loaded) -> str:
    """The status of the page itself: `404 Not Found`."""
    words = loaded.seen.get("status_text") or ""
    return "no answer" if loaded.status is None else f"{loaded.status} {words}".strip()


def is_wanted(loaded: Loaded, allowed: Sequence[int] = ()) -> bool:
    """Is this what was asked for: loaded, and no page of an error, unless its status is allowed?"""
    if loaded.page_s is None:
        return False
    return loaded.status is None or loaded.status < ERROR_STATUS or loaded.status in allowed


def complaints(loads: Sequence[Loaded], allowed: Sequence[int] = ()) -> list[str]:
    """A sentence for each load that is not what was asked for."""
    several = {name_of(one) for one in loads if one.seed != loads[0].seed}
    found = []
    for one in loads:
        if is_wanted(one, allowed):
            continue
        name = name_of(one) + (f", seed {one.seed}" if name_of(one) in several else "")
        if one.page_s is None:
            found.append(f"{name}: not loaded: {one.seen['error']}{_hint(one.seen['error'])}")
        else:
            found.append(f"{name}: the page's answer was {status_text(one)}; --allow-status {one.status} takes it")
    return found


def _hint(error: str) -> str:
    """What may help against what the browser says."""
    for code, what in (
        ("ERR_CERT_", "; --insecure takes certificates that nobody vouches for"),
        ("ERR_SSL_", "; does that port speak TLS?"),
        ("ERR_NAME_NOT_RESOLVED", "; is the name known outside of the laboratory?"),
        ("ERR_CONNECTION_REFUSED", "; another port of this machine's loopback takes --loopback PORT"),
        ("ERR_ABORTED", "; is it a file to be downloaded, and no page?"),
    ):
        if code in error:
            return what
    return ""


def rows(runs: Runs, *, everything: bool = False) -> dict[str, Any]:
    """What is said of a link and way, by what it is; `None` where it is not known.

    Times in seconds, sizes in kB. Counts that are zero are left out, unless `everything` is wanted.
    """
    one, seen, events = runs.shown, runs.shown.seen, runs.events
    counts: dict[str, Any] = {}
    if one.page_s is not None:
        statuses = [request["status"] for request in seen["requests"]]
        counts = {
            "sent again by TCP (segments)": events.resent,
            "sent again by the radio link (PDUs)": len(events.again),
            "lost on the radio link (PDUs, packets)": len(events.lost),
            "requests without an answer": sum(not status for status in statuses),
            "requests answered with an error": sum(status >= ERROR_STATUS for status in statuses),
        }
    found = {
        "page loaded after (s)": "not loaded" if one.page_s is None else one.page_s,
        "95 % interval of the median (s)": runs.page and (runs.page.low, runs.page.high),
        "runs": len(runs.runs) if len(runs.runs) > 1 or everything else None,
        "runs not loaded": len(runs.runs) - runs.loaded,
        "the page's answer": status_text(one),
        "first contentful paint (s)": _seconds(seen.get("paint")),
        "largest contentful paint (s)": _seconds(seen.get("largest")),
        "Speed Index (s)": seen.get("speed_index"),
        "DOM ready (s)": _seconds(seen.get("content")) if everything else None,
        "requests": len(seen["requests"]) if "requests" in seen else None,
        "connections": events.connections if one.page_s is not None else None,
        "received by the mobile (kB)": events.received / 1e3 if one.page_s is not None else None,
        "sent by the mobile (kB)": events.sent / 1e3 if one.page_s is not None else None,
        **counts,
        "times are": _validity(runs.runs),
    }
    return {
        key: value
        for key, value in found.items()
        if value is not None and (everything or value != 0 or not isinstance(value, int))
    }


def _validity(runs: Sequence[Loaded]) -> str:
    late = sum(not run.valid for run in runs)
    if late == 0:
        return "valid"
    return "not valid" if len(runs) == 1 else f"not valid in {late} of {len(runs)} runs"


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def as_json(runs: Runs) -> dict[str, Any]:
    """The same as plain data, with the page times of all runs. Names carry their unit."""
    one, seen, events = runs.shown, runs.shown.seen, runs.events
    return {
        "link": one.link,
        "proxy": one.way,
        "http": one.http,
        "page_s": one.page_s,
        "interval_s": None if runs.page is None else [runs.page.low, runs.page.high],
        "runs": [
            {
                "seed": run.seed,
                "page_s": run.page_s,
                "status": run.status,
                "valid": run.valid,
                "error": run.seen["error"],
            }
            for run in runs.runs
        ],
        "seed": one.seed,
        "status": one.status,
        "valid": all(run.valid for run in runs.runs),
        "load": seen.get("load"),
        "content": seen.get("content"),
        "paint": seen.get("paint"),
        "largest": seen.get("largest"),
        "speed_index_s": seen.get("speed_index"),
        "requests": len(seen.get("requests", [])),
        "connections": events.connections,
        "received_bytes": events.received,
        "sent_bytes": events.sent,
        "tcp_resent": events.resent,
        "link_resent": len(events.again),
        "link_lost": len(events.lost),
        "error": seen["error"],
    }
