"""Empirical distributions."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from airloom.analysis.units import unit_of


def cdf(runs: pl.DataFrame, measure: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """The share of runs with at most each value, by `by`: columns `value`, `share`, `unit`, `seeds`.

    >>> cdf(pl.DataFrame({"seed": [1, 2, 3], "x_s": [3.0, 1.0, 2.0]}), "x_s")["share"].to_list()
    [0.333..., 0.666..., 1.0]
    """
    there = runs.filter(pl.col(measure).is_not_null())
    # Combinations stay in the order of the table.
    place = {name: there[name].unique(maintain_order=True).to_list() for name in by}
    ranks = [
        pl.col(name).replace_strict(place[name], list(range(len(place[name]))), return_dtype=pl.Int64).alias(f"_{n}")
        for n, name in enumerate(by)
    ]
    found = (
        there.with_columns(*ranks, pl.col(measure).cast(pl.Float64).alias("value"))
        .sort(*(f"_{n}" for n in range(len(by))), "value")
        .select(*by, "value", "seed")
    )
    over = [pl.col(name) for name in by] or [pl.lit(1)]
    return found.with_columns(
        share=(pl.int_range(pl.len()).over(over) + 1) / pl.len().over(over),
        unit=pl.lit(unit_of(measure)),
        seeds=pl.col("seed").n_unique().over(over),
    ).drop("seed")
