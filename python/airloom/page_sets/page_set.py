"""A page set in memory, its file, and its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airloom.errors import UsageError, one_line
from airloom.json_file import read_json

#: What a file says of itself.
FORMAT = "airloom page set 1"

#: Sizes as scenarios say them.
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(B|kB|MB|GB|KiB|MiB|GiB)\s*")
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LARGEST = 10**12

#: A server's name with a port behind it; more colons are an address of IPv6, as `http-client` reads it.
_PORT = re.compile(r"(?:\[(.+)\]|([^:]+)):[0-9]+")

#: Most objects of one page, as `http-client` has it.
MOST_OBJECTS = 10_000


@dataclass(frozen=True)
class PageObject:
    """One object of a page."""

    path: str
    #: Octets.
    size: int
    #: Host that it is at; `None`: the server of the others.
    server: str | None = None
    #: The place on the page of the object that names it; `None`: the first.
    after: int | None = None
    #: Is it another one at each visit? Then no cache has it.
    changes: bool = False

    @property
    def key(self) -> tuple[str | None, str]:
        """What makes two objects the same."""
        return self.server, self.path

    def written(self) -> dict[str, Any]:
        """As in the file."""
        more = {"server": self.server, "after": self.after, "changes": self.changes or None}
        said = {"path": self.path, "size": f"{self.size}B", **more}
        return {key: value for key, value in said.items() if value is not None}


@dataclass(frozen=True)
class Page:
    """One page: its first object names the others."""

    name: str
    objects: tuple[PageObject, ...]

    @property
    def octets(self) -> int:
        """Octets of all objects."""
        return sum(o.size for o in self.objects)

    @property
    def servers(self) -> int:
        """How many servers they are at."""
        return len({o.server for o in self.objects})


@dataclass(frozen=True)
class PageSet:
    """Pages in the order in which they are visited."""

    title: str
    source: str
    pages: tuple[Page, ...]

    @property
    def servers(self) -> list[str]:
        """The hosts that a scenario needs for it."""
        named = {o.server for page in self.pages for o in page.objects if o.server is not None}
        ports = ((name, _PORT.fullmatch(name)) for name in named)
        return sorted({(found[1] or found[2]) if found else name for name, found in ports})

    def text(self) -> str:
        """Its file: an object a line."""
        head = {"format": FORMAT, "title": self.title, "source": self.source}
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in head.items()]
        pages = []
        for page in self.pages:
            objects = ",\n".join(json.dumps(o.written(), ensure_ascii=False) for o in page.objects)
            pages.append(f'{{"name": {json.dumps(page.name, ensure_ascii=False)}, "objects": [\n{objects}]}}')
        return "{" + "\n".join(lines) + '\n"pages": [\n' + ",\n".join(pages) + "]}\n"

    def write(self, path: Path | str) -> None:
        """Writes the file, which `page_set` of `http-client` reads."""
        Path(path).write_text(self.text(), encoding="utf-8")


def read(path: Path | str) -> PageSet:
    """The set in a file. Raises `UsageError`, one line, for what is none."""
    table = read_json(path)
    if not isinstance(table, Mapping) or table.get("format") != FORMAT:
        raise UsageError(f"{path}: this is no page set: it does not say {FORMAT!r} as its format")
    try:
        pages = tuple(_page(page) for page in table["pages"])
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: this page set is damaged: {one_line(error)}") from None
    return checked(PageSet(str(table.get("title", "")), str(table.get("source", "")), pages), path)


def checked(pages: PageSet, where: Path | str) -> PageSet:
    """The set, if it is one that can be loaded."""
    if not pages.pages:
        raise UsageError(f"{where}: there is no page in it")
    for number, page in enumerate(pages.pages, 1):
        if not 0 < len(page.objects) <= MOST_OBJECTS:
            raise UsageError(f"{where}: page {number} has {len(page.objects)} objects; 1 to {MOST_OBJECTS}")
    return pages


def _page(table: Mapping[str, Any]) -> Page:
    return Page(str(table.get("name", "")), tuple(_object(o) for o in table["objects"]))


def _object(table: Mapping[str, Any]) -> PageObject:
    return PageObject(
        path=str(table["path"]),
        size=_octets(str(table["size"])),
        server=None if table.get("server") is None else str(table["server"]),
        after=None if table.get("after") is None else int(table["after"]),
        changes=bool(table.get("changes", False)),
    )


def _octets(text: str) -> int:
    """A size as in a scenario: `45B`, `2kB`, `1.5 MB`."""
    found = _SIZE.fullmatch(text)
    octets = float(found[1]) * _UNITS[found[2]] if found else -1
    if not 0 <= octets <= _LARGEST or octets != int(octets):
        raise ValueError(f"size {text!r}: whole octets are wanted, as in 45B or 2kB, up to 1 TB")
    return int(octets)
