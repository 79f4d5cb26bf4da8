"""Slow and fast bearers (sections 6 and 7): WAP against HTTP/TCP, and HTTP and TLS through a proxy, over a wire."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from airloom.study import Data, Evidence, exact

from .http_side import OBJECT, SIZES

#: Speeds that were swept, kbit/s.
RATES = (9.6, 14.4, 28.8, 64, 128, 384, 1000, 2000, 10000, 100000)

#: Packets of a group, as in sweep.toml; contents, likewise: encoded by our gateway, by the paper's, or as they are.
LARGE, SMALL = "32 Kbytes", "3"
OURS, PAPER, PLAIN = "ours", "paper", "plain"


def load_s(data: Data, sweep: str, **where: Any) -> float:
    """How long the page took in the one run with these labels, s; infinite if it was given up."""
    data.at_default_only()
    took = data.table(sweep, "pages", page=OBJECT, **where)["load_ns"][0]
    return float("inf") if took is None else float(took) / 1e9


def ratio(
    data: Data, size: int, rate: float, round_trip: int = 260, *, group: str = LARGE, content: str = OURS
) -> float:
    """Time by WAP over that by HTTP/TCP; infinite if WAP gives up."""
    where: dict[str, Any] = {"size": size, "rate": rate, "round_trip": round_trip}
    return load_s(data, "bearers-wap", group=group, content=content, **where) / load_s(data, "bearers-http", **where)


def geometric(found: list[float]) -> float:
    """Their geometric mean."""
    return float(np.exp(np.mean(np.log(found))))


def folded(rate: float, fold: Callable[[list[float]], float], data: Data, **how: Any) -> Evidence:
    """U19, U29: the ratios over the sizes, folded into one."""
    return exact(fold([ratio(data, size, rate, **how) for size in SIZES]), "of HTTP/TCP")


def over_tls(rate: float, data: Data, **how: Any) -> Evidence:
    """U19: time by WAP over that by HTTP and TLS through a tunnel of the proxy, geometric mean over the sizes."""
    found = []
    for size in SIZES:
        where: dict[str, Any] = {"size": size, "rate": rate, "round_trip": 260}
        by_wap = load_s(data, "bearers-wap", **{"group": LARGE, "content": OURS, **how}, **where)
        found.append(by_wap / load_s(data, "bearers-tls", **where))
    return exact(geometric(found), "of HTTP/TLS")


def through_the_tunnel(data: Data) -> Evidence:
    """U19: the share of objects that came through the proxy under TLS from end to end."""
    data.at_default_only()
    pages = data.table("bearers-tls", "pages")
    return exact(1 - float(pages["failed"].sum()) / float(pages["objects"].sum()), "of all")


def crossing(data: Data, **how: Any) -> Evidence:
    """U29: the lowest swept speed from which on HTTP/TCP leads at 100 Kbytes.

    Zero if it leads at every speed, infinite if it does not stay so.
    """
    lowest = float("inf")
    for rate in reversed(RATES):
        if ratio(data, 100, rate, **how) <= 1:
            break
        lowest = rate
    return exact(0.0 if lowest == RATES[0] else lowest, "kbit/s")


def fastest(sizes: tuple[int, ...], data: Data) -> Evidence:
    """U35: 100 Mbit/s and 20 ms, content as it is; of several sizes the ratio that is farthest from 1."""
    found = [ratio(data, size, 100000, 20, content=PLAIN) for size in sizes]
    return exact(max(found, key=lambda r: abs(np.log(r))), "of HTTP/TCP")


COMPUTE = {
    "U19.wap-slow": partial(folded, 9.6, geometric),
    "U19.wap-slow-paper": partial(folded, 9.6, geometric, group=SMALL, content=PAPER),
    "U19.wap-fast": partial(folded, 2000, geometric),
    "U19.wap-fast-paper": partial(folded, 2000, geometric, group=SMALL, content=PAPER),
    "U19.tls-slow": partial(over_tls, 9.6),
    "U19.tls-fast": partial(over_tls, 2000),
    "U19.tls-fast-paper": partial(over_tls, 2000, group=SMALL, content=PAPER),
    "U19.tunnel": through_the_tunnel,
    "U29.slow": partial(folded, 9.6, max),
    "U29.slow-groups": partial(folded, 9.6, max, group=SMALL),
    "U29.slow-paper": partial(folded, 9.6, max, group=SMALL, content=PAPER),
    "U29.fast": partial(folded, 2000, min),
    "U29.fast-paper": partial(folded, 2000, min, group=SMALL, content=PAPER),
    "U29.crossing": crossing,
    "U29.crossing-paper": partial(crossing, group=SMALL, content=PAPER),
    "U35.small": partial(fastest, (1, 10)),
    "U35.large": partial(fastest, (100,)),
}
