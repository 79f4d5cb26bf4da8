"""What the slides observe, judged in real time: the statistics of `observations`, of times between real programs.

Where virtual time has a pair for each seed this has one for each page, since its seeds are few (`measured.together`).
Where virtual time has a number for each seed so has this, of seeds whose pages were all loaded in time on every way
that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from airloom import page_sets
from airloom.study import Computation, Data, Evidence, NotMade, Numbers, pair, value

from .loads import ranks_of, shares_of, spearman
from .measured import measured, of_way, side_by_side, together, visited, whole_lists
from .observations import correlation, explained, slope
from .ways import DELAYS, LOSSES, MODES, PROXIES, Way, varied

#: Where both the TCP proxy and no proxy were measured, besides T = 20 ms without loss.
SLOPE_DELAYS = (20, 100, 200, 400)
SLOPE_LOSSES = (0.0, 0.02, 0.05)


def order(first: Way, second: Way, data: Data) -> Evidence:
    """Two ways, page by page."""
    ours, others = together(data, (first, second))
    return pair(ours, others, "s")


def proxies(first: str, second: str, http: str = "keep-alive", t: int = 20, loss: float = 0.0) -> Computation:
    """Two proxies with the same use of HTTP, at a point of the internet."""
    return partial(order, Way(first, http, t, loss), Way(second, http, t, loss))


def modes(proxy: str, first: str, second: str) -> Computation:
    """Two uses of HTTP with the same proxy."""
    return partial(order, Way(proxy, first), Way(proxy, second))


def gains(data: Data) -> Evidence:
    """N05: what a page gains by pipelining, with Squid and without proxy."""
    ways = [Way(proxy, http) for proxy in ("HTTP", "none") for http in ("keep-alive", "pipelining")]
    with_squid, piped_by_squid, direct, piped = together(data, ways)
    return pair(with_squid - piped_by_squid, direct - piped, "s")


def gain_by_objects(data: Data) -> Evidence:
    """N10, as in virtual time."""
    kept, piped = whole_lists(data, [Way("none", "keep-alive"), Way("none", "pipelining")])
    pages = page_sets.news().pages
    # In the order of their numbers, as the columns are.
    objects = [len(pages[number - 1].objects) for number in sorted(visited(data))]
    return correlation(kept - piped, objects)


def slopes(vary: str, over: Sequence[float], factor: float, unit: str, data: Data) -> Evidence:
    """N11: least squares over what is varied, page by page."""
    ways = [varied(proxy, vary, x) for proxy in ("TCP", "none") for x in over]
    found = together(data, ways)
    ours, direct = (slope(tuple(over), found[n : n + len(over)]) * factor for n in (0, len(over)))
    return pair(ours, direct, unit)


def requests(data: Data) -> Evidence:
    """N04, N25: requests of a connection of the browser with keep-alive, one pair per seed."""
    ways = (Way("HTTP"), Way("none"))
    to_squid, to_servers = side_by_side(measured(data, "runs"), ways, ("seed",), "requests")
    return pair(to_squid, to_servers, "requests per connection")


def hits(data: Data) -> Evidence:
    """N25: how much comes out of Squid's cache, as it says itself."""
    found = of_way(measured(data, "runs"), Way("HTTP")).sort("seed")["hits"].drop_nulls()
    if found.is_empty():
        raise NotMade("Squid was not asked for its hits")
    return value(found.to_numpy(), "share")


def share_of_pages(first: Way, second: Way, data: Data) -> Evidence:
    """N20: the share of pages whose time is less on the first of two ways, one number per seed."""
    ours, others = whole_lists(data, (first, second))
    return value((ours < others).mean(axis=1), "share", shares_of(ours.shape[1]))


def nine(data: Data) -> dict[tuple[str, str], Numbers]:
    """The configurations of the slides."""
    ways = [Way(proxy, http) for proxy in PROXIES for http in MODES]
    return {(way.proxy, way.http): of for way, of in zip(ways, whole_lists(data, ways), strict=True)}


def rises(vary: str, over: Sequence[float], data: Data) -> Evidence:
    """N22: rank correlation of the mean page time without proxy with what is varied, one number per seed."""
    found = whole_lists(data, [varied("none", vary, x) for x in over])
    means = np.stack([of.mean(axis=1) for of in found], axis=1)
    return value([spearman(over, row) for row in means], "rank correlation", ranks_of(len(over)))


def configuration(data: Data) -> Evidence:
    """N24: one share per seed."""
    found = nine(data)
    seeds = len(next(iter(found.values())))
    return value([explained({key: x[n] for key, x in found.items()})[0] for n in range(seeds)], "share")


COMPUTE: dict[str, Computation] = {
    "N02.real-none": modes("none", "pipelining", "keep-alive"),
    "N02.real-tcp": modes("TCP", "pipelining", "keep-alive"),
    "N02.real-http": modes("HTTP", "pipelining", "keep-alive"),
    "N02.real-without": modes("none", "pipelining", "no keep-alive"),
    "N03.real-no-keep-alive": proxies("TCP", "none", "no keep-alive"),
    "N03.real-keep-alive": proxies("TCP", "none", "keep-alive"),
    "N03.real-pipelining": proxies("TCP", "none", "pipelining"),
    "N04.real-time": modes("HTTP", "keep-alive", "no keep-alive"),
    "N04.real-requests": requests,
    "N05.real": gains,
    "N06.real-delay": proxies("TCP", "none", t=400),
    "N06.real-loss": proxies("TCP", "none", loss=0.05),
    "N07.real": proxies("HTTP", "none", "keep-alive"),
    "N08.real": proxies("HTTP", "none", "pipelining"),
    "N08.real-unsupported": partial(order, Way("HTTP"), Way("none", "pipelining")),
    "N09.real-none": modes("none", "keep-alive", "no keep-alive"),
    "N09.real-tcp": modes("TCP", "keep-alive", "no keep-alive"),
    "N09.real-http": modes("HTTP", "keep-alive", "no keep-alive"),
    "N10.real": gain_by_objects,
    "N11.real-loss": partial(slopes, "loss", SLOPE_LOSSES, 0.01, "s per %"),
    "N11.real-delay": partial(slopes, "t", SLOPE_DELAYS, 1e3, "s per s"),
    "N18.by-hand": proxies("TCP", "none", "keep-alive"),
    "N18.rule": proxies("TCP, RFC 896", "none", "keep-alive"),
    "N20.real-keep-alive": partial(share_of_pages, Way("none"), Way("none", "no keep-alive")),
    "N20.real-proxy": partial(share_of_pages, Way("HTTP"), Way("none", "no keep-alive")),
    "N22.real-delay": partial(rises, "t", sorted(DELAYS)),
    "N22.real-loss": partial(rises, "loss", LOSSES),
    "N23.real-well": proxies("TCP", "none", "keep-alive"),
    "N23.real-delay": proxies("TCP", "none", t=200),
    "N23.real-loss": proxies("TCP", "none", loss=0.05),
    "N24.real": configuration,
    "N25.real-requests": requests,
    "N25.real-hits": hits,
    "N25.real-no-cache": proxies("HTTP, no cache", "none"),
}
