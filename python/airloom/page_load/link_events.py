"""What the radio link did while a page was loaded, on the browser's clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from airloom import tables
from airloom.page_load.measure import Loaded

#: Octets of an empty datagram over IPv4: a browser sends none, while it may ask for a name before the mark.
_MARK = 28
#: What of a link's events is shown: sent again, lost on the air, dropped by a queue.
_SHOWN = ("retx", "drop")


class LinkEvents(NamedTuple):
    """Times in milliseconds since the page was asked for."""

    #: Link-layer PDUs that were sent again, and that or packets that were lost.
    again: list[float]
    lost: list[float]
    #: Octets of datagrams that the mobile received and sent, up to the end of the load.
    received: int
    sent: int
    #: The mobile's connections on which something came: a browser tries IPv4, too, if IPv6 is slow.
    connections: int
    #: TCP segments of its connections that came again, seen at the mobile, to the end of the run.
    resent: int


def link_events(loaded: Loaded) -> LinkEvents:
    """Events of the link `radio` in the run's packets table, from when the page was asked for to when it was loaded.

    The browser's clock and the run's meet at a datagram that was sent on purpose (`airloom.page_load.browser.mark`).
    """
    packets = tables.read(loaded.folder / "run" / "packets.parquet").with_columns(
        pl.col("point", "event", "proto").cast(pl.String)
    )
    seen = loaded.seen
    marks = packets.filter(
        (pl.col("point") == "mobile.radio.ip")
        & (pl.col("proto") == "udp")
        & (pl.col("event") == "tx")
        & (pl.col("len") == _MARK)
    )
    if marks.is_empty() or loaded.page_s is None:
        return LinkEvents([], [], 0, 0, 0, 0)
    marked = seen["marked"] * 1e3 - seen["origin"]
    # In whole nanoseconds: quotients that are the same number may differ by their last bit.
    since = pl.col("t_ns").cast(pl.Int64) - marks["t_ns"][0]
    during = packets.with_columns((since / 1e6 + marked).alias("ms"))
    during = during.filter((pl.col("ms") >= 0) & (pl.col("ms") <= seen["load"]))
    of_link = during.filter(pl.col("point").str.starts_with("radio."))
    times = {event: of_link.filter(pl.col("event") == event)["ms"].to_list() for event in _SHOWN}
    own = during.filter(pl.col("point") == "mobile.radio.ip")
    received, sent = (own.filter(pl.col("event") == event) for event in ("rx", "tx"))
    flows = tables.read(loaded.folder / "run" / "flows.parquet")
    of_page = flows.filter(pl.col("flow").is_in(own["flow"].unique().to_list()))
    useful = of_page.filter(pl.col("app_bytes_down") > 0)
    down, up = (int(some["len"].sum()) for some in (received, sent))
    return LinkEvents(times["retx"], times["drop"], down, up, useful.height, int(of_page["resent"].sum()))


def phases(request: dict[str, Any]) -> list[tuple[str, float, float]]:
    """What a request waited for, one after the other: name, begin and end in milliseconds."""
    if not request["request"]:
        # It failed, or the browser does not tell.
        return [("waiting", request["start"], request["end"])] if request["start"] < request["end"] else []
    marks = [("queued", request["start"])]
    if request["connected"] > request["connect"]:
        marks += [("connecting", request["connect"])]
        if request["secure"] > request["connect"]:
            marks += [("TLS", request["secure"])]
        marks += [("queued", request["connected"])]
    marks += [("waiting", request["request"]), ("receiving", request["response"])]
    ends = [at for _, at in marks[1:]] + [request["end"]]
    # What a browser does not tell is 0.
    return [(name, begin, end) for (name, begin), end in zip(marks, ends, strict=True) if 0 <= begin < end]
