"""N15 to N19: what the runs say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from airloom.run import Run
from airloom.study import Data, Evidence, Setting


def whole(data: Data, proxy: str = "none") -> Run:
    """A run that was kept whole: the list, twice."""
    data.at_default_only()
    return data.run("whole", proxy=proxy)


def setting(of: Callable[[dict[str, Any]], Any], proxy: str = "none") -> Callable[[Data], Evidence]:
    """A value of the scenario as the run understood it."""
    return lambda data: Setting(of(whole(data, proxy).manifest["scenario"]))


def radio(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the radio link, by direction."""
    name, direction = key.split(".")

    def of(scenario: dict[str, Any]) -> Any:
        found = scenario["links"]["radio"][name]
        return found[direction] if isinstance(found, dict) else found

    return of


def browser(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the browser."""
    return lambda scenario: scenario["hosts"]["mobile"]["app"][0]["http-client"][key]


def server(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the main server."""
    return lambda scenario: scenario["hosts"]["www"]["app"][0]["http-server"][key]


def proxy(key: str) -> Callable[[dict[str, Any]], Any]:
    """Of the HTTP proxy."""
    return lambda scenario: scenario["hosts"]["gateway"]["proxy"]["http-cache"][key]


def lost(direction: str) -> Callable[[Data], Evidence]:
    """The share of transport blocks that were lost, counted in the run."""

    def compute(data: Data) -> Evidence:
        summary = whole(data).summary
        return Setting(summary[f"radio.{direction}.blocks_lost"] / summary[f"radio.{direction}.blocks"], "1")

    return compute


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
    """N19."""
    from airloom import page_sets

    is_news = browser("page_set")(whole(data).manifest["scenario"]) == "news-2004"
    return Setting(len(page_sets.news().pages) if is_news else 0)


def several_servers(data: Data) -> Evidence:
    """N19."""
    hosts = objects(data, "none").with_columns(pl.col("url").str.split("/").list.get(2).alias("host"))
    return Setting(bool((hosts.group_by("page").agg(pl.col("host").n_unique())["host"] > 1).all()))


COMPUTE: dict[str, Callable[[Data], Evidence]] = {
    "N15.downlink": setting(radio("rate.downlink")),
    "N15.uplink": setting(radio("rate.uplink")),
    "N15.loss-downlink": lost("downlink"),
    "N15.loss-uplink": lost("uplink"),
    "N16.version": setting(browser("http")),
    "N16.cache": setting(browser("cache")),
    "N16.small": only_small_ones_are_kept,
    "N17.requests": setting(server("max_requests")),
    "N17.timeout": setting(server("idle_timeout")),
    "N18.memory": setting(proxy("capacity"), "HTTP"),
    "N18.forced": setting(proxy("assume_fresh"), "HTTP"),
    "N19.pages": pages_of_the_list,
    "N19.related": several_servers,
}
