"""Variables in the text of decks (WML 10), and what inputs may hold (WML 11.6.3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

_VARIABLE = re.compile(r"\$(?:\$|\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?::\s*([A-Za-z]+)\s*)?\)|([A-Za-z_][A-Za-z0-9_]*))")
_CONVERSIONS: dict[str, Callable[[str], str]] = {
    "e": lambda text: quote(text, safe=""),
    "escape": lambda text: quote(text, safe=""),
    "u": unquote,
    "unesc": unquote,
}


@dataclass
class Variables:
    """Values by name; what is not set is empty."""

    values: dict[str, str] = field(default_factory=dict)

    def expand(self, text: str, convert: str | None = None) -> str:
        """`$name`, `$(name)`, `$(name:e)` (escaped for addresses), `$(name:u)` (the reverse), `$$` a dollar sign."""

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[3]
            if name is None:
                return "$"
            # Without a conversion of its own a variable in an address is escaped, elsewhere not.
            how = _CONVERSIONS.get((found[2] or convert or "").lower())
            stored = self.values.get(name, "")
            return how(stored) if how else stored

        return _VARIABLE.sub(value, text)


_FORMAT = {
    "A": r"[^a-z\d]",
    "a": r"[^A-Z\d]",
    "N": r"\d",
    "X": r"[^a-z]",
    "x": r"[^A-Z]",
    "M": r".",
    "m": r".",
}


def check_format(mask: str, text: str) -> None:
    """Raises ValueError if an input's format does not allow `text` (WML 11.6.3.1). A mask that is none allows all."""
    pattern, rest = "", mask
    while rest:
        first, rest = rest[0], rest[1:]
        if first == "\\" and rest:
            pattern, rest = pattern + re.escape(rest[0]), rest[1:]
        elif first == "*" and rest in _FORMAT:
            pattern, rest = pattern + _FORMAT[rest] + "*", ""
        elif first.isdigit() and rest in _FORMAT:
            pattern, rest = pattern + _FORMAT[rest] + f"{{0,{first}}}", ""
        elif first in _FORMAT:
            pattern += _FORMAT[first]
        else:
            return
    if not re.fullmatch(pattern, text, re.DOTALL):
        raise ValueError(f"{text!r} does not have the form {mask}")
