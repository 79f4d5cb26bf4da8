"""Numbers out of the sweeps: page times, page by page."""

from __future__ import annotations

from typing import Any

import polars as pl

from airloom.errors import UsageError
from airloom.study import Data, Grid, Numbers

from .ways import DELAYS, LOSSES

#: Those that HTTP/2 passes.
H2_PROXIES = ("none", "TCP")


def rows(data: Data, sweep: str, **where: Any) -> pl.DataFrame:
    """Pages with these labels, in the order of seeds and of the list. Raises `UsageError` if one was not loaded."""
    found = data.table(sweep, "pages", **where)
    clients = found.filter(pl.col("client").cast(pl.String) == "mobile").sort("seed", "page")
    if missing := clients["load_ns"].null_count():
        raise UsageError(f"{sweep}: {missing} pages with {where} were not loaded")
    return clients


def times(data: Data, sweep: str, **where: Any) -> Numbers:
    """Seconds, a row for each seed, a column for each page: what is under the same radio stands at the same place."""
    return by_seed(rows(data, sweep, **where))


def main(data: Data, proxy: str, http: str) -> Numbers:
    """Page times at T = 20 ms without loss."""
    return times(data, "main", proxy=proxy, http=http)


def whole_list(data: Data, proxy: str, http: str) -> Numbers:
    """The same, of all 135 pages."""
    data.at_default_only()
    return times(data, "list", proxy=proxy, http=http)


def at_delay(data: Data, proxy: str, t: float) -> Numbers:
    """Page times with keep-alive at a one-way delay (ms) of the internet."""
    return (
        first_seeds(data, "delay", main_rows(data, proxy)) if t == DELAYS[0] else times(data, "delay", proxy=proxy, t=t)
    )


def at_loss(data: Data, proxy: str, loss: float) -> Numbers:
    """Page times with keep-alive at a loss of the internet."""
    if loss == LOSSES[0]:
        return first_seeds(data, "loss", main_rows(data, proxy))
    return times(data, "loss", proxy=proxy, loss=loss)


def main_rows(data: Data, proxy: str) -> pl.DataFrame:
    """Pages with keep-alive at T = 20 ms without loss."""
    return rows(data, "main", proxy=proxy, http="keep-alive")


def first_seeds(data: Data, sweep: str, found: pl.DataFrame) -> Numbers:
    """Page times of `found` under the seeds that `sweep` has."""
    seeds = data.table(sweep, "runs")["seed"].unique()
    return by_seed(found.filter(pl.col("seed").is_in(seeds.implode())))


def by_seed(found: pl.DataFrame) -> Numbers:
    """Their times, s: a row for each seed, a column for each page."""
    return (found["load_ns"].to_numpy() / 1e9).reshape(found["seed"].n_unique(), -1)


def per_seed(data: Data, sweep: str, column: str, **where: Any) -> Numbers:
    """A number of the runs, one for each seed."""
    return data.per_seed(sweep, "runs", column, **where)


def spearman(x: Any, y: Any) -> float:
    """Rank correlation."""
    from scipy import stats

    return float(stats.spearmanr(x, y).statistic)


def ranks_of(points: int) -> Grid:
    """What a rank correlation over so many points can be, of which none are tied."""
    return Grid(12 / (points * (points**2 - 1)), -1.0, 1.0)


def shares_of(pages: int) -> Grid:
    """What a share of so many pages can be."""
    return Grid(1 / pages, 0.0, 1.0)
