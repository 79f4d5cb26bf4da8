"""N05, N13, N18 in real time: rows that were measured with real programs, against the same pages in virtual time.

The rows are a file `real.json` in the study's results:

    {"rows": [["none", "keep-alive", 6, 1, 9.1], ...]}

with the columns `proxy`, `http`, `page`, `seed`, `load_s`. `proxy` is `none`, `TCP` (a forwarder of some 60 lines
with Nagle's rule) or `HTTP` (Squid), `http` as in the sweeps, `page` the number in the set. Without it these claims
are not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from airloom.errors import UsageError
from airloom.study import Data, Evidence, exact, pair

from .loads import MODES, PROXIES, rows, spearman

#: Columns of a row.
COLUMNS = {
    "proxy": pl.String,
    "http": pl.String,
    "page": pl.Int64,
    "seed": pl.Int64,
    "load_s": pl.Float64,
}


def measured(data: Data) -> pl.DataFrame:
    """The rows. Raises `UsageError`, one line, for a file that is none of them, `NotMade` without a file."""
    return checked(data.program("real"))


def checked(found: Any) -> pl.DataFrame:
    """The rows of a file, if they are rows."""
    try:
        table = pl.DataFrame(found["rows"], schema=COLUMNS, orient="row")
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        said = " ".join(str(error).split())[:160]
        raise UsageError(f"real.json: rows are {', '.join(COLUMNS)}: {said}") from None
    known = table["proxy"].is_in(PROXIES).all() and table["http"].is_in(MODES).all()
    times = table["load_s"].to_list()
    if not known or table.is_empty() or not all(t is not None and math.isfinite(t) and t > 0 for t in times):
        raise UsageError(f"real.json: proxies are {', '.join(PROXIES)}, http is {', '.join(MODES)}, times are above 0")
    return table


def both(data: Data) -> pl.DataFrame:
    """Mean times of each page in each configuration, `real_s` and `virtual_s`, of pages that both have.

    Virtual time has Linux's TCP here, which is that of the real programs.
    """
    table = measured(data)
    visits = visited(data)
    virtual = []
    for proxy in PROXIES:
        for http in MODES:
            found = rows(data, "clocks", proxy=proxy, http=http)
            places = [visits[(n - 1) % len(visits)] for n in found["page"]]
            virtual.append(
                pl.DataFrame({"page": places, "virtual_s": found["load_ns"].to_numpy() / 1e9})
                .group_by("page")
                .agg(pl.col("virtual_s").mean())
                .with_columns(proxy=pl.lit(proxy), http=pl.lit(http))
            )
    real = table.group_by("proxy", "http", "page").agg(pl.col("load_s").mean().alias("real_s"))
    joined = real.join(pl.concat(virtual), on=["proxy", "http", "page"]).sort("proxy", "http", "page")
    if joined.is_empty():
        raise UsageError("real.json: none of its pages is one that the study loads")
    return joined


def visited(data: Data) -> list[int]:
    """The pages of the list, by their number in the set."""
    scenario = data.run("whole", proxy="none").manifest["scenario"]
    found: list[int] = scenario["hosts"]["mobile"]["app"][0]["http-client"]["visit"]
    return found


def means(data: Data) -> Evidence:
    """N13: the mean of each configuration, in both clocks."""
    found = both(data).group_by("proxy", "http", maintain_order=True).agg(pl.col("real_s", "virtual_s").mean())
    return pair(found["real_s"].to_numpy(), found["virtual_s"].to_numpy(), "s")


def ranks(data: Data) -> Evidence:
    """N13: the order of pages, over all configurations."""
    found = both(data).group_by("page", maintain_order=True).agg(pl.col("real_s", "virtual_s").mean())
    return exact(spearman(found["real_s"], found["virtual_s"]), "rank correlation")


def real_gain(data: Data, proxy: str) -> pl.DataFrame:
    """What each page gains by pipelining."""
    of = measured(data).filter(pl.col("proxy") == proxy).group_by("page", "http").agg(pl.col("load_s").mean())
    first, second = (
        of.filter(pl.col("http") == http).select("page", pl.col("load_s").alias(http))
        for http in ("keep-alive", "pipelining")
    )
    return first.join(second, on="page").select("page", (pl.col("keep-alive") - pl.col("pipelining")).alias(proxy))


def squid(data: Data) -> Evidence:
    """N05 with Squid itself."""
    found = real_gain(data, "HTTP").join(real_gain(data, "none"), on="page").sort("page")
    return pair(found["HTTP"].to_numpy(), found["none"].to_numpy(), "s")


def forwarder(data: Data) -> Evidence:
    """N18: the forwarder with Nagle's rule, between real ends, with keep-alive."""
    of = measured(data).filter(pl.col("http") == "keep-alive").group_by("page", "proxy").agg(pl.col("load_s").mean())
    first, second = (
        of.filter(pl.col("proxy") == proxy).select("page", pl.col("load_s").alias(proxy)) for proxy in ("TCP", "none")
    )
    found = first.join(second, on="page").sort("page")
    return pair(np.asarray(found["TCP"]), np.asarray(found["none"]), "s")


def clocks(data: Data) -> tuple[list[str], list[list[str]]]:
    """N13: means of the fifteen pages in both clocks, and in a browser of today, each page of which begins anew."""
    data.at_default_only()
    found = both(data).group_by("proxy", "http", maintain_order=True).agg(pl.col("real_s", "virtual_s").mean())
    today = data.program("real").get("chromium") or []
    cells = []
    for row in found.iter_rows(named=True):
        of = [r[4] for r in today if (r[0], r[1]) == (row["proxy"], row["http"])]
        shown = f"{np.mean(of):.2f} ({len(of)} pages)" if of else "–"
        ratio = row["real_s"] / row["virtual_s"]
        cells.append(
            [row["proxy"], row["http"], f"{row['virtual_s']:.2f}", f"{row['real_s']:.2f}", f"{ratio:.2f}", shown]
        )
    return ["proxy", "HTTP", "virtual (s)", "real (s)", "real / virtual", "Chromium (s)"], cells


def scatter(data: Data) -> Figure:
    """N13: each page of each configuration, in real time against virtual time."""
    data.at_default_only()
    found = both(data)
    figure = Figure(figsize=(5.0, 4.4), layout="constrained")
    axes = figure.subplots()
    for proxy, mark in zip(PROXIES, ("o", "s", "^"), strict=True):
        of = found.filter(pl.col("proxy") == proxy)
        said = "no proxy" if proxy == "none" else f"{proxy} proxy"
        axes.plot(of["virtual_s"], of["real_s"], mark, markersize=4, fillstyle="none", color="black", label=said)
    most = float(max(found["virtual_s"].max(), found["real_s"].max()))  # type: ignore[arg-type,type-var]
    axes.plot((0, most), (0, most), linewidth=0.6, color="black")
    axes.set_xlabel("page time in virtual time (s)")
    axes.set_ylabel("page time in real time (s)")
    axes.legend(fontsize=8)
    return figure


TABLES = {"Both clocks, and a browser of today (N13)": clocks}
FIGURES = {"clocks": ("Pages in both clocks (N13)", scatter)}

COMPUTE: dict[str, Callable[[Data], Evidence]] = {
    "N05.real": squid,
    "N13.means": means,
    "N13.ranks": ranks,
    "N18.by-hand": forwarder,
}
