"""The pages of 3.2, as they were drawn: sizes and numbers of the objects that real runs loaded (A10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from airloom.study import Data, Evidence, Numbers, exact, value
from airloom.study.drawing import interval

#: The laws of the sweep, the default first.
LAWS = (
    "default",
    "1 MB, drawn means of the paper",
    "10 MB, drawn means of the paper",
    "100 kB, smallest values of laws without an end",
    "10 MB, smallest values of laws without an end",
)


def _objects(data: Data, law: str, *, own: bool) -> pl.DataFrame:
    """Rows of the pages' own objects, or of what they embed."""
    data.at_default_only()
    is_own = pl.col("object") == pl.col("object").min().over("seed")
    return data.table("drawn", "objects", law=law).filter(is_own if own else ~is_own)


def own(data: Data, law: str = LAWS[0]) -> Numbers:
    """Octets of each page's own object."""
    return _objects(data, law, own=True).sort("seed")["bytes"].to_numpy().astype(np.float64)


def embedded(data: Data, law: str = LAWS[0]) -> Numbers:
    """Octets of the embedded objects, mean of each page: sizes do not depend on their number."""
    sizes = _objects(data, law, own=False).group_by("seed").agg(pl.col("bytes").cast(pl.Float64).mean()).sort("seed")
    return sizes["bytes"].to_numpy()


def count(data: Data, law: str = LAWS[0]) -> Numbers:
    """Embedded objects of each page."""
    rows = _objects(data, law, own=False).group_by("seed").len().sort("seed")
    return rows["len"].to_numpy().astype(np.float64)


def fewest(data: Data) -> Evidence:
    """A10: objects of the smallest page, its own among them."""
    return exact(count(data).min() + 1, "objects")


COMPUTE: dict[str, Any] = {
    "A10.page": lambda data: value(own(data) / 1e3, "kB"),
    "A10.object": lambda data: value(embedded(data) / 1e3, "kB"),
    "A10.count": lambda data: value(count(data), "objects"),
    "A10.least": fewest,
}


def laws_table(data: Data) -> tuple[list[str], list[list[str]]]:
    """What each reading of the laws draws."""
    rows = [["the paper", "–", "10", "4", "3", "–"]]
    for law in LAWS:
        main, each, many = own(data, law), embedded(data, law), count(data, law)
        cells = [interval(x) for x in (main / 1e3, each / 1e3, many, (main + each * many) / 1e3)]
        rows.append([law, f"{len(main):,}", *cells])
    return ["law ends at", "pages", "own object, kB", "embedded object, kB", "embedded objects", "whole page, kB"], rows
