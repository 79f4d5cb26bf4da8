"""The paper that a study replicates: who wrote what, and when (`[paper]` in `claims.toml`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

from airloom import fields
from airloom.errors import UsageError

_KEYS = ("authors", "title", "year", "where", "summary")


class Paper(NamedTuple):
    """One paper."""

    authors: tuple[str, ...]
    title: str
    year: int
    #: Journal or conference, if known.
    where: str
    #: What was done, with what, and what came out: three sentences.
    summary: str

    @property
    def author(self) -> str:
        """The first author's surname in small letters.

        >>> Paper(("G. Müller", "A. Nobody"), "On links", 2001, "", "").author
        'muller'
        """
        plain = unicodedata.normalize("NFKD", self.authors[0].split()[-1]).encode("ascii", "ignore").decode()
        return re.sub(r"[^a-z]", "", plain.lower())

    @property
    def name(self) -> str:
        """Author and year, as files about the paper are named.

        >>> Paper(("G. Müller",), "On links", 2001, "", "").name
        'muller-2001'
        """
        return f"{self.author}-{self.year}"

    @property
    def citation(self) -> str:
        """The paper in one line."""
        where = f", {self.where}" if self.where else ""
        return f"{', '.join(self.authors)}: {self.title} ({self.year}{where})"


def parse(table: object, file: str) -> Paper:
    """The paper of a table as TOML gives it. Raises `UsageError` with the key that is missing or wrong."""
    if not isinstance(table, Mapping):
        raise UsageError(f"{file}: [paper] is a table with authors, title, year and summary")
    fields.check(table, _KEYS, f"{file}: [paper]")
    authors: Any = table.get("authors")
    if not isinstance(authors, list) or not authors or not all(isinstance(a, str) and a.strip() for a in authors):
        raise UsageError(f'{file}: [paper]: authors is a list such as ["A. First", "B. Second"], not {authors!r}')
    year = table.get("year")
    if not isinstance(year, int) or isinstance(year, bool):
        raise UsageError(f"{file}: [paper]: year is a number, not {year!r}")
    for key in ("title", "summary"):
        if not isinstance(table.get(key), str):
            raise UsageError(f"{file}: [paper]: no {key!r}")
    summary = " ".join(str(table["summary"]).split())
    return Paper(tuple(authors), str(table["title"]), year, str(table.get("where", "")), summary)
