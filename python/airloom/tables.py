"""The tables of a run: columns from the compiled module become polars tables and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom._core import Column

#: The tables that every run folder has, and the column by which each is sorted.
SORTED_BY = {
    "packets": "t_ns",
    "flows": "open_ns",
    "pages": "start_ns",
    "objects": "known_ns",
    "states": "t_ns",
    "congestion": "t_ns",
}

#: Tables that are there only if the scenario asks for them.
OPTIONAL = ("packets", "objects", "congestion")

_ROWS_PER_GROUP = 1_000_000


def table(columns: Sequence[Column]) -> pl.DataFrame:
    """The polars table of some columns; numbers are not copied."""
    return pl.DataFrame([_series(column) for column in columns])


def _series(column: Column) -> pl.Series:
    series = pl.Series(column.name, column.values)
    if series.dtype == pl.Null:  # an empty list of texts has no type of its own
        series = series.cast(pl.String)
    if column.valid is not None:
        series = series.zip_with(pl.Series(column.valid), _nothing(series.dtype, len(series)))
    if column.names is not None:
        # Texts out of a small set: stored as a dictionary.
        names = pl.Series(column.names, dtype=pl.Enum(column.names))
        series = names.gather(series) if column.names else _nothing(names.dtype, len(series))
    return series.alias(column.name)


def _nothing(dtype: pl.DataType, length: int) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, length)


def write(tables: Mapping[str, pl.DataFrame], folder: Path, metadata: Mapping[str, str]) -> None:
    """Writes each table as `<name>.parquet`, sorted by time; the same tables give the same octets.

    A full disk is an `OSError` with the file's name, which it is not if polars writes the file.
    """
    for name, rows in tables.items():
        path, octets = folder / f"{name}.parquet", BytesIO()
        sorted_rows = rows.sort(SORTED_BY[name], maintain_order=True)
        sorted_rows.write_parquet(octets, compression="zstd", row_group_size=_ROWS_PER_GROUP, metadata=dict(metadata))
        try:
            path.write_bytes(octets.getbuffer())
        except OSError as error:
            error.filename = str(path)  # `write` does not know it
            raise


def read(path: Path, columns: Sequence[str] | None = None, where: pl.Expr | None = None) -> pl.DataFrame:
    """A table out of the folder of a run or of a sweep, or a part of it. Raises `UsageError` if it is damaged."""
    if where is not None:
        with scanned(path) as lazy:
            chosen = lazy.filter(where) if columns is None else lazy.filter(where).select(columns)
            return _joinable(chosen.collect(engine="streaming"))
    with _damage_said(path):
        # A name is a name, whatever stands in it: no pattern.
        rows = pl.read_parquet(path.absolute(), columns=None if columns is None else list(columns), glob=False)
        return _joinable(rows)


def _joinable(rows: pl.DataFrame) -> pl.DataFrame:
    """Each table of each run has its own list of texts: as categories they can be joined and put together."""
    return rows.with_columns(pl.selectors.enum().cast(pl.Categorical))


@contextmanager
def scanned(path: Path) -> Iterator[pl.LazyFrame]:
    """Such a table, to be read in the block a few rows at a time. Raises as `read` does."""
    with _damage_said(path):
        yield pl.scan_parquet(path.absolute(), glob=False)


def columns_of(path: Path) -> list[str]:
    """The columns of such a table, which is not read. Raises as `read` does."""
    with _damage_said(path):
        return list(pl.read_parquet_schema(path.absolute()))


@contextmanager
def _damage_said(path: Path) -> Iterator[None]:
    try:
        yield
    except pl.exceptions.PolarsError as error:
        why = str(error).splitlines()[0]
        raise UsageError(f"{path} is damaged ({why}): move its folder away and make it again") from None
