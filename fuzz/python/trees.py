"""Data made from octets: a fuzzer that changes octets changes data, and never the brackets around it."""

from __future__ import annotations

import json
from typing import Any

_NUMBERS = (0, -1, 0.5, 1e300, float("inf"), float("nan"), 1 << 70, 404)
_DEEPEST = 12


class Octets:
    """What is left of an input."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._at = 0

    def next(self) -> int:
        """The next octet; none at the end."""
        self._at += 1
        return self._octets[self._at - 1] if self._at <= len(self._octets) else 0

    def piece(self) -> bytes:
        """Octets behind one that says how many they are."""
        return self._take(self.next())

    def text(self) -> str:
        """A few characters."""
        return self._take(self.next() % 16).decode("utf-8", "surrogateescape")

    def _take(self, length: int) -> bytes:
        self._at += length
        return self._octets[self._at - length : self._at]


def tree(octets: Octets, words: tuple[str, ...], depth: int = 0) -> Any:
    """A value as JSON has them, with these words for keys and texts."""
    what = octets.next()
    kind, more = what & 7, what >> 3
    if kind >= 6 and depth == _DEEPEST:
        return None
    match kind:
        case 0:
            return (None, True, False)[more % 3]
        case 1:
            return more
        case 2:
            return _NUMBERS[more % len(_NUMBERS)]
        case 3 | 4:
            return words[octets.next() % len(words)]
        case 5:
            return octets.text()
        case 6:
            return [tree(octets, words, depth + 1) for _ in range(more % 6)]
        case _:
            return {_key(octets, words): tree(octets, words, depth + 1) for _ in range(more)}


def _key(octets: Octets, words: tuple[str, ...]) -> str:
    number = octets.next()
    return words[number % len(words)] if number < 250 else octets.text()


def json_of(octets: bytes, words: tuple[str, ...]) -> bytes:
    """A document: the octets as they are if they begin as one, otherwise what they stand for."""
    if octets[:1] in (b"{", b"["):
        return octets
    return json.dumps(tree(Octets(octets), words)).encode()
