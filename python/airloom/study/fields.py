"""What stands in the files of a study, checked as it is taken: what is of another kind is an error that says where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airloom.errors import UsageError


def table(of: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """A table; empty if it is not there. Raises `UsageError`."""
    found = of.get(key, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: {key} is a table, not {found!r}")
    return dict(found)


def tables(of: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """A list of tables; empty if it is not there. Raises `UsageError`."""
    found = of.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise UsageError(f"{where}: {key} is a list of tables, not {found!r}")
    return found


def texts(of: Mapping[str, Any], key: str, where: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A list of texts; `default` if it is not there. Raises `UsageError`.

    >>> texts({"tables": ["flows"]}, "tables", "sweep.toml")
    ('flows',)
    """
    found = of.get(key, list(default))
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UsageError(f"{where}: {key} is a list of texts, not {found!r}")
    return tuple(found)
