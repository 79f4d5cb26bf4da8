"""The configurations that are measured between real programs, and their names."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

#: The proxies and the uses of HTTP of the slides.
PROXIES = ("none", "TCP", "HTTP")
MODES = ("no keep-alive", "keep-alive", "pipelining")
#: The TCP proxy's forwarder with other rules than Linux's own, and Squid that keeps nothing.
VARIANTS = ("TCP, Nagle off", "TCP, RFC 896", "HTTP, no cache")
EVERY = (*PROXIES, *VARIANTS)
#: One-way delays of the internet (ms) and its losses; the first of each is that of the nine of the slides.
DELAYS = (20, 5, 50, 100, 200, 400)
LOSSES = (0, 0.005, 0.01, 0.02, 0.05)


class Way(NamedTuple):
    """One configuration."""

    proxy: str
    http: str = "keep-alive"
    #: One-way delay (ms) and loss of the internet.
    t: int = DELAYS[0]
    loss: float = LOSSES[0]

    @property
    def kind(self) -> str:
        """Which of the three proxies it is, whatever its settings."""
        return self.proxy.split(",")[0]


def varied(proxy: str, what: str, x: float) -> Way:
    """A proxy with keep-alive where `what`, `t` or `loss`, is `x`, and the other as it is elsewhere."""
    return Way(proxy, t=round(x)) if what == "t" else Way(proxy, loss=x)


#: The nine of the slides; the proxies with another setting; then T and loss with keep-alive: without proxy at every
#: point, with one where something is said of it, and where a slope needs it.
WAYS = (
    *(Way(*names) for names in product(PROXIES, MODES)),
    *(Way(*names) for names in product(("TCP, Nagle off", "TCP, RFC 896"), MODES)),
    Way("HTTP, no cache"),
    *(Way("none", t=t) for t in sorted(DELAYS) if t != DELAYS[0]),
    *(Way("none", loss=loss) for loss in LOSSES[1:]),
    *(Way("TCP", t=t) for t in (100, 200, 400)),
    *(Way("TCP", loss=loss) for loss in (0.02, 0.05)),
    *(Way("HTTP", t=t, loss=loss) for t, loss in ((400, 0.0), (20, 0.05))),
)
#: What a quick measurement has.
FEW_WAYS = (Way("none"), Way("none", "pipelining"), Way("TCP"), Way("HTTP"))


def said(proxy: str) -> str:
    """A proxy in words."""
    return "no proxy" if proxy == "none" else f"{proxy} proxy"
