"""Follows the links of the site's pages."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page has and where it leads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        #: What is fetched to show the page.
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8", errors="replace"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if value and key in ("id", "name"):
                self.names.add(value)
            elif value and key in ("href", "src"):
                (self.links if tag == "a" else self.fetched).append(value)


def broken_links(folder: Path, foreign: Path) -> list[str]:
    """Links within the pages of a folder that lead nowhere, and what of other machines a page would fetch.

    Of the pages in `foreign` it only matters whether they are there: who made them has looked after their links.
    """
    pages = {path: Page(path) for path in folder.rglob("*.html") if not path.is_relative_to(foreign)}
    found = []
    for path, page in pages.items():
        here = path.relative_to(folder)
        found += [f"{here}: fetches {each}" for each in page.fetched if urlsplit(each).scheme not in ("", "data")]
        for link in {*page.links, *page.fetched}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{here}: {link}")
            elif target in pages and unquote(parts.fragment) not in {"", "__skip", *pages[target].names}:
                found.append(f"{here}: {link}: no such place")
    return sorted(found)
