"""Pages out of a HAR file: what a browser's developer tools export of a visit, and what `airloom load` writes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from airloom.errors import UsageError, one_line
from airloom.json_file import read_json
from airloom.page_sets.page_set import Page, PageObject, PageSet, checked

#: Objects at least as large as this are taken for ones that are replaced from one visit to the next, as documents are.
LARGE = 5_000


def from_har(path: Path | str, *, one_server: bool = False) -> PageSet:
    """The pages of a HAR file (1.2), an object for each request that was answered.

    Sizes are those that were transferred, where the file says so: content of another coding is larger. With
    `one_server` all objects are at one; otherwise each is at the host of its address, and its port if it says one.
    Which object names which comes from `_initiator`, where Chromium wrote it; otherwise the first names all. Raises
    `UsageError`, one line.
    """
    try:
        log = read_json(path)["log"]
        entries = log["entries"]
        if not isinstance(entries, list):
            raise TypeError("`entries` is no list")
        titles = {str(p["id"]): str(p.get("title", "")) for p in log.get("pages", [])}
        of_page: dict[str, list[Mapping[str, Any]]] = {}
        for entry in entries:
            of_page.setdefault(str(entry.get("pageref", "")), []).append(entry)
        pages = [_page(titles.get(ref, ref), some, one_server) for ref, some in of_page.items()]
    # OverflowError: JSON as Python reads it has numbers without end.
    except (UsageError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else one_line(error)
        raise UsageError(f"{path}: this is no HAR file: {said}") from None
    kept = tuple(page for page in pages if page.objects)
    return checked(PageSet(f"Visit of {Path(path).name}", f"HAR file {Path(path).name}", kept), path)


def _page(title: str, entries: list[Mapping[str, Any]], one_server: bool) -> Page:
    objects: list[PageObject] = []
    places: dict[str, int] = {}
    for entry in sorted(entries, key=_begun):
        url, answer = str(entry["request"]["url"]), entry["response"]
        address = urlsplit(url)
        status = int(answer["status"])
        is_there = 200 <= status < 300 or (status == 304 and _content(answer) > 0)
        if address.scheme not in ("http", "https") or not is_there or url in places:
            continue
        place = f"{address.path or '/'}{'?' + address.query if address.query else ''}"
        if not place.isascii() or not place.isprintable() or " " in place:
            raise ValueError(f"{place[:80]!r} is no path")
        size = _size(answer)
        named_by = _named_by(entry, places) if objects else None
        media = str(answer.get("content", {}).get("mimeType", ""))
        changes = "html" in media or size >= LARGE
        server = None if one_server else _server(address)
        places[url] = len(objects)
        objects.append(PageObject(place, size, server, named_by or None, changes))
    return Page(title, tuple(objects))


def _begun(entry: Mapping[str, Any]) -> float:
    """When it was asked for, in seconds; what has no such time comes first."""
    try:
        at = datetime.fromisoformat(str(entry.get("startedDateTime", "")))
    except ValueError:
        return -math.inf
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _server(address: SplitResult) -> str | None:
    """The host, with the port that its scheme has not by itself, as scenarios name servers."""
    host = address.hostname
    if host is None or address.port in (None, {"http": 80, "https": 443}[address.scheme]):
        return host
    return f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}"


def _size(answer: Mapping[str, Any]) -> int:
    """Octets of the body as it was transferred."""
    body, head = answer.get("bodySize"), answer.get("headersSize")
    both, content = answer.get("_transferSize"), _content(answer)
    # What came from a cache had no octet on the wire, and has a size; what is there as it was (304) had no body.
    if int(answer["status"]) == 304:
        return content
    is_cached = both is not None and int(both) == 0 and content > 0
    if body is not None and int(body) >= 0 and not (is_cached and int(body) == 0):
        return int(body)
    # Chromium knows that of HTTP/2 and HTTP/3 with the head alone.
    if both is not None and int(both) > 0:
        return max(0, int(both) - max(0, int(head or 0)))
    if content >= 0:
        return content
    raise ValueError("an answer without a size")


def _content(answer: Mapping[str, Any]) -> int:
    """Octets of the body as the page has it; -1 where the file does not say."""
    size = answer.get("content", {}).get("size")
    return -1 if size is None else int(size)


def _named_by(entry: Mapping[str, Any], places: Mapping[str, int]) -> int | None:
    """The object that names it, where the browser said so and it is on the page; scripts are in a stack."""
    said = entry.get("_initiator")
    if not isinstance(said, Mapping):
        return None
    urls, stack = [str(said.get("url", ""))], said.get("stack")
    while isinstance(stack, Mapping):
        urls += [str(frame.get("url", "")) for frame in stack.get("callFrames") or []]
        stack = stack.get("parent")
    return next((places[url] for url in urls if url in places), None)
