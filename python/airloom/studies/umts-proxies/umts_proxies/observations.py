"""N02 to N11, N14, N20 to N25: what the slides observe and conclude."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airloom import page_sets
from airloom.study import Computation, Data, Evidence, NotSwept, Numbers, Value, jackknifed, pair, value

from .loads import (
    at_delay,
    at_loss,
    by_seed,
    first_seeds,
    main,
    main_rows,
    per_seed,
    ranks_of,
    rows,
    shares_of,
    spearman,
    times,
    whole_list,
)
from .ways import DELAYS, LOSSES, MODES, PROXIES


def pages(first: Numbers, second: Numbers, unit: str) -> Evidence:
    """Two things of the same pages, a row for each seed: a pair for each seed, of the means over its pages.

    Pages of a seed are no sample of their own: they share connections, caches and the radio.
    """
    return pair(first.mean(axis=1), second.mean(axis=1), unit)


def modes(proxy: str, first: str, second: str, data: Data) -> Evidence:
    """Two uses of HTTP with the same proxy."""
    return pages(main(data, proxy, first), main(data, proxy, second), "s")


def proxies(first: str, second: str, http: str, data: Data) -> Evidence:
    """Two proxies with the same use of HTTP."""
    return pages(main(data, first, http), main(data, second, http), "s")


def not_supported(data: Data) -> Evidence:
    """N08: an HTTP proxy that requests are not pipelined to at all, against no proxy with pipelining."""
    return pages(main(data, "HTTP", "keep-alive"), main(data, "none", "pipelining"), "s")


def gain(data: Data, proxy: str) -> Numbers:
    """What a page gains by pipelining."""
    return main(data, proxy, "keep-alive") - main(data, proxy, "pipelining")


def requests(data: Data, proxy: str) -> Numbers:
    """Requests of a connection of the browser with keep-alive, one number per seed."""
    return per_seed(data, "main", "mobile.requests_per_connection", proxy=proxy, http="keep-alive")


def correlation(gains: Numbers, objects: Any) -> Value:
    """Rank correlation of the pages' mean gains with their objects; `gains` has a row for each seed.

    Of one seed alone the radio's luck with a page is larger than what the page gains, and hides it.
    """
    return jackknifed(lambda x: spearman(x.mean(axis=0), objects), gains, unit="rank correlation")


def list_gains(data: Data) -> tuple[Numbers, NDArray[np.int64]]:
    """What each of the 135 pages gains by pipelining without proxy, a row for each seed; and its objects."""
    kept, piped = (whole_list(data, "none", http) for http in ("keep-alive", "pipelining"))
    return kept - piped, np.array([len(page.objects) for page in page_sets.news().pages])


def gain_by_objects(data: Data) -> Evidence:
    """N10."""
    return correlation(*list_gains(data))


def many_and_few(data: Data) -> Evidence:
    """N10: what a page gains, of the third of all 135 with most objects and that with fewest: a pair for each seed."""
    gained, objects = list_gains(data)
    order = np.argsort(objects, kind="stable")
    third = len(order) // 3
    return pair(gained[:, order[-third:]].mean(axis=1), gained[:, order[:third]].mean(axis=1), "s")


def slope(x: tuple[float, ...], values: list[Numbers]) -> Numbers:
    """Least squares over x, page by page."""
    at = np.asarray(x) - np.mean(x)
    return np.asarray(np.tensordot(at, np.stack(values), 1) / (at @ at), dtype=np.float64)


def delay_slopes(data: Data) -> Evidence:
    """N11: seconds of page time for each second of delay, from 20 ms on."""
    at = tuple(t for t in DELAYS if t >= 20)
    both = [slope(at, [at_delay(data, proxy, t) for t in at]) * 1e3 for proxy in ("TCP", "none")]
    return pages(both[0], both[1], "s per s")


def loss_slopes(data: Data) -> Evidence:
    """N11: seconds of page time for each per cent of loss."""
    both = [slope(LOSSES, [at_loss(data, proxy, loss) for loss in LOSSES]) / 100 for proxy in ("TCP", "none")]
    return pages(both[0], both[1], "s per %")


def stacks(sweep: str, first: str, second: str, data: Data, **where: Any) -> Evidence:
    """N14."""
    return pages(times(data, sweep, proxy=first, **where), times(data, sweep, proxy=second, **where), "s")


def share_of_pages(first: tuple[str, str], second: tuple[str, str], data: Data) -> Evidence:
    """N20: the share of all 135 pages whose time is less at the first of two configurations, one number per seed."""
    ours, others = (whole_list(data, *way) for way in (first, second))
    return value((ours < others).mean(axis=1), "share", shares_of(ours.shape[1]))


def medians(first: tuple[str, str], second: tuple[str, str], data: Data) -> Evidence:
    """N21: medians over the pages of two configurations, a pair for each seed."""
    ours, others = (np.median(main(data, *way), axis=1) for way in (first, second))
    return pair(ours, others, "s")


def rises(of: Callable[[Data, str, float], Numbers], over: tuple[float, ...], data: Data) -> Evidence:
    """N22: rank correlation of the mean page time without proxy with what is varied, one number per seed."""
    means = np.stack([of(data, "none", x).mean(axis=1) for x in over], axis=1)
    return value([spearman(over, row) for row in means], "rank correlation", ranks_of(len(over)))


def explained(values: dict[tuple[Any, ...], Numbers]) -> tuple[float, dict[int, float]]:
    """Shares of the variance of logarithms that a balanced design's factors explain, within pages.

    `values` has the times of the same pages for every combination of labels. Gives the share of all factors together,
    and that of each by itself, by its place.
    """
    cells = {labels: np.log(times).ravel() for labels, times in values.items()}
    stacked = np.stack(list(cells.values()))
    within = stacked - stacked.mean(axis=0)
    total = float((within**2).sum())
    pages = stacked.shape[1]
    of_cells = float((within.mean(axis=1) ** 2).sum() * pages)
    single = {}
    for place in range(len(next(iter(cells)))):
        labels = {key[place] for key in cells}
        of = [np.mean([within[n] for n, key in enumerate(cells) if key[place] == label]) for label in labels]
        single[place] = float(np.square(of).sum()) * pages * len(cells) / len(labels) / total
    return of_cells / total, single


def configuration(data: Data) -> Evidence:
    """N24: one share per seed."""
    nine = {(proxy, http): main(data, proxy, http) for proxy in PROXIES for http in MODES}
    seeds = len(next(iter(nine.values())))
    return value([explained({key: x[n] for key, x in nine.items()})[0] for n in range(seeds)], "share")


def more_requests(data: Data) -> Evidence:
    """N04, N25."""
    return pair(requests(data, "HTTP"), requests(data, "none"), "requests per connection")


def hits(data: Data) -> Evidence:
    """N25: how much comes out of the proxy's cache."""
    where = {"proxy": "HTTP", "http": "keep-alive"}
    of = [per_seed(data, "main", f"gateway.{name}", **where) for name in ("hits", "requests")]
    return value(of[0] / of[1], "share")


def no_cache(data: Data) -> Evidence:
    """N25: a proxy that keeps nothing against no proxy."""
    if data.reading != data.default.reading:
        raise NotSwept("swept at the default only")
    ours = rows(data, "squid", proxy="no cache", http="keep-alive")
    direct = rows(data, "main", proxy="none", http="keep-alive").join(ours.select("seed", "page"), on=["seed", "page"])
    return pages(by_seed(ours), by_seed(direct.sort("seed", "page")), "s")


def against_direct(at: Callable[[Data, str, float], Numbers], x: float, data: Data) -> Evidence:
    """N06, N23: the TCP proxy and none at a delay or loss."""
    return pages(at(data, "TCP", x), at(data, "none", x), "s")


def twice(data: Data) -> Evidence:
    """The control: one configuration, made by two sweeps."""
    return pages(first_seeds(data, "stack", main_rows(data, "none")), times(data, "stack", proxy="no proxy", t=20), "s")


COMPUTE: dict[str, Computation] = {
    "N02.none": partial(modes, "none", "pipelining", "keep-alive"),
    "N02.tcp": partial(modes, "TCP", "pipelining", "keep-alive"),
    "N02.http": partial(modes, "HTTP", "pipelining", "keep-alive"),
    "N02.without": partial(modes, "none", "pipelining", "no keep-alive"),
    "N03.no-keep-alive": partial(proxies, "TCP", "none", "no keep-alive"),
    "N03.keep-alive": partial(proxies, "TCP", "none", "keep-alive"),
    "N03.pipelining": partial(proxies, "TCP", "none", "pipelining"),
    "N04.time": partial(modes, "HTTP", "keep-alive", "no keep-alive"),
    "N04.requests": more_requests,
    "N05.profile": lambda data: pages(gain(data, "HTTP"), gain(data, "none"), "s"),
    "N06.delay": partial(against_direct, at_delay, 400),
    "N06.loss": partial(against_direct, at_loss, 0.05),
    "N07.virtual": partial(proxies, "HTTP", "none", "keep-alive"),
    "N08.virtual": partial(proxies, "HTTP", "none", "pipelining"),
    "N08.unsupported": not_supported,
    "N09.none": partial(modes, "none", "keep-alive", "no keep-alive"),
    "N09.tcp": partial(modes, "TCP", "keep-alive", "no keep-alive"),
    "N09.http": partial(modes, "HTTP", "keep-alive", "no keep-alive"),
    "N10.virtual": gain_by_objects,
    "N10.many": many_and_few,
    "N11.loss": loss_slopes,
    "N11.delay": delay_slopes,
    "N14.stack": partial(stacks, "stack", "optimised", "plain", t=20),
    "N14.hsdpa": partial(stacks, "hsdpa", "optimised", "no proxy"),
    "N20.keep-alive": partial(share_of_pages, ("none", "keep-alive"), ("none", "no keep-alive")),
    "N20.proxy": partial(share_of_pages, ("HTTP", "keep-alive"), ("none", "no keep-alive")),
    "N21.none": partial(medians, ("none", "pipelining"), ("none", "keep-alive")),
    "N21.tcp": partial(medians, ("TCP", "pipelining"), ("TCP", "keep-alive")),
    "N21.http": partial(medians, ("HTTP", "pipelining"), ("HTTP", "keep-alive")),
    "N21.tcp-proxy": partial(medians, ("TCP", "keep-alive"), ("none", "keep-alive")),
    "N21.persistent": partial(medians, ("HTTP", "keep-alive"), ("HTTP", "no keep-alive")),
    "N22.delay": partial(rises, at_delay, tuple(sorted(DELAYS))),
    "N22.loss": partial(rises, at_loss, LOSSES),
    "N23.well": partial(proxies, "TCP", "none", "keep-alive"),
    "N23.delay": partial(against_direct, at_delay, 200),
    "N23.loss": partial(against_direct, at_loss, 0.05),
    "N24.virtual": configuration,
    "N25.requests": more_requests,
    "N25.hits": hits,
    "N25.no-cache": no_cache,
    "C1": twice,
}
