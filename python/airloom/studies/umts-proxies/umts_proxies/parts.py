"""N15 to N19: the set-up, read off the records of runs; what is read back from the scenario alone is `given`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl

from airloom import page_sets
from airloom.run import Run
from airloom.study import Computation, Data, Evidence, Setting


def whole(data: Data, proxy: str = "none") -> Run:
    """A run that was kept whole: the list, twice."""
    data.at_default_only()
    return data.run("whole", proxy=proxy)


def setting(of: Callable[[dict[str, Any]], Any], data: Data, proxy: str = "none") -> Evidence:
    """A value of the scenario as the run understood it."""
    return Setting(of(whole(data, proxy).manifest["scenario"]))


def browser(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the browser."""
    return lambda scenario: scenario["hosts"]["mobile"]["app"][0]["http-client"][key]


def proxy(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the HTTP proxy."""
    return lambda scenario: scenario["hosts"]["gateway"]["proxy"]["http-cache"][key]


def packets(data: Data, proxy: str = "none") -> pl.DataFrame:
    """Every packet and PDU of the run."""
    return whole(data, proxy).packets.with_columns(pl.col("point", "dir", "event").cast(pl.String))


#: Octets of a PDU's header (TS 25.322, 9.2.1.4), and seconds of an interval.
_HEADER, _TTI_S = 2, 0.02
#: A server that says nothing for so long has nothing to say.
_SILENCE_NS = 5_000_000_000


def rate(direction: str, data: Data) -> Evidence:
    """What the fullest interval carries: octets of PDUs without their headers, as kbit/s."""
    at = {"downlink": "radio.rlc.dl.tx", "uplink": "radio.rlc.ul.tx"}[direction]
    found = packets(data).filter((pl.col("point") == at) & pl.col("event").is_in(["tx", "retx"]))
    of = found.group_by("t_ns").agg((pl.col("len").cast(pl.Int64) - _HEADER).sum())["len"].max()
    return Setting(int(of) * 8 / _TTI_S / 1e3, "kbit/s")  # type: ignore[arg-type]


def requests_of_a_connection(data: Data) -> Evidence:
    """N17: the most that one carried."""
    found = objects(data, "none").filter(pl.col("source") == "network")["request"].max()
    return Setting(int(found))  # type: ignore[arg-type]


def patience(data: Data) -> Evidence:
    """N17: seconds from the last request on a connection to the server's end of it, the median of those that it ended.

    That end is the first word of the server after a long silence: an answer takes a round trip or two.
    """
    at = [f"{server}.to-{server}.ip" for server in page_sets.news().servers]
    found = packets(data).filter(pl.col("point").is_in(at)).sort("t_ns")
    # Nothing but a request is longer than an acknowledgement on its way to a server.
    requests = found.filter((pl.col("dir") == "ul") & (pl.col("len") > 100))
    asked = requests.group_by("flow").agg(asked=pl.col("t_ns").max())
    said = found.filter(pl.col("dir") == "dl").join(asked, on="flow").filter(pl.col("t_ns") > pl.col("asked"))
    silence = pl.col("t_ns") - pl.max_horizontal(pl.col("t_ns").shift().over("flow"), "asked")
    ends = said.filter(silence > _SILENCE_NS).group_by("flow").agg((pl.col("t_ns") - pl.col("asked")).min())
    return Setting(float(ends["t_ns"].median()) / 1e9, "s")  # type: ignore[arg-type]


def cache_of_the_proxy(data: Data) -> Evidence:
    """N18: more went through it than it may keep, and what it keeps in the end is not more."""
    summary = whole(data, "HTTP").summary
    return Setting(summary["gateway.kept_bytes"] <= 1e6 < summary["gateway.server_bytes"])


def lost(direction: str, data: Data) -> Evidence:
    """The share of transport blocks that were lost, counted in the run."""
    summary = whole(data).summary
    return Setting(summary[f"radio.{direction}.blocks_lost"] / summary[f"radio.{direction}.blocks"], "1")


def objects(data: Data, proxy: str) -> pl.DataFrame:
    """Objects of both rounds."""
    return whole(data, proxy).objects.with_columns(pl.col("source").cast(pl.String))


def only_small_ones_are_kept(data: Data) -> Evidence:
    """N16: of what came from the browser's cache nothing is large and nothing changes."""
    found = objects(data, "none")
    kept = found.filter(pl.col("source") == "cache")["url"].unique()
    sizes = found.filter(pl.col("source") == "network").filter(pl.col("url").is_in(kept.implode()))["bytes"]
    return Setting(len(kept) > 0 and bool(sizes.max() <= 2_000) and not kept.str.contains("visit=").any())  # type: ignore[operator]


def pages_of_the_list(data: Data) -> Evidence:
    """N19: different pages that the browser loaded in a cycle."""
    data.at_default_only()
    cycle = data.run("cycle").pages
    return Setting(cycle.filter(pl.col("load_ns").is_not_null())["url"].n_unique())


def several_servers(data: Data) -> Evidence:
    """N19."""
    hosts = objects(data, "none").with_columns(pl.col("url").str.split("/").list.get(2).alias("host"))
    return Setting(bool((hosts.group_by("page").agg(pl.col("host").n_unique())["host"] > 1).all()))


COMPUTE: dict[str, Computation] = {
    "N15.downlink": partial(rate, "downlink"),
    "N15.uplink": partial(rate, "uplink"),
    "N15.loss-downlink": partial(lost, "downlink"),
    "N15.loss-uplink": partial(lost, "uplink"),
    "N16.version": partial(setting, browser("http")),
    "N16.cache": partial(setting, browser("cache")),
    "N16.small": only_small_ones_are_kept,
    "N17.requests": requests_of_a_connection,
    "N17.timeout": patience,
    "N18.memory": cache_of_the_proxy,
    "N18.forced": partial(setting, proxy("assume_fresh"), proxy="HTTP"),
    "N19.pages": pages_of_the_list,
    "N19.related": several_servers,
}
