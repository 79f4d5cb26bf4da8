"""WAP, and WAP against HTTP/TCP: sections 5.1 and 5.3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airloom.analysis.sequences import plain
from airloom.run import Run
from airloom.study import Data, Evidence, NotSwept, Numbers, exact, pair, value
from airloom.study.rules import Setting

from .http_side import DOWNLINKS, ERRORS, OBJECT, echo_ms, milliseconds, round_trip_ms
from .http_side import response as http

#: Response times, one number per seed, by WAP or HTTP/TCP.
Times = Callable[..., Numbers]

#: Half of the client's pause between two pages, ns.
HALF_PAUSE = 2_500_000_000

#: Octets of IP and UDP.
HEADERS = 28


def wap(data: Data, sweep: str = "core-wap", **where: Any) -> Numbers:
    """Response time by WAP in seconds, one number per seed."""
    return http(data, sweep, **where)


def both(first: Times, second: Times, size: int, downlink: int, data: Data, unit: str = "s") -> Evidence:
    """WAP against HTTP/TCP, or the other way round, under the same seeds."""
    where: dict[str, Any] = {"size": size, "downlink": downlink, "fer": ERRORS}
    return pair(first(data, **where), second(data, **where), unit)


first_is_wap, first_is_http = partial(both, wap, http), partial(both, http, wap)


# ---- captures ------------------------------------------------------------------------------------------------------


def datagrams(run: Run) -> pl.DataFrame:
    """Datagrams of WAP where they meet a host, from the request for the object on."""
    begun = int(run.pages.filter(pl.col("page") == run.pages["page"].max())["start_ns"][0])
    return plain(run.packets).filter((pl.col("proto") == "udp") & (pl.col("t_ns") >= begun))


def sent_by_gateway(run: Run) -> pl.DataFrame:
    """Packets with content that the gateway sent for the object."""
    seen = datagrams(run)
    at = seen.filter((pl.col("point") == "gateway.radio.ip") & (pl.col("event") == "tx"))
    return at.filter(pl.col("len") > HEADERS + 100)


def acks_at_gateway(run: Run) -> NDArray[np.int64]:
    """When something of the client reached the gateway after the first packet of the object left, ns."""
    seen = datagrams(run)
    first = int(sent_by_gateway(run)["t_ns"][0])
    came = seen.filter((pl.col("point") == "gateway.radio.ip") & (pl.col("event") == "rx") & (pl.col("t_ns") > first))
    return came["t_ns"].to_numpy()


def arrivals(run: Run) -> NDArray[np.int64]:
    """When packets with content reached the client, ns."""
    seen = datagrams(run)
    at = seen.filter((pl.col("point") == "mobile.radio.ip") & (pl.col("event") == "rx"))
    return at.filter(pl.col("len") > HEADERS + 100)["t_ns"].to_numpy()


def first_group(run: Run) -> pl.DataFrame:
    """Packets that leave the gateway before anything of the object is acknowledged."""
    sent, acks = sent_by_gateway(run), acks_at_gateway(run)
    # The run may be over before the acknowledgement of an only group is there.
    return sent.filter(pl.col("t_ns") < acks[0]) if len(acks) else sent


def at_once(data: Data) -> Evidence:
    """U15: how many these are at 10 Kbytes."""
    return exact(first_group(data.run("capture-wap", size=10, downlink=384, fer=0)).height, "packets")


def packets_of_10(data: Data) -> Evidence:
    """U24: packets for 10 Kbytes, without errors."""
    return exact(sent_by_gateway(data.run("capture-wap", size=10, downlink=384, fer=0)).height, "packets")


def pauses(data: Data) -> Numbers:
    """Pauses of arrivals at the client within 100 Kbytes, in idle round-trip times of the run's link."""
    run = data.run("capture-wap", size=100, downlink=384, fer=0)
    if run.summary["downlink.blocks_lost"] > 0:
        raise NotSwept("this reading has errors, and the statement is about none")
    found: Numbers = np.diff(arrivals(run)) / 1e6 / round_trip_ms(data, run)
    return found


def longest_pause(data: Data) -> Evidence:
    """U17: the longest one."""
    return exact(float(pauses(data).max()), "round-trip times")


def waits(data: Data) -> Evidence:
    """U17: those of more than half a round-trip time."""
    return exact(int((pauses(data) > 0.5).sum()), "pauses")


def set_up(data: Data) -> Evidence:
    """U11: round trips before the first request of a new session, by the time it takes."""
    run = data.default.run("capture-wap", size=1, downlink=384, fer=0)
    return exact(opening_ns(run) / 1e6 / echo_ms(data), "round trips")


def pull(data: Data) -> Evidence:
    """U11: packets from asking to having a response that fits into one."""
    return exact(packets_of_pull(data), "packets")


def packets_of_pull(data: Data) -> int:
    """Datagrams that are sent until 1 Kbyte is there."""
    run = data.default.run("capture-wap", size=1, downlink=384, fer=0)
    page = run.pages.filter(pl.col("page") == OBJECT)
    done = int(page["start_ns"][0]) + int(page["load_ns"][0])
    return datagrams(run).filter((pl.col("event") == "tx") & (pl.col("t_ns") < done)).height


def opening_ns(run: Run) -> int:
    """How long the session takes to open: from the first datagram to the first that answers it, ns."""
    seen = plain(run.packets).filter((pl.col("proto") == "udp") & (pl.col("point") == "mobile.radio.ip"))
    asked = int(seen.filter(pl.col("event") == "tx")["t_ns"][0])
    return int(seen.filter(pl.col("event") == "rx")["t_ns"][0]) - asked


def closure(data: Data) -> Evidence:
    """U11: datagrams after the acknowledgement of the last result, before the next session opens."""
    run = data.default.run("sequence-wap")
    seen = plain(run.packets).filter((pl.col("proto") == "udp") & (pl.col("event") == "tx"))
    first = int(run.pages["start_ns"][0])
    done = first + int(run.pages["load_ns"][0])
    after = seen.filter((pl.col("t_ns") >= done) & (pl.col("t_ns") < int(run.pages["start_ns"][1]) - HALF_PAUSE))
    return exact(after.height - 1, "packets")  # one is the acknowledgement


# ---- sections 5.1 to 6 ---------------------------------------------------------------------------------------------


def asynchronous(data: Data) -> Evidence:
    """U18: five objects of 1 Kbyte, the first alone."""
    data.at_default_only()
    how = ("asynchronous", "one by one")
    together, alone = (wap(data, "several-wap", count=5, transactions=each) for each in how)
    return pair(together, alone, "s")


def settings_of_wtp(data: Data) -> Evidence:
    """U23: repetition intervals of group and result, s, as the gateway was told."""
    run = data.run("capture-wap", size=10, downlink=384, fer=0)
    gateway = run.manifest["scenario"]["hosts"]["gateway"]["proxy"]["wap-gateway"]["wtp"]
    return Setting([milliseconds(gateway[key]) / 1e3 for key in ("retry_group", "retry_long")])


def group_sent(data: Data) -> Evidence:
    """U23: octets of the first group of 100 Kbytes."""
    first = first_group(data.run("capture-wap", size=100, downlink=384, fer=0))
    return exact(int((first["len"] - HEADERS).sum()), "octets")


def own_session(data: Data) -> Evidence:
    """U11: 1 Kbyte with a session of its own, and in one that is open, both without errors."""
    data.at_default_only()
    own = wap(data, "connect", headers=50)
    return pair(own, wap(data, size=1, downlink=384, fer=0)[: len(own)], "s")


def break_even(request: int, data: Data) -> Evidence:
    """U36: gateway time at which both take the same at 1 Kbyte.

    The gateway's time adds as it is (U36.slope), so it is the difference without any.
    """
    data.at_default_only()
    without = wap(data, "gateway", gateway=0, request=100)
    return value((http(data, "request", request=request) - without) * 1e3, "ms")


def grows_with_request(data: Data) -> Evidence:
    """U36: 1 kB with an HTTP request of 600 octets and of 150: so much more the gateway may take."""
    data.at_default_only()
    return pair(http(data, "request", request=600), http(data, "request", request=150), "s")


def at_60_ms(data: Data) -> Evidence:
    """U36: 1 kB by HTTP/TCP, and by WAP through a gateway that takes 60 ms."""
    data.at_default_only()
    return pair(http(data, "request", request=300), wap(data, "gateway", gateway=60, request=100), "s")


def slope(data: Data) -> Evidence:
    """U36: what a gateway time of 150 ms adds, per ms."""
    data.at_default_only()
    long, none = (wap(data, "gateway", gateway=ms, request=100) for ms in (150, 0))
    return value((long - none) * 1e3 / 150, "")


def no_groups(data: Data) -> Evidence:
    """Control: 100 kB in one group, against groups of 32 Kbytes."""
    data.at_default_only()
    whole = wap(data, "one-group")
    return pair(whole, wap(data, size=100, downlink=384, fer=ERRORS)[: len(whole)], "s")


def applications(data: Data) -> Evidence:
    """U20: share of Table 2's applications that work."""
    works = data.program("applications")["applications"]
    return exact(sum(works.values()) / len(works), "of them")


def parts(data: Data) -> Evidence:
    """U32: the parts of WAP that were used and worked."""
    return Setting([name for name, works in data.program("applications")["parts"].items() if works])


def capacity(kind: str, data: Data) -> Evidence:
    """U31: replies per CPU second of the daemon, one number a batch, against content that is passed through."""
    rates = data.program("gateway")["replies_per_cpu_s"]
    return pair(rates[kind], rates["passed through"], "")


COMPUTE = {
    "U11.wap-set-up": set_up,
    "U11.wap-pull": pull,
    "U11.wap-closure": closure,
    "U11.no-set-up": own_session,
    **{f"U13.{size}-{rate}": partial(first_is_wap, size, rate) for size in (1, 10) for rate in DOWNLINKS},
    "U13.100": partial(first_is_wap, 100, 384, unit=""),
    "U14.ordering": partial(first_is_http, 1, 384),
    "U14.ordering-64": partial(first_is_http, 1, 64),
    "U14.size": partial(first_is_http, 1, 384),
    "U15.ordering": partial(first_is_wap, 10, 384),
    "U15.ordering-64": partial(first_is_wap, 10, 64),
    "U15.size": partial(first_is_wap, 10, 384),
    "U15.size-64": partial(first_is_wap, 10, 64),
    "U15.seven-at-once": at_once,
    "U16.ordering": partial(first_is_http, 100, 384),
    "U16.ordering-64": partial(first_is_http, 100, 64),
    "U17.wap": longest_pause,
    "U17.groups": waits,
    "U18.time": asynchronous,
    "U20": applications,
    "U22.session": lambda data: Setting(packets_of_pull(data), "packets"),
    "U23.wtp": settings_of_wtp,
    "U23.group": group_sent,
    "U24": packets_of_10,
    "U32": parts,
    "U31.conversion": partial(capacity, "converted from HTML"),
    "U31.encoding": partial(capacity, "encoded"),
    **{f"U36.{request}": partial(break_even, request) for request in (150, 300, 600)},
    "U36.slope": slope,
    "U36.grows": grows_with_request,
    "U36.turns": at_60_ms,
    "U36.turns-size": at_60_ms,
    "one-group": no_groups,
}
