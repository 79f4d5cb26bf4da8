"""What stands in people's files and options, checked as it is taken: what is wrong is an error that says where."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from airloom.errors import UsageError, one_line


def did_you_mean(name: str, valid: Iterable[str], quote: str = "") -> str:
    """What was probably meant by a name that is none of the valid ones, as the end of a sentence about it.

    >>> did_you_mean("wpt/3gg", ["wpt/3g", "umts-dch"]), did_you_mean("x", ["wpt/3g"])
    (' (did you mean wpt/3g?)', '')
    """
    close = get_close_matches(name, list(valid), 1)
    return f" (did you mean {quote}{close[0]}{quote}?)" if close else ""


#: Files in TOML that are no scenarios, by the type of a key that only they have.
_OTHER = {("scenario", str): "a sweep file: airloom sweep", ("gate", dict): "a gate file: airloom gate"}


def other_file(text: bytes) -> str | None:
    """What a file is that is no scenario, and the command that takes it.

    >>> other_file(b'scenario = "umts-page"')
    'a sweep file: airloom sweep'
    """
    try:
        found = tomllib.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return next((what for (key, kind), what in _OTHER.items() if isinstance(found.get(key), kind)), None)


def unknown(key: str, valid: Collection[str], kind: str = "key") -> str:
    """What is said of a key, or of an option, that is none of the valid ones.

    >>> unknown("capcity", ["capacity", "mode"])
    'unknown key `capcity` (did you mean `capacity`?); valid: capacity, mode'
    """
    return f"unknown {kind} `{key}`{did_you_mean(key, valid, '`')}; valid: {', '.join(valid)}"


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says. Raises `UsageError`, in one line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {one_line(error)}") from None


def check(keys: Iterable[str], valid: Collection[str], where: str, kind: str = "key") -> None:
    """Raises `UsageError` if one of the keys is none of the valid ones."""
    for key in keys:
        if key not in valid:
            raise UsageError(f"{where}: {unknown(key, valid, kind)}")


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
