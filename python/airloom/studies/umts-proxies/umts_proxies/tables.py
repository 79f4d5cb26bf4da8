"""Tables beside the claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from airloom.analysis import mean_interval
from airloom.study import Data, StudyTable
from airloom.study.drawing import interval

from .loads import H2_PROXIES, at_delay, at_loss, main, per_seed, times
from .loads import whole_list as of_whole_list
from .observations import explained
from .ways import DELAYS, LOSSES, MODES, PROXIES

Table = tuple[list[str], list[list[str]]]

#: What a TCP proxy may do, as `policies` names it.
POLICIES = ("plain", "Nagle's rule", "on the first request", "before it answers", "1 ms a read", "5 ms a read")
SIZES = ("2kB", "10kB", "50kB")


def means_and_medians(data: Data) -> Table:
    """N21: mean and median page time of each configuration."""
    found = []
    for proxy in PROXIES:
        for http in MODES:
            of = main(data, proxy, http)
            interval = mean_interval(of.mean(axis=1))
            counts = (per_seed(data, "main", f"mobile.{n}", proxy=proxy, http=http).mean() for n in _COUNTS)
            median = np.median(of, axis=1).mean()
            row = [proxy, http, f"{interval.value:.2f}", f"{interval.low:.2f} to {interval.high:.2f}", f"{median:.2f}"]
            found.append([*row, *(f"{n:.1f}" for n in counts)])
    head = ["proxy", "HTTP", "mean (s)", "95 %", "median (s)", "connections", "requests of each", "from cache"]
    return head, found


_COUNTS = ("connections", "requests_per_connection", "from_cache")


def hit_rates(data: Data) -> Table:
    """N25: what the HTTP proxy answers itself."""
    found = []
    for http in MODES:
        of = {n: per_seed(data, "main", f"gateway.{n}", proxy="HTTP", http=http).mean() for n in ("requests", "hits")}
        opened = per_seed(data, "main", "gateway.server_connections", proxy="HTTP", http=http).mean()
        found.append([http, f"{of['requests']:.0f}", f"{of['hits'] / of['requests']:.1%}", f"{opened:.1f}"])
    return ["HTTP", "requests", "from the proxy's cache", "connections to servers"], found


def nagle_map(data: Data) -> Table:
    """N03: the mean of one object through a TCP proxy less that without, ms, by what the proxy does."""
    found = []
    for policy in POLICIES:
        for http in ("no keep-alive", "keep-alive"):
            for size in SIZES:
                cells = [mean_interval(of_policy(data, policy, t, size, http) * 1e3) for t in (20, 100, 200, 400)]
                found.append([policy, http, size, *(f"{c.value:+.0f} ± {(c.high - c.low) / 2:.0f}" for c in cells)])
    return ["TCP proxy", "HTTP", "object", "T = 20 ms", "100 ms", "200 ms", "400 ms"], found


def of_policy(data: Data, policy: str, t: int, size: str, http: str) -> Any:
    """Seconds that an object takes longer through the proxy, one number per seed, without the first object."""
    ours, direct = (
        times(data, "policies", proxy=proxy, t=t, size=size, http=http)[:, 1:].mean(axis=1)
        for proxy in (policy, "no proxy")
    )
    return ours - direct


def shares(data: Data) -> Table:
    """N24: the share of the variance of log page time within pages that a factor explains by itself."""
    nine = {(p, h): main(data, p, h) for p in PROXIES for h in MODES}
    both, single = explained(nine)
    found = [
        ["proxy and use of HTTP together", "main", f"{both:.1%}"],
        ["use of HTTP", "main", f"{single[1]:.1%}"],
        ["proxy", "main", f"{single[0]:.1%}"],
    ]
    of_delay = {(p, t): at_delay(data, p, t) for p in PROXIES for t in sorted(DELAYS)}
    of_loss = {(p, x): at_loss(data, p, x) for p in PROXIES for x in LOSSES}
    found.append(["T, 5 to 400 ms", "delay", f"{explained(of_delay)[1][1]:.1%}"])
    found.append(["loss, 0 to 5 %", "loss", f"{explained(of_loss)[1][1]:.1%}"])
    return ["factor", "sweep", "share"], found


def connection_shares(data: Data) -> Table:
    """N24: how many connections the browser has."""
    limits = ("2, 4, 24", "6, 6, 24", "8, 8, 24")
    over = {(p, c): times(data, "connections", proxy=p, limits=c) for p in PROXIES for c in limits}
    found = [["connections", f"{explained(over)[1][1]:.1%}"]]
    found += [[f"{p}, {c}: mean", f"{over[p, c].mean():.2f} s"] for p in PROXIES for c in limits]
    return ["factor", "share or mean"], found


def squid_variants(data: Data) -> Table:
    """N05, N08, N25: the HTTP proxy with other settings."""
    names = ("one at a time", "four at a time", "no cache", "transparent")
    found = [[p, *(interval(_by_seed(data, "squid", proxy=p, http=h)) for h in MODES)] for p in names]
    return ["HTTP proxy", *(f"{h} (s)" for h in MODES)], found


def squid_over_delay(data: Data) -> Table:
    """N08: with pipelining, by what the HTTP proxy does with it."""
    at = (20, 100, 200, 400)
    names = ("none", "one at a time", "four at a time")
    found = [[p, *(interval(_by_seed(data, "squid-delay", proxy=p, t=t)) for t in at)] for p in names]
    return ["HTTP proxy", *(f"T = {t} ms (s)" for t in at)], found


def _by_seed(data: Data, sweep: str, **where: Any) -> Any:
    """Mean page times, one for each seed."""
    return times(data, sweep, **where).mean(axis=1)


def http2(data: Data) -> Table:
    """HTTP/2 in place of pipelining."""
    found = []
    for proxy in H2_PROXIES:
        of = [main(data, proxy, "keep-alive"), main(data, proxy, "pipelining"), times(data, "http2", proxy=proxy)]
        found.append([proxy, *(f"{x.mean():.2f}" for x in of)])
    return ["proxy", "keep-alive (s)", "pipelining (s)", "HTTP/2 (s)"], found


def optimised(data: Data) -> Table:
    """N14."""
    found = []
    for proxy in ("no proxy", "plain", "optimised"):
        of = [times(data, "stack", proxy=proxy, t=t) for t in (20, 100, 200, 400)]
        of.append(times(data, "hsdpa", proxy=proxy))
        found.append([proxy, *(f"{x.mean():.2f}" for x in of)])
    return ["TCP proxy", "T = 20 ms (s)", "100 ms", "200 ms", "400 ms", "HSDPA, cross-traffic (s)"], found


def whole_list(data: Data) -> Table:
    """All 135 pages."""
    found = []
    for proxy in PROXIES:
        of = [of_whole_list(data, proxy, http) for http in MODES]
        found.append([proxy, *(f"{x.mean():.2f} / {np.median(x):.2f}" for x in of)])
    return ["proxy", *(f"{h}: mean / median (s)" for h in MODES)], found


TABLES = {
    "bars": StudyTable("Means and medians of nine configurations (N21)", means_and_medians),
    "hits": StudyTable("What the HTTP proxy answers itself (N25)", hit_rates),
    "nagle": StudyTable("One object through a TCP proxy less the same without, ms (N03)", nagle_map),
    "spread": StudyTable("What explains the spread (N24)", shares),
    "connections": StudyTable("Connections of the browser (N24)", connection_shares),
    "squid": StudyTable(
        "The HTTP proxy with other settings (N05, N08, N25)",
        squid_variants,
        "How many pipelined requests of a connection it works on at a time; with no cache; and transparent, where each"
        " server has connections of its own.",
    ),
    "squid-delay": StudyTable(
        "Pipelining through the HTTP proxy over T (N08)",
        squid_over_delay,
        "A page without proxy, and through one that works on one or four of a connection's requests at a time.",
    ),
    "http2": StudyTable("HTTP/2 in place of pipelining", http2),
    "optimised": StudyTable("An optimised stack towards the radio (N14)", optimised),
    "pages": StudyTable("All 135 pages", whole_list),
}
