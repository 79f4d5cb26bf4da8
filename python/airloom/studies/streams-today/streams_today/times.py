"""When pages and their objects are there, and what a handshake takes: from tables to evidence."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from airloom.study import Computation, Data, Evidence, Numbers, pair, value

#: Protocols by their short names: name, and the ending of their sweeps.
PROTOCOLS = {
    "h1": ("HTTP/1.1", "http-1"),
    "h2": ("HTTP/2", "http-2"),
    "h3": ("HTTP/3", "http-3"),
    "sctp": ("SCTP", "sctp"),
}
BEARERS = ("egprs", "umts-dch", "umts-hsdpa")
LOSSES = (0, 0.01, 0.03)
AT_ONCE = (1, 3, 6)

#: The losses and the requests at a time that are compared.
MOST, SIX = 0.03, 6


def sweep(kind: str, protocol: str) -> str:
    """The name of a sweep."""
    return f"{kind}-{PROTOCOLS[protocol][1]}"


def page_time(data: Data, protocol: str, kind: str = "page", **where: Any) -> Numbers:
    """Seconds until a page was there, one number per seed."""
    return data.per_seed(sweep(kind, protocol), "pages", "load_ns", **where) / 1e9


def object_delay(data: Data, protocol: str, kind: str = "page", **where: Any) -> Numbers:
    """Seconds from when the page named an object until it was there, the mean of a page, one number per seed."""
    rows = data.table(sweep(kind, protocol), "objects", **where).filter(pl.col("object") > 0)
    took = (pl.col("done_ns").cast(pl.Float64) - pl.col("known_ns").cast(pl.Float64)) / 1e9
    return rows.group_by("seed").agg(took.mean().alias("took")).sort("seed")["took"].to_numpy()


def at_most(bearer: str) -> dict[str, Any]:
    """Where objects are compared under losses."""
    return {"bearer": bearer, "loss": MOST, "at_once": SIX}


def at_none(bearer: str) -> dict[str, Any]:
    """The same without losses."""
    return {"bearer": bearer, "loss": 0, "at_once": SIX}


# ---- objects and pages ---------------------------------------------------------------------------------------------


def objects(first: str, second: str, bearer: str, data: Data) -> Evidence:
    """T01 to T03: the objects of two protocols under losses."""
    where = at_most(bearer)
    return pair(object_delay(data, first, **where), object_delay(data, second, **where), "s")


def pages(first: str, second: str, bearer: str, data: Data) -> Evidence:
    """T14: their pages."""
    where = at_most(bearer)
    return pair(page_time(data, first, **where), page_time(data, second, **where), "s")


def on_the_air(bearer: str, data: Data) -> Evidence:
    """T09: the objects of HTTP/2 and 3 where the air alone loses."""
    data.at_default_only()
    h2, h3 = (object_delay(data, protocol, "air", bearer=bearer) for protocol in ("h2", "h3"))
    return pair(h2, h3, "s")


def streams(bearer: str, data: Data) -> Evidence:
    """T04: what three streams give a page, of what six do."""
    data.at_default_only()
    one, three, six = (page_time(data, "sctp", bearer=bearer, loss=0, at_once=n) for n in AT_ONCE)
    return pair(one - three, one - six, "s")


# ---- handshakes ----------------------------------------------------------------------------------------------------


def small_pages(data: Data, protocol: str, bearer: str, kind: str = "setup") -> list[Numbers]:
    """Seconds that one octet took on a new connection, one octet on the same, and 100 kB there; one number per seed."""
    data.at_default_only()
    return [data.per_seed(sweep(kind, protocol), "pages", "load_ns", bearer=bearer, page=n) / 1e9 for n in (1, 2, 3)]


def set_up(data: Data, protocol: str, bearer: str) -> Numbers:
    """Seconds that a connection takes before its first request leaves, one number per seed."""
    new, again, _ = small_pages(data, protocol, bearer)
    return np.asarray(new - again, dtype=np.float64)


def share(data: Data, protocol: str, bearer: str) -> Numbers:
    """The same as a part of the page, six requests at a time, nothing lost, one number per seed.

    Nothing is drawn where nothing is lost but what the radio's clock begins with: means of the setting up do for all.
    """
    return np.asarray(set_up(data, protocol, bearer).mean() / page_time(data, protocol, **at_none(bearer)))


def one_round_trip(bearer: str, data: Data) -> Evidence:
    """T10: what HTTP/2 takes longer, in round trips of one octet."""
    longer = set_up(data, "h2", bearer) - set_up(data, "h3", bearer)
    return pair(longer, small_pages(data, "h3", bearer)[1], "s")


def shares(bearer: str, data: Data) -> Evidence:
    """T11."""
    return pair(share(data, "h2", bearer), share(data, "h3", bearer), "")


def cookie(bearer: str, data: Data) -> Evidence:
    """T12."""
    return pair(set_up(data, "sctp", bearer), set_up(data, "h3", bearer), "s")


def faster(protocol: str, data: Data) -> Evidence:
    """T13."""
    return pair(share(data, protocol, "umts-hsdpa"), share(data, protocol, "egprs"), "")


# ---- controls ------------------------------------------------------------------------------------------------------


def one_object(protocol: str, data: Data) -> Evidence:
    """One request at a time less six, where there is one."""
    data.at_default_only()
    one, six = (
        np.concatenate([page_time(data, protocol, "one", bearer=b, at_once=n) for b in BEARERS]) for n in (1, SIX)
    )
    return value(one - six, "s")


def same_object(protocol: str, bearer: str, data: Data, kind: str = "setup") -> Evidence:
    """T15 and its control: 100 kB on an open connection, in a protocol and in HTTP/3; no seed changes it."""
    return pair(small_pages(data, protocol, bearer)[2], small_pages(data, "h3", bearer, kind)[2], "s")


def losses_cost(protocol: str, data: Data) -> Evidence:
    """Pages with losses and without, mean over radios."""
    data.at_default_only()
    lossy, clean = (
        np.mean([page_time(data, protocol, **at(bearer)) for bearer in BEARERS], axis=0) for at in (at_most, at_none)
    )
    return pair(lossy, clean, "s")


COMPUTE: dict[str, Computation] = {
    **{f"T01.{bearer}": partial(objects, "h2", "h3", bearer) for bearer in BEARERS},
    **{f"T02.{bearer}": partial(objects, "sctp", "h3", bearer) for bearer in BEARERS},
    **{f"T03.{bearer}": partial(objects, "h2", "h1", bearer) for bearer in BEARERS},
    **{f"T04.{bearer}": partial(streams, bearer) for bearer in BEARERS},
    **{f"T09.{bearer}": partial(on_the_air, bearer) for bearer in BEARERS},
    **{f"T10.{bearer}": partial(one_round_trip, bearer) for bearer in BEARERS},
    **{f"T11.{bearer}": partial(shares, bearer) for bearer in BEARERS},
    **{f"T12.{bearer}": partial(cookie, bearer) for bearer in BEARERS},
    **{f"T13.{protocol}": partial(faster, protocol) for protocol in ("h2", "h3")},
    **{f"T14.{bearer}": partial(pages, "h2", "h3", bearer) for bearer in BEARERS},
    **{f"one-object.{protocol}": partial(one_object, protocol) for protocol in PROTOCOLS},
    **{
        f"T15.{each}.{bearer}": partial(same_object, each, bearer)
        for each in ("h1", "h2", "sctp")
        for bearer in BEARERS
    },
    **{
        f"same-object.{each}.{bearer}": partial(same_object, each, bearer, kind="plain")
        for each in ("h1", "h2")
        for bearer in BEARERS
    },
    **{f"losses-cost.{protocol}": partial(losses_cost, protocol) for protocol in PROTOCOLS},
}
